//! Random questions: the same seed gives the same questions everywhere.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::{Facts, Problem, Token};

/// The generator that problems are sampled with. Its streams are fixed by its specification.
pub type SampleRng = ChaCha8Rng;

/// The distribution of the numbers in a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sampling {
    /// As the paper says: the extended log-uniform distribution, about as many of each length.
    Paper,
    /// Uniform over the same range, so that nearly all numbers have full length.
    Uniform,
    /// As long as the paper's, of two different digits, strings of digits too: where digits repeat,
    /// only their places tell them apart.
    Repetitive,
}

impl Sampling {
    /// All distributions.
    pub const ALL: [Sampling; 3] = [Sampling::Paper, Sampling::Uniform, Sampling::Repetitive];

    /// The short name: `paper`, `uniform` or `repetitive`.
    pub fn name(self) -> &'static str {
        match self {
            Sampling::Paper => "paper",
            Sampling::Uniform => "uniform",
            Sampling::Repetitive => "repetitive",
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
    /// The list that belongs to a seed.
    pub fn new(
        problem: &'static dyn Problem,
        size: u32,
        sampling: Sampling,
        seed: u64,
    ) -> Result<Sampler, SizeError> {
        let Facts { name, unit, smallest, .. } = *problem.facts();
        if size < smallest {
            return Err(SizeError { problem: name, unit, smallest, size });
        }
        // Seed, size, name and sampling side by side: each list has streams of its own. Of a long
        // name the first 19 bytes count.
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..12].copy_from_slice(&size.to_le_bytes());
        for (place, byte) in key[12..31].iter_mut().zip(name.bytes()) {
            *place = byte;
        }
        key[31] = match sampling {
            Sampling::Paper => 0,
            Sampling::Uniform => 1,
            Sampling::Repetitive => 2,
        };
        Ok(Sampler { problem, size, sampling, key })
    }

    /// Writes the question at `index`, from `<GO>` to `=`, in place of what `question` held. Returns
    /// its random stream, for further draws that belong to it.
    pub fn write_question(&self, index: u64, question: &mut Vec<Token>) -> SampleRng {
        let mut rng = SampleRng::from_seed(self.key);
        rng.set_stream(index);
        question.clear();
        question.push(Token::GO);
        self.problem.sample(self.size, self.sampling, &mut rng, question);
        question.push(Token::EQUALS);
        rng
    }
}

/// A size that a problem does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{problem}' needs a size of at least {smallest} ({unit}), not {size}")]
pub struct SizeError {
    /// The problem's name.
    pub problem: &'static str,
    /// What its sizes count.
    pub unit: &'static str,
    /// The smallest there is.
    pub smallest: u32,
    /// What was asked for.
    pub size: u32,
}
