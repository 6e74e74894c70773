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
//! use rot_nn::{Lstm, LstmConfig, Memory, Network, Packed, Workspace};
//!
//! # fn main() -> Result<(), rot_nn::ConfigError> {
//! let lstm = Lstm::new(&LstmConfig { hidden: 8, layers: 2, ..LstmConfig::default() }, 5)?;
//! let mut batch = Packed::default();
//! batch.push(&[1, 2, 3], &[2, 3, 4]);
//! let mut logits = vec![];
//! let params = lstm.layout().initial(0);
//! let decoder = lstm.decoder(&params);
//! decoder.read(&batch, &mut [Memory::default()], &mut Workspace::default(), &mut logits);
//! assert_eq!(logits.len(), 3 * 5);
//! # Ok(())
//! # }
//! ```

mod decode;
mod pass;
mod steps;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use self::decode::LstmDecoder;
use self::pass::{Pass, Start, Weights};
use self::steps::Steps;
use crate::kernels::loss::cross_entropy;
use crate::{ConfigError, Decoder, Initial, Layout, Network, Packed, Score, Workspace};

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
    /// Tokens that units remember at most before they have learnt how long to; with 0 they begin as PyTorch's,
    /// which forget half from token to token.
    pub memory: usize,
}

impl Default for LstmConfig {
    fn default() -> LstmConfig {
        LstmConfig { embedding: 64, hidden: 256, layers: 4, limit: 512, memory: 0 }
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

impl Lstm {
    /// An LSTM for so many tokens.
    pub fn new(config: &LstmConfig, vocabulary: usize) -> Result<Lstm, ConfigError> {
        let LstmConfig { embedding: width, hidden, layers, limit, memory } = *config;
        ConfigError::check("vocabulary", vocabulary, 1..=usize::from(crate::UNSUPERVISED))?;
        ConfigError::check("embedding", width, 1..=65_536)?;
        ConfigError::check("hidden", hidden, 1..=65_536)?;
        ConfigError::check("layers", layers, 1..=1_000)?;
        ConfigError::check("limit", limit, 1..=1_048_576)?;
        ConfigError::check("memory", memory, 0..=1_048_576)?;
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
                let bias_hh = match memory {
                    0 => layout.add(name("bias_hh"), &[gates], initial),
                    tokens => layout.add(name("bias_hh"), &[gates], Initial::Memory(tokens)),
                };
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

    /// The columns of what a layer multiplies at each token; see [`Trace`](pass::Trace).
    fn columns(&self, l: usize) -> usize {
        if l == 0 { self.vocabulary } else { 2 * self.vocabulary }
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

    fn decoder(&self, params: &[f32]) -> Box<dyn Decoder> {
        Box::new(LstmDecoder::new(self, params))
    }

    fn learn(
        &self,
        params: &[f32],
        batch: &Packed,
        scale: f32,
        grads: &mut [f32],
        work: &mut Workspace,
    ) -> Score {
        let pass = Pass { lstm: self, steps: Steps::new(batch) };
        let start = Start::zero(self, &pass.steps, work);
        let (mut traces, mut out) = (vec![], vec![]);
        for l in 0..self.layers.len() {
            let weights = Weights::new(self, l, params, work);
            let (trace, above) = pass.forward(l, &weights, &start, &out, work);
            traces.push(trace);
            weights.give(work);
            work.give(std::mem::replace(&mut out, above));
        }
        start.give(work);
        let mut logits = work.take(out.len());
        pass.steps.by_sequence(&out, &mut logits, self.vocabulary);
        let score = cross_entropy(&mut logits, self.vocabulary, batch, scale);
        pass.steps.by_time(&logits, &mut out, self.vocabulary);
        work.give(logits);
        for (l, trace) in traces.iter_mut().enumerate().rev() {
            pass.backward(l, params, trace, &mut out, grads, work);
        }
        work.give(out);
        for trace in traces.into_iter().rev() {
            trace.give(work);
        }
        score
    }
}

#[cfg(test)]
mod tests;
