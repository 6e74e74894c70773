//! Contexts as a model sees them, in the three paradigms.

use crate::{ContextId, ThoughtGraph, Token};

/// How a problem is put before a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Paradigm {
    /// Recursion of Thought: one context for each question, sub-answers come from other contexts.
    Rot,
    /// Chain of Thought: all steps in one context.
    Cot,
    /// Without Thought: the answer straight after the question.
    Wt,
}

impl Paradigm {
    /// All paradigms.
    pub const ALL: [Paradigm; 3] = [Paradigm::Rot, Paradigm::Cot, Paradigm::Wt];

    /// The short name: `rot`, `cot` or `wt`.
    pub fn name(self) -> &'static str {
        match self {
            Paradigm::Rot => "rot",
            Paradigm::Cot => "cot",
            Paradigm::Wt => "wt",
        }
    }
}

/// A context X and its target Y, token by token: `y[i]` is what the model must say where `x[i]`
/// will stand, and PAD where it is not asked (paper, Algorithm "Creating the target sequence").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// What the model reads.
    pub x: Vec<Token>,
    /// What it must say; as long as `x`.
    pub y: Vec<Token>,
}

/// What stands before, and what a model has to say after it, with its THINK or STOP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example<'a> {
    /// The context so far.
    pub prompt: &'a [Token],
    /// What comes next.
    pub completion: &'a [Token],
}

impl Context {
    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.x.len()
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.x.is_empty()
    }

    /// What a model has to say in it, one for each THINK or STOP.
    pub fn examples(&self) -> impl Iterator<Item = Example<'_>> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let rest = self.y.get(from..)?;
            let start = from + rest.iter().position(|&token| token != Token::PAD)?;
            let ends = |token: &Token| matches!(*token, Token::THINK | Token::STOP);
            // What is not ended by either is not to be said.
            let end = start + self.y[start..].iter().position(ends)? + 1;
            from = end;
            Some(Example { prompt: &self.x[..start], completion: &self.y[start..end] })
        })
    }

    /// Forgets the tokens and keeps the memory.
    pub fn clear(&mut self) {
        self.x.clear();
        self.y.clear();
    }

    /// Adds tokens that are given to the model.
    pub fn push_given(&mut self, tokens: &[Token]) {
        self.x.extend_from_slice(tokens);
        self.y.resize(self.x.len(), Token::PAD);
    }

    /// Adds tokens that the model generates.
    pub fn push_generated(&mut self, tokens: &[Token]) {
        self.x.extend_from_slice(tokens);
        self.y.extend_from_slice(tokens);
    }

    /// Adds a sub-answer: the model says THINK, and the answer takes its place.
    pub fn push_sub_answer(&mut self, answer: &[Token]) {
        let think = self.y.len();
        self.push_given(answer);
        if let Some(first) = self.y.get_mut(think) {
            *first = Token::THINK;
        }
    }
}

/// The length of an RoT context and how much of it the model generates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// All tokens.
    pub context: usize,
    /// Sub-questions, THINKs and the answer.
    pub generated: usize,
}

impl ThoughtGraph {
    /// Appends the RoT context to `out`. A tail context ends in THINK.
    pub fn write_rot(&self, id: ContextId, out: &mut Context) {
        out.push_given(self.question(id));
        for thought in self.thoughts(id) {
            let question = self.question(thought.context);
            if thought.tail {
                out.push_generated(&[Token::TAIL]);
                out.push_generated(&question[1..]);
                out.push_generated(&[Token::THINK]);
            } else {
                out.push_generated(question);
                out.push_sub_answer(self.answer(thought.context));
            }
        }
        if !self.is_tail(id) {
            out.push_generated(self.answer(id));
        }
    }

    /// The lengths of what [`ThoughtGraph::write_rot`] writes.
    pub fn rot_lengths(&self, id: ContextId) -> Lengths {
        let mut lengths = Lengths { context: self.question(id).len(), generated: 0 };
        for thought in self.thoughts(id) {
            let question = self.question(thought.context).len();
            lengths.generated += question + 1;
            lengths.context += question;
            lengths.context += if thought.tail { 1 } else { self.answer(thought.context).len() };
        }
        if !self.is_tail(id) {
            lengths.generated += self.answer(id).len();
            lengths.context += self.answer(id).len();
        }
        lengths
    }

    /// Appends the WT context to `out`: the question and its answer.
    pub fn write_wt(&self, id: ContextId, out: &mut Context) {
        out.push_given(self.question(id));
        out.push_generated(self.answer(id));
    }

    /// Appends the CoT context to `out`: all thoughts flattened into one sequence. Nothing is
    /// written, and the result is `false`, where it would pass `most` tokens.
    pub fn write_cot(&self, id: ContextId, most: usize, out: &mut Context) -> bool {
        let start = out.len();
        out.push_given(self.question(id));
        // Contexts that are being written, each with the number of its thoughts that are written.
        let mut open = vec![(id, 0)];
        while let Some((context, done)) = open.last_mut() {
            if let Some(thought) = self.thoughts(*context).nth(*done) {
                *done += 1;
                let question = self.question(thought.context);
                let opening = if thought.tail { Token::TAIL } else { Token::GO };
                out.push_generated(&[opening]);
                out.push_generated(&question[1..]);
                open.push((thought.context, 0));
            } else {
                if !self.is_tail(*context) {
                    out.push_generated(self.answer(*context));
                }
                open.pop();
            }
            if out.len() - start > most {
                out.x.truncate(start);
                out.y.truncate(start);
                return false;
            }
        }
        true
    }
}
