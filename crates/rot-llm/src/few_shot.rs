//! Worked contexts in front of a question, for a model that was never trained to think so.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use rot_core::{Context, ContextId, Problem, Sampler, Sampling, ThoughtGraph, Token};
use rot_problems::{PROBLEMS, problem_of};

use crate::spelling::Spelling;

/// Problems whose contexts are examples.
const PROBLEMS_DRAWN: u64 = 24;
/// Which problems. Tests draw with other seeds.
const SEED: u64 = 0;
/// The largest size of an example.
const LARGEST: u32 = 32;
/// Bytes that unfolding examples may take.
const MEMORY: usize = 64 << 20;

/// Worked contexts of all kinds of questions that have come up.
pub(crate) struct FewShot {
    count: usize,
    spelling: Spelling,
    /// The size of examples for questions of a problem and a length.
    sizes: HashMap<(&'static str, usize), u32>,
    known: HashMap<(&'static str, u32), Vec<Worked>>,
}

/// A context with all its steps.
struct Worked {
    question: Vec<Token>,
    /// A line for each THINK or STOP: what stands before it, and what is said.
    lines: String,
    tokens: usize,
}

impl FewShot {
    pub(crate) fn new(count: usize, spelling: Spelling) -> FewShot {
        FewShot { count, spelling, sizes: HashMap::new(), known: HashMap::new() }
    }

    /// What stands in front of a context with that question.
    pub(crate) fn before(&mut self, question: &[Token]) -> String {
        self.worked(question).map(|worked| worked.lines.as_str()).collect()
    }

    /// How many tokens that are.
    pub(crate) fn tokens_before(&mut self, question: &[Token]) -> usize {
        self.worked(question).map(|worked| worked.tokens).sum()
    }

    fn worked<'a>(&'a mut self, question: &'a [Token]) -> impl Iterator<Item = &'a Worked> {
        let body = question.get(1..question.len().saturating_sub(1)).unwrap_or_default();
        let problem = problem_of(PROBLEMS, body).filter(|problem| problem.check(body).is_ok());
        let FewShot { sizes, known, spelling, count } = self;
        let worked = problem.filter(|_| *count > 0).map(|problem| {
            let like = (problem.name(), question.len());
            let size = *sizes.entry(like).or_insert_with(|| size_like(problem, question.len()));
            // One more than is shown, as the question itself is not.
            let make = || worked(problem, size, *count + 1, *spelling);
            known.entry((problem.name(), size)).or_insert_with(make).as_slice()
        });
        let worked = worked.unwrap_or_default().iter();
        worked.filter(move |worked| worked.question != question).take(*count)
    }
}

/// The smallest size at which questions are as long as that.
fn size_like(problem: &'static dyn Problem, length: usize) -> u32 {
    let smallest = problem.facts().smallest;
    let mut question = Vec::new();
    let mut longest = |size| {
        let sampler = Sampler::new(problem, size, Sampling::Paper, SEED).ok()?;
        let lengths = (0..PROBLEMS_DRAWN).map(|index| {
            sampler.write_question(index, &mut question);
            question.len()
        });
        lengths.max()
    };
    let fits = |size: &u32| longest(*size).is_none_or(|longest| longest >= length);
    (smallest..LARGEST).find(fits).unwrap_or(LARGEST.max(smallest))
}

/// Contexts of a problem, one of each kind in turn: those that ask as many sub-questions in the same way.
fn worked(
    problem: &'static dyn Problem,
    size: u32,
    count: usize,
    spelling: Spelling,
) -> Vec<Worked> {
    let mut graph = ThoughtGraph::with_memory_limit(MEMORY);
    let (mut question, mut context) = (Vec::new(), Context::default());
    if let Ok(sampler) = Sampler::new(problem, size, Sampling::Paper, SEED) {
        for index in 0..PROBLEMS_DRAWN {
            sampler.write_question(index, &mut question);
            if graph.unfold(problem, &question).is_err() {
                break;
            }
        }
    }
    let mut kinds: BTreeMap<(usize, bool), Vec<ContextId>> = BTreeMap::new();
    for id in graph.contexts().filter(|&id| graph.class(id) == problem.name()) {
        kinds.entry((graph.thoughts(id).len(), graph.is_tail(id))).or_default().push(id);
    }
    let turns = kinds.values().map(Vec::len).max().unwrap_or(0);
    let in_turn = (0..turns).flat_map(|turn| kinds.values().filter_map(move |ids| ids.get(turn)));
    in_turn
        .take(count)
        .map(|&id| {
            context.clear();
            graph.write_rot(id, &mut context);
            let (mut lines, mut tokens) = (String::new(), 0);
            for example in context.examples() {
                spelling.write(example.prompt, &mut lines);
                spelling.write(example.completion, &mut lines);
                tokens += example.prompt.len() + example.completion.len();
                // Into a string it cannot fail.
                let _ = writeln!(lines);
            }
            Worked { question: graph.question(id).to_vec(), lines, tokens }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use rot_core::parse_tokens;

    use super::*;

    #[test]
    fn examples_are_of_the_kind_of_the_question() {
        let mut shots = FewShot::new(3, Spelling::Words);
        let text = shots.before(&parse_tokens("<GO>408+351=").unwrap());
        // A context for each number of sub-questions, with all its steps.
        assert!(text.lines().all(|line| line.starts_with(" go ") && line.contains(" + ")));
        let ends = |line: &str| line.ends_with(" think") || line.ends_with(" stop");
        assert!(text.lines().all(ends), "{text}");
        let steps: Vec<usize> = text
            .lines()
            .filter(|line| line.ends_with(" stop"))
            .map(|line| line.matches(" go").count())
            .collect();
        assert_eq!(steps.len(), 3, "{text}");
        assert!(steps[0] < steps[1] && steps[1] < steps[2], "{text}");
        for question in ["<GO>12<VS>9=", "<GO>34*5=", "<GO><SORT>3,1,2="] {
            let question = parse_tokens(question).unwrap();
            assert_eq!(shots.before(&question), shots.before(&question));
            assert_ne!(shots.before(&question), "");
        }
    }

    #[test]
    fn the_question_itself_is_no_example() {
        for digits in 0..100 {
            let question = format!("<GO>{}+{}=", digits / 10, digits % 10);
            let question = parse_tokens(&question).unwrap();
            let text = FewShot::new(8, Spelling::Tokens).before(&question);
            let own = rot_core::Text(&question).to_string();
            assert!(!text.lines().any(|line| line.starts_with(&own)), "{text}");
        }
    }

    #[test]
    fn what_is_no_question_has_none() {
        let mut shots = FewShot::new(3, Spelling::Words);
        assert_eq!(shots.before(&parse_tokens("<GO>=").unwrap()), "");
        assert_eq!(shots.before(&[]), "");
        let mut none = FewShot::new(0, Spelling::Words);
        assert_eq!(none.before(&parse_tokens("<GO>1+1=").unwrap()), "");
    }
}
