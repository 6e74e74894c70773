//! The logits of a model, to compare with what other programs make of it.
//!
//! Reads contexts in token text from standard input, one a line; prints a JSON object for each, with a row
//! of logits after each of its tokens:
//!
//! ```sh
//! echo '<GO>1+2=' | cargo run --release -p rot-train --example logits -- runs/add-8-llama
//! ```

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::path::Path;

use rot_core::parse_tokens;
use rot_nn::{Packed, Workspace, read_afresh};
use rot_train::Model;
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("give a weights file or a run folder")?;
    let model = Model::open(Path::new(&path))?;
    let decoder = model.network.decoder(&model.params);
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let id = |token| match model.vocabulary.id(token) {
            Some(id) => Ok(id as u8),
            None => Err(format!("the model does not know {token} in '{line}'")),
        };
        let ids: Vec<u8> = parse_tokens(&line)?.into_iter().map(id).collect::<Result<_, _>>()?;
        if ids.len() > model.network.limit() {
            return Err(format!("'{line}' is longer than the model's limit").into());
        }
        let mut batch = Packed::default();
        // Whatever the targets are: logits are given where there is one.
        batch.push(&ids, &vec![0; ids.len()]);
        let logits = read_afresh(decoder.as_ref(), &batch, &mut Workspace::default());
        let rows: Vec<&[f32]> = logits.chunks(model.vocabulary.len()).collect();
        writeln!(out, "{}", json!({ "context": line, "logits": rows }))?;
    }
    Ok(())
}
