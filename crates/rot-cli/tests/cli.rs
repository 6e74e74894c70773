//! The `rot` command as people and programs meet it.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn rot(args: &[&str]) -> Output {
    with_input(args, "")
}

fn with_input(args: &[&str], input: impl Into<Vec<u8>>) -> Output {
    assert_cmd::cargo::cargo_bin_cmd!("rot")
        .args(args)
        .write_stdin(input)
        .output()
        .expect("rot runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// What a successful command prints.
fn prints(args: &[&str]) -> String {
    let output = rot(args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    stdout(&output)
}

/// The exit code and message of a command that fails without printing a result.
fn fails(args: &[&str], input: &str) -> (i32, String) {
    let output = with_input(args, input);
    assert_eq!(stdout(&output), "", "{args:?}");
    (output.status.code().expect("an exit code"), stderr(&output))
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn the_ground_truth_says_that_it_answers() {
    insta::assert_snapshot!(prints(&["solve", "1234*5678", "--oracle"]), @"
    1234*5678 = 7006652
    ground-truth oracle, no trained model: 96 contexts, 1,089 tokens generated, longest context 58; CoT: one context of 1,022
    ");
}

#[test]
fn the_ground_truth_draws_the_recursion() {
    insta::assert_snapshot!(prints(&["solve", "43*21", "--tree", "--oracle"]), @"
    43*21 = 903
    ├─ 43*1 = 43
    ├─ 43*2 = 86
    │  ├─ 3*2 = 6
    │  ├─ 4*2 = 8
    │  └─ <TAIL> 80+6 = 86
    │     └─ 0+6 = 6
    └─ <TAIL> 860+43 = 903
       ├─ 0+3 = 3
       └─ 86+4 = 90
          ├─ 6+4 = 10
          └─ 8+1 = 9
    ground-truth oracle, no trained model: 12 contexts, 99 tokens generated, longest context 34; CoT: one context of 95
    ");
}

#[test]
fn the_ground_truth_answers_programs() {
    let printed = prints(&["solve", "lcs", "1234", "2468", "--oracle", "--json"]);
    let answer: Value = serde_json::from_str(&printed).expect("one JSON object");
    assert_eq!(answer["answer"], "24;2<STOP>");
    assert_eq!(answer["model"], "ground-truth oracle");
    assert_eq!(answer["question"], "<GO>1234<LCS>2468=");
    assert_eq!(answer["unique_contexts"], 41);
}

#[test]
fn contexts_are_a_tree_of_who_asks_whom() {
    insta::assert_snapshot!(prints(&["contexts", "lps", "1232"]), @"
    lps: 13 contexts (14 without a cache), 126 tokens to generate (128 without), longest 50, CoT 122
    X1 <GO><LPS>1232=<GO><EQUAL>1,2=<FALSE><STOP><GO><LPS>123=1;1<STOP><GO><LPS>232=232;3<STOP><GO>1<VS>3=<LT><STOP>232;3<STOP>
    ├─ X2 <GO><EQUAL>1,2=<FALSE><STOP>
    ├─ X3 <GO><LPS>123=<GO><EQUAL>1,3=<FALSE><STOP><GO><LPS>12=1;1<STOP><GO><LPS>23=2;1<STOP><GO>1<VS>1=<EQ><STOP>1;1<STOP>
    │  ├─ X4 <GO><EQUAL>1,3=<FALSE><STOP>
    │  ├─ X5 <GO><LPS>12=<GO><EQUAL>1,2=<FALSE><STOP>1;1<STOP>
    │  │  └─ X2 as above: <GO><EQUAL>1,2=
    │  ├─ X6 <GO><LPS>23=<GO><EQUAL>2,3=<FALSE><STOP>2;1<STOP>
    │  │  └─ X7 <GO><EQUAL>2,3=<FALSE><STOP>
    │  └─ X8 <GO>1<VS>1=<EQ><STOP>
    ├─ X9 <GO><LPS>232=<GO><EQUAL>2,2=<TRUE><STOP><GO><LPS>3=3;1<STOP><GO>1+2=3<STOP>232;3<STOP>
    │  ├─ X10 <GO><EQUAL>2,2=<TRUE><STOP>
    │  ├─ X11 <GO><LPS>3=3;1<STOP>
    │  └─ X12 <GO>1+2=3<STOP>
    └─ X13 <GO>1<VS>3=<LT><STOP>
    ");
}

#[test]
fn targets_stand_under_their_tokens() {
    insta::assert_snapshot!(prints(&["contexts", "34*5", "--targets"]), @"
    mul: 7 contexts (7 without a cache), 57 tokens to generate (57 without), longest 31, CoT 57
    X1 <GO>34*5=<GO>4*5=2      0<STOP><GO>3*5=1      5<STOP><TAIL>150+20=<THINK>
    Y1 ·   ·····<GO>4*5=<THINK>··     <GO>3*5=<THINK>··     <TAIL>150+20=<THINK>
    ├─ X2 <GO>4*5=20<STOP>
    │  Y2 ·   ····20<STOP>
    ├─ X3 <GO>3*5=15<STOP>
    │  Y3 ·   ····15<STOP>
    └─ X4 <GO>150+20=<GO>0+0=0      <STOP><GO>15+2=1      7<STOP>170<STOP>
       Y4 ·   ·······<GO>0+0=<THINK>·     <GO>15+2=<THINK>··     170<STOP>
       ├─ X5 <GO>0+0=0<STOP>
       │  Y5 ·   ····0<STOP>
       └─ X6 <GO>15+2=<GO>5+2=7      <STOP>17<STOP>
          Y6 ·   ·····<GO>5+2=<THINK>·     17<STOP>
          └─ X7 <GO>5+2=7<STOP>
             Y7 ·   ····7<STOP>
    ");
}

#[test]
fn the_other_paradigms_have_one_context() {
    insta::assert_snapshot!(prints(&["contexts", "12+3", "--paradigm", "cot", "--targets"]), @"
    add: 2 contexts (2 without a cache), 11 tokens to generate (11 without), longest 16, CoT 16
    <GO>12+3=<GO>2+3=5<STOP>15<STOP>
    ·   ·····<GO>2+3=5<STOP>15<STOP>
    ");
    insta::assert_snapshot!(prints(&["contexts", "12+3", "--paradigm", "wt"]), @"
    add: 2 contexts (2 without a cache), 11 tokens to generate (11 without), longest 16, CoT 16
    <GO>12+3=15<STOP>
    ");
    let args = ["contexts", "12+3", "--paradigm", "cot", "--max-cot-tokens", "15"];
    let output = rot(&args);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        "error: the CoT context has 16 tokens, over the limit of 15: raise --max-cot-tokens\n"
    );
}

/// Every field of every recorded problem, through the program.
#[test]
fn jsonl_agrees_with_the_recorded_contexts() {
    let recorded = repository().join("crates/rot-problems/tests/data/contexts.jsonl");
    let recorded = std::fs::read_to_string(recorded).expect("the recorded contexts");
    let recorded: Vec<Value> =
        recorded.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let questions: Vec<&str> =
        recorded.iter().map(|record| record["question"].as_str().expect("text")).collect();
    let output = with_input(&["contexts", "-", "--jsonl"], questions.join("\n"));
    assert!(output.status.success());
    let printed = stdout(&output);
    assert_eq!(printed.lines().count(), recorded.len());
    for (line, expected) in printed.lines().zip(&recorded) {
        let found: Value = serde_json::from_str(line).expect("JSON");
        let fields = found.as_object().expect("an object");
        let mut names: Vec<&str> = fields.keys().map(String::as_str).collect();
        names.sort_unstable();
        let all = [
            "answer",
            "contexts",
            "cot",
            "max_context",
            "naive_contexts",
            "naive_generated_tokens",
            "problem",
            "question",
            "unique_contexts",
            "wt",
        ];
        assert_eq!(names, all);
        for (name, value) in expected.as_object().expect("an object") {
            if name != "sorted_contexts_sha256" {
                assert_eq!(&found[name], value, "{name} of {}", expected["question"]);
            }
        }
    }
}

#[test]
fn a_question_that_cannot_be_read_does_not_stop_the_others() {
    let mut input = b"1+2\nnonsense\n\n5/0\n".to_vec();
    input.extend(b"\xff\n");
    input.extend("a".repeat(1 << 20).bytes());
    input.extend(b"\nlcs 12345678 87654321");
    let output = with_input(&["contexts", "-", "--jsonl", "--max-cot-tokens", "1000"], input);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stderr(&output), "");
    let lines: Vec<Value> =
        stdout(&output).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 7);
    assert_eq!(lines[0]["answer"], "3<STOP>");
    assert_eq!(lines[1]["question"], "nonsense");
    assert!(lines[1]["error"].as_str().expect("text").contains("unknown problem 'nonsense'"));
    assert!(lines[2]["error"].as_str().expect("text").contains("empty"));
    assert_eq!(lines[3]["error"], "at position 3: division by zero has no answer");
    assert_eq!(lines[4]["error"], "byte 1 is not UTF-8");
    assert!(lines[5]["error"].as_str().expect("text").len() < 300);
    assert_eq!(lines[6]["cot"], Value::Null);

    let output = with_input(&["contexts", "-"], "1+2\n\n12+\n2+3\n");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output).lines().count(), 4);
    assert!(
        stderr(&output).starts_with("error: line 3: '12+': at position 4: a number is missing")
    );
}

#[test]
fn too_large_is_an_error_and_not_the_end() {
    let long = format!("{0}+{0}", "9".repeat(20_000));
    let output =
        with_input(&["contexts", "-", "--jsonl", "--max-memory", "64"], format!("{long}\n1+2\n"));
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<Value> =
        stdout(&output).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(lines[0]["error"].as_str().expect("text").contains("does not fit in 64 MiB"));
    assert_eq!(lines[1]["answer"], "3<STOP>");
}

#[test]
fn wrong_questions_are_wrong_usage() {
    for (args, message) in [
        (&["solve", ""][..], "the question is empty"),
        (&["solve", "12+"], "at position 4: a number is missing"),
        (&["solve", "5/0"], "at position 3: division by zero has no answer"),
        (&["solve", "5-7"], "at position 3: the result would be below zero"),
        (&["solve", "foo", "12"], "unknown problem 'foo': there are add, sub, mul"),
        (&["contexts", "12"], "a number is not a question"),
        (&["contexts", "12+😀"], "at position 4: unknown token '😀'"),
        (&["contexts", "1+1", "--paradigm", "both"], "[possible values: rot, cot, wt]"),
        (&["contexts", "1+1", "--jsonl", "--targets"], "cannot be used with"),
        (&["sample", "gcd", "--size", "3"], "[possible values: add, sub"),
        (&["sample", "add"], "--size"),
        (&["sample", "sort", "--size", "1"], "a size of at least 2"),
        (&["sample", "add", "--size", "0"], "0 is not in 1..="),
        (
            &["sample", "add", "--size", "3", "--sampling", "fair"],
            "[possible values: paper, uniform, repetitive]",
        ),
        (&["stats", "merge"], "'merge' has no sizes in the paper"),
        (&["stats", "add", "--samples", "0"], "0 is not in 1.."),
        (&["eval", "model", "--size", "8"], "--problem"),
        (&["eval", "model", "--problem", "gcd", "--size", "8"], "[possible values: add, sub"),
        (&["eval", "m", "--problem", "mul", "--size", "8", "--count", "0"], "0 is not in 1.."),
        (
            &["eval", "m", "--problem", "mul", "--size", "8", "--seed", "9223372036854775808"],
            "not in",
        ),
        (&["frobnicate"], "unrecognized subcommand"),
        (&[], "Usage: rot"),
    ] {
        let (code, error) = fails(args, "");
        assert_eq!(code, 2, "{args:?}: {error}");
        assert!(error.contains(message), "{args:?}: {error}");
    }
    let long = "<".repeat(100_000);
    assert!(fails(&["solve", &long], "").1.len() < 300);
}

#[test]
fn what_is_not_there_fails() {
    let (code, error) = fails(&["check", "no-such-file.jsonl"], "");
    assert_eq!(code, 1);
    assert!(error.starts_with("error: cannot read 'no-such-file.jsonl': "), "{error}");
    let folder = repository().join("docs");
    let (code, error) = fails(&["check", folder.to_str().expect("text")], "");
    assert_eq!((code, error.contains("cannot read")), (1, true));

    let (code, error) = fails(&["eval", "no-such-model", "--problem", "mul", "--size", "8"], "");
    assert_eq!((code, error.contains("'no-such-model'")), (1, true), "{error}");

    let directory = std::fs::File::open(folder).expect("a folder");
    let output = Command::new(assert_cmd::cargo::cargo_bin!("rot"))
        .args(["contexts", "-"])
        .stdin(directory)
        .output()
        .expect("rot runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("error: cannot read standard input: "));

    let file = repository().join("README.md");
    let out = file.join("stats");
    let out = out.to_str().expect("text");
    let args = ["stats", "add", "--sizes", "2", "--samples", "2", "--out", out];
    let output = rot(&args);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot write to the folder"));
}

#[test]
fn samples_are_reproducible_questions() {
    let args = ["sample", "mul", "--size", "6", "--count", "4", "--seed", "1"];
    insta::assert_snapshot!(prints(&args), @"
    <GO>5775*16=
    <GO>255*376381=
    <GO>4552*27906=
    <GO>256*65414=
    ");
    let uniform = [&args[..], &["--sampling", "uniform"]].concat();
    insta::assert_snapshot!(prints(&uniform), @"
    <GO>146279*894930=
    <GO>746635*811370=
    <GO>968446*980084=
    <GO>627708*844832=
    ");
    assert_eq!(prints(&["sample", "mul", "--size", "6", "--count", "0"]), "");
    let contexts = with_input(&["contexts", "-", "--jsonl"], prints(&args));
    assert!(contexts.status.success());
}

#[test]
fn a_closed_pipe_ends_quietly() {
    for args in [
        &["sample", "add", "--size", "8", "--count", "100000000"][..],
        &["contexts", &format!("lcs {0} {0}", "12".repeat(40))],
    ] {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("rot"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("rot runs");
        let mut first = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        out.read_line(&mut first).expect("a line");
        drop(out);
        assert_eq!(child.wait().expect("an end").code(), Some(0));
        let mut error = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut error).expect("text");
        assert_eq!(error, "");
    }
}

/// Whether anybody reads the messages does not change what a command does.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_and_a_deaf_ear_are_no_panic() {
    let full = || std::fs::File::create("/dev/full").expect("/dev/full");
    let code = |args: &[&str], out: Stdio, error: Stdio| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rot"));
        let output = command.args(args).stdout(out).stderr(error).output().expect("rot runs");
        (output.status.code(), stderr(&output))
    };
    let (status, _) = code(&["solve", "foo"], Stdio::piped(), full().into());
    assert_eq!(status, Some(2));
    let (status, error) = code(&["solve", "1+2"], full().into(), Stdio::piped());
    assert_eq!(status, Some(1));
    assert!(error.starts_with("error: cannot write standard output: "), "{error}");

    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("text");
    let args = ["stats", "add", "--sizes", "2", "--samples", "5", "--out", out];
    assert_eq!(code(&args, Stdio::null(), full().into()).0, Some(0));
    assert!(folder.path().join("summary.csv").exists());
}

#[test]
fn colours_follow_the_roles_where_they_are_wanted() {
    let run = |name: &str| {
        let output = assert_cmd::cargo::cargo_bin_cmd!("rot")
            .args(["contexts", "12*3"])
            .env(name, "1")
            .output()
            .expect("rot runs");
        stdout(&output)
    };
    let coloured = run("CLICOLOR_FORCE");
    let cyan_go = "\u{1b}[36m<GO>\u{1b}[0m";
    let bold_question = "\u{1b}[1m1\u{1b}[0m\u{1b}[1m2\u{1b}[0m\u{1b}[1m*\u{1b}[0m";
    assert!(coloured.contains(&format!("{cyan_go}{bold_question}")), "{coloured:?}");
    assert!(coloured.contains("\u{1b}[35m<THINK>"), "{coloured:?}");
    assert!(!run("NO_COLOR").contains('\u{1b}'));
}

#[test]
fn stats_writes_tables_and_figures() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("made/here");
    let args = ["stats", "mul", "lcs", "--sizes", "2,4", "--samples", "50", "--out"];
    let args = [&args[..], &[out.to_str().expect("text")]].concat();
    let printed = prints(&args);
    insta::assert_snapshot!(printed, @"
    problem  size  rot mean  rot 95%  rot longest  cot median  cot longest  contexts  unique median  naive median  naive most
    mul         2      12.6       31           38          39          178       5.7             37            37         191
    mul         4      18.8       49           66         245         1213      30.2            249           266        1325
    lcs         2      16.9       43           46         163          163      12.0            130           176         176
    lcs         4      22.7       55           61        1545         2223      35.8            546          1722        2488
    ");
    let mut files: Vec<String> = std::fs::read_dir(&out)
        .expect("a folder")
        .map(|entry| entry.expect("a file").file_name().into_string().expect("text"))
        .collect();
    files.sort_unstable();
    let expected = [
        "context-lengths.csv",
        "context-lengths.svg",
        "problem-tokens.csv",
        "problem-tokens.svg",
        "summary.csv",
    ];
    assert_eq!(files, expected);
    for name in ["context-lengths.csv", "problem-tokens.csv"] {
        let csv = std::fs::read_to_string(out.join(name)).expect("a table");
        let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(rows[0], ["problem", "size", "series", "from", "to", "count"]);
        let count = |row: &Vec<&str>| row[5].parse::<u32>().expect("a count");
        assert_eq!(rows[1..].iter().map(count).sum::<u32>(), 2 * 2 * 2 * 50, "{name}");
    }
    // The same again gives the same files.
    let before = std::fs::read(out.join("problem-tokens.svg")).expect("a figure");
    assert_eq!(prints(&args), printed);
    assert_eq!(std::fs::read(out.join("problem-tokens.svg")).expect("a figure"), before);
}

#[test]
fn check_names_lines_and_remedies() {
    let lines = r#"{"question": "<GO>12+3=", "thoughts": [{"question": "<GO>2+3=", "answer": "5<STOP>"}], "answer": "15<STOP>"}
{"question": "<GO>2+3=", "thoughts": [], "answer": "6<STOP>"}
{"question": "2+3=", "thoughts": [], "answer": "6<STOP>"}
junk
"#;
    let output = with_input(&["check", "-"], lines);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stderr(&output), "");
    insta::assert_snapshot!(stdout(&output), @r#"
    -:1: thought 1 answers '<GO>2+3=' with '5<STOP>', but line 2 with '6<STOP>'
        make the two answers equal
    -:3: the question does not begin with <GO>
        begin every question with <GO>
    -:4: not a context: expected value (column 1)
        write {"question": ..., "thoughts": [...], "answer": ...}
    3 findings: 2 contexts, 1 problem, longest context 16, 11 tokens in the vocabulary: <PAD><GO><STOP><THINK>12356=+
    "#);

    // Findings are a failure even where nobody reads them.
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("rot"))
        .args(["check", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("rot runs");
    drop(child.stdout.take());
    child.stdin.take().expect("a pipe").write_all(lines.as_bytes()).expect("it reads");
    assert_eq!(child.wait().expect("an end").code(), Some(1));

    let output = with_input(&["check", "-", "--json"], lines);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("one JSON object");
    assert_eq!(report["findings"][2]["line"], 4);
    assert_eq!(report["contexts"], 2);
}

/// Runs a line as a shell in the given folder would, with `rot` on the path.
#[cfg(unix)]
fn shell(line: &str, folder: &Path) -> Output {
    let program = Path::new(assert_cmd::cargo::cargo_bin!("rot"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = program.parent().map(Path::to_owned).into_iter();
    let path = std::env::join_paths(folders.chain(std::env::split_paths(&path))).expect("a path");
    Command::new("sh")
        .args(["-c", line])
        .env("PATH", path)
        .current_dir(folder)
        .output()
        .expect("a shell")
}

/// Every transcript in the documentation is what happens.
#[cfg(unix)]
#[test]
fn transcripts_are_true() {
    let mut transcripts = 0;
    for page in ["README.md", "docs/own-problems.md"] {
        let page = std::fs::read_to_string(repository().join(page)).expect("a page");
        for block in page.split("```console\n$ ").skip(1) {
            let block = block.split("```").next().unwrap_or_default();
            let (line, expected) = block.split_once('\n').expect("a command and its output");
            let line = line.replace("cargo run --release --", "rot");
            let output = shell(&line, repository());
            assert!(output.status.success(), "{line}: {}", stderr(&output));
            assert_eq!(stdout(&output), expected, "{line}");
            transcripts += 1;
        }
    }
    assert_eq!(transcripts, 4);
}

/// Every example in the help is run as it stands, but for those of training and what belongs to it:
/// they take long, or need a model.
#[cfg(unix)]
#[test]
fn the_examples_in_the_help_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut examples = 0;
    for command in [
        "",
        "solve",
        "contexts",
        "sample",
        "stats",
        "check",
        "reproduce",
        "export finetune",
        "export hf",
        "export gguf",
    ] {
        let args: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let help = prints(&args);
        let (_, after) = help.rsplit_once("Example").expect("an example in the help");
        let lines = after.lines().skip(1).map_while(|line| line.strip_prefix("  "));
        // All sizes of the paper take a minute; `runs` and `models` are not here, nor are servers.
        let quick = |line: &&str| {
            !line.starts_with("rot stats  ")
                && !line.contains(" runs/")
                && !line.contains("--models")
                && !line.contains("--budget")
                && !line.contains("--base-url")
        };
        for line in lines.filter(quick) {
            let output = shell(line, folder.path());
            assert!(output.status.success(), "{line}: {}", stderr(&output));
            assert!(!output.stdout.is_empty(), "{line}");
            examples += 1;
        }
    }
    assert_eq!(examples, 23);
    assert!(prints(&["eval", "--help"]).contains("Examples:\n  rot eval runs/mul-8 --problem mul"));
}
