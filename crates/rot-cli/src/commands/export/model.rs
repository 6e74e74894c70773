//! `rot export hf` and `rot export gguf`

use std::io::Write;
use std::path::Path;

use anyhow::{Context as _, Result};
use rot_llm::{
    Difference, HF_METADATA, HF_WEIGHTS, Llama, LlamaError, Summary, hf_tensor_name, hf_texts,
    write_gguf,
};
use rot_train::run::{Snapshot, create_folder_atomically, write_atomically};
use rot_train::{Model, ModelConfig};

use crate::args::ModelArgs;
use crate::output::{Output, grouped};

pub(crate) fn hf(args: &ModelArgs) -> Result<()> {
    let model = Model::open(&args.model)?;
    let llama = view(&model).with_context(|| cannot(&args.model))?;
    let mut weights = Snapshot::default();
    for weight in llama.weights() {
        weights.add(hf_tensor_name(weight), &weight.shape, weight.values);
    }
    let (key, value) = HF_METADATA;
    weights.note(key, value);
    create_folder_atomically(&args.out, |folder| {
        for (name, text) in hf_texts(&llama) {
            write_atomically(&folder.join(name), |file| file.write_all(text.as_bytes()))?;
        }
        weights.save(&folder.join(HF_WEIGHTS))
    })?;
    report(&llama.summary(), &args.out, args.json)
}

pub(crate) fn gguf(args: &ModelArgs) -> Result<()> {
    let model = Model::open(&args.model)?;
    let llama = view(&model).with_context(|| cannot(&args.model))?;
    let name = args.out.file_stem().unwrap_or_default().to_string_lossy();
    write_atomically(&args.out, |file| write_gguf(&llama, &name, file))?;
    report(&llama.summary(), &args.out, args.json)
}

/// A model as the Llama that it is, if it is one.
fn view(model: &Model) -> Result<Llama<'_>, LlamaError> {
    match &model.recipe.model {
        ModelConfig::Transformer(config) => {
            Llama::new(config, model.network.layout(), &model.params, &model.vocabulary)
        }
        ModelConfig::Lstm(_) => Err(LlamaError::Shape(vec![Difference {
            setting: "kind",
            is: "\"lstm\"".to_owned(),
            must_be: "\"transformer\"".to_owned(),
        }])),
    }
}

fn cannot(model: &Path) -> String {
    format!("cannot export '{}'", model.display())
}

fn report(summary: &Summary, path: &Path, json: bool) -> Result<()> {
    let mut out = Output::new();
    if json {
        serde_json::to_writer(&mut out, summary)?;
        writeln!(out)?;
    } else {
        let Summary { layers, width, heads, vocabulary, limit, parameters, .. } = summary;
        writeln!(
            out,
            "{}: {} parameters in {layers} layers of {width} channels with {heads} heads; \
             {vocabulary} tokens, contexts of up to {}",
            path.display(),
            grouped(*parameters),
            grouped(*limit)
        )?;
    }
    out.flush()?;
    Ok(())
}
