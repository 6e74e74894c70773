//! The tokens of a batch by time.

use std::ops::Range;

use crate::Packed;

/// Step `t` has the tokens at `t` of all sequences that are long enough, the longest sequence first
/// and equally long ones as in the batch: row `i` of a step belongs to the same sequence as row `i` of
/// every step before.
pub(super) struct Steps {
    /// Where each row lies in the batch.
    pub(super) tokens: Vec<usize>,
    /// The id of each row.
    pub(super) ids: Vec<u8>,
    /// The rows of each step.
    pub(super) rows: Vec<Range<usize>>,
    /// The sequences in the batch, longest first.
    pub(super) order: Vec<usize>,
}

impl Steps {
    pub(super) fn new(batch: &Packed) -> Steps {
        let mut sequences: Vec<(usize, Range<usize>)> = batch.sequences().enumerate().collect();
        sequences.sort_by_key(|(_, sequence)| std::cmp::Reverse(sequence.len()));
        let longest = sequences.first().map_or(0, |(_, sequence)| sequence.len());
        let (mut tokens, mut rows) = (Vec::with_capacity(batch.tokens()), vec![]);
        for t in 0..longest {
            let start = tokens.len();
            let long_enough = sequences.iter().take_while(|(_, sequence)| sequence.len() > t);
            tokens.extend(long_enough.map(|(_, sequence)| sequence.start + t));
            rows.push(start..tokens.len());
        }
        let ids = tokens.iter().map(|&token| batch.ids()[token]).collect();
        let order = sequences.into_iter().map(|(place, _)| place).collect();
        Steps { tokens, ids, rows, order }
    }

    pub(super) fn sequences(&self) -> usize {
        self.rows.first().map_or(0, Range::len)
    }

    /// Where in the cells of a [`Trace`](super::pass::Trace) the cells before and after step `t` lie.
    pub(super) fn cells(&self, t: usize, units: usize) -> (Range<usize>, Range<usize>) {
        let (rows, offset) = (&self.rows[t], self.sequences());
        let before = if t == 0 { 0 } else { offset + self.rows[t - 1].start };
        (
            within(&(before..before + rows.len()), units),
            within(&(offset + rows.start..offset + rows.end), units),
        )
    }

    /// The last row of each sequence, in their [order](Steps::order).
    pub(super) fn last_rows(&self) -> impl Iterator<Item = usize> {
        (0..self.sequences()).map(|i| {
            let steps = self.rows.partition_point(|rows| rows.len() > i);
            self.rows[steps - 1].start + i
        })
    }

    /// Rows by time, in the order of the batch.
    pub(super) fn by_sequence(&self, by_time: &[f32], by_sequence: &mut [f32], columns: usize) {
        for (row, &token) in by_time.chunks_exact(columns).zip(&self.tokens) {
            by_sequence[token * columns..][..columns].copy_from_slice(row);
        }
    }

    /// Rows in the order of the batch, by time.
    pub(super) fn by_time(&self, by_sequence: &[f32], by_time: &mut [f32], columns: usize) {
        for (row, &token) in by_time.chunks_exact_mut(columns).zip(&self.tokens) {
            row.copy_from_slice(&by_sequence[token * columns..][..columns]);
        }
    }
}

/// The elements of rows.
pub(super) fn within(rows: &Range<usize>, columns: usize) -> Range<usize> {
    rows.start * columns..rows.end * columns
}
