//! The thought graph: every unique context of a set of problems, and who asks whom.
//!
//! A question is solved once, however many contexts ask it. The graph keeps questions, answers and
//! thoughts in flat arenas; the contexts that models see are written from it when they are wanted
//! ([`crate::Context`]).

mod unfold;

use std::fmt;

use hashbrown::HashTable;

pub use self::unfold::UnfoldError;
use self::unfold::{Frame, Work};
use crate::Token;
use crate::thoughts::Span;

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
    /// Where its thoughts begin, and how many there are.
    thoughts: (u32, u32),
    /// The place of the problem's name in `classes`.
    class: u32,
    tail: bool,
}

/// The unique contexts of a set of problems.
pub struct ThoughtGraph {
    tokens: Vec<Token>,
    nodes: Vec<Node>,
    thoughts: Vec<ContextId>,
    /// Every context after all the contexts it asks.
    solved: Vec<ContextId>,
    index: HashTable<ContextId>,
    classes: Vec<&'static str>,
    memory_limit: usize,
    work: Work,
}

/// The memory a graph may take unless told otherwise.
///
/// Enough to multiply two numbers of a thousand digits, which takes half of it.
pub const DEFAULT_MEMORY_LIMIT: usize = (1usize << 30).saturating_mul(8);

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

    /// The number of unique contexts.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no context.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The context with that index, if there are so many.
    pub fn context(&self, index: usize) -> Option<ContextId> {
        (index < self.len()).then_some(ContextId(index as u32))
    }

    /// All contexts, in depth-first first-visit order.
    pub fn contexts(&self) -> impl ExactSizeIterator<Item = ContextId> + use<> {
        (0..self.nodes.len() as u32).map(ContextId)
    }

    /// All contexts, each after those it asks.
    pub fn solved_order(&self) -> &[ContextId] {
        &self.solved
    }

    /// The context of a question, if it is one of these.
    pub fn find(&self, question: &[Token]) -> Option<ContextId> {
        let same = |&id: &ContextId| self.question(id) == question;
        self.index.find(unfold::hash(question), same).copied()
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
        let (start, count) = node.thoughts;
        let asked = &self.thoughts[start as usize..][..count as usize];
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

    pub(crate) fn out_of_memory(&self) -> UnfoldError {
        UnfoldError::Memory { limit: self.memory_limit, contexts: self.len() }
    }

    pub(crate) fn memory_limit(&self) -> usize {
        self.memory_limit
    }

    /// About how many bytes the graph takes, and the contexts that wait.
    pub(crate) fn memory(&self) -> usize {
        // A node, with its place in the index and in `solved`.
        const CONTEXT: usize = size_of::<Node>() + 16;
        const ASKED: usize = size_of::<ContextId>() + size_of::<Span>();
        self.tokens.len()
            + self.nodes.len() * CONTEXT
            + self.thoughts.len() * size_of::<ContextId>()
            + self.work.frames.len() * size_of::<Frame>()
            + self.work.asked.len() * ASKED
    }
}

impl fmt::Debug for ThoughtGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ThoughtGraph({} contexts, {} bytes)", self.len(), self.memory())
    }
}
