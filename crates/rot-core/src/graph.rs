//! The thought graph: every unique context of a set of problems, and who asks whom.
//!
//! A question is solved once, however many contexts ask it. The graph keeps questions, answers and
//! thoughts in flat arenas; the contexts that models see are written from it when they are wanted
//! ([`crate::Context`]).

use std::fmt;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

use crate::thoughts::{Lost, Span, Step, Thoughts};
use crate::{Excerpt, Problem, Token};

/// One unique context of a [`ThoughtGraph`]. Ids count from zero in depth-first first-visit order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub(crate) u32);

impl ContextId {
    /// The id as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A thought of a context: the sub-question it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thought {
    /// The context that answers it.
    pub context: ContextId,
    /// Whether its answer is the answer.
    pub tail: bool,
}

#[derive(Clone, Copy)]
struct Node {
    question: Span,
    /// With its `<STOP>`; empty while the context is not solved.
    answer: Span,
    thoughts: Span,
    class: u8,
    tail: bool,
}

/// A context that waits for an answer.
struct Frame {
    node: ContextId,
    problem: &'static dyn Problem,
    /// Where its thoughts begin in `Work::asked`.
    asked: usize,
    tail: bool,
}

/// What unfolding needs while it runs, kept to be used again.
#[derive(Default)]
struct Work {
    frames: Vec<Frame>,
    asked: Vec<ContextId>,
    answers: Vec<Span>,
    out: Vec<Token>,
}

/// The unique contexts of a set of problems.
pub struct ThoughtGraph {
    tokens: Vec<Token>,
    nodes: Vec<Node>,
    thoughts: Vec<ContextId>,
    /// Every context behind all the contexts it asks.
    solved: Vec<ContextId>,
    index: HashTable<ContextId>,
    classes: Vec<&'static str>,
    memory_limit: usize,
    work: Work,
}

/// The memory a graph may take unless told otherwise.
pub const DEFAULT_MEMORY_LIMIT: usize = 2 << 30;

impl Default for ThoughtGraph {
    fn default() -> Self {
        ThoughtGraph::with_memory_limit(DEFAULT_MEMORY_LIMIT)
    }
}

impl ThoughtGraph {
    /// An empty graph that may grow to about `memory_limit` bytes.
    pub fn with_memory_limit(memory_limit: usize) -> ThoughtGraph {
        ThoughtGraph {
            tokens: Vec::new(),
            nodes: Vec::new(),
            thoughts: Vec::new(),
            solved: Vec::new(),
            index: HashTable::new(),
            classes: Vec::new(),
            memory_limit,
            work: Work::default(),
        }
    }

    /// Forgets all contexts and keeps the memory.
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.nodes.clear();
        self.thoughts.clear();
        self.solved.clear();
        self.index.clear();
    }

    /// Adds the contexts of one problem that are not there yet. The question is whole, from `<GO>`
    /// to `=`, and has passed the problem's check. After an error the graph is as it was before.
    pub fn unfold(
        &mut self,
        problem: &'static dyn Problem,
        question: &[Token],
    ) -> Result<ContextId, UnfoldError> {
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
        }
        result
    }

    /// The number of unique contexts.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no context.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// All contexts, in depth-first first-visit order.
    pub fn contexts(&self) -> impl ExactSizeIterator<Item = ContextId> + use<> {
        (0..self.nodes.len() as u32).map(ContextId)
    }

    /// All contexts, each behind those it asks.
    pub fn solved_order(&self) -> &[ContextId] {
        &self.solved
    }

    /// The question, from `<GO>` to `=`.
    pub fn question(&self, id: ContextId) -> &[Token] {
        self.nodes[id.index()].question.of(&self.tokens)
    }

    /// The answer with its `<STOP>`. That of a tail context is its last thought's.
    pub fn answer(&self, id: ContextId) -> &[Token] {
        self.nodes[id.index()].answer.of(&self.tokens)
    }

    /// The thoughts, in the order they are asked.
    pub fn thoughts(&self, id: ContextId) -> impl ExactSizeIterator<Item = Thought> + '_ {
        let node = &self.nodes[id.index()];
        let asked = &self.thoughts[node.thoughts.start as usize..][..node.thoughts.len as usize];
        let last = asked.len().wrapping_sub(1);
        let tail = node.tail;
        asked
            .iter()
            .enumerate()
            .map(move |(place, &context)| Thought { context, tail: tail && place == last })
    }

    /// Whether the last thought is a tail call, so that the context itself writes no answer.
    pub fn is_tail(&self, id: ContextId) -> bool {
        self.nodes[id.index()].tail
    }

    /// The name of the problem that the question belongs to.
    pub fn class(&self, id: ContextId) -> &'static str {
        self.classes[self.nodes[id.index()].class as usize]
    }

    /// Solves the question in `work.out` and everything below it, with frames on the heap.
    fn solve(&mut self, problem: &'static dyn Problem) -> Result<ContextId, UnfoldError> {
        self.work.frames.clear();
        self.work.asked.clear();
        self.work.answers.clear();
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
                    self.finish(answer);
                    continue;
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
            if self.nodes[id.index()].answer.len == 0 {
                let question = Excerpt(&self.work.out).to_string();
                return Err(UnfoldError::Cycle { question });
            }
            return Ok(Visit::Solved(id));
        }
        let id = ContextId(self.nodes.len() as u32);
        let question = self.store_output()?;
        let class = self.class_of(problem.name())?;
        let (answer, thoughts) = (Span::default(), Span::default());
        self.nodes.push(Node { question, answer, thoughts, class, tail: false });
        let (nodes, tokens) = (&self.nodes, &self.tokens);
        self.index.insert_unique(hash, id, |&id| self::hash(nodes[id.index()].question.of(tokens)));
        let asked = self.work.asked.len();
        self.work.frames.push(Frame { node: id, problem, asked, tail: false });
        Ok(Visit::New(id))
    }

    /// Hands a solved thought to the context that asked it, and up through tail calls.
    fn receive(&mut self, child: ContextId) {
        let answer = self.nodes[child.index()].answer;
        self.work.asked.push(child);
        self.work.answers.push(Span { len: answer.len - 1, ..answer });
        if self.work.frames.last().is_some_and(|frame| frame.tail) {
            self.finish(answer);
        }
    }

    /// Closes the context on top, and every context above it that waits for a tail call.
    fn finish(&mut self, answer: Span) {
        while let Some(frame) = self.work.frames.pop() {
            let asked = &self.work.asked[frame.asked..];
            let node = &mut self.nodes[frame.node.index()];
            node.answer = answer;
            node.tail = frame.tail;
            node.thoughts = Span { start: self.thoughts.len() as u32, len: asked.len() as u32 };
            self.thoughts.extend_from_slice(asked);
            self.solved.push(frame.node);
            self.work.asked.truncate(frame.asked);
            self.work.answers.truncate(frame.asked);

            let Some(parent) = self.work.frames.last() else { return };
            self.work.asked.push(frame.node);
            self.work.answers.push(Span { len: answer.len - 1, ..answer });
            if !parent.tail {
                return;
            }
        }
    }

    /// Appends `work.out` to the arena.
    fn store_output(&mut self) -> Result<Span, UnfoldError> {
        let out = &self.work.out;
        if self.memory() + out.len() > self.memory_limit {
            return Err(UnfoldError::Memory { limit: self.memory_limit, contexts: self.len() });
        }
        let span = Span { start: self.tokens.len() as u32, len: out.len() as u32 };
        self.tokens.extend_from_slice(out);
        Ok(span)
    }

    /// About how many bytes the graph takes.
    fn memory(&self) -> usize {
        // A node, its place in the index and in `solved`, and the thought that asks it.
        const CONTEXT: usize = size_of::<Node>() + 16;
        self.tokens.len() + self.nodes.len() * CONTEXT + self.thoughts.len() * 4
    }

    fn class_of(&mut self, name: &'static str) -> Result<u8, UnfoldError> {
        if let Some(class) = self.classes.iter().position(|&class| class == name) {
            return Ok(class as u8);
        }
        let class = u8::try_from(self.classes.len()).map_err(|_| UnfoldError::Classes)?;
        self.classes.push(name);
        Ok(class)
    }
}

enum Visit {
    Solved(ContextId),
    New(ContextId),
}

fn hash(question: &[Token]) -> u64 {
    // A fixed seed: the index lives in memory only, and nothing depends on its order.
    FixedState::with_seed(0).hash_one(bytemuck::cast_slice::<Token, u8>(question))
}

impl fmt::Debug for ThoughtGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ThoughtGraph({} contexts, {} bytes)", self.len(), self.memory())
    }
}

/// Why a problem could not be unfolded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnfoldError {
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
    /// The contexts take more memory than allowed.
    #[error(
        "the problem does not fit in {} MiB: {contexts} contexts were made, and there are more",
        limit >> 20
    )]
    Memory {
        /// The limit in bytes.
        limit: usize,
        /// How many contexts there were.
        contexts: usize,
    },
    /// More than 256 kinds of problem in one graph.
    #[error("one graph holds at most 256 kinds of problem")]
    Classes,
}
