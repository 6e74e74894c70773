//! How long contexts get and how much there is to generate: the paper's two appendix figures.

use dashu_int::ops::BitTest;
use rand::RngExt;
use rayon::prelude::*;
use rot_core::{
    CostCounter, DEFAULT_MEMORY_LIMIT, Problem, Sampler, Sampling, SizeError, ThoughtGraph, Token,
    UBig, UnfoldError,
};

/// What one random problem brings to the distributions.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The length of one of its unique contexts, drawn at random as for training.
    pub rot_context: usize,
    /// The longest of its contexts.
    pub longest_context: usize,
    /// The length of its CoT context.
    pub cot_context: UBig,
    /// The number of its unique contexts.
    pub unique_contexts: usize,
    /// Tokens to generate when every question is solved once.
    pub unique_tokens: u64,
    /// Tokens to generate when every occurrence is solved again.
    pub naive_tokens: UBig,
}

/// Draws problems of one kind and size, on all cores. `done` is called after each.
pub fn sample(
    problem: &'static dyn Problem,
    size: u32,
    seed: u64,
    count: u64,
    done: impl Fn() + Sync,
) -> Result<Vec<Sample>, StatsError> {
    let sampler = Sampler::new(problem, size, Sampling::Paper, seed)?;
    let memory_limit = DEFAULT_MEMORY_LIMIT / rayon::current_num_threads();
    let scratch = || (ThoughtGraph::with_memory_limit(memory_limit), Vec::new());
    let one = |(graph, question): &mut (ThoughtGraph, Vec<Token>), index: u64| {
        let mut rng = sampler.write_question(index, question);
        graph.clear();
        let root = graph.unfold(problem, question)?;
        let drawn = rng.random_range(0..graph.len() as u64) as usize;
        let drawn = graph.context(drawn).expect("an index below the number of contexts");
        let costs = CostCounter::new(graph)?.costs(root);
        done();
        Ok(Sample {
            rot_context: graph.rot_lengths(drawn).context,
            longest_context: costs.longest_context,
            cot_context: costs.cot_context,
            unique_contexts: costs.unique_contexts,
            unique_tokens: costs.unique_tokens,
            naive_tokens: costs.naive_tokens,
        })
    };
    (0..count).into_par_iter().map_init(scratch, one).collect()
}

/// Why there are no statistics.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatsError {
    /// The size cannot be sampled.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// A problem was too large.
    #[error(transparent)]
    Unfold(#[from] UnfoldError),
}

/// The decimal logarithm of a number of any length; of zero, zero.
pub fn log10(number: &UBig) -> f64 {
    // The first 64 bits and the number of those after them.
    let after = number.bit_len().saturating_sub(64);
    let first = u64::try_from(number >> after).unwrap_or(u64::MAX).max(1);
    (first as f64).log10() + after as f64 * std::f64::consts::LOG10_2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_have_no_upper_end() {
        assert_eq!(log10(&UBig::ZERO), 0.0);
        assert_eq!(log10(&UBig::from(1000u32)), 3.0);
        for exponent in [17, 18, 19, 20, 400, 5000] {
            let log = log10(&UBig::from(10u8).pow(exponent));
            assert!((log - exponent as f64).abs() < 1e-9, "{exponent}: {log}");
        }
    }

    #[test]
    fn the_samples_are_the_same_on_any_number_of_threads() {
        let draw = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let samples = pool.install(|| sample(&crate::Mul, 6, 7, 50, || ())).unwrap();
            format!("{samples:?}")
        };
        assert_eq!(draw(1), draw(3));
    }
}
