//! Rotary positions (RoPE): queries and keys are turned by an angle that grows with the position, so
//! that their product depends on the distance alone. A token can have several coordinates, each of which
//! turns channels of its own.

use super::vectorised;

/// Cosines and sines for all coordinates and frequencies.
#[derive(Clone, Debug)]
pub struct Rotation {
    axes: Vec<Axis>,
    half: usize,
}

/// The channels that one coordinate turns.
#[derive(Clone, Debug)]
struct Axis {
    /// `[limit, pairs]`
    cosines: Vec<f32>,
    sines: Vec<f32>,
    pairs: usize,
}

impl Axis {
    fn new(limit: usize, turn: f64, pairs: usize, base: f64) -> Axis {
        let slower = |i: usize| libm::pow(base, -((i % pairs) as f64) / pairs as f64);
        let angle = |i: usize| turn * (i / pairs) as f64 * slower(i);
        let table = |f: fn(f64) -> f64| (0..limit * pairs).map(|i| f(angle(i)) as f32).collect();
        Axis { cosines: table(libm::cos), sines: table(libm::sin), pairs }
    }
}

impl Rotation {
    /// For coordinates below `limit`; the fastest angles grow by `turn` with each. An axis is the number of
    /// channel pairs of a head that its coordinate turns, and how many times slower the slowest of its angles
    /// would be after the last.
    pub fn new(limit: usize, turn: f64, axes: &[(usize, f64)]) -> Rotation {
        let half = axes.iter().map(|(pairs, _)| pairs).sum();
        let axes = axes.iter().map(|&(pairs, base)| Axis::new(limit, turn, pairs, base)).collect();
        Rotation { axes, half }
    }

    /// Turns every head of the first `width` channels of each row by its coordinates; rows are `stride`
    /// long. Channel `i` of a head is paired with channel `i + head / 2`.
    pub fn forward<const N: usize>(
        &self,
        rows: &mut [f32],
        stride: usize,
        width: usize,
        coordinates: impl Iterator<Item = [usize; N]>,
    ) {
        self.turn::<false, N>(rows, stride, width, coordinates);
    }

    /// Turns gradients back.
    pub fn backward<const N: usize>(
        &self,
        rows: &mut [f32],
        stride: usize,
        width: usize,
        coordinates: impl Iterator<Item = [usize; N]>,
    ) {
        self.turn::<true, N>(rows, stride, width, coordinates);
    }

    fn turn<const BACK: bool, const N: usize>(
        &self,
        rows: &mut [f32],
        stride: usize,
        width: usize,
        mut coordinates: impl Iterator<Item = [usize; N]>,
    ) {
        let half = self.half;
        let (mut cosines, mut sines) = (vec![0.0f32; half], vec![0.0f32; half]);
        vectorised(
            #[inline(always)]
            || {
                for (row, coordinates) in rows.chunks_exact_mut(stride).zip(&mut coordinates) {
                    let mut start = 0;
                    for (axis, coordinate) in self.axes.iter().zip(coordinates) {
                        let (from, to) = (coordinate * axis.pairs, start + axis.pairs);
                        cosines[start..to].copy_from_slice(&axis.cosines[from..][..axis.pairs]);
                        sines[start..to].copy_from_slice(&axis.sines[from..][..axis.pairs]);
                        start = to;
                    }
                    for head in row[..width].chunks_exact_mut(2 * half) {
                        let (a, b) = head.split_at_mut(half);
                        let turns = cosines.iter().zip(&sines).zip(a).zip(b);
                        for (((cosine, sine), a), b) in turns {
                            let sine = if BACK { -sine } else { *sine };
                            (*a, *b) = (*a * cosine - *b * sine, *a * sine + *b * cosine);
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
        let turn = 1.5;
        let rotation = Rotation::new(5, turn, &[(head / 2, 100.0)]);
        let before = noise(7 * stride, 1);
        let mut rows = before.clone();
        rotation.forward(
            &mut rows,
            stride,
            width,
            SEQUENCES.into_iter().flat_map(|sequence| (0..sequence.len()).map(|t| [t])),
        );
        let mut expected = before.clone();
        for sequence in SEQUENCES {
            for (t, h, i) in sequence
                .clone()
                .flat_map(|t| (0..2).flat_map(move |h| (0..2).map(move |i| (t, h, i))))
            {
                let angle = turn * (t - sequence.start) as f64 * 100f64.powf(-(i as f64) / 2.0);
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
            SEQUENCES.into_iter().flat_map(|sequence| (0..sequence.len()).map(|t| [t])),
        );
        assert_close(&rows, &before, 1e-6);
    }

    #[test]
    fn coordinates_turn_channels_of_their_own() {
        let both = Rotation::new(9, 1.0, &[(1, 10.0), (1, 20.0)]);
        let before = noise(4, 2);
        let mut row = before.clone();
        both.forward(&mut row, 4, 4, std::iter::once([3, 7]));
        let turned = |rotation: Rotation, at: usize, coordinate: usize| {
            let mut pair = [before[at], before[at + 2]];
            rotation.forward(&mut pair, 2, 2, std::iter::once([coordinate]));
            pair
        };
        assert_eq!([row[0], row[2]], turned(Rotation::new(9, 1.0, &[(1, 10.0)]), 0, 3));
        assert_eq!([row[1], row[3]], turned(Rotation::new(9, 1.0, &[(1, 20.0)]), 1, 7));
        both.backward(&mut row, 4, 4, std::iter::once([3, 7]));
        assert_close(&row, &before, 1e-6);
    }
}
