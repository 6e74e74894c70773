//! Normalisation of rows: LayerNorm, and RMSNorm, which leaves the mean where it is.

use serde::{Deserialize, Serialize};

use super::math::sum;
use super::vectorised;

/// What is added to the variance, so that no row is divided by zero.
pub const EPSILON: f32 = 1e-5;

/// Which normalisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Norm {
    /// To mean 0 and variance 1, then gain and bias.
    Layer,
    /// To mean square 1, then gain.
    Rms,
}

/// `y = norm(x) * gain + bias`, row by row: `x`, `y` are `[n, d]`, `gain` is `[d]`, `bias` is `[d]` or
/// empty. Mean and inverse deviation of each row go to `stats`, `[n, 2]`.
pub fn norm_forward(
    norm: Norm,
    x: &[f32],
    gain: &[f32],
    bias: &[f32],
    y: &mut [f32],
    stats: &mut [f32],
) {
    let d = gain.len();
    vectorised(
        #[inline(always)]
        || {
            let rows =
                x.chunks_exact(d).zip(y.chunks_exact_mut(d)).zip(stats.as_chunks_mut::<2>().0);
            for ((x, y), stats) in rows {
                let mean = match norm {
                    Norm::Layer => sum(d, |i| x[i]) / d as f32,
                    Norm::Rms => 0.0,
                };
                let variance = sum(d, |i| (x[i] - mean) * (x[i] - mean)) / d as f32;
                let scale = 1.0 / (variance + EPSILON).sqrt();
                *stats = [mean, scale];
                for ((y, &x), &gain) in y.iter_mut().zip(x).zip(gain) {
                    *y = (x - mean) * scale * gain;
                }
                for (y, &bias) in y.iter_mut().zip(bias) {
                    *y += bias;
                }
            }
        },
    );
}

/// Adds the gradients of [`norm_forward`] to `dx`, `dgain` and, unless it is empty, `dbias`.
#[allow(clippy::too_many_arguments)]
pub fn norm_backward(
    norm: Norm,
    x: &[f32],
    gain: &[f32],
    stats: &[f32],
    dy: &[f32],
    dx: &mut [f32],
    dgain: &mut [f32],
    dbias: &mut [f32],
) {
    let d = gain.len();
    vectorised(
        #[inline(always)]
        || {
            let rows = x.chunks_exact(d).zip(dy.chunks_exact(d)).zip(dx.chunks_exact_mut(d));
            for (((x, dy), dx), &[mean, scale]) in rows.zip(stats.as_chunks::<2>().0) {
                for ((dgain, &dy), &x) in dgain.iter_mut().zip(dy).zip(x) {
                    *dgain += dy * (x - mean) * scale;
                }
                for (dbias, &dy) in dbias.iter_mut().zip(dy) {
                    *dbias += dy;
                }
                let along = sum(d, |i| dy[i] * gain[i] * (x[i] - mean)) * scale / d as f32;
                let shift = match norm {
                    Norm::Layer => sum(d, |i| dy[i] * gain[i]) / d as f32,
                    Norm::Rms => 0.0,
                };
                for (((dx, &dy), &x), &gain) in dx.iter_mut().zip(dy).zip(x).zip(gain) {
                    *dx += scale * (dy * gain - shift - (x - mean) * scale * along);
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{assert_close, assert_gradient, noise};

    fn slow(norm: Norm, x: &[f32], gain: &[f32], bias: &[f32]) -> Vec<f64> {
        let d = gain.len();
        let row = |x: &[f32]| {
            let x: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
            let mean = if norm == Norm::Layer { x.iter().sum::<f64>() / d as f64 } else { 0.0 };
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / d as f64;
            let scaled = x.into_iter().map(move |x| (x - mean) / (variance + 1e-5).sqrt());
            let gained = scaled.zip(gain).map(|(x, &gain)| x * f64::from(gain));
            let bias = bias.iter().chain(std::iter::repeat(&0.0)).map(|&bias| f64::from(bias));
            gained.zip(bias).map(|(x, bias)| x + bias).collect::<Vec<_>>()
        };
        x.chunks(d).flat_map(row).collect()
    }

    #[test]
    fn both_norms_match_the_slow_twin_and_their_gradients_finite_differences() {
        for (norm, d, n) in [(Norm::Layer, 24, 3), (Norm::Rms, 24, 3), (Norm::Layer, 7, 1)] {
            let (x, gain, dy) = (noise(n * d, 1), noise(d, 2), noise(n * d, 3));
            let bias = if norm == Norm::Layer { noise(d, 4) } else { Vec::new() };
            let (mut y, mut stats) = (vec![0.0; n * d], vec![0.0; n * 2]);
            norm_forward(norm, &x, &gain, &bias, &mut y, &mut stats);
            let expected: Vec<f32> =
                slow(norm, &x, &gain, &bias).iter().map(|&y| y as f32).collect();
            assert_close(&y, &expected, 1e-5);

            let before = noise(n * d, 5);
            let (mut dx, mut dgain, mut dbias) =
                (before.clone(), vec![0.0; d], vec![0.0; bias.len()]);
            norm_backward(norm, &x, &gain, &stats, &dy, &mut dx, &mut dgain, &mut dbias);
            for (dx, before) in dx.iter_mut().zip(&before) {
                *dx -= before;
            }
            let loss =
                |y: Vec<f64>| y.iter().zip(&dy).map(|(y, &dy)| y * f64::from(dy)).sum::<f64>();
            assert_gradient(&x, &dx, |x| loss(slow(norm, x, &gain, &bias)));
            assert_gradient(&gain, &dgain, |gain| loss(slow(norm, &x, gain, &bias)));
            if !bias.is_empty() {
                assert_gradient(&bias, &dbias, |bias| loss(slow(norm, &x, &gain, bias)));
            }
        }
    }
}
