//! `rot train`

mod report;
mod view;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use rot_problems::PROBLEMS;
use rot_train::eval::Evaluation;
use rot_train::{DataError, Ending, Event, ProblemSize, Recipe, Session, TrainError};

use self::report::Report;
use self::view::View;
pub(super) use self::view::duration;
use crate::WrongUsage;
use crate::args::TrainArgs;
use crate::output::{Output, note};
use crate::progress::Meter;
use crate::recipes;

pub(crate) fn run(args: &TrainArgs) -> Result<()> {
    args.threads.apply()?;
    let mut session = if args.resume { resume(&args.out)? } else { create(args)? };
    let stop = stop_on_interrupt()?;
    let (ending, last_test) = watch(&mut session, &stop)?;
    if ending == Ending::Interrupted {
        let dir = args.out.display();
        note(format_args!("stopped after step {} and saved", session.step()));
        note(format_args!("go on with: rot train --resume --out {dir}"));
        return Ok(());
    }
    let report = Report::new(&session, ending, &last_test);
    session.write_report(&report.markdown())?;
    let mut out = Output::new();
    if args.json {
        serde_json::to_writer(&mut out, &report.json())?;
        writeln!(out)?;
    } else {
        out.write_all(report.text().as_bytes())?;
    }
    out.flush()?;
    Ok(())
}

/// Runs a session and shows how it goes. Returns how it ended, and the last test.
pub(super) fn watch(
    session: &mut Session,
    stop: &AtomicBool,
) -> Result<(Ending, Vec<(ProblemSize, Evaluation)>)> {
    let mut view = View::new(session);
    let mut last_test = Vec::new();
    let meter = Mutex::new(None);
    let lock = || meter.lock().unwrap_or_else(PoisonError::into_inner);
    let watch = |session: &Session, event: Event<'_>| {
        match &event {
            Event::Testing => *lock() = Some(Meter::new("testing", "tokens")),
            Event::Result(_, results) => {
                *lock() = None;
                last_test = results.to_vec();
            }
            Event::Step(_) => (),
        }
        view.show(session, &event);
    };
    let ending = session.run(stop, watch, |progress| {
        if let Some(meter) = &*lock() {
            meter.add(progress.tokens as u64, progress.of as u64);
        }
    });
    view.end();
    Ok((ending?, last_test))
}

fn create(args: &TrainArgs) -> Result<Session> {
    let recipe = recipe(args)?;
    Session::create(&args.out, &recipe).map_err(|error| match error {
        // What the command line asks for cannot be trained, by any means.
        TrainError::Recipe { .. } | TrainError::Data(DataError::TooLong { .. }) => {
            WrongUsage(error.to_string()).into()
        }
        error => error.into(),
    })
}

/// Goes on with the run in a folder, and says what of it is damaged.
pub(super) fn resume(dir: &Path) -> Result<Session> {
    let (session, damaged) = Session::resume(dir)?;
    for error in damaged {
        note(format_args!("left out: {:#}", anyhow::Error::new(error)));
    }
    note(format_args!("going on after step {}", session.step()));
    Ok(session)
}

/// The recipe that the command line asks for.
fn recipe(args: &TrainArgs) -> Result<Recipe> {
    let what = args.what.as_deref().unwrap_or_default();
    let problem = PROBLEMS.iter().find(|problem| problem.name() == what);
    let mut recipe = match (problem, args.size) {
        (Some(problem), Some(size)) => {
            let name = args.recipe.as_deref().unwrap_or(recipes::DEFAULT);
            let text = recipes::NAMED
                .iter()
                .find(|(known, _)| *known == name)
                .map_or("", |(_, text)| *text);
            let mut recipe = Recipe::parse(text).with_context(|| format!("recipe {name}"))?;
            recipe.data.problems = vec![ProblemSize { problem: *problem, size }];
            recipe
        }
        (Some(_), None) => {
            return Err(
                WrongUsage(format!("'{what}' needs a size: add --size, as in --size 4")).into()
            );
        }
        (None, Some(_)) => {
            return Err(
                WrongUsage(format!("'{what}' is not a problem: {}", problem_names())).into()
            );
        }
        (None, None) if args.recipe.is_some() => {
            return Err(WrongUsage(format!(
                "'{what}' is not a problem, and --recipe is for one: {}",
                problem_names()
            ))
            .into());
        }
        (None, None) => {
            let text = fs::read_to_string(what).map_err(|error| {
                WrongUsage(format!(
                    "cannot read the recipe '{what}': {error}; it is no problem either: {}",
                    problem_names()
                ))
            })?;
            Recipe::parse(&text)
                .map_err(|error| WrongUsage(format!("'{what}' is not a recipe: {error}")))?
        }
    };
    if let Some(paradigm) = args.paradigm {
        recipe.data.paradigm = paradigm;
    }
    if let Some(steps) = args.steps {
        recipe.training.steps = steps;
    }
    if let Some(seed) = args.seed {
        recipe.seed = seed;
    }
    Ok(recipe)
}

fn problem_names() -> String {
    let names: Vec<&str> = PROBLEMS.iter().map(|problem| problem.name()).collect();
    format!("the problems are {}", names.join(", "))
}

/// A flag that an interrupt sets. A second one ends the program as it is.
pub(super) fn stop_on_interrupt() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(1);
        }
        note("stopping after this step; once more to stop at once");
    })
    .context("cannot wait for Ctrl-C")?;
    Ok(stop)
}
