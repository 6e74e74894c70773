//! Random questions: the same seed gives the same questions everywhere.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::{Facts, Problem, Token};

/// The generator that problems are sampled with. Its streams are fixed by its specification.
pub type SampleRng = ChaCha8Rng;

/// The distribution of the numbers in a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sampling {
    /// As the paper says: the extended log-uniform distribution, about as many of each length.
    #[default]
    Paper,
    /// Uniform over the same range, so that nearly all numbers have full length.
    Uniform,
}

impl Sampling {
    /// All distributions.
    pub const ALL: [Sampling; 2] = [Sampling::Paper, Sampling::Uniform];

    /// The short name: `paper` or `uniform`.
    pub fn name(self) -> &'static str {
        match self {
            Sampling::Paper => "paper",
            Sampling::Uniform => "uniform",
        }
    }
}

/// An endless list of random questions of one problem and size.
///
/// The question at an index depends on nothing but the sampler and the index, so that threads can
/// share the work in any way and still get the same list.
#[derive(Clone)]
pub struct Sampler {
    problem: &'static dyn Problem,
    size: u32,
    sampling: Sampling,
    key: [u8; 32],
}

impl Sampler {
    /// The list that belongs to a seed. A size below the problem's smallest is an error.
    pub fn new(
        problem: &'static dyn Problem,
        size: u32,
        sampling: Sampling,
        seed: u64,
    ) -> Result<Sampler, String> {
        let Facts { name, unit, smallest, .. } = problem.facts();
        if size < *smallest {
            return Err(format!(
                "'{name}' needs a size of at least {smallest} ({unit}), not {size}"
            ));
        }
        // Seed, size and name side by side, so that no two lists share a stream.
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..12].copy_from_slice(&size.to_le_bytes());
        for (place, byte) in key[12..].iter_mut().zip(name.bytes()) {
            *place = byte;
        }
        Ok(Sampler { problem, size, sampling, key })
    }

    /// The problem that is sampled.
    pub fn problem(&self) -> &'static dyn Problem {
        self.problem
    }

    /// The random stream of the question at `index`, which has written the question to `question`,
    /// from `<GO>` to `=`. What is drawn from it next belongs to that question too.
    pub fn question(&self, index: u64, question: &mut Vec<Token>) -> SampleRng {
        let mut rng = SampleRng::from_seed(self.key);
        rng.set_stream(index);
        question.clear();
        question.push(Token::GO);
        self.problem.sample(self.size, self.sampling, &mut rng, question);
        question.push(Token::EQUALS);
        rng
    }
}
