//! What a problem does in one context: ask, ask again, answer.
//!
//! A procedure is written as one would explain it, from the question to the answer. It is run from
//! the start each time an answer has come back: thoughts that are answered give their answer at
//! once, the first that is not ends the run. So a procedure needs no stack of its own, however deep
//! the recursion goes, and it sees just what a model sees: the question and the answers so far.

use crate::{Problem, Token};

/// A stretch of tokens in a longer sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The first token.
    pub start: usize,
    /// The number of tokens.
    pub len: u32,
}

impl Span {
    /// The tokens of the stretch.
    pub fn of<'a>(&self, tokens: &'a [Token]) -> &'a [Token] {
        &tokens[self.start..][..self.len as usize]
    }
}

/// What a context does next, given its question and the answers it has got so far.
#[derive(Clone, Copy)]
pub enum Step {
    /// It asks a sub-question and waits for the answer.
    Ask(&'static dyn Problem),
    /// It asks a last sub-question, whose answer is its own.
    Tail(&'static dyn Problem),
    /// It answers.
    Answer,
}

/// The end of a procedure: only [`Thoughts::answer`] and [`Thoughts::tail`] make one.
pub struct Done(());

/// Why a procedure did not come to its end: it waits, or it is lost.
pub struct Pause(Option<&'static str>);

impl Pause {
    /// The question or a sub-answer is not of the form it must have.
    pub fn lost(why: &'static str) -> Pause {
        Pause(Some(why))
    }

    /// A sub-question has been asked whose answer is not there yet.
    fn waiting() -> Pause {
        Pause(None)
    }
}

/// Why a procedure cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost(pub &'static str);

/// The thoughts of one context, answered one after the other.
pub struct Thoughts<'a> {
    memory: &'a [Token],
    /// The answers that the procedure has not come to yet.
    answers: &'a [Span],
    /// What it has written: a whole question or a whole answer, as `written` says.
    out: &'a mut Vec<Token>,
    written: Option<Step>,
}

impl<'a> Thoughts<'a> {
    /// Runs `problem` on a question, between its `<GO>` and its `=`. The answers so far are
    /// stretches of `memory`, without their `<STOP>`. What the step writes, a whole question or a
    /// whole answer, replaces the content of `out`.
    pub fn step(
        problem: &dyn Problem,
        question: &'a [Token],
        memory: &'a [Token],
        answers: &'a [Span],
        out: &'a mut Vec<Token>,
    ) -> Result<Step, Lost> {
        out.clear();
        let mut thoughts = Thoughts { memory, answers, out, written: None };
        let end = problem.think(question, &mut thoughts);
        if let Err(Pause(Some(why))) = end {
            return Err(Lost(why));
        }
        let Thoughts { answers, out, written, .. } = thoughts;
        let whole = match written {
            Some(Step::Answer) => {
                matches!(out.as_slice(), [inner @ .., Token::STOP] if is_bare(inner))
            }
            Some(Step::Ask(_) | Step::Tail(_)) => is_question(out),
            None => false,
        };
        match written {
            None => Err(Lost("it neither asked nor answered")),
            Some(_) if !whole => Err(Lost("it wrote a token that steers the recursion")),
            Some(_) if !answers.is_empty() => Err(Lost("it did not ask what it had asked before")),
            Some(step) => Ok(step),
        }
    }

    /// Asks a sub-question, made of the given parts, and returns its answer.
    pub fn ask(
        &mut self,
        problem: &'static dyn Problem,
        question: &[&[Token]],
    ) -> Result<&'a [Token], Pause> {
        match self.answers.split_first() {
            Some((answer, later)) => {
                self.answers = later;
                Ok(answer.of(self.memory))
            }
            None => {
                self.write(Step::Ask(problem), question)?;
                Err(Pause::waiting())
            }
        }
    }

    /// Asks a last sub-question, made of the given parts: its answer is the answer.
    pub fn tail(
        &mut self,
        problem: &'static dyn Problem,
        question: &[&[Token]],
    ) -> Result<Done, Pause> {
        self.write(Step::Tail(problem), question)
    }

    /// Answers with the given parts.
    pub fn answer(&mut self, answer: &[&[Token]]) -> Result<Done, Pause> {
        self.write(Step::Answer, answer)
    }

    /// Writes what ends the run. There is one such thing in a run.
    fn write(&mut self, step: Step, parts: &[&[Token]]) -> Result<Done, Pause> {
        if self.written.is_some() {
            return Err(Pause::lost("it went on after it had asked or answered"));
        }
        self.written = Some(step);
        if !matches!(step, Step::Answer) {
            self.out.push(Token::GO);
        }
        for part in parts {
            self.out.extend_from_slice(part);
        }
        self.out.push(if matches!(step, Step::Answer) { Token::STOP } else { Token::EQUALS });
        Ok(Done(()))
    }
}

/// Whether tokens are a whole question: `<GO>`, a body that steers nothing, `=`.
pub(crate) fn is_question(tokens: &[Token]) -> bool {
    matches!(tokens, [Token::GO, body @ .., Token::EQUALS] if is_bare(body))
}

/// Whether no token steers the recursion.
fn is_bare(tokens: &[Token]) -> bool {
    !tokens.iter().any(|token| token.is_control())
}
