//! `rot parity`

use std::io::Write;

use anyhow::Result;
use rot_nn::parity::{Parity, TOLERANCES, compare};
use serde_json::json;

use crate::AlreadyReported;
use crate::args::ParityArgs;
use crate::output::{Output, grouped, note};

pub(crate) fn run(args: &ParityArgs) -> Result<()> {
    let parity = compare(&args.file)?;
    let mut out = Output::new();
    if args.json {
        serde_json::to_writer(&mut out, &record(&parity))?;
        writeln!(out)?;
    } else {
        out.write_all(report(&parity).as_bytes())?;
    }
    out.flush()?;
    if parity.holds() {
        return Ok(());
    }
    note("error: the differences are beyond the tolerances");
    Err(AlreadyReported.into())
}

fn worst_loss(parity: &Parity) -> f64 {
    // What is not a number comes out on top.
    parity.losses.iter().copied().max_by(f64::total_cmp).unwrap_or(0.0)
}

fn report(parity: &Parity) -> String {
    let [logits, gradients, losses] = TOLERANCES;
    let (name, gradient) = parity.worst_gradient().map_or(("none", 0.0), |(name, x)| (name, *x));
    format!(
        "{}, {} parameters: the largest differences from PyTorch\n\
         logits      {:.1e}  of at most {logits:.0e}\n\
         gradients   {gradient:.1e}  of at most {gradients:.0e}, relative, in {name}\n\
         losses      {:.1e}  of at most {losses:.0e}, over {} steps\n\
         parameters  {:.1e}  after those steps\n",
        parity.kind,
        grouped(parity.parameters),
        parity.logits,
        worst_loss(parity),
        parity.losses.len(),
        parity.parameters_after,
    )
}

fn record(parity: &Parity) -> serde_json::Value {
    let gradients: serde_json::Map<String, serde_json::Value> =
        parity.gradients.iter().map(|(name, x)| (name.clone(), json!(x))).collect();
    json!({
        "kind": parity.kind,
        "parameters": parity.parameters,
        "holds": parity.holds(),
        "logits": parity.logits,
        "gradients": gradients,
        "losses": parity.losses,
        "parameters_after": parity.parameters_after,
    })
}
