//! What can go wrong with the files of a run. The cause of an error is its source, not its text.

use std::io;
use std::path::{Path, PathBuf};

use super::folder::RECIPE;

/// A file or a folder that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} '{}' ({})", path.display(), advice(source))]
pub struct FileError {
    /// What was tried: a verb.
    pub action: &'static str,
    /// The file or folder.
    pub path: PathBuf,
    /// Why it failed.
    pub source: io::Error,
}

impl FileError {
    /// Gives an error its place: `.map_err(FileError::at("read", path))`.
    pub(super) fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
        move |source| FileError { action, path: path.to_path_buf(), source }
    }
}

/// What to do about an error of the file system.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "check that the path exists",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "check its permissions, or use another folder"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room on the disk",
        io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory => {
            "choose another name, or remove what is there"
        }
        io::ErrorKind::Unsupported => "use a folder on a local disk",
        _ => "check the path and the disk",
    }
}

/// A checkpoint that cannot be written, read or used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The file system refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// A tensor cannot be kept under that name or with that shape.
    #[error(
        "'{}' cannot hold the tensor '{name}' of shape {shape:?} with {values} values: \
         give it another name, or as many values as the shape has elements",
        path.display()
    )]
    Unfit {
        /// Where it was to be written.
        path: PathBuf,
        /// The tensor's name.
        name: String,
        /// The shape it was given.
        shape: Vec<usize>,
        /// How many values it was given.
        values: usize,
    },
    /// The file is not a whole checkpoint.
    #[error(
        "'{}' is not a whole checkpoint: {what}; restore it from a copy, or delete it and use another",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The checkpoint is whole, but of something else.
    #[error(
        "the checkpoint '{}' does not fit: {what}; use the recipe that it was made with",
        path.display()
    )]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// What was expected.
        what: String,
    },
}

/// A run folder that cannot be used as asked.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The file system refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// A checkpoint cannot be written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A new run would overwrite another.
    #[error(
        "'{}' already holds a run, as it has {found}: \
         continue it with --resume, or use another folder",
        dir.display()
    )]
    Occupied {
        /// The folder.
        dir: PathBuf,
        /// What is there of a run.
        found: &'static str,
    },
    /// There is nothing to resume.
    #[error(
        "'{}' holds no run, as it has no {RECIPE}: check the path, or start a run without --resume",
        dir.display()
    )]
    NoRun {
        /// The folder.
        dir: PathBuf,
    },
    /// Another process trains into the folder.
    #[error(
        "another process is training into '{}': wait for it or stop it, or use another folder",
        dir.display()
    )]
    Locked {
        /// The folder.
        dir: PathBuf,
    },
    /// Going on from nothing would lose the run.
    #[error(
        "none of the {count} checkpoints in '{}' can be used: \
         restore one from a copy, or delete them to begin the run again",
        dir.display()
    )]
    NoneWhole {
        /// The folder of the checkpoints.
        dir: PathBuf,
        /// How many there are.
        count: usize,
        /// What is wrong with the newest.
        #[source]
        newest: CheckpointError,
    },
    /// A table cannot have that column.
    #[error(
        "'{}' cannot have the column '{column}': \
         give each a name of its own, without commas, quotes or line breaks",
        path.display()
    )]
    Column {
        /// The table.
        path: PathBuf,
        /// The column's name.
        column: String,
    },
    /// A row has too many values or too few.
    #[error(
        "the row of step {step} has {values} values, but '{}' has {columns} columns beside the \
         step: give a value for each",
        path.display()
    )]
    Values {
        /// The table.
        path: PathBuf,
        /// The step of the row.
        step: u64,
        /// How many values there are.
        values: usize,
        /// How many there should be.
        columns: usize,
    },
    /// A resumed run would write other columns than are there.
    #[error(
        "'{}' begins with '{found}', not with '{expected}': \
         use the recipe and the version that the run was started with, or another folder",
        path.display()
    )]
    Header {
        /// The table.
        path: PathBuf,
        /// Its first line, cut where it is long.
        found: String,
        /// The line it should have.
        expected: String,
    },
    /// A line of a table is not a row.
    #[error(
        "line {line} of '{}' is not a row of {columns} numbers that begins with a step: \
         delete the line",
        path.display()
    )]
    Row {
        /// The table.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// How many numbers it should have.
        columns: usize,
    },
}
