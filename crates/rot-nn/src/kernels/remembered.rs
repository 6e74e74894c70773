//! Attention of new tokens to all tokens before them, whose keys and values are remembered.
//!
//! They lie in blocks of sixteen tokens: `keys [width, 16]`, so that a column is a token, then `values
//! [16, width]`. A row of `qkv`, `[n, 3 width]`, holds queries, keys and values of all heads.

use std::array::from_mut;
use std::ops::Range;

use super::attention::exponentials;
use super::tile::{COLUMNS, Tile, add_panel, add_panels, add_product, add_side_by_side};
use super::{is_fused, vectorised};
use crate::Workspace;

/// Queries that are taken together.
const ROWS: usize = 4;

/// Sums that go on at the same time where a token is alone.
const CHAINS: usize = 4;

/// Tokens of a block.
pub const BLOCK: usize = COLUMNS;

/// Attention of a certain width and number of heads to what is remembered.
#[derive(Clone, Copy, Debug)]
pub struct Remembered {
    width: usize,
    heads: usize,
}

impl Remembered {
    /// The width is a multiple of 16 times the number of heads.
    pub fn new(width: usize, heads: usize) -> Remembered {
        Remembered { width, heads }
    }

    /// The numbers of a block.
    pub fn block_len(self) -> usize {
        2 * BLOCK * self.width
    }

    /// Puts the keys and values of new tokens, of which the first is at `position`, into the part `at`
    /// of each block.
    pub fn remember(
        self,
        qkv: &[f32],
        position: usize,
        blocks: &mut [Box<[f32]>],
        at: &Range<usize>,
    ) {
        let width = self.width;
        for (i, row) in qkv.chunks_exact(3 * width).enumerate() {
            let (block, column) = ((position + i) / BLOCK, (position + i) % BLOCK);
            let (keys, values) = blocks[block][at.clone()].split_at_mut(BLOCK * width);
            for (channel, &key) in row[width..2 * width].iter().enumerate() {
                keys[channel * BLOCK + column] = key;
            }
            values[column * width..][..width].copy_from_slice(&row[2 * width..]);
        }
    }

    /// Writes the attended values of new tokens, which have been [remembered](Remembered::remember), to
    /// `out [n, width]`.
    pub fn attend(
        self,
        qkv: &[f32],
        position: usize,
        blocks: &[Box<[f32]>],
        at: &Range<usize>,
        out: &mut [f32],
        work: &mut Workspace,
    ) {
        let new = out.len() / self.width;
        // Weights for some queries, or for all heads of one and a factor for each.
        let stride = (position + new).next_multiple_of(BLOCK);
        let mut weights = work.take((ROWS * stride).max(self.heads * (stride + 1)));
        if is_fused() {
            vectorised(
                #[inline(always)]
                || self.attend_all::<true>(qkv, position, blocks, at, out, &mut weights),
            );
        } else {
            self.attend_all::<false>(qkv, position, blocks, at, out, &mut weights);
        }
        work.give(weights);
    }

    #[inline(always)]
    fn attend_all<const FUSED: bool>(
        self,
        qkv: &[f32],
        position: usize,
        blocks: &[Box<[f32]>],
        at: &Range<usize>,
        out: &mut [f32],
        weights: &mut [f32],
    ) {
        let new = out.len() / self.width;
        let together = new - new % ROWS;
        for head in 0..self.heads {
            for row in (0..together).step_by(ROWS) {
                self.rows::<FUSED>(head, row, qkv, position, blocks, at, out, weights);
            }
        }
        for row in together..new {
            let qkv = &qkv[row * 3 * self.width..][..3 * self.width];
            let out = &mut out[row * self.width..][..self.width];
            self.row::<FUSED>(qkv, position + row, blocks, at, out, weights);
        }
    }

    /// All heads of one token, bit for bit as [`rows`](Remembered::rows) would compute them. A sum for a single token is a chain in which each number waits for the one
    /// before, so several go on at the same time.
    #[inline(always)]
    fn row<const FUSED: bool>(
        self,
        qkv: &[f32],
        position: usize,
        blocks: &[Box<[f32]>],
        at: &Range<usize>,
        out: &mut [f32],
        weights: &mut [f32],
    ) {
        let Remembered { width, heads } = self;
        let channels = width / heads;
        let scale = 1.0 / (channels as f32).sqrt();
        let seen = position + 1;
        let stride = seen.next_multiple_of(BLOCK);
        let blocks = &blocks[..stride / BLOCK];

        // A product for each head and each block.
        let products = heads * blocks.len();
        for first in (0..products).step_by(CHAINS) {
            let (mut queries, mut keys): ([&[f32]; CHAINS], [&[f32]; CHAINS]) = Default::default();
            for n in 0..CHAINS {
                // Where there are fewer left, the last is computed again.
                let product = (first + n).min(products - 1);
                let (head, block) = (product % heads, product / heads);
                queries[n] = &qkv[head * channels..][..channels];
                keys[n] = &blocks[block][at.start + head * channels * BLOCK..][..channels * BLOCK];
            }
            let mut tile: Tile<CHAINS> = [[0.0; COLUMNS]; CHAINS];
            add_panels::<FUSED, CHAINS>(&mut tile, queries, keys);
            for (n, products_of) in tile.iter().enumerate().take(products - first) {
                let (head, block) = ((first + n) % heads, (first + n) / heads);
                weights[head * stride + block * BLOCK..][..BLOCK].copy_from_slice(products_of);
            }
        }
        let (weights, inverses) = weights.split_at_mut(heads * stride);
        let inverses = &mut inverses[..heads];
        for (weights, inverse) in weights.chunks_exact_mut(stride).zip(inverses.iter_mut()) {
            *inverse = 1.0 / exponentials(&mut weights[..seen], scale).1;
        }
        let mut channel = 0;
        while channel + CHAINS * COLUMNS <= width {
            self.values::<FUSED, CHAINS>(channel, seen, blocks, at, weights, inverses, out);
            channel += CHAINS * COLUMNS;
        }
        while channel < width {
            self.values::<FUSED, 1>(channel, seen, blocks, at, weights, inverses, out);
            channel += COLUMNS;
        }
    }

    /// The attended values of one token in `N` times sixteen channels.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn values<const FUSED: bool, const N: usize>(
        self,
        channel: usize,
        seen: usize,
        blocks: &[Box<[f32]>],
        at: &Range<usize>,
        weights: &[f32],
        inverses: &[f32],
        out: &mut [f32],
    ) {
        let Remembered { width, heads } = self;
        let head = |n: usize| (channel + n * COLUMNS) / (width / heads);
        let stride = weights.len() / heads;
        let mut tile: Tile<N> = [[0.0; COLUMNS]; N];
        for (b, block) in blocks.iter().enumerate() {
            let tokens = BLOCK.min(seen - b * BLOCK);
            let mut of_block: [&[f32]; N] = [&[]; N];
            for (n, weights_of) in of_block.iter_mut().enumerate() {
                *weights_of = &weights[head(n) * stride + b * BLOCK..][..tokens];
            }
            let values = &block[at.start + BLOCK * width + channel..at.end];
            add_side_by_side::<FUSED, N>(&mut tile, of_block, values, width);
        }
        let out = out[channel..].chunks_exact_mut(COLUMNS);
        for (n, (out, sums)) in out.zip(&tile).enumerate() {
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = sum * inverses[head(n)];
            }
        }
    }

    /// One head of the new tokens `row..row + ROWS`.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn rows<const FUSED: bool>(
        self,
        head: usize,
        row: usize,
        qkv: &[f32],
        position: usize,
        blocks: &[Box<[f32]>],
        at: &Range<usize>,
        out: &mut [f32],
        weights: &mut [f32],
    ) {
        let Remembered { width, heads } = self;
        let channels = width / heads;
        let scale = 1.0 / (channels as f32).sqrt();
        let (first, seen) = (head * channels, position + row + ROWS);
        let stride = seen.next_multiple_of(BLOCK);

        let mut queries: [&[f32]; ROWS] = [&[]; ROWS];
        for (r, query) in queries.iter_mut().enumerate() {
            *query = &qkv[(row + r) * 3 * width + first..][..channels];
        }
        for (b, block) in blocks[..stride / BLOCK].iter().enumerate() {
            let keys = &block[at.start + first * BLOCK..][..channels * BLOCK];
            let mut tile: Tile<ROWS> = [[0.0; COLUMNS]; ROWS];
            add_panel::<FUSED, ROWS>(&mut tile, queries, keys);
            for (r, products) in tile.iter().enumerate() {
                weights[r * stride + b * BLOCK..][..BLOCK].copy_from_slice(products);
            }
        }
        let mut inverse = [0.0; ROWS];
        for (r, inverse) in inverse.iter_mut().enumerate() {
            let (past, future) = weights[r * stride..][..seen].split_at_mut(position + row + r + 1);
            *inverse = 1.0 / exponentials(past, scale).1;
            future.fill(0.0);
        }
        for channel in (first..first + channels).step_by(COLUMNS) {
            let mut tile: Tile<ROWS> = [[0.0; COLUMNS]; ROWS];
            for (b, block) in blocks[..stride / BLOCK].iter().enumerate() {
                let tokens = BLOCK.min(seen - b * BLOCK);
                let mut of_block: [&[f32]; ROWS] = [&[]; ROWS];
                for (r, weights_of) in of_block.iter_mut().enumerate() {
                    *weights_of = &weights[r * stride + b * BLOCK..][..tokens];
                }
                let values = &block[at.start + BLOCK * width + channel..at.end];
                add_product::<FUSED, ROWS, 1>(from_mut(&mut tile), of_block, values, width);
            }
            for (r, sums) in tile.iter().enumerate() {
                let out = &mut out[(row + r) * width + channel..][..COLUMNS];
                for (out, sum) in out.iter_mut().zip(sums) {
                    *out = sum * inverse[r];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::attention::Attention;
    use crate::kernels::testing::{assert_close, noise};

    #[test]
    fn tokens_read_in_any_parts_attend_as_those_read_at_once() {
        for (width, heads) in [(16, 1), (32, 2), (96, 3), (128, 8)] {
            any_parts(width, heads);
        }
    }

    fn any_parts(width: usize, heads: usize) {
        let length = 37;
        let (qkv, mut work) = (noise(length * 3 * width, 1), Workspace::default());
        let (mut expected, mut logs) = (vec![0.0; length * width], vec![0.0; length * heads]);
        let sequence = std::iter::once(0..length);
        let attention = Attention::new(width, heads);
        attention.forward(&qkv, sequence, &mut expected, &mut logs, &mut work);

        let remembered = Remembered::new(width, heads);
        let at = 3..3 + remembered.block_len();
        for parts in [vec![37], vec![1; 37], vec![5, 11, 1, 16, 4], vec![16, 21]] {
            let blocks = length.div_ceil(BLOCK);
            let mut blocks = vec![noise(at.end + 2, 2).into_boxed_slice(); blocks];
            let mut out = noise(length * width, 3);
            let mut position = 0;
            for new in parts {
                let qkv = &qkv[position * 3 * width..][..new * 3 * width];
                remembered.remember(qkv, position, &mut blocks, &at);
                let out = &mut out[position * width..][..new * width];
                remembered.attend(qkv, position, &blocks, &at, out, &mut work);
                position += new;
            }
            assert_close(&out, &expected, 1e-6);
            if is_fused() {
                assert_eq!(out, expected, "not one bit");
            }
        }
    }
}
