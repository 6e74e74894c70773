//! A cell of a table: what is trained for it, and for how long.

use rot_core::{CostCounter, Paradigm, UBig};

use crate::eval::TestSet;
use crate::{BatchSize, DataError, ProblemSize, Recipe, RecipeError, Trainer};

/// Steps, spread over a run, of which the cost is estimated.
const ESTIMATED: u64 = 10;
/// The share of the steps that the smallest problems need of those for the largest.
const LEAST_STEPS: f64 = 0.3;
/// To learn from a context costs about three times as much as to read it.
const LEARNING: f64 = 3.0;

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The problem and its size.
    pub problem: ProblemSize,
    /// How it is put to the network.
    pub paradigm: Paradigm,
    /// The largest size of the problem in the table.
    pub largest: u32,
    /// The paper's accuracy, mean and standard deviation, where it has one.
    pub paper: Option<[f64; 2]>,
}

/// What the network that a cell is tested with is trained for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// The cell's size alone.
    Own,
    /// All these, which the table has for the problem and which fit into the network.
    All(Vec<u32>),
}

/// What is to be done for a cell.
#[derive(Clone, Debug)]
pub enum Plan {
    /// To train with a recipe.
    Train(Box<Recipe>),
    /// Nothing: its contexts do not fit into the network's.
    TooLong {
        /// Tokens of the longest context.
        needed: UBig,
        /// The most that fit.
        limit: usize,
    },
}

impl Cell {
    /// Such as `mul-8-rot`.
    pub fn name(&self) -> String {
        format!("{}-{}", self.problem, self.paradigm.name())
    }

    /// Steps of RoT, where the largest size of the problem gets so many.
    fn steps(&self, most: u64) -> u64 {
        let share = f64::from(self.problem.size) / f64::from(self.largest.max(1));
        (most as f64 * (LEAST_STEPS + (1.0 - LEAST_STEPS) * share)).round() as u64
    }

    /// The name of the run that it is tested with, such as `mul-8-rot`, or `mul-rot` if that is for all sizes.
    pub fn run_name(&self, sizes: &Sizes) -> String {
        match sizes {
            Sizes::Own => self.name(),
            Sizes::All(_) => format!("{}-{}", self.problem.problem.name(), self.paradigm.name()),
        }
    }

    /// Tokens of its longest context in a test set if they do not fit into a network that reads up to `limit`:
    /// only a context of CoT grows with everything that is thought.
    pub fn too_long(&self, test: &TestSet, limit: usize) -> Option<UBig> {
        let needed = match self.paradigm {
            Paradigm::Cot => longest_cot(test)?,
            Paradigm::Rot | Paradigm::Wt => return None,
        };
        (needed > UBig::from(limit)).then_some(needed)
    }

    /// The plan for it, where RoT is trained with `base` at the largest size. WT and CoT get at least as many
    /// steps as RoT at the same size, and at least as much computing.
    pub fn plan(&self, base: &Recipe, test: &TestSet, sizes: &Sizes) -> Result<Plan, RecipeError> {
        let of_size = |size| ProblemSize { problem: self.problem.problem, size };
        let mut rot = base.clone();
        rot.data.paradigm = Paradigm::Rot;
        // What RoT does at the largest size, it does at smaller ones on the way.
        rot.data.problems = match sizes {
            Sizes::Own => vec![self.problem],
            Sizes::All(_) => vec![of_size(self.largest)],
        };
        if *sizes == Sizes::Own {
            rot.training.steps = self.steps(base.training.steps);
        }
        let mut recipe = rot.clone();
        recipe.data.paradigm = self.paradigm;
        if let Sizes::All(sizes) = sizes {
            recipe.data.problems = sizes.iter().copied().map(of_size).collect();
        }
        match self.paradigm {
            Paradigm::Rot => return Ok(Plan::Train(Box::new(rot))),
            // Most of WT cannot be learnt, so there is nothing to gain from what is hardest.
            Paradigm::Wt => {
                recipe.training.batch = 256;
                recipe.training.candidates = 0;
            }
            Paradigm::Cot => (),
        }
        let trainer = Trainer::new(&recipe)?;
        let limit = trainer.network().limit();
        if let Some(needed) = self.too_long(test, limit) {
            return Ok(Plan::TooLong { needed, limit });
        }
        let own = match step_cost(&trainer) {
            Ok(cost) => cost,
            Err(DataError::TooLong { needed, limit, .. }) => {
                return Ok(Plan::TooLong { needed, limit });
            }
            Err(error) => return Err(RecipeError::Setting(error.to_string())),
        };
        let rot_cost = step_cost(&Trainer::new(&rot)?)
            .map_err(|error| RecipeError::Setting(error.to_string()))?;
        let steps = rot.training.steps as f64 * (rot_cost / own).max(1.0);
        recipe.training.steps = steps.ceil() as u64;
        recipe.evaluation.every = recipe.training.steps.div_ceil(4);
        Ok(Plan::Train(Box::new(recipe)))
    }
}

/// Tokens of the longest CoT context of a test set.
fn longest_cot(test: &TestSet) -> Option<UBig> {
    let mut counter = CostCounter::new(test.graph()).ok()?;
    test.problems().iter().map(|&root| counter.costs(root).cot_context).max()
}

/// What a step computes on average, in floating-point operations, by a few.
fn step_cost(trainer: &Trainer) -> Result<f64, DataError> {
    let BatchSize { drawn, learnt } = trainer.source().size();
    let read = if drawn > learnt { 1.0 } else { 0.0 };
    let learnt = learnt as f64 / drawn as f64;
    let mut cost = 0.0;
    let steps = trainer.recipe().training.steps as f64;
    for part in 0..ESTIMATED {
        let done = (part as f64 + 0.5) / ESTIMATED as f64;
        for chunk in trainer.source().batch((steps * done) as u64)? {
            cost += trainer.network().flops(&chunk) as f64 * (read + LEARNING * learnt);
        }
    }
    Ok(cost / ESTIMATED as f64)
}

#[cfg(test)]
mod tests {
    use rot_core::{DEFAULT_MEMORY_LIMIT, Sampling};
    use rot_problems::Mul;

    use super::*;
    use crate::eval::Questions;

    fn plan(size: u32, paradigm: Paradigm) -> Plan {
        plan_for(size, paradigm, &Sizes::Own)
    }

    fn plan_for(size: u32, paradigm: Paradigm, sizes: &Sizes) -> Plan {
        let problem = ProblemSize { problem: &Mul, size };
        let largest = match sizes {
            Sizes::Own => size,
            Sizes::All(_) => 4,
        };
        let cell = Cell { problem, paradigm, largest, paper: None };
        let questions = Questions { problem: &Mul, size, sampling: Sampling::Paper, seed: 0 };
        let test = TestSet::draw(&questions, 50, DEFAULT_MEMORY_LIMIT, || ()).unwrap();
        let base = Recipe::parse(
            "data.grow = 0.5\ntraining.steps = 100\ntraining.candidates = 512\ntraining.batch = 128\n\
             model = { kind = \"transformer\", layers = 1, width = 32, heads = 2 }",
        );
        cell.plan(&base.unwrap(), &test, sizes).unwrap()
    }

    #[test]
    fn other_paradigms_get_at_least_as_much() {
        let cost = |plan: Plan| match plan {
            Plan::Train(recipe) => {
                let trainer = Trainer::new(&recipe).unwrap();
                step_cost(&trainer).unwrap() * recipe.training.steps as f64
            }
            Plan::TooLong { .. } => panic!("it fits"),
        };
        let [wt, cot, rot] = [Paradigm::Wt, Paradigm::Cot, Paradigm::Rot].map(|p| cost(plan(3, p)));
        // Estimated from other steps than when they were planned.
        let least = 0.9 * rot;
        assert!(wt >= least && cot >= least, "{wt} {cot} {rot}");
        let steps = |paradigm| match plan(3, paradigm) {
            Plan::Train(recipe) => recipe.training.steps,
            Plan::TooLong { .. } => panic!("it fits"),
        };
        assert_eq!(steps(Paradigm::Rot), 100);
        assert!(steps(Paradigm::Wt) > 100, "contexts of WT are shorter");
        assert_eq!(steps(Paradigm::Cot), 100, "contexts of CoT are longer");
    }

    #[test]
    fn a_network_for_all_sizes_is_the_same_for_each_of_them() {
        let recipe = |size, paradigm| {
            let sizes = Sizes::All(vec![2, 3, 4]);
            match plan_for(size, paradigm, &sizes) {
                Plan::Train(recipe) => recipe,
                Plan::TooLong { .. } => panic!("it fits"),
            }
        };
        let sizes = |recipe: &Recipe| -> Vec<u32> {
            recipe.data.problems.iter().map(|problem| problem.size).collect()
        };
        for paradigm in [Paradigm::Wt, Paradigm::Rot] {
            assert_eq!(recipe(2, paradigm), recipe(4, paradigm));
        }
        let [wt, rot] = [Paradigm::Wt, Paradigm::Rot].map(|paradigm| recipe(3, paradigm));
        assert_eq!((sizes(&wt), sizes(&rot)), (vec![2, 3, 4], vec![4]));
        assert!(wt.training.steps >= 100 && rot.training.steps == 100);
    }

    #[test]
    fn small_problems_get_fewer_steps() {
        let steps = |size| {
            let problem = ProblemSize { problem: &Mul, size };
            Cell { problem, paradigm: Paradigm::Rot, largest: 32, paper: None }.steps(2000)
        };
        assert_eq!([2, 16, 32].map(steps), [688, 1300, 2000]);
    }

    #[test]
    fn chains_of_thought_that_do_not_fit_are_not_trained() {
        let Plan::TooLong { needed, limit } = plan(16, Paradigm::Cot) else {
            panic!("it does not fit");
        };
        assert!(needed > UBig::from(limit) && limit == 2048);
    }
}
