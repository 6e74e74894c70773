//! The paper's tables as people and programs meet them, with trainings of a few steps.
#![expect(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

fn rot(args: &[&str], out: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rot"));
    command.arg("reproduce").args(args).arg("--out").arg(out);
    for name in ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"] {
        command.env_remove(name);
    }
    command.output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The row of a cell, as JSON.
fn row(output: &Output, paradigm: &str, size: u64) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let is = |row: &&Value| {
        row["problem"] == "mul" && row["size"] == size && row["paradigm"] == paradigm
    };
    rows.iter().find(is).unwrap().clone()
}

#[test]
fn a_cell_is_trained_once_and_stands_beside_the_papers() {
    let folder = tempfile::tempdir().unwrap();
    let cell =
        ["transformer-arith", "--cell", "mul-2-wt", "--steps", "2", "--count", "50", "--json"];
    let first = row(&rot(&cell, folder.path()), "wt", 2);
    assert_eq!(
        (first["status"].as_str(), first["problems"].as_u64()),
        (Some("measured"), Some(50))
    );
    assert_eq!(first["paper"][0], 1.0);
    let again = rot(&cell, folder.path());
    assert_eq!(row(&again, "wt", 2), first);
    assert!(!stderr(&again).contains("parameters"), "it was trained again");
    for name in ["transformer-arith.csv", "transformer-arith.md", "transformer-arith.svg"] {
        assert!(fs::metadata(folder.path().join(name)).unwrap().len() > 1000, "{name}");
    }

    // Without its result, what was trained is tested again; other settings are another run.
    fs::remove_file(folder.path().join("transformer-arith/mul-2-wt.json")).unwrap();
    let other = rot(&[&cell[..], &["--seed", "1"]].concat(), folder.path());
    assert_eq!(other.status.code(), Some(1));
    assert!(stderr(&other).contains("other settings"), "{}", stderr(&other));
    let tested = row(&rot(&cell, folder.path()), "wt", 2);
    assert_eq!((&tested["right"], &tested["steps"]), (&first["right"], &first["steps"]));

    // Another machine's result in the same folder is in the table as well.
    let other = r#"{"cell": "mul-2-rot", "status": "measured", "problems": 10, "right": 9, "steps": 1,
                    "seed": 0, "seconds": 1.0, "threads": 1, "date": "2026-01-31"}"#;
    fs::write(folder.path().join("transformer-arith/mul-2-rot.json"), other).unwrap();
    assert_eq!(row(&rot(&cell, folder.path()), "rot", 2)["accuracy"], 0.9);
}

#[test]
fn one_network_is_tested_at_all_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let settings = ["--all-sizes", "--steps", "2", "--count", "20", "--json"];
    let measured = |size: u64| {
        let cell = format!("div-{size}-wt");
        let output = rot(&[&["lstm", "--cell", &cell], &settings[..]].concat(), folder.path());
        assert!(output.status.success(), "{}", stderr(&output));
        let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let is = |row: &&Value| {
            row["problem"] == "div" && row["size"] == size && row["paradigm"] == "wt"
        };
        rows.iter().find(is).unwrap().clone()
    };
    let [small, large] = [measured(2), measured(8)];
    let sizes: Vec<String> = (1..=8).map(|size| format!("div-{size}")).collect();
    assert_eq!(small["trained_on"], serde_json::to_value(sizes).unwrap());
    // The second was not trained: it took the first one's run.
    assert_eq!(
        (&large["seconds"], &large["steps"], &large["trained_on"]),
        (&small["seconds"], &small["steps"], &small["trained_on"])
    );
    assert!(folder.path().join("lstm/div-wt").exists());
    assert!(!folder.path().join("lstm/div-8-wt").exists());
}

#[test]
fn shipped_weights_are_tested_without_training() {
    let folder = tempfile::tempdir().unwrap();
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let models = models.to_str().unwrap();
    let settings = ["transformer-arith", "--models", models, "--count", "20", "--json"];
    let cell = |name| rot(&[&settings[..], &["--cell", name]].concat(), folder.path());
    let measured = row(&cell("mul-8-rot"), "rot", 8);
    assert_eq!((measured["right"].as_u64(), measured["seconds"].as_f64()), (Some(20), None));
    assert_eq!(measured["weights"], "mul-32.safetensors");
    assert_eq!(measured["trained_on"][0], "mul-32");
    assert!(!folder.path().join("transformer-arith/mul-rot").exists());

    // Weights of a Transformer, under the name that the LSTM's would have.
    let weights = Path::new(models).join("add-64.safetensors");
    fs::copy(weights, folder.path().join("add-16.safetensors")).unwrap();
    let here = folder.path().to_str().unwrap();
    let other = ["lstm", "--models", here, "--cell", "add-2-rot", "--count", "20"];
    let output = rot(&other, folder.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("not the kind of network"), "{}", stderr(&output));
}

#[test]
fn what_does_not_fit_is_said_and_not_trained() {
    let folder = tempfile::tempdir().unwrap();
    let cell = ["transformer-arith", "--cell", "mul-8-cot", "--count", "20", "--json"];
    let row = row(&rot(&cell, folder.path()), "cot", 8);
    assert_eq!((row["status"].as_str(), row["limit"].as_u64()), (Some("too_long"), Some(2048)));
    assert!(row["needed"].as_str().unwrap().parse::<u64>().unwrap() > 2048);
    assert!(!folder.path().join("transformer-arith/mul-8-cot").exists());
}

#[test]
fn what_has_no_time_left_goes_on_later() {
    let folder = tempfile::tempdir().unwrap();
    // 18 steps at 32 digits are 6 at two.
    let cell =
        ["transformer-arith", "--cell", "mul-2-rot", "--steps", "18", "--count", "50", "--json"];
    let short = [&cell[..], &["--budget", "1ms"]].concat();
    let stopped = rot(&short, folder.path());
    assert!(stderr(&stopped).contains("the same command goes on"), "{}", stderr(&stopped));
    assert_eq!(row(&stopped, "rot", 2)["status"], Value::Null);
    let went_on = row(&rot(&cell, folder.path()), "rot", 2);
    assert_eq!(
        (went_on["status"].as_str(), went_on["steps"].as_u64()),
        (Some("measured"), Some(6))
    );
    assert!(Duration::from_secs_f64(went_on["seconds"].as_f64().unwrap()) > Duration::ZERO);
}

#[test]
fn a_test_that_has_no_time_left_ends_too() {
    let folder = tempfile::tempdir().unwrap();
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    // Minutes of reading.
    let cell = ["transformer-arith", "--cell", "mul-32-rot", "--count", "500", "--json"];
    let settings = ["--models", models.to_str().unwrap(), "--budget", "2s"];
    let stopped = rot(&[&cell[..], &settings[..]].concat(), folder.path());
    assert!(stderr(&stopped).contains("the same command goes on"), "{}", stderr(&stopped));
    let rows: Vec<Value> = serde_json::from_slice(&stopped.stdout).unwrap();
    assert!(rows.iter().all(|row| row["status"] == Value::Null));
}

#[test]
fn wrong_names_say_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    for (args, said) in [
        (&["transformer"][..], "transformer-arith"),
        (&["sorting", "--cell", "mul-2-wt"][..], "sort-8-rot"),
        (&["sorting", "--shard", "3/2"][..], "1/4"),
        (&["sorting", "--budget", "soon"][..], "budget"),
        (&["sorting", "--models", "no-such-folder"][..], "no folder 'no-such-folder'"),
    ] {
        let output = rot(args, folder.path());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
    let list = rot(&["--list"], folder.path());
    assert_eq!(String::from_utf8(list.stdout).unwrap().lines().count(), 7);
}

#[test]
fn cards_are_held_against_the_weights() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let verify = |path: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rot"));
        command.arg("verify").arg(path).output().unwrap()
    };
    let shipped = verify(&repository.join("models/sub-64.card.toml"));
    assert!(shipped.status.success(), "{}", stderr(&shipped));
    assert!(String::from_utf8(shipped.stdout).unwrap().contains("measured 200 of 200"));

    let folder = tempfile::tempdir().unwrap();
    assert_eq!(verify(folder.path()).status.code(), Some(1), "no card");
    let weights = repository.join("models/sub-64.safetensors");
    // Longer numbers than it was trained with.
    let card = format!(
        "weights = '{}'\ntraining = ''\n[[claims]]\nproblem = 'sub-96'\nseed = 1\nproblems = 60\nright = 60\n",
        weights.display()
    );
    fs::write(folder.path().join("boast.card.toml"), card).unwrap();
    let boast = verify(folder.path());
    assert_eq!(boast.status.code(), Some(1), "{}", stderr(&boast));
    assert!(String::from_utf8(boast.stdout).unwrap().contains("DOES NOT HOLD"));
}

#[test]
fn a_run_is_shipped_with_what_is_measured_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rot"));
        command.current_dir(folder.path()).args(args).output().unwrap()
    };
    let recipe = "data.problems = ['add-2']\ntraining.steps = 3\nevaluation.problems = 5\n\
                  model = { kind = 'transformer', layers = 1, width = 32, heads = 2 }";
    fs::write(folder.path().join("recipe.toml"), recipe).unwrap();
    let trained = run(&["train", "recipe.toml", "--out", "run"]);
    assert!(trained.status.success(), "{}", stderr(&trained));
    let ship = ["ship", "run", "--out", "models/tiny", "--count", "30", "--machine", "a test"];
    // Twice: what is there is replaced.
    for problem in ["add-1", "add-1,add-2"] {
        let shipped = run(&[&ship[..], &["--problem", problem]].concat());
        assert!(shipped.status.success(), "{}", stderr(&shipped));
    }
    let size = |path: &str| fs::metadata(folder.path().join(path)).unwrap().len();
    assert!(size("models/tiny.safetensors") < size("run/best.safetensors") * 2 / 3);
    let card = fs::read_to_string(folder.path().join("models/tiny.card.toml")).unwrap();
    assert!(card.contains("3 steps in") && card.contains("on a test"), "{card}");
    assert_eq!(card.matches("free_run").count(), 2, "{card}");
    let text = fs::read_to_string(folder.path().join("models/tiny.md")).unwrap();
    assert!(text.contains("| add-2 | 1 |") && text.contains("steps = 3"), "{text}");
    let verified = run(&["verify", "models", "--full"]);
    assert!(verified.status.success(), "{}", stderr(&verified));
    assert_eq!(String::from_utf8(verified.stdout).unwrap().lines().count(), 2);

    // Tested anew, with more problems: what the card says of the training and of other problems stays, and so
    // do the weights.
    let weights = || fs::read(folder.path().join("models/tiny.safetensors")).unwrap();
    let before = weights();
    let again = ["ship", "models/tiny.safetensors", "--out", "models/tiny", "--count", "40"];
    let shipped = run(&again);
    assert!(shipped.status.success(), "{}", stderr(&shipped));
    assert_eq!(weights(), before);
    let retested = fs::read_to_string(folder.path().join("models/tiny.card.toml")).unwrap();
    let training = |card: &str| card.lines().nth(1).map(str::to_owned).unwrap();
    assert_eq!(training(&retested), training(&card));
    assert!(
        training(&card).contains("on a test") && retested.contains("problems = 40"),
        "{retested}"
    );
    let tests = |card: &str, problem: &str| {
        let claims = card.split("[[claims]]").skip(1);
        claims.filter(|claim| claim.contains(problem)).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(tests(&retested, "add-1"), tests(&card, "add-1"), "{retested}");
    assert_eq!(tests(&retested, "add-2").len(), 1, "{retested}");

    // A run that went on from another says so, with both recipes.
    fs::write(folder.path().join("more.toml"), format!("{recipe}\n[start]\nweights = 'run'"))
        .unwrap();
    assert!(run(&["train", "more.toml", "--out", "more"]).status.success());
    let shipped = run(&["ship", "more", "--out", "cards/more", "--count", "10"]);
    assert!(shipped.status.success(), "{}", stderr(&shipped));
    let text = fs::read_to_string(folder.path().join("cards/more.md")).unwrap();
    assert!(text.contains(", after 3 steps of the recipe in [start]."), "{text}");
    assert!(text.contains("[start.recipe.training]") && text.contains("\n[training]"), "{text}");

    for (args, said) in [
        (&["ship", "models", "--out", "x"][..], "holds no run"),
        (&["ship", "run/best.safetensors", "--out", "x"][..], "no weights file with a card"),
        (&[&again[..], &["--machine", "x"]].concat()[..], "--machine is for runs"),
        (&["ship", "run", "--out", "x", "--problem", "add"][..], "such as mul-4"),
        (&["ship", "run", "--out", ".."][..], "needs a name"),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
}
