//! Functions of numbers and rows, written so that the compiler turns them into vectors.
//!
//! Everything here is inlined into kernels that run in [`crate::kernels::vectorised`].

/// Sums are kept in as many lanes on every machine, so that their order does not depend on it.
const LANES: usize = 16;

/// e to the power of `x`, to within two units in the last place; 0 below -87.
///
/// Written by hand because the standard library's is a call for each number.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // x = n ln 2 + r with |r| <= ln 2 / 2; the shift rounds to the nearest whole n.
    const SHIFT: f32 = 12_582_912.0;
    let clamped = x.clamp(-87.0, 88.0);
    let shifted = clamped * std::f32::consts::LOG2_E + SHIFT;
    let n = shifted - SHIFT;
    let r = clamped - n * 0.693_359_4 + n * 2.121_944_4e-4;
    let mut p = 1.987_569_1e-4;
    p = p * r + 1.398_199_9e-3;
    p = p * r + 8.333_452e-3;
    p = p * r + 4.166_579_6e-2;
    p = p * r + 1.666_666_5e-1;
    p = p * r + 0.5;
    let fraction = p * r * r + r + 1.0;
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    if x < -87.0 { 0.0 } else { fraction * power }
}

/// 1 / (1 + e^-x)
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The hyperbolic tangent.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    1.0 - 2.0 / (1.0 + exp(2.0 * x))
}

/// The sum over `i` of `f(i)`.
#[inline(always)]
pub fn sum(len: usize, f: impl Fn(usize) -> f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let whole = len - len % LANES;
    for start in (0..whole).step_by(LANES) {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += f(start + lane);
        }
    }
    let mut rest = 0.0;
    for i in whole..len {
        rest += f(i);
    }
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
    }
    lanes[0] + rest
}

/// The largest element; minus infinity if there is none.
#[inline(always)]
pub fn max(x: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (blocks, rest) = x.as_chunks::<LANES>();
    for block in blocks {
        for (lane, &x) in lanes.iter_mut().zip(block) {
            *lane = if x > *lane { x } else { *lane };
        }
    }
    rest.iter().chain(&lanes).fold(f32::NEG_INFINITY, |a, &b| if b > a { b } else { a })
}

/// `y += x`
#[inline(always)]
pub fn add(y: &mut [f32], x: &[f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += x;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::noise;
    use crate::kernels::vectorised;

    #[test]
    fn functions_match_exact_ones() {
        for i in -8700..=8700i16 {
            let x = f32::from(i) / 100.0;
            let exact = f64::from(x).exp();
            let relative = (f64::from(exp(x)) - exact) / exact;
            assert!(relative.abs() < 3e-7, "exp({x}) is off by {relative:e}");
            assert!((f64::from(tanh(x)) - f64::from(x).tanh()).abs() < 3e-7, "tanh({x})");
            let exact = 1.0 / (1.0 + (-f64::from(x)).exp());
            assert!((f64::from(sigmoid(x)) - exact).abs() < 3e-7, "sigmoid({x})");
        }
        assert_eq!(exp(-1000.0), 0.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert!(exp(f32::NAN).is_nan());
        assert_eq!((tanh(1000.0), tanh(-1000.0)), (1.0, -1.0));
        assert!((0.0..1e-37).contains(&sigmoid(-1000.0)));
    }

    #[test]
    fn sums_and_maxima_of_any_length() {
        for len in [0, 1, 15, 16, 17, 200] {
            let x = noise(len, 9);
            let exact: f64 = x.iter().map(|&x| f64::from(x)).sum();
            let plain = sum(len, |i| x[i]);
            assert!((f64::from(plain) - exact).abs() < 1e-5);
            assert_eq!(plain.to_bits(), vectorised(|| sum(len, |i| x[i])).to_bits());
            assert_eq!(max(&x), x.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        }
    }
}
