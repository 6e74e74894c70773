//! Matrix products, from the single-precision part of the `gemm` crate, which chooses AVX-512, AVX2
//! or neither at run time.
//!
//! One thread each: work is split over sequences, not within products.
#![allow(unsafe_code)]

use std::cell::RefCell;

/// A matrix in a slice, as it lies or transposed.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    data: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// Row-major, without gaps.
    ///
    /// # Panics
    /// If the slice does not hold whole rows.
    pub fn new(data: &'a [f32], columns: usize) -> Matrix<'a> {
        assert_eq!(data.len() % columns, 0, "whole rows of {columns}");
        let rows = data.len() / columns;
        Matrix { data, rows, columns, row_stride: columns, column_stride: 1 }
    }

    /// Rows and columns exchanged.
    pub fn t(self) -> Matrix<'a> {
        Matrix {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }

    /// The number of its rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of its columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// An element.
    #[inline(always)]
    pub fn at(&self, row: usize, column: usize) -> f32 {
        self.data[row * self.row_stride + column * self.column_stride]
    }

    /// So many of its rows, from one on.
    fn some_rows(self, first: usize, rows: usize) -> Matrix<'a> {
        assert!(first + rows <= self.rows);
        // Rows without columns begin nowhere.
        let start = (first * self.row_stride).min(self.data.len());
        Matrix { data: &self.data[start..], rows, ..self }
    }

    /// Whether all elements lie in the slice.
    fn fits(&self) -> bool {
        self.rows == 0
            || self.columns == 0
            || (self.rows - 1) * self.row_stride + (self.columns - 1) * self.column_stride
                < self.data.len()
    }
}

/// What becomes of what the result held before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Into {
    /// It is replaced.
    Fresh,
    /// The product is added to it.
    Sum,
}

/// Rows of a result that are this many bytes apart, or a multiple, fall into so few sets of the cache
/// that writing them can take longer than computing them: 19 GFLOP/s instead of 172 for 704 x 128 x
/// 1024 on a Zen 5.
const CROWDED: usize = 1024;

/// How many such rows are computed elsewhere at a time, and how much further apart they are there.
const ROWS: usize = 128;
const APART: usize = 16;

thread_local! {
    static ELSEWHERE: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// `c = a b` or `c += a b`, with `c` row-major.
///
/// # Panics
/// If the shapes do not fit.
pub fn matmul(c: &mut [f32], into: Into, a: Matrix<'_>, b: Matrix<'_>) {
    assert_eq!(a.columns, b.rows, "inner dimensions");
    let columns = b.columns;
    assert_eq!(c.len(), a.rows * columns, "the result is {} x {columns}", a.rows);
    if c.is_empty() {
        return;
    }
    if !(columns * size_of::<f32>()).is_multiple_of(CROWDED) {
        return product(c, columns, into, a, b);
    }
    ELSEWHERE.with_borrow_mut(|elsewhere| {
        let stride = columns + APART;
        if elsewhere.len() < ROWS * stride {
            elsewhere.resize(ROWS * stride, 0.0);
        }
        for (index, c) in c.chunks_mut(ROWS * columns).enumerate() {
            let a = a.some_rows(index * ROWS, c.len() / columns);
            product(elsewhere, stride, Into::Fresh, a, b);
            for (to, from) in c.chunks_exact_mut(columns).zip(elsewhere.chunks_exact(stride)) {
                match into {
                    Into::Fresh => to.copy_from_slice(&from[..columns]),
                    Into::Sum => to.iter_mut().zip(from).for_each(|(to, from)| *to += from),
                }
            }
        }
    });
}

/// The product with the rows of `c` so many elements apart.
fn product(c: &mut [f32], row_stride: usize, into: Into, a: Matrix<'_>, b: Matrix<'_>) {
    assert!(a.rows > 0 && b.columns > 0 && b.columns <= row_stride);
    assert!((a.rows - 1) * row_stride + b.columns <= c.len());
    assert!(a.columns == b.rows && a.fits() && b.fits());
    let stride = |stride: usize| stride as isize;
    // SAFETY: every element that the strides reach lies in its slice, and no two of `c` in the same
    // place: checked above. `c` is borrowed mutably, so it overlaps neither `a` nor `b`.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            a.rows,
            b.columns,
            a.columns,
            c.as_mut_ptr(),
            1,
            stride(row_stride),
            into == Into::Sum,
            a.data.as_ptr(),
            stride(a.column_stride),
            stride(a.row_stride),
            b.data.as_ptr(),
            stride(b.column_stride),
            stride(b.row_stride),
            1.0f32,
            1.0f32,
            false,
            false,
            false,
            gemm_common::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{assert_close, noise};

    fn slow(a: Matrix<'_>, b: Matrix<'_>) -> Vec<f32> {
        let cell = |r: usize, c: usize| -> f32 {
            (0..a.columns).map(|k| f64::from(a.at(r, k)) * f64::from(b.at(k, c))).sum::<f64>()
                as f32
        };
        (0..a.rows)
            .flat_map(|r| (0..b.columns).map(move |c| (r, c)))
            .map(|(r, c)| cell(r, c))
            .collect()
    }

    #[test]
    fn a_product_over_nothing_is_zero() {
        for columns in [24, 256] {
            let mut c = noise(300 * columns, 1);
            matmul(&mut c, Into::Fresh, Matrix::new(&[], 300).t(), Matrix::new(&[], columns));
            assert!(c.iter().all(|&x| x == 0.0), "{columns} columns");
        }
    }

    #[test]
    fn products_match_the_slow_twin() {
        for (m, k, n) in
            [(1, 1, 1), (1, 128, 24), (3, 5, 7), (17, 33, 65), (61, 128, 40), (300, 5, 256)]
        {
            let (a, b) = (noise(m * k, 1), noise(k * n, 2));
            let (at, bt) = (noise(m * k, 3), noise(k * n, 4));
            for a in [Matrix::new(&a, k), Matrix::new(&at, m).t()] {
                for b in [Matrix::new(&b, n), Matrix::new(&bt, k).t()] {
                    let mut c = noise(m * n, 5);
                    let mut expected = slow(a, b);
                    let mut fresh = c.clone();
                    matmul(&mut fresh, Into::Fresh, a, b);
                    assert_close(&fresh, &expected, 1e-5);
                    for (sum, before) in expected.iter_mut().zip(&c) {
                        *sum += before;
                    }
                    matmul(&mut c, Into::Sum, a, b);
                    assert_close(&c, &expected, 1e-5);
                }
            }
        }
    }
}
