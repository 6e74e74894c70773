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
