//! Recursion of Thought with large language models: what they are fine-tuned on, models on servers as
//! generators, and models of ours in their formats.

mod client;
mod completion;
mod few_shot;
mod finetune;
mod gguf;
mod hf;
mod journal;
mod llama;
mod remote;
mod spelling;
#[cfg(test)]
mod testing;
mod traffic;
mod words;

pub use client::Server;
pub use finetune::{ExportError, Exported, Finetune, Format, write_example};
pub use gguf::write_gguf;
pub use hf::{HF_METADATA, HF_WEIGHTS, hf_tensor_name, hf_texts};
pub use journal::JournalError;
pub use llama::{Difference, Llama, LlamaError, Role, Summary, Weight};
pub use remote::Remote;
pub use spelling::Spelling;
pub use traffic::{Counts, Traffic};
