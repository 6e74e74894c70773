//! Products of a few rows with a matrix that many such products share.
//!
//! Written by hand because a general product lays both its operands out anew each time, which costs
//! more than it gives when there are only some dozen rows: a step of an LSTM. Here the shared matrix
//! is laid out once, in panels of sixteen columns. Every row of the result is computed as if it were
//! the only one, so it does not depend on the rows around it.

use std::ops::Range;

use super::matmul::Matrix;
use super::tile::{COLUMNS, Tile, add_product};
use super::{is_fused, vectorised};

/// Runs `$body` for all rows below `$count`, as many at a time as fill the registers and the last ones
/// in smaller groups: `$row` is the first of a group, `$R` their number, a constant.
macro_rules! by_rows {
    ($count:expr, |$row:ident, $R:ident| $body:block) => {{
        let count = $count;
        let mut $row = 0;
        by_rows!(@groups 6, count, $row, $R, $body);
        by_rows!(@groups 3, count, $row, $R, $body);
        by_rows!(@groups 1, count, $row, $R, $body);
    }};
    (@groups $n:literal, $count:ident, $row:ident, $R:ident, $body:block) => {
        while $count - $row >= $n {
            const $R: usize = $n;
            $body
            $row += $R;
        }
    };
}
pub(super) use by_rows;

/// How many numbers the panels of a `[depth, columns]` matrix take.
pub fn panels_len(depth: usize, columns: usize) -> usize {
    depth * columns.next_multiple_of(COLUMNS)
}

/// Lays a matrix out: panel by panel, each `[depth, 16]`, the last one filled up with zeros.
///
/// # Panics
/// If `panels` is not of [`panels_len`].
pub fn pack(panels: &mut [f32], matrix: Matrix<'_>) {
    let (depth, columns) = (matrix.rows(), matrix.columns());
    assert_eq!(panels.len(), panels_len(depth, columns));
    for (start, panel) in panel_columns(columns).zip(panels.chunks_exact_mut(depth * COLUMNS)) {
        for (k, row) in panel.chunks_exact_mut(COLUMNS).enumerate() {
            let (filled, rest) = row.split_at_mut(start.len());
            for (to, column) in filled.iter_mut().zip(start.clone()) {
                *to = matrix.at(k, column);
            }
            rest.fill(0.0);
        }
    }
}

/// `c = a b`: `a [n, depth]`, the panels of `b [depth, columns]`, `c [n, columns]`.
///
/// # Panics
/// If the shapes do not fit.
pub fn multiply(c: &mut [f32], a: &[f32], panels: &[f32], depth: usize, columns: usize) {
    assert_eq!(panels.len(), panels_len(depth, columns));
    assert_eq!(c.len() / columns, a.len() / depth, "as many rows");
    if is_fused() {
        vectorised(
            #[inline(always)]
            || multiply_all::<true>(c, a, panels, depth, columns),
        );
    } else {
        multiply_all::<false>(c, a, panels, depth, columns);
    }
}

#[inline(always)]
fn multiply_all<const FUSED: bool>(
    c: &mut [f32],
    a: &[f32],
    panels: &[f32],
    depth: usize,
    columns: usize,
) {
    for (columns_of, panel) in panel_columns(columns).zip(panels.chunks_exact(depth * COLUMNS)) {
        by_rows!(a.len() / depth, |row, R| {
            let mut tile: Tile<R> = [[0.0; COLUMNS]; R];
            add_product::<FUSED, R>(&mut tile, rows(a, depth, row), panel, COLUMNS);
            for (r, sums) in tile.iter().enumerate() {
                let start = (row + r) * columns;
                store(&mut c[start + columns_of.start..start + columns_of.end], sums);
            }
        });
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
    use crate::kernels::matmul::{Into, matmul};
    use crate::kernels::testing::{assert_close, noise};

    #[test]
    fn products_match_those_of_the_crate_and_rows_do_not_depend_on_each_other() {
        for (n, depth, columns) in [(1, 1, 1), (7, 24, 16), (13, 48, 24), (17, 5, 33), (0, 3, 4)] {
            let (a, b) = (noise(n * depth, 1), noise(depth * columns, 2));
            let b = Matrix::new(&b, columns);
            let mut panels = noise(panels_len(depth, columns), 3);
            pack(&mut panels, b);
            let (mut c, mut expected) = (noise(n * columns, 4), noise(n * columns, 5));
            multiply(&mut c, &a, &panels, depth, columns);
            matmul(&mut expected, Into::Fresh, Matrix::new(&a, depth), b);
            assert_close(&c, &expected, 1e-5);
            for (row, among) in a.chunks(depth).zip(c.chunks(columns)) {
                let mut alone = noise(columns, 6);
                multiply(&mut alone, row, &panels, depth, columns);
                assert_eq!(alone, among);
            }
            let mut plain = noise(n * columns, 7);
            multiply_all::<false>(&mut plain, &a, &panels, depth, columns);
            assert_close(&plain, &expected, 1e-5);
        }
    }
}
