//! `rot export finetune`

use std::io::{self, Write};

use anyhow::{Context as _, Result};
use rot_core::{Problem, Sampling, Text, Token};
use rot_llm::{ExportError, Exported, Finetune};
use rot_train::eval::{Questions, TestQuestions};
use rot_train::run::write_atomically;

use crate::WrongUsage;
use crate::args::FinetuneArgs;
use crate::output::{Output, grouped};
use crate::progress::Meter;

pub(crate) fn run(args: &FinetuneArgs) -> Result<()> {
    if args.problem.len() != args.size.len() {
        let text = format!(
            "{} --problem and {} --size: give each problem its size, as in --problem mul --size 16",
            args.problem.len(),
            args.size.len()
        );
        return Err(WrongUsage(text).into());
    }
    let problems: Vec<(&'static dyn Problem, u32)> =
        args.problem.iter().copied().zip(args.size.iter().copied()).collect();
    let tests = test_questions(args, &problems)?;
    if let Some(path) = &args.test_out {
        write_atomically(path, |file| {
            tests.iter().try_for_each(|question| writeln!(file, "{}", Text(question)))
        })?;
    }
    let finetune = Finetune {
        problems: &problems,
        paradigm: args.paradigm,
        seed: args.seed,
        examples: args.examples,
        unique: args.unique,
        format: args.format,
        end: &args.end,
        without: &tests.into_iter().collect(),
    };
    let meter = Meter::new("writing", "lines");
    let (mut exported, mut before) = (Ok(Exported::default()), 0);
    let written = write_atomically(&args.out, |file| {
        exported = finetune.write(file, |lines| {
            meter.add(lines - before, args.examples);
            before = lines;
        });
        // A file that is not whole does not take the place of another.
        if exported.is_ok() {
            Ok(())
        } else {
            Err(io::Error::other("the lines could not be written"))
        }
    });
    drop(meter);
    let exported = exported.map_err(|error| match error {
        ExportError::Size(error) => anyhow::Error::from(WrongUsage(error.to_string())),
        ExportError::Io(error) => {
            anyhow::Error::from(error).context(format!("cannot write '{}'", args.out.display()))
        }
        error => error.into(),
    })?;
    written.context("cannot finish the file")?;
    let mut out = Output::new();
    if args.json {
        serde_json::to_writer(&mut out, &exported)?;
        writeln!(out)?;
    } else {
        out.write_all(summary(&exported).as_bytes())?;
    }
    out.flush()?;
    Ok(())
}

/// The questions that `rot eval` would test with.
fn test_questions(
    args: &FinetuneArgs,
    problems: &[(&'static dyn Problem, u32)],
) -> Result<Vec<Vec<Token>>> {
    let mut all = Vec::new();
    for &(problem, size) in problems {
        let questions =
            Questions { problem, size, sampling: Sampling::Paper, seed: args.test_seed };
        let drawn =
            TestQuestions::new(&questions).map_err(|error| WrongUsage(error.to_string()))?;
        all.extend(drawn.take(args.test as usize));
    }
    Ok(all)
}

fn summary(exported: &Exported) -> String {
    let Exported { examples, thinks, problems, contexts, .. } = exported;
    let mean = |tokens: u64| tokens as f64 / (*examples).max(1) as f64;
    let mut text = format!(
        "{} lines from {} contexts of {} problems; {} end in think, {} in stop\n\
         prompts {:.1} tokens on average and {} at most, completions {:.1} and {}\n",
        grouped(*examples),
        grouped(*contexts),
        grouped(*problems),
        grouped(*thinks),
        grouped(examples - thinks),
        mean(exported.prompt_tokens),
        exported.longest_prompt,
        mean(exported.completion_tokens),
        exported.longest_completion
    );
    if exported.repeated > 0 || exported.left_out > 0 {
        text.push_str(&format!(
            "left out: {} repeated lines, {} problems of the test\n",
            grouped(exported.repeated),
            grouped(exported.left_out)
        ));
    }
    text
}
