//! `rot ship`

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rot_core::Paradigm;
use rot_train::eval::wilson;
use rot_train::run::{Precision, holds_run, last_timing};
use rot_train::{Card, Claim, Model, ModelConfig, Recipe};

use super::measure::{full_count, measure, questions};
use super::train::duration;
use crate::WrongUsage;
use crate::args::ShipArgs;
use crate::folder::{make_folder, write};
use crate::output::{counted, grouped, note, today};

/// Problems that the model solves on its own, of those that it is tested with: one in so many.
const RUNS: usize = 25;

pub(crate) fn run(args: &ShipArgs) -> Result<()> {
    args.threads.apply()?;
    let (Some(name), Some(folder)) =
        (args.out.file_name().and_then(OsStr::to_str), args.out.parent())
    else {
        return Err(WrongUsage("--out needs a name, such as models/mul-4".to_owned()).into());
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let card = card_of(args)?;
    let model = Model::open(&args.run)?;
    if model.recipe.data.paradigm != Paradigm::Rot {
        return Err(WrongUsage("only RoT models are tested by cards".to_owned()).into());
    }
    make_folder(folder)?;
    let file = PathBuf::from(format!("{name}.safetensors"));
    let weights = folder.join(&file);
    model.snapshot().with_precision(Precision::Half).save(&weights)?;
    note(format_args!("wrote {}", weights.display()));

    let model = Model::open(&weights)?;
    let problems = match args.problem.as_slice() {
        [] => model.recipe.data.kinds().into_iter().map(|(problem, _)| problem).collect(),
        problems => problems.to_vec(),
    };
    let training = match &card {
        Some(card) => card.training.clone(),
        None => training(args, &model.recipe),
    };
    // Of weights that are tested anew, what else their card claims stays true.
    let mut claims = card.map_or_else(Vec::new, |card| card.claims);
    for problem in problems {
        let count = match args.count {
            Some(count) => count as usize,
            None => full_count(&questions(problem, args.seed))?,
        };
        let claim = measure(&model, problem, args.seed, count, count.div_ceil(RUNS))?;
        note(format_args!("{problem}: {}", text_of(&claim)));
        match claims.iter_mut().find(|earlier| earlier.problem == problem) {
            Some(earlier) => *earlier = claim,
            None => claims.push(claim),
        }
    }
    let card = Card { weights: file, training, claims };
    write(folder, &Card::file_name(name), &card.to_toml())?;
    write(folder, &format!("{name}.md"), &markdown(name, &model, &card))
}

/// The card of weights that were shipped before; a run has none.
fn card_of(args: &ShipArgs) -> Result<Option<Card>> {
    let path = &args.run;
    if holds_run(path) {
        return Ok(None);
    }
    let beside =
        path.with_extension("").into_os_string().into_string().map(|name| Card::file_name(&name));
    let card = beside.ok().map(PathBuf::from).filter(|card| path.is_file() && card.is_file());
    let Some(card) = card else {
        let path = path.display();
        let text = format!(
            "'{path}' holds no run and is no weights file with a card: give a folder of rot train"
        );
        return Err(WrongUsage(text).into());
    };
    if args.machine.is_some() {
        let text =
            format!("--machine is for runs: '{}' says where they were trained", card.display());
        return Err(WrongUsage(text).into());
    }
    Ok(Card::read(&card)?.pop().map(|(_, card)| card))
}

/// How long the training took, and what it went on from.
fn training(args: &ShipArgs, recipe: &Recipe) -> String {
    let mut text = match last_timing(&args.run) {
        Some((steps, seconds)) => format!("{} in {}", counted(steps, "step"), duration(seconds)),
        None => "no steps".to_owned(),
    };
    if let Some(machine) = &args.machine {
        text += &format!(" on {machine}");
    }
    text += &format!(", {}", today());
    let mut recipe = recipe;
    while let Some(earlier) = recipe.start.as_ref().and_then(|start| start.recipe.as_deref()) {
        text += &format!(
            ", after {} of the recipe in [start]",
            counted(earlier.training.steps, "step")
        );
        recipe = earlier;
    }
    text
}

fn text_of(claim: &Claim) -> String {
    let mut text = format!("{} of {} right", grouped(claim.right), grouped(claim.problems));
    if let Some(free) = claim.free_run {
        text += &format!(", and {} of {} on its own", grouped(free.right), grouped(free.problems));
    }
    text
}

/// The card for people.
fn markdown(name: &str, model: &Model, card: &Card) -> String {
    let recipe = &model.recipe;
    let kind = match recipe.model {
        ModelConfig::Transformer(_) => "Transformer",
        ModelConfig::Lstm(_) => "LSTM",
    };
    let mut text = format!(
        "# {name}\n\nA {kind} of {} parameters, trained on {} in the paradigm RoT with seed {}: {}.\n\
         Teacher-forced, a problem is right if every step of it is; on its own, if the answer is.\n\n\
         | problem | test seed | right, every step | 95% interval | right, on its own |\n|---|---|---|---|---|\n",
        grouped(model.params.len()),
        recipe.data.names().join(", "),
        recipe.seed,
        card.training,
    );
    for claim in &card.claims {
        let [low, high] = wilson(claim.right, claim.problems);
        let free = claim.free_run.map_or_else(String::new, |free| {
            format!("{} of {}", grouped(free.right), grouped(free.problems))
        });
        text += &format!(
            "| {} | {} | {} of {} | {:.2}% to {:.2}% | {free} |\n",
            claim.problem,
            claim.seed,
            grouped(claim.right),
            grouped(claim.problems),
            100.0 * low,
            100.0 * high,
        );
    }
    text + &format!("\nIts recipe, with every setting:\n\n```toml\n{}```\n", recipe.to_toml())
}
