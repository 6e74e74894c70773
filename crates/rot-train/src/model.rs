//! A trained model: what it computes, its parameters, and the tokens it knows.

use rot_core::Vocabulary;
use rot_nn::Network;

/// A network with its parameters and its vocabulary.
pub struct Model {
    /// What it computes.
    pub network: Box<dyn Network>,
    /// Its parameters, as the network's layout has them.
    pub params: Vec<f32>,
    /// The tokens it knows; a token's id is its rank.
    pub vocabulary: Vocabulary,
}
