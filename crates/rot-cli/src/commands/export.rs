//! `rot export`

mod finetune;
mod model;

use anyhow::Result;

use crate::args::{Export, ExportArgs};

pub(crate) fn run(args: &ExportArgs) -> Result<()> {
    match &args.what {
        Export::Finetune(args) => finetune::run(args),
        Export::Hf(args) => model::hf(args),
        Export::Gguf(args) => model::gguf(args),
    }
}
