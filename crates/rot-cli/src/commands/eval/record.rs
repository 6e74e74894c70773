//! An evaluation for programs.

use rot_core::Text;
use rot_train::eval::Evaluation;
use serde::Serialize;

use super::free_run::Run;
use crate::args::EvalArgs;
use crate::commands::remote::RemoteRecord;

/// One JSON object.
#[derive(Serialize)]
pub(super) struct Record {
    problem: &'static str,
    size: u32,
    seed: u64,
    sampling: &'static str,
    paradigm: &'static str,
    problems: usize,
    right_problems: usize,
    deep_accuracy: f64,
    interval: [f64; 2],
    unique_contexts: usize,
    right_contexts: usize,
    context_accuracy: f64,
    max_context: usize,
    supervised_tokens: usize,
    right_supervised_tokens: usize,
    tokens: usize,
    seconds: f64,
    classes: Vec<ClassRecord>,
    failures: FailureCounts,
    wrong: Vec<WrongRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    free_run: Option<RunRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote: Option<RemoteRecord>,
}

/// What a model did on its own.
#[derive(Serialize)]
struct RunRecord {
    memo: bool,
    at_once: u32,
    exact_problems: usize,
    exact_accuracy: f64,
    right_answers: usize,
    answer_accuracy: f64,
    without_answer: usize,
    disagreements: usize,
    contexts: u64,
    generated_tokens: u64,
    memo_hits: u64,
    deepest: usize,
    longest_context: usize,
    seconds: f64,
}

impl RunRecord {
    fn new(args: &EvalArgs, run: &Run) -> RunRecord {
        let stats = &run.run.stats;
        let problems = run.run.exact.len().max(1) as f64;
        RunRecord {
            memo: !args.no_memo,
            at_once: args.at_once,
            exact_problems: run.exact(),
            exact_accuracy: run.exact() as f64 / problems,
            right_answers: run.answered(),
            answer_accuracy: run.answered() as f64 / problems,
            without_answer: run.run.failed,
            disagreements: run.disagreements.len(),
            contexts: stats.contexts,
            generated_tokens: stats.generated,
            memo_hits: stats.memo_hits,
            deepest: stats.deepest,
            longest_context: stats.longest,
            seconds: run.seconds,
        }
    }
}

#[derive(Serialize)]
struct ClassRecord {
    class: &'static str,
    contexts: usize,
    right: usize,
    deep_right: usize,
}

#[derive(Serialize)]
struct FailureCounts {
    repeat_count: usize,
    digit_count: usize,
    other: usize,
}

/// Tokens under the names of `rot contexts --jsonl`, and the places that are wrong, from 0.
#[derive(Serialize)]
struct WrongRecord {
    class: &'static str,
    question: String,
    failure: &'static str,
    x: String,
    y: String,
    produced: String,
    wrong_places: Vec<usize>,
}

impl Record {
    pub(super) fn new(
        args: &EvalArgs,
        evaluation: &Evaluation,
        seconds: f64,
        run: Option<&Run>,
        remote: Option<RemoteRecord>,
    ) -> Record {
        let [repeat_count, digit_count, other] = evaluation.failures;
        let classes = evaluation.classes.iter().map(|score| ClassRecord {
            class: score.class,
            contexts: score.contexts,
            right: score.right,
            deep_right: score.deep_right,
        });
        let wrong = evaluation.wrong.iter().map(|wrong| WrongRecord {
            class: wrong.class,
            question: Text(wrong.question()).to_string(),
            failure: wrong.failure.name(),
            x: Text(&wrong.context.x).to_string(),
            y: Text(&wrong.context.y).to_string(),
            produced: Text(&wrong.produced).to_string(),
            wrong_places: (0..wrong.context.len()).filter(|&at| wrong.is_wrong(at)).collect(),
        });
        Record {
            problem: args.problem.name(),
            size: args.size,
            seed: args.seed,
            sampling: args.sampling.name(),
            paradigm: args.paradigm.name(),
            problems: evaluation.problems,
            right_problems: evaluation.right_problems,
            deep_accuracy: evaluation.deep_accuracy(),
            interval: evaluation.interval(),
            unique_contexts: evaluation.contexts,
            right_contexts: evaluation.right_contexts,
            context_accuracy: evaluation.context_accuracy(),
            max_context: evaluation.longest_context,
            supervised_tokens: evaluation.supervised,
            right_supervised_tokens: evaluation.right_supervised,
            tokens: evaluation.tokens,
            seconds,
            classes: classes.collect(),
            failures: FailureCounts { repeat_count, digit_count, other },
            wrong: wrong.collect(),
            free_run: run.map(|run| RunRecord::new(args, run)),
            remote,
        }
    }
}
