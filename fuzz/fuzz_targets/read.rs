//! Questions from anywhere: whatever is typed is refused or answered, and what is read once is read
//! the same again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rot_core::{Text, ThoughtGraph, UnfoldError, parse_tokens};

fuzz_target!(|text: &str| {
    if let Ok(tokens) = parse_tokens(text) {
        assert_eq!(Text(&tokens).to_string(), text);
    }
    match rot_problems::read(text) {
        Err(error) => {
            assert!(error.position <= text.chars().count() + 1, "{error}");
            assert!(error.what.len() < 400);
        }
        Ok(question) => {
            let again = rot_problems::read(&Text(&question.tokens).to_string()).unwrap();
            assert_eq!(again.tokens, question.tokens);
            assert_eq!(again.problem.name(), question.problem.name());
            // Whatever passes the check has an answer, unless it is too large.
            let mut graph = ThoughtGraph::with_memory_limit(1 << 22);
            match graph.unfold(question.problem, &question.tokens) {
                Ok(root) => assert!(!graph.answer(root).is_empty()),
                Err(UnfoldError::Memory { .. }) => assert!(graph.is_empty()),
                Err(error) => panic!("{text}: {error}"),
            }
        }
    }
});
