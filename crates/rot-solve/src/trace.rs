//! What happens while questions are solved, one event after another: enough to draw it again.

use std::sync::Arc;

use rot_core::Token;

use crate::failure::Failure;

/// A question that was put to the solver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RootId(pub u64);

/// Who asks a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// Whoever put it to the solver.
    Root(RootId),
    /// A context, by its number.
    Context(u64),
}

/// Something that happened. Contexts are numbered as they are opened, over all roots.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// A context was opened.
    Open {
        /// The context.
        context: u64,
        /// Its question.
        question: &'a Arc<[Token]>,
        /// Who asks.
        by: Asker,
        /// Whether it takes the place of the context that asks.
        tail: bool,
        /// How many contexts are above it.
        depth: usize,
    },
    /// A question is asked whose answer was known, or which is being solved.
    Recall {
        /// The question.
        question: &'a Arc<[Token]>,
        /// Who asks.
        by: Asker,
        /// Whether the answer is also that of the context that asks.
        tail: bool,
        /// The context that is solving it, if the answer is not there yet.
        waits_for: Option<u64>,
        /// The answer, if it is.
        answer: Option<&'a Arc<[Token]>>,
    },
    /// A context said something, up to THINK or STOP.
    Say {
        /// The context.
        context: u64,
        /// The tokens.
        tokens: &'a [Token],
        /// How clear the least clear decision was.
        margin: f32,
    },
    /// A question is answered, in every place where it is waited for.
    Answer {
        /// The context that answered.
        context: u64,
        /// The answer, with its STOP.
        answer: &'a Arc<[Token]>,
    },
    /// A root has its answer.
    Solved {
        /// The root.
        root: RootId,
        /// The answer, with its STOP.
        answer: &'a Arc<[Token]>,
    },
    /// A root has no answer.
    Failed {
        /// The root.
        root: RootId,
        /// Why not.
        failure: &'a Failure,
    },
}
