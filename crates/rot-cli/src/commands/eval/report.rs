//! An evaluation for people.

use std::fmt::Write;
use std::ops::Range;

use anyhow::Result;
use rot_core::{Excerpt, Token};
use rot_train::eval::{Evaluation, Failure, WrongContext};

use crate::output::{aligned, counted, grouped};

/// The columns that a context is broken into.
const WIDTH: usize = 88;

/// The accuracies, the classes, and where the mistakes are.
pub(super) fn report(evaluation: &Evaluation, seconds: f64) -> Result<String> {
    let of = |right: usize, all: usize| {
        format!("{} of {} right, {}", grouped(right), grouped(all), percent(share(right, all)))
    };
    let [low, high] = evaluation.interval();
    let mut text = String::new();
    writeln!(
        text,
        "problems  {} (95% interval {} to {})",
        of(evaluation.right_problems, evaluation.problems),
        percent(low),
        // An upper end is rounded up, as the lower one is rounded down.
        percent((high * 1e5).ceil() / 1e5)
    )?;
    writeln!(
        text,
        "contexts  {}; longest {}",
        of(evaluation.right_contexts, evaluation.contexts),
        grouped(evaluation.longest_context)
    )?;
    writeln!(
        text,
        "tokens    {}; {} read in {seconds:.1} s",
        of(evaluation.right_supervised, evaluation.supervised),
        grouped(evaluation.tokens)
    )?;
    write!(text, "\n{}", aligned(&class_table(evaluation)))?;

    let wrong = evaluation.contexts - evaluation.right_contexts;
    if wrong > 0 {
        let kinds: Vec<String> = Failure::ALL
            .iter()
            .zip(evaluation.failures)
            .map(|(kind, count)| format!("{} {}", grouped(count), kind.name()))
            .collect();
        writeln!(text, "\n{}: {}", counted(wrong, "wrong context"), kinds.join(", "))?;
    }
    for wrong in &evaluation.wrong {
        write!(text, "\n{}", alignment(wrong)?)?;
    }
    Ok(text)
}

fn class_table(evaluation: &Evaluation) -> Vec<Vec<String>> {
    let header = ["class", "contexts", "right", "accuracy", "deep right", "deep accuracy"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for score in &evaluation.classes {
        rows.push(vec![
            score.class.to_owned(),
            grouped(score.contexts),
            grouped(score.right),
            percent(share(score.right, score.contexts)),
            grouped(score.deep_right),
            percent(share(score.deep_right, score.contexts)),
        ]);
    }
    rows
}

fn share(part: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}

/// A share in percent, rounded down: 100% means all.
fn percent(share: f64) -> String {
    // The small step makes up for shares that lie just below what they are in decimal.
    format!("{:.3}%", (share * 1e5 + 1e-7).floor() / 1e3)
}

/// A wrong context with what was expected and produced under it, token under token. Of a long one the
/// parts with mistakes are shown.
fn alignment(wrong: &WrongContext) -> Result<String> {
    let text = |token: Token| if token == Token::PAD { "·" } else { token.text() };
    let widths: Vec<usize> = (0..wrong.context.len())
        .map(|at| {
            let tokens = [wrong.context.x[at], wrong.context.y[at], wrong.produced[at]];
            tokens.map(|token| text(token).chars().count()).into_iter().max().unwrap_or(1)
        })
        .collect();
    let mut out =
        format!("{} {}: {}\n", wrong.class, Excerpt(wrong.question()), wrong.failure.name());
    let parts = parts(&widths);
    for part in parts.iter().filter(|part| (*part).clone().any(|at| wrong.is_wrong(at))) {
        if parts.len() > 1 {
            let (from, to, of) = (part.start + 1, part.end, widths.len());
            writeln!(out, "  tokens {from} to {to} of {of}")?;
        }
        let mut line = |name: &str, cell: &dyn Fn(usize) -> String| {
            let cells: String =
                part.clone().map(|at| format!("{:1$}", cell(at), widths[at])).collect();
            writeln!(out, "  {}", format!("{name:10}{cells}").trim_end())
        };
        line("context", &|at| text(wrong.context.x[at]).to_owned())?;
        line("expected", &|at| text(wrong.context.y[at]).to_owned())?;
        line("produced", &|at| text(wrong.produced[at]).to_owned())?;
        line("", &|at| if wrong.is_wrong(at) { "^".repeat(widths[at]) } else { String::new() })?;
    }
    Ok(out)
}

/// Cuts tokens of these widths into parts that fit side by side.
fn parts(widths: &[usize]) -> Vec<Range<usize>> {
    let (mut parts, mut start, mut filled) = (Vec::new(), 0, 0);
    for (at, width) in widths.iter().enumerate() {
        if at > start && filled + width > WIDTH {
            parts.push(start..at);
            (start, filled) = (at, 0);
        }
        filled += width;
    }
    parts.push(start..widths.len());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_all_is_a_hundred_percent() {
        assert_eq!(percent(1.0), "100.000%");
        assert_eq!(percent(2_999_999.0 / 3_000_000.0), "99.999%");
        assert_eq!(percent(0.29), "29.000%");
        assert_eq!(percent(0.0), "0.000%");
    }
}
