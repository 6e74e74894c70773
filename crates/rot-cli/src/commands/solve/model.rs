//! `rot solve` without `--oracle`: a network or a model on a server solves questions, one or many.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use anyhow::{Context as _, Result, anyhow, bail};
use rot_core::{CostCounter, Text, ThoughtGraph, Token, UBig};
use rot_problems::{Lines, Question, read};
use rot_solve::{
    Event, Generator, Line, Memo, MemoFile, Native, Outcome, Recursion, RootId, Solver,
    TRACE_VERSION,
};
use rot_train::Model;
use serde::Serialize;

use crate::AlreadyReported;
use crate::args::SolveArgs;
use crate::commands::remote;
use crate::drawing::{Steps, answer_text, body, draw_tree};
use crate::output::{Output, Role, counted, grouped, note};
use crate::progress::Meter;

/// Lines from standard input that are read ahead.
const READ_AHEAD: usize = 256;
/// Questions that can wait to be printed, because one before them has no answer yet.
const UNPRINTED: usize = 64_000;
/// Events that are kept to be drawn; a trace file has all of them.
const DRAWN: usize = 1_000_000;
/// Bytes for the ground truth of a question that a model has answered.
const TRUTH_MEMORY: usize = 1 << 28;

/// An answer for programs. What has no bound is text.
#[derive(Serialize)]
struct Record<'a> {
    model: String,
    question: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    /// Whether it is the ground truth's, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    correct: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    path: Vec<String>,
    contexts: u64,
    generated_tokens: u64,
    memo_hits: u64,
    deepest: usize,
    longest_context: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    cot_context: Option<String>,
}

/// What is done with events: they are kept to be drawn, and written to a file.
struct Watcher {
    kept: Option<Vec<Line>>,
    file: Option<BufWriter<File>>,
    error: Option<io::Error>,
}

impl Watcher {
    fn new(args: &SolveArgs, model: &str) -> Result<Watcher> {
        let file = match &args.run.trace {
            Some(path) => {
                let what = || format!("cannot write the trace '{}'", path.display());
                Some(BufWriter::new(File::create(path).with_context(what)?))
            }
            None => None,
        };
        let kept = (args.tree || args.run.steps).then(Vec::new);
        let mut watcher = Watcher { kept, file, error: None };
        watcher.see(Line::Trace { version: TRACE_VERSION, model: model.to_owned() });
        Ok(watcher)
    }

    fn see(&mut self, line: Line) {
        if let Some(file) = &mut self.file {
            let written = serde_json::to_writer(&mut *file, &line).map_err(io::Error::from);
            if let Err(error) = written.and_then(|()| writeln!(file)) {
                self.error.get_or_insert(error);
                self.file = None;
            }
        }
        if let Some(kept) = &mut self.kept
            && kept.len() < DRAWN
        {
            kept.push(line);
        }
    }

    /// Draws what was kept.
    fn draw(&mut self, args: &SolveArgs, out: &mut Output) -> Result<()> {
        let kept = self.kept.take().unwrap_or_default();
        if args.run.steps {
            let mut steps = Steps::default();
            kept.iter().try_for_each(|line| steps.add(line, out))?;
        }
        if args.tree {
            let mut recursion = Recursion::default();
            kept.iter().try_for_each(|line| recursion.add(line))?;
            draw_tree(&recursion, out)?;
        }
        if kept.len() == DRAWN {
            note(format_args!("only the first {} are drawn", counted(DRAWN, "event")));
        }
        Ok(())
    }

    /// Writes what is left, and says whether everything was.
    fn finish(&mut self) -> Result<()> {
        if let Some(file) = &mut self.file
            && let Err(error) = file.flush()
        {
            self.error.get_or_insert(error);
        }
        match self.error.take() {
            Some(error) => Err(error).context("cannot write the trace"),
            None => Ok(()),
        }
    }
}

pub(super) fn run(args: &SolveArgs) -> Result<()> {
    args.run.threads.apply()?;
    if let Some((name, generator, watcher)) = remote::open(&args.remote, args.run.model.as_deref())?
    {
        let (fingerprint, at_once) = (generator.fingerprint(), generator.at_once());
        let result = solve(args, &name, generator, fingerprint, at_once);
        watcher.report();
        return result;
    }
    let (name, model) = match &args.run.model {
        Some(path) => (path.display().to_string(), Model::open(path)?),
        None => ("embedded model".to_owned(), Model::embedded()?),
    };
    let native = model.generator(args.question.memory_limit() / 2, args.run.draft);
    solve(args, &name, native, model.fingerprint(), Native::at_once())
}

/// Has a generator solve what is asked, up to `at_once` questions at the same time.
fn solve(
    args: &SolveArgs,
    name: &str,
    generator: impl Generator,
    fingerprint: [u8; 32],
    at_once: usize,
) -> Result<()> {
    let memory = args.question.memory_limit();
    let memo = match &args.run.memo {
        Some(path) => Some(Memo::with_file(MemoFile::open(path, fingerprint)?)),
        None => (!args.run.no_memo).then(Memo::default),
    };
    let mut solver = Solver::new(generator, args.run.limits(), memo, memory / 2);
    let watcher = Rc::new(RefCell::new(Watcher::new(args, name)?));
    if args.run.trace.is_some() || args.tree || args.run.steps {
        let watcher = Rc::clone(&watcher);
        solver.observe(move |event: &Event<'_>| watcher.borrow_mut().see(event.into()));
    }
    let result = if args.question.is_input() {
        many(args, name, at_once, &mut solver, &watcher)
    } else {
        one(args, name, &mut solver, &watcher)
    };
    if let Some(memo) = solver.memo() {
        memo.save()?;
    }
    watcher.borrow_mut().finish()?;
    result
}

/// Solves the question of the command line.
fn one(
    args: &SolveArgs,
    name: &str,
    solver: &mut Solver<'_, impl Generator>,
    watcher: &RefCell<Watcher>,
) -> Result<()> {
    let question = args.question.read()?;
    let unknown = |unknown| {
        let question = Text(&question.tokens);
        anyhow!("{unknown}, which {question} needs: choose a model with --model, or --oracle")
    };
    solver.ask(&question.tokens).map_err(unknown)?;
    let outcome = solver.run().remove(0);
    let mut out = Output::new();
    if args.json {
        write_record(name, &question, &outcome, &mut out)?;
    } else {
        watcher.borrow_mut().draw(args, &mut out)?;
        if let (Ok(answer), false) = (&outcome.answer, args.tree) {
            out.tokens(body(&question.tokens), Role::Question)?;
            write!(out, " = ")?;
            out.tokens(&answer[..answer.len() - 1], Role::Answer)?;
            writeln!(out)?;
        }
        let stats = &outcome.stats;
        let truth = Truth::of(&question);
        let cot = truth.as_ref().map_or(String::new(), |truth| {
            format!("; CoT: one context of {}", grouped(&truth.cot_context))
        });
        out.dimmed(format_args!(
            "{name}: {}, {} generated, {}, {} deep, longest context {}{cot}",
            counted(stats.contexts, "context"),
            counted(stats.generated, "token"),
            counted(stats.memo_hits, "memo hit"),
            grouped(stats.deepest),
            grouped(stats.longest)
        ))?;
        writeln!(out)?;
        out.flush()?;
        if let (Some(truth), Ok(answer)) = (truth, &outcome.answer)
            && **answer != *truth.answer
        {
            let right = answer_text(&truth.answer);
            note(format_args!("the model is wrong: the ground truth is {right}"));
        }
    }
    out.flush()?;
    match outcome.answer {
        Ok(_) => Ok(()),
        Err(_) if args.json => bail!(AlreadyReported),
        Err(failure) => bail!("no answer: {failure}"),
    }
}

/// A line of the input, on its way to its answer.
enum Slot {
    Waiting(Question),
    Done(Result<(Question, Outcome), String>),
}

/// Solves questions from standard input, and answers in order.
fn many(
    args: &SolveArgs,
    name: &str,
    at_once: usize,
    solver: &mut Solver<'_, impl Generator>,
    watcher: &RefCell<Watcher>,
) -> Result<()> {
    let lines = read_lines();
    let mut out = Output::new();
    // What was read and not answered yet; the first of them is question `number`, counted from 0.
    let mut slots: VecDeque<Slot> = VecDeque::new();
    let mut places: HashMap<RootId, u64> = HashMap::new();
    let (mut number, mut asked, mut ended, mut failed) = (0u64, 0u64, false, false);
    let meter = Meter::new("solving", "questions");
    loop {
        while !ended && solver.pending() < at_once && slots.len() < UNPRINTED {
            // Whoever feeds questions one by one may wait for the answer to each.
            let line = if solver.pending() == 0 && slots.is_empty() {
                lines.recv().map_err(|_| TryRecvError::Disconnected)
            } else {
                lines.try_recv()
            };
            match line {
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => ended = true,
                Ok(line) => {
                    let (slot, root) = slot(line, solver)?;
                    places.extend(root.map(|root| (root, asked)));
                    slots.push_back(slot);
                    asked += 1;
                }
            }
        }
        for outcome in solver.step() {
            if let Some(place) = places.remove(&outcome.root)
                && let Some(slot) = slots.get_mut((place - number) as usize)
            {
                let done = Slot::Done(Err(String::new()));
                if let Slot::Waiting(question) = std::mem::replace(slot, done) {
                    *slot = Slot::Done(Ok((question, outcome)));
                }
            }
        }
        while let Some(Slot::Done(_)) = slots.front()
            && let Some(Slot::Done(done)) = slots.pop_front()
        {
            number += 1;
            meter.add(1, asked);
            failed |= !answer(args, name, number, &done, &mut out)?;
        }
        if slots.is_empty() {
            out.flush()?;
            if ended {
                break;
            }
        }
    }
    drop(meter);
    watcher.borrow_mut().draw(args, &mut out)?;
    out.flush()?;
    if failed {
        bail!(AlreadyReported);
    }
    Ok(())
}

/// Puts a line to the solver.
fn slot(
    line: io::Result<Result<String, String>>,
    solver: &mut Solver<'_, impl Generator>,
) -> Result<(Slot, Option<RootId>)> {
    let line = line.context("cannot read standard input")?;
    let question = line.and_then(|line| read(&line).map_err(|error| error.to_string()));
    Ok(match question {
        Err(error) => (Slot::Done(Err(error)), None),
        Ok(question) => match solver.ask(&question.tokens) {
            Ok(root) => (Slot::Waiting(question), Some(root)),
            Err(error) => (Slot::Done(Err(error.to_string())), None),
        },
    })
}

/// Prints a line for a question; says whether it was answered.
fn answer(
    args: &SolveArgs,
    name: &str,
    number: u64,
    done: &Result<(Question, Outcome), String>,
    out: &mut Output,
) -> Result<bool> {
    let error = match done {
        Ok((question, outcome)) if args.json => {
            write_record(name, question, outcome, out)?;
            return Ok(outcome.answer.is_ok());
        }
        Ok((_, Outcome { answer, .. })) if args.tree => return Ok(answer.is_ok()),
        Ok((_, Outcome { answer: Ok(answer), .. })) => {
            writeln!(out, "{}", answer_text(answer))?;
            return Ok(true);
        }
        Ok((_, Outcome { answer: Err(failure), .. })) => failure.to_string(),
        Err(error) => error.clone(),
    };
    // A line for a line, so that answers stay with their questions.
    if args.json {
        serde_json::to_writer(&mut *out, &serde_json::json!({ "error": error }))?;
        writeln!(out)?;
    } else {
        writeln!(out, "error: {error}")?;
        note(format_args!("error: line {number}: {error}"));
    }
    Ok(false)
}

/// Reads lines while others are solved.
fn read_lines() -> Receiver<io::Result<Result<String, String>>> {
    let (sender, receiver) = sync_channel(READ_AHEAD);
    std::thread::spawn(move || {
        let mut lines = Lines::new(io::stdin().lock());
        loop {
            let line = match lines.next_line() {
                Ok(None) => break,
                Ok(Some(Ok(line))) => Ok(Ok(line.to_owned())),
                Ok(Some(Err(error))) => Ok(Err(error.what.clone())),
                Err(error) => Err(error),
            };
            let over = line.is_err();
            if sender.send(line).is_err() || over {
                break;
            }
        }
    });
    receiver
}

fn write_record(
    name: &str,
    question: &Question,
    outcome: &Outcome,
    out: &mut Output,
) -> Result<()> {
    let stats = &outcome.stats;
    let failure = outcome.answer.as_ref().err();
    let error = failure.map(ToString::to_string);
    let (truth, answer) = (Truth::of(question), outcome.answer.as_ref().ok());
    let path = failure.map_or(&[][..], |failure| failure.path.as_slice());
    let record = Record {
        model: name.to_owned(),
        question: Text(&question.tokens).to_string(),
        answer: answer.map(|answer| Text(answer).to_string()),
        correct: truth.as_ref().zip(answer).map(|(truth, answer)| *truth.answer == **answer),
        error: error.as_deref(),
        path: path.iter().map(|question| Text(question).to_string()).collect(),
        contexts: stats.contexts,
        generated_tokens: stats.generated,
        memo_hits: stats.memo_hits,
        deepest: stats.deepest,
        longest_context: stats.longest,
        cot_context: truth.map(|truth| truth.cot_context.to_string()),
    };
    serde_json::to_writer(&mut *out, &record)?;
    writeln!(out)?;
    Ok(())
}

/// What is known of a question that a model has answered.
struct Truth {
    answer: Vec<Token>,
    /// What Chain of Thought would have needed.
    cot_context: UBig,
}

impl Truth {
    /// The ground truth, if it can be said at little cost.
    fn of(question: &Question) -> Option<Truth> {
        let mut graph = ThoughtGraph::with_memory_limit(TRUTH_MEMORY);
        let root = graph.unfold(question.problem, &question.tokens).ok()?;
        let cot_context = CostCounter::new(&graph).ok()?.costs(root).cot_context;
        Some(Truth { answer: graph.answer(root).to_vec(), cot_context })
    }
}
