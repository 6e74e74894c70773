//! What `rot reproduce`, `rot ship` and `rot verify` can be told.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use rot_train::ProblemSize;

use super::{ThreadArgs, sizes};

/// Reproduce the paper's tables and figures.
///
/// Trains and tests a network for each cell of a table, or with --all-sizes for each curve of a figure, and writes the paper's accuracies and ours side by
/// side: a CSV file, a table in Markdown, a figure. It goes on where it was stopped.
#[derive(Parser)]
#[command(after_help = "\
Cells can be spread over machines that share the folder: start the same command on each with another
--shard. Without it, the variables of array jobs say which: SLURM_ARRAY_TASK_ID with
SLURM_ARRAY_TASK_MIN and SLURM_ARRAY_TASK_COUNT, or JOB_COMPLETION_INDEX with JOB_COMPLETIONS.

Examples:
  rot reproduce --list
  rot reproduce transformer-arith --cell mul-2-wt --steps 20 --count 100 --out results
  rot reproduce transformer-arith --all-sizes --budget 8h --out results
  rot reproduce transformer-arith --models models --cell mul-16-rot --count 100")]
pub(crate) struct ReproduceArgs {
    /// The experiment; see --list.
    #[arg(required_unless_present = "list")]
    pub(crate) experiment: Option<String>,
    /// Name every table and figure of the paper.
    #[arg(long, conflicts_with_all = ["cell", "budget", "shard"])]
    pub(crate) list: bool,
    /// The folder to write to, and to go on in.
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) out: PathBuf,
    /// Only this cell: problem, size and paradigm, such as mul-8-rot.
    #[arg(long, value_name = "CELL")]
    pub(crate) cell: Option<String>,
    /// Stop after this time, such as 30m or 8h. The same command goes on later.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) budget: Option<Duration>,
    /// The I-th of N parts of the cells, counted from 1.
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<String>,
    /// Train one network for all sizes of a problem in a paradigm, instead of one for each cell.
    #[arg(long)]
    pub(crate) all_sizes: bool,
    /// Test the RoT weights of this folder, such as mul-32.safetensors, at all sizes of their problem, instead of
    /// training. What it has no weights for is trained.
    #[arg(long, value_name = "DIR")]
    pub(crate) models: Option<PathBuf>,
    /// Training steps of RoT at the largest size of a problem, instead of 2,000, or 4,000 for the LSTM.
    /// Smaller sizes get fewer, down to 30%; WT and CoT at least as many, and at least as much computing.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) steps: Option<u64>,
    /// Test problems of a cell, instead of 5,000, or 500 where a problem has many contexts.
    #[arg(long, value_name = "K", value_parser = sizes())]
    pub(crate) count: Option<u32>,
    /// The seed of the trainings.
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..1 << 62))]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
    /// Print the table as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Make a trained model ready for others: weights of half the size, tested, with a card.
///
/// What is tested is what is written: the weights of NAME.safetensors, which have half precision.
/// NAME.card.toml has what was measured, for `rot verify`; NAME.md says it to people. Weights with a card
/// are tested anew: what it says of other problems stays.
#[derive(Parser)]
#[command(after_help = "\
Examples:
  rot ship runs/mul-4 --out models/mul-4
  rot ship runs/mul-4 --out models/mul-4 --problem mul-2,mul-4 --machine 'two cores of a laptop'
  rot ship models/mul-4.safetensors --out models/mul-4 --problem mul-4 --count 30000")]
pub(crate) struct ShipArgs {
    /// The folder of a run; or a weights file with its card, to test it anew.
    pub(crate) run: PathBuf,
    /// The files to write, without the ends of their names.
    #[arg(long, value_name = "NAME")]
    pub(crate) out: PathBuf,
    /// The problems to test it with, instead of those that it was trained on.
    #[arg(long, value_name = "PROBLEM", value_delimiter = ',')]
    pub(crate) problem: Vec<ProblemSize>,
    /// Where it was trained, for the card.
    #[arg(long, value_name = "TEXT")]
    pub(crate) machine: Option<String>,
    /// Which test problems.
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..1 << 62))]
    pub(crate) seed: u64,
    /// Test problems of each kind, instead of 5,000, or 500 where a problem has many contexts.
    #[arg(long, value_name = "K", value_parser = sizes())]
    pub(crate) count: Option<u32>,
    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
}

/// Test weights again, and compare with what their cards claim.
///
/// Fails if a card claims more than is measured.
#[derive(Parser)]
#[command(after_help = "\
Examples:
  rot verify models
  rot verify models/add-64.card.toml --full --seed 7")]
pub(crate) struct VerifyArgs {
    /// A card, or a folder with cards.
    pub(crate) path: PathBuf,
    /// All problems of a claim, instead of a sample.
    #[arg(long)]
    pub(crate) full: bool,
    /// Other test problems than those of the cards.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(..1 << 62))]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
    /// Print one JSON object a claim.
    #[arg(long)]
    pub(crate) json: bool,
}
