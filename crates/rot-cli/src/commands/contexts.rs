//! `rot contexts`

use std::io::{self, Write};

use anyhow::{Context as _, Result, bail};
use rot_core::{Context, ContextId, Paradigm, Text, ThoughtGraph, Token};
use rot_problems::{Lines, Question, read};
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use super::{costs, unfold};
use crate::AlreadyReported;
use crate::args::ContextsArgs;
use crate::output::{Output, Role, counted, grouped, note};
use crate::tree;

pub(crate) fn run(args: &ContextsArgs) -> Result<()> {
    let mut out = Output::new();
    let mut graph = ThoughtGraph::with_memory_limit(args.question.memory_limit());
    if !args.question.is_input() {
        let question = args.question.read()?;
        show(&question, &mut graph, args, &mut out)?;
        out.flush()?;
        return Ok(());
    }

    let mut failed = false;
    let mut lines = Lines::new(io::stdin().lock());
    let mut number = 0;
    while let Some(line) = lines.next_line().context("cannot read standard input")? {
        number += 1;
        let (line, question) = match &line {
            Ok(line) if line.trim().is_empty() && !args.jsonl => continue,
            Ok(line) => (*line, read(line).map_err(|error| error.to_string())),
            Err(error) => (&*error.start, Err(error.what.clone())),
        };
        let failure = match question {
            Ok(question) => match show(&question, &mut graph, args, &mut out) {
                // An error of the output ends it all; a problem that is too large does not.
                Err(error) if error.is::<io::Error>() || error.is::<serde_json::Error>() => {
                    return Err(error);
                }
                Err(error) => Some(error.to_string()),
                Ok(()) => None,
            },
            Err(what) => Some(what),
        };
        if let Some(what) = failure {
            failed = true;
            if args.jsonl {
                serde_json::to_writer(&mut out, &Failure { question: line, error: what })?;
                writeln!(out)?;
            } else {
                let question = rot_core::shorten(line);
                note(format_args!("error: line {number}: '{question}': {what}"));
            }
        }
        // Whoever feeds questions one by one may wait for the answer to each.
        out.flush()?;
    }
    if failed {
        if !args.jsonl {
            bail!("some questions were not answered, see above");
        }
        bail!(AlreadyReported);
    }
    Ok(())
}

fn show(
    question: &Question,
    graph: &mut ThoughtGraph,
    args: &ContextsArgs,
    out: &mut Output,
) -> Result<()> {
    let root = unfold(graph, question)?;
    if args.jsonl {
        return write_json(question, graph, root, args.max_cot_tokens, out);
    }
    headline(question, graph, root, out)?;
    let mut context = Context::default();
    match args.paradigm {
        Paradigm::Rot => return show_tree(graph, root, args.targets, out),
        Paradigm::Wt => graph.write_wt(root, &mut context),
        Paradigm::Cot => {
            if !graph.write_cot(root, args.max_cot_tokens, &mut context) {
                bail!(
                    "the CoT context has {} tokens, over the limit of {}: raise --max-cot-tokens",
                    grouped(costs(graph, root)?.cot_context),
                    grouped(args.max_cot_tokens)
                );
            }
        }
    }
    let question = graph.question(root).len();
    let roles: Vec<Role> = (0..context.len())
        .map(|at| if at < question { Role::Question } else { Role::Answer })
        .collect();
    if args.targets {
        show_aligned(&context, &roles, "", out)?;
    } else {
        out.tokens(&context.x[..question], Role::Question)?;
        out.tokens(&context.x[question..], Role::Answer)?;
        writeln!(out)?;
    }
    Ok(())
}

fn headline(
    question: &Question,
    graph: &ThoughtGraph,
    root: ContextId,
    out: &mut Output,
) -> Result<()> {
    let costs = costs(graph, root)?;
    let line = format!(
        "{}: {} ({} without a cache), {} to generate ({} without), longest {}, CoT {}",
        question.problem.name(),
        counted(costs.unique_contexts, "context"),
        grouped(&costs.naive_contexts),
        counted(costs.unique_tokens, "token"),
        grouped(&costs.naive_tokens),
        grouped(costs.longest_context),
        grouped(&costs.cot_context)
    );
    out.dimmed(line)?;
    writeln!(out)?;
    Ok(())
}

fn show_tree(graph: &ThoughtGraph, root: ContextId, targets: bool, out: &mut Output) -> Result<()> {
    let mut context = Context::default();
    tree::walk_graph(graph, root, |line| {
        let number = line.context.index() + 1;
        out.dimmed(line.branches)?;
        if line.repeated {
            out.dimmed(format_args!("X{number} as above: "))?;
            out.tokens(graph.question(line.context), Role::Question)?;
            writeln!(out)?;
            return Ok(());
        }
        let roles = roles(graph, line.context);
        context.clear();
        graph.write_rot(line.context, &mut context);
        out.dimmed(format_args!("X{number} "))?;
        if targets {
            show_aligned(&context, &roles, &format!("{}Y{number} ", line.below), out)?;
        } else {
            for (&token, &role) in context.x.iter().zip(&roles) {
                out.tokens(&[token], role)?;
            }
            writeln!(out)?;
        }
        Ok(())
    })
}

/// What each token of an RoT context is.
fn roles(graph: &ThoughtGraph, id: ContextId) -> Vec<Role> {
    let mut roles = vec![Role::Question; graph.question(id).len()];
    for thought in graph.thoughts(id) {
        let question = graph.question(thought.context).len();
        roles.resize(roles.len() + question, Role::SubQuestion);
        let answer = if thought.tail { 1 } else { graph.answer(thought.context).len() };
        roles.resize(roles.len() + answer, Role::SubAnswer);
    }
    if !graph.is_tail(id) {
        roles.resize(roles.len() + graph.answer(id).len(), Role::Answer);
    }
    roles
}

/// Prints X, and Y under it, token under token; `before_y` is as wide as what stands before X.
fn show_aligned(context: &Context, roles: &[Role], before_y: &str, out: &mut Output) -> Result<()> {
    let width = |at: usize| {
        let wide = |token: Token| token.text().chars().count();
        let y = context.y[at];
        wide(context.x[at]).max(if y == Token::PAD { 1 } else { wide(y) })
    };
    for (before, tokens) in [("", &context.x), (before_y, &context.y)] {
        out.dimmed(before)?;
        for (at, &token) in tokens.iter().enumerate() {
            out.column(token, roles[at], width(at))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// What stands in place of a question that cannot be read.
#[derive(Serialize)]
struct Failure<'a> {
    question: &'a str,
    error: String,
}

/// One question with everything that belongs to it, written while it is made.
#[derive(Serialize)]
struct Record<'a> {
    problem: &'static str,
    question: TokenText<'a>,
    answer: TokenText<'a>,
    wt: TokenText<'a>,
    cot: Option<TokenText<'a>>,
    contexts: Contexts<'a>,
    unique_contexts: usize,
    naive_contexts: String,
    naive_generated_tokens: String,
    max_context: usize,
}

struct TokenText<'a>(&'a [Token]);

impl Serialize for TokenText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Text(self.0))
    }
}

struct Contexts<'a>(&'a ThoughtGraph);

impl Serialize for Contexts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Pair<'a> {
            x: TokenText<'a>,
            y: TokenText<'a>,
        }
        let mut context = Context::default();
        let mut seq = serializer.serialize_seq(Some(self.0.len()))?;
        for id in self.0.contexts() {
            context.clear();
            self.0.write_rot(id, &mut context);
            seq.serialize_element(&Pair { x: TokenText(&context.x), y: TokenText(&context.y) })?;
        }
        seq.end()
    }
}

fn write_json(
    question: &Question,
    graph: &ThoughtGraph,
    root: ContextId,
    max_cot_tokens: usize,
    out: &mut Output,
) -> Result<()> {
    let costs = costs(graph, root)?;
    let (mut wt, mut cot) = (Context::default(), Context::default());
    graph.write_wt(root, &mut wt);
    let cot_fits = graph.write_cot(root, max_cot_tokens, &mut cot);
    let record = Record {
        problem: question.problem.name(),
        question: TokenText(&question.tokens),
        answer: TokenText(graph.answer(root)),
        wt: TokenText(&wt.x),
        cot: cot_fits.then_some(TokenText(&cot.x)),
        contexts: Contexts(graph),
        unique_contexts: costs.unique_contexts,
        naive_contexts: costs.naive_contexts.to_string(),
        naive_generated_tokens: costs.naive_tokens.to_string(),
        max_context: costs.longest_context,
    };
    serde_json::to_writer(&mut *out, &record)?;
    writeln!(out)?;
    Ok(())
}
