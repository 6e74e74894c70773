//! What training and evaluation need of a model.

use crate::{Decoder, Layout, Packed, UNSUPERVISED};

/// A model without its parameters: what it computes from them.
pub trait Network: Send + Sync {
    /// Its parameters.
    fn layout(&self) -> &Layout;

    /// The number of tokens it knows.
    fn vocabulary(&self) -> usize;

    /// The most tokens in a sequence.
    fn limit(&self) -> usize;

    /// Multiplications and additions of one forward pass. Learning takes three times as many.
    fn flops(&self, batch: &Packed) -> u64;

    /// This network with its parameters, ready to read.
    fn decoder(&self, params: &[f32]) -> Box<dyn Decoder>;

    /// Adds to `grads` the gradient of `scale` times the summed loss of all supervised tokens.
    fn learn(
        &self,
        params: &[f32],
        batch: &Packed,
        scale: f32,
        grads: &mut [f32],
        work: &mut Workspace,
    ) -> Score;
}

/// How well a model did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    /// The summed loss of all supervised tokens.
    pub loss: f64,
    /// How many tokens were supervised.
    pub supervised: usize,
    /// How many of them were the likeliest.
    pub right: usize,
    /// How many sequences there were.
    pub sequences: usize,
    /// How many of them had all supervised tokens right.
    pub right_sequences: usize,
}

impl std::ops::AddAssign for Score {
    fn add_assign(&mut self, other: Score) {
        self.loss += other.loss;
        self.supervised += other.supervised;
        self.right += other.right;
        self.sequences += other.sequences;
        self.right_sequences += other.right_sequences;
    }
}

impl Score {
    /// Counts what was right, from the likeliest id after each token.
    pub fn count(&mut self, batch: &Packed, likeliest: &[u8]) {
        let right = |i: usize| batch.targets()[i] == likeliest[i];
        for sequence in batch.sequences() {
            let supervised = sequence.filter(|&i| batch.targets()[i] != UNSUPERVISED);
            let (all, wrong) =
                (supervised.clone().count(), supervised.filter(|&i| !right(i)).count());
            self.supervised += all;
            self.right += all - wrong;
            self.sequences += 1;
            self.right_sequences += usize::from(wrong == 0);
        }
    }
}

/// Memory that a worker uses again for every batch.
///
/// Buffers are taken and given back; what they hold is left from before.
#[derive(Debug, Default)]
pub struct Workspace {
    free: Vec<Vec<f32>>,
}

impl Workspace {
    /// A buffer of that length with anything in it.
    pub fn take(&mut self, len: usize) -> Vec<f32> {
        // The shortest that is long enough, else the longest: what is longer need not be filled.
        let fits = |buffer: &Vec<f32>| (buffer.len() < len, buffer.len().abs_diff(len));
        let best = (0..self.free.len()).min_by_key(|&i| fits(&self.free[i]));
        let mut buffer = best.map(|i| self.free.swap_remove(i)).unwrap_or_default();
        buffer.resize(len, 0.0);
        buffer
    }

    /// A buffer of zeros.
    pub fn take_zeroed(&mut self, len: usize) -> Vec<f32> {
        let mut buffer = self.take(len);
        buffer.fill(0.0);
        buffer
    }

    /// Gives a buffer back.
    pub fn give(&mut self, buffer: Vec<f32>) {
        if buffer.capacity() > 0 {
            self.free.push(buffer);
        }
    }
}
