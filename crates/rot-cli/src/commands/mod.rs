//! One module a command.

pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod contexts;
pub(crate) mod eval;
pub(crate) mod export;
mod measure;
pub(crate) mod parity;
pub(crate) mod remote;
pub(crate) mod replay;
pub(crate) mod reproduce;
pub(crate) mod sample;
pub(crate) mod ship;
pub(crate) mod solve;
pub(crate) mod stats;
pub(crate) mod train;
pub(crate) mod verify;

use rot_core::{ContextId, CostCounter, Costs, ThoughtGraph, UnfoldError};
use rot_problems::Question;

/// Unfolds a question into an empty graph.
fn unfold(graph: &mut ThoughtGraph, question: &Question) -> anyhow::Result<ContextId> {
    graph.clear();
    graph.unfold(question.problem, &question.tokens).map_err(with_remedy)
}

fn costs(graph: &ThoughtGraph, root: ContextId) -> anyhow::Result<Costs> {
    Ok(CostCounter::new(graph).map_err(with_remedy)?.costs(root))
}

fn with_remedy(error: UnfoldError) -> anyhow::Error {
    match error {
        UnfoldError::Memory { .. } => anyhow::anyhow!("{error}; raise --max-memory"),
        error => error.into(),
    }
}
