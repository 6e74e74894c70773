//! The parts that everything else is made of: tokens and vocabularies, what a problem is, the graph
//! of its thoughts, and the contexts that models see.
//!
//! A [`Problem`] thinks: from a question and the answers so far it gives the next sub-question or
//! the answer. [`ThoughtGraph::unfold`] follows the thoughts until all are answered and keeps each
//! question once. From the graph come contexts in the three [`Paradigm`]s and the [`Costs`].
//!
//! The problems of the paper are in the crate `rot-problems`.

mod context;
mod cost;
mod graph;
mod problem;
mod sample;
mod text;
mod thoughts;
mod token;
mod vocabulary;

pub use dashu_int::UBig;

pub use context::{Context, Example, Lengths, Paradigm};
pub use cost::{CostCounter, Costs};
pub use graph::{ContextId, DEFAULT_MEMORY_LIMIT, Thought, ThoughtGraph, UnfoldError};
pub use problem::{Facts, Fault, Form, Problem};
pub use sample::{SampleRng, Sampler, Sampling, SizeError};
pub use text::{Excerpt, Text, UnknownToken, next_piece, parse_tokens, shorten};
pub use thoughts::{Done, Lost, Pause, Span, Step, Thoughts};
pub use token::Token;
pub use vocabulary::{Vocabulary, VocabularyError};
