//! The Transformer token by token.
//!
//! It remembers keys and values of all tokens, in blocks with those of all layers, and the last rows
//! that convolutions look back to.

use super::{Activation, Placement, Transformer, TransformerConfig};
use crate::coordinates::Cursor;
use crate::kernels::convolution::convolution_resumed;
use crate::kernels::math::add;
use crate::kernels::matmul::{Into, Matrix};
use crate::kernels::norm::norm_forward;
use crate::kernels::panels::Panels;
use crate::kernels::remembered::{BLOCK, Remembered};
use crate::kernels::rows::{fill_rows, gate_forward, gather_rows, relu_forward};
use crate::transformer::parameters::{Linear, NormParams};
use crate::{Decoder, Memory, Network, Packed, UNSUPERVISED, Workspace};

/// A Transformer with its parameters, laid out for reading.
pub(super) struct TransformerDecoder {
    model: Transformer,
    params: Vec<f32>,
    /// The products on the way in and out of each branch.
    products: Vec<[Panels; 2]>,
    output: Panels,
    attention: Remembered,
    first: Option<FirstProduct>,
}

/// What the first product makes of every row that is added up to embed a token: where nothing stands
/// between, as in the paper's Transformer, the product of a sum is the sum of the products.
struct FirstProduct {
    /// Three times as many numbers as the tables that the parameters begin with.
    tables: Vec<f32>,
    /// Of positions, with the bias; or the bias alone.
    positions: Vec<f32>,
}

impl FirstProduct {
    fn new(model: &Transformer, params: &[f32], inward: &Panels) -> Option<FirstProduct> {
        let TransformerConfig { placement, convolution, width, .. } = model.config;
        if placement == Placement::Before || convolution > 0 {
            return None;
        }
        let tables = &params[..model.tables().end];
        let mut first = FirstProduct {
            tables: vec![0.0; 3 * tables.len()],
            positions: vec![0.0; 3 * model.sinusoids.len().max(width)],
        };
        inward.multiply(&mut first.tables, Into::Fresh, &[], tables);
        let bias = &params[model.branches[0].inward.bias.clone()];
        match model.sinusoids.as_slice() {
            [] => fill_rows(&mut first.positions, bias),
            rows => inward.multiply(&mut first.positions, Into::Fresh, bias, rows),
        }
        Some(first)
    }

    /// The product for some more tokens of a sequence.
    fn write(&self, model: &Transformer, ids: &[u8], cursor: Cursor, out: &mut [f32]) {
        let columns = 3 * model.config.width;
        for (row, position) in out.chunks_exact_mut(columns).zip(cursor.position..) {
            let start = if model.sinusoids.is_empty() { 0 } else { position * columns };
            row.copy_from_slice(&self.positions[start..start + columns]);
        }
        model.embedded(ids, &mut { cursor }, |t, row| {
            add(&mut out[t * columns..][..columns], &self.tables[3 * row.start..3 * row.end]);
        });
    }
}

impl TransformerDecoder {
    pub(super) fn new(model: &Transformer, params: &[f32]) -> TransformerDecoder {
        let (mut work, width) = (Workspace::default(), model.config.width);
        let mut panels = |linear: &Linear, columns: usize| {
            Panels::new(Matrix::new(&params[linear.weight.clone()], columns).t(), &mut work)
        };
        let branches = model.branches.iter();
        let products = branches.map(|branch| {
            let inside = branch.outward.weight.len() / width;
            [panels(&branch.inward, width), panels(&branch.outward, inside)]
        });
        let products: Vec<[Panels; 2]> = products.collect();
        TransformerDecoder {
            first: FirstProduct::new(model, params, &products[0][0]),
            products,
            output: panels(&model.output, width),
            attention: Remembered::new(width, model.config.heads),
            model: model.clone(),
            params: params.to_vec(),
        }
    }

    /// Where in the state of a memory the rows before a branch's convolution lie.
    fn tail(&self, index: usize) -> std::ops::Range<usize> {
        let len = self.model.config.convolution.saturating_sub(1) * self.model.config.width;
        index * len..(index + 1) * len
    }

    /// The embedded rows; makes room in the memories for what they will hold.
    fn embed(&self, batch: &Packed, memories: &mut [Memory], work: &mut Workspace) -> Vec<f32> {
        let model = &self.model;
        let mut x = work.take(batch.tokens() * model.config.width);
        let block = model.config.layers * self.attention.block_len();
        for (memory, sequence) in memories.iter_mut().zip(batch.sequences()) {
            let blocks = (memory.tokens() + sequence.len()).div_ceil(BLOCK);
            while memory.blocks.len() < blocks {
                memory.blocks.push(vec![0.0; block].into_boxed_slice());
            }
            memory.state.resize(self.tail(model.branches.len()).start, 0.0);
            let rows = sequence.start * model.config.width..sequence.end * model.config.width;
            let ids = &batch.ids()[sequence];
            // The memory itself moves on at the end.
            model.embed(&self.params, ids, &mut { memory.cursor }, &mut x[rows]);
        }
        x
    }

    /// The rows of tokens that have a target.
    fn asked(&self, x: Vec<f32>, batch: &Packed, work: &mut Workspace) -> Vec<f32> {
        let width = self.model.config.width;
        let mut asked = work.take(batch.supervised().count() * width);
        gather_rows(&mut asked, &x, width, batch);
        work.give(x);
        asked
    }

    fn norm(&self, norm: &NormParams, x: &[f32], work: &mut Workspace) -> Vec<f32> {
        let mut y = work.take(x.len());
        let mut stats = work.take(2 * x.len() / self.model.config.width);
        let (gain, bias) = (&self.params[norm.gain.clone()], &self.params[norm.bias.clone()]);
        norm_forward(self.model.config.norm, x, gain, bias, &mut y, &mut stats);
        work.give(stats);
        y
    }

    /// The convolution in front of a branch, over what the memories have kept of the rows before.
    fn convolve(
        &self,
        index: usize,
        x: &[f32],
        batch: &Packed,
        memories: &mut [Memory],
        work: &mut Workspace,
    ) -> Vec<f32> {
        let (width, tail) = (self.model.config.width, self.tail(index));
        let taps = &self.params[self.model.branches[index].taps.clone()];
        let mut y = work.take(x.len());
        for (memory, sequence) in memories.iter_mut().zip(batch.sequences()) {
            let rows = sequence.start * width..sequence.end * width;
            // The newest rows stand at the end.
            let kept = &mut memory.state[tail.clone()];
            let before = kept.len() - kept.len().min(memory.cursor.position * width);
            convolution_resumed(
                &x[rows.clone()],
                width,
                taps,
                &kept[before..],
                &mut y[rows.clone()],
            );
            let new = &x[rows];
            match new.len().checked_sub(kept.len()) {
                Some(older) => kept.copy_from_slice(&new[older..]),
                None => {
                    kept.copy_within(new.len().., 0);
                    let start = kept.len() - new.len();
                    kept[start..].copy_from_slice(new);
                }
            }
        }
        y
    }

    /// Passes rows through a branch and what stands around it; the last one keeps those that are asked
    /// for.
    fn branch(
        &self,
        index: usize,
        mut x: Vec<f32>,
        batch: &Packed,
        memories: &mut [Memory],
        work: &mut Workspace,
    ) -> Vec<f32> {
        let (model, params) = (&self.model, &self.params);
        let (width, branch, [inward, outward]) =
            (model.config.width, &model.branches[index], &self.products[index]);
        let mut seen = match model.config.placement {
            Placement::Before => Some(self.norm(&branch.norm, &x, work)),
            Placement::After => None,
        };
        if model.config.convolution > 0 {
            let input = seen.as_deref().unwrap_or(&x);
            let convolved = self.convolve(index, input, batch, memories, work);
            seen.replace(convolved).into_iter().for_each(|normed| work.give(normed));
        }
        // Rows that are not asked for are dropped as soon as nothing looks back at them any more: after
        // the last convolution, or the last attention.
        let last = model.branches.len() - 1;
        let drop_at = if model.config.convolution > 0 { last } else { last - 1 };
        if index == last && drop_at == last {
            x = self.asked(x, batch, work);
            seen = seen.map(|seen| self.asked(seen, batch, work));
        }
        let hidden = branch.inward.weight.len() / width;
        let input = seen.as_deref().unwrap_or(&x);
        let mut inner = work.take(input.len() / width * hidden);
        match &self.first {
            Some(first) if index == 0 => {
                for (memory, sequence) in memories.iter().zip(batch.sequences()) {
                    let rows = sequence.start * hidden..sequence.end * hidden;
                    first.write(model, &batch.ids()[sequence], memory.cursor, &mut inner[rows]);
                }
            }
            _ => {
                inward.multiply(
                    &mut inner,
                    Into::Fresh,
                    &params[branch.inward.bias.clone()],
                    input,
                );
            }
        }
        seen.into_iter().for_each(|seen| work.give(seen));
        let outer = if Transformer::is_attention(index) {
            let drops = index == drop_at;
            let mut outer = self.attend(index / 2, inner, batch, memories, drops, work);
            if drops {
                x = self.asked(x, batch, work);
                outer = self.asked(outer, batch, work);
            }
            outer
        } else {
            match model.config.activation {
                Activation::Relu => {
                    relu_forward(&mut inner);
                    inner
                }
                Activation::Gated => {
                    let mut outer = work.take(inner.len() / 2);
                    gate_forward(&inner, hidden / 2, &mut outer);
                    work.give(inner);
                    outer
                }
            }
        };
        outward.multiply(&mut x, Into::Sum, &params[branch.outward.bias.clone()], &outer);
        work.give(outer);
        match model.config.placement {
            Placement::Before => x,
            Placement::After => {
                let y = self.norm(&branch.norm, &x, work);
                work.give(x);
                y
            }
        }
    }

    fn attend(
        &self,
        layer: usize,
        mut qkv: Vec<f32>,
        batch: &Packed,
        memories: &mut [Memory],
        drops: bool,
        work: &mut Workspace,
    ) -> Vec<f32> {
        let width = self.model.config.width;
        if let Some(rotation) = &self.model.rotation {
            let coordinates = memories.iter().zip(batch.sequences());
            let coordinates = coordinates.flat_map(|(memory, sequence)| {
                let mut cursor = memory.cursor;
                self.model.turns(&batch.ids()[sequence], &mut cursor).collect::<Vec<_>>()
            });
            rotation.forward(&mut qkv, 3 * width, 2 * width, coordinates);
        }
        let block = self.attention.block_len();
        let at = layer * block..(layer + 1) * block;
        let mut out = work.take(batch.tokens() * width);
        for (memory, sequence) in memories.iter_mut().zip(batch.sequences()) {
            let out = &mut out[sequence.start * width..sequence.end * width];
            let qkv = &qkv[sequence.start * 3 * width..sequence.end * 3 * width];
            self.attention.remember(qkv, memory.tokens(), &mut memory.blocks, &at);
            // What comes before the first row that is asked for is dropped after the last attention.
            let first = if drops { asked_from(&batch.targets()[sequence]) } else { 0 };
            let (qkv, out) = (&qkv[first * 3 * width..], &mut out[first * width..]);
            self.attention.attend(qkv, memory.tokens() + first, &memory.blocks, &at, out, work);
        }
        work.give(qkv);
        out
    }
}

impl Decoder for TransformerDecoder {
    fn network(&self) -> &dyn Network {
        &self.model
    }

    fn read(
        &self,
        batch: &Packed,
        memories: &mut [Memory],
        work: &mut Workspace,
        logits: &mut Vec<f32>,
    ) {
        crate::decode::check(self, batch, memories);
        let model = &self.model;
        let mut x = self.embed(batch, memories, work);
        for index in 0..model.branches.len() {
            x = self.branch(index, x, batch, memories, work);
        }
        for (memory, sequence) in memories.iter_mut().zip(batch.sequences()) {
            model.places(&batch.ids()[sequence], &mut memory.cursor).for_each(drop);
        }
        if model.config.placement == Placement::Before {
            let normed = self.norm(&model.last_norm, &x, work);
            work.give(std::mem::replace(&mut x, normed));
        }
        logits.resize(x.len() / model.config.width * model.vocabulary, 0.0);
        let bias = &self.params[model.output.bias.clone()];
        self.output.multiply(logits, Into::Fresh, bias, &x);
        work.give(x);
    }
}

/// The first token of a sequence that has a target, or its length.
fn asked_from(targets: &[u8]) -> usize {
    targets.iter().position(|&target| target != UNSUPERVISED).unwrap_or(targets.len())
}
