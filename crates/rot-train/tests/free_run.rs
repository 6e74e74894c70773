//! Free-running against teacher-forced: whatever a model has learned, and however it is run, its runs
//! are exact where it is right, and nowhere else.
#![expect(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

use std::ops::ControlFlow;

use rot_core::{DEFAULT_MEMORY_LIMIT, Paradigm, Problem, Sampling};
use rot_train::eval::{Questions, RunOptions, TestSet, evaluate, evaluate_by_asking, free_run};
use rot_train::{Model, Recipe, Trainer};

const MODELS: [&str; 3] = [
    "model.kind = \"lstm\"\nmodel.hidden = 64\nmodel.layers = 2\noptimizer.rate = 1e-2",
    "model.kind = \"transformer\"\nmodel.layers = 2\nmodel.width = 64\nmodel.feed_forward = 128\n\
     model.placement = \"before\"\nmodel.positions = \"rotary\"\nmodel.convolution = 4\n\
     model.digit_index = 4\noptimizer.rate = 4e-3",
    "model.kind = \"transformer\"\nmodel.layers = 2\nmodel.width = 32\nmodel.feed_forward = 64\n\
     optimizer.rate = 4e-3",
];

fn train(model: &str, steps: u64) -> Model {
    let text = format!(
        "data.problems = [\"mul-2\", \"sub-3\"]\ndata.contexts_per_problem = 8\n\
         training.batch = 64\n{model}"
    );
    let mut trainer = Trainer::new(&Recipe::parse(&text).unwrap()).unwrap();
    for _ in 0..steps {
        trainer.step().unwrap();
    }
    trainer.model()
}

#[test]
fn runs_are_exact_where_the_model_is_right() {
    let problems: [(&'static dyn Problem, u32); 3] =
        [(&rot_problems::Mul, 2), (&rot_problems::Sub, 3), (&rot_problems::Add, 3)];
    let test = |(problem, size)| {
        let questions = Questions { problem, size, sampling: Sampling::Paper, seed: 1 };
        TestSet::draw(&questions, 120, DEFAULT_MEMORY_LIMIT, || ()).unwrap()
    };
    let tests = problems.map(test);
    let (mut some, mut other) = (0, 0);
    for model in MODELS {
        for steps in [0, 150, 400] {
            let model = train(model, steps);
            for test in &tests {
                let forced =
                    evaluate(&model, test, Paradigm::Rot, 0, |_| ControlFlow::Continue(()))
                        .unwrap();
                some += forced.right_problems;
                other += forced.problems - forced.right_problems;
                let mut generator = model.generator(1 << 30, false);
                let asked =
                    evaluate_by_asking(&mut generator, test, Paradigm::Rot, 50, 0, |_| ()).unwrap();
                assert_eq!(asked.right, forced.right);
                assert_eq!(asked.right_contexts, forced.right_contexts);
                assert_eq!(asked.classes, forced.classes);
                assert_eq!(asked.supervised, forced.supervised);
                let mut answers = None;
                // The last has room for the memories of a few contexts only.
                for (memo, draft, at_once, memory) in [
                    (true, false, 1, 2 << 30),
                    (true, false, 1000, 2 << 30),
                    (false, false, 1000, 2 << 30),
                    (true, true, 1000, 2 << 30),
                    (false, true, 7, 4 << 20),
                ] {
                    // Without a memo a model that is lost can ask for very long.
                    let limits = rot_solve::Limits { contexts: 2000, ..Default::default() };
                    let options = RunOptions { memo, at_once, limits, memory };
                    let generator = model.generator(memory, draft);
                    let run = free_run(generator, test, &options, 3, |_| ()).unwrap();
                    assert_eq!(run.exact, forced.right, "{options:?}");
                    let exact_answers = run.exact.iter().zip(&run.answered);
                    assert!(exact_answers.into_iter().all(|(exact, right)| *right || !exact));
                    // Neither the memo nor the batch changes an answer.
                    match &answers {
                        None => answers = Some(run.answered),
                        Some(before) => assert_eq!(*before, run.answered, "{options:?}"),
                    }
                }
            }
        }
    }
    assert!(some > 150 && other > 300, "{some} right, {other} wrong: the test would show nothing");
}
