//! Causal self-attention over packed sequences, in memory linear in their length.
//!
//! Queries are taken a few rows at a time, and only keys up to the last of them are touched. Only the
//! logarithm of each row's sum is kept; going back, the weights are computed again from it.
//!
//! A row of `qkv`, `[n, 3 width]`, holds queries, keys and values of all heads. A head has a multiple
//! of 16 channels.

use std::ops::Range;

use super::math::{exp, max, sum};
use super::tile::{COLUMNS, Tile, add_product, add_transposed, in_groups, padded};
use super::{is_fused, is_wide, vectorised};
use crate::Workspace;

/// Queries that go back together.
const BLOCK: usize = 32;
/// Rows of a tile.
const ROWS: usize = 4;

/// Attention of a certain width and number of heads.
#[derive(Clone, Copy, Debug)]
pub struct Attention {
    width: usize,
    heads: usize,
}

/// One head of one sequence.
struct Head {
    /// Where its queries, keys and values begin, and how far rows are apart.
    query: usize,
    key: usize,
    value: usize,
    stride: usize,
    /// Where its output begins, and how far rows are apart.
    out: usize,
    width: usize,
    /// Where its logarithms begin, and how far they are apart.
    log: usize,
    heads: usize,
    length: usize,
    channels: usize,
    scale: f32,
}

impl Attention {
    /// # Panics
    /// If the heads do not divide the width into multiples of 16.
    pub fn new(width: usize, heads: usize) -> Attention {
        assert!(
            heads > 0 && width.is_multiple_of(heads) && (width / heads).is_multiple_of(COLUMNS),
            "heads of a multiple of {COLUMNS} channels"
        );
        Attention { width, heads }
    }

    fn heads(self, sequence: &Range<usize>) -> impl Iterator<Item = Head> + use<> {
        let Attention { width, heads } = self;
        let (start, length, channels) = (sequence.start, sequence.len(), width / heads);
        (0..heads).map(move |h| {
            let query = start * 3 * width + h * channels;
            Head {
                query,
                key: query + width,
                value: query + 2 * width,
                stride: 3 * width,
                out: start * width + h * channels,
                width,
                log: start * heads + h,
                heads,
                length,
                channels,
                scale: 1.0 / (channels as f32).sqrt(),
            }
        })
    }

    /// Writes the attended values to `out`, `[n, width]`, and the logarithms of the sums to `logs`,
    /// `[n, heads]`.
    pub fn forward(
        self,
        qkv: &[f32],
        sequences: impl Iterator<Item = Range<usize>>,
        out: &mut [f32],
        logs: &mut [f32],
        work: &mut Workspace,
    ) {
        let mut scratch = work.take(0);
        for head in sequences.flat_map(|sequence| self.heads(&sequence)) {
            if is_wide() {
                vectorised(
                    #[inline(always)]
                    || head.forward::<true, true>(qkv, out, logs, &mut scratch),
                );
            } else if is_fused() {
                vectorised(
                    #[inline(always)]
                    || head.forward::<true, false>(qkv, out, logs, &mut scratch),
                );
            } else {
                head.forward::<false, false>(qkv, out, logs, &mut scratch);
            }
        }
        work.give(scratch);
    }

    /// Writes the gradient of `qkv` to `dqkv`, from that of `out`.
    #[allow(clippy::too_many_arguments)]
    pub fn backward(
        self,
        qkv: &[f32],
        sequences: impl Iterator<Item = Range<usize>>,
        out: &[f32],
        logs: &[f32],
        dout: &[f32],
        dqkv: &mut [f32],
        work: &mut Workspace,
    ) {
        let mut scratch = work.take(0);
        for head in sequences.flat_map(|sequence| self.heads(&sequence)) {
            let forward = Forward { qkv, out, logs };
            if is_wide() {
                vectorised(
                    #[inline(always)]
                    || head.backward::<true, true>(&forward, dout, dqkv, &mut scratch),
                );
            } else if is_fused() {
                vectorised(
                    #[inline(always)]
                    || head.backward::<true, false>(&forward, dout, dqkv, &mut scratch),
                );
            } else {
                head.backward::<false, false>(&forward, dout, dqkv, &mut scratch);
            }
        }
        work.give(scratch);
    }
}

/// Replaces products of a query and keys by the weights of the keys, up to a factor. Returns the
/// largest product and the sum of the weights.
#[inline(always)]
pub(super) fn exponentials(products: &mut [f32], scale: f32) -> (f32, f32) {
    let largest = max(products);
    for x in products.iter_mut() {
        *x = exp((*x - largest) * scale);
    }
    (largest, sum(products.len(), |i| products[i]))
}

/// What a forward pass leaves for the backward pass.
struct Forward<'a> {
    qkv: &'a [f32],
    out: &'a [f32],
    logs: &'a [f32],
}

impl Head {
    #[inline(always)]
    fn query(&self, row: usize) -> Range<usize> {
        let start = self.query + row * self.stride;
        start..start + self.channels
    }

    #[inline(always)]
    fn out(&self, row: usize) -> Range<usize> {
        let start = self.out + row * self.width;
        start..start + self.channels
    }

    /// Writes keys or values, which begin at `start`, as columns: `[channels, padded(length)]`.
    #[inline(always)]
    fn transpose(&self, qkv: &[f32], start: usize, columns: &mut [f32]) {
        let stride = padded(self.length);
        for row in 0..self.length {
            let channels = &qkv[start + row * self.stride..][..self.channels];
            for (channel, &x) in channels.iter().enumerate() {
                columns[channel * stride + row] = x;
            }
        }
    }

    #[inline(always)]
    fn forward<const FUSED: bool, const WIDE: bool>(
        &self,
        qkv: &[f32],
        out: &mut [f32],
        logs: &mut [f32],
        scratch: &mut Vec<f32>,
    ) {
        let stride = padded(self.length);
        scratch.resize((self.channels + ROWS) * stride, 0.0);
        let (keys, weights) = scratch.split_at_mut(self.channels * stride);
        self.transpose(qkv, self.key, keys);
        in_groups!(0..self.length, [4, 1], |row, R| {
            self.attend::<FUSED, WIDE, R>(qkv, row, keys, weights, out, logs);
        });
    }

    /// The queries `row..row + R`.
    #[inline(always)]
    fn attend<const FUSED: bool, const WIDE: bool, const R: usize>(
        &self,
        qkv: &[f32],
        row: usize,
        keys: &[f32],
        weights: &mut [f32],
        out: &mut [f32],
        logs: &mut [f32],
    ) {
        let (stride, seen) = (padded(self.length), row + R);
        let queries: [&[f32]; R] = std::array::from_fn(|r| &qkv[self.query(row + r)]);
        in_groups!(0..seen.div_ceil(COLUMNS), [2 if WIDE, 1], |first, P| {
            let column = first * COLUMNS;
            let mut tiles: [Tile<R>; P] = [[[0.0; COLUMNS]; R]; P];
            add_product::<FUSED, R, P>(&mut tiles, queries, &keys[column..], stride);
            for (p, tile) in tiles.iter().enumerate() {
                for (r, sums) in tile.iter().enumerate() {
                    weights[r * stride + column + p * COLUMNS..][..COLUMNS].copy_from_slice(sums);
                }
            }
        });
        let mut inverse = [0.0; R];
        for r in 0..R {
            let weights = &mut weights[r * stride..][..seen];
            let (past, future) = weights.split_at_mut(row + r + 1);
            let (largest, total) = exponentials(past, self.scale);
            future.fill(0.0);
            inverse[r] = 1.0 / total;
            logs[self.log + (row + r) * self.heads] = largest * self.scale + total.ln();
        }
        let rows: [&[f32]; R] = std::array::from_fn(|r| &weights[r * stride..][..seen]);
        in_groups!(0..self.channels / COLUMNS, [2 if WIDE, 1], |first, P| {
            let channel = first * COLUMNS;
            let mut tiles: [Tile<R>; P] = [[[0.0; COLUMNS]; R]; P];
            add_product::<FUSED, R, P>(&mut tiles, rows, &qkv[self.value + channel..], self.stride);
            for (p, tile) in tiles.iter().enumerate() {
                for (r, sums) in tile.iter().enumerate() {
                    let out = &mut out[self.out(row + r)][channel + p * COLUMNS..][..COLUMNS];
                    for (out, sum) in out.iter_mut().zip(sums) {
                        *out = sum * inverse[r];
                    }
                }
            }
        });
    }

    #[inline(always)]
    fn backward<const FUSED: bool, const WIDE: bool>(
        &self,
        forward: &Forward<'_>,
        dout: &[f32],
        dqkv: &mut [f32],
        scratch: &mut Vec<f32>,
    ) {
        let stride = padded(self.length);
        scratch.resize(2 * (self.channels + BLOCK) * stride, 0.0);
        let (columns, rows) = scratch.split_at_mut(2 * self.channels * stride);
        let (keys, values) = columns.split_at_mut(self.channels * stride);
        let (weights, slopes) = rows.split_at_mut(BLOCK * stride);
        self.transpose(forward.qkv, self.key, keys);
        self.transpose(forward.qkv, self.value, values);
        for start in (0..self.length).step_by(BLOCK) {
            let end = (start + BLOCK).min(self.length);
            in_groups!(start..end, [4, 1], |row, R| {
                let at = (row - start) * stride;
                let (weights, slopes) = (&mut weights[at..], &mut slopes[at..]);
                self.slopes::<FUSED, WIDE, R>(forward, dout, row, (keys, values), weights, slopes);
                self.query_gradient::<FUSED, WIDE, R>(forward.qkv, row, slopes, dqkv);
            });
            in_groups!(0..end, [4, 1], |row, R| {
                self.key_gradient::<FUSED, WIDE, R>(
                    forward.qkv,
                    dout,
                    row,
                    start..end,
                    weights,
                    slopes,
                    dqkv,
                );
            });
        }
    }

    /// The weights of queries `row..row + R` again, and the gradients of their products with keys.
    /// Both are zero where a key lies in the future of its query.
    #[inline(always)]
    fn slopes<const FUSED: bool, const WIDE: bool, const R: usize>(
        &self,
        forward: &Forward<'_>,
        dout: &[f32],
        row: usize,
        (keys, values): (&[f32], &[f32]),
        weights: &mut [f32],
        slopes: &mut [f32],
    ) {
        let (stride, seen) = (padded(self.length), row + R);
        let queries: [&[f32]; R] = std::array::from_fn(|r| &forward.qkv[self.query(row + r)]);
        let douts: [&[f32]; R] = std::array::from_fn(|r| &dout[self.out(row + r)]);
        in_groups!(0..seen.div_ceil(COLUMNS), [2 if WIDE, 1], |first, P| {
            let column = first * COLUMNS;
            let both: [(_, _, &mut [f32]); 2] = [(queries, keys, weights), (douts, values, slopes)];
            for (a, b, to) in both {
                let mut tiles: [Tile<R>; P] = [[[0.0; COLUMNS]; R]; P];
                add_product::<FUSED, R, P>(&mut tiles, a, &b[column..], stride);
                for (p, tile) in tiles.iter().enumerate() {
                    for (r, sums) in tile.iter().enumerate() {
                        to[r * stride + column + p * COLUMNS..][..COLUMNS].copy_from_slice(sums);
                    }
                }
            }
        });
        for r in 0..R {
            let (out, log) =
                (&forward.out[self.out(row + r)], forward.logs[self.log + (row + r) * self.heads]);
            let along = sum(self.channels, |i| out[i] * douts[r][i]);
            let (past, future) = weights[r * stride..][..stride].split_at_mut(row + r + 1);
            let (slopes, ahead) = slopes[r * stride..][..stride].split_at_mut(row + r + 1);
            for (x, slope) in past.iter_mut().zip(slopes) {
                *x = exp(*x * self.scale - log);
                *slope = *x * (*slope - along) * self.scale;
            }
            future.fill(0.0);
            ahead.fill(0.0);
        }
    }

    /// Writes the gradients of queries `row..row + R`.
    #[inline(always)]
    fn query_gradient<const FUSED: bool, const WIDE: bool, const R: usize>(
        &self,
        qkv: &[f32],
        row: usize,
        slopes: &[f32],
        dqkv: &mut [f32],
    ) {
        let stride = padded(self.length);
        let rows: [&[f32]; R] = std::array::from_fn(|r| &slopes[r * stride..][..row + R]);
        in_groups!(0..self.channels / COLUMNS, [2 if WIDE, 1], |first, P| {
            let channel = first * COLUMNS;
            let mut tiles: [Tile<R>; P] = [[[0.0; COLUMNS]; R]; P];
            add_product::<FUSED, R, P>(&mut tiles, rows, &qkv[self.key + channel..], self.stride);
            for (p, tile) in tiles.iter().enumerate() {
                for (r, sums) in tile.iter().enumerate() {
                    let channel = channel + p * COLUMNS;
                    dqkv[self.query(row + r)][channel..][..COLUMNS].copy_from_slice(sums);
                }
            }
        });
    }

    /// The gradients of keys and values `row..row + R` from the queries of a block: written by the
    /// first block that sees them, added to by later ones.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn key_gradient<const FUSED: bool, const WIDE: bool, const R: usize>(
        &self,
        qkv: &[f32],
        dout: &[f32],
        row: usize,
        block: Range<usize>,
        weights: &[f32],
        slopes: &[f32],
        dqkv: &mut [f32],
    ) {
        let stride = padded(self.length);
        // Queries before the first of these keys do not see them.
        let first = row.max(block.start);
        let (depth, at) = (block.end - first, (first - block.start) * stride + row);
        let fresh = row >= block.start;
        in_groups!(0..self.channels / COLUMNS, [2 if WIDE, 1], |group, P| {
            let channel = group * COLUMNS;
            let queries = &qkv[self.query + first * self.stride + channel..];
            let douts = &dout[self.out + first * self.width + channel..];
            for (a, (b, b_stride), to) in [
                (slopes, (queries, self.stride), self.key),
                (weights, (douts, self.width), self.value),
            ] {
                let mut tiles: [Tile<R>; P] = [[[0.0; COLUMNS]; R]; P];
                let at_row =
                    |r: usize, p: usize| to + (row + r) * self.stride + channel + p * COLUMNS;
                if !fresh {
                    for (p, tile) in tiles.iter_mut().enumerate() {
                        for (r, sums) in tile.iter_mut().enumerate() {
                            sums.copy_from_slice(&dqkv[at_row(r, p)..][..COLUMNS]);
                        }
                    }
                }
                add_transposed::<FUSED, R, P>(&mut tiles, &a[at..], stride, b, b_stride, depth);
                for (p, tile) in tiles.iter().enumerate() {
                    for (r, sums) in tile.iter().enumerate() {
                        dqkv[at_row(r, p)..][..COLUMNS].copy_from_slice(sums);
                    }
                }
            }
        });
    }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "a batch of one sequence")]
mod tests {
    use super::*;
    use crate::kernels::testing::{assert_close, assert_gradient, noise};

    /// Attention in double precision, one number at a time.
    fn slow(qkv: &[f32], width: usize, heads: usize, sequences: &[Range<usize>]) -> Vec<f64> {
        let (n, channels) = (qkv.len() / (3 * width), width / heads);
        let at = |part: usize, t: usize, c: usize| f64::from(qkv[t * 3 * width + part * width + c]);
        let mut out = vec![0.0; n * width];
        for sequence in sequences {
            for (t, h) in sequence.clone().flat_map(|t| (0..heads).map(move |h| (t, h))) {
                let c = h * channels..(h + 1) * channels;
                let product = |s| c.clone().map(|c| at(0, t, c) * at(1, s, c)).sum::<f64>();
                let weight = |s| (product(s) / (channels as f64).sqrt()).exp();
                let total: f64 = (sequence.start..=t).map(weight).sum();
                for s in sequence.start..=t {
                    c.clone().for_each(|c| out[t * width + c] += weight(s) / total * at(2, s, c));
                }
            }
        }
        out
    }

    fn run(
        qkv: &[f32],
        width: usize,
        heads: usize,
        sequences: &[Range<usize>],
        dout: &[f32],
    ) -> [Vec<f32>; 2] {
        let (attention, n) = (Attention::new(width, heads), qkv.len() / (3 * width));
        let (mut out, mut logs) = (vec![9.0; n * width], vec![9.0; n * heads]);
        let mut work = Workspace::default();
        // Scratch that is left from before must not matter.
        work.give(vec![f32::NAN; 100_000]);
        attention.forward(qkv, sequences.iter().cloned(), &mut out, &mut logs, &mut work);
        let mut dqkv = vec![9.0; qkv.len()];
        attention.backward(qkv, sequences.iter().cloned(), &out, &logs, dout, &mut dqkv, &mut work);
        [out, dqkv]
    }

    #[test]
    fn matches_the_slow_twin_at_all_kinds_of_lengths() {
        for (width, heads) in [(32, 2), (64, 1), (48, 3)] {
            let sequences = [0..1, 1..6, 6..7, 7..23, 23..55, 55..88, 88..168];
            let qkv: Vec<f32> = noise(168 * 3 * width, 1).iter().map(|x| x * 3.0).collect();
            let [out, _] = run(&qkv, width, heads, &sequences, &noise(168 * width, 2));
            let expected: Vec<f32> =
                slow(&qkv, width, heads, &sequences).iter().map(|&x| x as f32).collect();
            assert_close(&out, &expected, 2e-6);
        }
    }

    /// All heads with certain instructions, without vectors.
    fn plain<const FUSED: bool, const WIDE: bool>(
        attention: Attention,
        qkv: &[f32],
        dout: &[f32],
    ) -> [Vec<f32>; 2] {
        let n = dout.len() / attention.width;
        let (mut out, mut logs) = (vec![0.0; dout.len()], vec![0.0; n * attention.heads]);
        let mut dqkv = vec![0.0; qkv.len()];
        for head in attention.heads(&(0..n)) {
            head.forward::<FUSED, WIDE>(qkv, &mut out, &mut logs, &mut Vec::new());
        }
        let forward = Forward { qkv, out: &out, logs: &logs };
        for head in attention.heads(&(0..n)) {
            head.backward::<FUSED, WIDE>(&forward, dout, &mut dqkv, &mut Vec::new());
        }
        [out, dqkv]
    }

    #[test]
    fn the_same_comes_out_with_other_instructions() {
        // Three tiles a head: two at a time and one.
        let (attention, n) = (Attention::new(96, 2), 39);
        let (qkv, dout) = (noise(n * 3 * 96, 7), noise(n * 96, 8));
        let [out, dqkv] = run(&qkv, 96, 2, &[0..n], &dout);
        let [without, dwithout] = plain::<false, false>(attention, &qkv, &dout);
        assert_close(&without, &out, 1e-6);
        assert_close(&dwithout, &dqkv, 1e-5);
        let one_at_a_time = plain::<true, false>(attention, &qkv, &dout);
        assert_eq!(one_at_a_time, plain::<true, true>(attention, &qkv, &dout), "not one bit");
    }

    #[test]
    fn gradients_match_finite_differences() {
        // The second is longer than a block of queries.
        for (heads, width, sequences) in [(2, 32, vec![0..1, 1..6, 6..7]), (1, 16, vec![0..37])] {
            let n = sequences.last().map_or(0, |last| last.end);
            let (qkv, dout) = (noise(n * 3 * width, 3), noise(n * width, 4));
            let [_, dqkv] = run(&qkv, width, heads, &sequences, &dout);
            assert_gradient(&qkv, &dqkv, |qkv| {
                let out = slow(qkv, width, heads, &sequences);
                out.iter().zip(&dout).map(|(x, &dx)| x * f64::from(dx)).sum()
            });
        }
    }

    #[test]
    fn a_sequence_gives_the_same_bits_alone_and_among_others() {
        let (width, heads) = (32, 2);
        let (qkv, dout) = (noise(60 * 3 * width, 5), noise(60 * width, 6));
        let [out, dqkv] = run(&qkv, width, heads, &[0..13, 13..50, 50..60], &dout);
        let [alone, dalone] = run(
            &qkv[13 * 3 * width..50 * 3 * width],
            width,
            heads,
            &[0..37],
            &dout[13 * width..50 * width],
        );
        assert_eq!(alone, out[13 * width..50 * width]);
        assert_eq!(dalone, dqkv[13 * 3 * width..50 * 3 * width]);
    }
}
