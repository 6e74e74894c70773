//! `rot eval`

mod free_run;
mod record;
mod report;

use std::io::Write;
use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::{Result, anyhow};
use rot_core::{DEFAULT_MEMORY_LIMIT, Paradigm, UnfoldError};
use rot_llm::Remote;
use rot_train::Model;
use rot_train::eval::{
    EvalError, Evaluation, Progress, Questions, TestSet, evaluate, evaluate_by_asking,
};

use self::free_run::Run;
use self::record::Record;
use self::report::report;
use crate::WrongUsage;
use crate::args::EvalArgs;
use crate::commands::remote::{self, RemoteRecord, Watcher};
use crate::output::{Output, counted, grouped, note};
use crate::progress::Meter;

/// Bytes for what a model remembers of contexts in the free run.
const MEMORY: usize = 1 << 30;

pub(crate) fn run(args: &EvalArgs) -> Result<()> {
    args.threads.apply()?;
    if args.free_run && args.paradigm != Paradigm::Rot {
        let text = "--free-run is for the paradigm rot: there is no recursion in the others";
        return Err(WrongUsage(text.to_owned()).into());
    }
    if let Some((name, remote, watcher)) = remote::open(&args.remote, Some(&args.model))? {
        return by_asking(args, &name, remote, &watcher);
    }
    let model = Model::open(&args.model)?;
    let test = draw(args)?;
    let start = Instant::now();
    let meter = Meter::new("reading", "tokens");
    let evaluation = evaluate(&model, &test, args.paradigm, args.failures as usize, |progress| {
        meter.add(progress.tokens as u64, progress.of as u64);
        ControlFlow::Continue(())
    })
    .map_err(as_failure)?;
    drop(meter);
    let seconds = start.elapsed().as_secs_f64();
    let run = match args.free_run {
        true => {
            let generator = model.generator(MEMORY, args.draft);
            Some(Run::new(args, generator, &test, &evaluation)?)
        }
        false => None,
    };
    show(args, "", &evaluation, seconds, run.as_ref(), None)
}

/// Evaluates a model on a server: one request for every THINK or STOP.
fn by_asking(args: &EvalArgs, name: &str, mut remote: Remote, watcher: &Watcher) -> Result<()> {
    if args.paradigm == Paradigm::Cot {
        let text = "a model on a server is evaluated in the paradigms rot and wt";
        return Err(WrongUsage(text.to_owned()).into());
    }
    let test = draw(args)?;
    remote::estimate(&mut remote, &test, args.paradigm, args.price);
    let start = Instant::now();
    let meter = Meter::new("asking", "tokens");
    let (at_once, failures) = (remote.at_once(), args.failures as usize);
    let add = |progress: Progress| meter.add(progress.tokens as u64, progress.of as u64);
    let evaluation = evaluate_by_asking(&mut remote, &test, args.paradigm, at_once, failures, add)
        .map_err(as_failure)?;
    drop(meter);
    let seconds = start.elapsed().as_secs_f64();
    watcher.check()?;
    let run = match args.free_run {
        true => Some(Run::new(args, remote, &test, &evaluation)?),
        false => None,
    };
    watcher.report();
    watcher.check()?;
    let name = format!(" by {name}");
    show(args, &name, &evaluation, seconds, run.as_ref(), Some(watcher.record()))
}

/// Prints an evaluation, and fails if the free run disagrees with it.
fn show(
    args: &EvalArgs,
    by: &str,
    evaluation: &Evaluation,
    seconds: f64,
    run: Option<&Run>,
    remote: Option<RemoteRecord>,
) -> Result<()> {
    let mut out = Output::new();
    if args.json {
        serde_json::to_writer(&mut out, &Record::new(args, evaluation, seconds, run, remote))?;
        writeln!(out)?;
    } else {
        let header = format!(
            "{}-{}{by}, {}, {} numbers, test seed {}\n",
            args.problem.name(),
            args.size,
            args.paradigm.name(),
            args.sampling.name(),
            args.seed
        );
        out.write_all(header.as_bytes())?;
        out.write_all(report(evaluation, seconds)?.as_bytes())?;
        if let Some(run) = run {
            out.write_all(run.report()?.as_bytes())?;
        }
    }
    out.flush()?;
    run.map_or(Ok(()), Run::check)
}

fn draw(args: &EvalArgs) -> Result<TestSet> {
    let EvalArgs { problem, size, sampling, seed, count, .. } = *args;
    let questions = Questions { problem, size, sampling, seed };
    let meter = Meter::new("drawing", "problems");
    let drawn = || meter.add(1, count.into());
    let test = TestSet::draw(&questions, count as usize, DEFAULT_MEMORY_LIMIT, drawn)
        .map_err(as_failure)?;
    if test.problems().len() < count as usize {
        note(format_args!(
            "{}-{size} has no more than {} to draw, not {}",
            problem.name(),
            counted(test.problems().len(), "different problem"),
            grouped(count)
        ));
    }
    Ok(test)
}

fn as_failure(error: EvalError) -> anyhow::Error {
    match error {
        EvalError::Size(error) => WrongUsage(error.to_string()).into(),
        EvalError::Unfold(UnfoldError::Memory { .. }) => {
            anyhow!("{error}; evaluate fewer problems with --count")
        }
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use rot_core::{Context, Token, parse_tokens};
    use rot_train::eval::{ClassScore, Evaluation, Failure, WrongContext};

    use super::*;
    use crate::args::{Args, Command};

    fn wrong(class: &'static str, question: &str, expected: &str, produced: &str) -> WrongContext {
        let mut context = Context::default();
        context.push_given(&parse_tokens(question).unwrap());
        let mut said = vec![Token::PAD; context.len()];
        said.extend(parse_tokens(produced).unwrap());
        context.push_generated(&parse_tokens(expected).unwrap());
        let failure = Failure::of(&context, &said).unwrap();
        WrongContext { class, context, produced: said, failure }
    }

    fn evaluation() -> Evaluation {
        let score =
            |class, contexts, right, deep_right| ClassScore { class, contexts, right, deep_right };
        let long = format!("<TAIL>{}=<THINK>", "12345".repeat(30));
        Evaluation {
            problems: 30_000,
            right_problems: 29_991,
            right: Vec::new(),
            contexts: 1_234_567,
            right_contexts: 1_234_564,
            supervised: 9_000_000,
            right_supervised: 8_999_997,
            tokens: 20_000_000,
            longest_context: 113,
            classes: vec![score("mul", 100_000, 99_998, 99_990), score("compare", 500, 500, 500)],
            failures: [1, 1, 1],
            wrong: vec![
                wrong("mul", "<GO>15*40=", "<TAIL>600+0=<THINK>", "<TAIL>60000=<THINK>"),
                wrong("compare", "<GO>106<VS>89=", "<GT><STOP>", "<GO><STOP>"),
                wrong("mul", "<GO>5*4=", &long, &long.replacen("45=", "46=", 1)),
            ],
        }
    }

    #[test]
    fn people_see_where_the_mistakes_are() {
        insta::assert_snapshot!(report(&evaluation(), 12.34).unwrap(), @"
        problems  29,991 of 30,000 right, 99.970% (95% interval 99.942% to 99.985%)
        contexts  1,234,564 of 1,234,567 right, 99.999%; longest 113
        tokens    8,999,997 of 9,000,000 right, 99.999%; 20,000,000 read in 12.3 s

        class    contexts   right  accuracy  deep right  deep accuracy
        mul       100,000  99,998   99.998%      99,990        99.990%
        compare       500     500  100.000%         500       100.000%

        3 wrong contexts: 1 repeat count, 1 digit count, 1 other

        mul <GO>15*40=: repeat count
          context   <GO>15*40=<TAIL>600+0=<THINK>
          expected  ·   ······<TAIL>600+0=<THINK>
          produced  ·   ······<TAIL>60000=<THINK>
                                       ^

        compare <GO>106<VS>89=: digit count
          context   <GO>106<VS>89=<GT><STOP>
          expected  ·   ····   ···<GT><STOP>
          produced  ·   ····   ···<GO><STOP>
                                  ^^^^

        mul <GO>5*4=: other
          tokens 81 to 158 of 158
          context   5123451234512345123451234512345123451234512345123451234512345123451234512345=<THINK>
          expected  5123451234512345123451234512345123451234512345123451234512345123451234512345=<THINK>
          produced  5123451234512345123451234512345123451234512345123451234512345123451234512346=<THINK>
                                                                                               ^
        ");
    }

    #[test]
    fn programs_get_numbers() {
        let args = ["rot", "eval", "m", "--problem", "mul", "--size", "8", "--seed", "4"];
        let Command::Eval(args) =
            Args::try_parse_from(args).unwrap_or_else(|e| panic!("{e}")).command
        else {
            panic!("not rot eval")
        };
        let record =
            serde_json::to_value(Record::new(&args, &evaluation(), 2.0, None, None)).unwrap();
        assert_eq!(record["problem"], "mul");
        assert_eq!((&record["size"], &record["seed"]), (&8.into(), &4.into()));
        assert_eq!(record["paradigm"], "rot");
        assert_eq!(record["problems"], 30_000);
        assert_eq!(record["deep_accuracy"], 29_991.0 / 30_000.0);
        assert_eq!(record["context_accuracy"], 1_234_564.0 / 1_234_567.0);
        assert_eq!(record["unique_contexts"], 1_234_567);
        assert_eq!(record["tokens"], 20_000_000);
        let [low, high] = [0, 1].map(|end| record["interval"][end].as_f64().unwrap());
        assert!(0.999 < low && low < 0.9997 && 0.9997 < high && high < 1.0);
        assert_eq!(record["classes"][1]["class"], "compare");
        assert_eq!(record["failures"]["digit_count"], 1);
        assert_eq!(record["wrong"][1]["x"], "<GO>106<VS>89=<GT><STOP>");
        assert_eq!(record["wrong"][1]["wrong_places"], serde_json::json!([8]));
        assert_eq!(record["wrong"][1]["failure"], "digit count");
    }
}
