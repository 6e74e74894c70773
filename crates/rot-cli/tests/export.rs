//! Exports as people and programs meet them.
#![expect(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn finetune(args: &[&str], out: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rot"));
    command.args(["export", "finetune"]).args(args).arg("--out").arg(out).output().unwrap()
}

#[test]
fn a_seed_is_a_file_and_a_test_is_not_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let test = path("test.txt");
    let args = ["--problem", "add", "--size", "2", "--examples", "3000", "--json"];
    let with_test = ["--test", "200", "--test-seed", "7", "--test-out", test.to_str().unwrap()];
    let args = [&args[..], &with_test].concat();
    let [one, other] = ["one.jsonl", "other.jsonl"].map(|name| {
        let output = finetune(&args, &path(name));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(summary["examples"], 3000);
        assert!(summary["left_out"].as_u64().unwrap() > 0);
        fs::read_to_string(path(name)).unwrap()
    });
    assert_eq!(one, other);
    assert_eq!(one.lines().count(), 3000);

    // A problem begins with a prompt that is a question and no answer of another.
    let questions: HashSet<String> =
        fs::read_to_string(&test).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(questions.len(), 200);
    let sample = ["sample", "add", "--size", "2", "--count", "50"];
    let drawn = Command::new(env!("CARGO_BIN_EXE_rot")).args(sample).output().unwrap();
    let drawn = String::from_utf8(drawn.stdout).unwrap();
    let is_there = |question: &str| {
        let words: String =
            question.replace("<GO>", "g").chars().map(|c| format!(" {c}")).collect();
        one.contains(&format!("{{\"prompt\": \"{}\",", words.replace(" g", " go")))
    };
    // The first problems of the list are written unless they are in the test, or asked below others.
    let kept = drawn.lines().filter(|question| !questions.contains(*question));
    assert!(kept.clone().count() > 5 && kept.clone().all(is_there));
}

/// Tokens of a text: a name in angle brackets, or a character.
fn tokens(text: &str) -> Vec<String> {
    let (mut tokens, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let end = if first == '<' { rest.find('>').unwrap() + 1 } else { first.len_utf8() };
        tokens.push(rest[..end].to_owned());
        rest = &rest[end..];
    }
    tokens
}

fn words(tokens: &[String]) -> String {
    let word = |token: &String| match token.as_str() {
        "÷" => " /".to_owned(),
        "×" => " by".to_owned(),
        token => format!(" {}", token.trim_matches(['<', '>']).to_lowercase()),
    };
    tokens.iter().map(word).collect()
}

/// The lines of a problem, from the contexts and targets that `rot contexts` prints.
fn lines_of(contexts: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for context in contexts.as_array().unwrap() {
        let [x, y] = ["x", "y"].map(|part| tokens(context[part].as_str().unwrap()));
        let mut start = None;
        for (place, said) in y.iter().enumerate() {
            if said == "<PAD>" {
                continue;
            }
            let from = *start.get_or_insert(place);
            if said == "<THINK>" || said == "<STOP>" {
                let [prompt, completion] = [words(&x[..from]), words(&y[from..=place])];
                lines.push(format!(
                    "{{\"prompt\": \"{prompt}\", \"completion\": \"{completion}\"}}"
                ));
                start = None;
            }
        }
    }
    lines
}

#[test]
fn a_large_file_is_what_contexts_say() {
    const LINES: usize = 100_000;
    let problems = [("div", "6"), ("mcm", "4"), ("sort", "6")];
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("lines.jsonl");
    let args = problems.map(|(problem, size)| ["--problem", problem, "--size", size]).concat();
    let count = LINES.to_string();
    let output = finetune(&[&args[..], &["--examples", &count, "--seed", "3"]].concat(), &out);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    // The same problems by another way; they take turns.
    let rot = || Command::new(env!("CARGO_BIN_EXE_rot"));
    let unfolded = problems.map(|(problem, size)| {
        let args = ["sample", problem, "--size", size, "--count", "600", "--seed", "3"];
        let questions = folder.path().join(problem);
        fs::write(&questions, rot().args(args).output().unwrap().stdout).unwrap();
        let input = fs::File::open(&questions).unwrap();
        let args = ["contexts", "-", "--jsonl", "--max-cot-tokens", "0"];
        let output = rot().args(args).stdin(input).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let problem = |line: &str| serde_json::from_str::<Value>(line).unwrap()["contexts"].take();
        text.lines().map(problem).collect::<Vec<_>>()
    });
    let turns = (0..unfolded[0].len()).flat_map(|turn| unfolded.iter().map(move |all| &all[turn]));
    let mut expected = turns.flat_map(lines_of);
    let written = fs::read_to_string(&out).unwrap();
    assert_eq!(written.lines().count(), LINES);
    for (number, line) in written.lines().enumerate() {
        assert_eq!(Some(line), expected.next().as_deref(), "line {number}");
    }
}

#[test]
fn what_cannot_be_says_so_and_leaves_the_file_alone() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("file.jsonl");
    fs::write(&out, "before").unwrap();
    for (args, code) in [
        (&["--problem", "add", "--size", "2", "--size", "3", "--examples", "5"][..], 2),
        (&["--problem", "add", "--size", "2", "--examples", "5", "--paradigm", "cot"][..], 2),
        (&["--problem", "add", "--size", "1", "--examples", "5000", "--unique"][..], 1),
    ] {
        let output = finetune(args, &out);
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        assert!(!output.stderr.is_empty());
        assert_eq!(fs::read_to_string(&out).unwrap(), "before");
    }
    let nowhere = folder.path().join("no/such/folder.jsonl");
    let args = ["--problem", "add", "--size", "2", "--examples", "5"];
    assert_eq!(finetune(&args, &nowhere).status.code(), Some(1));
}
