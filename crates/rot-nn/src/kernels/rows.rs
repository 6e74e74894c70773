//! Small changes to all rows: biases, activations, and what they mean for gradients.

use super::math::{add, sigmoid};
use super::vectorised;
use crate::Packed;

/// Sets every row of `y`, `[n, d]`, to `bias`, or to zero where there is none; a product is then added.
pub fn fill_rows(y: &mut [f32], bias: &[f32]) {
    if bias.is_empty() {
        y.fill(0.0);
    } else {
        y.chunks_exact_mut(bias.len()).for_each(|row| row.copy_from_slice(bias));
    }
}

/// Adds `bias` to every row of `y`; it may be empty.
pub fn add_to_rows(y: &mut [f32], bias: &[f32]) {
    if !bias.is_empty() {
        vectorised(
            #[inline(always)]
            || y.chunks_exact_mut(bias.len()).for_each(|row| add(row, bias)),
        );
    }
}

/// Copies those rows of `x`, `[tokens, d]`, whose tokens have a target to `y`, one after another.
pub fn gather_rows(y: &mut [f32], x: &[f32], d: usize, batch: &Packed) {
    for (y, t) in y.chunks_exact_mut(d).zip(batch.supervised()) {
        y.copy_from_slice(&x[t * d..][..d]);
    }
}

/// Puts rows back to where [`gather_rows`] took them from; the others become zero.
pub fn scatter_rows(x: &mut [f32], y: &[f32], d: usize, batch: &Packed) {
    x.fill(0.0);
    for (y, t) in y.chunks_exact(d).zip(batch.supervised()) {
        x[t * d..][..d].copy_from_slice(y);
    }
}

/// Adds all rows of `dy`, `[n, d]`, to `dbias`: the gradient of a bias. Nothing if it is empty.
pub fn sum_rows(dbias: &mut [f32], dy: &[f32]) {
    if !dbias.is_empty() {
        vectorised(
            #[inline(always)]
            || dy.chunks_exact(dbias.len()).for_each(|row| add(dbias, row)),
        );
    }
}

/// Replaces negative numbers by zero.
pub fn relu_forward(x: &mut [f32]) {
    vectorised(
        #[inline(always)]
        || x.iter_mut().for_each(|x| *x = x.max(0.0)),
    );
}

/// Clears the gradient wherever the result `y` of [`relu_forward`] is zero.
pub fn relu_backward(y: &[f32], dy: &mut [f32]) {
    vectorised(
        #[inline(always)]
        || {
            for (dy, &y) in dy.iter_mut().zip(y) {
                *dy = if y > 0.0 { *dy } else { 0.0 };
            }
        },
    );
}

/// `y = gate * sigmoid(gate) * up`, where each row of `x`, `[n, 2 d]`, is gate then up; `y` is `[n, d]`.
pub fn gate_forward(x: &[f32], d: usize, y: &mut [f32]) {
    vectorised(
        #[inline(always)]
        || {
            for (x, y) in x.chunks_exact(2 * d).zip(y.chunks_exact_mut(d)) {
                let (gate, up) = x.split_at(d);
                for ((y, &gate), &up) in y.iter_mut().zip(gate).zip(up) {
                    *y = gate * sigmoid(gate) * up;
                }
            }
        },
    );
}

/// The gradient of [`gate_forward`], written to `dx`.
pub fn gate_backward(x: &[f32], d: usize, dy: &[f32], dx: &mut [f32]) {
    vectorised(
        #[inline(always)]
        || {
            let rows =
                x.chunks_exact(2 * d).zip(dy.chunks_exact(d)).zip(dx.chunks_exact_mut(2 * d));
            for ((x, dy), dx) in rows {
                let (gate, up) = x.split_at(d);
                let (dgate, dup) = dx.split_at_mut(d);
                for i in 0..d {
                    let s = sigmoid(gate[i]);
                    dup[i] = dy[i] * gate[i] * s;
                    dgate[i] = dy[i] * up[i] * s * (1.0 + gate[i] * (1.0 - s));
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UNSUPERVISED;
    use crate::kernels::testing::{assert_close, assert_gradient, noise};

    #[test]
    fn biases_go_to_every_row_and_their_gradient_comes_from_every_row() {
        let (x, bias) = (noise(15, 1), noise(5, 2));
        let mut y = x.clone();
        add_to_rows(&mut y, &bias);
        let expected: Vec<f32> = (0..15).map(|i| x[i] + bias[i % 5]).collect();
        assert_close(&y, &expected, 1e-6);
        fill_rows(&mut y, &bias);
        assert_eq!(y, [bias.clone(), bias.clone(), bias.clone()].concat());
        fill_rows(&mut y, &[]);
        assert_eq!(y, [0.0; 15]);
        let mut dbias = bias.clone();
        sum_rows(&mut dbias, &x);
        let expected: Vec<f32> = (0..5).map(|i| bias[i] + x[i] + x[5 + i] + x[10 + i]).collect();
        assert_close(&dbias, &expected, 1e-6);
    }

    #[test]
    fn rows_with_a_target_are_gathered_and_put_back() {
        let mut batch = Packed::default();
        batch.push(&[0, 0, 0], &[UNSUPERVISED, 1, UNSUPERVISED]);
        batch.push(&[0], &[2]);
        let (x, mut y, mut back) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [9.0; 4], [9.0; 8]);
        gather_rows(&mut y, &x, 2, &batch);
        assert_eq!(y, [3.0, 4.0, 7.0, 8.0]);
        scatter_rows(&mut back, &y, 2, &batch);
        assert_eq!(back, [0.0, 0.0, 3.0, 4.0, 0.0, 0.0, 7.0, 8.0]);
    }

    #[test]
    fn relu_and_its_gradient() {
        let (mut y, mut dy) = (vec![-1.0, 0.0, 2.0], vec![5.0, 5.0, 5.0]);
        relu_forward(&mut y);
        relu_backward(&y, &mut dy);
        assert_eq!((y, dy), (vec![0.0, 0.0, 2.0], vec![0.0, 0.0, 5.0]));
    }

    #[test]
    fn the_gate_matches_the_slow_twin_and_its_gradient_finite_differences() {
        let (d, x, dy) = (3, noise(12, 1), noise(6, 2));
        let slow = |x: &[f32]| -> Vec<f64> {
            let row = |x: &[f32]| {
                let at = |i: usize| f64::from(x[i]);
                (0..d).map(|i| at(i) / (1.0 + (-at(i)).exp()) * at(d + i)).collect::<Vec<_>>()
            };
            x.chunks(2 * d).flat_map(row).collect()
        };
        let mut y = vec![0.0; 6];
        gate_forward(&x, d, &mut y);
        assert_close(&y, &slow(&x).iter().map(|&y| y as f32).collect::<Vec<_>>(), 1e-6);
        let mut dx = vec![0.0; 12];
        gate_backward(&x, d, &dy, &mut dx);
        let loss = |y: Vec<f64>| y.iter().zip(&dy).map(|(y, &dy)| y * f64::from(dy)).sum();
        assert_gradient(&x, &dx, |x| loss(slow(x)));
    }
}
