//! A trained model: what it computes, its parameters, and the tokens it knows.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rot_core::{Vocabulary, VocabularyError};
use rot_nn::Network;
use rot_solve::{Native, Oracle};

use crate::recipe::{Recipe, RecipeError};
use crate::run::{Checkpoint, CheckpointError, Snapshot, best_weights};

/// A network with its parameters and its vocabulary.
pub struct Model {
    /// What it computes.
    pub network: Arc<dyn Network>,
    /// Its parameters, as the network's layout has them.
    pub params: Vec<f32>,
    /// The tokens it knows; a token's id is its rank.
    pub vocabulary: Vocabulary,
    /// How it was made.
    pub recipe: Recipe,
}

/// One model for all nine problems; its card is beside it.
const EMBEDDED: &[u8] = include_bytes!("../../../models/nine.safetensors");

/// The notes of a weights file.
pub(crate) const RECIPE: &str = "recipe";
pub(crate) const VOCABULARY: &str = "vocabulary";

impl Model {
    /// Opens a weights file, or the best weights of a run folder.
    pub fn open(path: &Path) -> Result<Model, ModelError> {
        let file = if path.is_dir() { best_weights(path) } else { path.to_path_buf() };
        Model::from_checkpoint(&file, Checkpoint::load(&file)?)
    }

    /// The model that is part of every program built with this crate.
    pub fn embedded() -> Result<Model, ModelError> {
        let path = Path::new("models/nine.safetensors");
        Model::from_checkpoint(path, Checkpoint::from_bytes(path, EMBEDDED)?)
    }

    fn from_checkpoint(file: &Path, mut checkpoint: Checkpoint) -> Result<Model, ModelError> {
        let unfit = |what: String| ModelError::Unfit { path: file.to_path_buf(), what };
        let vocabulary: Vocabulary = checkpoint
            .note(VOCABULARY)?
            .parse()
            .map_err(|error: VocabularyError| unfit(format!("its vocabulary: {error}")))?;
        let recipe = Recipe::parse(checkpoint.note(RECIPE)?)
            .map_err(|error: RecipeError| unfit(format!("its recipe: {error}")))?;
        let network = recipe
            .model
            .network(&vocabulary)
            .map_err(|error| unfit(format!("its recipe: {error}")))?;
        let params = checkpoint.take_layout("", network.layout())?;
        Ok(Model { network, params, vocabulary, recipe })
    }

    /// A hash of everything that decides what the model says.
    pub fn fingerprint(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.vocabulary.to_string().as_bytes());
        hasher.update(&[0]);
        // As text: what is at its default is said as well.
        let model = Recipe { model: self.recipe.model.clone(), ..Recipe::default() };
        hasher.update(model.to_toml().as_bytes());
        hasher.update(&[0]);
        for param in &self.params {
            hasher.update(&param.to_le_bytes());
        }
        *hasher.finalize().as_bytes()
    }

    /// The model as a generator whose memories take up to so many bytes. With `draft` the ground truth
    /// drafts what it says; see [`Native::with_drafter`].
    pub fn generator(&self, memory: usize, draft: bool) -> Native {
        let decoder = self.network.decoder(&self.params);
        let native = Native::new(decoder, self.vocabulary.clone(), memory);
        match draft {
            true => {
                let oracle = Oracle::new(rot_problems::PROBLEMS, self.network.limit());
                native.with_drafter(Box::new(oracle))
            }
            false => native,
        }
    }

    /// What a weights file holds.
    pub fn snapshot(&self) -> Snapshot<'_> {
        let mut snapshot = Snapshot::default();
        snapshot.add_layout("", self.network.layout(), &self.params);
        snapshot.note(RECIPE, self.recipe.to_toml());
        snapshot.note(VOCABULARY, self.vocabulary.to_string());
        snapshot
    }
}

/// Why a model cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The file cannot be read, or is damaged, or is something else.
    #[error(transparent)]
    File(#[from] CheckpointError),
    /// The file is whole, and yet no model of ours.
    #[error("'{}' holds no model that can be used: {what}", path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}
