//! Recursion of Thought with large language models: what they are fine-tuned on, and models of ours in
//! their formats.

mod examples;
mod finetune;
mod gguf;
mod hf;
mod llama;
#[cfg(test)]
mod testing;
mod words;

pub use examples::{Example, examples};
pub use finetune::{ExportError, Exported, Finetune, Format, write_example};
pub use gguf::write_gguf;
pub use hf::{HF_METADATA, HF_WEIGHTS, hf_tensor_name, hf_texts};
pub use llama::{Difference, Llama, LlamaError, Role, Summary, Weight};
pub use words::{UnknownWord, parse_words, write_words};
