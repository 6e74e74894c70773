//! Agreement with `data/contexts.jsonl`, which was made with the authors' own code: every context,
//! target, CoT, WT, counter and hash.

#![expect(clippy::unwrap_used, reason = "a broken fixture must stop the test")]

use rot_core::{Context, CostCounter, Text, ThoughtGraph};
use rot_problems::read;
use serde_json::Value;
use sha2::{Digest, Sha256};

#[test]
fn every_recorded_problem_unfolds_in_the_same_way() {
    let lines = include_str!("data/contexts.jsonl");
    let mut problems = 0;
    for line in lines.lines() {
        agree(&serde_json::from_str(line).unwrap());
        problems += 1;
    }
    assert_eq!(problems, 210);
}

fn agree(expected: &Value) {
    let text = expected["question"].as_str().unwrap();
    let question = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(question.problem.name(), expected["problem"], "{text}");
    assert_eq!(Text(&question.tokens).to_string(), text);

    let mut graph = ThoughtGraph::default();
    let root = graph.unfold(question.problem, &question.tokens).unwrap();
    assert_eq!(Text(graph.answer(root)).to_string(), expected["answer"], "{text}");

    let mut wt = Context::default();
    graph.write_wt(root, &mut wt);
    assert_eq!(Text(&wt.x).to_string(), expected["wt"]);

    if let Some(expected) = expected.get("cot").and_then(Value::as_str) {
        let mut cot = Context::default();
        assert!(graph.write_cot(root, usize::MAX, &mut cot));
        assert_eq!(Text(&cot.x).to_string(), expected, "{text}");
    }

    let contexts: Vec<(String, String)> = graph
        .contexts()
        .map(|id| {
            let mut context = Context::default();
            graph.write_rot(id, &mut context);
            assert_eq!(context.x.len(), context.y.len());
            (Text(&context.x).to_string(), Text(&context.y).to_string())
        })
        .collect();
    if let Some(expected) = expected.get("contexts") {
        let expected: Vec<(String, String)> = expected
            .as_array()
            .unwrap()
            .iter()
            .map(|context| {
                let text = |key: &str| context[key].as_str().unwrap().to_owned();
                (text("x"), text("y"))
            })
            .collect();
        assert_eq!(contexts, expected, "{text}");
    } else {
        let mut lines: Vec<String> = contexts.iter().map(|(x, y)| format!("{x}|{y}")).collect();
        lines.sort_unstable();
        let digest = Sha256::digest(lines.join("\n").as_bytes());
        let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, expected["sorted_contexts_sha256"], "{text}");
    }

    let costs = CostCounter::new(&graph).unwrap().costs(root);
    assert_eq!(costs.unique_contexts, expected["unique_contexts"], "{text}");
    assert_eq!(costs.longest_context, expected["max_context"], "{text}");
    assert_eq!(costs.naive_contexts.to_string(), expected["naive_contexts"], "{text}");
    assert_eq!(costs.naive_tokens.to_string(), expected["naive_generated_tokens"], "{text}");
}
