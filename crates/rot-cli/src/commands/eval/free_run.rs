//! `rot eval --free-run`: the model on its own, beside the teacher-forced figures.

use std::fmt::Write;
use std::time::Instant;

use anyhow::{Result, bail};
use rot_core::{Excerpt, Text, Token};
use rot_solve::Generator;
use rot_train::eval::{Evaluation, FreeRun, RunOptions, TestSet, WrongRun, free_run};

use super::as_failure;
use crate::args::EvalArgs;
use crate::output::{counted, grouped};
use crate::progress::Meter;

/// A free run, and where it differs from the teacher-forced evaluation.
pub(super) struct Run {
    pub(super) run: FreeRun,
    pub(super) seconds: f64,
    /// Problems that are exact in one and wrong in the other: there should be none.
    pub(super) disagreements: Vec<String>,
}

impl Run {
    pub(super) fn new(
        args: &EvalArgs,
        generator: impl Generator,
        test: &TestSet,
        evaluation: &Evaluation,
    ) -> Result<Run> {
        let options = RunOptions {
            memo: !args.no_memo,
            at_once: args.at_once as usize,
            ..RunOptions::default()
        };
        let start = Instant::now();
        let meter = Meter::new("solving", "problems");
        let of = test.problems().len() as u64;
        let run = free_run(generator, test, &options, args.failures as usize, |solved| {
            meter.add(solved as u64, of);
        })
        .map_err(as_failure)?;
        drop(meter);
        let disagreements = (0..run.exact.len())
            .filter(|&place| run.exact[place] != evaluation.right[place])
            .map(|place| {
                let question = Excerpt(test.graph().question(test.problems()[place]));
                let what = match run.exact[place] {
                    true => "exact in the free run, wrong teacher-forced",
                    false => "right teacher-forced, not exact in the free run",
                };
                let margin = run.margins[place];
                format!("{question}: {what}; its least clear decision has the margin {margin}")
            })
            .collect();
        Ok(Run { run, seconds: start.elapsed().as_secs_f64(), disagreements })
    }

    /// How many runs are exact.
    pub(super) fn exact(&self) -> usize {
        self.run.exact.iter().filter(|&&exact| exact).count()
    }

    /// How many answers are right.
    pub(super) fn answered(&self) -> usize {
        self.run.answered.iter().filter(|&&right| right).count()
    }

    /// The free run for people.
    pub(super) fn report(&self) -> Result<String> {
        let (run, stats) = (&self.run, &self.run.stats);
        let mut text = String::new();
        writeln!(
            text,
            "\nfree run  {} of {} exact in every token; {} right, {} without an answer",
            grouped(self.exact()),
            grouped(run.exact.len()),
            counted(self.answered(), "answer"),
            grouped(run.failed)
        )?;
        writeln!(
            text,
            "          {}, {} generated, {}, {} deep, longest {}; {:.1} s, {} tokens/s",
            counted(stats.contexts, "context"),
            counted(stats.generated, "token"),
            counted(stats.memo_hits, "memo hit"),
            grouped(stats.deepest),
            grouped(stats.longest),
            self.seconds,
            grouped((stats.generated as f64 / self.seconds.max(1e-9)) as u64)
        )?;
        for wrong in &run.wrong {
            write!(text, "\n{}", shown(wrong)?)?;
        }
        Ok(text)
    }

    /// Fails where the two evaluations differ.
    pub(super) fn check(&self) -> Result<()> {
        if self.disagreements.is_empty() {
            return Ok(());
        }
        let first: Vec<&str> = self.disagreements.iter().take(5).map(String::as_str).collect();
        bail!(
            "the free run and the teacher-forced evaluation disagree on {}:\n{}",
            counted(self.disagreements.len(), "problem"),
            first.join("\n")
        )
    }
}

/// The shortest context that went wrong below a wrong answer.
fn shown(wrong: &WrongRun) -> Result<String> {
    let mut text = String::new();
    match &wrong.answer {
        Ok(answer) => {
            writeln!(text, "{} answered with {}", Excerpt(&wrong.problem), Excerpt(answer))?;
        }
        Err(why) => writeln!(text, "{} has no answer: {why}", Excerpt(&wrong.problem))?,
    }
    let expected = wrong.context.y.iter().copied().filter(|&token| token != Token::PAD);
    let question = wrong.context.y.iter().position(|&token| token != Token::PAD);
    let question = &wrong.context.x[..question.unwrap_or(wrong.context.len())];
    writeln!(text, "  first wrong below it: {}, margin {:.3}", Excerpt(question), wrong.margin)?;
    writeln!(text, "  expected  {}", Text(&expected.collect::<Vec<_>>()))?;
    writeln!(text, "  said      {}", Text(&wrong.said))?;
    Ok(text)
}
