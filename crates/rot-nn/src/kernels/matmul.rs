//! Matrix products, from the single-precision part of the `gemm` crate, which chooses AVX-512, AVX2
//! or neither at run time.
//!
//! One thread each: work is split over sequences, not within products.
#![allow(unsafe_code)]

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

/// `c = a b` or `c += a b`, with `c` row-major.
///
/// # Panics
/// If the shapes do not fit.
pub fn matmul(c: &mut [f32], into: Into, a: Matrix<'_>, b: Matrix<'_>) {
    assert_eq!(a.columns, b.rows, "inner dimensions");
    assert_eq!(c.len(), a.rows * b.columns, "the result is {} x {}", a.rows, b.columns);
    assert!(a.fits() && b.fits());
    if c.is_empty() {
        return;
    }
    let stride = |stride: usize| stride as isize;
    // SAFETY: every element that the strides reach lies in its slice: checked above for `a` and `b`,
    // and `c` is row-major of exactly that size. `c` is borrowed mutably, so it overlaps neither.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            a.rows,
            b.columns,
            a.columns,
            c.as_mut_ptr(),
            1,
            stride(b.columns),
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
    fn products_match_the_slow_twin() {
        for (m, k, n) in [(1, 1, 1), (1, 128, 24), (3, 5, 7), (17, 33, 65), (61, 128, 40)] {
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
