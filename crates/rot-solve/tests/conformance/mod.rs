//! What all generators must keep to; the tests of other crates use it too.

use std::collections::HashMap;

use rot_core::{Token, parse_tokens};
use rot_solve::{ContextId, End, Generator, Span};

/// The most tokens of a context.
pub(crate) const LIMIT: usize = 64;

/// Polls until a context's span has ended.
fn wait(
    generator: &mut dyn Generator,
    spans: &mut HashMap<ContextId, Span>,
    id: ContextId,
) -> Span {
    for _ in 0..10_000 {
        if let Some(span) = spans.remove(&id) {
            return span;
        }
        let mut ended = Vec::new();
        generator.poll(&mut ended);
        spans.extend(ended.into_iter().map(|span| (span.id, span)));
    }
    panic!("{id:?} does not end");
}

/// What a context says when it is continued to its end, with an answer after each THINK.
fn script(
    generator: &mut dyn Generator,
    id: ContextId,
    question: &[Token],
    most: usize,
) -> Vec<Span> {
    let answer = parse_tokens("12<STOP>").unwrap();
    let (mut spans, mut ended) = (Vec::new(), HashMap::new());
    let mut length = question.len();
    generator.submit(id, question, most.min(LIMIT - length));
    loop {
        let span = wait(generator, &mut ended, id);
        length += span.tokens.len() + answer.len();
        let goes_on = span.end == End::Whole && span.tokens.last() == Some(&Token::THINK);
        spans.push(Span { id: ContextId(0), ..span });
        if !goes_on || length >= LIMIT || spans.len() == 4 {
            generator.release(id);
            return spans;
        }
        generator.submit(id, &answer, most.min(LIMIT - length));
    }
}

/// Fails unless a generator says the same to a context whatever else it is at, and forgets what is released.
pub(crate) fn conforms(mut make: impl FnMut() -> Box<dyn Generator>) {
    let questions = ["<GO>12*34=", "<GO>7+8=", "<GO>99*99=", "<GO>3*4=", "<GO>100+23="];
    let questions = questions.map(|text| parse_tokens(text).unwrap());
    for most in [1, 3, LIMIT] {
        let mut generator = make();
        let alone: Vec<Vec<Span>> = questions
            .iter()
            .map(|question| script(&mut *make(), ContextId(0), question, most))
            .collect();
        for (spans, question) in alone.iter().zip(&questions) {
            for span in spans {
                let room = most.min(LIMIT - question.len());
                // A THINK or STOP can come after as many tokens as there may be.
                assert!(span.tokens.len() <= room + 1, "{span:?}");
                let last = span.tokens.last();
                let whole = last == Some(&Token::THINK) || last == Some(&Token::STOP);
                assert_eq!(span.end == End::Whole, whole, "{span:?}");
            }
        }
        // Another context in the same generator, with others beside it that come and go.
        for (i, (question, expected)) in questions.iter().zip(&alone).enumerate() {
            for (beside, other) in questions.iter().enumerate() {
                generator.submit(ContextId(100 + beside as u64), other, 5);
            }
            generator.release(ContextId(100));
            assert_eq!(script(&mut *generator, ContextId(i as u64), question, most), *expected);
            for beside in 0..questions.len() {
                generator.release(ContextId(100 + beside as u64));
            }
        }
        // An id can be used again after its release.
        assert_eq!(script(&mut *generator, ContextId(0), &questions[3], most), alone[3]);
        let mut ended = Vec::new();
        generator.poll(&mut ended);
        assert_eq!(ended, []);
    }
}
