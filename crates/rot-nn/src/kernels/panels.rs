//! Products of a few rows with a matrix that many such products share.
//!
//! Written by hand because a general product lays both its operands out anew each time, which costs
//! more than it gives when there are only some dozen rows: a step of an LSTM. Here the shared matrix
//! is laid out once, in panels of sixteen columns. Every row of the result is computed as if it were
//! the only one, so it does not depend on the rows around it.

use std::ops::Range;

use super::matmul::{Into, Matrix};
use super::tile::{COLUMNS, Tile, add_block, in_groups};
use super::{is_fused, is_wide, vectorised};
use crate::Workspace;

/// A matrix laid out for such products: panel by panel, each `[depth, 16]`, the last one filled up
/// with zeros.
#[derive(Clone, Debug)]
pub struct Panels {
    numbers: Vec<f32>,
    depth: usize,
    columns: usize,
}

impl Panels {
    /// The panels of a matrix, in memory of the workspace.
    pub fn new(matrix: Matrix<'_>, work: &mut Workspace) -> Panels {
        let (depth, columns) = (matrix.rows(), matrix.columns());
        let mut numbers = work.take(panels_len(depth, columns));
        pack(&mut numbers, matrix);
        Panels { numbers, depth, columns }
    }

    /// Gives the memory back.
    pub fn give(self, work: &mut Workspace) {
        work.give(self.numbers);
    }

    /// `c = bias + a b` or `c = c + bias + a b`, in this order: `a [n, depth]`, `c [n, columns]`, and a
    /// bias for all rows, which may be empty.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn multiply(&self, c: &mut [f32], into: Into, bias: &[f32], a: &[f32]) {
        let n = a.len() / self.depth;
        assert_eq!((a.len(), c.len()), (n * self.depth, n * self.columns));
        assert!(bias.is_empty() || bias.len() == self.columns, "a bias for each column");
        if is_wide() {
            vectorised(
                #[inline(always)]
                || self.multiply_all::<true, 2>(c, into, bias, a),
            );
        } else if is_fused() {
            vectorised(
                #[inline(always)]
                || self.multiply_all::<true, 1>(c, into, bias, a),
            );
        } else {
            self.multiply_all::<false, 1>(c, into, bias, a);
        }
    }

    /// `P` panels at a time, as many as there are registers for.
    #[inline(always)]
    fn multiply_all<const FUSED: bool, const P: usize>(
        &self,
        c: &mut [f32],
        into: Into,
        bias: &[f32],
        a: &[f32],
    ) {
        let panels = self.columns.div_ceil(COLUMNS);
        let together = panels - panels % P;
        for first in (0..together).step_by(P) {
            self.multiply_some::<FUSED, P>(first, c, into, bias, a);
        }
        for first in together..panels {
            self.multiply_some::<FUSED, 1>(first, c, into, bias, a);
        }
    }

    /// The columns of `P` panels of the product.
    #[inline(always)]
    fn multiply_some<const FUSED: bool, const P: usize>(
        &self,
        first: usize,
        c: &mut [f32],
        into: Into,
        bias: &[f32],
        a: &[f32],
    ) {
        let Panels { depth, columns, .. } = *self;
        let (mut filled, mut panels, mut biases) =
            ([const { 0..0 }; P], [&[] as &[f32]; P], [[0.0; COLUMNS]; P]);
        for p in 0..P {
            let start = (first + p) * COLUMNS;
            filled[p] = start..(start + COLUMNS).min(columns);
            panels[p] = &self.numbers[start * depth..][..COLUMNS * depth];
            biases[p] = load(bias.get(filled[p].clone()).unwrap_or_default());
        }
        in_groups!(0..a.len() / depth, [6, 3, 1], |row, R| {
            let mut tiles: [Tile<R>; P] = [[[0.0; COLUMNS]; R]; P];
            for p in 0..P {
                for (r, sums) in tiles[p].iter_mut().enumerate() {
                    *sums = biases[p];
                    if into == Into::Sum {
                        let start = (row + r) * columns;
                        let before = load(&c[start + filled[p].start..start + filled[p].end]);
                        for (sum, before) in sums.iter_mut().zip(before) {
                            *sum += before;
                        }
                    }
                }
            }
            add_block::<FUSED, R, P>(&mut tiles, rows(a, depth, row), panels);
            for p in 0..P {
                for (r, sums) in tiles[p].iter().enumerate() {
                    let start = (row + r) * columns;
                    store(&mut c[start + filled[p].start..start + filled[p].end], sums);
                }
            }
        });
    }

    /// The rows and columns of the matrix.
    pub(super) fn shape(&self) -> (usize, usize) {
        (self.depth, self.columns)
    }

    /// The panels, in the order of their columns.
    pub(super) fn each(&self) -> impl Iterator<Item = &[f32]> {
        self.numbers.chunks_exact(self.depth * COLUMNS)
    }
}

/// How many numbers the panels of a `[depth, columns]` matrix take.
pub(super) fn panels_len(depth: usize, columns: usize) -> usize {
    depth * columns.next_multiple_of(COLUMNS)
}

/// Lays a matrix out in panels.
pub(super) fn pack(panels: &mut [f32], matrix: Matrix<'_>) {
    let (depth, columns) = (matrix.rows(), matrix.columns());
    for (filled, panel) in panel_columns(columns).zip(panels.chunks_exact_mut(depth * COLUMNS)) {
        for (k, row) in panel.chunks_exact_mut(COLUMNS).enumerate() {
            let (numbers, rest) = row.split_at_mut(filled.len());
            for (to, column) in numbers.iter_mut().zip(filled.clone()) {
                *to = matrix.at(k, column);
            }
            rest.fill(0.0);
        }
    }
}

/// The columns of each panel.
pub(super) fn panel_columns(columns: usize) -> impl Iterator<Item = Range<usize>> {
    (0..columns).step_by(COLUMNS).map(move |start| start..(start + COLUMNS).min(columns))
}

/// Rows `row..row + R` of `a [n, depth]`.
#[inline(always)]
pub(super) fn rows<const R: usize>(a: &[f32], depth: usize, row: usize) -> [&[f32]; R] {
    let mut rows: [&[f32]; R] = [&[]; R];
    for (r, to) in rows.iter_mut().enumerate() {
        *to = &a[(row + r) * depth..][..depth];
    }
    rows
}

/// A row of a tile, from as many numbers as there are.
#[inline(always)]
pub(super) fn load(from: &[f32]) -> [f32; COLUMNS] {
    match from.first_chunk() {
        Some(whole) => *whole,
        None => {
            let mut row = [0.0; COLUMNS];
            row.iter_mut().zip(from).for_each(|(to, x)| *to = *x);
            row
        }
    }
}

/// A row of a tile, number by number. (`std::array::from_fn` is not always inlined, and then not
/// compiled for the vectors of the kernel around it.)
#[inline(always)]
pub(super) fn each(f: impl Fn(usize) -> f32) -> [f32; COLUMNS] {
    let mut row = [0.0; COLUMNS];
    for (column, x) in row.iter_mut().enumerate() {
        *x = f(column);
    }
    row
}

/// As much of a row of a tile as fits.
#[inline(always)]
pub(super) fn store(to: &mut [f32], row: &[f32; COLUMNS]) {
    match to.first_chunk_mut() {
        Some(whole) => *whole = *row,
        None => to.iter_mut().zip(row).for_each(|(to, x)| *to = *x),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::matmul::matmul;
    use crate::kernels::rows::add_to_rows;
    use crate::kernels::testing::{assert_close, noise};

    #[test]
    fn products_match_those_of_the_crate_and_rows_do_not_depend_on_each_other() {
        let mut work = Workspace::default();
        for (n, depth, columns) in [(1, 1, 1), (7, 24, 16), (13, 48, 24), (17, 5, 33), (0, 3, 4)] {
            let (a, b) = (noise(n * depth, 1), noise(depth * columns, 2));
            let b = Matrix::new(&b, columns);
            let panels = Panels::new(b, &mut work);
            let with = noise(columns, 4);
            let biases: [&[f32]; 2] = [&[], &with];
            let kinds = [Into::Fresh, Into::Sum].map(|into| biases.map(|bias| (into, bias)));
            for (into, bias) in kinds.into_iter().flatten() {
                let before = noise(n * columns, 3);
                let (mut c, mut expected, mut plain) =
                    (before.clone(), before.clone(), before.clone());
                panels.multiply(&mut c, into, bias, &a);
                matmul(&mut expected, into, Matrix::new(&a, depth), b);
                add_to_rows(&mut expected, bias);
                assert_close(&c, &expected, 1e-5);
                for (row, (among, before)) in
                    a.chunks(depth).zip(c.chunks(columns).zip(before.chunks(columns)))
                {
                    let mut alone = before.to_vec();
                    panels.multiply(&mut alone, into, bias, row);
                    assert_eq!(alone, among);
                }
                panels.multiply_all::<false, 1>(&mut plain, into, bias, &a);
                assert_close(&plain, &expected, 1e-5);
                // However many panels are taken together, the bits are the same.
                if is_fused() {
                    plain.copy_from_slice(&before);
                    panels.multiply_all::<true, 1>(&mut plain, into, bias, &a);
                    assert_eq!(plain, c);
                    plain.copy_from_slice(&before);
                    panels.multiply_all::<true, 2>(&mut plain, into, bias, &a);
                    assert_eq!(plain, c);
                }
            }
            panels.give(&mut work);
        }
    }
}
