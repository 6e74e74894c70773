//! Recursion of Thought with large language models: what they are fine-tuned on, and models on servers as
//! generators.

mod client;
mod completion;
mod few_shot;
mod finetune;
mod journal;
mod remote;
mod spelling;
mod words;

pub use client::{RequestError, Server, Traffic};
pub use finetune::{ExportError, Exported, Finetune, Format, write_example};
pub use journal::JournalError;
pub use remote::{Remote, Watch};
pub use spelling::Spelling;
