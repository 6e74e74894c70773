//! One module a command.

pub(crate) mod check;
pub(crate) mod contexts;
pub(crate) mod sample;
pub(crate) mod solve;
pub(crate) mod stats;

use rot_core::{ContextId, ThoughtGraph, UnfoldError};
use rot_problems::Question;

/// Unfolds a question into an empty graph.
fn unfold(graph: &mut ThoughtGraph, question: &Question) -> anyhow::Result<ContextId> {
    graph.clear();
    graph.unfold(question.problem, &question.tokens).map_err(|error| match error {
        UnfoldError::Memory { .. } => anyhow::anyhow!("{error}; raise --max-memory"),
        error => error.into(),
    })
}
