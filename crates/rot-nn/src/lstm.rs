//! The LSTM of the paper: stacked cells whose states are projected to the size of the vocabulary.
//!
//! It computes what PyTorch's `nn.LSTM` with `proj_size` does on an `nn.Embedding`: the projected
//! state of the last layer is the logits, without a layer for the output.
//!
//! Inside, the tokens of a batch lie by time: first the first tokens of all sequences, then all
//! second ones, and so on, longest sequence first. So a step is a few rows in a row, the rows that go
//! on are always the first ones, and nothing is padded. See [`Steps`].
//!
//! ```
//! use rot_nn::{Lstm, LstmConfig, Network, Packed, Workspace};
//!
//! # fn main() -> Result<(), rot_nn::ConfigError> {
//! let lstm = Lstm::new(&LstmConfig { hidden: 8, layers: 2, ..LstmConfig::default() }, 5)?;
//! let mut batch = Packed::default();
//! batch.push(&[1, 2, 3], &[2, 3, 4]);
//! let mut logits = vec![];
//! let params = lstm.layout().initial(0);
//! lstm.logits(&params, &batch, &mut Workspace::default(), &mut logits);
//! assert_eq!(logits.len(), 3 * 5);
//! # Ok(())
//! # }
//! ```

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::kernels::loss::cross_entropy;
use crate::kernels::lstm_cell;
use crate::kernels::math::add;
use crate::kernels::matmul::{Into, Matrix, matmul};
use crate::kernels::panels::{multiply, pack, panels_len};
use crate::kernels::vectorised;
use crate::{ConfigError, Initial, Layout, Network, Packed, Score, Workspace};

/// The size of an [`Lstm`]. The paper's by default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LstmConfig {
    /// How many numbers stand for a token.
    pub embedding: usize,
    /// How many units a layer has.
    pub hidden: usize,
    /// How many layers there are.
    pub layers: usize,
    /// The most tokens in a sequence.
    pub limit: usize,
}

impl Default for LstmConfig {
    fn default() -> LstmConfig {
        LstmConfig { embedding: 64, hidden: 256, layers: 4, limit: 512 }
    }
}

/// An LSTM without its parameters.
#[derive(Clone, Debug)]
pub struct Lstm {
    config: LstmConfig,
    vocabulary: usize,
    layout: Layout,
    embedding: Range<usize>,
    layers: Vec<Layer>,
}

/// Where the parameters of a layer lie. Gates are in PyTorch's order: input, forget, candidate,
/// output.
#[derive(Clone, Debug)]
struct Layer {
    /// `[4 hidden, inputs]`
    weight_ih: Range<usize>,
    /// `[4 hidden, vocabulary]`
    weight_hh: Range<usize>,
    /// `[4 hidden]`
    bias_ih: Range<usize>,
    /// `[4 hidden]`
    bias_hh: Range<usize>,
    /// `[vocabulary, hidden]`
    weight_hr: Range<usize>,
}

/// What a layer keeps for the way back, by time.
struct Trace {
    /// `[tokens, columns]`: what the layer below put out, except in the first layer, then the
    /// layer's own state one step before.
    inputs: Vec<f32>,
    /// `[tokens, 4 hidden]`
    gates: Vec<f32>,
    /// `[sequences + tokens, hidden]`: the zeros that sequences start from come first.
    cells: Vec<f32>,
    /// `[tokens, hidden]`
    hidden: Vec<f32>,
}

impl Trace {
    fn give(self, work: &mut Workspace) {
        for buffer in [self.inputs, self.gates, self.cells, self.hidden] {
            work.give(buffer);
        }
    }
}

impl Lstm {
    /// An LSTM for so many tokens.
    pub fn new(config: &LstmConfig, vocabulary: usize) -> Result<Lstm, ConfigError> {
        let LstmConfig { embedding: width, hidden, layers, limit } = *config;
        ConfigError::check("vocabulary", vocabulary, 1..=usize::from(crate::UNSUPERVISED))?;
        ConfigError::check("embedding", width, 1..=65_536)?;
        ConfigError::check("hidden", hidden, 1..=65_536)?;
        ConfigError::check("layers", layers, 1..=1_000)?;
        ConfigError::check("limit", limit, 1..=1_048_576)?;
        let mut layout = Layout::default();
        let embedding = layout.add("embedding.weight", &[vocabulary, width], Initial::Normal(1.0));
        let initial = Initial::Uniform((1.0 / (hidden as f64).sqrt()) as f32);
        let layers = (0..layers)
            .map(|l| {
                let inputs = if l == 0 { width } else { vocabulary };
                let name = |part: &str| format!("lstm.{part}_l{l}");
                let gates = 4 * hidden;
                let weight_ih =
                    layout.add_matrices(name("weight_ih"), &[gates, inputs], initial, 4);
                let weight_hh =
                    layout.add_matrices(name("weight_hh"), &[gates, vocabulary], initial, 4);
                let bias_ih = layout.add(name("bias_ih"), &[gates], initial);
                let bias_hh = layout.add(name("bias_hh"), &[gates], initial);
                let (name, shape) = (name("weight_hr"), [vocabulary, hidden]);
                // The last one makes logits, not a hidden state.
                let weight_hr = if l + 1 == config.layers {
                    layout.add(name, &shape, initial)
                } else {
                    layout.add_matrices(name, &shape, initial, 1)
                };
                Layer { weight_ih, weight_hh, bias_ih, bias_hh, weight_hr }
            })
            .collect();
        Ok(Lstm { config: config.clone(), vocabulary, layout, embedding, layers })
    }

    /// Its size.
    pub fn config(&self) -> &LstmConfig {
        &self.config
    }

    /// The length of a row of gates.
    fn gates(&self) -> usize {
        4 * self.config.hidden
    }

    /// The columns of what a layer multiplies at each token; see [`Trace::inputs`].
    fn columns(&self, l: usize) -> usize {
        if l == 0 { self.vocabulary } else { 2 * self.vocabulary }
    }
}

/// One batch on its way through the layers and back.
struct Pass<'a> {
    lstm: &'a Lstm,
    params: &'a [f32],
    steps: Steps,
}

impl Pass<'_> {
    /// The logits, by time. What the layers keep is for `keep`.
    fn run(&self, work: &mut Workspace, mut keep: impl FnMut(Trace, &mut Workspace)) -> Vec<f32> {
        let mut out = vec![];
        for l in 0..self.lstm.layers.len() {
            let (trace, above) = self.forward(l, &out, work);
            if l > 0 {
                work.give(out);
            }
            out = above;
            keep(trace, work);
        }
        out
    }

    /// A layer: from `below [tokens, vocabulary]` to what it puts out, of the same shape.
    fn forward(&self, l: usize, below: &[f32], work: &mut Workspace) -> (Trace, Vec<f32>) {
        let Pass { lstm, params, steps } = self;
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
        trace.cells[..steps.sequences() * h].fill(0.0);

        // Laid out once, not in the product of each step.
        let joined = self.joined(l, work);
        let mut weight = work.take(lstm_cell::gates_len(columns, h));
        lstm_cell::pack_gates(&mut weight, &joined, h);
        let mut project = work.take(panels_len(h, p));
        pack(&mut project, Matrix::new(&params[lstm.layers[l].weight_hr.clone()], h).t());
        let table = self.table(l, work);

        for (t, rows) in steps.rows.iter().enumerate() {
            for (i, row) in rows.clone().enumerate() {
                let (input, state) =
                    trace.inputs[row * columns..][..columns].split_at_mut(columns - p);
                if l > 0 {
                    input.copy_from_slice(&below[row * p..][..p]);
                }
                match t {
                    0 => state.fill(0.0),
                    _ => state.copy_from_slice(&out[(steps.rows[t - 1].start + i) * p..][..p]),
                }
            }
            let (before, cells) = steps.cells(t, h);
            let (old, new) = trace.cells.split_at_mut(cells.start);
            let (gates, hidden) =
                (&mut trace.gates[within(rows, gates)], &mut trace.hidden[within(rows, h)]);
            let from = lstm_cell::Inputs {
                inputs: &trace.inputs[within(rows, columns)],
                weight: &weight,
                table: &table,
                previous: &old[before],
                units: h,
            };
            let kind = |row| self.kind(l, rows.start + row);
            lstm_cell::forward(from, kind, gates, &mut new[..cells.len()], hidden);
            multiply(&mut out[within(rows, p)], hidden, &project, h, p);
        }
        for buffer in [table, project, weight, joined] {
            work.give(buffer);
        }
        (trace, out)
    }

    /// The way back through a layer: adds the gradient of its parameters to `grads`, and turns `d_out
    /// [tokens, vocabulary]`, the gradient of what it put out, into that of what it took from below.
    fn backward(
        &self,
        l: usize,
        trace: &mut Trace,
        d_out: &mut [f32],
        grads: &mut [f32],
        work: &mut Workspace,
    ) {
        let Pass { lstm, params, steps } = self;
        let (p, h, gates, columns) =
            (lstm.vocabulary, lstm.config.hidden, lstm.gates(), lstm.columns(l));
        let weight_hr = &lstm.layers[l].weight_hr;
        let joined = self.joined(l, work);
        let mut weight = work.take(panels_len(gates, columns));
        pack(&mut weight, Matrix::new(&joined, columns));
        let mut project = work.take(panels_len(p, h));
        pack(&mut project, Matrix::new(&params[weight_hr.clone()], h));
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
                units: h,
            };
            let now = &mut trace.gates[within(rows, gates)];
            lstm_cell::backward(from, now, &mut d_cells[..rows.len() * h]);
            let d_inputs = &mut d_inputs[within(rows, columns)];
            multiply(d_inputs, now, &weight, gates, columns);
            for (to, from) in d_state.chunks_exact_mut(p).zip(d_inputs.chunks_exact(columns)) {
                to.copy_from_slice(&from[columns - p..]);
            }
        }
        let d_project = &mut grads[weight_hr.clone()];
        matmul(d_project, Into::Sum, Matrix::new(d_out, p).t(), Matrix::new(&trace.hidden, h));
        self.weights_backward(l, trace, grads, work);
        self.table_backward(l, &trace.gates, grads, work);
        if l > 0 {
            for (to, from) in d_out.chunks_exact_mut(p).zip(d_inputs.chunks_exact(columns)) {
                to.copy_from_slice(&from[..p]);
            }
        }
        for buffer in [d_inputs, d_cells, d_state, project, weight, joined] {
            work.give(buffer);
        }
    }

    /// The weights of a layer side by side, `[4 hidden, columns]`: a product with both at once reads
    /// and writes the gates only once.
    fn joined(&self, l: usize, work: &mut Workspace) -> Vec<f32> {
        let (layer, p, columns) =
            (&self.lstm.layers[l], self.lstm.vocabulary, self.lstm.columns(l));
        let mut joined = work.take(self.lstm.gates() * columns);
        let state = self.params[layer.weight_hh.clone()].chunks_exact(p);
        for (to, from) in joined.chunks_exact_mut(columns).zip(state) {
            to[columns - p..].copy_from_slice(from);
        }
        if l > 0 {
            let below = self.params[layer.weight_ih.clone()].chunks_exact(p);
            for (to, from) in joined.chunks_exact_mut(columns).zip(below) {
                to[..p].copy_from_slice(from);
            }
        }
        joined
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

    /// What the gates of a layer start from, `[kinds, 4 hidden]`: the bias, and in the first layer
    /// what comes from the embedding. There are only so many tokens: each is multiplied once, not
    /// everywhere it occurs.
    fn table(&self, l: usize, work: &mut Workspace) -> Vec<f32> {
        let (lstm, layer, params) = (self.lstm, &self.lstm.layers[l], self.params);
        let mut table = work.take_zeroed(self.kinds(l) * lstm.gates());
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

    /// Adds the gradients of what the table is made of.
    fn table_backward(&self, l: usize, d_gates: &[f32], grads: &mut [f32], work: &mut Workspace) {
        let (lstm, layer, params) = (self.lstm, &self.lstm.layers[l], self.params);
        let gates = lstm.gates();
        let mut table = work.take_zeroed(self.kinds(l) * gates);
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

    /// How many rows the table of a layer has: one for each token id in the first layer.
    fn kinds(&self, l: usize) -> usize {
        if l == 0 { self.lstm.vocabulary } else { 1 }
    }

    /// The row of the table for a token.
    #[inline(always)]
    fn kind(&self, l: usize, row: usize) -> usize {
        if l == 0 { usize::from(self.steps.ids[row]) } else { 0 }
    }
}

impl Network for Lstm {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    fn limit(&self) -> usize {
        self.config.limit
    }

    /// Counts the model's products as if the first layer multiplied every token, so that speeds can
    /// be compared with those of others.
    fn flops(&self, batch: &Packed) -> u64 {
        let weights =
            |layer: &Layer| layer.weight_ih.len() + layer.weight_hh.len() + layer.weight_hr.len();
        2 * (batch.tokens() * self.layers.iter().map(weights).sum::<usize>()) as u64
    }

    fn logits(&self, params: &[f32], batch: &Packed, work: &mut Workspace, logits: &mut Vec<f32>) {
        let pass = Pass { lstm: self, params, steps: Steps::new(batch) };
        let out = pass.run(work, Trace::give);
        logits.resize(out.len(), 0.0);
        pass.steps.by_sequence(&out, logits, self.vocabulary);
        work.give(out);
    }

    fn learn(
        &self,
        params: &[f32],
        batch: &Packed,
        scale: f32,
        grads: &mut [f32],
        work: &mut Workspace,
    ) -> Score {
        let pass = Pass { lstm: self, params, steps: Steps::new(batch) };
        let mut traces = vec![];
        let mut out = pass.run(work, |trace, _| traces.push(trace));
        let mut logits = work.take(out.len());
        pass.steps.by_sequence(&out, &mut logits, self.vocabulary);
        let score = cross_entropy(&mut logits, self.vocabulary, batch, scale);
        pass.steps.by_time(&logits, &mut out, self.vocabulary);
        work.give(logits);
        for (l, trace) in traces.iter_mut().enumerate().rev() {
            pass.backward(l, trace, &mut out, grads, work);
        }
        work.give(out);
        for trace in traces.into_iter().rev() {
            trace.give(work);
        }
        score
    }
}

/// The tokens of a batch by time.
///
/// Step `t` has the tokens at `t` of all sequences that are long enough, the longest sequence first
/// and equally long ones as in the batch: row `i` of a step belongs to the same sequence as row `i` of
/// every step before.
struct Steps {
    /// Where each row lies in the batch.
    tokens: Vec<usize>,
    /// The id of each row.
    ids: Vec<u8>,
    /// The rows of each step.
    rows: Vec<Range<usize>>,
}

impl Steps {
    fn new(batch: &Packed) -> Steps {
        let mut sequences: Vec<Range<usize>> = batch.sequences().collect();
        sequences.sort_by_key(|sequence| std::cmp::Reverse(sequence.len()));
        let longest = sequences.first().map_or(0, Range::len);
        let (mut tokens, mut rows) = (Vec::with_capacity(batch.tokens()), vec![]);
        for t in 0..longest {
            let start = tokens.len();
            let long_enough = sequences.iter().take_while(|sequence| sequence.len() > t);
            tokens.extend(long_enough.map(|sequence| sequence.start + t));
            rows.push(start..tokens.len());
        }
        let ids = tokens.iter().map(|&token| batch.ids()[token]).collect();
        Steps { tokens, ids, rows }
    }

    fn sequences(&self) -> usize {
        self.rows.first().map_or(0, Range::len)
    }

    /// Where in [`Trace::cells`] the cells before and after step `t` lie.
    fn cells(&self, t: usize, units: usize) -> (Range<usize>, Range<usize>) {
        let (rows, offset) = (&self.rows[t], self.sequences());
        let before = if t == 0 { 0 } else { offset + self.rows[t - 1].start };
        (
            within(&(before..before + rows.len()), units),
            within(&(offset + rows.start..offset + rows.end), units),
        )
    }

    /// Rows by time, in the order of the batch.
    fn by_sequence(&self, by_time: &[f32], by_sequence: &mut [f32], columns: usize) {
        for (row, &token) in by_time.chunks_exact(columns).zip(&self.tokens) {
            by_sequence[token * columns..][..columns].copy_from_slice(row);
        }
    }

    /// Rows in the order of the batch, by time.
    fn by_time(&self, by_sequence: &[f32], by_time: &mut [f32], columns: usize) {
        for (row, &token) in by_time.chunks_exact_mut(columns).zip(&self.tokens) {
            row.copy_from_slice(&by_sequence[token * columns..][..columns]);
        }
    }
}

/// The elements of rows.
fn within(rows: &Range<usize>, columns: usize) -> Range<usize> {
    rows.start * columns..rows.end * columns
}

#[cfg(test)]
mod tests;
