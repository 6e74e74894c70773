//! What it costs to solve a problem: with no cache, with every question solved once, in one context.

use dashu_int::UBig;
use dashu_int::ops::BitTest;

use crate::{ContextId, ThoughtGraph, UnfoldError};

/// The cost of one problem. What is not bounded by memory is exact at any size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Contexts when every occurrence of a question is solved again.
    pub naive_contexts: UBig,
    /// Tokens the model generates then: sub-questions, THINKs and answers.
    pub naive_tokens: UBig,
    /// Contexts when every question is solved once.
    pub unique_contexts: usize,
    /// Tokens the model generates then.
    pub unique_tokens: u64,
    /// The longest RoT context, in tokens.
    pub longest_context: usize,
    /// The one context of CoT, in tokens.
    pub cot_context: UBig,
}

/// The parts of the cost that a context brings along wherever it is asked.
#[derive(Clone, Default)]
struct Naive {
    contexts: UBig,
    tokens: UBig,
    cot: UBig,
}

/// Counts the costs of the problems in a graph.
pub struct CostCounter<'a> {
    graph: &'a ThoughtGraph,
    naive: Vec<Naive>,
    /// The last problem that reached each context.
    reached_by: Vec<u32>,
    problems: u32,
}

impl Naive {
    /// The bytes of its numbers: those of two words are kept in place, longer ones elsewhere.
    fn memory(&self) -> usize {
        let elsewhere = |number: &UBig| match number.bit_len() {
            bits if bits <= 2 * usize::BITS as usize => 0,
            bits => bits / 8,
        };
        let numbers = [&self.contexts, &self.tokens, &self.cot];
        size_of::<Naive>() + numbers.map(elsewhere).iter().sum::<usize>()
    }
}

impl<'a> CostCounter<'a> {
    /// Counts everything that does not depend on which problem is asked. The counts share the
    /// memory limit of the graph.
    pub fn new(graph: &'a ThoughtGraph) -> Result<CostCounter<'a>, UnfoldError> {
        let mut memory = graph.memory();
        let mut naive = vec![Naive::default(); graph.len()];
        for &id in graph.solved_order() {
            let own = graph.rot_lengths(id);
            let mut sum = Naive {
                contexts: UBig::ONE,
                tokens: own.generated.into(),
                cot: graph.question(id).len().into(),
            };
            for thought in graph.thoughts(id) {
                let below = &naive[thought.context.index()];
                sum.contexts += &below.contexts;
                sum.tokens += &below.tokens;
                sum.cot += &below.cot;
            }
            if !graph.is_tail(id) {
                sum.cot += graph.answer(id).len();
            }
            memory += sum.memory();
            if memory > graph.memory_limit() {
                return Err(graph.out_of_memory());
            }
            naive[id.index()] = sum;
        }
        Ok(CostCounter { graph, naive, reached_by: vec![0; graph.len()], problems: 0 })
    }

    /// The cost of one problem of the graph.
    pub fn costs(&mut self, root: ContextId) -> Costs {
        let naive = &self.naive[root.index()];
        let mut costs = Costs {
            naive_contexts: naive.contexts.clone(),
            naive_tokens: naive.tokens.clone(),
            cot_context: naive.cot.clone(),
            unique_contexts: 0,
            unique_tokens: 0,
            longest_context: 0,
        };
        self.problems += 1;
        self.reached_by[root.index()] = self.problems;
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            let own = self.graph.rot_lengths(id);
            costs.unique_contexts += 1;
            costs.unique_tokens += own.generated as u64;
            costs.longest_context = costs.longest_context.max(own.context);
            for thought in self.graph.thoughts(id) {
                let mark = &mut self.reached_by[thought.context.index()];
                if *mark != self.problems {
                    *mark = self.problems;
                    open.push(thought.context);
                }
            }
        }
        costs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_count_with_their_length() {
        let short = Naive { contexts: UBig::from(u128::MAX), ..Naive::default() };
        assert_eq!(short.memory(), size_of::<Naive>());
        let long = Naive { contexts: UBig::ONE << 8000, ..Naive::default() };
        assert_eq!(long.memory(), size_of::<Naive>() + 1000);
    }
}
