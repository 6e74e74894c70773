//! The result of a cell, as a file of its own.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::ProblemSize;
use crate::run::{FileError, write_atomically};

/// The result of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Such as `mul-8-rot`.
    pub cell: String,
    /// What came of it.
    #[serde(flatten)]
    pub status: Status,
}

/// What came of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Status {
    /// It was tested.
    Measured(Measured),
    /// Its contexts do not fit.
    TooLong {
        /// Tokens of the longest context, a decimal number.
        needed: String,
        /// The most that fit.
        limit: usize,
    },
}

/// A test, and the network that was tested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Problems of the test, all different.
    pub problems: usize,
    /// Those with every step right.
    pub right: usize,
    /// The problems of the training; none in results from before a cell could share its network with other sizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trained_on: Vec<ProblemSize>,
    /// Steps of the training.
    pub steps: u64,
    /// Its seed.
    pub seed: u64,
    /// The file of the weights, if they were there before: their card says how they were made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
    /// Seconds of training, if it was trained for the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Threads that trained it then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// The day, as `2026-01-31`.
    pub date: String,
}

/// A result that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("'{path}' is not the result of a cell: {source}; remove it to have the cell run again")]
pub struct RecordError {
    path: String,
    source: serde_json::Error,
}

impl Record {
    /// Reads the result in a file; none if there is no such file.
    pub fn read(path: &Path) -> Result<Option<Record>, RecordError> {
        let Ok(text) = fs::read_to_string(path) else { return Ok(None) };
        let record = serde_json::from_str(&text);
        record.map(Some).map_err(|source| RecordError { path: path.display().to_string(), source })
    }

    /// Writes it, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        write_atomically(path, |file| {
            serde_json::to_writer_pretty(&mut *file, self)?;
            file.write_all(b"\n")
        })
    }
}
