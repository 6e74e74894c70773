//! A short causal convolution, channel by channel, within each sequence.

use std::ops::Range;

use super::vectorised;

/// `y[t] = x[t] + sum over k of taps[k] * x[t - k]`, as far back as the sequence goes. `x`, `y` are
/// `[n, d]`, `taps` is `[k, d]`.
pub fn convolution_forward(
    x: &[f32],
    d: usize,
    taps: &[f32],
    sequences: &(impl Iterator<Item = Range<usize>> + Clone),
    y: &mut [f32],
) {
    for sequence in sequences.clone() {
        let rows = sequence.start * d..sequence.end * d;
        convolution_resumed(&x[rows.clone()], d, taps, &[], &mut y[rows]);
    }
}

/// [`convolution_forward`] of one sequence after the rows `before`, `[m, d]`: all there are, or one
/// less than there are taps.
pub fn convolution_resumed(x: &[f32], d: usize, taps: &[f32], before: &[f32], y: &mut [f32]) {
    y.copy_from_slice(x);
    vectorised(
        #[inline(always)]
        || {
            let earlier = before.len() / d;
            for (t, y) in y.chunks_exact_mut(d).enumerate() {
                for (k, tap) in taps.chunks_exact(d).enumerate().take(earlier + t + 1) {
                    let x = match t.checked_sub(k) {
                        Some(row) => &x[row * d..][..d],
                        None => &before[(earlier + t - k) * d..][..d],
                    };
                    for ((y, &tap), &x) in y.iter_mut().zip(tap).zip(x) {
                        *y += tap * x;
                    }
                }
            }
        },
    );
}

/// The gradient of [`convolution_forward`]: written to `dx`, added to `dtaps`.
pub fn convolution_backward(
    x: &[f32],
    d: usize,
    taps: &[f32],
    sequences: &(impl Iterator<Item = Range<usize>> + Clone),
    dy: &[f32],
    dx: &mut [f32],
    dtaps: &mut [f32],
) {
    dx.copy_from_slice(dy);
    vectorised(
        #[inline(always)]
        || {
            for sequence in sequences.clone() {
                for t in sequence.clone() {
                    let dy = &dy[t * d..][..d];
                    let all = taps.chunks_exact(d).zip(dtaps.chunks_exact_mut(d)).enumerate();
                    for (k, (tap, dtap)) in all.take(t - sequence.start + 1) {
                        let (x, dx) = (&x[(t - k) * d..][..d], &mut dx[(t - k) * d..][..d]);
                        for i in 0..d {
                            dx[i] += tap[i] * dy[i];
                            dtap[i] += x[i] * dy[i];
                        }
                    }
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{assert_close, assert_gradient, noise};

    fn slow(x: &[f32], d: usize, taps: &[f32], sequences: &[Range<usize>]) -> Vec<f64> {
        let mut y: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
        for sequence in sequences {
            for (t, k, i) in sequence
                .clone()
                .flat_map(|t| (0..taps.len() / d).flat_map(move |k| (0..d).map(move |i| (t, k, i))))
            {
                if t >= sequence.start + k {
                    y[t * d + i] += f64::from(taps[k * d + i]) * f64::from(x[(t - k) * d + i]);
                }
            }
        }
        y
    }

    #[test]
    fn matches_the_slow_twin_and_its_gradient_finite_differences() {
        let (d, sequences) = (5, [0..1, 1..7, 7..8, 8..11]);
        let (x, taps, dy) = (noise(11 * d, 1), noise(4 * d, 2), noise(11 * d, 3));
        let mut y = vec![0.0; 11 * d];
        convolution_forward(&x, d, &taps, &sequences.iter().cloned(), &mut y);
        let expected: Vec<f32> = slow(&x, d, &taps, &sequences).iter().map(|&y| y as f32).collect();
        assert_close(&y, &expected, 1e-6);
        let (mut dx, mut dtaps) = (vec![0.0; 11 * d], vec![0.0; 4 * d]);
        convolution_backward(&x, d, &taps, &sequences.iter().cloned(), &dy, &mut dx, &mut dtaps);
        let loss = |y: Vec<f64>| y.iter().zip(&dy).map(|(y, &dy)| y * f64::from(dy)).sum::<f64>();
        assert_gradient(&x, &dx, |x| loss(slow(x, d, &taps, &sequences)));
        assert_gradient(&taps, &dtaps, |taps| loss(slow(&x, d, taps, &sequences)));
    }
}
