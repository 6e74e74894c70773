//! `rot stats`

use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use rot_core::Problem;
use rot_problems::stats::{Sample, StatsError, log10, sample};

use crate::WrongUsage;
use crate::args::StatsArgs;
use crate::figure::histograms::{self, Histogram, Panel};
use crate::folder::{make_folder, write};
use crate::output::{Output, aligned, counted, note};
use crate::progress;

/// The problems of one kind and size.
struct Cell {
    problem: &'static dyn Problem,
    size: u32,
    samples: Vec<Sample>,
}

impl Cell {
    fn name(&self) -> String {
        format!("{}-{}", self.problem.name(), self.size)
    }

    fn logarithms(&self, value: impl Fn(&Sample) -> f64) -> Vec<f64> {
        self.samples.iter().map(value).collect()
    }
}

/// What is counted, as a decimal logarithm.
type Measure = fn(&Sample) -> f64;

/// One of the two figures: what it shows, and the two series in it.
struct Figure {
    file: &'static str,
    title: &'static str,
    series: [(&'static str, Measure); 2],
}

const FIGURES: [Figure; 2] = [
    Figure {
        file: "context-lengths",
        title: "Number of problems by tokens in a context",
        series: [
            ("rot", |sample| (sample.rot_context as f64).log10()),
            ("cot", |sample| log10(&sample.cot_context)),
        ],
    },
    Figure {
        file: "problem-tokens",
        title: "Number of problems by tokens to generate",
        series: [
            ("unique", |sample| (sample.unique_tokens as f64).log10()),
            ("naive", |sample| log10(&sample.naive_tokens)),
        ],
    },
];

pub(crate) fn run(args: &StatsArgs) -> Result<()> {
    make_folder(&args.out)?;
    let cells = measure(args)?;
    for figure in &FIGURES {
        write(&args.out, &format!("{}.csv", figure.file), &histogram_csv(figure, &cells)?)?;
        write(&args.out, &format!("{}.svg", figure.file), &svg(figure, &cells)?)?;
    }
    let summary = summary(&cells);
    write(&args.out, "summary.csv", &summary.csv()?)?;
    let mut out = Output::new();
    out.write_all(aligned(&summary.rows).as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Draws the problems of all cells, with progress on standard error.
fn measure(args: &StatsArgs) -> Result<Vec<Cell>> {
    let cells = args.cells()?;
    let sizes = cells.iter().map(|&(problem, size)| contexts_each(problem, size, args));
    let contexts: Vec<u64> = sizes.collect::<Result<_>>()?;
    let bar = progress::bar(
        contexts.iter().map(|each| each.saturating_mul(args.samples)).fold(0, u64::saturating_add),
        "contexts",
    );
    bar.enable_steady_tick(Duration::from_millis(200));
    let mut measured = Vec::with_capacity(cells.len());
    for ((problem, size), contexts) in cells.into_iter().zip(contexts) {
        let start = Instant::now();
        bar.set_message(format!("{}-{size}", problem.name()));
        let samples = sample(problem, size, args.seed, args.samples, || bar.inc(contexts))
            .map_err(as_failure)?;
        let cell = Cell { problem, size, samples };
        if !std::io::stderr().is_terminal() {
            let seconds = start.elapsed().as_secs_f64();
            let (name, problems) = (cell.name(), counted(args.samples, "problem"));
            note(format_args!("{name}: {problems} in {seconds:.1} s"));
        }
        measured.push(cell);
    }
    bar.finish_and_clear();
    Ok(measured)
}

/// About how many contexts a problem has: what it costs, for the time left to be honest.
fn contexts_each(problem: &'static dyn Problem, size: u32, args: &StatsArgs) -> Result<u64> {
    let few = (args.samples / 1000).clamp(1, 8);
    let samples = sample(problem, size, args.seed, few, || ()).map_err(as_failure)?;
    Ok(1 + samples.iter().map(|sample| sample.unique_contexts as u64).sum::<u64>() / few)
}

fn as_failure(error: StatsError) -> anyhow::Error {
    match error {
        StatsError::Size(error) => WrongUsage(error.to_string()).into(),
        StatsError::Unfold(error) => error.into(),
    }
}

fn histogram_csv(figure: &Figure, cells: &[Cell]) -> Result<String> {
    let mut csv = "problem,size,series,from,to,count\n".to_owned();
    for cell in cells {
        for (name, value) in &figure.series {
            for bin in Histogram::of_logarithms(&cell.logarithms(value)).bins() {
                let (problem, size) = (cell.problem.name(), cell.size);
                let (from, to) = (scientific(bin.from, 4), scientific(bin.to, 4));
                writeln!(csv, "{problem},{size},{name},{from},{to},{}", bin.count)?;
            }
        }
    }
    Ok(csv)
}

fn svg(figure: &Figure, cells: &[Cell]) -> Result<String> {
    let rows: Vec<Vec<Panel>> = cells
        .chunk_by(|one, other| one.problem.name() == other.problem.name())
        .map(|row| row.iter().map(|cell| panel(figure, cell)).collect())
        .collect();
    let series = figure.series.map(|(name, _)| name);
    histograms::draw(figure.title, series, &rows).map_err(|error| anyhow!("cannot draw: {error}"))
}

fn panel(figure: &Figure, cell: &Cell) -> Panel {
    Panel {
        title: cell.name(),
        series: figure.series.map(|(_, value)| Histogram::of_logarithms(&cell.logarithms(value))),
    }
}

/// A table, for people and for programs.
struct Table {
    rows: Vec<Vec<String>>,
}

fn summary(cells: &[Cell]) -> Table {
    let header = [
        "problem",
        "size",
        "rot mean",
        "rot 95%",
        "rot longest",
        "cot median",
        "cot longest",
        "contexts",
        "unique median",
        "naive median",
        "naive most",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for cell in cells {
        let sorted = |value: Measure| {
            let mut values = cell.logarithms(value);
            values.sort_by(f64::total_cmp);
            values
        };
        let [rot, longest, cot, unique, naive] = [
            FIGURES[0].series[0].1,
            |sample: &Sample| (sample.longest_context as f64).log10(),
            FIGURES[0].series[1].1,
            FIGURES[1].series[0].1,
            FIGURES[1].series[1].1,
        ]
        .map(sorted);
        let mean = |value: fn(&Sample) -> usize| {
            cell.samples.iter().map(|sample| value(sample) as f64).sum::<f64>()
                / cell.samples.len() as f64
        };
        rows.push(vec![
            cell.problem.name().to_owned(),
            cell.size.to_string(),
            format!("{:.1}", mean(|sample| sample.rot_context)),
            from_logarithm(quantile(&rot, 0.95)),
            from_logarithm(quantile(&longest, 1.0)),
            from_logarithm(quantile(&cot, 0.5)),
            from_logarithm(quantile(&cot, 1.0)),
            format!("{:.1}", mean(|sample| sample.unique_contexts)),
            from_logarithm(quantile(&unique, 0.5)),
            from_logarithm(quantile(&naive, 0.5)),
            from_logarithm(quantile(&naive, 1.0)),
        ]);
    }
    Table { rows }
}

/// The value below which the given share of sorted values lies.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = (share * (sorted.len() as f64 - 1.0)).round() as usize;
    sorted.get(at).copied().unwrap_or(0.0)
}

fn from_logarithm(log: f64) -> String {
    if log < 6.0 {
        return format!("{:.0}", 10f64.powf(log));
    }
    scientific(log, 2)
}

/// A number of any size from its logarithm: `1.26e18`.
fn scientific(log: f64, decimals: usize) -> String {
    let exponent = log.floor();
    format!("{:.decimals$}e{exponent:.0}", 10f64.powf(log - exponent))
}

impl Table {
    fn csv(&self) -> Result<String> {
        let mut csv = String::new();
        for row in &self.rows {
            writeln!(csv, "{}", row.join(",").replace(' ', "_").replace('%', "pc"))?;
        }
        Ok(csv)
    }
}
