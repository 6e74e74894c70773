//! What an LSTM cell does between its matrix products.
//!
//! With `n` rows of `h` units: `gates [n, 4 h]` hold input, forget, candidate and output of all
//! units, in that order; everything else is `[n, h]`.

use super::math::{sigmoid, tanh};
use super::vectorised;

/// `i, f, o = sigmoid(gates)`, `g = tanh(gates)`, in place; `cells = f previous + i g`;
/// `hidden = o tanh(cells)`.
///
/// # Panics
/// If the shapes do not fit.
pub fn forward(
    gates: &mut [f32],
    previous: &[f32],
    cells: &mut [f32],
    hidden: &mut [f32],
    units: usize,
) {
    assert_eq!(gates.len(), 4 * cells.len());
    assert_eq!((previous.len(), hidden.len()), (cells.len(), cells.len()));
    vectorised(
        #[inline(always)]
        || {
            let rows = gates.chunks_exact_mut(4 * units).zip(previous.chunks_exact(units));
            let out = cells.chunks_exact_mut(units).zip(hidden.chunks_exact_mut(units));
            for ((gates, previous), (cells, hidden)) in rows.zip(out) {
                let [i, f, g, o] = split(gates);
                // One loop for each gate: one for all of them is too much for the compiler.
                map(i, sigmoid);
                map(f, sigmoid);
                map(g, tanh);
                map(o, sigmoid);
                for ((((cell, previous), i), f), g) in
                    cells.iter_mut().zip(previous).zip(i).zip(f).zip(g)
                {
                    *cell = *f * previous + *i * *g;
                }
                for ((hidden, cell), o) in hidden.iter_mut().zip(cells).zip(o) {
                    *hidden = *o * tanh(*cell);
                }
            }
        },
    );
}

/// From the gradient of `hidden` and of `cells`, that of the gates before [`forward`], in place of
/// the gates after it, and that of `previous`, in place of that of `cells`.
///
/// # Panics
/// If the shapes do not fit.
pub fn backward(
    gates: &mut [f32],
    previous: &[f32],
    cells: &[f32],
    d_hidden: &[f32],
    d_cells: &mut [f32],
    units: usize,
) {
    assert_eq!(gates.len(), 4 * cells.len());
    assert_eq!((previous.len(), d_hidden.len()), (cells.len(), cells.len()));
    assert_eq!(d_cells.len(), cells.len());
    vectorised(
        #[inline(always)]
        || {
            let rows = gates.chunks_exact_mut(4 * units).zip(previous.chunks_exact(units));
            let states = cells.chunks_exact(units).zip(d_hidden.chunks_exact(units));
            let rows = rows.zip(states).zip(d_cells.chunks_exact_mut(units));
            for (((gates, previous), (cells, d_hidden)), d_cells) in rows {
                let [i, f, g, o] = split(gates);
                let states = d_cells.iter_mut().zip(d_hidden).zip(cells).zip(o);
                for (((d_cell, d_hidden), cell), o) in states {
                    // Cheaper to compute again than to keep and read.
                    let shown = tanh(*cell);
                    *d_cell += d_hidden * *o * (1.0 - shown * shown);
                    *o = d_hidden * shown * *o * (1.0 - *o);
                }
                for ((d_cell, i), g) in d_cells.iter().zip(i).zip(g) {
                    (*i, *g) = (d_cell * *g * *i * (1.0 - *i), d_cell * *i * (1.0 - *g * *g));
                }
                for ((d_cell, previous), f) in d_cells.iter_mut().zip(previous).zip(f) {
                    (*d_cell, *f) = (*d_cell * *f, *d_cell * previous * *f * (1.0 - *f));
                }
            }
        },
    );
}

/// `x = f(x)` for every element.
#[inline(always)]
fn map(x: &mut [f32], f: impl Fn(f32) -> f32) {
    for x in x {
        *x = f(*x);
    }
}

/// A row of gates in its four parts.
#[inline(always)]
fn split(gates: &mut [f32]) -> [&mut [f32]; 4] {
    let (first, second) = gates.split_at_mut(gates.len() / 2);
    let ((i, f), (g, o)) =
        (first.split_at_mut(first.len() / 2), second.split_at_mut(second.len() / 2));
    [i, f, g, o]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{assert_close, assert_gradient, noise};

    /// Cells and hidden states, one after the other, from the definition.
    fn slow(gates: &[f32], previous: &[f32], units: usize) -> (Vec<f64>, Vec<f64>) {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let gate = |n: usize, k: usize, u: usize| f64::from(gates[(n * 4 + k) * units + u]);
        let mut states = (vec![], vec![]);
        for n in 0..previous.len() / units {
            for u in 0..units {
                let kept = sigmoid(gate(n, 1, u)) * f64::from(previous[n * units + u]);
                let cell = kept + sigmoid(gate(n, 0, u)) * gate(n, 2, u).tanh();
                states.0.push(cell);
                states.1.push(sigmoid(gate(n, 3, u)) * cell.tanh());
            }
        }
        states
    }

    fn narrow(x: &[f64]) -> Vec<f32> {
        x.iter().map(|&x| x as f32).collect()
    }

    #[test]
    fn forward_and_backward_match_the_slow_twin() {
        for (rows, units) in [(0, 3), (1, 1), (1, 16), (2, 5), (3, 19)] {
            let len = rows * units;
            let before: Vec<f32> = noise(4 * len, 1).iter().map(|x| 3.0 * x).collect();
            let previous = noise(len, 2);
            let (mut gates, mut cells, mut hidden) = (before.clone(), noise(len, 3), noise(len, 4));
            forward(&mut gates, &previous, &mut cells, &mut hidden, units);
            let expected = slow(&before, &previous, units);
            assert_close(&cells, &narrow(&expected.0), 1e-6);
            assert_close(&hidden, &narrow(&expected.1), 1e-6);

            let (weights, d_hidden) = (noise(len, 5), noise(len, 6));
            let loss = |gates: &[f32], previous: &[f32]| -> f64 {
                let dot = |x: &[f64], w: &[f32]| -> f64 {
                    x.iter().zip(w).map(|(x, &w)| x * f64::from(w)).sum()
                };
                let (cells, hidden) = slow(gates, previous, units);
                dot(&cells, &weights) + dot(&hidden, &d_hidden)
            };
            let mut d_cells = weights.clone();
            backward(&mut gates, &previous, &cells, &d_hidden, &mut d_cells, units);
            assert_gradient(&before, &gates, |gates| loss(gates, &previous));
            assert_gradient(&previous, &d_cells, |previous| loss(&before, previous));
        }
    }

    #[test]
    fn full_gates_keep_the_cell() {
        let (mut gates, mut cells, mut hidden) = ([-90.0, 90.0, 5.0, 90.0], [0.0], [0.0]);
        forward(&mut gates, &[0.75], &mut cells, &mut hidden, 1);
        assert_close(&cells, &[0.75], 1e-6);
        assert_close(&hidden, &[0.75f32.tanh()], 1e-6);
    }
}
