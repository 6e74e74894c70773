//! What a problem says of itself, against what it does.

use proptest::prelude::*;
use rot_core::{Context, Sampler, Sampling, Text, ThoughtGraph, Token, Vocabulary};
use rot_problems::{PROBLEMS, read};

#[test]
fn vocabularies_are_what_contexts_are_made_of() {
    for &problem in PROBLEMS {
        let stated = Vocabulary::of_problems(&[problem]);
        let mut seen = vec![Token::PAD];
        let mut asked = vec![problem.name()];
        let sampler = Sampler::new(problem, 6, Sampling::Paper, 3).expect("a valid size");
        let mut question = Vec::new();
        for index in 0..200 {
            sampler.write_question(index, &mut question);
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
    assert_eq!(Vocabulary::of_problems(PROBLEMS).tokens(), Token::ALL);
}

#[test]
fn a_question_has_the_form_of_its_problem_and_passes_its_check() {
    for &problem in PROBLEMS {
        let mut question = Vec::new();
        for sampling in Sampling::ALL {
            for size in [2, 5, 64] {
                let sampler = Sampler::new(problem, size, sampling, 4).expect("a valid size");
                for index in 0..100 {
                    sampler.write_question(index, &mut question);
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

/// Every context of a problem, not only the first: its tokens alone tell whose it is, and it passes
/// that problem's check. A model's sub-questions are told apart in no other way.
#[test]
fn every_context_belongs_to_one_problem() {
    for &problem in PROBLEMS {
        let sampler = Sampler::new(problem, 8, Sampling::Paper, 5).expect("a valid size");
        let mut question = Vec::new();
        let mut graph = ThoughtGraph::default();
        for index in 0..50 {
            sampler.write_question(index, &mut question);
            graph.unfold(problem, &question).expect("a sampled question");
        }
        for id in graph.contexts() {
            let question = graph.question(id);
            let body = &question[1..question.len() - 1];
            let fitting: Vec<_> =
                PROBLEMS.iter().filter(|other| other.facts().form.fits(body)).collect();
            assert_eq!(fitting.len(), 1, "{question:?}");
            assert_eq!(fitting[0].name(), graph.class(id), "{question:?}");
            assert_eq!(fitting[0].check(body), Ok(()), "{question:?}");
        }
    }
}

/// A change to a body: a token put in, taken out, or put in place of another.
fn change() -> impl Strategy<Value = (usize, Option<Token>, bool)> {
    (any::<usize>(), prop::option::of(prop::sample::select(Token::ALL)), any::<bool>())
}

fn changed(mut body: Vec<Token>, changes: &[(usize, Option<Token>, bool)]) -> Vec<Token> {
    for &(at, token, replace) in changes {
        let at = at % (body.len() + 1);
        if (token.is_none() || replace) && at < body.len() {
            body.remove(at);
        }
        if let Some(token) = token {
            body.insert(at.min(body.len()), token);
        }
    }
    body
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4000) })]

    /// Whatever the body, a procedure ends: with an answer if it passes the check, with an answer
    /// or an error if it does not.
    #[test]
    fn any_body_is_answered_or_refused(
        at in 0..PROBLEMS.len(),
        index in any::<u64>(),
        changes in prop::collection::vec(change(), 0..4),
    ) {
        let problem = PROBLEMS[at];
        let sampler = Sampler::new(problem, 4, Sampling::Paper, 6).expect("a valid size");
        let mut question = Vec::new();
        sampler.write_question(index, &mut question);
        let body = changed(question[1..question.len() - 1].to_vec(), &changes);
        let question = [&[Token::GO], &body[..], &[Token::EQUALS]].concat();
        let mut graph = ThoughtGraph::with_memory_limit(1 << 20);
        let result = graph.unfold(problem, &question);
        if problem.check(&body).is_ok() {
            prop_assert!(result.is_ok(), "{question:?}");
            prop_assert!(problem.facts().form.fits(&body), "{question:?}");
        }
    }

    /// The same for text: it is refused with a position inside it, or read, answered, and read the
    /// same again.
    #[test]
    fn any_text_is_read_or_refused(
        at in 0..PROBLEMS.len(),
        index in any::<u64>(),
        changes in prop::collection::vec(change(), 0..3),
        junk in ".{0,2}",
        place in any::<usize>(),
    ) {
        let sampler = Sampler::new(PROBLEMS[at], 4, Sampling::Paper, 7).expect("a valid size");
        let mut question = Vec::new();
        sampler.write_question(index, &mut question);
        let mut text: Vec<char> = Text(&changed(question, &changes)).to_string().chars().collect();
        let place = place % (text.len() + 1);
        text.splice(place..place, junk.chars());
        let text: String = text.into_iter().collect();
        match read(&text) {
            Err(error) => prop_assert!(error.position <= text.chars().count() + 1, "{text}: {error}"),
            Ok(question) => {
                let again = read(&Text(&question.tokens).to_string()).expect("read before");
                prop_assert_eq!(again.tokens, question.tokens.clone());
                let mut graph = ThoughtGraph::with_memory_limit(1 << 20);
                prop_assert!(graph.unfold(question.problem, &question.tokens).is_ok(), "{text}");
            }
        }
    }
}
