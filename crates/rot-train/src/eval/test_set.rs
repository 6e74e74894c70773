//! Test questions and everything that is asked below them.

use std::collections::HashSet;

use rot_core::{ContextId, Paradigm, Problem, Sampler, Sampling, SizeError, ThoughtGraph, Token};

use super::EvalError;

/// After how many draws in a row without a new question there is none left, it seems.
///
/// Of equally likely questions one stays unseen once in e^64 times. Where large numbers are rarer, as
/// in the paper's distribution, a few of the rarest can be missed.
fn patience(found: usize) -> usize {
    1000 + 64 * found
}

/// The sampler's seed for a test seed.
///
/// Training draws with its seed as it is and keeps it below 2^63; test sets set the top bit. So no
/// test set has a list of questions that was trained on, whatever the two seeds are. Where there are
/// few questions at all, single ones will still be found in both.
pub fn test_seed(seed: u64) -> u64 {
    seed | 1 << 63
}

/// Which questions to draw.
#[derive(Clone, Copy)]
pub struct Questions {
    /// Their problem.
    pub problem: &'static dyn Problem,
    /// Their size.
    pub size: u32,
    /// The distribution of their numbers.
    pub sampling: Sampling,
    /// Which of them, below 2^63; [`test_seed`] keeps them apart from those for training.
    pub seed: u64,
}

/// Problems by which it is found out how many contexts they have.
const LOOKED_AT: usize = 200;

impl Questions {
    /// How many contexts a problem has on average, by the first few.
    pub fn mean_contexts(&self) -> Result<usize, EvalError> {
        let mut graph = ThoughtGraph::default();
        let (mut contexts, mut problems) = (0, 0);
        for question in TestQuestions::new(self)?.take(LOOKED_AT) {
            graph.clear();
            graph.unfold(self.problem, &question)?;
            contexts += graph.len();
            problems += 1;
        }
        Ok((contexts / problems.max(1)).max(1))
    }
}

/// Unique random questions, as many as there are.
pub struct TestQuestions {
    sampler: Sampler,
    index: u64,
    known: HashSet<Vec<Token>>,
}

impl TestQuestions {
    /// Questions for a test.
    pub fn new(questions: &Questions) -> Result<TestQuestions, SizeError> {
        let Questions { problem, size, sampling, seed } = *questions;
        let sampler = Sampler::new(problem, size, sampling, test_seed(seed))?;
        Ok(TestQuestions { sampler, index: 0, known: HashSet::new() })
    }
}

impl Iterator for TestQuestions {
    type Item = Vec<Token>;

    fn next(&mut self) -> Option<Vec<Token>> {
        let mut question = Vec::new();
        for _ in 0..patience(self.known.len()) {
            self.sampler.write_question(self.index, &mut question);
            self.index += 1;
            if self.known.insert(question.clone()) {
                return Some(question);
            }
        }
        None
    }
}

/// Unique random problems with all their contexts.
///
/// Draw it once, evaluate it as often as wanted.
#[derive(Debug)]
pub struct TestSet {
    pub(super) graph: ThoughtGraph,
    pub(super) problems: Vec<ContextId>,
}

impl TestSet {
    /// Draws `count` different problems and unfolds them; `drawn` is called after each. There are
    /// fewer where the problem does not have so many of that size. The contexts may take about
    /// `memory_limit` bytes.
    pub fn draw(
        questions: &Questions,
        count: usize,
        memory_limit: usize,
        mut drawn: impl FnMut(),
    ) -> Result<TestSet, EvalError> {
        let mut graph = ThoughtGraph::with_memory_limit(memory_limit);
        let mut problems = Vec::new();
        for question in TestQuestions::new(questions)?.take(count) {
            problems.push(graph.unfold(questions.problem, &question)?);
            drawn();
        }
        Ok(TestSet { graph, problems })
    }

    /// The contexts of all problems.
    pub fn graph(&self) -> &ThoughtGraph {
        &self.graph
    }

    /// The contexts in which a model is tested: all in the paradigm RoT, one for each problem otherwise.
    pub fn tested(&self, paradigm: Paradigm) -> Vec<ContextId> {
        match paradigm {
            Paradigm::Rot => self.graph.contexts().collect(),
            Paradigm::Cot | Paradigm::Wt => self.problems.clone(),
        }
    }

    /// The problems, in the order they were drawn.
    pub fn problems(&self) -> &[ContextId] {
        &self.problems
    }
}
