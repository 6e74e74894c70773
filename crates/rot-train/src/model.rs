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

// Placeholder: opening models from files.

impl Model {
    /// Opens a weights file, or the best checkpoint of a run folder.
    pub fn open(path: &std::path::Path) -> Result<Model, ModelError> {
        Err(ModelError { path: path.display().to_string() })
    }
}

/// Why a model could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot open the model '{path}'")]
pub struct ModelError {
    /// What was to be opened.
    pub path: String,
}
