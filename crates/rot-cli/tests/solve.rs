//! Solving with a model as people and programs meet it.
#![expect(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::OnceLock;

use serde_json::Value;

/// A model that knows the sums of small numbers.
const RECIPE: &str = r#"
data.problems = ["add-1"]
data.contexts_per_problem = 2
model.kind = "lstm"
model.hidden = 64
model.layers = 1
optimizer.rate = 2e-2
[training]
steps = 500
batch = 64
schedule = "linear"
stop_when_perfect = true
[evaluation]
every = 100
problems = 100
"#;

/// The run folder, made once for all tests.
fn model() -> &'static str {
    static MODEL: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, run) = MODEL.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let (recipe, run) = (folder.path().join("recipe.toml"), folder.path().join("run"));
        fs::write(&recipe, RECIPE).unwrap();
        let args = ["train", recipe.to_str().unwrap(), "--out", run.to_str().unwrap()];
        let output = rot(&args, "");
        assert!(output.status.success(), "{}", text(&output.stderr));
        (folder, run)
    });
    run.to_str().unwrap()
}

fn rot(args: &[&str], input: &str) -> Output {
    assert_cmd::cargo::cargo_bin_cmd!("rot").args(args).write_stdin(input).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What a command prints, all well.
fn prints(args: &[&str], input: &str) -> String {
    let output = rot(args, input);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn file(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

#[test]
fn a_model_answers_and_says_what_it_took() {
    let printed = prints(&["solve", "3+4", "--model", model()], "");
    let mut lines = printed.lines();
    assert_eq!(lines.next(), Some("3+4 = 7"));
    let statistics = lines.next().unwrap();
    let expected = "1 context, 2 tokens generated, 0 memo hits, 1 deep, longest context 7";
    assert!(statistics.contains(expected), "{statistics}");
    let json = prints(&["solve", "3+4", "--json", "--model", model()], "");
    let record: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(record["question"], "<GO>3+4=");
    assert_eq!(record["answer"], "7<STOP>");
    assert_eq!((&record["contexts"], &record["generated_tokens"]), (&1.into(), &2.into()));
}

#[test]
fn a_line_is_answered_with_a_line() {
    let questions = "1+2\n\n5+\n8+9\nlcs 12 23\n2+2\n";
    let output = rot(&["solve", "-", "--model", model()], questions);
    assert_eq!(output.status.code(), Some(1));
    let printed = text(&output.stdout);
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!((lines[0], lines[3], lines[5]), ("3", "17", "4"));
    assert_eq!(lines.len(), 6);
    assert!(lines[4].contains("does not know the token <LCS>"), "{printed}");
    assert!(text(&output.stderr).contains("line 3:"));
    let json = rot(&["solve", "-", "--json", "--model", model()], questions);
    let records: Vec<Value> =
        text(&json.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 6);
    assert_eq!(records[3]["answer"], "17<STOP>");
    assert!(records[2]["error"].is_string());
    // Many at once, in order.
    let many: String = (0..3000).map(|n| format!("{}+{}\n", n % 10, n / 10 % 10)).collect();
    let answers: String = (0..3000).map(|n| format!("{}\n", n % 10 + n / 10 % 10)).collect();
    assert_eq!(prints(&["solve", "-", "--model", model()], &many), answers);
    assert_eq!(prints(&["solve", "-", "--no-memo", "--model", model()], &many), answers);
}

#[test]
fn a_trace_draws_the_same_tree_again() {
    let folder = tempfile::tempdir().unwrap();
    let trace = file(folder.path(), "trace.jsonl");
    let tree = prints(&["solve", "3+4", "--tree", "--model", model(), "--trace", &trace], "");
    assert_eq!(prints(&["replay", &trace], ""), "3+4 = 7\n");
    assert!(tree.starts_with("3+4 = 7\n"));
    let steps = prints(&["replay", &trace, "--steps"], "");
    assert_eq!(steps, "X1 <GO>3+4=7<STOP>\n");
    let lines = fs::read_to_string(&trace).unwrap();
    assert!(lines.starts_with("{\"event\":\"trace\",\"version\":1,"));
    assert_eq!(prints(&["replay", "-"], &lines), "3+4 = 7\n");
    for (wrong, why) in [
        ("{}", "line 1"),
        ("{\"event\":\"answer\",\"context\":3,\"answer\":\"1\"}", "line 1"),
        ("{\"event\":\"trace\",\"version\":9,\"model\":\"\"}", "version 9"),
    ] {
        let output = rot(&["replay", "-"], wrong);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(why), "{}", text(&output.stderr));
    }
    assert_eq!(rot(&["replay", "nowhere"], "").status.code(), Some(1));
}

#[test]
fn a_memo_file_spares_the_next_run_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let memo = file(folder.path(), "memo");
    let contexts = || {
        let args = ["solve", "3+4", "--json", "--model", model(), "--memo", &memo];
        let record: Value = serde_json::from_str(&prints(&args, "")).unwrap();
        assert_eq!(record["answer"], "7<STOP>");
        record["contexts"].as_u64().unwrap()
    };
    assert_eq!((contexts(), contexts()), (1, 0));
    let both = ["solve", "1+1", "--model", model(), "--memo", &memo, "--no-memo"];
    assert_eq!(rot(&both, "").status.code(), Some(2));
}

#[test]
fn limits_are_named() {
    for (flag, value, named) in [
        ("--max-context", "5", "a context may have 5 tokens"),
        ("--max-depth", "0", "contexts may be 0 deep"),
        ("--max-contexts", "0", "a question may open 0 contexts"),
        ("--max-tokens", "1", "a question may generate 1 tokens"),
        ("--max-seconds", "0", "a question may take 0 s"),
    ] {
        let output = rot(&["solve", "3+4", "--model", model(), flag, value], "");
        assert_eq!(output.status.code(), Some(1), "{flag}");
        let error = text(&output.stderr);
        assert!(error.contains(named) && error.contains("<GO>3+4="), "{flag}: {error}");
    }
    assert_eq!(rot(&["solve", "-", "--oracle"], "1+2\n").status.code(), Some(2));
    assert_eq!(rot(&["solve", "3+4", "--oracle", "--steps"], "").status.code(), Some(2));
    assert_eq!(rot(&["solve", "3+4", "--model", "nowhere"], "").status.code(), Some(1));
}

#[test]
fn a_free_run_agrees_with_the_teacher() {
    let args = ["eval", model(), "--problem", "add", "--size", "1", "--count", "60", "--free-run"];
    let printed = prints(&args, "");
    assert!(printed.contains("free run  "), "{printed}");
    let json = prints(&[&args[..], &["--json", "--no-memo", "--at-once", "7"]].concat(), "");
    let record: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(record["free_run"]["disagreements"], 0);
    assert_eq!(record["free_run"]["exact_problems"], record["right_problems"]);
    let wrong = rot(&[&args[..], &["--paradigm", "wt"]].concat(), "");
    assert_eq!(wrong.status.code(), Some(2));
}

/// Questions as many as can be asked, with their answers.
fn arithmetic(count: u64) -> (String, String) {
    let (mut questions, mut answers) = (String::new(), String::new());
    for i in 0..count {
        let (a, b) = (1000 + 7919 * i % 9000, 100 + 6007 * i % 900);
        let (question, answer) = match i % 4 {
            0 => (format!("{a}+{b}"), (a + b).to_string()),
            1 => (format!("{a}-{b}"), (a - b).to_string()),
            2 => (format!("{a}*{b}"), (a * b).to_string()),
            _ => (format!("{a}/{b}"), format!("{}<R>{}", a / b, a % b)),
        };
        questions += &format!("{question}\n");
        answers += &format!("{answer}\n");
    }
    (questions, answers)
}

#[test]
fn the_embedded_model_knows_all_nine_problems() {
    let (mut questions, mut answers) = arithmetic(400);
    for (question, answer) in [
        ("lcs 1234 2468", "24;2"),
        ("lps 41253261", "12521;5"),
        ("knapsack 5&12,25&15,19&18@40", "25&15,19&18$44"),
        ("mcm 40x20,20x80,80x30", "40×20,(20×80,80×30);72000"),
        ("sort 139,160,434,796,41", "41,139,160,434,796"),
    ] {
        questions += &format!("{question}\n");
        answers += &format!("{answer}\n");
    }
    assert_eq!(prints(&["solve", "-"], &questions), answers);
    let json = prints(&["solve", "34*5", "--json"], "");
    let record: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(record["model"], "embedded model");
    assert_eq!((&record["answer"], &record["correct"]), (&"170<STOP>".into(), &true.into()));
}

#[test]
fn a_model_says_which_token_it_does_not_know() {
    let sums = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/add-64.safetensors");
    let output = rot(&["solve", "lcs", "12", "23", "--model", sums], "");
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        error.contains("does not know the token <LCS>") && error.contains("--oracle"),
        "{error}"
    );
}

#[test]
fn trees_of_several_questions_share_what_they_ask() {
    let trees = prints(&["solve", "-", "--tree"], "12*3\n2*3\n");
    assert!(trees.starts_with("12*3 = 36\n├─ 2*3 = 6\n"), "{trees}");
    assert!(trees.ends_with("\n2*3 = 6  (as above)\n"), "{trees}");
}

#[test]
fn a_wrong_answer_is_not_passed_off_as_right() {
    // A model that was stopped long before it knew anything.
    let folder = tempfile::tempdir().unwrap();
    let (recipe, run) = (file(folder.path(), "recipe.toml"), file(folder.path(), "run"));
    fs::write(&recipe, RECIPE).unwrap();
    let trained = rot(&["train", &recipe, "--steps", "30", "--out", &run], "");
    assert!(trained.status.success(), "{}", text(&trained.stderr));
    let mut wrong = 0;
    for question in (0..10).map(|i| format!("{}+{}", i, 9 - i)) {
        let json = rot(&["solve", &question, "--json", "--model", &run], "");
        let record: Value = serde_json::from_slice(&json.stdout).unwrap();
        let output = rot(&["solve", &question, "--model", &run], "");
        let noted = text(&output.stderr).contains("the model is wrong: the ground truth is 9");
        assert_eq!(noted, record["correct"] == false, "{question}");
        wrong += u32::from(noted);
    }
    assert!(wrong > 0);
}

#[test]
fn a_memo_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let (memo, input) = (file(folder.path(), "memo"), file(folder.path(), "questions"));
    let (few, answers) = arithmetic(8);
    assert_eq!(prints(&["solve", "-", "--memo", &memo], &few), answers);
    fs::write(&input, arithmetic(100_000).0).unwrap();
    for milliseconds in [50, 700, 1500] {
        let mut solving = std::process::Command::new(assert_cmd::cargo::cargo_bin!("rot"))
            .args(["solve", "-", "--memo", &memo])
            .stdin(fs::File::open(&input).unwrap())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        assert_eq!(solving.try_wait().unwrap(), None, "it is at work");
        solving.kill().unwrap();
        solving.wait().unwrap();
        // What was there is there still, and nothing is solved again.
        for line in prints(&["solve", "-", "--json", "--memo", &memo], &few).lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            assert_eq!((&record["contexts"], &record["correct"]), (&0.into(), &true.into()));
        }
    }
}
