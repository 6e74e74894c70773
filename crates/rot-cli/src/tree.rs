//! Who asks whom, as an indented tree.

use rot_core::{ContextId, ThoughtGraph};

/// Deeper levels are numbered instead of drawn, so that a line stays a line.
const DRAWN_LEVELS: usize = 24;

/// A line of the tree.
pub(crate) struct Line<'a, N> {
    /// The branches to the left of the context.
    pub(crate) branches: &'a str,
    /// The branches to the left of what else belongs to the context.
    pub(crate) below: &'a str,
    pub(crate) context: N,
    /// Whether the context above ends in this one.
    pub(crate) tail: bool,
    /// Whether the context was drawn before; what it asks is not drawn again.
    pub(crate) repeated: bool,
}

/// Walks the tree from the root, depth first. `asks` gives what a context asks, and whether it ends in
/// it; `again` says, once for each line, whether the context was drawn before: it is visited once more,
/// but not what lies below it.
pub(crate) fn walk<N: Copy, E>(
    root: N,
    asks: impl Fn(N) -> Vec<(N, bool)>,
    mut again: impl FnMut(N) -> bool,
    mut visit: impl FnMut(&Line<'_, N>) -> Result<(), E>,
) -> Result<(), E> {
    let repeated = again(root);
    visit(&Line { branches: "", below: "", context: root, tail: false, repeated })?;
    // What each open context asks and was not drawn yet, the next one last.
    let list = |context: N| asks(context).into_iter().rev().collect::<Vec<_>>();
    let mut open = vec![list(root)];
    // For each open context but the root: whether more follows beside it.
    let mut beside: Vec<bool> = Vec::new();
    while let Some(left) = open.last_mut() {
        let Some((context, tail)) = left.pop() else {
            open.pop();
            beside.pop();
            continue;
        };
        let more = !left.is_empty();
        let repeated = again(context);
        let start = indent(&beside);
        visit(&Line {
            branches: &format!("{start}{}", if more { "├─ " } else { "└─ " }),
            below: &format!("{start}{}", if more { "│  " } else { "   " }),
            context,
            tail,
            repeated,
        })?;
        if !repeated {
            open.push(list(context));
            beside.push(more);
        }
    }
    Ok(())
}

/// [`walk`] through the ground truth.
pub(crate) fn walk_graph<E>(
    graph: &ThoughtGraph,
    root: ContextId,
    visit: impl FnMut(&Line<'_, ContextId>) -> Result<(), E>,
) -> Result<(), E> {
    let mut seen = vec![false; graph.len()];
    let asks = |id| graph.thoughts(id).map(|thought| (thought.context, thought.tail)).collect();
    walk(root, asks, |id| std::mem::replace(&mut seen[id.index()], true), visit)
}

fn indent(beside: &[bool]) -> String {
    if beside.len() > DRAWN_LEVELS {
        return format!("[level {}] ", beside.len() + 1);
    }
    beside.iter().map(|&more| if more { "│  " } else { "   " }).collect()
}
