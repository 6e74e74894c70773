//! The accuracies that the paper states.

use rot_core::Paradigm;

/// A row of the paper's tables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stated {
    /// The size of the problem.
    pub size: u32,
    /// How it was put.
    pub paradigm: Paradigm,
    /// Mean and standard deviation over seeds; none where there was no run.
    pub accuracy: Option<[f64; 2]>,
}

/// `model,problem,size,difficulty,paradigm,mean,std`, with a header.
const ROWS: &str = include_str!("paper.csv");

/// What the paper states of a network at a problem.
pub(super) fn stated(network: &str, problem: &str) -> Vec<Stated> {
    ROWS.lines().filter_map(|line| row(line, network, problem)).collect()
}

fn row(line: &str, network: &str, problem: &str) -> Option<Stated> {
    let [model, name, size, _, paradigm, mean, deviation] =
        line.split(',').collect::<Vec<_>>().try_into().ok()?;
    let paradigm = Paradigm::ALL.into_iter().find(|known| known.name() == paradigm)?;
    let accuracy = mean.parse().ok().map(|mean| [mean, deviation.parse().unwrap_or(0.0)]);
    (model == network && name == problem).then_some(())?;
    Some(Stated { size: size.parse().ok()?, paradigm, accuracy })
}
