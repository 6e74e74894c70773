//! The Transformer: the paper's, and its better configurations as settings of the same model.
//!
//! A token becomes a row of `width` numbers, which passes through layers of two branches each:
//! attention, then feed-forward. A branch adds to the row; where the norm stands is a setting:
//!
//! ```text
//! after (the paper):   x -> norm(x + branch(x))
//! before:              x -> x + branch(norm(x)), and a last norm in front of the output
//! ```
//!
//! Names and shapes of parameters are PyTorch's, so that weights can be exchanged with it.

mod config;
mod decode;
mod embedding;
mod parameters;

use std::ops::Range;

pub use self::config::{Activation, Placement, Positions, ROTARY_BASE, TransformerConfig};
use self::decode::TransformerDecoder;
use self::embedding::sinusoids;
use self::parameters::{Branch, Builder, Linear, NormParams};

use crate::coordinates::Cursor;
use crate::kernels::attention::Attention;
use crate::kernels::convolution::{convolution_backward, convolution_forward};
use crate::kernels::loss::cross_entropy;
use crate::kernels::math::add;
use crate::kernels::matmul::Into;
use crate::kernels::norm::{norm_backward, norm_forward};
use crate::kernels::rotary::Rotation;
use crate::kernels::rows::{
    add_to_rows, fill_rows, gate_backward, gate_forward, gather_rows, relu_backward, relu_forward,
    scatter_rows,
};
use crate::{ConfigError, Decoder, Initial, Layout, Network, Packed, Role, Score, Workspace};

/// A Transformer without its parameters.
#[derive(Clone, Debug)]
pub struct Transformer {
    config: TransformerConfig,
    vocabulary: usize,
    /// What each id is to those that count.
    roles: Vec<Role>,
    layout: Layout,
    embedding: Range<usize>,
    digit_index: Range<usize>,
    number_index: Range<usize>,
    part_index: Range<usize>,
    /// Two a layer: attention, feed-forward.
    branches: Vec<Branch>,
    last_norm: NormParams,
    output: Linear,
    attention: Attention,
    rotation: Option<Rotation>,
    /// `[limit, width]`, or empty.
    sinusoids: Vec<f32>,
}

impl Transformer {
    /// A Transformer for a vocabulary, given as the roles of its ids.
    pub fn new(config: &TransformerConfig, roles: &[Role]) -> Result<Transformer, ConfigError> {
        let TransformerConfig {
            layers,
            width,
            heads,
            feed_forward,
            limit,
            convolution,
            digit_index,
            number_index,
            part_index,
            turn,
            ..
        } = *config;
        let vocabulary = roles.len();
        ConfigError::check("vocabulary", vocabulary, 1..=usize::from(crate::UNSUPERVISED))?;
        ConfigError::check("layers", layers, 1..=1_000)?;
        ConfigError::check("width", width, 16..=65_536)?;
        ConfigError::check("feed_forward", feed_forward, 1..=262_144)?;
        ConfigError::check("limit", limit, 1..=1_048_576)?;
        ConfigError::check("convolution", convolution, 0..=64)?;
        ConfigError::check("digit_index", digit_index, 0..=1_048_576)?;
        ConfigError::check("number_index", number_index, 0..=1_048_576)?;
        ConfigError::check("part_index", part_index, 0..=1_048_576)?;
        if heads == 0 || !width.is_multiple_of(heads) || !(width / heads).is_multiple_of(16) {
            return Err(ConfigError::Heads { width, heads });
        }

        if !(turn > 0.0 && turn < std::f64::consts::PI) {
            return Err(ConfigError::Turn { value: turn });
        }

        let mut builder = Builder { config, layout: Layout::default() };
        let initial = Initial::Normal(1.0);
        let embedding = builder.table("embedding.weight", vocabulary, initial);
        let digit_index = builder.table("digit_index.weight", digit_index, initial);
        let number_index = builder.table("number_index.weight", number_index, initial);
        let part_index = builder.table("part_index.weight", part_index, initial);
        let branches = (0..layers).flat_map(|layer| builder.layer(layer)).collect();
        let last_norm = match config.placement {
            Placement::Before => builder.norm("norm"),
            Placement::After => NormParams { gain: 0..0, bias: 0..0 },
        };
        let output = builder.output(vocabulary);
        let layout = builder.layout;

        let pairs = width / heads / 2;
        let rotation = match config.positions {
            Positions::Rotary => Some(Rotation::new(limit, turn, &[(pairs, ROTARY_BASE)])),
            Positions::Structured | Positions::Parts => {
                // Numbers are short and few beside contexts.
                let axes =
                    [(pairs - 2 * (pairs / 4), ROTARY_BASE), (pairs / 4, 64.0), (pairs / 4, 64.0)];
                Some(Rotation::new(limit + 1, turn, &axes))
            }
            Positions::Sinusoidal | Positions::None => None,
        };
        let sinusoids = match config.positions {
            Positions::Sinusoidal => sinusoids(limit, width),
            _ => Vec::new(),
        };
        Ok(Transformer {
            config: config.clone(),
            vocabulary,
            roles: roles.to_vec(),
            layout,
            embedding,
            digit_index,
            number_index,
            part_index,
            branches,
            last_norm,
            output,
            attention: Attention::new(width, heads),
            rotation,
            sinusoids,
        })
    }

    /// Its settings.
    pub fn config(&self) -> &TransformerConfig {
        &self.config
    }
}

/// What a branch leaves for the backward pass.
#[derive(Default)]
struct BranchTape {
    /// The row that enters, `[n, width]`.
    x: Vec<f32>,
    /// What the norm in front of the branch gives, if it stands there and is not what enters the branch.
    normed: Vec<f32>,
    /// What the branch itself sees, if it is not `x`.
    seen: Vec<f32>,
    /// The sum that the norm after the branch takes, if it stands there.
    sum: Vec<f32>,
    /// Mean and inverse deviation, `[n, 2]`.
    stats: Vec<f32>,
    /// What the inward product gives: queries, keys and values, or hidden channels.
    inner: Vec<f32>,
    /// What the outward product takes, unless it is `inner`.
    outer: Vec<f32>,
    /// Logarithms of attention, `[n, heads]`.
    logs: Vec<f32>,
}

impl BranchTape {
    fn give(self, work: &mut Workspace) {
        let BranchTape { x, normed, seen, sum, stats, inner, outer, logs } = self;
        [x, normed, seen, sum, stats, inner, outer, logs]
            .into_iter()
            .for_each(|buffer| work.give(buffer));
    }
}

impl Network for Transformer {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    fn limit(&self) -> usize {
        self.config.limit
    }

    fn flops(&self, batch: &Packed) -> u64 {
        let linear = |linear: &Linear| linear.weight.len();
        let products = |branch: &Branch| linear(&branch.inward) + linear(&branch.outward);
        let (last, others) = match self.branches.split_last() {
            Some((last, others)) => (products(last), others.iter().map(products).sum()),
            None => (0, 0),
        };
        let supervised = batch.supervised().count();
        // A token attends to itself and to those before it, once for weights and once for values.
        let pairs: usize =
            batch.sequences().map(|sequence| sequence.len() * (sequence.len() + 1) / 2).sum();
        let attention = 2 * pairs * self.config.width * self.config.layers;
        let asked = supervised * (last + linear(&self.output));
        2 * (batch.tokens() * others + asked + attention) as u64
    }

    fn decoder(&self, params: &[f32]) -> Box<dyn Decoder> {
        Box::new(TransformerDecoder::new(self, params))
    }

    fn learn(
        &self,
        params: &[f32],
        batch: &Packed,
        scale: f32,
        grads: &mut [f32],
        work: &mut Workspace,
    ) -> Score {
        if batch.supervised().next().is_none() {
            return Score::default();
        }
        let width = self.config.width;
        let mut tapes: Vec<BranchTape> = Vec::with_capacity(self.branches.len());
        let mut x = work.take(batch.tokens() * width);
        for sequence in batch.sequences() {
            let rows = &mut x[sequence.start * width..sequence.end * width];
            self.embed(params, &batch.ids()[sequence], &mut Cursor::default(), rows);
        }
        for index in 0..self.branches.len() {
            let mut tape = BranchTape::default();
            x = self.branch_forward(index, params, batch, x, &mut tape, work);
            tapes.push(tape);
        }
        let mut last = BranchTape::default();
        let normed = self.last_norm_forward(params, x, &mut last, work);
        let mut logits = work.take(normed.len() / width * self.vocabulary);
        self.output_forward(params, &normed, &mut logits);

        let mut all = work.take(batch.tokens() * self.vocabulary);
        scatter_rows(&mut all, &logits, self.vocabulary, batch);
        let score = cross_entropy(&mut all, self.vocabulary, batch, scale);
        gather_rows(&mut logits, &all, self.vocabulary, batch);
        work.give(all);
        self.output.learn(&normed, width, &logits, grads);
        let mut dx = work.take(normed.len());
        self.output.backward(params, width, &logits, Into::Fresh, &mut dx);
        work.give(logits);
        work.give(normed);
        if self.config.placement == Placement::Before {
            dx = self.norm_back(&self.last_norm, params, &last.x, &last.stats, dx, grads, work);
        }
        last.give(work);
        for (index, tape) in tapes.into_iter().enumerate().rev() {
            dx = self.branch_backward(index, params, batch, &tape, dx, grads, work);
            tape.give(work);
        }
        self.embed_backward(batch, &dx, grads);
        work.give(dx);
        score
    }
}

impl Transformer {
    fn output_forward(&self, params: &[f32], x: &[f32], logits: &mut [f32]) {
        fill_rows(logits, &params[self.output.bias.clone()]);
        self.output.forward(params, x, self.config.width, logits);
    }

    /// The norm in front of the output, where norms stand before branches.
    fn last_norm_forward(
        &self,
        params: &[f32],
        x: Vec<f32>,
        tape: &mut BranchTape,
        work: &mut Workspace,
    ) -> Vec<f32> {
        match self.config.placement {
            Placement::After => x,
            Placement::Before => {
                let y = self.norm(&self.last_norm, params, &x, tape, work);
                tape.x = x;
                y
            }
        }
    }

    fn norm(
        &self,
        norm: &NormParams,
        params: &[f32],
        x: &[f32],
        tape: &mut BranchTape,
        work: &mut Workspace,
    ) -> Vec<f32> {
        let mut y = work.take(x.len());
        tape.stats = work.take(2 * x.len() / self.config.width);
        let (gain, bias) = (&params[norm.gain.clone()], &params[norm.bias.clone()]);
        norm_forward(self.config.norm, x, gain, bias, &mut y, &mut tape.stats);
        y
    }

    /// The gradient of a norm's input, in a buffer of its own.
    #[allow(clippy::too_many_arguments)]
    fn norm_back(
        &self,
        norm: &NormParams,
        params: &[f32],
        x: &[f32],
        stats: &[f32],
        dy: Vec<f32>,
        grads: &mut [f32],
        work: &mut Workspace,
    ) -> Vec<f32> {
        let mut dx = work.take_zeroed(dy.len());
        self.norm_add(norm, params, x, stats, &dy, &mut dx, grads);
        work.give(dy);
        dx
    }

    /// Adds the gradient of a norm's input to `dx`.
    #[allow(clippy::too_many_arguments)]
    fn norm_add(
        &self,
        norm: &NormParams,
        params: &[f32],
        x: &[f32],
        stats: &[f32],
        dy: &[f32],
        dx: &mut [f32],
        grads: &mut [f32],
    ) {
        let gain = &params[norm.gain.clone()];
        // The gain lies in front of its bias.
        let part = &mut grads[norm.gain.start..norm.gain.end.max(norm.bias.end)];
        let (dgain, dbias) = part.split_at_mut(norm.gain.len());
        norm_backward(self.config.norm, x, gain, stats, dy, dx, dgain, dbias);
    }

    fn is_attention(index: usize) -> bool {
        index.is_multiple_of(2)
    }

    /// Whether it is the last branch. After its convolution nothing looks at other rows than those of
    /// tokens that have a target, so only these go on.
    fn is_last(&self, index: usize) -> bool {
        index + 1 == self.branches.len()
    }

    fn gather(&self, x: &[f32], batch: &Packed, work: &mut Workspace) -> Vec<f32> {
        let mut rows = work.take(batch.supervised().count() * self.config.width);
        gather_rows(&mut rows, x, self.config.width, batch);
        rows
    }

    fn scatter(&self, rows: Vec<f32>, batch: &Packed, work: &mut Workspace) -> Vec<f32> {
        let mut x = work.take(batch.tokens() * self.config.width);
        scatter_rows(&mut x, &rows, self.config.width, batch);
        work.give(rows);
        x
    }

    /// Passes rows through a branch and what stands around it.
    fn branch_forward(
        &self,
        index: usize,
        params: &[f32],
        batch: &Packed,
        x: Vec<f32>,
        tape: &mut BranchTape,
        work: &mut Workspace,
    ) -> Vec<f32> {
        let (width, branch) = (self.config.width, &self.branches[index]);
        let mut seen = match self.config.placement {
            Placement::Before => self.norm(&branch.norm, params, &x, tape, work),
            Placement::After => Vec::new(),
        };
        if self.config.convolution > 0 {
            tape.normed = seen;
            let input = if tape.normed.is_empty() { &x } else { &tape.normed };
            seen = work.take(x.len());
            convolution_forward(
                input,
                width,
                &params[branch.taps.clone()],
                &batch.sequences(),
                &mut seen,
            );
        }
        tape.seen = seen;
        tape.x = x;
        if self.is_last(index) {
            let seen =
                self.gather(if tape.seen.is_empty() { &tape.x } else { &tape.seen }, batch, work);
            work.give(std::mem::replace(&mut tape.seen, seen));
        }
        let input = if tape.seen.is_empty() { &tape.x } else { &tape.seen };

        let hidden = branch.inward.weight.len() / width;
        tape.inner = work.take(input.len() / width * hidden);
        fill_rows(&mut tape.inner, &params[branch.inward.bias.clone()]);
        branch.inward.forward(params, input, width, &mut tape.inner);
        let inside = branch.outward.weight.len() / width;
        if Self::is_attention(index) {
            if let Some(rotation) = &self.rotation {
                rotation.forward(&mut tape.inner, hidden, 2 * width, self.all_turns(batch));
            }
            tape.outer = work.take(batch.tokens() * width);
            tape.logs = work.take(batch.tokens() * self.config.heads);
            self.attention.forward(
                &tape.inner,
                batch.sequences(),
                &mut tape.outer,
                &mut tape.logs,
                work,
            );
        } else {
            match self.config.activation {
                Activation::Relu => relu_forward(&mut tape.inner),
                Activation::Gated => {
                    tape.outer = work.take(tape.inner.len() / 2);
                    gate_forward(&tape.inner, inside, &mut tape.outer);
                }
            }
        }
        let outer = if tape.outer.is_empty() { &tape.inner } else { &tape.outer };
        let mut sum = if self.is_last(index) {
            self.gather(&tape.x, batch, work)
        } else {
            let mut sum = work.take(tape.x.len());
            sum.copy_from_slice(&tape.x);
            sum
        };
        add_to_rows(&mut sum, &params[branch.outward.bias.clone()]);
        branch.outward.forward(params, outer, inside, &mut sum);
        match self.config.placement {
            Placement::Before => sum,
            Placement::After => {
                let y = self.norm(&branch.norm, params, &sum, tape, work);
                tape.sum = sum;
                y
            }
        }
    }

    /// Takes the gradient of what a branch and its surroundings give to the gradient of what enters.
    #[allow(clippy::too_many_arguments)]
    fn branch_backward(
        &self,
        index: usize,
        params: &[f32],
        batch: &Packed,
        tape: &BranchTape,
        dy: Vec<f32>,
        grads: &mut [f32],
        work: &mut Workspace,
    ) -> Vec<f32> {
        let (width, branch) = (self.config.width, &self.branches[index]);
        let mut dsum = match self.config.placement {
            Placement::Before => dy,
            Placement::After => {
                self.norm_back(&branch.norm, params, &tape.sum, &tape.stats, dy, grads, work)
            }
        };
        let inside = branch.outward.weight.len() / width;
        let outer = if tape.outer.is_empty() { &tape.inner } else { &tape.outer };
        branch.outward.learn(outer, inside, &dsum, grads);
        let mut douter = work.take(outer.len());
        branch.outward.backward(params, inside, &dsum, Into::Fresh, &mut douter);
        let dinner = if Self::is_attention(index) {
            let mut dinner = work.take(tape.inner.len());
            self.attention.backward(
                &tape.inner,
                batch.sequences(),
                &tape.outer,
                &tape.logs,
                &douter,
                &mut dinner,
                work,
            );
            if let Some(rotation) = &self.rotation {
                rotation.backward(&mut dinner, 3 * width, 2 * width, self.all_turns(batch));
            }
            work.give(douter);
            dinner
        } else {
            match self.config.activation {
                Activation::Relu => {
                    relu_backward(&tape.inner, &mut douter);
                    douter
                }
                Activation::Gated => {
                    let mut dinner = work.take(tape.inner.len());
                    gate_backward(&tape.inner, inside, &douter, &mut dinner);
                    work.give(douter);
                    dinner
                }
            }
        };
        let input = if tape.seen.is_empty() { &tape.x } else { &tape.seen };
        branch.inward.learn(input, width, &dinner, grads);
        if tape.seen.is_empty() {
            branch.inward.backward(params, width, &dinner, Into::Sum, &mut dsum);
            work.give(dinner);
            return dsum;
        }
        let mut dseen = work.take(dsum.len());
        branch.inward.backward(params, width, &dinner, Into::Fresh, &mut dseen);
        work.give(dinner);
        if self.is_last(index) {
            dseen = self.scatter(dseen, batch, work);
            dsum = self.scatter(dsum, batch, work);
        }
        if self.config.convolution > 0 {
            let input = if tape.normed.is_empty() { &tape.x } else { &tape.normed };
            let mut dinput = work.take(dseen.len());
            let (taps, dtaps) = (&params[branch.taps.clone()], &mut grads[branch.taps.clone()]);
            convolution_backward(
                input,
                width,
                taps,
                &batch.sequences(),
                &dseen,
                &mut dinput,
                dtaps,
            );
            work.give(std::mem::replace(&mut dseen, dinput));
        }
        match self.config.placement {
            Placement::Before => {
                self.norm_add(&branch.norm, params, &tape.x, &tape.stats, &dseen, &mut dsum, grads);
            }
            Placement::After => add(&mut dsum, &dseen),
        }
        work.give(dseen);
        dsum
    }
}

#[cfg(test)]
mod tests;
