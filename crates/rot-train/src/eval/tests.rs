//! Evaluation against networks that know the truth and err where they are told to.

mod naive;

use std::collections::HashSet;
use std::sync::atomic::AtomicUsize;

use rot_core::{DEFAULT_MEMORY_LIMIT, Problem, Sampler, Sampling, Text, Vocabulary};
use rot_problems::{Add, Compare, Lcs, Mul};

use self::naive::{Fault, Known, Naive};
use super::*;

fn draw(problem: &'static dyn Problem, size: u32, count: usize) -> TestSet {
    let questions = Questions { problem, size, sampling: Sampling::Paper, seed: 3 };
    TestSet::draw(&questions, count, DEFAULT_MEMORY_LIMIT, || ()).unwrap()
}

/// Makes a mistake in about one of some contexts, at a place that depends on the question.
fn now_and_then(question: &str, context: &Context) -> Option<Vec<Token>> {
    let hash = question.bytes().fold(7usize, |hash, byte| hash * 31 % 1009 + usize::from(byte));
    if hash % 40 != 0 {
        return None;
    }
    let asked: Vec<usize> = (0..context.len()).filter(|&at| context.y[at] != Token::PAD).collect();
    let at = asked[hash / 40 % asked.len()];
    let mut produced = context.y.clone();
    produced[at] = if produced[at] == Token::D1 { Token::D2 } else { Token::D1 };
    Some(produced)
}

fn no_fault(_: &str, _: &Context) -> Option<Vec<Token>> {
    None
}

fn evaluate_with(threads: usize, model: &Model, test: &TestSet, paradigm: Paradigm) -> Evaluation {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| evaluate(model, test, paradigm, 5, |_| ControlFlow::Continue(())).unwrap())
}

#[test]
fn deep_accuracy_is_that_of_solving_each_problem_by_itself() {
    let cells: [(&'static dyn Problem, u32, usize); 3] =
        [(&Mul, 4, 200), (&Add, 8, 300), (&Lcs, 4, 50)];
    for (problem, size, count) in cells {
        let naive = Naive::new(problem, size, count, Paradigm::Rot, now_and_then);
        let (model, read) = naive.model(2048);
        let test = draw(problem, size, count);
        let evaluation = evaluate_with(2, &model, &test, Paradigm::Rot);
        assert_eq!(read.load(Ordering::Relaxed), naive.contexts.len(), "each context once");

        let deep = naive.questions.iter().filter(|question| naive.is_deep_right(question)).count();
        let right = naive.contexts.keys().filter(|question| naive.is_right(question)).count();
        assert!(0 < deep && deep < count, "{deep} of {count}");
        assert_eq!((evaluation.problems, evaluation.right_problems), (count, deep));
        assert_eq!(evaluation.contexts, naive.contexts.len());
        assert_eq!(evaluation.right_contexts, right);
        assert_eq!(evaluation.classes[0].class, problem.name());
        let classes = evaluation.classes.iter();
        let classes = classes.map(|c| (c.class, [c.contexts, c.right, c.deep_right])).collect();
        assert_eq!(naive.by_class(), classes);

        let all = || naive.contexts.values();
        let asked = |known: &Known| known.context.y.iter().filter(|&&t| t != Token::PAD).count();
        let wrong = |known: &Known| {
            known.context.y.iter().zip(&known.produced).filter(|(y, said)| y != said).count()
        };
        let supervised = all().map(asked).sum::<usize>();
        assert_eq!(evaluation.supervised, supervised);
        assert_eq!(evaluation.right_supervised, supervised - all().map(wrong).sum::<usize>());
        assert_eq!(evaluation.tokens, all().map(|known| known.context.len() - 1).sum::<usize>());
        assert_eq!(Some(evaluation.longest_context), all().map(|k| k.context.len()).max());

        let kinds = Failure::ALL.map(|kind| {
            all().filter(|k| Failure::of(&k.context, &k.produced) == Some(kind)).count()
        });
        assert_eq!(evaluation.failures, kinds);
        assert_eq!(kinds.iter().sum::<usize>(), naive.contexts.len() - right);
        assert_eq!(evaluation.wrong.len(), 5, "no more than wanted in detail");
        for wrong in &evaluation.wrong {
            let known = &naive.contexts[&Text(wrong.question()).to_string()];
            assert_eq!((&wrong.context, &wrong.produced), (&known.context, &known.produced));
            assert_eq!(wrong.class, known.class);
            assert_eq!((0..wrong.context.len()).filter(|&at| wrong.is_wrong(at)).count(), 1);
        }
        assert_eq!(evaluation.deep_accuracy(), deep as f64 / count as f64);
        assert_eq!(evaluation.interval(), wilson(deep, count));
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    for paradigm in Paradigm::ALL {
        let naive = Naive::new(&Mul, 4, 100, paradigm, now_and_then);
        let (model, _) = naive.model(usize::MAX);
        let test = draw(&Mul, 4, 100);
        let one = evaluate_with(1, &model, &test, paradigm);
        assert_eq!(one, evaluate_with(2, &model, &test, paradigm));
        assert!(one.right_contexts < one.contexts && !one.wrong.is_empty());
    }
}

/// One wrong sum of digits makes every problem wrong that needs it, and no other.
#[test]
fn a_mistake_far_below_counts_for_all_who_ask() {
    let fault: Fault = |question, context| {
        let mut produced = context.y.clone();
        produced[context.len() - 2] = Token::D9;
        (question == "<GO>3+1=").then_some(produced)
    };
    let naive = Naive::new(&Mul, 3, 300, Paradigm::Rot, fault);
    let (model, _) = naive.model(2048);
    let evaluation = evaluate_with(2, &model, &draw(&Mul, 3, 300), Paradigm::Rot);
    assert_eq!(evaluation.contexts - evaluation.right_contexts, 1);
    let deep = naive.questions.iter().filter(|question| naive.is_deep_right(question)).count();
    assert_eq!(evaluation.right_problems, deep);
    assert!(deep < 299, "{deep}");
    let wrong = &evaluation.wrong[0];
    assert_eq!(Text(&wrong.context.x).to_string(), "<GO>3+1=4<STOP>");
    assert_eq!(Text(&wrong.produced[5..]).to_string(), "9<STOP>");
    assert_eq!((wrong.class, wrong.failure), ("add", Failure::Other));
}

#[test]
fn a_problem_is_one_context_in_the_other_paradigms() {
    for paradigm in [Paradigm::Cot, Paradigm::Wt] {
        let naive = Naive::new(&Mul, 4, 200, paradigm, now_and_then);
        let (model, read) = naive.model(1_000_000);
        let evaluation = evaluate_with(2, &model, &draw(&Mul, 4, 200), paradigm);
        let right = naive.questions.iter().filter(|question| naive.is_right(question)).count();
        assert!(0 < right && right < 200, "{right}");
        assert_eq!((evaluation.problems, evaluation.right_problems), (200, right));
        assert_eq!((evaluation.contexts, evaluation.right_contexts), (200, right));
        assert_eq!(read.load(Ordering::Relaxed), 200);
        let class = ClassScore { class: "mul", contexts: 200, right, deep_right: right };
        assert_eq!(evaluation.classes, [class]);
        let longest = naive.contexts.values().map(|known| known.context.len()).max();
        assert_eq!(Some(evaluation.longest_context), longest);
    }
}

#[test]
fn a_context_longer_than_a_chunk_is_read_by_itself() {
    let naive = Naive::new(&Lcs, 5, 10, Paradigm::Cot, now_and_then);
    assert!(naive.contexts[&naive.questions[0]].context.len() > 1025);
    let evaluation = evaluate_with(2, &naive.model(100_000).0, &draw(&Lcs, 5, 10), Paradigm::Cot);
    let right = naive.questions.iter().filter(|question| naive.is_right(question)).count();
    assert_eq!((evaluation.contexts, evaluation.right_contexts), (10, right));
}

#[test]
fn a_model_without_a_mistake_has_all_right() {
    let naive = Naive::new(&Add, 4, 100, Paradigm::Rot, no_fault);
    let (model, _) = naive.model(2048);
    let progress = AtomicUsize::new(0);
    let test = draw(&Add, 4, 100);
    let evaluation = evaluate(&model, &test, Paradigm::Rot, 5, |work| {
        progress.fetch_add(work.tokens, Ordering::Relaxed);
        assert!(work.tokens <= work.of);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!((evaluation.right_problems, evaluation.right_contexts), (100, evaluation.contexts));
    assert_eq!(evaluation.right_supervised, evaluation.supervised);
    assert_eq!((evaluation.failures, evaluation.wrong.len()), ([0; 3], 0));
    assert_eq!(progress.into_inner(), evaluation.tokens, "progress ends at the end");
}

#[test]
fn a_test_that_is_stopped_reads_no_further() {
    let naive = Naive::new(&Add, 8, 300, Paradigm::Rot, no_fault);
    let (model, read) = naive.model(2048);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let stopped = pool.install(|| {
        evaluate(&model, &draw(&Add, 8, 300), Paradigm::Rot, 5, |_| ControlFlow::Break(()))
    });
    assert_eq!(stopped.unwrap_err(), EvalError::Stopped);
    let read = read.load(Ordering::Relaxed);
    assert!(0 < read && read < naive.contexts.len() / 4, "{read} of {}", naive.contexts.len());
}

#[test]
fn a_context_that_is_too_long_says_what_it_needs() {
    let test = draw(&Mul, 4, 50);
    for paradigm in Paradigm::ALL {
        let naive = Naive::new(&Mul, 4, 50, paradigm, no_fault);
        let longest = naive.contexts.values().max_by_key(|known| known.context.len()).unwrap();
        let needed = longest.context.len();
        let evaluate = |limit| {
            let (model, read) = naive.model(limit);
            let result = evaluate(&model, &test, paradigm, 5, |_| ControlFlow::Continue(()));
            (result, read.load(Ordering::Relaxed))
        };
        assert_eq!(evaluate(needed).0.unwrap().longest_context, needed);
        for limit in [needed - 1, 12] {
            let (result, read) = evaluate(limit);
            assert_eq!(read, 0, "nothing is read in vain");
            let error = result.unwrap_err();
            let EvalError::TooLong { tokens, class, .. } = &error else { panic!("{error}") };
            assert_eq!((tokens, *class), (&needed.into(), longest.class));
            let message = error.to_string();
            for part in [&format!("at most {limit}"), &format!("{needed} tokens"), paradigm.name()]
            {
                assert!(message.contains(part), "{message}");
            }
        }
    }
}

#[test]
fn a_token_that_the_model_does_not_know_is_named() {
    let naive = Naive::new(&Compare, 2, 50, Paradigm::Rot, no_fault);
    for (missing, at) in [(Token::VS, "<VS>"), (Token::THINK, "<THINK>"), (Token::LT, "<LT>")] {
        let (mut model, read) = naive.model(2048);
        let known = Token::ALL.iter().copied().filter(|&token| token != missing);
        model.vocabulary = Vocabulary::of(known);
        let test = draw(&Compare, 2, 50);
        let error =
            evaluate(&model, &test, Paradigm::Rot, 5, |_| ControlFlow::Continue(())).unwrap_err();
        assert!(matches!(&error, EvalError::UnknownToken { token, .. } if *token == missing));
        assert!(error.to_string().starts_with(&format!("the model's vocabulary has no {at}, ")));
        assert_eq!(read.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn test_sets_are_unique_and_end_where_the_questions_end() {
    let mut drawn = 0;
    let questions = Questions { problem: &Compare, size: 1, sampling: Sampling::Paper, seed: 0 };
    let test = TestSet::draw(&questions, 30_000, DEFAULT_MEMORY_LIMIT, || drawn += 1).unwrap();
    assert_eq!((test.problems().len(), drawn), (100, 100));
    let unique: HashSet<ContextId> = test.problems().iter().copied().collect();
    assert_eq!(unique.len(), 100);
    let size = draw(&Mul, 4, 500).problems().len();
    assert_eq!(size, 500);

    let naive = Naive::new(&Compare, 1, 100, Paradigm::Rot, now_and_then);
    let (model, _) = naive.model(2048);
    let evaluation =
        evaluate(&model, &test, Paradigm::Rot, 5, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((evaluation.problems, evaluation.contexts), (100, 100));
}

/// A question that was met below another problem is still a problem of its own.
#[test]
fn problems_can_be_asked_by_problems() {
    let test = draw(&Add, 1, 30_000);
    assert_eq!(test.problems().len(), 100);
    let test = draw(&Add, 2, 2000);
    assert_eq!(test.problems().len(), 2000);
    assert!(test.graph().len() < 2200, "{}", test.graph().len());
}

#[test]
fn no_problem_is_no_accuracy() {
    let naive = Naive::new(&Add, 4, 1, Paradigm::Rot, no_fault);
    let evaluation = evaluate_with(1, &naive.model(2048).0, &draw(&Add, 4, 0), Paradigm::Rot);
    assert_eq!((evaluation.problems, evaluation.tokens), (0, 0));
    assert_eq!((evaluation.deep_accuracy(), evaluation.interval()), (0.0, [0.0, 1.0]));
}

#[test]
fn what_cannot_be_drawn_is_an_error() {
    let questions =
        Questions { problem: &rot_problems::Sort, size: 1, sampling: Sampling::Paper, seed: 0 };
    let error = TestSet::draw(&questions, 1, DEFAULT_MEMORY_LIMIT, || ()).unwrap_err();
    assert!(matches!(error, EvalError::Size(_)));
    let questions = Questions { problem: &Mul, size: 32, sampling: Sampling::Paper, seed: 0 };
    let error = TestSet::draw(&questions, 1000, 1 << 20, || ()).unwrap_err();
    assert!(matches!(error, EvalError::Unfold(UnfoldError::Memory { .. })), "{error}");
}

#[test]
fn seeds_for_tests_are_not_those_for_training() {
    for seed in [0, 1, u64::from(u32::MAX), (1 << 63) - 1] {
        assert!(test_seed(seed) >= 1 << 63);
        assert_eq!(test_seed(seed) - (1 << 63), seed);
    }
    let trained = Sampler::new(&Mul, 8, Sampling::Paper, 3).unwrap();
    let mut question = Vec::new();
    trained.write_question(0, &mut question);
    let test = draw(&Mul, 8, 1);
    assert_ne!(test.graph().question(test.problems()[0]), question);
}
