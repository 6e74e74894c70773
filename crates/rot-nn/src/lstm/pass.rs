//! A batch on its way through the layers of an LSTM and back.

use super::Lstm;
use super::steps::{Steps, within};
use crate::Workspace;
use crate::kernels::lstm_cell::{self, GatePanels};
use crate::kernels::math::add;
use crate::kernels::matmul::{Into, Matrix, matmul};
use crate::kernels::panels::Panels;
use crate::kernels::vectorised;

/// What a layer keeps for the way back, by time.
pub(super) struct Trace {
    /// `[tokens, columns]`: what the layer below put out, except in the first layer, then the
    /// layer's own state one step before.
    inputs: Vec<f32>,
    /// `[tokens, 4 hidden]`
    gates: Vec<f32>,
    /// `[sequences + tokens, hidden]`: what sequences start from comes first.
    pub(super) cells: Vec<f32>,
    /// `[tokens, hidden]`
    hidden: Vec<f32>,
}

impl Trace {
    pub(super) fn give(self, work: &mut Workspace) {
        for buffer in [self.inputs, self.gates, self.cells, self.hidden] {
            work.give(buffer);
        }
    }
}

/// What a layer multiplies with, laid out for its steps.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    gates: GatePanels,
    project: Panels,
    /// What the gates start from, `[kinds, 4 hidden]`: the bias, and in the first layer what comes
    /// from the embedding. There are only so many tokens: each is multiplied once, not everywhere it
    /// occurs.
    table: Vec<f32>,
}

impl Weights {
    pub(super) fn new(lstm: &Lstm, l: usize, params: &[f32], work: &mut Workspace) -> Weights {
        let h = lstm.config.hidden;
        let joined = joined(lstm, l, params, work);
        let gates = GatePanels::new(&joined, h, work);
        work.give(joined);
        let project = Matrix::new(&params[lstm.layers[l].weight_hr.clone()], h);
        Weights {
            gates,
            project: Panels::new(project.t(), work),
            table: table(lstm, l, params, work),
        }
    }

    pub(super) fn give(self, work: &mut Workspace) {
        self.gates.give(work);
        self.project.give(work);
        work.give(self.table);
    }
}

/// Where a layer starts: what it put out last and its cells, for each sequence, longest first.
pub(super) struct Start {
    /// `[sequences, vocabulary]`
    pub(super) state: Vec<f32>,
    /// `[sequences, hidden]`
    pub(super) cells: Vec<f32>,
}

impl Start {
    /// From nothing.
    pub(super) fn zero(lstm: &Lstm, steps: &Steps, work: &mut Workspace) -> Start {
        Start {
            state: work.take_zeroed(steps.sequences() * lstm.vocabulary),
            cells: work.take_zeroed(steps.sequences() * lstm.config.hidden),
        }
    }

    pub(super) fn give(self, work: &mut Workspace) {
        work.give(self.state);
        work.give(self.cells);
    }
}

/// One batch on its way.
pub(super) struct Pass<'a> {
    pub(super) lstm: &'a Lstm,
    pub(super) steps: Steps,
}

impl Pass<'_> {
    /// A layer: from `below [tokens, vocabulary]` to what it puts out, of the same shape.
    pub(super) fn forward(
        &self,
        l: usize,
        weights: &Weights,
        start: &Start,
        below: &[f32],
        work: &mut Workspace,
    ) -> (Trace, Vec<f32>) {
        let Pass { lstm, steps } = self;
        let (p, h, gates, columns) =
            (lstm.vocabulary, lstm.config.hidden, lstm.gates(), lstm.columns(l));
        let tokens = steps.tokens.len();
        let mut trace = Trace {
            inputs: work.take(tokens * columns),
            gates: work.take(tokens * gates),
            cells: work.take((steps.sequences() + tokens) * h),
            hidden: work.take(tokens * h),
        };
        let mut out = work.take(tokens * p);
        trace.cells[..steps.sequences() * h].copy_from_slice(&start.cells);

        for (t, rows) in steps.rows.iter().enumerate() {
            for (i, row) in rows.clone().enumerate() {
                let (input, state) =
                    trace.inputs[row * columns..][..columns].split_at_mut(columns - p);
                if l > 0 {
                    input.copy_from_slice(&below[row * p..][..p]);
                }
                state.copy_from_slice(match t {
                    0 => &start.state[i * p..][..p],
                    _ => &out[(steps.rows[t - 1].start + i) * p..][..p],
                });
            }
            let (before, cells) = steps.cells(t, h);
            let (old, new) = trace.cells.split_at_mut(cells.start);
            let (gates, hidden) =
                (&mut trace.gates[within(rows, gates)], &mut trace.hidden[within(rows, h)]);
            let from = lstm_cell::Inputs {
                inputs: &trace.inputs[within(rows, columns)],
                weight: &weights.gates,
                table: &weights.table,
                previous: &old[before],
            };
            let kind = |row| self.kind(l, rows.start + row);
            lstm_cell::forward(from, kind, gates, &mut new[..cells.len()], hidden);
            weights.project.multiply(&mut out[within(rows, p)], Into::Fresh, &[], hidden);
        }
        (trace, out)
    }

    /// The way back through a layer: adds the gradient of its parameters to `grads`, and turns `d_out
    /// [tokens, vocabulary]`, the gradient of what it put out, into that of what it took from below.
    pub(super) fn backward(
        &self,
        l: usize,
        params: &[f32],
        trace: &mut Trace,
        d_out: &mut [f32],
        grads: &mut [f32],
        work: &mut Workspace,
    ) {
        let Pass { lstm, steps } = self;
        let (p, h, gates, columns) =
            (lstm.vocabulary, lstm.config.hidden, lstm.gates(), lstm.columns(l));
        let weight_hr = &lstm.layers[l].weight_hr;
        let joined = joined(lstm, l, params, work);
        let weight = Panels::new(Matrix::new(&joined, columns), work);
        work.give(joined);
        let project = Panels::new(Matrix::new(&params[weight_hr.clone()], h), work);
        // What comes from one step later; nothing comes to the last step of a sequence.
        let mut d_state = work.take_zeroed(steps.sequences() * p);
        let mut d_cells = work.take_zeroed(steps.sequences() * h);
        let mut d_inputs = work.take(steps.tokens.len() * columns);

        for (t, rows) in steps.rows.iter().enumerate().rev() {
            let d_out = &mut d_out[within(rows, p)];
            add(d_out, &d_state[..d_out.len()]);
            let (before, cells) = steps.cells(t, h);
            let from = lstm_cell::Gradients {
                d_out,
                project: &project,
                previous: &trace.cells[before],
                cells: &trace.cells[cells],
            };
            let now = &mut trace.gates[within(rows, gates)];
            lstm_cell::backward(from, now, &mut d_cells[..rows.len() * h]);
            let d_inputs = &mut d_inputs[within(rows, columns)];
            weight.multiply(d_inputs, Into::Fresh, &[], now);
            for (to, from) in d_state.chunks_exact_mut(p).zip(d_inputs.chunks_exact(columns)) {
                to.copy_from_slice(&from[columns - p..]);
            }
        }
        let d_project = &mut grads[weight_hr.clone()];
        matmul(d_project, Into::Sum, Matrix::new(d_out, p).t(), Matrix::new(&trace.hidden, h));
        self.weights_backward(l, trace, grads, work);
        self.table_backward(l, params, &trace.gates, grads, work);
        if l > 0 {
            for (to, from) in d_out.chunks_exact_mut(p).zip(d_inputs.chunks_exact(columns)) {
                to.copy_from_slice(&from[..p]);
            }
        }
        for buffer in [d_inputs, d_cells, d_state] {
            work.give(buffer);
        }
        weight.give(work);
        project.give(work);
    }

    /// Adds the gradient of the joined weights. `trace.gates` holds that of the gates.
    fn weights_backward(&self, l: usize, trace: &Trace, grads: &mut [f32], work: &mut Workspace) {
        let (layer, p, columns) =
            (&self.lstm.layers[l], self.lstm.vocabulary, self.lstm.columns(l));
        let d_gates = Matrix::new(&trace.gates, self.lstm.gates());
        let mut joined = work.take(self.lstm.gates() * columns);
        matmul(&mut joined, Into::Fresh, d_gates.t(), Matrix::new(&trace.inputs, columns));
        let state = grads[layer.weight_hh.clone()].chunks_exact_mut(p);
        for (to, from) in state.zip(joined.chunks_exact(columns)) {
            add(to, &from[columns - p..]);
        }
        if l > 0 {
            let below = grads[layer.weight_ih.clone()].chunks_exact_mut(p);
            for (to, from) in below.zip(joined.chunks_exact(columns)) {
                add(to, &from[..p]);
            }
        }
        work.give(joined);
    }

    /// Adds the gradients of what the table is made of.
    fn table_backward(
        &self,
        l: usize,
        params: &[f32],
        d_gates: &[f32],
        grads: &mut [f32],
        work: &mut Workspace,
    ) {
        let (lstm, layer) = (self.lstm, &self.lstm.layers[l]);
        let gates = lstm.gates();
        let mut table = work.take_zeroed(kinds(lstm, l) * gates);
        vectorised(
            #[inline(always)]
            || {
                for (row, d_gates) in d_gates.chunks_exact(gates).enumerate() {
                    add(&mut table[self.kind(l, row) * gates..][..gates], d_gates);
                }
            },
        );
        for row in table.chunks_exact(gates) {
            add(&mut grads[layer.bias_ih.clone()], row);
            add(&mut grads[layer.bias_hh.clone()], row);
        }
        if l == 0 {
            let width = lstm.config.embedding;
            let embedding = Matrix::new(&params[lstm.embedding.clone()], width);
            let weight = Matrix::new(&params[layer.weight_ih.clone()], width);
            let table = Matrix::new(&table, gates);
            matmul(&mut grads[layer.weight_ih.clone()], Into::Sum, table.t(), embedding);
            matmul(&mut grads[lstm.embedding.clone()], Into::Sum, table, weight);
        }
        work.give(table);
    }

    /// The row of the table for a token.
    #[inline(always)]
    fn kind(&self, l: usize, row: usize) -> usize {
        if l == 0 { usize::from(self.steps.ids[row]) } else { 0 }
    }
}

/// The weights of a layer side by side, `[4 hidden, columns]`: a product with both at once reads
/// and writes the gates only once.
fn joined(lstm: &Lstm, l: usize, params: &[f32], work: &mut Workspace) -> Vec<f32> {
    let (layer, p, columns) = (&lstm.layers[l], lstm.vocabulary, lstm.columns(l));
    let mut joined = work.take(lstm.gates() * columns);
    let state = params[layer.weight_hh.clone()].chunks_exact(p);
    for (to, from) in joined.chunks_exact_mut(columns).zip(state) {
        to[columns - p..].copy_from_slice(from);
    }
    if l > 0 {
        let below = params[layer.weight_ih.clone()].chunks_exact(p);
        for (to, from) in joined.chunks_exact_mut(columns).zip(below) {
            to[..p].copy_from_slice(from);
        }
    }
    joined
}

/// See [`Weights::table`].
fn table(lstm: &Lstm, l: usize, params: &[f32], work: &mut Workspace) -> Vec<f32> {
    let layer = &lstm.layers[l];
    let mut table = work.take_zeroed(kinds(lstm, l) * lstm.gates());
    for row in table.chunks_exact_mut(lstm.gates()) {
        add(row, &params[layer.bias_ih.clone()]);
        add(row, &params[layer.bias_hh.clone()]);
    }
    if l == 0 {
        let width = lstm.config.embedding;
        let embedding = Matrix::new(&params[lstm.embedding.clone()], width);
        let weight = Matrix::new(&params[layer.weight_ih.clone()], width);
        matmul(&mut table, Into::Sum, embedding, weight.t());
    }
    table
}

/// How many rows the table of a layer has: one for each token id in the first layer.
fn kinds(lstm: &Lstm, l: usize) -> usize {
    if l == 0 { lstm.vocabulary } else { 1 }
}
