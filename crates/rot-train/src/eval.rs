//! Teacher-forced evaluation (paper, appendix "Efficient Evaluation of RoT").
//!
//! A model is deterministic, so a context that many problems lead to is read once. A context is right
//! if the model finds every token that it has to say likeliest, after the right tokens before it. A
//! problem is right only if all contexts below it, directly or not, are right: then, and only then,
//! the model on its own would write the whole recursion without a mistake.
//!
//! In the paradigms CoT and WT a problem is one context.
//!
//! ```no_run
//! use std::ops::ControlFlow;
//!
//! use rot_core::{DEFAULT_MEMORY_LIMIT, Paradigm, Sampling};
//! use rot_train::Model;
//! use rot_train::eval::{Questions, TestSet, evaluate};
//!
//! let problem = &rot_problems::Mul;
//! let questions = Questions { problem, size: 8, sampling: Sampling::Paper, seed: 0 };
//! let test = TestSet::draw(&questions, 30_000, DEFAULT_MEMORY_LIMIT, || ())?;
//! let model = Model::open("runs/mul-8".as_ref())?;
//! let evaluation = evaluate(&model, &test, Paradigm::Rot, 10, |_| ControlFlow::Continue(()))?;
//! println!("{} of {} right", evaluation.right_problems, evaluation.problems);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod asked;
mod failure;
mod forced;
mod free_run;
mod interval;
mod test_set;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use rot_core::{Context, ContextId, Paradigm, SizeError, ThoughtGraph, Token, UBig, UnfoldError};

pub use self::asked::evaluate_by_asking;
pub use self::failure::Failure;
use self::forced::{Forced, Tally};
pub use self::free_run::{FreeRun, RunOptions, WrongRun, free_run};
pub use self::interval::wilson;
pub use self::test_set::{Questions, TestQuestions, TestSet, test_seed};
use crate::Model;

/// How well a model did on a test set.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// How many problems there were.
    pub problems: usize,
    /// How many were right, with everything below them.
    pub right_problems: usize,
    /// Which ones, in the order of the test set.
    pub right: Vec<bool>,
    /// How many different contexts were read.
    pub contexts: usize,
    /// How many were right.
    pub right_contexts: usize,
    /// How many tokens the model had to say.
    pub supervised: usize,
    /// How many it said.
    pub right_supervised: usize,
    /// How many tokens it read: the cost.
    pub tokens: usize,
    /// The length of the longest context.
    pub longest_context: usize,
    /// The contexts by the problem they belong to, that of the test set first.
    pub classes: Vec<ClassScore>,
    /// How many contexts have a first mistake of each kind, in the order of [`Failure::ALL`].
    pub failures: [usize; Failure::ALL.len()],
    /// The first wrong contexts, no more than were asked for.
    pub wrong: Vec<WrongContext>,
}

/// How well a model did on the contexts of one problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassScore {
    /// The problem's name.
    pub class: &'static str,
    /// How many contexts there were.
    pub contexts: usize,
    /// How many were right.
    pub right: usize,
    /// How many were right, with everything below them.
    pub deep_right: usize,
}

/// A context with a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongContext {
    /// The name of its problem.
    pub class: &'static str,
    /// What was read and expected.
    pub context: Context,
    /// What the model said where it was asked, and PAD elsewhere; as long as the context.
    pub produced: Vec<Token>,
    /// The kind of the first mistake.
    pub failure: Failure,
}

/// Work that has just been done.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// How many tokens were read since the last time.
    pub tokens: usize,
    /// How many there are in all.
    pub of: usize,
}

/// Why a model could not be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The size cannot be sampled.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// The test set could not be unfolded.
    #[error(transparent)]
    Unfold(#[from] UnfoldError),
    /// A context has more tokens than the model can read.
    #[error(
        "the {paradigm} context of the {class} question '{question}' has {tokens} tokens, but the \
         model reads at most {limit}: evaluate smaller problems, or train a model with a limit of at \
         least {tokens}"
    )]
    TooLong {
        /// The name of the paradigm.
        paradigm: &'static str,
        /// The problem it belongs to.
        class: &'static str,
        /// Its question.
        question: String,
        /// How many tokens it has, which is the most in the test set.
        tokens: UBig,
        /// The model's limit.
        limit: usize,
    },
    /// The model does not know a token.
    #[error(
        "the model's vocabulary has no {token}, which the context of '{question}' needs: evaluate a \
         problem that the model was trained for"
    )]
    UnknownToken {
        /// The token.
        token: Token,
        /// The question of a context that has it.
        question: String,
    },
    /// Somebody asked it to stop.
    #[error("the test was stopped")]
    Stopped,
}

/// What `progress` of [`evaluate`] returns where a test goes on until a flag is set.
pub fn until(stop: &AtomicBool) -> ControlFlow<()> {
    if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Evaluates a model on a test set, on all cores.
///
/// The first `most_wrong` wrong contexts are kept in detail. `progress` is called from many threads,
/// about every thousand tokens, and can stop it.
pub fn evaluate(
    model: &Model,
    test: &TestSet,
    paradigm: Paradigm,
    most_wrong: usize,
    progress: impl Fn(Progress) -> ControlFlow<()> + Sync,
) -> Result<Evaluation, EvalError> {
    let forced = Forced::plan(model, test, paradigm)?;
    let tally = forced.read(most_wrong, progress)?;
    let Forced { tokens, longest, .. } = forced;
    Ok(Evaluation::new(test, paradigm, tally, tokens, longest))
}

impl Evaluation {
    /// Goes from contexts to problems.
    fn new(
        test: &TestSet,
        paradigm: Paradigm,
        tally: Tally,
        tokens: usize,
        longest_context: usize,
    ) -> Evaluation {
        let ids = test.tested(paradigm);
        let mut right = vec![true; test.graph.len()];
        tally.wrong.iter().for_each(|id| right[id.index()] = false);
        let deep = match paradigm {
            Paradigm::Rot => deep_right(&test.graph, &right),
            Paradigm::Cot | Paradigm::Wt => right.clone(),
        };
        let of_problems: Vec<bool> = test.problems.iter().map(|id| deep[id.index()]).collect();
        Evaluation {
            problems: test.problems.len(),
            right_problems: of_problems.iter().filter(|&&right| right).count(),
            right: of_problems,
            contexts: ids.len(),
            right_contexts: ids.len() - tally.wrong.len(),
            supervised: tally.score.supervised,
            right_supervised: tally.score.right,
            tokens,
            longest_context,
            classes: by_class(&test.graph, &ids, &right, &deep),
            failures: tally.failures,
            wrong: tally.details,
        }
    }
}

/// Which contexts are right with everything below them.
fn deep_right(graph: &ThoughtGraph, right: &[bool]) -> Vec<bool> {
    let mut deep = right.to_vec();
    for &id in graph.solved_order() {
        let below = graph.thoughts(id).all(|thought| deep[thought.context.index()]);
        deep[id.index()] &= below;
    }
    deep
}

fn by_class(
    graph: &ThoughtGraph,
    ids: &[ContextId],
    right: &[bool],
    deep: &[bool],
) -> Vec<ClassScore> {
    let mut classes: Vec<ClassScore> = Vec::new();
    for &id in ids {
        let class = graph.class(id);
        let place = classes.iter().position(|score| score.class == class).unwrap_or_else(|| {
            classes.push(ClassScore { class, contexts: 0, right: 0, deep_right: 0 });
            classes.len() - 1
        });
        let score = &mut classes[place];
        score.contexts += 1;
        score.right += usize::from(right[id.index()]);
        score.deep_right += usize::from(deep[id.index()]);
    }
    classes
}

impl Evaluation {
    /// The share of problems that are right, with everything below them; 0 where there is none.
    pub fn deep_accuracy(&self) -> f64 {
        share(self.right_problems, self.problems)
    }

    /// The share of contexts that are right; 0 where there is none.
    pub fn context_accuracy(&self) -> f64 {
        share(self.right_contexts, self.contexts)
    }

    /// The 95% [`wilson`] interval of [`Evaluation::deep_accuracy`].
    ///
    /// There is none for contexts: problems are drawn independently of one another, but contexts come
    /// along with them.
    pub fn interval(&self) -> [f64; 2] {
        wilson(self.right_problems, self.problems)
    }
}

fn share(part: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}

impl WrongContext {
    /// Its question, from `<GO>` to `=`.
    pub fn question(&self) -> &[Token] {
        let asked = self.context.y.iter().position(|&token| token != Token::PAD);
        &self.context.x[..asked.unwrap_or(self.context.len())]
    }

    /// Whether the token at a place is wrong.
    pub fn is_wrong(&self, at: usize) -> bool {
        self.context.y[at] != Token::PAD && self.context.y[at] != self.produced[at]
    }
}
