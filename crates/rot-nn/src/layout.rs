//! All parameters of a model in one allocation, with names for its parts.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// How a tensor starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initial {
    /// All elements the same.
    Constant(f32),
    /// Uniform between minus and plus the bound.
    Uniform(f32),
    /// Normal with that standard deviation.
    Normal(f32),
    /// Biases of an LSTM's four gates, the second of which lets units forget so slowly that they remember for up to
    /// so many tokens, some for a few only; the others are 0.
    Memory(usize),
}

/// A named part of the parameters.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Its name in weight files.
    pub name: String,
    /// Its shape, row-major.
    pub shape: Vec<usize>,
    /// Where it lies among all parameters.
    pub range: Range<usize>,
    /// How it starts.
    pub initial: Initial,
    /// How many matrices between hidden states it holds, one above the other; 0 if it is something
    /// else.
    pub matrices: usize,
}

/// The tensors of a model, one after another.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    tensors: Vec<Tensor>,
}

impl Layout {
    /// Adds a tensor and says where it lies.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        shape: &[usize],
        initial: Initial,
    ) -> Range<usize> {
        let start = self.len();
        let range = start..start + shape.iter().product::<usize>();
        let (name, shape) = (name.into(), shape.to_vec());
        self.tensors.push(Tensor { name, shape, range: range.clone(), initial, matrices: 0 });
        range
    }

    /// Adds matrices between hidden states, one above the other, and says where they lie.
    pub fn add_matrices(
        &mut self,
        name: impl Into<String>,
        shape: &[usize],
        initial: Initial,
        matrices: usize,
    ) -> Range<usize> {
        let range = self.add(name, shape, initial);
        if let Some(tensor) = self.tensors.last_mut() {
            tensor.matrices = matrices;
        }
        range
    }

    /// The number of parameters.
    pub fn len(&self) -> usize {
        self.tensors.last().map_or(0, |tensor| tensor.range.end)
    }

    /// Whether there is no parameter.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tensors, in order.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// The parameters a model starts with, the same on every machine.
    pub fn initial(&self, seed: u64) -> Vec<f32> {
        let mut params = vec![0.0; self.len()];
        for (stream, tensor) in self.tensors.iter().enumerate() {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(stream as u64);
            // In (0, 1): the middle of one of 2^32 equal steps.
            let mut unit = || (f64::from(rng.next_u32()) + 0.5) / 4_294_967_296.0;
            let part = &mut params[tensor.range.clone()];
            match tensor.initial {
                Initial::Constant(value) => part.fill(value),
                Initial::Uniform(bound) => {
                    part.fill_with(|| ((2.0 * unit() - 1.0) * f64::from(bound)) as f32);
                }
                Initial::Normal(deviation) => part.fill_with(|| {
                    // Box and Muller, in software so that all machines agree to the last bit.
                    let radius = libm::sqrt(-2.0 * libm::log(unit()));
                    let angle = std::f64::consts::TAU * unit();
                    (radius * libm::cos(angle) * f64::from(deviation)) as f32
                }),
                Initial::Memory(tokens) => {
                    let units = part.len() / 4;
                    part[units..2 * units].fill_with(|| {
                        let remembered = 1.0 + unit() * (tokens as f64 - 1.0).max(0.0);
                        libm::log(remembered) as f32
                    });
                }
            }
        }
        params
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_start_as_said() {
        let mut layout = Layout::default();
        let ones = layout.add("ones", &[3], Initial::Constant(1.0));
        let uniform = layout.add("uniform", &[100, 100], Initial::Uniform(0.5));
        let normal = layout.add_matrices("normal", &[100, 100], Initial::Normal(2.0), 1);
        assert_eq!((ones.clone(), normal.end), (0..3, layout.len()));
        let params = layout.initial(7);
        assert_eq!(params, layout.initial(7));
        assert_ne!(params, layout.initial(8));
        assert_eq!(params[ones], [1.0; 3]);
        let spread = |part: &[f32]| {
            let mean = part.iter().sum::<f32>() / part.len() as f32;
            (part.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / part.len() as f32).sqrt()
        };
        assert!(params[uniform.clone()].iter().all(|x| x.abs() < 0.5));
        assert!((spread(&params[uniform]) - 0.5 / 3f32.sqrt()).abs() < 0.01);
        assert!((spread(&params[normal]) - 2.0).abs() < 0.06);

        let mut layout = Layout::default();
        layout.add("gates", &[400], Initial::Memory(50));
        let params = layout.initial(7);
        let (forget, most) = (&params[100..200], 50f32.ln());
        assert!(forget.iter().all(|&bias| (0.0..most).contains(&bias)));
        assert!(forget.iter().copied().fold(0.0, f32::max) > 0.9 * most);
        assert!(params[..100].iter().chain(&params[200..]).all(|&bias| bias == 0.0));
    }
}
