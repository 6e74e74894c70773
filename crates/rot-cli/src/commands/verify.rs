//! `rot verify`

use std::io::Write;

use anyhow::{Result, bail};
use rot_train::eval::wilson;
use rot_train::{Card, Claim, FreeRunClaim, Model};
use serde::Serialize;

use super::measure::{measure, questions};
use crate::AlreadyReported;
use crate::args::VerifyArgs;
use crate::output::{Output, grouped, note};

/// The most problems of a quick sample.
const QUICK: usize = 200;
/// About how many contexts the quick samples of a model have together.
const QUICK_CONTEXTS: usize = 15_000;
/// The fewest problems of a quick sample. The model solves at most so many on its own, and one in so many.
const QUICK_RUNS: usize = 5;

/// A claim, and what was measured.
#[derive(Serialize)]
struct Verdict<'a> {
    weights: String,
    #[serde(flatten)]
    claim: &'a Claim,
    measured_problems: usize,
    measured_right: usize,
    /// Problems that the model solved on its own, and those that it got right.
    measured_free_run: Option<FreeRunClaim>,
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
        let contexts = QUICK_CONTEXTS / card.claims.len().max(1);
        for claim in &card.claims {
            let verdict = verify(args, &model, claim, contexts)?;
            let verdict = Verdict { weights: weights.display().to_string(), ..verdict };
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

/// Tests a model with as many problems of its card's test set as are asked for, a quick sample with about so many
/// contexts.
fn verify<'a>(
    args: &VerifyArgs,
    model: &Model,
    claim: &'a Claim,
    quick_contexts: usize,
) -> Result<Verdict<'a>> {
    let seed = args.seed.unwrap_or(claim.seed);
    let quick =
        |problems: usize, most: usize| if args.full { problems } else { problems.min(most) };
    let contexts = questions(claim.problem, seed).mean_contexts()?;
    let most = QUICK.min((quick_contexts / contexts).max(QUICK_RUNS));
    let most_runs = QUICK_RUNS.min(most / QUICK_RUNS);
    let runs = claim.free_run.map_or(0, |free| quick(free.problems, most_runs));
    let measured = measure(model, claim.problem, seed, quick(claim.problems, most), runs)?;
    let same_seed = seed == claim.seed;
    let mut holds_up =
        holds([claim.right, claim.problems], [measured.right, measured.problems], same_seed);
    if let (Some(free), Some(measured)) = (claim.free_run, measured.free_run) {
        holds_up &=
            holds([free.right, free.problems], [measured.right, measured.problems], same_seed);
    }
    Ok(Verdict {
        weights: String::new(),
        claim,
        measured_problems: measured.problems,
        measured_right: measured.right,
        measured_free_run: measured.free_run,
        holds: holds_up,
    })
}

/// Whether what was measured, right of all, bears a claim out. On the same problems nothing may be missing, and
/// on some of them no more may be wrong than on all. Two samples of the same model differ by chance: elsewhere a
/// claim fails where its 95% interval lies above that of what was measured.
fn holds([claimed, of_claimed]: [usize; 2], [right, of]: [usize; 2], same_seed: bool) -> bool {
    if same_seed && of == of_claimed {
        return right >= claimed;
    }
    let is_possible = !same_seed || of.saturating_sub(right) <= of_claimed.saturating_sub(claimed);
    of > 0 && is_possible && wilson(claimed, of_claimed)[0] <= wilson(right, of)[1]
}

fn line(verdict: &Verdict<'_>) -> String {
    let Verdict { weights, claim, holds, .. } = verdict;
    let of = |right: usize, of: usize| format!("{} of {}", grouped(right), grouped(of));
    let mut text = format!(
        "{weights}  {}  card {}  measured {}",
        claim.problem,
        of(claim.right, claim.problems),
        of(verdict.measured_right, verdict.measured_problems),
    );
    if let (Some(claimed), Some(measured)) = (claim.free_run, verdict.measured_free_run) {
        text += &format!(
            "  free runs: card {}  measured {}",
            of(claimed.right, claimed.problems),
            of(measured.right, measured.problems)
        );
    }
    text + if *holds { "  holds" } else { "  DOES NOT HOLD" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_holds_as_far_as_it_was_measured() {
        let claim = [4990, 5000];
        assert!(holds(claim, [4990, 5000], true));
        assert!(!holds(claim, [4989, 5000], true), "the same problems");
        assert!(holds(claim, [4985, 5000], false), "others");
        assert!(!holds(claim, [4970, 5000], false));
        assert!(holds(claim, [199, 200], true) && !holds(claim, [190, 200], true), "a sample");
        assert!(!holds([250, 250], [39, 40], true), "one of those that were right");
        assert!(holds([250, 250], [498, 500], false) && !holds([250, 250], [480, 500], false));
        assert!(!holds(claim, [0, 0], true));
    }
}
