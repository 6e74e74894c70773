//! The `rot` command: parse, call, print.
//!
//! Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 failed,
//! 2 wrong usage.

mod args;
mod commands;
mod drawing;
mod figure;
mod folder;
mod output;
mod progress;
mod recipes;
mod tree;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};

fn main() -> ExitCode {
    let result = match Args::parse().command {
        Command::Solve(args) => commands::solve::run(&args),
        Command::Replay(args) => commands::replay::run(&args),
        Command::Contexts(args) => commands::contexts::run(&args),
        Command::Sample(args) => commands::sample::run(&args),
        Command::Stats(args) => commands::stats::run(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::Train(args) => commands::train::run(&args),
        Command::Eval(args) => commands::eval::run(&args),
        Command::Export(args) => commands::export::run(&args),
        Command::Ship(args) => commands::ship::run(&args),
        Command::Verify(args) => commands::verify::run(&args),
        Command::Bench(args) => commands::bench::run(&args),
        Command::Reproduce(args) => commands::reproduce::run(&args),
        Command::Parity(args) => commands::parity::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let usage = error.is::<WrongUsage>();
            // Every other file is named where it is opened.
            let bare = error.chain().len() == 1
                && (error.is::<io::Error>() || error.is::<serde_json::Error>());
            let error = if bare { error.context("cannot write standard output") } else { error };
            if !error.is::<AlreadyReported>() {
                output::note(format_args!("error: {error:#}"));
            }
            ExitCode::from(if usage { 2 } else { 1 })
        }
    }
}

/// The command line asks for something that cannot be.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct WrongUsage(String);

/// Something failed, and the output says what.
#[derive(Debug, thiserror::Error)]
#[error("see above")]
struct AlreadyReported;

/// Whether the reader of our output has left, as `head` does: it has what it wanted.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let closed = Some(io::ErrorKind::BrokenPipe);
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let json = cause.downcast_ref::<serde_json::Error>();
        io == closed || json.and_then(serde_json::Error::io_error_kind) == closed
    })
}
