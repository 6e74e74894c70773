//! Models on servers: opened, estimated, and what came of them.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use rot_core::{Context, Paradigm};
use rot_llm::{Counts, Remote, Spelling, Traffic};
use rot_train::eval::TestSet;
use serde::Serialize;

use crate::WrongUsage;
use crate::args::RemoteArgs;
use crate::output::{counted, grouped, note};

/// The most tokens of a context on a server; the server's own limit holds as well.
const LIMIT: usize = 1 << 20;

/// Watches a model on a server, wherever it is used.
pub(crate) struct Watcher {
    traffic: Arc<Traffic>,
    few_shot: u16,
    journal: Option<String>,
}

/// What was asked of a server, for programs.
#[derive(Serialize)]
pub(crate) struct RemoteRecord {
    few_shot: u16,
    #[serde(flatten)]
    counts: Counts,
}

/// Opens the model on a server that the arguments name, if they do; with what to call it.
pub(crate) fn open(
    args: &RemoteArgs,
    model: Option<&Path>,
) -> Result<Option<(String, Remote, Watcher)>> {
    if args.base_url.is_none() {
        return Ok(None);
    }
    let Some(model) = model.and_then(Path::to_str) else {
        let text = "--base-url needs the name of a model on the server: give it with --model";
        return Err(WrongUsage(text.to_owned()).into());
    };
    if args.few_shot > 0 && args.spelling == Spelling::Tokens {
        let text = "--few-shot needs --spelling words: models of rot export know no lines";
        return Err(WrongUsage(text.to_owned()).into());
    }
    let Some(server) = args.server(model) else { return Ok(None) };
    let remote = Remote::new(server, args.few_shot.into(), LIMIT, args.journal.as_deref())?;
    if remote.journalled() > 0 {
        note(format_args!("{} in the journal", counted(remote.journalled(), "completion")));
    }
    let name = match args.few_shot {
        0 => model.to_owned(),
        shots => format!("{model}, not fine-tuned, {}", worked(shots)),
    };
    let watcher = Watcher {
        traffic: remote.traffic(),
        few_shot: args.few_shot,
        journal: args.journal.as_ref().map(|path| path.display().to_string()),
    };
    Ok(Some((name, remote, watcher)))
}

fn worked(shots: u16) -> String {
    format!("{} in front of each", counted(shots, "worked context"))
}

impl Watcher {
    /// Says what was asked.
    pub(crate) fn report(&self) {
        let counts = self.traffic.counts();
        let mut text = format!(
            "{}, {} tried again, {} known before; {} prompt and {} completion tokens, as the \
             server counts them",
            counted(counts.requests, "request"),
            grouped(counts.retries),
            grouped(counts.known),
            grouped(counts.prompt_tokens),
            grouped(counts.completion_tokens)
        );
        if counts.inferred_ends > 0 {
            let ends = counted(counts.inferred_ends, "completion");
            text.push_str(&format!("; the end of {ends} follows from the beginning only"));
        }
        if self.few_shot > 0 {
            text.push_str(&format!("; not fine-tuned, {}", worked(self.few_shot)));
        }
        note(text);
    }

    /// Fails where something was not answered: it is not the model's mistake.
    pub(crate) fn check(&self) -> Result<()> {
        let count = self.traffic.counts().unanswered;
        if count == 0 {
            return Ok(());
        }
        let again = match &self.journal {
            Some(path) => format!("run it again with --journal {path} to go on"),
            None => {
                "with --journal FILE what has come is kept, and a second run goes on".to_owned()
            }
        };
        bail!(
            "{} without a reply, so there is no result; the first: {}; {again}",
            counted(count, "request"),
            self.traffic.first_error().unwrap_or_default()
        )
    }

    pub(crate) fn record(&self) -> RemoteRecord {
        RemoteRecord { few_shot: self.few_shot, counts: self.traffic.counts() }
    }
}

/// Says what an evaluation will ask of a server.
pub(crate) fn estimate(
    remote: &mut Remote,
    test: &TestSet,
    paradigm: Paradigm,
    price: Option<[f64; 2]>,
) {
    let graph = test.graph();
    let mut context = Context::default();
    let (mut requests, mut prompts, mut completions) = (0u64, 0u64, 0u64);
    for id in test.tested(paradigm) {
        context.clear();
        match paradigm {
            Paradigm::Rot => graph.write_rot(id, &mut context),
            Paradigm::Wt | Paradigm::Cot => graph.write_wt(id, &mut context),
        }
        let before = remote.tokens_before(graph.question(id)) as u64;
        for example in context.examples() {
            requests += 1;
            prompts += before + example.prompt.len() as u64;
            completions += example.completion.len() as u64;
        }
    }
    let cost = price.map_or(String::new(), |[prompt, completion]| {
        let cost = (prompts as f64 * prompt + completions as f64 * completion) / 1e6;
        format!(", about {cost:.2} at these prices")
    });
    note(format_args!(
        "{} with {} prompt and {} completion tokens{cost}; a server's tokenizer can count more",
        counted(requests, "request"),
        grouped(prompts),
        grouped(completions)
    ));
}
