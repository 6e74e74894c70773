//! `rot solve`

mod model;

use std::io::Write;

use anyhow::Result;
use rot_core::{ContextId, Costs, Text, ThoughtGraph, Token};
use serde::Serialize;

use super::{costs, unfold};
use crate::WrongUsage;
use crate::args::SolveArgs;
use crate::output::{Output, Role, counted, grouped};
use crate::tree;

/// Who answers with --oracle: the label says so wherever an answer is printed.
const MODEL: &str = "ground-truth oracle";

/// An answer for programs, under the names of `rot contexts --jsonl`. What has no bound is text.
#[derive(Serialize)]
struct Record {
    model: &'static str,
    problem: &'static str,
    question: String,
    answer: String,
    unique_contexts: usize,
    unique_generated_tokens: u64,
    max_context: usize,
    naive_contexts: String,
    naive_generated_tokens: String,
    cot_context: String,
}

pub(crate) fn run(args: &SolveArgs) -> Result<()> {
    if !args.oracle {
        return model::run(args);
    }
    if args.question.is_input() {
        let what = "questions from standard input are answered by a model, not by --oracle";
        return Err(WrongUsage(what.to_owned()).into());
    }
    let question = args.question.read()?;
    let mut graph = ThoughtGraph::with_memory_limit(args.question.memory_limit());
    let root = unfold(&mut graph, &question)?;
    let costs = costs(&graph, root)?;
    let mut out = Output::new();
    if args.json {
        let record = Record {
            model: MODEL,
            problem: question.problem.name(),
            question: Text(&question.tokens).to_string(),
            answer: Text(graph.answer(root)).to_string(),
            unique_contexts: costs.unique_contexts,
            unique_generated_tokens: costs.unique_tokens,
            max_context: costs.longest_context,
            naive_contexts: costs.naive_contexts.to_string(),
            naive_generated_tokens: costs.naive_tokens.to_string(),
            cot_context: costs.cot_context.to_string(),
        };
        serde_json::to_writer(&mut out, &record)?;
        writeln!(out)?;
    } else {
        if args.tree {
            draw(&graph, root, &mut out)?;
        } else {
            equation(&graph, root, &mut out)?;
            writeln!(out)?;
        }
        statistics(&costs, &mut out)?;
    }
    out.flush()?;
    Ok(())
}

fn draw(graph: &ThoughtGraph, root: ContextId, out: &mut Output) -> Result<()> {
    tree::walk_graph(graph, root, |line| {
        out.dimmed(line.branches)?;
        if line.tail {
            out.tokens(&[Token::TAIL], Role::Question)?;
            write!(out, " ")?;
        }
        equation(graph, line.context, out)?;
        if line.repeated {
            out.dimmed("  (as above)")?;
        }
        writeln!(out)?;
        Ok(())
    })
}

/// `12+3 = 15`
fn equation(graph: &ThoughtGraph, id: ContextId, out: &mut Output) -> Result<()> {
    let (question, answer) = (graph.question(id), graph.answer(id));
    out.tokens(&question[1..question.len() - 1], Role::Question)?;
    write!(out, " = ")?;
    out.tokens(&answer[..answer.len() - 1], Role::Answer)?;
    Ok(())
}

fn statistics(costs: &Costs, out: &mut Output) -> Result<()> {
    let line = format!(
        "{MODEL}, no trained model: {}, {} generated, longest context {}; CoT: one context of {}",
        counted(costs.unique_contexts, "context"),
        counted(costs.unique_tokens, "token"),
        grouped(costs.longest_context),
        grouped(&costs.cot_context)
    );
    out.dimmed(line)?;
    writeln!(out)?;
    Ok(())
}
