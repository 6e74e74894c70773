//! `rot verify`

use std::io::Write;

use anyhow::{Result, bail};
use rot_core::{DEFAULT_MEMORY_LIMIT, Paradigm, Sampling};
use rot_train::eval::{Questions, TestSet, evaluate, wilson};
use rot_train::{Card, Claim, Model, ProblemSize};
use serde::Serialize;

use crate::AlreadyReported;
use crate::args::VerifyArgs;
use crate::output::{Output, grouped, note};
use crate::progress::Meter;

/// Problems of a quick sample.
const QUICK: usize = 200;

/// A claim, and what was measured.
#[derive(Serialize)]
struct Verdict<'a> {
    weights: String,
    #[serde(flatten)]
    claim: &'a Claim,
    measured_problems: usize,
    measured_right: usize,
    holds: bool,
}

pub(crate) fn run(args: &VerifyArgs) -> Result<()> {
    args.threads.apply()?;
    let mut out = Output::new();
    let mut holds = true;
    for (weights, card) in Card::read(&args.path)? {
        let model = Model::open(&weights)?;
        note(format_args!(
            "{}: {} parameters, {}",
            weights.display(),
            grouped(model.params.len()),
            card.training
        ));
        for claim in &card.claims {
            let verdict =
                Verdict { weights: weights.display().to_string(), ..verify(args, &model, claim)? };
            holds &= verdict.holds;
            if args.json {
                serde_json::to_writer(&mut out, &verdict)?;
                writeln!(out)?;
            } else {
                writeln!(out, "{}", line(&verdict))?;
            }
            out.flush()?;
        }
    }
    if !holds {
        note("a card claims more than is measured");
        bail!(AlreadyReported);
    }
    Ok(())
}

/// Tests a model with as many problems of its card's test set as are asked for.
fn verify<'a>(args: &VerifyArgs, model: &Model, claim: &'a Claim) -> Result<Verdict<'a>> {
    let ProblemSize { problem, size } = claim.problem;
    let seed = args.seed.unwrap_or(claim.seed);
    let questions = Questions { problem, size, sampling: Sampling::Paper, seed };
    let count = if args.full { claim.problems } else { claim.problems.min(QUICK) };
    let test = TestSet::draw(&questions, count, DEFAULT_MEMORY_LIMIT, || ())?;
    let meter = Meter::new("reading", "tokens");
    let evaluation = evaluate(model, &test, Paradigm::Rot, 0, |progress| {
        meter.add(progress.tokens as u64, progress.of as u64);
    })?;
    drop(meter);
    let (right, of) = (evaluation.right_problems, evaluation.problems);
    Ok(Verdict {
        weights: String::new(),
        claim,
        measured_problems: of,
        measured_right: right,
        holds: holds(claim, right, of, seed == claim.seed),
    })
}

/// Whether what was measured bears a claim out. On the same problems nothing may be missing; on others, or
/// on some of them, the claim must lie within the 95% interval or below it.
fn holds(claim: &Claim, right: usize, of: usize, same_seed: bool) -> bool {
    if same_seed && of == claim.problems {
        return right >= claim.right;
    }
    let claimed = claim.right as f64 / claim.problems.max(1) as f64;
    of > 0 && claimed <= wilson(right, of)[1]
}

fn line(verdict: &Verdict<'_>) -> String {
    let Verdict { weights, claim, measured_problems, measured_right, holds } = verdict;
    format!(
        "{weights}  {}  card {} of {}  measured {} of {}  {}",
        claim.problem,
        grouped(claim.right),
        grouped(claim.problems),
        grouped(*measured_right),
        grouped(*measured_problems),
        if *holds { "holds" } else { "DOES NOT HOLD" }
    )
}

#[cfg(test)]
mod tests {
    use rot_problems::Add;

    use super::*;

    #[test]
    fn a_claim_holds_as_far_as_it_was_measured() {
        let problem = ProblemSize { problem: &Add, size: 4 };
        let claim = Claim { problem, seed: 1, problems: 5000, right: 4990 };
        assert!(holds(&claim, 4990, 5000, true));
        assert!(!holds(&claim, 4989, 5000, true), "the same problems");
        assert!(holds(&claim, 4985, 5000, false), "others");
        assert!(!holds(&claim, 4970, 5000, false));
        assert!(holds(&claim, 199, 200, true) && !holds(&claim, 190, 200, true), "a sample");
        assert!(!holds(&claim, 0, 0, true));
    }
}
