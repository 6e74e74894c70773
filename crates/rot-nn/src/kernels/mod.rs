//! What models are computed with: large matrix products from a crate, everything else by hand.
//!
//! A kernel works on rows that lie one after another in a slice. Forward and backward stand side by
//! side, with the shapes in the comment; tests compare each with a slow twin and with finite
//! differences.

pub mod attention;
pub mod convolution;
pub mod loss;
pub mod lstm_cell;
pub mod math;
pub mod matmul;
pub mod norm;
pub mod panels;
pub mod remembered;
pub mod rotary;
pub mod rows;
mod tile;

#[cfg(test)]
pub(crate) mod testing;

/// Runs plain loops with the widest vectors this machine has.
///
/// What is called inside must be inlined, closure and all, so that it is compiled for those vectors
/// too. It is `FnMut` because a closure that is called as `FnOnce` may hide behind a shim that is not.
#[inline(always)]
pub fn vectorised<R>(work: impl FnMut() -> R) -> R {
    pulp::Arch::new().dispatch(Plain(work))
}

struct Plain<F>(F);

impl<R, F: FnMut() -> R> pulp::WithSimd for Plain<F> {
    type Output = R;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(mut self, _: S) -> R {
        (self.0)()
    }
}

/// Whether this machine multiplies and adds in one instruction.
pub(crate) fn is_fused() -> bool {
    !matches!(pulp::Arch::new(), pulp::Arch::Scalar)
}

/// Whether this machine has vectors of sixteen numbers, and 32 registers for them.
pub(crate) fn is_wide() -> bool {
    #[cfg(target_arch = "x86_64")]
    return matches!(pulp::Arch::new(), pulp::Arch::V4(_));
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// The vectors that kernels use on this machine.
pub fn vectors() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    match pulp::Arch::new() {
        pulp::Arch::V4(_) => return "AVX-512",
        pulp::Arch::V3(_) => return "AVX2",
        _ => (),
    }
    if is_fused() { "vectors of this architecture" } else { "no special vectors" }
}
