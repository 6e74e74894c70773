//! Rotary positions (RoPE): queries and keys are turned by an angle that grows with the position, so
//! that their product depends on the distance alone.

use super::vectorised;

/// Cosines and sines for all positions and frequencies.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// `[limit, head / 2]`
    cosines: Vec<f32>,
    sines: Vec<f32>,
    half: usize,
}

impl Rotation {
    /// For sequences of up to `limit` tokens and heads of `head` channels. The slowest of the angles
    /// turns once in about `base` tokens.
    pub fn new(limit: usize, head: usize, base: f64) -> Rotation {
        let half = head / 2;
        let angle =
            |i: usize| (i / half) as f64 * libm::pow(base, -((i % half) as f64) / half as f64);
        let table = |f: fn(f64) -> f64| (0..limit * half).map(|i| f(angle(i)) as f32).collect();
        Rotation { cosines: table(libm::cos), sines: table(libm::sin), half }
    }

    /// Turns every head of the first `width` channels of each row by its position; rows are `stride`
    /// long. Channel `i` of a head is paired with channel `i + head / 2`.
    pub fn forward(
        &self,
        rows: &mut [f32],
        stride: usize,
        width: usize,
        positions: impl Iterator<Item = usize>,
    ) {
        self.turn::<false>(rows, stride, width, positions);
    }

    /// Turns gradients back.
    pub fn backward(
        &self,
        rows: &mut [f32],
        stride: usize,
        width: usize,
        positions: impl Iterator<Item = usize>,
    ) {
        self.turn::<true>(rows, stride, width, positions);
    }

    fn turn<const BACK: bool>(
        &self,
        rows: &mut [f32],
        stride: usize,
        width: usize,
        mut positions: impl Iterator<Item = usize>,
    ) {
        let half = self.half;
        vectorised(
            #[inline(always)]
            || {
                for (row, position) in rows.chunks_exact_mut(stride).zip(&mut positions) {
                    let cosines = &self.cosines[position * half..][..half];
                    let sines = &self.sines[position * half..][..half];
                    for head in row[..width].chunks_exact_mut(2 * half) {
                        let (a, b) = head.split_at_mut(half);
                        for i in 0..half {
                            let sine = if BACK { -sines[i] } else { sines[i] };
                            let (x, y) = (a[i], b[i]);
                            a[i] = x * cosines[i] - y * sine;
                            b[i] = x * sine + y * cosines[i];
                        }
                    }
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::kernels::testing::{assert_close, noise};

    const SEQUENCES: [Range<usize>; 3] = [0..1, 1..6, 6..7];

    #[test]
    fn turns_by_the_angle_of_the_position() {
        let (head, width, stride) = (4, 8, 10);
        let rotation = Rotation::new(5, head, 100.0);
        let before = noise(7 * stride, 1);
        let mut rows = before.clone();
        rotation.forward(
            &mut rows,
            stride,
            width,
            SEQUENCES.into_iter().flat_map(|sequence| 0..sequence.len()),
        );
        let mut expected = before.clone();
        for sequence in SEQUENCES {
            for (t, h, i) in sequence
                .clone()
                .flat_map(|t| (0..2).flat_map(move |h| (0..2).map(move |i| (t, h, i))))
            {
                let angle = (t - sequence.start) as f64 * 100f64.powf(-(i as f64) / 2.0);
                let at = t * stride + h * head + i;
                let (x, y) = (f64::from(before[at]), f64::from(before[at + 2]));
                expected[at] = (x * angle.cos() - y * angle.sin()) as f32;
                expected[at + 2] = (x * angle.sin() + y * angle.cos()) as f32;
            }
        }
        assert_close(&rows, &expected, 1e-6);
        // A rotation's gradient is the rotation back.
        rotation.backward(
            &mut rows,
            stride,
            width,
            SEQUENCES.into_iter().flat_map(|sequence| 0..sequence.len()),
        );
        assert_close(&rows, &before, 1e-6);
    }
}
