//! `rot solve`

use std::io::Write;

use anyhow::Result;
use rot_core::{ContextId, CostCounter, Costs, Text, ThoughtGraph, Token};
use serde_json::json;

use super::unfold;
use crate::args::SolveArgs;
use crate::output::{Output, Role, counted, grouped};
use crate::tree;

/// Who answers. There is no trained model: the label says so wherever an answer is printed.
const MODEL: &str = "ground-truth oracle";

pub(crate) fn run(args: &SolveArgs) -> Result<()> {
    let question = args.question.read()?;
    let mut graph = ThoughtGraph::with_memory_limit(args.question.memory_limit());
    let root = unfold(&mut graph, &question)?;
    let costs = CostCounter::new(&graph).costs(root);
    let mut out = Output::new();
    if args.json {
        let answer = graph.answer(root);
        let object = json!({
            "model": MODEL,
            "problem": question.problem.name(),
            "question": Text(&question.tokens).to_string(),
            "answer": Text(&answer[..answer.len() - 1]).to_string(),
            "contexts": costs.unique_contexts,
            "generated_tokens": costs.unique_tokens,
            "longest_context": costs.longest_context,
            "naive_contexts": costs.naive_contexts.to_string(),
            "naive_generated_tokens": costs.naive_tokens.to_string(),
            "cot_context": costs.cot_context.to_string(),
        });
        writeln!(out, "{object}")?;
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
    tree::walk(graph, root, |line| {
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
