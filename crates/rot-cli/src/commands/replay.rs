//! `rot replay`

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};

use anyhow::{Context as _, Result, anyhow};
use rot_solve::{Line, Recursion};

use crate::args::ReplayArgs;
use crate::drawing::{Steps, draw_tree};
use crate::output::Output;

pub(crate) fn run(args: &ReplayArgs) -> Result<()> {
    let place = args.file.display();
    let reader: Box<dyn BufRead> = if args.file.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(&args.file).with_context(|| format!("cannot open '{place}'"))?;
        Box::new(BufReader::new(file))
    };
    let mut out = Output::new();
    let (mut recursion, mut steps) = (Recursion::default(), Steps::default());
    for (number, text) in reader.lines().enumerate() {
        let text = text.with_context(|| format!("cannot read '{place}'"))?;
        let at = || format!("line {} of '{place}' is not one of a trace", number + 1);
        let line: Line = serde_json::from_str(&text).with_context(at)?;
        if number == 0 && !matches!(line, Line::Trace { .. }) {
            return Err(anyhow!("'{place}' does not begin as a trace does")).with_context(at);
        }
        if args.steps {
            steps.add(&line, &mut out).with_context(at)?;
        } else {
            recursion.add(&line).with_context(at)?;
        }
    }
    draw_tree(&recursion, &mut out)?;
    out.flush()?;
    Ok(())
}
