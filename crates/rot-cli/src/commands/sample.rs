//! `rot sample`

use std::io::Write;

use anyhow::Result;
use rot_core::{Sampler, Text};

use crate::WrongUsage;
use crate::args::SampleArgs;
use crate::output::Output;

pub(crate) fn run(args: &SampleArgs) -> Result<()> {
    let sampler = Sampler::new(args.problem, args.size, args.sampling, args.seed)
        .map_err(|error| WrongUsage(error.to_string()))?;
    let mut out = Output::new();
    let mut question = Vec::new();
    for index in 0..args.count {
        sampler.write_question(index, &mut question);
        writeln!(out, "{}", Text(&question))?;
    }
    out.flush()?;
    Ok(())
}
