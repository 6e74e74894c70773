//! How good a model is at problems of one kind: what cards claim, and what is measured to check them.

use std::ops::ControlFlow;

use anyhow::Result;
use rot_core::{DEFAULT_MEMORY_LIMIT, Paradigm, Sampling};
use rot_train::eval::{Questions, RunOptions, TestSet, evaluate, free_run};
use rot_train::{Claim, FreeRunClaim, Model, ProblemSize};

use crate::progress::Meter;

/// Problems of a full test, and where problems have more contexts than [`MANY`].
const COUNTS: [usize; 2] = [5_000, 500];
const MANY: usize = 500;
/// Bytes for the contexts of a free run.
const MEMORY: usize = 1 << 30;

/// The questions of a test, distributed as in the paper.
pub(super) fn questions(problem: ProblemSize, seed: u64) -> Questions {
    let ProblemSize { problem, size } = problem;
    Questions { problem, size, sampling: Sampling::Paper, seed }
}

/// How many problems a full test has.
pub(super) fn full_count(questions: &Questions) -> Result<usize> {
    Ok(COUNTS[usize::from(questions.mean_contexts()? > MANY)])
}

/// A test set, as it is drawn.
pub(super) fn draw(questions: &Questions, count: usize) -> Result<TestSet> {
    let meter = Meter::new("drawing", "problems");
    Ok(TestSet::draw(questions, count, DEFAULT_MEMORY_LIMIT, || meter.add(1, count as u64))?)
}

/// Tests a RoT model with so many problems, and has it solve the first `runs` of them on its own.
pub(super) fn measure(
    model: &Model,
    problem: ProblemSize,
    seed: u64,
    problems: usize,
    runs: usize,
) -> Result<Claim> {
    let questions = questions(problem, seed);
    let test = draw(&questions, problems)?;
    let meter = Meter::new("reading", "tokens");
    let evaluation = evaluate(model, &test, Paradigm::Rot, 0, |progress| {
        meter.add(progress.tokens as u64, progress.of as u64);
        ControlFlow::Continue(())
    })?;
    drop(meter);
    let free_run = match runs {
        0 => None,
        _ => Some(solve(model, &draw(&questions, runs)?)?),
    };
    Ok(Claim {
        problem,
        seed,
        problems: evaluation.problems,
        right: evaluation.right_problems,
        free_run,
    })
}

/// Has a model solve all problems of a test set on its own.
fn solve(model: &Model, test: &TestSet) -> Result<FreeRunClaim> {
    let problems = test.problems().len();
    let meter = Meter::new("solving", "problems");
    let generator = model.generator(MEMORY, false);
    let run = free_run(generator, test, &RunOptions::default(), 0, |solved| {
        meter.add(solved as u64, problems as u64);
    })?;
    let right = run.answered.iter().filter(|&&right| right).count();
    Ok(FreeRunClaim { problems, right })
}
