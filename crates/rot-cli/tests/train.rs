//! Training and evaluation as people and programs meet them.
#![expect(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A run of a second or two.
const RECIPE: &str = r#"
seed = 5
data.problems = ["add-2"]
data.balance = 0.25

[model]
kind = "transformer"
layers = 1
width = 32
feed_forward = 32
placement = "before"
positions = "rotary"
convolution = 4

[optimizer]
rate = 5e-3

[training]
steps = 300
batch = 64
schedule = "linear"
checkpoint_every = 7
stop_when_perfect = false

[evaluation]
every = 100
problems = 50
"#;

fn rot(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rot")).args(args).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn recipe(dir: &Path) -> String {
    let path = dir.join("recipe.toml");
    fs::write(&path, RECIPE).unwrap();
    path.to_str().unwrap().to_owned()
}

fn start(args: &[&str]) -> std::process::Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rot"));
    command.args(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// What a finished run must leave the same, whatever happened on the way.
fn results(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let names = [
        "best.safetensors",
        "checkpoints/step-00000300.safetensors",
        "metrics.csv",
        "vocabulary.txt",
    ];
    names.iter().map(|name| ((*name).to_owned(), fs::read(dir.join(name)).unwrap())).collect()
}

#[test]
fn a_run_killed_at_several_moments_ends_in_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = recipe(dir.path());
    let whole = dir.path().join("whole");
    let begin = Instant::now();
    let output = rot(&["train", &recipe, "--out", whole.to_str().unwrap(), "--threads", "2"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let took = begin.elapsed();

    let killed = dir.path().join("killed");
    let out = killed.to_str().unwrap();
    let mut kills = 0;
    // A third of a run at a time, and a little more each time, with one thread: it ends some day.
    for round in 0..20 {
        let made = killed.join("recipe.toml").exists();
        let args = match made {
            true => vec!["train", "--resume", "--out", out, "--threads", "1"],
            false => vec!["train", &recipe, "--out", out, "--threads", "1"],
        };
        let mut child = start(&args);
        std::thread::sleep(took * (2 + round) / 7);
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            kills += 1;
        }
        child.wait().unwrap();
        if killed.join("report.md").exists() {
            break;
        }
    }
    assert!(kills >= 2, "killed only {kills} times");
    assert!(killed.join("report.md").exists(), "never done after {kills} kills");
    for ((name, whole), (_, killed)) in results(&whole).iter().zip(&results(&killed)) {
        assert!(whole == killed, "{name} differs after {kills} kills");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_saves_and_says_how_to_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let (recipe, run) = (recipe(dir.path()), dir.path().join("run"));
    let text = fs::read_to_string(&recipe).unwrap().replace("steps = 300", "steps = 300000");
    fs::write(&recipe, text).unwrap();
    let child = start(&["train", &recipe, "--out", run.to_str().unwrap()]);
    let begin = Instant::now();
    while !run.join("checkpoints/step-00000014.safetensors").exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "no checkpoint");
        std::thread::sleep(Duration::from_millis(5));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("go on with: rot train --resume --out"),
        "{}",
        stderr(&output)
    );
    let steps: Vec<u64> = fs::read_dir(run.join("checkpoints"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy()[5..13].parse().unwrap())
        .collect();
    let said = format!("stopped after step {} and saved", steps.iter().max().unwrap());
    assert!(stderr(&output).contains(&said), "{said}: {}", stderr(&output));
}

#[test]
fn a_run_is_trained_evaluated_and_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let (recipe, run) = (recipe(dir.path()), dir.path().join("run"));
    let out = run.to_str().unwrap();
    let output = rot(&["train", &recipe, "--out", out, "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let trained: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&trained["steps"], &trained["tests"][0]["problems"]), (&300.into(), &50.into()));

    for model in [run.clone(), run.join("best.safetensors")] {
        let args = [
            "eval",
            model.to_str().unwrap(),
            "--problem",
            "add",
            "--size",
            "2",
            "--count",
            "200",
            "--json",
        ];
        let output = rot(&args);
        assert!(output.status.success(), "{}", stderr(&output));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found["problems"], 200);
        assert!(found["unique_contexts"].as_u64().unwrap() > 200);
        // Three hundred steps teach something.
        assert!(found["context_accuracy"].as_f64().unwrap() > 0.2, "{found}");
        assert!(
            found["deep_accuracy"].as_f64().unwrap() <= found["context_accuracy"].as_f64().unwrap()
        );
    }
    let output = rot(&["eval", out, "--problem", "lcs", "--size", "4"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("<LCS>"), "{}", stderr(&output));

    let output = rot(&["train", &recipe, "--out", out]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--resume"), "{}", stderr(&output));
    // A finished run that is resumed has nothing to do, and says how it ended.
    let before = results(&run);
    let output = rot(&["train", "--resume", "--out", out]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(before, results(&run));
}

#[test]
fn what_cannot_be_trained_is_wrong_usage() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let out = out.to_str().unwrap();
    let bad = dir.path().join("bad.toml");
    fs::write(&bad, "[training]\nsetps = 3\n").unwrap();
    let bad = bad.to_str().unwrap();
    for (args, part) in [
        (&["mul", "--size", "8", "--paradigm", "cot"][..], "the model's limit is 2048"),
        (&["mul", "--size", "8", "--paradigm", "cot"], "a cot context of mul-8 needs "),
        (&["mul"], "--size"),
        (&["mull", "--size", "8"], "the problems are add, "),
        (&["no-such-recipe.toml"], "cannot read the recipe 'no-such-recipe.toml'"),
        (&[bad], "setps"),
        (&["sort", "--size", "1"], "needs a size of at least"),
        (&["mul", "--size", "4", "--recipe", "slow"], "paper"),
    ] {
        let output = rot(&[&["train"], args, &["--out", out]].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(part), "{args:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty() && !Path::new(out).exists(), "{args:?}");
    }
    let output = rot(&["train", "--resume", "--out", out]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no run"), "{}", stderr(&output));
}

#[test]
fn a_rate_that_is_too_high_ends_with_the_line_to_change() {
    let dir = tempfile::tempdir().unwrap();
    let (recipe, run) = (recipe(dir.path()), dir.path().join("run"));
    let text = fs::read_to_string(&recipe).unwrap().replace("rate = 5e-3", "rate = 1e38");
    fs::write(&recipe, text).unwrap();
    let output = rot(&["train", &recipe, "--out", run.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("the loss is not finite at step") && said.contains("recipe.toml"),
        "{said}"
    );
    let line: usize =
        said.split("in line ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    let text = fs::read_to_string(run.join("recipe.toml")).unwrap();
    assert!(text.lines().nth(line - 1).unwrap().starts_with("rate = "), "{said}");
}

#[test]
fn speeds_come_as_a_table_and_for_programs() {
    let output = rot(&["bench", "--seconds", "0.01", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(found["gemm_peak_gflops"].as_f64().unwrap() > 0.0);
    let names: Vec<&str> = found["measured"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["what"].as_str().unwrap())
        .collect();
    for part in ["product", "attention", "step, paper's Transformer, mul-8", "evaluation", "LSTM"] {
        assert!(names.iter().any(|name| name.contains(part)), "{part}: {names:?}");
    }
}

#[test]
fn parity_is_told_apart_from_its_lack() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rot-nn/tests/data");
    let file = data.join("transformer_small.safetensors");
    let output = rot(&["parity", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("Transformer, 18,258 parameters"), "{text}");

    let mut bytes = fs::read(file).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let tensors: Value = serde_json::from_slice(&bytes[8..8 + header]).unwrap();
    let logits = 8 + header + tensors["logits"]["data_offsets"][0].as_u64().unwrap() as usize;
    bytes[logits..logits + 40].fill(0x3f);
    let dir = tempfile::tempdir().unwrap();
    let changed = dir.path().join("changed");
    fs::write(&changed, bytes).unwrap();
    let output = rot(&["parity", changed.to_str().unwrap(), "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["holds"], false);
    assert_eq!(rot(&["parity", "no-such-file"]).status.code(), Some(1));
}
