//! The paper's experiments, in cells: a problem of some size, put to a network in a paradigm.
//!
//! A cell is tested by itself, with a network that is trained for it, or for all sizes of its problem in its
//! paradigm. Its result is a file of its own. So cells can be spread
//! over machines that share a folder: nothing is written twice, and whoever is last has all the results.

mod cell;
mod paper;
mod record;

pub use cell::{Cell, Plan, Sizes};
pub use paper::Stated;
pub use record::{Measured, Record, RecordError, Status};

use rot_core::Paradigm;
use rot_problems::PROBLEMS;

use crate::ProblemSize;

/// A table or figure of the paper that shows accuracies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experiment {
    /// Its name here.
    pub name: &'static str,
    /// Where it stands in the paper.
    pub shows: &'static str,
    /// What the paper's table calls the network.
    network: &'static str,
    problems: &'static [&'static str],
}

/// All experiments whose networks are trained from scratch.
pub const EXPERIMENTS: [Experiment; 4] = [
    Experiment {
        name: "transformer-arith",
        shows: "tiny Transformer, arithmetic: its figure and its table",
        network: "transformer",
        problems: &["add", "sub", "mul", "div"],
    },
    Experiment {
        name: "transformer-alg",
        shows: "tiny Transformer, algorithmic problems: its figure and its table",
        network: "transformer",
        problems: &["lcs", "lps", "knapsack", "mcm"],
    },
    Experiment {
        name: "lstm",
        shows: "tiny LSTM, arithmetic: its figure and its table",
        network: "lstm",
        problems: &["add", "sub", "mul", "div"],
    },
    Experiment {
        name: "sorting",
        shows: "tiny Transformer, sorting: the appendix's figure",
        network: "transformer",
        problems: &["sort"],
    },
];

/// Most terms to sort, where the paper has a figure without numbers.
const SORTED: [u32; 5] = [4, 8, 16, 32, 64];

impl Experiment {
    /// The experiment of a name.
    pub fn find(name: &str) -> Option<&'static Experiment> {
        EXPERIMENTS.iter().find(|experiment| experiment.name == name)
    }

    /// The name of the recipe that its networks are trained with, among those of the program.
    pub fn recipe(&self) -> &'static str {
        match self.network {
            "lstm" => "fast-lstm",
            _ => "fast",
        }
    }

    /// Steps of RoT at the largest size of a problem.
    pub fn steps(&self) -> u64 {
        match self.network {
            "lstm" => 4_000,
            _ => 2_000,
        }
    }

    /// Its problems.
    pub fn problems(&self) -> &'static [&'static str] {
        self.problems
    }

    /// Its cells, problem by problem, the smallest first.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &name in self.problems {
            let Some(&problem) = PROBLEMS.iter().find(|problem| problem.name() == name) else {
                continue;
            };
            let stated = paper::stated(self.network, name);
            let mut sizes: Vec<u32> = stated.iter().map(|stated| stated.size).collect();
            if sizes.is_empty() {
                sizes.extend(SORTED);
            }
            sizes.sort_unstable();
            sizes.dedup();
            let largest = sizes.last().copied().unwrap_or(1);
            for size in sizes {
                for paradigm in Paradigm::ALL {
                    let same =
                        |stated: &&Stated| stated.size == size && stated.paradigm == paradigm;
                    let paper = stated.iter().find(same).and_then(|stated| stated.accuracy);
                    let problem = ProblemSize { problem, size };
                    cells.push(Cell { problem, paradigm, largest, paper });
                }
            }
        }
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_paper_is_a_cell_and_every_cell_has_a_name_of_its_own() {
        let counts = EXPERIMENTS.map(|experiment| experiment.cells().len());
        assert_eq!(counts, [102, 90, 93, 15]);
        for experiment in EXPERIMENTS {
            let cells = experiment.cells();
            let names: std::collections::BTreeSet<_> = cells.iter().map(Cell::name).collect();
            assert_eq!(names.len(), cells.len());
        }
        let cells = Experiment::find("transformer-arith").unwrap().cells();
        let of = |name: &str| cells.iter().find(|cell| cell.name() == name).unwrap().paper;
        assert_eq!(of("mul-4-wt"), Some([0.817, 0.023]));
        assert_eq!(of("mul-8-cot"), None);
    }
}
