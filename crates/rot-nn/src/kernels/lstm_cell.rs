//! A step of an LSTM's layer for some rows, one for each sequence: products and gates at once, so
//! that the gates are written once.
//!
//! With `n` rows of `units`: `gates [n, 4 units]` hold input, forget, candidate and output of all
//! units, in that order; cells and hidden states are `[n, units]`.

use super::math::{sigmoid, tanh};
use super::matmul::Matrix;
use super::panels::{Panels, each, load, pack, panel_columns, panels_len, rows, store};
use super::tile::{COLUMNS, Tile, add_panel, in_groups};
use super::{is_fused, vectorised};
use crate::Workspace;

/// The weights of a layer laid out for [`forward`]: for each sixteen units the panels of their four
/// gates, one after another.
#[derive(Clone, Debug)]
pub struct GatePanels {
    numbers: Vec<f32>,
    depth: usize,
    units: usize,
}

impl GatePanels {
    /// The panels of `weight [4 units, depth]`, in memory of the workspace.
    ///
    /// # Panics
    /// If the weight is not of whole gates.
    pub fn new(weight: &[f32], units: usize, work: &mut Workspace) -> GatePanels {
        let depth = weight.len() / (4 * units);
        assert_eq!(weight.len(), 4 * units * depth);
        let mut numbers = work.take(4 * panels_len(depth, units));
        let mut panels = numbers.chunks_exact_mut(depth * COLUMNS);
        for columns in panel_columns(units) {
            for (gate, panel) in weight.chunks_exact(units * depth).zip(&mut panels) {
                let of_gate = &gate[columns.start * depth..columns.end * depth];
                pack(panel, Matrix::new(of_gate, depth).t());
            }
        }
        GatePanels { numbers, depth, units }
    }

    /// Gives the memory back.
    pub fn give(self, work: &mut Workspace) {
        work.give(self.numbers);
    }
}

/// What [`forward`] reads.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// `[n, depth]`
    pub inputs: &'a [f32],
    /// `[4 units, depth]`
    pub weight: &'a GatePanels,
    /// `[kinds, 4 units]`: what is added to the products.
    pub table: &'a [f32],
    /// `[n, units]`
    pub previous: &'a [f32],
}

/// `i, f, o = sigmoid(x)`, `g = tanh(x)` with `x = inputs weight^T + table[kind(row)]`; `cells = f
/// previous + i g`; `hidden = o tanh(cells)`.
///
/// # Panics
/// If the shapes do not fit.
pub fn forward(
    from: Inputs<'_>,
    kind: impl Fn(usize) -> usize,
    gates: &mut [f32],
    cells: &mut [f32],
    hidden: &mut [f32],
) {
    let GatePanels { depth, units, .. } = *from.weight;
    let n = cells.len() / units;
    assert_eq!((gates.len(), hidden.len()), (4 * n * units, n * units));
    assert_eq!((from.inputs.len(), from.previous.len()), (n * depth, n * units));
    if is_fused() {
        vectorised(
            #[inline(always)]
            || forward_all::<true>(from, &kind, gates, cells, hidden),
        );
    } else {
        forward_all::<false>(from, &kind, gates, cells, hidden);
    }
}

#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "the same row of several tiles")]
fn forward_all<const FUSED: bool>(
    from: Inputs<'_>,
    kind: &impl Fn(usize) -> usize,
    gates: &mut [f32],
    cells: &mut [f32],
    hidden: &mut [f32],
) {
    let GatePanels { numbers, depth, units } = from.weight;
    let (depth, units) = (*depth, *units);
    let panels = numbers.chunks_exact(4 * depth * COLUMNS);
    for (columns, panels) in panel_columns(units).zip(panels) {
        in_groups!(0..cells.len() / units, [6, 3, 1], |row, R| {
            let inputs = rows::<R>(from.inputs, depth, row);
            let mut tiles: [Tile<R>; 4] = [[[0.0; COLUMNS]; R]; 4];
            for (gate, tile) in tiles.iter_mut().enumerate() {
                for (r, sums) in tile.iter_mut().enumerate() {
                    let start = kind(row + r) * 4 * units + gate * units;
                    *sums = load(&from.table[start + columns.start..start + columns.end]);
                }
                let panel = &panels[gate * depth * COLUMNS..][..depth * COLUMNS];
                add_panel::<FUSED, R>(tile, inputs, panel);
            }
            for r in 0..R {
                let at = (row + r) * units + columns.start..(row + r) * units + columns.end;
                let previous = load(&from.previous[at.clone()]);
                let i = each(|c| sigmoid(tiles[0][r][c]));
                let f = each(|c| sigmoid(tiles[1][r][c]));
                let g = each(|c| tanh(tiles[2][r][c]));
                let o = each(|c| sigmoid(tiles[3][r][c]));
                let cell = each(|c| f[c] * previous[c] + i[c] * g[c]);
                let shown = each(|c| o[c] * tanh(cell[c]));
                store(&mut cells[at.clone()], &cell);
                store(&mut hidden[at], &shown);
                for (gate, x) in [i, f, g, o].iter().enumerate() {
                    let start = ((row + r) * 4 + gate) * units;
                    store(&mut gates[start + columns.start..start + columns.end], x);
                }
            }
        });
    }
}

/// What [`backward`] reads.
#[derive(Clone, Copy, Debug)]
pub struct Gradients<'a> {
    /// `[n, outputs]`: the gradient of what the hidden states are projected to.
    pub d_out: &'a [f32],
    /// The projection, `[outputs, units]`.
    pub project: &'a Panels,
    /// `[n, units]`
    pub previous: &'a [f32],
    /// `[n, units]`
    pub cells: &'a [f32],
}

/// From the gradient `d_out project` of `hidden`, and from that of `cells`: that of the gates before
/// [`forward`], in place of the gates after it, and that of `previous`, in place of that of `cells`.
///
/// # Panics
/// If the shapes do not fit.
pub fn backward(from: Gradients<'_>, gates: &mut [f32], d_cells: &mut [f32]) {
    let (outputs, units) = from.project.shape();
    let n = from.cells.len() / units;
    assert_eq!((gates.len(), d_cells.len()), (4 * n * units, n * units));
    assert_eq!((from.d_out.len(), from.previous.len()), (n * outputs, n * units));
    if is_fused() {
        vectorised(
            #[inline(always)]
            || backward_all::<true>(from, gates, d_cells),
        );
    } else {
        backward_all::<false>(from, gates, d_cells);
    }
}

#[inline(always)]
fn backward_all<const FUSED: bool>(from: Gradients<'_>, gates: &mut [f32], d_cells: &mut [f32]) {
    let (outputs, units) = from.project.shape();
    for (columns, panel) in panel_columns(units).zip(from.project.each()) {
        in_groups!(0..d_cells.len() / units, [6, 3, 1], |row, R| {
            let mut d_hidden: Tile<R> = [[0.0; COLUMNS]; R];
            let d_out = rows::<R>(from.d_out, outputs, row);
            add_panel::<FUSED, R>(&mut d_hidden, d_out, panel);
            for (r, d_hidden) in d_hidden.iter().enumerate() {
                let at = (row + r) * units + columns.start..(row + r) * units + columns.end;
                let gate = |gate: usize| {
                    let start = ((row + r) * 4 + gate) * units;
                    start + columns.start..start + columns.end
                };
                let (i, f, g, o) = (
                    load(&gates[gate(0)]),
                    load(&gates[gate(1)]),
                    load(&gates[gate(2)]),
                    load(&gates[gate(3)]),
                );
                let previous = load(&from.previous[at.clone()]);
                // Cheaper to compute again than to keep and read.
                let cell = load(&from.cells[at.clone()]);
                let shown = each(|c| tanh(cell[c]));
                let d_cell = load(&d_cells[at.clone()]);
                let d_cell = each(|c| d_cell[c] + d_hidden[c] * o[c] * (1.0 - shown[c] * shown[c]));
                let d_gates = [
                    each(|c| d_cell[c] * g[c] * i[c] * (1.0 - i[c])),
                    each(|c| d_cell[c] * previous[c] * f[c] * (1.0 - f[c])),
                    each(|c| d_cell[c] * i[c] * (1.0 - g[c] * g[c])),
                    each(|c| d_hidden[c] * shown[c] * o[c] * (1.0 - o[c])),
                ];
                for (k, d_gate) in d_gates.iter().enumerate() {
                    store(&mut gates[gate(k)], d_gate);
                }
                store(&mut d_cells[at], &each(|c| d_cell[c] * f[c]));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{assert_close, assert_gradient, noise};

    /// What is added to the products in row `n` is row `n` of the table.
    struct Case {
        rows: usize,
        units: usize,
        depth: usize,
        inputs: Vec<f32>,
        weight: Vec<f32>,
        previous: Vec<f32>,
    }

    impl Case {
        fn new(rows: usize, units: usize, depth: usize) -> Case {
            let inputs = noise(rows * depth, 1);
            let (weight, previous) = (noise(4 * units * depth, 2), noise(rows * units, 3));
            Case { rows, units, depth, inputs, weight, previous }
        }

        /// Cells and hidden states from the definition.
        fn slow(&self, table: &[f32], previous: &[f32]) -> (Vec<f64>, Vec<f64>) {
            let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
            let gate = |n: usize, k: usize, u: usize| -> f64 {
                let weight = &self.weight[(k * self.units + u) * self.depth..][..self.depth];
                let inputs = &self.inputs[n * self.depth..][..self.depth];
                let product = |(&w, &x): (&f32, &f32)| f64::from(w) * f64::from(x);
                f64::from(table[(n * 4 + k) * self.units + u])
                    + weight.iter().zip(inputs).map(product).sum::<f64>()
            };
            let mut states = (vec![], vec![]);
            for n in 0..self.rows {
                for u in 0..self.units {
                    let kept = sigmoid(gate(n, 1, u)) * f64::from(previous[n * self.units + u]);
                    let cell = kept + sigmoid(gate(n, 0, u)) * gate(n, 2, u).tanh();
                    states.0.push(cell);
                    states.1.push(sigmoid(gate(n, 3, u)) * cell.tanh());
                }
            }
            states
        }
    }

    fn narrow(x: &[f64]) -> Vec<f32> {
        x.iter().map(|&x| x as f32).collect()
    }

    fn check(rows: usize, units: usize, depth: usize, fused: bool) {
        let (case, len, outputs) = (Case::new(rows, units, depth), rows * units, 3);
        let table = noise(4 * len, 4);
        let mut work = Workspace::default();
        let weight = GatePanels::new(&case.weight, units, &mut work);
        let from = Inputs {
            inputs: &case.inputs,
            weight: &weight,
            table: &table,
            previous: &case.previous,
        };
        let (mut gates, mut cells, mut hidden) = (noise(4 * len, 6), noise(len, 7), noise(len, 8));
        if fused {
            forward(from, |row| row, &mut gates, &mut cells, &mut hidden);
        } else {
            forward_all::<false>(from, &|row| row, &mut gates, &mut cells, &mut hidden);
        }
        let expected = case.slow(&table, &case.previous);
        assert_close(&cells, &narrow(&expected.0), 1e-6);
        assert_close(&hidden, &narrow(&expected.1), 1e-6);

        let (weights, d_out) = (noise(len, 9), noise(rows * outputs, 10));
        let projection = noise(outputs * units, 11);
        let loss = |table: &[f32], previous: &[f32]| -> f64 {
            let (cells, hidden) = case.slow(table, previous);
            let kept: f64 = cells.iter().zip(&weights).map(|(x, &w)| x * f64::from(w)).sum();
            let shown = hidden.iter().enumerate().map(|(at, x)| {
                let (n, u) = (at / units, at % units);
                let slope = |o: usize| {
                    f64::from(d_out[n * outputs + o]) * f64::from(projection[o * units + u])
                };
                x * (0..outputs).map(slope).sum::<f64>()
            });
            kept + shown.sum::<f64>()
        };
        let project = Panels::new(Matrix::new(&projection, units), &mut work);
        let from =
            Gradients { d_out: &d_out, project: &project, previous: &case.previous, cells: &cells };
        let mut d_cells = weights.clone();
        if fused {
            backward(from, &mut gates, &mut d_cells);
        } else {
            backward_all::<false>(from, &mut gates, &mut d_cells);
        }
        assert_gradient(&table, &gates, |table| loss(table, &case.previous));
        assert_gradient(&case.previous, &d_cells, |previous| loss(&table, previous));
    }

    #[test]
    fn forward_and_backward_match_the_slow_twin() {
        for (rows, units, depth) in
            [(0, 3, 2), (1, 1, 1), (1, 16, 4), (2, 5, 3), (3, 19, 2), (11, 17, 5)]
        {
            check(rows, units, depth, true);
            check(rows, units, depth, false);
        }
    }

    #[test]
    fn full_gates_keep_the_cell() {
        let (mut gates, mut cells, mut hidden) = ([0.0; 4], [0.0], [0.0]);
        let weight = GatePanels::new(&[0.0; 4], 1, &mut Workspace::default());
        let table = [-90.0, 90.0, 5.0, 90.0];
        let from = Inputs { inputs: &[1.0], weight: &weight, table: &table, previous: &[0.75] };
        forward(from, |_| 0, &mut gates, &mut cells, &mut hidden);
        assert_close(&cells, &[0.75], 1e-6);
        assert_close(&hidden, &[0.75f32.tanh()], 1e-6);
    }
}
