//! Recursion of Thought with large language models: what they are fine-tuned on.

mod examples;
mod finetune;
mod words;

pub use examples::{Example, examples};
pub use finetune::{ExportError, Exported, Finetune, Format, write_example};
pub use words::{UnknownWord, parse_words, write_words};
