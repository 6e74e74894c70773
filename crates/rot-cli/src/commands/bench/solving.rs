//! What solving costs, for networks as large as the paper's. They are not trained: they compute every
//! token, and the ground truth decides which it is.

use std::cell::Cell;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use rot_core::{Problem, Sampler, Sampling, ThoughtGraph, Token, Vocabulary};
use rot_nn::{Network, Transformer, TransformerConfig};
use rot_problems::{Lcs, Mul, PROBLEMS};
use rot_solve::{Event, Guidance, Limits, Memo, Native, Oracle, Solver, roles};

use super::{Measured, Rate};
use crate::commands::costs;
use crate::figure::lines::{self, Line};
use crate::folder::{make_folder, write};
use crate::progress::Meter;

const MEMORY: usize = 4 << 30;

pub(super) fn solving(time: Duration, peak: f64, measured: &mut Vec<Measured>) -> Result<()> {
    let many = Native::at_once();
    for (what, at_once) in [("many problems at once", many), ("one problem at a time", 1)] {
        let questions = questions(&Mul, 8, 1000)?;
        let (tokens, seconds) = run(&questions, at_once, None, Guidance::Tokens, Some(time))?;
        let what = format!("generated, paper's Transformer, mul-8, no memo, {what}");
        measured.push(Measured::new(what, &Rate { count: 1.0, seconds }, 0.0, peak, tokens));
    }
    let lcs = unfold(&Lcs, 32)?;
    for (guidance, how) in [
        (Guidance::Tokens, "token by token"),
        (Guidance::Spans, "spans drafted by the ground truth"),
    ] {
        let questions = bottom_up(&lcs);
        let (tokens, seconds) = run(&questions, many, Some(Memo::default()), guidance, None)?;
        let what = format!("generated, paper's Transformer, LCS-32, memo, {how}: {seconds:.2} s");
        measured.push(Measured::new(what, &Rate { count: 1.0, seconds }, 0.0, peak, tokens));
    }
    Ok(())
}

/// Solves longer and longer problems, and draws what that costs with and without a memo.
pub(super) fn growth(folder: &Path) -> Result<()> {
    make_folder(folder)?;
    let mut lines = [
        Line { name: "contexts without a memo", points: Vec::new() },
        Line { name: "unique contexts", points: Vec::new() },
        Line { name: "milliseconds to solve", points: Vec::new() },
    ];
    let mut csv = String::from("length,naive_contexts,unique_contexts,generated_tokens,seconds\n");
    let sizes = [2, 4, 8, 12, 16, 20, 24, 28, 32];
    let meter = Meter::new("solving", "problems");
    for size in sizes {
        let lcs = unfold(&Lcs, size)?;
        let root = lcs.context(0).ok_or_else(|| anyhow!("the problem has no context"))?;
        let costs = costs(&lcs, root)?;
        let (questions, memo) = (bottom_up(&lcs), Some(Memo::default()));
        let (tokens, seconds) = run(&questions, Native::at_once(), memo, Guidance::Tokens, None)?;
        let (naive, unique) = (costs.naive_contexts, costs.unique_contexts);
        writeln!(csv, "{size},{naive},{unique},{tokens},{seconds:.4}")?;
        let naive: f64 = naive.to_string().parse()?;
        for (line, value) in lines.iter_mut().zip([naive, unique as f64, 1000.0 * seconds]) {
            line.points.push((f64::from(size), value));
        }
        meter.add(1, sizes.len() as u64);
    }
    drop(meter);
    let title = "Longest common subsequence: what solving costs";
    let svg = lines::draw(title, "digits in each sequence", &lines)
        .map_err(|error| anyhow!("cannot draw: {error}"))?;
    write(folder, "growth.csv", &csv)?;
    write(folder, "growth.svg", &svg)
}

/// The contexts of a random problem.
fn unfold(problem: &'static dyn Problem, size: u32) -> Result<ThoughtGraph> {
    let mut graph = ThoughtGraph::default();
    graph.unfold(problem, &questions(problem, size, 1)?[0])?;
    Ok(graph)
}

/// All questions of a graph, those before that others ask, so that what does not depend on each other
/// is answered together.
fn bottom_up(graph: &ThoughtGraph) -> Vec<Vec<Token>> {
    let mut heights = vec![0; graph.len()];
    for &id in graph.solved_order() {
        let below = graph.thoughts(id).map(|thought| heights[thought.context.index()] + 1);
        heights[id.index()] = below.max().unwrap_or(0);
    }
    let mut ids: Vec<_> = graph.contexts().collect();
    ids.sort_by_key(|id| heights[id.index()]);
    ids.into_iter().map(|id| graph.question(id).to_vec()).collect()
}

fn questions(problem: &'static dyn Problem, size: u32, count: u64) -> Result<Vec<Vec<Token>>> {
    let sampler = Sampler::new(problem, size, Sampling::Paper, 0)?;
    let question = |index| {
        let mut question = Vec::new();
        sampler.write_question(index, &mut question);
        question
    };
    Ok((0..count).map(question).collect())
}

/// Solves questions, for some time or to the end. Returns the tokens that were said, and the seconds.
fn run(
    questions: &[Vec<Token>],
    at_once: usize,
    memo: Option<Memo>,
    guidance: Guidance,
    time: Option<Duration>,
) -> Result<(f64, f64)> {
    let vocabulary = Vocabulary::of_problems(PROBLEMS);
    let network = Transformer::new(&TransformerConfig::default(), &roles(&vocabulary))?;
    let decoder = network.decoder(&network.layout().initial(0));
    let oracle = Oracle::new(PROBLEMS, network.limit());
    let native = Native::new(decoder, vocabulary, MEMORY).guided_by(Box::new(oracle), guidance);
    let said = Cell::new(0);
    let mut solver = Solver::new(native, Limits::default(), memo, MEMORY);
    solver.observe(|event| {
        if let Event::Say { tokens, .. } = event {
            said.set(said.get() + tokens.len());
        }
    });
    let start = Instant::now();
    let mut questions = questions.iter();
    loop {
        while solver.pending() < at_once
            && let Some(question) = questions.next()
        {
            solver.ask(question)?;
        }
        solver.step();
        if solver.pending() == 0 || time.is_some_and(|time| start.elapsed() >= time) {
            return Ok((said.get() as f64, start.elapsed().as_secs_f64()));
        }
    }
}
