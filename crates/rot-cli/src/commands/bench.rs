//! `rot bench`

mod solving;

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::Result;
use rayon::prelude::*;
use rot_nn::kernels::attention::Attention;
use rot_nn::kernels::norm::{Norm, norm_backward, norm_forward};
use rot_nn::speed::{product_flops, shapes};
use rot_nn::{Memory, Packed, Workspace};
use rot_train::{Recipe, Trainer};
use serde::Serialize;

use crate::args::BenchArgs;
use crate::output::{Output, aligned, grouped, note};

/// One thing that was measured, over all threads.
#[derive(Serialize)]
struct Measured {
    what: String,
    gflops: Option<f64>,
    /// The share of the rate of matrix products of the same sizes.
    share_of_peak: Option<f64>,
    tokens_per_second: Option<f64>,
}

#[derive(Serialize)]
struct Record {
    threads: usize,
    /// The vectors that kernels use here.
    vectors: &'static str,
    /// The rate of the products of a step of the paper's Transformer, together.
    gemm_peak_gflops: f64,
    measured: Vec<Measured>,
}

pub(crate) fn run(args: &BenchArgs) -> Result<()> {
    args.threads.apply()?;
    if let Some(folder) = &args.growth {
        return solving::growth(folder);
    }
    let time = Duration::from_secs_f64(args.seconds);
    let mut measured = Vec::new();
    note("matrix products");
    let peak = products(time, &mut measured);
    note("kernels");
    kernels(time, peak, &mut measured);
    for (what, recipe) in STEPS {
        note(format_args!("training steps, {what}"));
        step(what, recipe, time, peak, &mut measured)?;
    }
    note("solving");
    solving::solving(time, peak, &mut measured)?;
    let record = Record {
        threads: rayon::current_num_threads(),
        vectors: rot_nn::kernels::vectors(),
        gemm_peak_gflops: peak * 1e-9,
        measured,
    };
    let mut out = Output::new();
    if args.json {
        serde_json::to_writer(&mut out, &record)?;
        writeln!(out)?;
    } else {
        out.write_all(table(&record).as_bytes())?;
    }
    out.flush()?;
    Ok(())
}

/// Training steps to measure: a name, and a recipe.
const STEPS: &[(&str, &str)] = &[
    ("paper's Transformer, mul-8", "data.problems = [\"mul-8\"]"),
    ("paper's Transformer, add-64", "data.problems = [\"add-64\"]"),
    ("paper's LSTM, mul-4", "data.problems = [\"mul-4\"]\nmodel.kind = \"lstm\""),
];

/// How often something was done, on all threads together, and in what time.
struct Rate {
    count: f64,
    seconds: f64,
}

impl Measured {
    fn new(what: impl Into<String>, rate: &Rate, flops: f64, peak: f64, tokens: f64) -> Measured {
        let each = rate.count / rate.seconds;
        Measured {
            what: what.into(),
            gflops: (flops > 0.0).then_some(flops * each * 1e-9),
            share_of_peak: (flops > 0.0).then_some(flops * each / peak),
            tokens_per_second: (tokens > 0.0).then_some(tokens * each),
        }
    }
}

/// Measures the products of a step one by one. Returns the rate of all together.
fn products(time: Duration, measured: &mut Vec<Measured>) -> f64 {
    let (mut work, mut seconds) = (0.0, 0.0);
    let shapes = shapes();
    for (name, shape) in &shapes {
        let [m, k, n] = *shape;
        let flops = product_flops(*shape, time / shapes.len() as u32);
        work += (m * k * n) as f64;
        seconds += (m * k * n) as f64 / flops;
        let what = format!("product {m} x {k} x {n}, {name}");
        let gflops = Some(flops * 1e-9);
        measured.push(Measured { what, gflops, share_of_peak: None, tokens_per_second: None });
    }
    let peak = work / seconds;
    for one in measured {
        one.share_of_peak = one.gflops.map(|gflops| gflops * 1e9 / peak);
    }
    peak
}

/// Does the same on every thread for some time.
fn on_all_threads<T>(
    time: Duration,
    state: impl Fn() -> T + Sync,
    work: impl Fn(&mut T) + Sync,
) -> Rate {
    let threads = 0..rayon::current_num_threads();
    let counts = threads.into_par_iter().with_max_len(1).map(|_| {
        let mut state = state();
        work(&mut state);
        let (start, mut count) = (Instant::now(), 0.0);
        while start.elapsed() < time {
            work(&mut state);
            count += 1.0;
        }
        count / start.elapsed().as_secs_f64()
    });
    Rate { count: counts.sum(), seconds: 1.0 }
}

/// What attention and norms are measured on: chunks of sequences of one length.
const TOKENS: usize = 704;
const WIDTH: usize = 128;

struct Buffers {
    x: Vec<f32>,
    y: Vec<f32>,
    small: Vec<f32>,
    gain: Vec<f32>,
    dgain: Vec<f32>,
    work: Workspace,
}

fn buffers() -> Buffers {
    let wave = |len: usize| (0..len).map(|i| (i as f32 * 0.37).sin()).collect::<Vec<f32>>();
    Buffers {
        x: wave(TOKENS * 3 * WIDTH),
        y: vec![0.0; TOKENS * 3 * WIDTH],
        small: vec![0.0; TOKENS * 2],
        gain: vec![1.0; WIDTH],
        dgain: vec![0.0; 2 * WIDTH],
        work: Workspace::default(),
    }
}

fn kernels(time: Duration, peak: f64, measured: &mut Vec<Measured>) {
    let attention = Attention::new(WIDTH, 2);
    for length in [22, 88, 352] {
        let sequences = move || (0..TOKENS / length).map(move |i| i * length..(i + 1) * length);
        let rate = on_all_threads(time / 3, buffers, |all| {
            let mut out = all.work.take(TOKENS * WIDTH);
            attention.forward(&all.x, sequences(), &mut out, &mut all.small, &mut all.work);
            attention.backward(
                &all.x,
                sequences(),
                &out,
                &all.small,
                &out,
                &mut all.y,
                &mut all.work,
            );
            all.work.give(out);
        });
        // Two products forward and four backward; one of the forward ones is done again.
        let flops = 6 * 2 * (length * (length + 1) / 2) * WIDTH * (TOKENS / length);
        let what = format!("attention, forward and backward, length {length}");
        measured.push(Measured::new(what, &rate, flops as f64, peak, TOKENS as f64));
    }
    let rows = TOKENS * WIDTH;
    let rate = on_all_threads(time / 3, buffers, |all| {
        norm_forward(
            Norm::Layer,
            &all.x[..rows],
            &all.gain,
            &all.gain,
            &mut all.y[..rows],
            &mut all.small,
        );
        let (dgain, dbias) = all.dgain.split_at_mut(WIDTH);
        let (dy, dx) = (&all.x[..rows], &mut all.y[..rows]);
        norm_backward(Norm::Layer, &all.x[..rows], &all.gain, &all.small, dy, dx, dgain, dbias);
    });
    let what = "layer norm, forward and backward";
    measured.push(Measured::new(what, &rate, 0.0, peak, TOKENS as f64));
}

/// Measures whole steps, drawing contexts alone, and reading as evaluation does.
fn step(
    what: &str,
    recipe: &str,
    time: Duration,
    peak: f64,
    measured: &mut Vec<Measured>,
) -> Result<()> {
    let mut trainer = Trainer::new(&Recipe::parse(recipe)?)?;
    trainer.step()?;
    let (start, mut tokens, mut flops) = (Instant::now(), 0.0, 0.0);
    while start.elapsed() < time {
        let step = trainer.step()?;
        tokens += step.tokens as f64;
        flops += step.flops as f64;
    }
    let rate = Rate { count: 1.0, seconds: start.elapsed().as_secs_f64() };
    measured.push(Measured::new(format!("step, {what}"), &rate, flops, peak, tokens));

    let (start, mut tokens, mut batches) = (Instant::now(), 0.0, Vec::new());
    for step in 0.. {
        let chunks = trainer.source().batch(1_000_000 + step)?;
        tokens += chunks.iter().map(Packed::tokens).sum::<usize>() as f64;
        if batches.len() < 64 {
            batches.extend(chunks);
        }
        if start.elapsed() >= time / 4 {
            break;
        }
    }
    let rate = Rate { count: 1.0, seconds: start.elapsed().as_secs_f64() };
    measured.push(Measured::new(format!("contexts drawn, {what}"), &rate, 0.0, peak, tokens));

    let network = trainer.network();
    let decoder = network.decoder(&trainer.params);
    let start = Instant::now();
    let (mut tokens, mut flops) = (0.0, 0.0);
    while start.elapsed() < time / 4 {
        let read = batches.par_iter().with_max_len(1);
        read.for_each_init(
            || (Workspace::default(), Vec::new(), Vec::new()),
            |(work, memories, logits), batch| {
                memories.iter_mut().for_each(Memory::clear);
                memories.resize_with(batch.len().max(memories.len()), Memory::default);
                decoder.read(batch, &mut memories[..batch.len()], work, logits);
            },
        );
        tokens += batches.iter().map(Packed::tokens).sum::<usize>() as f64;
        flops += batches.iter().map(|batch| network.flops(batch)).sum::<u64>() as f64;
    }
    let rate = Rate { count: 1.0, seconds: start.elapsed().as_secs_f64() };
    measured.push(Measured::new(format!("evaluation, {what}"), &rate, flops, peak, tokens));
    Ok(())
}

fn table(record: &Record) -> String {
    let head = ["", "GFLOP/s", "of GEMM peak", "tokens/s"].map(str::to_owned).to_vec();
    let mut rows = vec![head];
    for one in &record.measured {
        let number = |x: Option<f64>| x.map_or(String::new(), |x| format!("{x:.1}"));
        let share = one.share_of_peak.map_or(String::new(), |x| format!("{:.0}%", 100.0 * x));
        let tokens = one.tokens_per_second.map_or(String::new(), |x| grouped(x as u64));
        rows.push(vec![one.what.clone(), number(one.gflops), share, tokens]);
    }
    let (threads, vectors, peak) = (record.threads, record.vectors, record.gemm_peak_gflops);
    format!(
        "{threads} threads, {vectors}; GEMM peak {peak:.1} GFLOP/s, at the sizes of a step\n{}",
        aligned(&rows)
    )
}
