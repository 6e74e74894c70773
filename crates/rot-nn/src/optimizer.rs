//! Optimisers: Adam as PyTorch has it, and Muon for the matrices between hidden states.
//!
//! Both are bit-identical for any number of threads: what is added up is added up in fixed blocks.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::Layout;
use crate::kernels::math::{add, sum};
use crate::kernels::matmul::{Into, Matrix, matmul};
use crate::kernels::vectorised;

/// Parameters that a thread takes at a time.
const BLOCK: usize = 1 << 14;

/// The settings of an optimiser. The default is the paper's: PyTorch's Adam at 0.001.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizerConfig {
    /// The learning rate of Adam at its highest.
    pub rate: f32,
    /// How slowly the mean of gradients changes.
    pub beta1: f32,
    /// How slowly the mean of their squares changes.
    pub beta2: f32,
    /// Added to the root of the mean square.
    pub epsilon: f32,
    /// How much of a weight is lost at a rate of 1, apart from gradients; 0 for none.
    pub weight_decay: f32,
    /// The largest norm of all gradients together; 0 for any.
    pub clip: f32,
    /// The learning rate of Muon on the matrices between hidden states; 0 leaves them to Adam.
    pub muon_rate: f32,
    /// How slowly Muon's mean of gradients changes.
    pub muon_momentum: f32,
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        OptimizerConfig {
            rate: 1e-3,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.0,
            clip: 0.0,
            muon_rate: 0.0,
            muon_momentum: 0.95,
        }
    }
}

/// An optimiser and what it remembers.
#[derive(Clone, Debug)]
pub struct Optimizer {
    config: OptimizerConfig,
    /// How many steps it has made.
    pub steps: u64,
    /// The mean of the gradients.
    pub mean: Vec<f32>,
    /// The mean of their squares.
    pub square: Vec<f32>,
}

/// Adds up gradients in order, the result in the first. Returns its norm.
///
/// # Panics
/// If they differ in length.
pub fn sum_gradients(gradients: &mut [Vec<f32>]) -> f64 {
    let Some((total, others)) = gradients.split_first_mut() else { return 0.0 };
    let blocks = total.par_chunks_mut(BLOCK).enumerate().map(|(block, total)| {
        let start = block * BLOCK;
        vectorised(
            #[inline(always)]
            || {
                for other in others.iter() {
                    add(total, &other[start..start + total.len()]);
                }
                f64::from(sum(total.len(), |i| total[i] * total[i]))
            },
        )
    });
    blocks.collect::<Vec<_>>().into_iter().sum::<f64>().sqrt()
}

impl Optimizer {
    /// An optimiser that has made no step.
    pub fn new(config: &OptimizerConfig, layout: &Layout) -> Optimizer {
        let zeros = vec![0.0; layout.len()];
        Optimizer { config: config.clone(), steps: 0, mean: zeros.clone(), square: zeros }
    }

    /// Moves the parameters; `factor` is the share of the learning rates that the schedule leaves,
    /// `norm` that of all gradients together.
    pub fn step(
        &mut self,
        layout: &Layout,
        params: &mut [f32],
        grads: &mut [f32],
        norm: f64,
        factor: f64,
    ) {
        self.steps += 1;
        let clip = f64::from(self.config.clip);
        if clip > 0.0 && norm > clip {
            let scale = (clip / norm) as f32;
            grads
                .par_chunks_mut(BLOCK)
                .for_each(|grads| grads.iter_mut().for_each(|g| *g *= scale));
        }
        // Each tensor goes to one of the two, cut into blocks for Adam.
        let (mut params, mut grads) = (params, &*grads);
        let (mut mean, mut square) = (&mut self.mean[..], &mut self.square[..]);
        let mut work = Vec::new();
        for tensor in layout.tensors() {
            let mut rest = tensor.range.len();
            let matrices = if self.config.muon_rate > 0.0 { tensor.matrices } else { 0 };
            let (block, columns) = match rest.checked_div(matrices) {
                Some(matrix) => (matrix, tensor.shape.last().copied().unwrap_or(1)),
                None => (BLOCK, 0),
            };
            while rest > 0 {
                let len = block.min(rest);
                rest -= len;
                let part = Part {
                    params: take_front(&mut params, len),
                    grads: grads.split_off(..len).unwrap_or_default(),
                    mean: take_front(&mut mean, len),
                    square: take_front(&mut square, len),
                };
                work.push((part, columns));
            }
        }
        let (config, steps) = (&self.config, self.steps);
        work.into_par_iter().for_each(|(part, columns)| match columns {
            0 => part.adam(config, steps, factor),
            columns => part.muon(config, factor, columns),
        });
    }
}

fn take_front<'a>(slice: &mut &'a mut [f32], len: usize) -> &'a mut [f32] {
    slice.split_off_mut(..len).unwrap_or_default()
}

/// A part of the parameters, with what belongs to it.
struct Part<'a> {
    params: &'a mut [f32],
    grads: &'a [f32],
    mean: &'a mut [f32],
    square: &'a mut [f32],
}

impl Part<'_> {
    fn adam(self, config: &OptimizerConfig, steps: u64, factor: f64) {
        let OptimizerConfig { beta1, beta2, epsilon, .. } = *config;
        let steps = steps.min(1 << 30) as i32;
        let rate = f64::from(config.rate) * factor;
        let step = (rate / (1.0 - f64::from(beta1).powi(steps))) as f32;
        let unbias = (1.0 / (1.0 - f64::from(beta2).powi(steps)).sqrt()) as f32;
        let keep = (1.0 - rate * f64::from(config.weight_decay)) as f32;
        let Part { params, grads, mean, square } = self;
        vectorised(
            #[inline(always)]
            || {
                let state = mean.iter_mut().zip(square.iter_mut());
                for ((p, &g), (m, v)) in params.iter_mut().zip(grads).zip(state) {
                    *m = beta1 * *m + (1.0 - beta1) * g;
                    *v = beta2 * *v + (1.0 - beta2) * g * g;
                    *p = *p * keep - step * *m / (v.sqrt() * unbias + epsilon);
                }
            },
        );
    }

    /// One matrix: its mean gradient with all singular values brought near one.
    fn muon(self, config: &OptimizerConfig, factor: f64, columns: usize) {
        let Part { params, grads, mean, .. } = self;
        let momentum = config.muon_momentum;
        let mut update = Vec::with_capacity(grads.len());
        for (m, &g) in mean.iter_mut().zip(grads) {
            *m = momentum * *m + (1.0 - momentum) * g;
            update.push((1.0 - momentum) * g + momentum * *m);
        }
        orthogonalise(&mut update, columns);
        let rows = params.len() / columns;
        let rate = f64::from(config.muon_rate) * factor;
        let keep = (1.0 - rate * f64::from(config.weight_decay)) as f32;
        let step = (rate * (rows as f64 / columns as f64).max(1.0).sqrt()) as f32;
        for (p, u) in params.iter_mut().zip(&update) {
            *p = *p * keep - step * u;
        }
    }
}

/// Brings the singular values of a matrix near one, by five steps of a Newton-Schulz iteration.
fn orthogonalise(x: &mut [f32], columns: usize) {
    const ITERATIONS: usize = 5;
    const COEFFICIENTS: [f32; 3] = [3.4445, -4.775, 2.0315];
    let norm = sum(x.len(), |i| x[i] * x[i]).sqrt();
    let scale = 1.0 / (norm + 1e-7);
    x.iter_mut().for_each(|x| *x *= scale);
    let rows = x.len() / columns;
    // The smaller of x x^T and x^T x.
    let wide = rows <= columns;
    let side = rows.min(columns);
    let (mut square, mut poly, mut next) =
        (vec![0.0; side * side], vec![0.0; side * side], vec![0.0; x.len()]);
    let [a, b, c] = COEFFICIENTS;
    for _ in 0..ITERATIONS {
        let m = Matrix::new(x, columns);
        if wide {
            matmul(&mut square, Into::Fresh, m, m.t());
        } else {
            matmul(&mut square, Into::Fresh, m.t(), m);
        }
        let s = Matrix::new(&square, side);
        matmul(&mut poly, Into::Fresh, s, s);
        for (p, s) in poly.iter_mut().zip(&square) {
            *p = b * s + c * *p;
        }
        let p = Matrix::new(&poly, side);
        if wide {
            matmul(&mut next, Into::Fresh, p, m);
        } else {
            matmul(&mut next, Into::Fresh, m, p);
        }
        for (x, n) in x.iter_mut().zip(&next) {
            *x = a * *x + n;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Initial;
    use crate::kernels::testing::{assert_close, noise};

    fn layout() -> Layout {
        let mut layout = Layout::default();
        layout.add("bias", &[BLOCK + 7], Initial::Constant(0.0));
        layout.add_matrices("matrix", &[24, 8], Initial::Normal(1.0), 3);
        layout
    }

    #[test]
    fn adam_is_the_textbook_s() {
        let (layout, config) = (layout(), OptimizerConfig::default());
        let mut optimizer = Optimizer::new(&config, &layout);
        let mut params = noise(layout.len(), 1);
        let mut expected: Vec<f64> = params.iter().map(|&p| f64::from(p)).collect();
        let (mut m, mut v) = (vec![0f64; layout.len()], vec![0f64; layout.len()]);
        for step in 1..=5 {
            let mut grads = noise(layout.len(), 10 + step as u64);
            for i in 0..layout.len() {
                let g = f64::from(grads[i]);
                m[i] = 0.9 * m[i] + 0.1 * g;
                v[i] = 0.999 * v[i] + 0.001 * g * g;
                let (mean, square) =
                    (m[i] / (1.0 - 0.9f64.powi(step)), v[i] / (1.0 - 0.999f64.powi(step)));
                expected[i] -= 0.5e-3 * mean / (square.sqrt() + 1e-8);
            }
            optimizer.step(&layout, &mut params, &mut grads, 1.0, 0.5);
        }
        assert_close(&params, &expected.iter().map(|&p| p as f32).collect::<Vec<_>>(), 1e-6);
    }

    #[test]
    fn muon_turns_every_stacked_matrix_near_an_orthogonal_one() {
        let layout = layout();
        let config = OptimizerConfig { muon_rate: 1.0, ..OptimizerConfig::default() };
        let mut optimizer = Optimizer::new(&config, &layout);
        let mut params = vec![0.0; layout.len()];
        optimizer.step(&layout, &mut params, &mut noise(layout.len(), 3), 1.0, 1.0);
        for matrix in params[layout.tensors()[1].range.clone()].chunks(64) {
            let m = Matrix::new(matrix, 8);
            let mut gram = vec![0.0; 64];
            matmul(&mut gram, Into::Fresh, m, m.t());
            for i in 0..8 {
                assert!((0.3..1.7).contains(&gram[i * 9]), "row {i} has square {}", gram[i * 9]);
            }
            let off: f32 =
                (0..64).filter(|i| i % 9 != 0).map(|i| gram[i].abs()).fold(0.0, f32::max);
            assert!(off < 0.5, "{off}");
        }
    }

    #[test]
    fn gradients_are_summed_and_clipped() {
        let layout = layout();
        let mut grads: Vec<Vec<f32>> = (0..3).map(|seed| noise(layout.len(), seed)).collect();
        let expected: Vec<f32> =
            (0..layout.len()).map(|i| grads[0][i] + grads[1][i] + grads[2][i]).collect();
        let norm = sum_gradients(&mut grads);
        assert_close(&grads[0], &expected, 1e-6);
        let exact = expected.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
        assert!((norm / exact - 1.0).abs() < 1e-5);
        let config = OptimizerConfig { clip: 1.0, ..OptimizerConfig::default() };
        let mut total = grads.swap_remove(0);
        Optimizer::new(&config, &layout).step(
            &layout,
            &mut vec![0.0; layout.len()],
            &mut total,
            norm,
            1.0,
        );
        let after = total.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
        assert!((after - 1.0).abs() < 1e-5);
    }
}
