//! What the command line can say.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand};
use rot_core::{DEFAULT_MEMORY_LIMIT, Paradigm, Problem, Sampling};
use rot_problems::{PROBLEMS, Question, read};
use rot_solve::Limits;

use crate::WrongUsage;

mod export;
mod remote;
mod reproduce;

pub(crate) use export::{Export, ExportArgs, FinetuneArgs, ModelArgs};
pub(crate) use remote::RemoteArgs;
pub(crate) use reproduce::{ReproduceArgs, ShipArgs, VerifyArgs};

/// Recursion of Thought: models that open a new context for every sub-question.
#[derive(Parser)]
#[command(name = "rot", version, max_term_width = 100, after_help = QUESTIONS)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Solve(SolveArgs),
    Replay(ReplayArgs),
    Contexts(ContextsArgs),
    Sample(SampleArgs),
    Stats(StatsArgs),
    Check(CheckArgs),
    Train(TrainArgs),
    Eval(EvalArgs),
    Reproduce(ReproduceArgs),
    Ship(ShipArgs),
    Verify(VerifyArgs),
    Export(ExportArgs),
    Bench(BenchArgs),
    Parity(ParityArgs),
}

const QUESTIONS: &str = "\
Questions, as typed or in token text:
  408+351   432-216   43*21   76/29          arithmetic
  108+0+60  3*9*5     38 vs 74   equal 3 4   helpers
  lcs 1234 2468                              longest common subsequence
  lps 41253261                               longest palindromic subsequence
  knapsack '5&12,25&15,19&18@40'             items as value&weight, then the capacity
  mcm 40x20,20x80,80x30                      matrix chain multiplication
  sort 139,160,41     merge 1,3 2,4
  '<GO>408+351='                             token text

Examples:
  rot solve '1234*5678' --tree
  rot contexts 408+351 --targets
  rot sample mul --size 6 --count 5 | rot contexts - --jsonl
  rot stats mul --sizes 4,8 --samples 1000 --out lengths
  echo '{\"question\": \"<GO>2+3=\", \"thoughts\": [], \"answer\": \"5<STOP>\"}' | rot check -

Exit codes: 0 done, 1 failed, 2 wrong usage.";

/// Solve a question by recursion, and show how.
///
/// A trained network answers: the one in this program, which knows all nine problems, or that of --model. With -
/// for the question, questions are read from standard input, one a line, and answered in order.
#[derive(Parser)]
#[command(after_help = "\
Examples:
  rot solve '1234*5678' --tree
  rot solve '27*65' --steps
  rot solve lcs 1234 2468 --oracle --json
  rot sample mul --size 4 --count 1000 | rot solve -
  rot solve '27*65' --model runs/mul-4
  rot solve '27*65' --base-url http://localhost:8000/v1 --model my-model")]
pub(crate) struct SolveArgs {
    #[command(flatten)]
    pub(crate) question: QuestionArgs,
    /// Draw who asks whom.
    #[arg(long)]
    pub(crate) tree: bool,
    /// Print one JSON object for each question.
    #[arg(long, conflicts_with = "tree")]
    pub(crate) json: bool,
    /// Let the ground truth answer: the procedures of the paper, not a network.
    #[arg(long, conflicts_with_all = ["model", "base_url", "steps", "trace", "draft", "memo",
        "no_memo", "max_context", "max_depth", "max_contexts", "max_tokens", "max_seconds"])]
    pub(crate) oracle: bool,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// How a model solves questions.
#[derive(clap::Args)]
pub(crate) struct RunArgs {
    /// The model that answers instead of the one in this program: a weights file, a run folder for its
    /// best checkpoint, or with --base-url a name.
    #[arg(long, value_name = "PATH")]
    pub(crate) model: Option<PathBuf>,
    /// Show every context as it grows.
    #[arg(long, conflicts_with_all = ["tree", "json"])]
    pub(crate) steps: bool,
    /// Write what happens to a file of JSON lines, for rot replay.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Have the ground truth draft what the model says: the same answer, sooner.
    #[arg(long, conflicts_with = "base_url")]
    pub(crate) draft: bool,
    /// Keep answers in a file, for the next run.
    #[arg(long, value_name = "FILE")]
    pub(crate) memo: Option<PathBuf>,
    /// Solve a question each time it is asked.
    #[arg(long, conflicts_with = "memo")]
    pub(crate) no_memo: bool,
    /// Tokens that a context may have; the model's own limit holds as well.
    #[arg(long, value_name = "N", help_heading = "Limits of a question")]
    pub(crate) max_context: Option<usize>,
    /// Contexts that may wait for each other, one below the other.
    #[arg(long, value_name = "N", help_heading = "Limits of a question")]
    pub(crate) max_depth: Option<usize>,
    /// Contexts that may be opened.
    #[arg(long, value_name = "N", help_heading = "Limits of a question")]
    pub(crate) max_contexts: Option<u64>,
    /// Tokens that may be generated.
    #[arg(long, value_name = "N", help_heading = "Limits of a question")]
    pub(crate) max_tokens: Option<u64>,
    /// Seconds that it may take.
    #[arg(long, value_name = "S", value_parser = time, help_heading = "Limits of a question")]
    pub(crate) max_seconds: Option<Duration>,
    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
}

impl RunArgs {
    /// The limits, the usual ones where none are given.
    pub(crate) fn limits(&self) -> Limits {
        let usual = Limits::default();
        Limits {
            context: self.max_context.unwrap_or(usual.context),
            depth: self.max_depth.unwrap_or(usual.depth),
            contexts: self.max_contexts.unwrap_or(usual.contexts),
            tokens: self.max_tokens.unwrap_or(usual.tokens),
            time: self.max_seconds.unwrap_or(usual.time),
        }
    }
}

/// Reads a number of seconds, zero or more.
fn time(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// Draw what rot solve --trace has written.
#[derive(Parser)]
#[command(after_help = "\
Examples:
  rot solve '27*65' --model runs/mul-4 --trace trace.jsonl
  rot replay trace.jsonl
  rot replay trace.jsonl --steps")]
pub(crate) struct ReplayArgs {
    /// The trace, or - for standard input.
    pub(crate) file: PathBuf,
    /// Show every context as it grows, instead of the tree.
    #[arg(long)]
    pub(crate) steps: bool,
}

/// Print the contexts of a question: what a model is trained on.
///
/// With - for the question, questions are read from standard input, one a line.
#[derive(Parser)]
#[command(after_help = "\
Examples:
  rot contexts 408+351 --targets
  rot contexts '34*5' --paradigm cot
  rot sample lcs --size 8 --count 3 | rot contexts - --jsonl")]
pub(crate) struct ContextsArgs {
    #[command(flatten)]
    pub(crate) question: QuestionArgs,
    /// One context for each question (rot), all steps in one (cot), or the answer alone (wt).
    #[arg(long, default_value = "rot", value_parser = one_of(&Paradigm::ALL, Paradigm::name))]
    pub(crate) paradigm: Paradigm,
    /// Show under each context what the model has to say.
    #[arg(long)]
    pub(crate) targets: bool,
    /// Print a JSON object a question, with all three paradigms and the costs.
    #[arg(long, conflicts_with_all = ["paradigm", "targets"])]
    pub(crate) jsonl: bool,
    /// Leave out a CoT context with more tokens than this.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) max_cot_tokens: usize,
}

/// Draw random questions, one a line.
///
/// The same seed gives the same questions on every machine.
#[derive(Parser)]
#[command(after_help = "Example:\n  rot sample mul --size 6 --count 5 --seed 1")]
pub(crate) struct SampleArgs {
    /// The problem.
    #[arg(value_parser = one_of(PROBLEMS, Problem::name))]
    pub(crate) problem: &'static dyn Problem,
    /// Its size: digits, length, items, matrices, or most terms.
    #[arg(long, value_name = "N", value_parser = sizes())]
    pub(crate) size: u32,
    /// How many questions.
    #[arg(long, value_name = "K", default_value_t = 10)]
    pub(crate) count: u64,
    /// Which questions.
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    /// The distribution of the numbers: log-uniform as in the paper, or uniform.
    #[arg(long, default_value = "paper", value_parser = one_of(&Sampling::ALL, Sampling::name))]
    pub(crate) sampling: Sampling,
}

/// Measure how long contexts get, and how much there is to generate.
///
/// Writes the paper's two appendix figures: the length of contexts, RoT against CoT, and the tokens
/// to generate for a problem, with no cache against every question solved once. Each comes as CSV
/// and as SVG; a summary is printed.
#[derive(Parser)]
#[command(after_help = "\
Examples:
  rot stats mul div --sizes 4,8 --samples 1000 --out lengths
  rot stats    # all nine problems at all sizes of the paper")]
pub(crate) struct StatsArgs {
    /// The problems; all nine of the paper if there is none.
    #[arg(value_name = "PROBLEM", value_parser = one_of(PROBLEMS, Problem::name))]
    problems: Vec<&'static dyn Problem>,
    /// Their sizes; those of the paper if there is none.
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', value_parser = sizes())]
    pub(crate) sizes: Vec<u32>,
    /// Random problems for each size.
    #[arg(long, value_name = "K", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) samples: u64,
    /// Which random problems.
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    /// The folder to write to; made if it is not there.
    #[arg(long, value_name = "DIR", default_value = "stats")]
    pub(crate) out: PathBuf,
}

/// Check a file of your own contexts, in JSON Lines.
#[derive(Parser)]
#[command(after_help = "\
One context a line:
  {\"question\": \"<GO>12+3=\", \"thoughts\": [{\"question\": \"<GO>2+3=\", \"answer\": \"5<STOP>\",
  \"tail\": false}], \"answer\": \"15<STOP>\"}

Example:
  echo '{\"question\": \"<GO>2+3=\", \"thoughts\": [], \"answer\": \"5<STOP>\"}' | rot check -")]
pub(crate) struct CheckArgs {
    /// The file, or - for standard input.
    pub(crate) file: PathBuf,
    /// The most tokens a context may have; by default the limit of the paper's Transformer.
    #[arg(long, value_name = "N", default_value_t = 2048)]
    pub(crate) max_context: usize,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Train a model from scratch, on this machine's cores.
///
/// The recipe decides every bit of the result, whatever the number of threads. Ctrl-C saves; --resume
/// goes on, also after a crash.
#[derive(Parser)]
#[command(after_help = "\
Examples:
  rot train mul --size 4 --out runs/mul-4
  rot train recipes/paper/lstm.toml --out runs/lstm
  rot train --resume --out runs/mul-4
  rot train add --size 1 --steps 20 --out first-run")]
pub(crate) struct TrainArgs {
    /// A problem, with --size, or a recipe: a TOML file.
    #[arg(
        value_name = "PROBLEM|RECIPE",
        required_unless_present = "resume",
        conflicts_with = "resume"
    )]
    pub(crate) what: Option<String>,
    /// The problem's size: digits, length, items, matrices, or most terms.
    #[arg(long, value_name = "N", value_parser = sizes())]
    pub(crate) size: Option<u32>,
    /// The recipe for a problem; fast if not given.
    #[arg(long, value_name = "NAME", value_parser = recipe_names())]
    pub(crate) recipe: Option<String>,
    /// The folder of the run.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Go on with the run in the folder.
    #[arg(long, conflicts_with_all = ["size", "recipe", "paradigm", "steps", "seed"])]
    pub(crate) resume: bool,
    /// One context for each question (rot), all steps in one (cot), or the answer alone (wt); instead
    /// of the recipe's.
    #[arg(long, value_parser = one_of(&Paradigm::ALL, Paradigm::name))]
    pub(crate) paradigm: Option<Paradigm>,
    /// Steps, instead of the recipe's.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) steps: Option<u64>,
    /// The seed, instead of the recipe's.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(..1 << 63))]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
    /// Print one JSON object at the end.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Measure speed: matrix products, kernels, training steps and evaluation.
///
/// Rates are in useful tokens, without any padding, and as shares of the rate at which this machine
/// multiplies matrices of the same sizes, measured in the same run.
#[derive(Parser)]
#[command(after_help = "Example:\n  rot bench --seconds 1")]
pub(crate) struct BenchArgs {
    /// Seconds for each measurement.
    #[arg(long, value_name = "S", default_value_t = 3.0, value_parser = seconds)]
    pub(crate) seconds: f64,
    /// Measure how the cost of solving grows instead: growth.csv and growth.svg in this folder.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["seconds", "json"])]
    pub(crate) growth: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Compare a model with PyTorch: logits, gradients, and the losses of ten steps.
///
/// Fails where they differ by more than 1e-4, 1e-3 relative, and 1e-4.
#[derive(Parser)]
#[command(
    after_help = "Example:\n  rot parity crates/rot-nn/tests/data/transformer_small.safetensors"
)]
pub(crate) struct ParityArgs {
    /// A file with parameters, a batch, and what PyTorch made of them.
    pub(crate) file: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How many threads to use.
#[derive(clap::Args)]
pub(crate) struct ThreadArgs {
    /// Threads; as many as there are cores if not given. Results do not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

impl ThreadArgs {
    /// Makes all parallel work use so many threads.
    pub(crate) fn apply(&self) -> anyhow::Result<()> {
        match self.threads {
            Some(threads) => {
                Ok(rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global()?)
            }
            None => Ok(()),
        }
    }
}

/// Evaluate a model: every context of the test problems is read once, teacher-forced.
///
/// A problem is right if all contexts below it are. The test problems are different from one another
/// and come from other random streams than those for training.
#[derive(Parser)]
#[command(after_help = "\
Examples:
  rot eval runs/mul-8 --problem mul --size 8 --count 30000
  rot eval runs/mul-8 --problem mul --size 8 --count 1000 --free-run
  rot eval my-model --base-url http://localhost:8000/v1 --problem mul --size 8 --journal mul-8")]
pub(crate) struct EvalArgs {
    /// A weights file, a run folder for its best checkpoint, or with --base-url a name.
    pub(crate) model: PathBuf,
    /// The problem.
    #[arg(long, value_name = "P", value_parser = one_of(PROBLEMS, Problem::name))]
    pub(crate) problem: &'static dyn Problem,
    /// Its size: digits, length, items, matrices, or most terms.
    #[arg(long, value_name = "N", value_parser = sizes())]
    pub(crate) size: u32,
    /// How many problems; fewer where there are not so many.
    #[arg(long, value_name = "K", default_value_t = 30_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: u32,
    /// Which test problems.
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..1 << 63))]
    pub(crate) seed: u64,
    /// One context for each question (rot), all steps in one (cot), or the answer alone (wt).
    #[arg(long, default_value = "rot", value_parser = one_of(&Paradigm::ALL, Paradigm::name))]
    pub(crate) paradigm: Paradigm,
    /// The distribution of the numbers: log-uniform as in the paper, or uniform.
    #[arg(long, default_value = "paper", value_parser = one_of(&Sampling::ALL, Sampling::name))]
    pub(crate) sampling: Sampling,
    /// Show at most this many wrong contexts.
    #[arg(long, value_name = "K", default_value_t = 10, value_parser = clap::value_parser!(u32).range(..=10_000))]
    pub(crate) failures: u32,
    /// Let the model solve the problems on its own as well, and compare.
    #[arg(long)]
    pub(crate) free_run: bool,
    /// In the free run, solve a question each time it is asked.
    #[arg(long, requires = "free_run")]
    pub(crate) no_memo: bool,
    /// In the free run, have the ground truth draft what the model says: the same result, sooner.
    #[arg(long, requires = "free_run", conflicts_with = "base_url")]
    pub(crate) draft: bool,
    /// In the free run, solve so many problems at the same time.
    #[arg(long, value_name = "K", default_value_t = 256, requires = "free_run", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) at_once: u32,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
    /// Say what it will cost: prices of a million tokens of prompts and of completions.
    #[arg(long, value_name = "IN,OUT", requires = "base_url", value_parser = remote::price, help_heading = "A model on a server")]
    pub(crate) price: Option<[f64; 2]>,
    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A question on the command line, and how large it may get.
#[derive(clap::Args)]
pub(crate) struct QuestionArgs {
    /// The question, such as 408+351, or lcs 1234 2468.
    #[arg(required = true)]
    question: Vec<String>,
    /// Give up where the contexts of a question take more memory than this.
    #[arg(long, value_name = "MIB", default_value_t = DEFAULT_MEMORY_LIMIT >> 20, display_order = 9)]
    max_memory: usize,
}

impl QuestionArgs {
    /// Whether questions come from standard input.
    pub(crate) fn is_input(&self) -> bool {
        self.question == ["-"]
    }

    pub(crate) fn read(&self) -> Result<Question, WrongUsage> {
        let text = self.question.join(" ");
        read(&text).map_err(|error| {
            WrongUsage(format!("cannot read the question '{}': {error}", rot_core::shorten(&text)))
        })
    }

    /// The memory limit in bytes.
    pub(crate) fn memory_limit(&self) -> usize {
        self.max_memory.saturating_mul(1 << 20)
    }
}

impl StatsArgs {
    /// The problems and sizes to measure.
    pub(crate) fn cells(&self) -> Result<Vec<(&'static dyn Problem, u32)>, WrongUsage> {
        let in_paper = |problem: &&'static dyn Problem| !problem.facts().paper_sizes.is_empty();
        let problems: Vec<&'static dyn Problem> = match self.problems.as_slice() {
            [] => PROBLEMS.iter().copied().filter(in_paper).collect(),
            problems => problems.to_vec(),
        };
        let mut cells: Vec<(&'static dyn Problem, u32)> = Vec::new();
        for problem in problems {
            let sizes = match self.sizes.as_slice() {
                [] if !in_paper(&problem) => {
                    let name = problem.name();
                    let what =
                        format!("'{name}' has no sizes in the paper: give some with --sizes");
                    return Err(WrongUsage(what));
                }
                [] => problem.facts().paper_sizes,
                sizes => sizes,
            };
            for &size in sizes {
                let known = |&(other, same): &(&dyn Problem, u32)| {
                    other.name() == problem.name() && same == size
                };
                if !cells.iter().any(known) {
                    cells.push((problem, size));
                }
            }
        }
        Ok(cells)
    }
}

/// Takes the name of one of some values, and shows all names in the help.
fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(move |&value| name(value))).try_map(move |chosen| {
        let found = all.iter().copied().find(|&value| name(value) == chosen);
        found.ok_or("no such name")
    })
}

fn recipe_names() -> PossibleValuesParser {
    PossibleValuesParser::new(crate::recipes::NAMED.iter().map(|(name, _)| *name))
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 3600.0 => Ok(seconds),
        _ => Err("it must be a number of seconds above 0 and up to 3600".to_owned()),
    }
}

fn sizes() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=1_000_000)
}
