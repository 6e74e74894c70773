//! How rare contexts are, by their shape: what is left of a context when digits are not told apart.
//!
//! Most random problems lead to the same few shapes. A carry into a new digit, say, makes a shape of
//! its own, which a model can meet too seldom to learn where its digits go. A question of two digits is a
//! fact to be learnt by heart; each is a shape, as some come up in one problem of many thousands.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;
use rot_core::{ContextId, ThoughtGraph};

/// The most digits of a fact.
const FACT: usize = 2;

/// How often each shape was seen.
#[derive(Default)]
pub(crate) struct Shapes {
    counts: HashMap<u64, u32, FixedState>,
}

impl Shapes {
    /// Counts all contexts of a graph.
    pub(crate) fn count(&mut self, graph: &ThoughtGraph) {
        for id in graph.contexts() {
            *self.counts.entry(shape(graph, id)).or_default() += 1;
        }
    }

    /// One over how often the shape of a context was seen.
    pub(crate) fn weight(&self, graph: &ThoughtGraph, id: ContextId) -> f64 {
        let count = self.counts.get(&shape(graph, id)).copied().unwrap_or(0);
        1.0 / f64::from(count.max(1))
    }
}

/// The tokens of the question with all digits alike, unless it is a fact, and the lengths of everything after it.
fn shape(graph: &ThoughtGraph, id: ContextId) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    let question = graph.question(id);
    let is_fact = question.iter().filter(|token| token.is_digit()).count() <= FACT;
    for token in question {
        let is_alike = token.is_digit() && !is_fact;
        hasher.write_u8(if is_alike { u8::MAX } else { token.index() as u8 });
    }
    for thought in graph.thoughts(id) {
        hasher.write_usize(graph.question(thought.context).len());
        hasher.write_usize(if thought.tail { 0 } else { graph.answer(thought.context).len() });
    }
    if !graph.is_tail(id) {
        hasher.write_usize(graph.answer(id).len());
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use rot_core::parse_tokens;

    use super::*;

    #[test]
    fn digits_do_not_matter_but_their_number_does() {
        let of = |text: &str| {
            let mut graph = ThoughtGraph::default();
            let root = graph.unfold(&rot_problems::Add, &parse_tokens(text).unwrap()).unwrap();
            let shape = shape(&graph, root);
            let mut shapes = Shapes::default();
            shapes.count(&graph);
            assert!(shapes.weight(&graph, root) <= 1.0);
            shape
        };
        assert_eq!(of("<GO>123+45="), of("<GO>678+21="));
        assert_ne!(of("<GO>123+45="), of("<GO>12+345="));
        assert_ne!(of("<GO>123+45="), of("<GO>989+45="), "a digit more in the answer");
        assert_ne!(of("<GO>123+45="), of("<GO>128+45="), "a carry");
        assert_ne!(of("<GO>1+2="), of("<GO>2+1="), "facts");
        assert_eq!(of("<GO>12+3="), of("<GO>23+1="));
    }
}
