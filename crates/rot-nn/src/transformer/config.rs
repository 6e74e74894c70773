//! The settings of the Transformer.

use serde::{Deserialize, Serialize};

use crate::kernels::norm::Norm;

/// About how many times slower the slowest angle of rotary positions is than the fastest.
pub const ROTARY_BASE: f64 = 10_000.0;

/// The settings of a Transformer. The default is the paper's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TransformerConfig {
    /// Layers of attention and feed-forward.
    pub layers: usize,
    /// Channels of a token.
    pub width: usize,
    /// Attention heads; each has a multiple of 16 channels.
    pub heads: usize,
    /// Channels inside the feed-forward branch.
    pub feed_forward: usize,
    /// Which norm.
    pub norm: Norm,
    /// Where it stands.
    pub placement: Placement,
    /// How positions are told apart.
    pub positions: Positions,
    /// Radians by which the fastest angle of rotary and structured positions turns from one token to the
    /// next: the more, the easier neighbours are told apart.
    pub turn: f64,
    /// What is between the two products of the feed-forward branch.
    pub activation: Activation,
    /// Whether products and norms have biases.
    pub bias: bool,
    /// Taps of the causal convolution in front of each branch; 0 for none.
    pub convolution: usize,
    /// Digits of a number told apart by an embedding of their index in it; 0 for none.
    pub digit_index: usize,
    /// Numbers of a part of the context, such as a question, told apart by an embedding of their index in it; 0
    /// for none.
    pub number_index: usize,
    /// Parts of a context told apart by an embedding of their index; 0 for none.
    pub part_index: usize,
    /// Whether branches start by adding nothing.
    pub zero_branches: bool,
    /// The most tokens in a context.
    pub limit: usize,
}

/// Where the norm of a branch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// After the sum of the branch and what it is added to.
    After,
    /// In front of the branch.
    Before,
}

/// How positions are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Positions {
    /// Sines and cosines added to the embedding.
    Sinusoidal,
    /// Queries and keys turned by their position.
    Rotary,
    /// Queries and keys turned by their position, by the index of a digit in its number, and by that of
    /// the number in the context, each in channels of its own.
    Structured,
    /// The same with the index of the number in its part, so that numbers in the same place of two questions or
    /// answers are turned alike.
    Parts,
    /// Not at all, but for convolutions and digit indices.
    None,
}

/// What is between the two products of the feed-forward branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// Negative numbers become zero.
    Relu,
    /// Half of the channels gate the other half: x sigmoid(x) y.
    Gated,
}

impl Default for TransformerConfig {
    fn default() -> Self {
        TransformerConfig {
            layers: 4,
            width: 128,
            heads: 2,
            feed_forward: 256,
            norm: Norm::Layer,
            placement: Placement::After,
            positions: Positions::Sinusoidal,
            turn: 1.0,
            activation: Activation::Relu,
            bias: true,
            convolution: 0,
            digit_index: 0,
            number_index: 0,
            part_index: 0,
            zero_branches: false,
            limit: 2048,
        }
    }
}
