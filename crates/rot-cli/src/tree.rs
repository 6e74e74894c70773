//! Who asks whom, as an indented tree.

use rot_core::{ContextId, ThoughtGraph};

/// Deeper levels are numbered instead of drawn, so that a line stays a line.
const DRAWN_LEVELS: usize = 24;

/// A line of the tree.
pub(crate) struct Line<'a> {
    /// The branches to the left of the context.
    pub(crate) branches: &'a str,
    /// The branches to the left of what else belongs to the context.
    pub(crate) below: &'a str,
    pub(crate) context: ContextId,
    /// Whether the context above ends in this one.
    pub(crate) tail: bool,
    /// Whether the context was drawn before; what it asks is not drawn again.
    pub(crate) repeated: bool,
}

/// Walks the tree from the root, depth first; a context that is asked again is visited once more,
/// but not what lies below it.
pub(crate) fn walk<E>(
    graph: &ThoughtGraph,
    root: ContextId,
    mut visit: impl FnMut(&Line<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut seen = vec![false; graph.len()];
    seen[root.index()] = true;
    visit(&Line { branches: "", below: "", context: root, tail: false, repeated: false })?;
    // Each open context with the number of its thoughts that are drawn.
    let mut open = vec![(root, 0)];
    // For each open context but the root: whether more follows beside it.
    let mut beside: Vec<bool> = Vec::new();
    while let Some((context, drawn)) = open.last_mut() {
        let mut left = graph.thoughts(*context).skip(*drawn);
        let Some(thought) = left.next() else {
            open.pop();
            beside.pop();
            continue;
        };
        let more = left.next().is_some();
        *drawn += 1;
        let repeated = std::mem::replace(&mut seen[thought.context.index()], true);
        let start = indent(&beside);
        visit(&Line {
            branches: &format!("{start}{}", if more { "├─ " } else { "└─ " }),
            below: &format!("{start}{}", if more { "│  " } else { "   " }),
            context: thought.context,
            tail: thought.tail,
            repeated,
        })?;
        if !repeated {
            open.push((thought.context, 0));
            beside.push(more);
        }
    }
    Ok(())
}

fn indent(beside: &[bool]) -> String {
    if beside.len() > DRAWN_LEVELS {
        return format!("[level {}] ", beside.len() + 1);
    }
    beside.iter().map(|&more| if more { "│  " } else { "   " }).collect()
}
