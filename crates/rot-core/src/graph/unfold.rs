//! Unfolding: following the thoughts of a question until all are answered, with frames on the heap.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use super::{ContextId, Node, ThoughtGraph};
use crate::thoughts::{Lost, Span, Step, Thoughts, is_question};
use crate::{Excerpt, Problem, Token};

/// The most sub-questions that one context may ask. Its procedure runs again for each.
const MOST_THOUGHTS: usize = 4096;

/// A context that waits for an answer.
pub(super) struct Frame {
    node: ContextId,
    problem: &'static dyn Problem,
    /// Where its thoughts begin in `Work::asked`.
    asked: usize,
    tail: bool,
}

/// What unfolding needs while it runs, kept to be used again.
#[derive(Default)]
pub(super) struct Work {
    pub(super) frames: Vec<Frame>,
    pub(super) asked: Vec<ContextId>,
    answers: Vec<Span>,
    out: Vec<Token>,
}

impl ThoughtGraph {
    /// Adds the contexts of one problem that are not there yet. The question is whole, from `<GO>`
    /// to `=`; one that has passed the problem's check has an answer. After an error the graph is
    /// as it was before.
    pub fn unfold(
        &mut self,
        problem: &'static dyn Problem,
        question: &[Token],
    ) -> Result<ContextId, UnfoldError> {
        if !is_question(question) {
            return Err(UnfoldError::Question { question: Excerpt(question).to_string() });
        }
        let before = (self.tokens.len(), self.nodes.len(), self.thoughts.len(), self.solved.len());
        self.work.out.clear();
        self.work.out.extend_from_slice(question);
        let result = self.solve(problem);
        if result.is_err() {
            let (tokens, nodes, thoughts, solved) = before;
            for id in nodes..self.nodes.len() {
                let id = ContextId(id as u32);
                let hash = hash(self.question(id));
                if let Ok(entry) = self.index.find_entry(hash, |&other| other == id) {
                    entry.remove();
                }
            }
            self.tokens.truncate(tokens);
            self.nodes.truncate(nodes);
            self.thoughts.truncate(thoughts);
            self.solved.truncate(solved);
            self.work.frames.clear();
            self.work.asked.clear();
            self.work.answers.clear();
        }
        result
    }

    /// Solves the question in `work.out` and everything below it, with frames on the heap.
    fn solve(&mut self, problem: &'static dyn Problem) -> Result<ContextId, UnfoldError> {
        let root = match self.visit(problem)? {
            Visit::Solved(id) => return Ok(id),
            Visit::New(id) => id,
        };
        while let Some(frame) = self.work.frames.last() {
            let node = &self.nodes[frame.node.index()];
            let question = node.question.of(&self.tokens);
            let step = Thoughts::step(
                frame.problem,
                &question[1..question.len() - 1],
                &self.tokens,
                &self.work.answers[frame.asked..],
                &mut self.work.out,
            );
            let (problem, tail) = match step {
                Ok(Step::Answer) => {
                    let answer = self.store_output()?;
                    let solved = self.close(answer);
                    self.receive(solved);
                    continue;
                }
                Ok(Step::Ask(_)) if self.work.answers.len() - frame.asked >= MOST_THOUGHTS => {
                    return Err(UnfoldError::Thoughts { question: Excerpt(question).to_string() });
                }
                Ok(Step::Ask(problem)) => (problem, false),
                Ok(Step::Tail(problem)) => (problem, true),
                Err(Lost(why)) => {
                    return Err(UnfoldError::Lost {
                        problem: frame.problem.name(),
                        question: Excerpt(question).to_string(),
                        why,
                    });
                }
            };
            if let Some(frame) = self.work.frames.last_mut() {
                frame.tail = tail;
            }
            if let Visit::Solved(child) = self.visit(problem)? {
                self.receive(child);
            }
        }
        Ok(root)
    }

    /// Finds the context of the question in `work.out`, or opens it.
    fn visit(&mut self, problem: &'static dyn Problem) -> Result<Visit, UnfoldError> {
        let hash = hash(&self.work.out);
        let same = |&id: &ContextId| {
            self.nodes[id.index()].question.of(&self.tokens) == self.work.out.as_slice()
        };
        if let Some(&id) = self.index.find(hash, same) {
            let question = || Excerpt(&self.work.out).to_string();
            let (one, other) = (self.class(id), problem.name());
            if one != other {
                return Err(UnfoldError::Ambiguous { question: question(), one, other });
            }
            if self.nodes[id.index()].answer.len == 0 {
                return Err(UnfoldError::Cycle { question: question() });
            }
            return Ok(Visit::Solved(id));
        }
        let id = ContextId(self.nodes.len() as u32);
        let question = self.store_output()?;
        let class = self.class_of(problem.name());
        let answer = Span::default();
        self.nodes.push(Node { question, answer, thoughts: (0, 0), class, tail: false });
        let (nodes, tokens) = (&self.nodes, &self.tokens);
        self.index.insert_unique(hash, id, |&id| self::hash(nodes[id.index()].question.of(tokens)));
        let asked = self.work.asked.len();
        self.work.frames.push(Frame { node: id, problem, asked, tail: false });
        Ok(Visit::New(id))
    }

    /// Hands a solved thought to the context that asked it. After a tail call that context is
    /// solved too, and so on upwards.
    fn receive(&mut self, mut child: ContextId) {
        let answer = self.nodes[child.index()].answer;
        while let Some(frame) = self.work.frames.last() {
            let tail = frame.tail;
            self.work.asked.push(child);
            self.work.answers.push(Span { len: answer.len - 1, ..answer });
            if !tail {
                return;
            }
            child = self.close(answer);
        }
    }

    /// Closes the context on top with its answer.
    fn close(&mut self, answer: Span) -> ContextId {
        let frame = self.work.frames.pop().expect("a context that answers is open");
        let asked = &self.work.asked[frame.asked..];
        let node = &mut self.nodes[frame.node.index()];
        node.answer = answer;
        node.tail = frame.tail;
        node.thoughts = (self.thoughts.len() as u32, asked.len() as u32);
        self.thoughts.extend_from_slice(asked);
        self.solved.push(frame.node);
        self.work.asked.truncate(frame.asked);
        self.work.answers.truncate(frame.asked);
        frame.node
    }

    /// Appends `work.out` to the arena.
    fn store_output(&mut self) -> Result<Span, UnfoldError> {
        let out = &self.work.out;
        if !self.has_room() || self.tokens.try_reserve(out.len()).is_err() {
            return Err(self.out_of_memory());
        }
        let span = Span { start: self.tokens.len(), len: out.len() as u32 };
        self.tokens.extend_from_slice(out);
        Ok(span)
    }

    /// Whether `work.out` can be added within the limits.
    fn has_room(&self) -> bool {
        // Contexts, thoughts and lengths are counted in 32 bits.
        let thoughts = self.thoughts.len() + self.work.asked.len();
        let most = self.nodes.len().max(thoughts).max(self.work.out.len());
        most < u32::MAX as usize && self.memory() + self.work.out.len() <= self.memory_limit
    }

    fn class_of(&mut self, name: &'static str) -> u32 {
        let known = self.classes.iter().position(|&class| class == name);
        let class = known.unwrap_or_else(|| {
            self.classes.push(name);
            self.classes.len() - 1
        });
        class as u32
    }
}

enum Visit {
    Solved(ContextId),
    New(ContextId),
}

pub(super) fn hash(question: &[Token]) -> u64 {
    // A fixed seed: the index lives in memory only, and nothing depends on its order.
    FixedState::with_seed(0).hash_one(bytemuck::cast_slice::<Token, u8>(question))
}

/// Why a problem could not be unfolded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnfoldError {
    /// It is not a question at all.
    #[error("'{question}' is not a question: <GO>, tokens that steer nothing, =")]
    Question {
        /// What was asked.
        question: String,
    },
    /// A context waits, directly or not, for its own question.
    #[error("the procedure goes in a circle: '{question}' is asked while it is being answered")]
    Cycle {
        /// The question.
        question: String,
    },
    /// A procedure met a question or an answer that it cannot deal with.
    #[error("'{problem}' cannot go on with '{question}': {why}")]
    Lost {
        /// The problem.
        problem: &'static str,
        /// The question of the context.
        question: String,
        /// What it did not expect.
        why: &'static str,
    },
    /// A context that asks and asks.
    #[error("'{question}' asks more than {MOST_THOUGHTS} sub-questions")]
    Thoughts {
        /// The question of the context.
        question: String,
    },
    /// The contexts take more memory than allowed, or than there is.
    #[error(
        "the problem does not fit in {} MiB: there was no room after {contexts} contexts",
        limit >> 20
    )]
    Memory {
        /// The limit in bytes.
        limit: usize,
        /// How many contexts there were.
        contexts: usize,
    },
    /// Two problems ask the same tokens.
    #[error("'{question}' is asked as '{one}' and as '{other}': their forms must differ")]
    Ambiguous {
        /// The question.
        question: String,
        /// The problem it was asked as first.
        one: &'static str,
        /// The problem it is asked as now.
        other: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::{Done, Facts, Fault, Form, Pause, SampleRng, Sampling, Text, parse_tokens};

    type Think = for<'a> fn(&'a [Token], &mut Thoughts<'a>) -> Result<Done, Pause>;

    const fn facts(name: &'static str) -> Facts {
        Facts {
            name,
            form: Form::Infix { operator: Token::PLUS, operands: 2 },
            unit: "digits",
            smallest: 1,
            paper_sizes: &[],
            tokens: &[],
            asks: &[],
        }
    }

    /// A problem that is nothing but a procedure.
    struct Script(Think);

    impl Problem for Script {
        fn facts(&self) -> &'static Facts {
            const { &facts("script") }
        }
        fn check(&self, _: &[Token]) -> Result<(), Fault> {
            Ok(())
        }
        fn think<'a>(&self, body: &'a [Token], t: &mut Thoughts<'a>) -> Result<Done, Pause> {
            (self.0)(body, t)
        }
        fn sample(&self, _: u32, _: Sampling, _: &mut SampleRng, _: &mut Vec<Token>) {}
    }

    fn unfold(
        graph: &mut ThoughtGraph,
        problem: &'static Script,
        question: &str,
    ) -> Result<ContextId, UnfoldError> {
        graph.unfold(problem, &parse_tokens(question).unwrap())
    }

    /// Asks for the digits without the last until none is left; each answer is one digit longer.
    static COUNTDOWN: Script = Script(|body, t| match body.split_last() {
        None => t.answer(&[]),
        Some((last, rest)) => {
            let below = t.ask(&COUNTDOWN, &[rest])?;
            t.answer(&[below, &[*last]])
        }
    });

    /// The same as a chain of tail calls.
    static TAIL: Script = Script(|body, t| match body.split_last() {
        None => t.answer(&[&[Token::D7]]),
        Some((_, rest)) => t.tail(&TAIL, &[rest]),
    });

    #[test]
    fn ids_follow_the_first_visit_and_solved_order_the_answers() {
        let mut graph = ThoughtGraph::default();
        let root = unfold(&mut graph, &COUNTDOWN, "<GO>12=").unwrap();
        let questions: Vec<String> =
            graph.contexts().map(|id| Text(graph.question(id)).to_string()).collect();
        assert_eq!(questions, ["<GO>12=", "<GO>1=", "<GO>="]);
        assert_eq!(graph.solved_order(), [ContextId(2), ContextId(1), ContextId(0)]);
        assert_eq!(Text(graph.answer(root)).to_string(), "12<STOP>");
        assert_eq!(graph.class(root), "script");
    }

    #[test]
    fn a_question_is_solved_once_for_all_problems() {
        let mut graph = ThoughtGraph::default();
        let long = unfold(&mut graph, &COUNTDOWN, "<GO>123=").unwrap();
        let other = unfold(&mut graph, &COUNTDOWN, "<GO>129=").unwrap();
        let again = unfold(&mut graph, &COUNTDOWN, "<GO>123=").unwrap();
        assert_eq!((long, other, graph.len()), (again, ContextId(4), 5));
        let costs = crate::CostCounter::new(&graph).unwrap().costs(other);
        assert_eq!(costs.unique_contexts, 4);
    }

    #[test]
    fn a_tail_context_takes_the_answer_of_its_thought() {
        let mut graph = ThoughtGraph::default();
        let root = unfold(&mut graph, &TAIL, "<GO>00=").unwrap();
        let mut context = crate::Context::default();
        graph.write_rot(root, &mut context);
        assert_eq!(Text(&context.x).to_string(), "<GO>00=<TAIL>0=<THINK>");
        assert_eq!(Text(&context.y).to_string(), "<PAD><PAD><PAD><PAD><TAIL>0=<THINK>");
        assert_eq!(Text(graph.answer(root)).to_string(), "7<STOP>");
        let mut cot = crate::Context::default();
        assert!(graph.write_cot(root, 11, &mut cot));
        assert_eq!(Text(&cot.x).to_string(), "<GO>00=<TAIL>0=<TAIL>=7<STOP>");
        assert!(!graph.write_cot(root, 10, &mut cot));
        assert_eq!(cot.len(), 11);
    }

    #[test]
    fn depth_costs_no_stack() {
        for problem in [&COUNTDOWN, &TAIL] {
            let mut graph = ThoughtGraph::default();
            let question = format!("<GO>{}=", "1".repeat(20_000));
            let root = unfold(&mut graph, problem, &question).unwrap();
            assert_eq!(graph.len(), 20_001);
            assert_eq!(
                crate::CostCounter::new(&graph).unwrap().costs(root).unique_contexts,
                20_001
            );
        }
    }

    #[test]
    fn a_circle_is_reported() {
        static EVEN: Script = Script(|_, t| t.tail(&ODD, &[&[Token::D1]]));
        static ODD: Script = Script(|_, t| t.tail(&EVEN, &[&[Token::D2]]));
        let error = unfold(&mut ThoughtGraph::default(), &EVEN, "<GO>2=").unwrap_err();
        assert_eq!(error, UnfoldError::Cycle { question: "<GO>2=".into() });
    }

    #[test]
    fn endless_procedures_meet_a_limit() {
        static MORE: Script = Script(|body, t| t.tail(&MORE, &[body, &[Token::D1]]));
        let mut graph = ThoughtGraph::with_memory_limit(1 << 24);
        let error = unfold(&mut graph, &MORE, "<GO>1=").unwrap_err();
        assert!(matches!(error, UnfoldError::Memory { .. }), "{error}");

        // One that asks for ever what it knows opens no context.
        static SAME: Script = Script(|body, t| {
            while !body.is_empty() {
                t.ask(&SAME, &[])?;
            }
            t.answer(&[])
        });
        let error = unfold(&mut ThoughtGraph::default(), &SAME, "<GO>1=").unwrap_err();
        assert_eq!(error, UnfoldError::Thoughts { question: "<GO>1=".into() });
    }

    #[test]
    fn a_procedure_that_breaks_the_rules_is_lost() {
        static LEAF: Script = Script(|_, t| t.answer(&[&[Token::D1]]));
        let why = |problem: &'static Script| match unfold(
            &mut ThoughtGraph::default(),
            problem,
            "<GO>5=",
        )
        .unwrap_err()
        {
            UnfoldError::Lost { why, .. } => why,
            error => panic!("{error}"),
        };
        static AFTER_TAIL: Script = Script(|_, t| {
            let done = t.tail(&LEAF, &[])?;
            t.answer(&[])?;
            Ok(done)
        });
        static AFTER_ASK: Script = Script(|_, t| {
            let _ = t.ask(&LEAF, &[]);
            t.answer(&[])
        });
        assert_eq!(why(&AFTER_TAIL), "it went on after it had asked or answered");
        assert_eq!(why(&AFTER_ASK), "it went on after it had asked or answered");
        static STEERS: Script = Script(|_, t| t.answer(&[&[Token::THINK]]));
        static ASKS_GO: Script = Script(|_, t| t.tail(&LEAF, &[&[Token::GO]]));
        assert_eq!(why(&STEERS), "it wrote a token that steers the recursion");
        assert_eq!(why(&ASKS_GO), "it wrote a token that steers the recursion");
        static FORGETS: Script = Script(|_, t| {
            static RUNS: AtomicU32 = AtomicU32::new(0);
            if RUNS.fetch_add(1, Ordering::Relaxed) == 0 {
                t.ask(&LEAF, &[])?;
            }
            t.answer(&[])
        });
        assert_eq!(why(&FORGETS), "it did not ask what it had asked before");
    }

    #[test]
    fn tokens_belong_to_one_problem() {
        let mut graph = ThoughtGraph::default();
        unfold(&mut graph, &TAIL, "<GO>0=").unwrap();
        struct Other;
        impl Problem for Other {
            fn facts(&self) -> &'static Facts {
                const { &facts("other") }
            }
            fn check(&self, _: &[Token]) -> Result<(), Fault> {
                Ok(())
            }
            fn think<'a>(&self, _: &'a [Token], t: &mut Thoughts<'a>) -> Result<Done, Pause> {
                t.answer(&[])
            }
            fn sample(&self, _: u32, _: Sampling, _: &mut SampleRng, _: &mut Vec<Token>) {}
        }
        let error = graph.unfold(&Other, &parse_tokens("<GO>0=").unwrap()).unwrap_err();
        let question = "<GO>0=".into();
        assert_eq!(error, UnfoldError::Ambiguous { question, one: "script", other: "other" });
    }

    #[test]
    fn only_questions_are_unfolded() {
        for wrong in ["", "<GO>", "=", "1=", "<GO>1", "<TAIL>1=", "<GO>1<STOP>="] {
            let error = unfold(&mut ThoughtGraph::default(), &TAIL, wrong).unwrap_err();
            assert_eq!(error, UnfoldError::Question { question: wrong.into() });
        }
    }

    #[test]
    fn after_an_error_the_graph_is_as_before() {
        static FAILS: Script = Script(|body, t| match body {
            [Token::D0] => Err(Pause::lost("no way")),
            [] => t.answer(&[]),
            [_, rest @ ..] => {
                // The longer ones first ask one that has thoughts of its own.
                let first: &[Token] = if rest.is_empty() { &[] } else { &[Token::D4] };
                t.ask(&FAILS, &[first])?;
                t.ask(&FAILS, &[rest])?;
                t.answer(&[])
            }
        });
        let mut graph = ThoughtGraph::default();
        unfold(&mut graph, &FAILS, "<GO>3=").unwrap();
        let memory = graph.memory();
        let error = unfold(&mut graph, &FAILS, "<GO>1230=").unwrap_err();
        assert_eq!(graph.memory(), memory);
        assert_eq!(error.to_string(), "'script' cannot go on with '<GO>0=': no way");
        assert_eq!(graph.len(), 2);
        let root = unfold(&mut graph, &FAILS, "<GO>123=").unwrap();
        assert_eq!((graph.len(), graph.class(root)), (5, "script"));
    }
}
