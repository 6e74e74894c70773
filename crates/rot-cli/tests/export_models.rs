//! Models for other programs, as people and programs meet them.
#![expect(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use safetensors::SafeTensors;
use serde_json::{Value, json};

const LLAMA: &str = r#"
kind = "transformer"
layers = 2
width = 32
heads = 2
feed_forward = 24
norm = "rms"
placement = "before"
positions = "rotary"
activation = "gated"
bias = false
limit = 64
"#;

fn rot(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rot")).args(args).output().unwrap()
}

/// Trains a model for three steps.
fn trained(folder: &Path, model: &str) -> String {
    let recipe = folder.join("recipe.toml");
    let rest = "[training]\nsteps = 3\nbatch = 8\n[evaluation]\nproblems = 5\n";
    let text = format!("data.problems = [\"add-1\"]\n[model]\n{model}\n{rest}");
    fs::write(&recipe, text).unwrap();
    let run = folder.join("run").to_str().unwrap().to_owned();
    let output = rot(&["train", recipe.to_str().unwrap(), "--threads", "1", "--out", &run]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    run
}

fn export(format: &str, model: &str, out: &Path) -> Output {
    rot(&["export", format, model, "--json", "--out", out.to_str().unwrap()])
}

#[test]
fn a_run_becomes_a_folder_for_transformers() {
    let folder = tempfile::tempdir().unwrap();
    let run = trained(folder.path(), LLAMA);
    let out = folder.path().join("hf");
    let output = export("hf", &run, &out);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["layers"], &summary["limit"]), (&json!(2), &json!(64)));

    let text = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    let read = |name: &str| serde_json::from_str::<Value>(&text(name)).unwrap();
    let config = read("config.json");
    assert_eq!(config["architectures"], json!(["LlamaForCausalLM"]));
    assert_eq!(config["vocab_size"], summary["vocabulary"]);
    let ids = read("tokenizer.json")["model"]["vocab"].clone();
    for (id, token) in ["<PAD>", "<GO>", "<STOP>", "<THINK>", "0"].iter().enumerate() {
        assert_eq!(ids[token], json!(id), "{token}");
    }
    assert_eq!(ids.as_object().unwrap().len(), 16);
    assert!(out.join("generation_config.json").exists());
    assert!(out.join("tokenizer_config.json").exists());

    let ours = fs::read(Path::new(&run).join("best.safetensors")).unwrap();
    let theirs = fs::read(out.join("model.safetensors")).unwrap();
    let (_, header) = SafeTensors::read_metadata(&theirs).unwrap();
    assert_eq!(header.metadata().as_ref().unwrap()["format"], "pt");
    let (ours, theirs) =
        (SafeTensors::deserialize(&ours).unwrap(), SafeTensors::deserialize(&theirs).unwrap());
    assert_eq!(theirs.len(), 3 + 9 * 2);
    let keys = theirs.tensor("model.layers.1.self_attn.k_proj.weight").unwrap();
    assert_eq!(keys.shape(), [32, 32]);
    let all = ours.tensor("transformer_encoder.layers.1.self_attn.in_proj_weight").unwrap();
    assert_eq!(keys.data(), &all.data()[4 * 32 * 32..][..4 * 32 * 32]);
    let elements = |file: &SafeTensors| {
        file.iter().map(|(_, tensor)| tensor.shape().iter().product::<usize>()).sum::<usize>()
    };
    assert_eq!(json!(elements(&theirs)), summary["parameters"]);

    // What is there is not touched.
    let before = text("config.json");
    let output = export("hf", &run, &out);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("choose another name, or remove what is there"), "{error}");
    assert_eq!(text("config.json"), before);
}

#[test]
fn a_weights_file_becomes_a_file_for_llama_cpp() {
    let folder = tempfile::tempdir().unwrap();
    let run = trained(folder.path(), LLAMA);
    let weights = Path::new(&run).join("best.safetensors");
    let files = ["one.gguf", "two.gguf"].map(|name| folder.path().join(name));
    for (model, out) in [&run, weights.to_str().unwrap()].iter().zip(&files) {
        let output = export("gguf", model, out);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let [one, two] = files.map(|path| fs::read(path).unwrap());
    assert!(one.starts_with(b"GGUF\x03\0\0\0") && one.len().is_multiple_of(32));
    // They differ in their names.
    assert_eq!(one.len(), two.len());
    assert_eq!(one.iter().zip(&two).filter(|(one, two)| one != two).count(), 3);
}

#[test]
fn what_is_no_llama_is_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let lstm = trained(folder.path(), "kind = \"lstm\"\nlayers = 1\nhidden = 16\nembedding = 16");
    let embedded = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/nine.safetensors");
    let out = folder.path().join("out");
    for (model, parts) in [
        (&*lstm, &["kind = \"lstm\" instead of \"transformer\"", "--recipe fast-llama"][..]),
        (embedded, &["convolution = 4 instead of 0", "positions = \"parts\"", "fast-llama"]),
        ("no-such-model", &["cannot read 'no-such-model'"]),
        (concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), &["is not a whole checkpoint"]),
    ] {
        for format in ["hf", "gguf"] {
            let output = export(format, model, &out);
            assert_eq!(output.status.code(), Some(1), "{model}");
            let error = String::from_utf8(output.stderr).unwrap();
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
            assert!(!out.exists());
        }
    }
}
