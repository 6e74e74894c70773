//! What a problem says of itself, against what it does.

use proptest::prelude::*;
use rot_core::{
    Context, Sampler, Sampling, ThoughtGraph, Token, UnfoldError, Vocabulary, vocabulary,
};
use rot_problems::PROBLEMS;

#[test]
fn vocabularies_are_what_contexts_are_made_of() {
    for &problem in PROBLEMS {
        let stated = vocabulary(&[problem]);
        let mut seen = vec![Token::PAD];
        let mut asked = vec![problem.name()];
        let sampler = Sampler::new(problem, 6, Sampling::Paper, 3).expect("a valid size");
        let mut question = Vec::new();
        for index in 0..200 {
            sampler.question(index, &mut question);
            let mut graph = ThoughtGraph::default();
            graph.unfold(problem, &question).expect("a sampled question");
            let mut context = Context::default();
            for id in graph.contexts() {
                graph.write_rot(id, &mut context);
                asked.push(graph.class(id));
            }
            seen.extend(context.x.iter().chain(&context.y));
            seen.sort_unstable();
            seen.dedup();
        }
        // A base case by itself never thinks; the vocabulary has THINK for whoever asks it.
        let mut expected = stated.tokens().to_vec();
        if problem.name() == "equal" {
            expected.retain(|&token| token != Token::THINK);
        }
        assert_eq!(Vocabulary::of(seen).tokens(), expected, "{}", problem.name());

        asked.sort_unstable();
        asked.dedup();
        let mut stated = vec![problem];
        let mut at = 0;
        while let Some(&problem) = stated.get(at) {
            let new = |asked: &&&'static dyn rot_core::Problem| {
                stated.iter().all(|known| known.name() != asked.name())
            };
            let more: Vec<_> = problem.facts().asks.iter().filter(new).copied().collect();
            stated.extend(more);
            at += 1;
        }
        let mut stated: Vec<&str> = stated.iter().map(|problem| problem.name()).collect();
        stated.sort_unstable();
        assert_eq!(asked, stated, "{}", problem.name());
    }
}

#[test]
fn all_problems_together_need_every_token() {
    assert_eq!(vocabulary(PROBLEMS).tokens(), Token::ALL);
}

#[test]
fn a_question_has_the_form_of_its_problem_and_passes_its_check() {
    for &problem in PROBLEMS {
        let mut question = Vec::new();
        for sampling in Sampling::ALL {
            for size in [2, 5, 64] {
                let sampler = Sampler::new(problem, size, sampling, 4).expect("a valid size");
                for index in 0..100 {
                    sampler.question(index, &mut question);
                    let body = &question[1..question.len() - 1];
                    assert!(problem.facts().form.fits(body), "{question:?}");
                    assert_eq!(problem.check(body), Ok(()), "{question:?}");
                    let others = PROBLEMS.iter().filter(|other| other.name() != problem.name());
                    assert!(
                        others.clone().all(|other| !other.facts().form.fits(body)),
                        "{question:?}"
                    );
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    /// Whatever the body, a procedure ends: with an answer if it passes the check, with an answer
    /// or an error if it does not.
    #[test]
    fn any_body_is_answered_or_refused(
        at in 0..PROBLEMS.len(),
        body in prop::collection::vec(prop::sample::select(Token::ALL), 0..24),
    ) {
        let problem = PROBLEMS[at];
        // Bodies that begin as they should get further.
        let mark = problem.facts().form.mark();
        for body in [body.clone(), [&[mark], &body[..]].concat(), [&[Token::D7, mark], &body[..]].concat()] {
            let question = [&[Token::GO], &body[..], &[Token::EQUALS]].concat();
            let mut graph = ThoughtGraph::with_memory_limit(1 << 16);
            let result = graph.unfold(problem, &question);
            if problem.check(&body).is_ok() && !matches!(result, Err(UnfoldError::Memory { .. })) {
                prop_assert!(result.is_ok(), "{question:?}");
            }
        }
    }
}
