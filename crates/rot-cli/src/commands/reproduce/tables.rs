//! The paper's accuracies and ours, side by side.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Result, anyhow};
use rot_core::{Facts, Paradigm, Problem};
use rot_train::eval::wilson;
use rot_train::reproduce::{Cell, Experiment, Status};
use serde::Serialize;

use crate::figure::panels::{self, Curve, Panel};
use crate::folder::write;

/// A cell with what is known of it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    problem: &'static str,
    size: u32,
    paradigm: &'static str,
    /// The paper's accuracy, mean and standard deviation over seeds.
    paper: Option<[f64; 2]>,
    /// Ours, with its 95% interval.
    accuracy: Option<f64>,
    interval: Option<[f64; 2]>,
    /// Nothing where the cell was not run yet.
    #[serde(flatten)]
    status: Option<Status>,
}

impl Row {
    pub(super) fn new(cell: &Cell, status: Option<Status>) -> Row {
        let counts = match &status {
            Some(Status::Measured(measured)) => Some((measured.right, measured.problems)),
            _ => None,
        };
        Row {
            problem: cell.problem.problem.name(),
            size: cell.problem.size,
            paradigm: cell.paradigm.name(),
            paper: cell.paper,
            accuracy: counts.map(|(right, of)| right as f64 / of.max(1) as f64),
            interval: counts.map(|(right, of)| wilson(right, of)),
            status,
        }
    }

    fn is_too_long(&self) -> bool {
        matches!(self.status, Some(Status::TooLong { .. }))
    }

    /// Our accuracy, or why there is none.
    fn ours(&self) -> String {
        match (self.accuracy, self.is_too_long()) {
            (Some(accuracy), _) => format!("{accuracy:.4}"),
            (None, true) => "too long".to_owned(),
            (None, false) => "not run".to_owned(),
        }
    }

    /// The paper's accuracy, or a dash.
    fn stated(&self) -> String {
        self.paper
            .map_or("–".to_owned(), |[mean, deviation]| format!("{mean:.3} ± {deviation:.3}"))
    }

    fn csv(&self) -> String {
        let number = |x: Option<f64>| x.map(|x| x.to_string()).unwrap_or_default();
        let mut fields = vec![
            self.problem.to_owned(),
            self.size.to_string(),
            self.paradigm.to_owned(),
            number(self.paper.map(|paper| paper[0])),
            number(self.paper.map(|paper| paper[1])),
            number(self.accuracy),
            number(self.interval.map(|interval| interval[0])),
            number(self.interval.map(|interval| interval[1])),
        ];
        fields.extend(match &self.status {
            Some(Status::Measured(measured)) => {
                let trained_on: Vec<String> =
                    measured.trained_on.iter().map(ToString::to_string).collect();
                [
                    "measured".to_owned(),
                    measured.problems.to_string(),
                    measured.right.to_string(),
                    trained_on.join(" "),
                    measured.steps.to_string(),
                    measured.seed.to_string(),
                    measured.weights.clone().unwrap_or_default(),
                    measured.seconds.map_or_else(String::new, |seconds| format!("{seconds:.1}")),
                    number(measured.threads.map(|threads| threads as f64)),
                    measured.date.clone(),
                    String::new(),
                    String::new(),
                ]
            }
            Some(Status::TooLong { needed, limit }) => {
                let mut fields = std::array::from_fn(|_| String::new());
                fields[0] = "too long".to_owned();
                fields[10].clone_from(needed);
                fields[11] = limit.to_string();
                fields
            }
            None => {
                let mut fields = std::array::from_fn(|_| String::new());
                fields[0] = "not run".to_owned();
                fields
            }
        });
        fields.join(",")
    }
}

const HEADER: &str = "problem,size,paradigm,paper_mean,paper_std,accuracy,low,high,status,problems,right,\
                      trained_on,steps,seed,weights,seconds,threads,date,needed_tokens,limit_tokens";

/// Writes what is known of an experiment: its table twice, and its figure.
pub(super) fn write_tables(folder: &Path, experiment: &Experiment, rows: &[Row]) -> Result<()> {
    let csv: Vec<String> = rows.iter().map(Row::csv).collect();
    let name = experiment.name;
    write(folder, &format!("{name}.csv"), &format!("{HEADER}\n{}\n", csv.join("\n")))?;
    write(folder, &format!("{name}.md"), &markdown(rows))?;
    let cells = experiment.cells();
    let problems = cells.chunk_by(|a, b| a.problem.problem.name() == b.problem.problem.name());
    let panels: Vec<Panel> = problems.map(|cells| panel(cells[0].problem.problem, rows)).collect();
    let svg = panels::draw(&panels).map_err(|error| anyhow!("cannot draw: {error}"))?;
    write(folder, &format!("{name}.svg"), &svg)
}

/// A line for each problem and size, with the paradigms side by side.
pub(super) fn markdown(rows: &[Row]) -> String {
    let mut text = String::from(
        "| problem | WT, paper | WT, ours | CoT, paper | CoT, ours | RoT, paper | RoT, ours |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for line in rows.chunk_by(|a, b| a.problem == b.problem && a.size == b.size) {
        let _ = write!(text, "| {}-{} |", line[0].problem, line[0].size);
        for paradigm in [Paradigm::Wt, Paradigm::Cot, Paradigm::Rot] {
            if let Some(row) = line.iter().find(|row| row.paradigm == paradigm.name()) {
                let _ = write!(text, " {} | {} |", row.stated(), row.ours());
            }
        }
        text.push('\n');
    }
    text
}

fn panel(problem: &dyn Problem, rows: &[Row]) -> Panel {
    let Facts { name: problem, unit, .. } = *problem.facts();
    let curve = |(paradigm, name): (Paradigm, &'static str)| {
        let rows = rows.iter();
        let own = rows.filter(|row| row.problem == problem && row.paradigm == paradigm.name());
        let own: Vec<&Row> = own.collect();
        let paper = |row: &&Row| row.paper.map(|paper| (f64::from(row.size), paper[0]));
        let ours = |row: &&Row| row.accuracy.map(|accuracy| (f64::from(row.size), accuracy));
        Curve {
            name,
            paper: own.iter().filter_map(paper).collect(),
            ours: own.iter().filter_map(ours).collect(),
        }
    };
    let of_problem = || rows.iter().filter(|row| row.problem == problem);
    let too_long = of_problem().filter(|row| row.is_too_long()).map(|row| f64::from(row.size));
    let sizes = || of_problem().map(|row| f64::from(row.size));
    Panel {
        title: problem,
        unit,
        sizes: [sizes().fold(f64::MAX, f64::min), sizes().fold(f64::MIN, f64::max)],
        curves: [(Paradigm::Wt, "WT"), (Paradigm::Cot, "CoT"), (Paradigm::Rot, "RoT")].map(curve),
        cot_ends: too_long.reduce(f64::min),
    }
}

#[cfg(test)]
mod tests {
    use rot_train::reproduce::Measured;

    use super::*;

    #[test]
    fn a_table_has_every_cell_run_or_not() {
        let experiment = Experiment::find("transformer-arith").unwrap();
        let rows: Vec<Row> = experiment
            .cells()
            .iter()
            .map(|cell| {
                let status = match cell.name().as_str() {
                    "mul-8-cot" => {
                        Some(Status::TooLong { needed: "123456".to_owned(), limit: 2048 })
                    }
                    "mul-4-wt" => Some(Status::Measured(Measured {
                        problems: 200,
                        right: 163,
                        trained_on: vec![cell.problem],
                        steps: 5,
                        seed: 0,
                        weights: None,
                        seconds: Some(1.5),
                        threads: Some(2),
                        date: "2026-01-31".to_owned(),
                    })),
                    _ => None,
                };
                Row::new(cell, status)
            })
            .collect();
        let text = markdown(&rows);
        assert!(text.contains("| mul-4 | 0.817 ± 0.023 | 0.8150 | 1.000 ± 0.000 | not run |"));
        assert!(text.contains("| mul-8 | 0.340 ± 0.032 | not run | – | too long |"));
        let folder = tempfile::tempdir().unwrap();
        write_tables(folder.path(), experiment, &rows).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let csv = read("transformer-arith.csv");
        assert_eq!(csv.lines().count(), 1 + rows.len());
        let columns: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
        assert!(columns.iter().all(|&count| count == columns[0]), "{csv}");
        let svg = read("transformer-arith.svg");
        assert!(["div", "digits", "accuracy"].iter().all(|text| svg.contains(text)), "{svg}");
        let json = serde_json::to_value(&rows).unwrap();
        let row = json.as_array().unwrap().iter().find(|row| row["status"] == "measured").unwrap();
        assert_eq!((row["problem"].as_str(), row["right"].as_u64()), (Some("mul"), Some(163)));
    }
}
