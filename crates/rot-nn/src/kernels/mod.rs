//! What models are computed with: matrix products from a crate, everything else by hand.
//!
//! A kernel works on rows that lie one after another in a slice. Forward and backward stand side by
//! side, with the shapes in the comment; tests compare each with a slow twin and with finite
//! differences.

pub mod attention;
pub mod convolution;
pub mod loss;
pub mod math;
pub mod matmul;
pub mod norm;
pub mod rotary;
pub mod rows;
mod tile;

#[cfg(test)]
pub(crate) mod testing;

/// Runs plain loops with the widest vectors this machine has.
///
/// What is called inside must be inlined, so that it is compiled for those vectors too.
#[inline(always)]
pub fn vectorised<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
}
