//! `rot reproduce`

mod shard;
mod tables;

use std::io::Write;
use std::mem::discriminant;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Parser;
use rot_core::Paradigm;
use rot_train::eval::{EvalError, TestSet, evaluate, until};
use rot_train::reproduce::{Cell, EXPERIMENTS, Experiment, Measured, Plan, Record, Sizes, Status};
use rot_train::run::{RunError, holds_run, last_timing};
use rot_train::{Ending, Model, ProblemSize, Recipe, Session, TrainError};

use self::shard::Shard;
use self::tables::{Row, write_tables};
use super::measure::{draw, full_count, questions};
use super::{sample, stats, train};
use crate::WrongUsage;
use crate::args::{ReproduceArgs, SampleArgs, StatsArgs};
use crate::folder::make_folder;
use crate::output::{Output, note, today};
use crate::progress::Meter;
use crate::recipes;

/// What the paper shows beside accuracies of networks that are trained from scratch.
const OTHERS: [(&str, &str); 3] = [
    ("lengths", "lengths of contexts, and tokens for a problem: the appendix's two figures"),
    ("samples", "random arithmetic problems of 6 digits: the appendix's table"),
    ("gpt-3", "fine-tuned GPT-3: its figure and its table; not trained by this program"),
];
/// The seed of test sets.
const TEST_SEED: u64 = 0;

pub(crate) fn run(args: &ReproduceArgs) -> Result<()> {
    args.threads.apply()?;
    if args.list {
        return list();
    }
    let name = args.experiment.as_deref().unwrap_or_default();
    match name {
        "lengths" => {
            let folder = args.out.join(name);
            return stats::run(&StatsArgs::parse_from([
                Path::new("stats"),
                "--out".as_ref(),
                &folder,
            ]));
        }
        "samples" => return samples(),
        _ => (),
    }
    let experiment = Experiment::find(name).ok_or_else(|| {
        let names: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.name).collect();
        WrongUsage(format!(
            "cannot reproduce '{name}': there are {}, lengths, samples",
            names.join(", ")
        ))
    })?;
    if let Some(models) = args.models.as_ref().filter(|models| !models.is_dir()) {
        let text = format!("--models: there is no folder '{}'", models.display());
        return Err(WrongUsage(text).into());
    }
    let cells = chosen(args, experiment)?;
    let folder = args.out.join(experiment.name);
    make_folder(&folder)?;
    let stop = train::stop_on_interrupt()?;
    if let Some(budget) = args.budget {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            std::thread::sleep(budget);
            stop.store(true, Ordering::Relaxed);
        });
    }
    let mut left = 0;
    for cell in &cells {
        if Record::read(&record(&folder, cell))?.is_some() {
            continue;
        }
        if stop.load(Ordering::Relaxed) || !measure(args, experiment, cell, &folder, &stop)? {
            left += 1;
            continue;
        }
        write_tables(&args.out, experiment, &rows(experiment, &folder)?)?;
    }
    if left > 0 {
        note(format_args!(
            "stopped with {left} of {} cells to do; the same command goes on",
            cells.len()
        ));
    }
    let rows = rows(experiment, &folder)?;
    write_tables(&args.out, experiment, &rows)?;
    let mut out = Output::new();
    if args.json {
        serde_json::to_writer(&mut out, &rows)?;
        writeln!(out)?;
    } else {
        out.write_all(tables::markdown(&rows).as_bytes())?;
    }
    out.flush()?;
    Ok(())
}

fn list() -> Result<()> {
    let mut out = Output::new();
    let trained = EXPERIMENTS.iter().map(|experiment| (experiment.name, experiment.shows));
    for (name, shows) in trained.chain(OTHERS) {
        writeln!(out, "{name:<18} {shows}")?;
    }
    out.flush()?;
    Ok(())
}

fn samples() -> Result<()> {
    for problem in ["add", "sub", "mul", "div"] {
        let asked = ["sample", problem, "--size", "6", "--count", "40"];
        sample::run(&SampleArgs::parse_from(asked))?;
    }
    Ok(())
}

/// The cells that this process is for.
fn chosen(args: &ReproduceArgs, experiment: &Experiment) -> Result<Vec<Cell>> {
    let shard = match &args.shard {
        Some(text) => text.parse().map_err(WrongUsage)?,
        None => Shard::of_environment(|name| std::env::var(name).ok()).map_err(WrongUsage)?,
    };
    let cells = experiment.cells();
    let Some(name) = &args.cell else {
        return Ok(shard.of(cells));
    };
    let found = cells.into_iter().find(|cell| cell.name() == *name);
    let found = found.ok_or_else(|| {
        let text = format!(
            "{} has no cell '{name}': a cell is a problem, a size of the paper's table and a paradigm, \
             such as {}-8-rot",
            experiment.name,
            experiment.problems()[0]
        );
        WrongUsage(text)
    })?;
    Ok(vec![found])
}

fn record(folder: &Path, cell: &Cell) -> PathBuf {
    folder.join(format!("{}.json", cell.name()))
}

/// Trains and tests a cell. Returns whether it has a result now.
fn measure(
    args: &ReproduceArgs,
    experiment: &Experiment,
    cell: &Cell,
    folder: &Path,
    stop: &AtomicBool,
) -> Result<bool> {
    let name = cell.name();
    let test = test_set(args, cell.problem)?;
    let write = |status| Record { cell: name.clone(), status }.write(&record(folder, cell));
    let base = base(args, experiment)?;
    if let Some(weights) = shipped(args, cell) {
        let model = Model::open(&weights)?;
        if discriminant(&model.recipe.model) != discriminant(&base.model) {
            let (path, name) = (weights.display(), experiment.name);
            bail!(
                "'{path}' is not the kind of network that {name} is about: choose another --models"
            );
        }
        let Some(tested) = tested(&model, &test, cell, stop)? else { return Ok(false) };
        let weights = weights.file_name().map(|name| name.to_string_lossy().into_owned());
        write(Status::Measured(Measured { weights, ..tested }))?;
        return Ok(true);
    }
    let sizes = sizes(args, experiment, cell, base.model.limit())?;
    let recipe = match cell.plan(&base, &test, &sizes)? {
        Plan::Train(recipe) => recipe,
        Plan::TooLong { needed, limit } => {
            write(Status::TooLong { needed: needed.to_string(), limit })?;
            return Ok(true);
        }
    };
    let dir = folder.join(cell.run_name(&sizes));
    let made = match trained(&dir, &recipe) {
        Some(made) => Some(made),
        None => train_run(&dir, &recipe, stop)?,
    };
    let Some((steps, seconds)) = made else { return Ok(false) };
    let Some(tested) = tested(&Model::open(&dir)?, &test, cell, stop)? else { return Ok(false) };
    let threads = Some(rayon::current_num_threads());
    write(Status::Measured(Measured { steps, seconds: Some(seconds), threads, ..tested }))?;
    Ok(true)
}

/// The weights for all sizes of a cell's problem that are in the folder of models, if it was given.
fn shipped(args: &ReproduceArgs, cell: &Cell) -> Option<PathBuf> {
    let largest = ProblemSize { size: cell.largest, ..cell.problem };
    let weights = args.models.as_ref()?.join(format!("{largest}.safetensors"));
    (cell.paradigm == Paradigm::Rot && weights.is_file()).then_some(weights)
}

/// What a model is tested with, and how well it does, unless it was stopped.
fn tested(
    model: &Model,
    test: &TestSet,
    cell: &Cell,
    stop: &AtomicBool,
) -> Result<Option<Measured>> {
    let meter = Meter::new("reading", "tokens");
    let evaluation = evaluate(model, test, cell.paradigm, 0, |progress| {
        meter.add(progress.tokens as u64, progress.of as u64);
        until(stop)
    });
    let evaluation = match evaluation {
        Err(EvalError::Stopped) => return Ok(None),
        evaluation => evaluation?,
    };
    Ok(Some(Measured {
        problems: evaluation.problems,
        right: evaluation.right_problems,
        trained_on: model.recipe.data.kinds().into_iter().map(|(problem, _)| problem).collect(),
        steps: model.recipe.training.steps,
        seed: model.recipe.seed,
        weights: None,
        seconds: None,
        threads: None,
        date: today(),
    }))
}

/// Steps and seconds of the run in a folder, if it has made all that a recipe asks for.
fn trained(dir: &Path, recipe: &Recipe) -> Option<(u64, f64)> {
    let (steps, seconds) = last_timing(dir)?;
    let model = Model::open(dir).ok()?;
    (model.recipe == *recipe && steps >= recipe.training.steps).then_some((steps, seconds))
}

/// Trains with a recipe, or goes on with it. Returns steps and seconds, or nothing if it was stopped, or if another
/// process is at it.
fn train_run(dir: &Path, recipe: &Recipe, stop: &AtomicBool) -> Result<Option<(u64, f64)>> {
    let opened = match holds_run(dir) {
        true => train::resume(dir),
        false => Session::create(dir, recipe).map_err(Into::into),
    };
    let is_locked = |error: &anyhow::Error| {
        matches!(error.downcast_ref(), Some(TrainError::Run(RunError::Locked { .. })))
    };
    let mut session = match opened {
        Err(error) if is_locked(&error) => {
            note(format_args!("another process is at '{}'", dir.display()));
            return Ok(None);
        }
        opened => opened?,
    };
    if session.trainer().recipe() != recipe {
        bail!(
            "'{}' holds a run with other settings: choose another folder with --out, or remove it",
            dir.display()
        );
    }
    let (ending, _) = train::watch(&mut session, stop)?;
    Ok(if ending == Ending::Interrupted { None } else { last_timing(dir) })
}

/// What the network of a cell is trained for.
fn sizes(
    args: &ReproduceArgs,
    experiment: &Experiment,
    cell: &Cell,
    limit: usize,
) -> Result<Sizes> {
    if !args.all_sizes {
        return Ok(Sizes::Own);
    }
    let mut cells = experiment.cells();
    cells.retain(|other| {
        other.problem.problem.name() == cell.problem.problem.name()
            && other.paradigm == cell.paradigm
    });
    let mut sizes = Vec::new();
    for other in cells {
        // Contexts of CoT grow with the size: beyond the first that does not fit, none does.
        if other.paradigm == Paradigm::Cot
            && other.too_long(&test_set(args, other.problem)?, limit).is_some()
        {
            break;
        }
        sizes.push(other.problem.size);
    }
    Ok(Sizes::All(sizes))
}

/// The recipe of RoT cells.
fn base(args: &ReproduceArgs, experiment: &Experiment) -> Result<Recipe> {
    let name = experiment.recipe();
    let known = recipes::NAMED.iter().find(|(known, _)| *known == name);
    let (_, text) = known.ok_or_else(|| anyhow!("there is no recipe {name}"))?;
    let mut recipe = Recipe::parse(text).with_context(|| format!("recipe {name}"))?;
    recipe.seed = args.seed;
    recipe.training.steps = args.steps.unwrap_or(experiment.steps());
    Ok(recipe)
}

/// The test set of a problem, for all paradigms.
fn test_set(args: &ReproduceArgs, problem: ProblemSize) -> Result<TestSet> {
    let questions = questions(problem, TEST_SEED);
    let count = match args.count {
        Some(count) => count as usize,
        None => full_count(&questions)?,
    };
    draw(&questions, count)
}

/// All cells of an experiment, with what is known of them, whoever has found it out.
fn rows(experiment: &Experiment, folder: &Path) -> Result<Vec<Row>> {
    let row = |cell: Cell| {
        let record = Record::read(&record(folder, &cell))?;
        Ok(Row::new(&cell, record.map(|record| record.status)))
    };
    experiment.cells().into_iter().map(row).collect()
}
