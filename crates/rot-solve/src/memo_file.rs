//! Answers on disk, for the next run: an embedded database, whole after a kill at any moment.
//!
//! An answer belongs to a question and to the model that gave it, so several models can share a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::{Database, ReadableDatabase, TableDefinition};
use rot_core::Token;

use crate::memo::Tokens;

/// The model's hash and the question's tokens, then the answer's.
const ANSWERS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("answers 1");

/// Answers that are written at once.
const BATCH: usize = 4096;

/// A file of answers.
pub struct MemoFile {
    path: PathBuf,
    database: Database,
    model: [u8; 32],
    /// What was learned and not written yet.
    new: Vec<(Tokens, Tokens)>,
}

/// Why a file of answers cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} the memo '{}': {source}; use another file, or none", path.display())]
pub struct MemoError {
    /// What was tried: a verb.
    pub action: &'static str,
    /// The file.
    pub path: PathBuf,
    /// Why it failed.
    pub source: Box<redb::Error>,
}

impl MemoFile {
    /// Opens a file, or makes one, for the model with that hash.
    pub fn open(path: &Path, model: [u8; 32]) -> Result<MemoFile, MemoError> {
        let database = Database::create(path).map_err(at("open", path))?;
        Ok(MemoFile { path: path.to_path_buf(), database, model, new: Vec::new() })
    }

    /// The answer to a question, if it is there.
    pub fn get(&self, question: &[Token]) -> Result<Option<Tokens>, MemoError> {
        let read = || -> Result<Option<Tokens>, redb::Error> {
            let transaction = self.database.begin_read()?;
            let table = match transaction.open_table(ANSWERS) {
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
                table => table?,
            };
            let found = table.get(self.key(question).as_slice())?;
            Ok(found.and_then(|answer| tokens(answer.value())))
        };
        read().map_err(at("read", &self.path))
    }

    /// Takes an answer, and writes it now or with later ones.
    pub fn put(&mut self, question: Tokens, answer: Tokens) -> Result<(), MemoError> {
        self.new.push((question, answer));
        if self.new.len() >= BATCH { self.save() } else { Ok(()) }
    }

    /// Writes what was put.
    pub fn save(&mut self) -> Result<(), MemoError> {
        if self.new.is_empty() {
            return Ok(());
        }
        let write = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            {
                let mut table = transaction.open_table(ANSWERS)?;
                for (question, answer) in &self.new {
                    let answer: Vec<u8> = answer.iter().map(|token| token.index() as u8).collect();
                    table.insert(self.key(question).as_slice(), answer.as_slice())?;
                }
            }
            Ok(transaction.commit()?)
        };
        write().map_err(at("write", &self.path))?;
        self.new.clear();
        Ok(())
    }

    fn key(&self, question: &[Token]) -> Vec<u8> {
        let question = question.iter().map(|token| token.index() as u8);
        self.model.iter().copied().chain(question).collect()
    }
}

/// Gives an error its place.
fn at<E: Into<redb::Error>>(action: &'static str, path: &Path) -> impl FnOnce(E) -> MemoError {
    move |error| MemoError { action, path: path.to_path_buf(), source: Box::new(error.into()) }
}

/// Tokens from their places in the canonical order; nothing if one is not there, or STOP not at the end.
fn tokens(places: &[u8]) -> Option<Tokens> {
    let token = |&place: &u8| Token::ALL.get(usize::from(place)).copied();
    let tokens: Arc<[Token]> = places.iter().map(token).collect::<Option<_>>()?;
    (tokens.last() == Some(&Token::STOP)).then_some(tokens)
}
