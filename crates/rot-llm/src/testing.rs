//! A small Llama-shaped model for tests.

use rot_core::{Token, Vocabulary};
use rot_nn::kernels::norm::Norm;
use rot_nn::{Activation, Layout, Network, Placement, Positions, Transformer, TransformerConfig};
use rot_solve::roles;

use crate::Llama;

pub(crate) const CONFIG: TransformerConfig = TransformerConfig {
    layers: 2,
    width: 32,
    heads: 2,
    feed_forward: 24,
    norm: Norm::Rms,
    placement: Placement::Before,
    positions: Positions::Rotary,
    turn: 1.0,
    activation: Activation::Gated,
    bias: false,
    convolution: 0,
    digit_index: 0,
    number_index: 0,
    part_index: 0,
    zero_branches: false,
    limit: 64,
};

/// What a Llama-shaped view borrows.
pub(crate) struct Small {
    pub(crate) vocabulary: Vocabulary,
    pub(crate) params: Vec<f32>,
    network: Transformer,
}

impl Small {
    /// A model with every token, among them one that is not ASCII.
    pub(crate) fn new() -> Small {
        let vocabulary = Vocabulary::of(Token::ALL.iter().copied());
        let network = Transformer::new(&CONFIG, &roles(&vocabulary)).unwrap();
        // Every number is another, so that none can stand in another's place.
        let params = (0..network.layout().len()).map(|i| i as f32).collect();
        Small { vocabulary, params, network }
    }

    pub(crate) fn layout(&self) -> Layout {
        self.network.layout().clone()
    }

    pub(crate) fn llama(&self) -> Llama<'_> {
        Llama::new(&CONFIG, &self.layout(), &self.params, &self.vocabulary).unwrap()
    }
}
