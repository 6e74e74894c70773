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
pub struct Done(Step);

/// Why a procedure did not come to its end.
pub enum Pause {
    /// It has asked a sub-question whose answer is not there yet.
    Waiting(&'static dyn Problem),
    /// The question or a sub-answer is not of the form it must have.
    Lost(&'static str),
}

/// A question or a sub-answer that a procedure cannot go on from, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost(pub &'static str);

/// The thoughts of one context, answered one after the other.
pub struct Thoughts<'a> {
    memory: &'a [Token],
    answers: &'a [Span],
    out: &'a mut Vec<Token>,
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
        let mut thoughts = Thoughts { memory, answers, out };
        match problem.think(question, &mut thoughts) {
            Ok(Done(step)) => Ok(step),
            Err(Pause::Waiting(problem)) => Ok(Step::Ask(problem)),
            Err(Pause::Lost(why)) => Err(Lost(why)),
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
                self.write(Token::GO, question, Token::EQUALS);
                Err(Pause::Waiting(problem))
            }
        }
    }

    /// Asks a last sub-question, made of the given parts: its answer is the answer.
    pub fn tail(
        &mut self,
        problem: &'static dyn Problem,
        question: &[&[Token]],
    ) -> Result<Done, Pause> {
        self.write(Token::GO, question, Token::EQUALS);
        Ok(Done(Step::Tail(problem)))
    }

    /// Answers with the given parts.
    pub fn answer(&mut self, answer: &[&[Token]]) -> Result<Done, Pause> {
        self.out.clear();
        for part in answer {
            self.out.extend_from_slice(part);
        }
        self.out.push(Token::STOP);
        Ok(Done(Step::Answer))
    }

    fn write(&mut self, open: Token, parts: &[&[Token]], close: Token) {
        self.out.clear();
        self.out.push(open);
        for part in parts {
            self.out.extend_from_slice(part);
        }
        self.out.push(close);
    }
}
