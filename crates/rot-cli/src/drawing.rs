//! A recursion that was run, as a tree or step by step.

use std::collections::HashSet;
use std::io::Write;

use anyhow::Result;
use rot_core::{Text, Token};
use rot_solve::{Line, Recursion};

use crate::output::{Output, Role};
use crate::tree;

/// Who asked whom, and what came back. Whatever is asked again is drawn where it is asked first.
pub(crate) fn draw_tree(recursion: &Recursion, out: &mut Output) -> Result<()> {
    let mut drawn = HashSet::new();
    for (root, asked) in &recursion.roots {
        let asks = |asked: &rot_solve::Asked| {
            asked.context.and_then(|context| recursion.contexts.get(&context))
        };
        tree::walk(
            asked,
            |asked| {
                let context = asks(asked);
                let asks = context.map(|context| context.asks.as_slice()).unwrap_or_default();
                asks.iter().map(|asked| (asked, asked.tail)).collect()
            },
            |asked| match asked.context {
                Some(number) => !drawn.insert(number),
                None => asked.recalled,
            },
            |line| -> Result<()> {
                let asked = line.context;
                out.dimmed(line.branches)?;
                if line.tail {
                    out.tokens(&[Token::TAIL], Role::Question)?;
                    write!(out, " ")?;
                }
                out.tokens(body(&asked.question), Role::Question)?;
                match recursion.answer(asked) {
                    Some(answer) => {
                        write!(out, " = ")?;
                        out.tokens(
                            answer.strip_suffix(&[Token::STOP]).unwrap_or(answer),
                            Role::Answer,
                        )?;
                    }
                    None => out.dimmed(" has no answer")?,
                }
                if line.repeated {
                    out.dimmed(if asked.context.is_some() { "  (as above)" } else { "  (known)" })?;
                }
                writeln!(out)?;
                Ok(())
            },
        )?;
        if let Some(Err(error)) = recursion.ends.get(root) {
            out.dimmed(format_args!("failed: {error}"))?;
            writeln!(out)?;
        }
    }
    Ok(())
}

/// A question without GO and `=`.
pub(crate) fn body(question: &[Token]) -> &[Token] {
    let body = question.strip_prefix(&[Token::GO]).unwrap_or(question);
    body.strip_suffix(&[Token::EQUALS]).unwrap_or(body)
}

/// Shows every context whenever it has said something: up to THINK, then with the answer in its place
/// and what comes after it, as in the paper's illustration.
#[derive(Default)]
pub(crate) struct Steps {
    recursion: Recursion,
}

impl Steps {
    /// Shows what a line adds.
    pub(crate) fn add(&mut self, line: &Line, out: &mut Output) -> Result<()> {
        if let Line::Say { context, .. } = line {
            self.fill_in(*context);
        }
        self.recursion.add(line)?;
        match line {
            Line::Say { context, .. } => {
                let Some(recorded) = self.recursion.contexts.get(context) else { return Ok(()) };
                let indent = "  ".repeat(recorded.depth.min(24));
                out.dimmed(format_args!("{indent}X{} ", context + 1))?;
                let question = recorded.question.len();
                out.tokens(&recorded.tokens[..question], Role::Question)?;
                out.tokens(&recorded.tokens[question..], Role::SubQuestion)?;
                writeln!(out)?;
            }
            Line::Failed { error, .. } => {
                out.dimmed(format_args!("failed: {error}"))?;
                writeln!(out)?;
            }
            _ => (),
        }
        Ok(())
    }

    /// Puts the answer that a context has waited for in the place of its THINK.
    fn fill_in(&mut self, context: u64) {
        let Some(recorded) = self.recursion.contexts.get(&context) else { return };
        if recorded.tokens.last() != Some(&Token::THINK) {
            return;
        }
        let answer = recorded.asks.last().and_then(|asked| self.recursion.answer(asked));
        if let Some(answer) = answer.map(<[Token]>::to_vec)
            && let Some(recorded) = self.recursion.contexts.get_mut(&context)
        {
            recorded.tokens.pop();
            recorded.tokens.extend(answer);
        }
    }
}

/// The tokens of an answer without STOP, as text.
pub(crate) fn answer_text(answer: &[Token]) -> String {
    Text(answer.strip_suffix(&[Token::STOP]).unwrap_or(answer)).to_string()
}

#[cfg(test)]
mod tests {
    use rot_core::parse_tokens;

    use super::*;

    #[test]
    fn questions_and_answers_lose_their_frames() {
        let tokens = |text: &str| parse_tokens(text).unwrap();
        assert_eq!(body(&tokens("<GO>1+2=")), tokens("1+2"));
        assert_eq!(answer_text(&tokens("12<STOP>")), "12");
    }
}
