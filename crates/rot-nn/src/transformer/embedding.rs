//! What the Transformer makes of a token before its first branch: where it stands, and the rows of tables that
//! are added up for it.

use std::ops::Range;

use super::{Positions, Transformer};
use crate::coordinates::{Coordinates, Cursor};
use crate::kernels::math::add;
use crate::{Packed, Role};

impl Transformer {
    /// The tables of rows that are added up to embed a token, with which the parameters begin.
    pub(super) fn tables(&self) -> Range<usize> {
        let tables = [&self.embedding, &self.digit_index, &self.number_index, &self.part_index];
        0..tables.map(|table| table.end).into_iter().max().unwrap_or(0)
    }

    /// The coordinates of some more tokens of a sequence.
    pub(super) fn places(
        &self,
        ids: &[u8],
        cursor: &mut Cursor,
    ) -> impl Iterator<Item = Coordinates> {
        let role = |id: u8| self.roles.get(usize::from(id)).copied().unwrap_or(Role::Other);
        ids.iter().map(move |&id| cursor.step(id, role(id)))
    }

    /// What some more tokens of a sequence are turned by.
    pub(super) fn turns(
        &self,
        ids: &[u8],
        cursor: &mut Cursor,
    ) -> impl Iterator<Item = [usize; 3]> {
        let in_part = self.config.positions == Positions::Parts;
        self.places(ids, cursor).map(move |place| {
            let number = if in_part { place.number_in_part } else { place.number };
            [place.position, place.digit, number]
        })
    }

    /// What all tokens of a batch are turned by.
    pub(super) fn all_turns(&self, batch: &Packed) -> impl Iterator<Item = [usize; 3]> {
        batch.sequences().flat_map(|sequence| {
            let ids = &batch.ids()[sequence];
            self.turns(ids, &mut Cursor::default()).collect::<Vec<_>>()
        })
    }

    /// Calls `add` for each row of a table that is added to the row of a token, with where it lies among
    /// the parameters: the token's own, and those of its indices. Indices beyond a table count as its last.
    pub(super) fn embedded(
        &self,
        ids: &[u8],
        cursor: &mut Cursor,
        mut add: impl FnMut(usize, Range<usize>),
    ) {
        let width = self.config.width;
        let row = |table: &Range<usize>, index: usize| {
            let start = table.start + index.min(table.len() / width - 1) * width;
            start..start + width
        };
        for (t, (&id, place)) in ids.iter().zip(self.places(ids, cursor)).enumerate() {
            add(t, row(&self.embedding, usize::from(id)));
            if place.digit > 0 && !self.digit_index.is_empty() {
                add(t, row(&self.digit_index, place.digit - 1));
            }
            if !self.number_index.is_empty() {
                add(t, row(&self.number_index, place.number_in_part));
            }
            if !self.part_index.is_empty() {
                add(t, row(&self.part_index, place.part));
            }
        }
    }

    /// The rows of the embedding of some more tokens of a sequence, with sinusoidal positions if there
    /// are any.
    pub(super) fn embed(&self, params: &[f32], ids: &[u8], cursor: &mut Cursor, rows: &mut [f32]) {
        let width = self.config.width;
        match self.sinusoids.is_empty() {
            true => rows.fill(0.0),
            false => {
                rows.copy_from_slice(&self.sinusoids[cursor.position * width..][..rows.len()]);
            }
        }
        self.embedded(ids, cursor, |t, row| add(&mut rows[t * width..][..width], &params[row]));
    }

    pub(super) fn embed_backward(&self, batch: &Packed, dx: &[f32], grads: &mut [f32]) {
        let width = self.config.width;
        for sequence in batch.sequences() {
            let dx = &dx[sequence.start * width..];
            self.embedded(&batch.ids()[sequence], &mut Cursor::default(), |t, row| {
                add(&mut grads[row], &dx[t * width..][..width]);
            });
        }
    }
}

/// Positions as sines and cosines of many wave lengths, `[limit, width]`.
pub(super) fn sinusoids(limit: usize, width: usize) -> Vec<f32> {
    let value = |i: usize| {
        let (position, channel) = (i / width, i % width);
        let even = channel - channel % 2;
        let angle =
            position as f64 * libm::exp(-(even as f64) * libm::log(10_000.0) / width as f64);
        (if channel == even { libm::sin(angle) } else { libm::cos(angle) }) as f32
    };
    (0..limit * width).map(value).collect()
}
