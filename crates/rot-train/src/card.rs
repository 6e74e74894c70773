//! Cards: what is claimed of the weights beside them.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::ProblemSize;

/// The end of a card's file name.
const ENDING: &str = ".card.toml";

/// The card of a model. Recipe, seed and parameters stand in the weights themselves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// The file with the weights, beside the card.
    pub weights: PathBuf,
    /// How long the training took, on which machine.
    pub training: String,
    /// What was measured.
    pub claims: Vec<Claim>,
}

/// What was measured with problems of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The problems.
    pub problem: ProblemSize,
    /// The seed of the test set.
    pub seed: u64,
    /// How many different problems it has.
    pub problems: usize,
    /// How many of them were right, teacher-forced, with every step.
    pub right: usize,
    /// What came of the first of them when the model solved them on its own.
    pub free_run: Option<FreeRunClaim>,
}

/// What was measured in a free run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FreeRunClaim {
    /// How many problems the model solved.
    pub problems: usize,
    /// How many of the answers were right.
    pub right: usize,
}

/// A card that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CardError {
    /// A file or a folder cannot be read.
    #[error("cannot read '{}': {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file is no card.
    #[error("'{}' is not a card: {source}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: Box<toml::de::Error>,
    },
    /// A folder has none.
    #[error("there is no card in '{}': no file whose name ends in {ENDING}", path.display())]
    None {
        /// The folder.
        path: PathBuf,
    },
}

impl Card {
    /// The name of the file with the card of a model.
    pub fn file_name(model: &str) -> String {
        format!("{model}{ENDING}")
    }

    /// The card as it is written.
    pub fn to_toml(&self) -> String {
        // Fails only for values that TOML cannot hold, of which a card has none.
        toml::to_string(self).unwrap_or_default()
    }

    /// Reads a card, or all cards of a folder, in the order of their names. Each comes with where its
    /// weights are.
    pub fn read(path: &Path) -> Result<Vec<(PathBuf, Card)>, CardError> {
        let unreadable = |source| CardError::Read { path: path.to_path_buf(), source };
        if !path.is_dir() {
            return Ok(vec![Card::read_one(path)?]);
        }
        let mut files = Vec::new();
        for entry in fs::read_dir(path).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            if entry.file_name().to_string_lossy().ends_with(ENDING) {
                files.push(entry.path());
            }
        }
        if files.is_empty() {
            return Err(CardError::None { path: path.to_path_buf() });
        }
        files.sort_unstable();
        files.iter().map(|file| Card::read_one(file)).collect()
    }

    fn read_one(path: &Path) -> Result<(PathBuf, Card), CardError> {
        let text = fs::read_to_string(path)
            .map_err(|source| CardError::Read { path: path.to_path_buf(), source })?;
        let card: Card = toml::from_str(&text).map_err(|source| CardError::Wrong {
            path: path.to_path_buf(),
            source: Box::new(source),
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Ok((folder.join(&card.weights), card))
    }
}
