//! The folder of a run: what training leaves on disk, and how it goes on after any interruption.
//!
//! A process may be killed at any instruction. What it leaves is either the old state or the new:
//! files are replaced [atomically](write_atomically), a [`RunFolder`] belongs to one process at a
//! time, and [`Metrics`] of steps that a resumed run does again are taken back. Equal state gives
//! equal bytes, so an interrupted and resumed run can be compared with an uninterrupted one.
//!
//! ```
//! use rot_train::run::{Metrics, RunFolder, Snapshot, write_atomically};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let temporary = tempfile::tempdir()?;
//! # let dir = temporary.path().join("run");
//! use std::io::Write;
//!
//! let folder = RunFolder::create(&dir)?;
//! write_atomically(&folder.recipe(), |writer| writer.write_all(b"steps = 1000\n"))?;
//! let mut metrics = Metrics::create(&folder, &["loss"], &["seconds"])?;
//! metrics.append(1000, &[0.25], &[61.7])?;
//! let weights = [1.0, 2.0];
//! let mut snapshot = Snapshot::default();
//! snapshot.add("weights", &[2], &weights);
//! metrics.sync()?;
//! folder.save_checkpoint(1000, &snapshot)?;
//! # drop(metrics);
//! drop(folder);
//!
//! let folder = RunFolder::open(&dir)?;
//! let mut newest = folder.newest_checkpoint()?.ok_or("no checkpoint yet")?;
//! assert_eq!(newest.step, 1000);
//! assert_eq!(newest.checkpoint.take("weights", &[2])?, weights);
//! let metrics = Metrics::resume(&folder, &["loss"], &["seconds"], newest.step)?;
//! # Ok(())
//! # }
//! ```

mod atomic;
mod checkpoint;
mod error;
mod events;
mod folder;
mod metrics;
mod table;

pub use atomic::{create_folder_atomically, write_atomically};
pub use checkpoint::{Checkpoint, Precision, Snapshot};
pub use error::{CheckpointError, FileError, RunError};
pub use folder::{KEPT_CHECKPOINTS, Newest, RunFolder, best_weights, holds_run, last_timing};
pub use metrics::Metrics;
