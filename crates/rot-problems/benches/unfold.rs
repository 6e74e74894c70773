//! How fast problems unfold: `cargo bench -p rot-problems`.

use std::time::Instant;

use rayon::prelude::*;
use rot_core::{Context, CostCounter, Problem, Sampler, Sampling, ThoughtGraph};
use rot_problems::{Add, Div, Knapsack, Lcs, Lps, Mcm, Mul, Sort, Sub};

fn main() {
    let threads = rayon::current_num_threads();
    println!("unique contexts, tokens ready to train on, {threads} threads");
    println!(
        "{:12} {:>9} {:>12} {:>12} {:>12}",
        "problem", "problems", "contexts", "contexts/s", "tokens/s"
    );
    let largest: [(&'static dyn Problem, u32); 9] = [
        (&Add, 64),
        (&Sub, 64),
        (&Mul, 32),
        (&Div, 32),
        (&Lcs, 32),
        (&Lps, 56),
        (&Knapsack, 12),
        (&Mcm, 12),
        (&Sort, 64),
    ];
    for (problem, size) in largest {
        throughput(problem, size);
    }
    test_set(&Mul, 8, 30_000);
}

/// Unfolds problems until three million contexts were written, each problem by itself.
fn throughput(problem: &'static dyn Problem, size: u32) {
    let sampler = Sampler::new(problem, size, Sampling::Paper, 1).expect("a valid size");
    let start = Instant::now();
    let mut problems = 0;
    let (mut contexts, mut tokens) = (0, 0);
    while contexts < 3_000_000 {
        let batch = 512;
        let (more_contexts, more_tokens) = (problems..problems + batch)
            .into_par_iter()
            .map_init(Default::default, |(graph, question, context): &mut Scratch, index| {
                sampler.write_question(index, question);
                graph.clear();
                graph.unfold(problem, question).expect("a sampled question");
                context.clear();
                for id in graph.contexts() {
                    graph.write_rot(id, context);
                }
                (graph.len(), context.len())
            })
            .reduce(|| (0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        contexts += more_contexts;
        tokens += more_tokens;
        problems += batch;
    }
    let seconds = start.elapsed().as_secs_f64();
    let name = format!("{}-{size}", problem.name());
    println!(
        "{name:12} {problems:9} {contexts:12} {:12.0} {:12.0}",
        contexts as f64 / seconds,
        tokens as f64 / seconds
    );
}

type Scratch = (ThoughtGraph, Vec<rot_core::Token>, Context);

/// Unfolds a whole test set into one graph and counts its costs.
fn test_set(problem: &'static dyn Problem, size: u32, count: u64) {
    let sampler = Sampler::new(problem, size, Sampling::Paper, 2).expect("a valid size");
    let start = Instant::now();
    let mut graph = ThoughtGraph::default();
    let mut question = Vec::new();
    let roots: Vec<_> = (0..count)
        .map(|index| {
            sampler.write_question(index, &mut question);
            graph.unfold(problem, &question).expect("a sampled question")
        })
        .collect();
    let unfolded = start.elapsed().as_secs_f64();
    let mut counter = CostCounter::new(&graph).expect("it fits");
    let visits: usize = roots.iter().map(|&root| counter.costs(root).unique_contexts).sum();
    println!();
    println!(
        "{count} {}-{size} problems in one graph: {} unique contexts of {visits}, unfolded in \
         {unfolded:.1} s, counted by {:.1} s, {}",
        problem.name(),
        graph.len(),
        start.elapsed().as_secs_f64(),
        peak_memory()
    );
}

/// The most memory this process has taken so far.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    match status.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
        Some(peak) => format!("peak memory {}", peak.trim()),
        None => "peak memory unknown on this system".into(),
    }
}
