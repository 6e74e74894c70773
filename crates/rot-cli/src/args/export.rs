//! What `rot export` can be told.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use rot_core::{Paradigm, Problem};
use rot_llm::Format;
use rot_problems::PROBLEMS;

use super::{one_of, sizes};

/// Write what other programs train on, and models of ours for them to run.
#[derive(Parser)]
pub(crate) struct ExportArgs {
    #[command(subcommand)]
    pub(crate) what: Export,
}

#[derive(Subcommand)]
pub(crate) enum Export {
    Finetune(FinetuneArgs),
    /// Write a Llama-shaped model as a folder for Hugging Face Transformers and vLLM.
    ///
    /// Models trained with --recipe fast-llama are Llama-shaped; others are refused.
    #[command(after_help = "\
Examples:
  rot train add --size 1 --recipe fast-llama --steps 5 --out add-1
  rot export hf add-1 --out add-1-hf")]
    Hf(ModelArgs),
    /// Write a Llama-shaped model as a file for llama.cpp and what is built on it.
    ///
    /// Models trained with --recipe fast-llama are Llama-shaped; others are refused.
    #[command(after_help = "\
Examples:
  rot train mul --size 1 --recipe fast-llama --steps 5 --out mul-1
  rot export gguf mul-1 --out mul-1.gguf")]
    Gguf(ModelArgs),
}

/// A model, and where to write it.
#[derive(clap::Args)]
pub(crate) struct ModelArgs {
    /// A weights file, or a run folder for its best checkpoint.
    pub(crate) model: PathBuf,
    /// The folder to make, or the file to write.
    #[arg(long, value_name = "PATH")]
    pub(crate) out: PathBuf,
    /// Print the summary as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write examples to fine-tune a large language model with, in JSON Lines.
///
/// As in the paper: every THINK or STOP of a context is an example, every token a word after a space. All
/// different contexts of a problem are written, problem by problem, until there are enough lines.
#[derive(Parser)]
#[command(after_help = "\
Examples:
  rot export finetune --problem mul --size 16 --examples 1000 --out mul-16.jsonl
  rot export finetune --problem add --size 8 --examples 500 --test 100 --out add-8.jsonl")]
pub(crate) struct FinetuneArgs {
    /// A problem; several take turns.
    #[arg(long, required = true, value_parser = one_of(PROBLEMS, Problem::name))]
    pub(crate) problem: Vec<&'static dyn Problem>,
    /// Its size; one for each problem, in the same order.
    #[arg(long, value_name = "N", required = true, value_parser = sizes())]
    pub(crate) size: Vec<u32>,
    /// One context for each question (rot), or the answer alone (wt).
    #[arg(long, default_value = "rot", value_parser = one_of(&[Paradigm::Rot, Paradigm::Wt], Paradigm::name))]
    pub(crate) paradigm: Paradigm,
    /// Lines to write.
    #[arg(long, value_name = "K")]
    pub(crate) examples: u64,
    /// How a line looks.
    #[arg(long, default_value = "prompt-completion", value_parser = one_of(&Format::ALL, Format::name))]
    pub(crate) format: Format,
    /// Text after each completion, for trainers that do not add an end of sequence themselves.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) end: String,
    /// Write a line only once. Takes about 16 bytes of memory a line.
    #[arg(long)]
    pub(crate) unique: bool,
    /// Which problems.
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..1 << 62))]
    pub(crate) seed: u64,
    /// The file to write.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Leave out so many problems of each kind, those that rot eval tests with.
    #[arg(long, value_name = "K", default_value_t = 0)]
    pub(crate) test: u32,
    /// Which of them: the --seed of rot eval.
    #[arg(long, value_name = "S", default_value_t = 0, requires = "test", value_parser = clap::value_parser!(u64).range(..1 << 62))]
    pub(crate) test_seed: u64,
    /// Write their questions to this file.
    #[arg(long, value_name = "FILE", requires = "test")]
    pub(crate) test_out: Option<PathBuf>,
    /// Print the summary as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
