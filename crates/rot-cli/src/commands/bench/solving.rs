//! What solving costs, for networks as large as the paper's. They are not trained: they compute every
//! token, and the ground truth decides which it is.

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use rot_core::{Problem, Sampler, Sampling, ThoughtGraph, Token, Vocabulary};
use rot_nn::{Network, Transformer, TransformerConfig};
use rot_problems::PROBLEMS;
use rot_solve::{Event, Limits, Memo, Native, Oracle, Solver};

use super::{Measured, Rate};

const MEMORY: usize = 4 << 30;

pub(super) fn solving(time: Duration, peak: f64, measured: &mut Vec<Measured>) -> Result<()> {
    for (what, at_once) in [("1,000 problems at once", 1000), ("one problem at a time", 1)] {
        let questions = questions("mul", 8, 1000)?;
        let (tokens, seconds) = run(&questions, at_once, None, Some(time))?;
        let what = format!("generated, paper's Transformer, mul-8, no memo, {what}");
        measured.push(Measured::new(what, &Rate { count: 1.0, seconds }, 0.0, peak, tokens));
    }
    let problem = find("lcs")?;
    let mut graph = ThoughtGraph::default();
    graph.unfold(problem, &questions("lcs", 32, 1)?[0])?;
    // All sub-questions, so that those that do not depend on each other are answered together.
    let all: Vec<Vec<Token>> = graph.contexts().map(|id| graph.question(id).to_vec()).collect();
    let (tokens, seconds) = run(&all, all.len(), Some(Memo::default()), None)?;
    let what = format!("generated, paper's Transformer, LCS-32 in {seconds:.2} s");
    measured.push(Measured::new(what, &Rate { count: 1.0, seconds }, 0.0, peak, tokens));
    Ok(())
}

fn find(name: &str) -> Result<&'static dyn Problem> {
    let found = PROBLEMS.iter().copied().find(|problem| problem.name() == name);
    found.ok_or_else(|| anyhow!("there is no problem '{name}'"))
}

fn questions(name: &str, size: u32, count: u64) -> Result<Vec<Vec<Token>>> {
    let sampler = Sampler::new(find(name)?, size, Sampling::Paper, 0)?;
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
    time: Option<Duration>,
) -> Result<(f64, f64)> {
    let vocabulary = Vocabulary::of_problems(PROBLEMS);
    let digits: Vec<bool> = vocabulary.tokens().iter().map(|token| token.is_digit()).collect();
    let network = Transformer::new(&TransformerConfig::default(), &digits)?;
    let decoder = network.decoder(&network.layout().initial(0));
    let oracle = Oracle::new(PROBLEMS, network.limit());
    let native = Native::new(decoder, vocabulary, MEMORY).guided_by(Box::new(oracle));
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
