//! `rot check`

use std::fs::File;
use std::io::{self, BufReader, Write};

use anyhow::{Context, Result, bail};
use rot_problems::own::{Report, check};

use crate::args::CheckArgs;
use crate::output::{Output, counted, grouped};
use crate::{AlreadyReported, is_closed_pipe};

pub(crate) fn run(args: &CheckArgs) -> Result<()> {
    let name = args.file.display();
    let from_input = args.file.as_os_str() == "-";
    let report = if from_input {
        check(io::stdin().lock(), args.max_context)
    } else {
        File::open(&args.file).and_then(|file| check(BufReader::new(file), args.max_context))
    }
    .with_context(|| format!("cannot read '{name}'"))?;

    let printed = print(&report, args);
    if report.findings.is_empty() {
        return printed;
    }
    // Findings are a failure even if nobody reads them to the end.
    match printed {
        Err(error) if !is_closed_pipe(&error) => Err(error),
        _ => bail!(AlreadyReported),
    }
}

fn print(report: &Report, args: &CheckArgs) -> Result<()> {
    let mut out = Output::new();
    if args.json {
        serde_json::to_writer(&mut out, report)?;
        writeln!(out)?;
    } else {
        print_for_people(report, &args.file.display().to_string(), &mut out)?;
    }
    out.flush()?;
    Ok(())
}

fn print_for_people(report: &Report, name: &str, out: &mut Output) -> Result<()> {
    for finding in &report.findings {
        writeln!(out, "{name}:{}: {}", finding.line, finding.what)?;
        writeln!(out, "    {}", finding.remedy)?;
    }
    if report.findings_left_out > 0 {
        writeln!(out, "... and {} more", grouped(report.findings_left_out))?;
    }
    writeln!(
        out,
        "{}: {}, {}, longest context {}, {} in the vocabulary: {}",
        match report.findings.len() + report.findings_left_out {
            0 => "good".to_owned(),
            count => counted(count, "finding"),
        },
        counted(report.contexts, "context"),
        counted(report.problems, "problem"),
        grouped(report.longest_context),
        counted(report.vocabulary_size, "token"),
        report.vocabulary
    )?;
    Ok(())
}
