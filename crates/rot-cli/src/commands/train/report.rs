//! What is left to say at the end of a run.

use rot_train::eval::Evaluation;
use rot_train::{Ending, ProblemSize, Session};
use serde_json::json;

use super::view::duration;
use crate::output::{counted, grouped};

pub(crate) struct Report<'a> {
    session: &'a Session,
    ending: Ending,
    results: &'a [(ProblemSize, Evaluation)],
}

impl Report<'_> {
    pub(crate) fn new<'a>(
        session: &'a Session,
        ending: Ending,
        results: &'a [(ProblemSize, Evaluation)],
    ) -> Report<'a> {
        Report { session, ending, results }
    }

    fn how(&self) -> &'static str {
        match self.ending {
            Ending::Perfect => "no test problem wrong",
            Ending::Finished => "all steps made",
            Ending::Interrupted => "interrupted",
        }
    }

    /// One line a problem, and one about the run.
    pub(crate) fn text(&self) -> String {
        let dir = self.session.dir().display();
        let mut text = format!(
            "{} in {}, {}: {dir}\n",
            counted(self.session.step(), "step"),
            duration(self.session.seconds()),
            self.how()
        );
        let paradigm = match self.session.trainer().recipe().data.paradigm {
            rot_core::Paradigm::Rot => String::new(),
            other => format!(" --paradigm {}", other.name()),
        };
        for (problem, result) in self.results {
            text += &format!("{problem}: {}\n", accuracy(result));
        }
        for (problem, _) in self.results.iter().take(1) {
            let (name, size) = (problem.problem.name(), problem.size);
            text +=
                &format!("test it with: rot eval {dir} --problem {name} --size {size}{paradigm}\n");
        }
        text
    }

    pub(crate) fn markdown(&self) -> String {
        let recipe = self.session.trainer().recipe();
        let mut text =
            format!("# {}, {}\n\n", recipe.data.names().join(", "), recipe.data.paradigm.name());
        let parameters = grouped(self.session.trainer().network().layout().len());
        text += &format!(
            "{} of {} in {}, {parameters} parameters, seed {}, {} threads: {}.\n\n",
            counted(self.session.step(), "step"),
            counted(self.session.trainer().source().size().learnt, "context"),
            duration(self.session.seconds()),
            recipe.seed,
            rayon::current_num_threads(),
            self.how()
        );
        text += "The last test, on problems that choosing the best weights has seen:\n\n";
        for (problem, result) in self.results {
            text += &format!("- {problem}: {}\n", accuracy(result));
        }
        text + "\n`recipe.toml` has every setting, `metrics.csv` the course of the run, `best.safetensors` the weights.\n"
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        let tests: Vec<_> = self
            .results
            .iter()
            .map(|(problem, result)| {
                json!({
                    "problem": problem.problem.name(),
                    "size": problem.size,
                    "problems": result.problems,
                    "deep_accuracy": result.deep_accuracy(),
                    "context_accuracy": result.context_accuracy(),
                    "interval": result.interval(),
                })
            })
            .collect();
        json!({
            "out": self.session.dir(),
            "steps": self.session.step(),
            "seconds": self.session.seconds(),
            "perfect": self.ending == Ending::Perfect,
            "tests": tests,
        })
    }
}

fn accuracy(result: &Evaluation) -> String {
    let [low, high] = result.interval();
    format!(
        "{} of {} problems right ({:.2}% to {:.2}% with 95% confidence), {} of {} contexts",
        grouped(result.right_problems),
        grouped(result.problems),
        100.0 * low,
        100.0 * high,
        grouped(result.right_contexts),
        grouped(result.contexts)
    )
}
