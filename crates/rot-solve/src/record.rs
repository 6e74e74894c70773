//! Events as lines of text, and what they add up to.
//!
//! A trace file is JSON Lines: a header, then an event a line. Tokens are text. Whoever reads it can
//! redraw the recursion; fields and events may be added in later versions, none changes its meaning.
//!
//! ```text
//! {"event":"trace","version":1,"model":"..."}
//! {"event":"open","context":0,"question":"<GO>8+1=","root":0,"tail":false,"depth":0}
//! {"event":"say","context":0,"tokens":"9<STOP>","margin":12.5}
//! {"event":"answer","context":0,"answer":"9<STOP>"}
//! {"event":"solved","root":0,"answer":"9<STOP>"}
//! ```

use std::collections::HashMap;

use rot_core::{Text, Token, UnknownToken, parse_tokens};
use serde::{Deserialize, Serialize};

use crate::trace::{Asker, Event};

/// The version of the format.
pub const TRACE_VERSION: u32 = 1;

/// A line of a trace. Who asks is a `root` or a `parent`, one of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
#[allow(missing_docs, reason = "as in the events, which are documented")]
pub enum Line {
    /// The first line.
    Trace { version: u32, model: String },
    /// See [`Event::Open`].
    Open {
        context: u64,
        question: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        root: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<u64>,
        tail: bool,
        depth: usize,
    },
    /// See [`Event::Recall`].
    Recall {
        question: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        root: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<u64>,
        tail: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waits_for: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
    },
    /// See [`Event::Say`].
    Say {
        context: u64,
        tokens: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        margin: Option<f32>,
    },
    /// See [`Event::Answer`].
    Answer { context: u64, answer: String },
    /// See [`Event::Solved`].
    Solved { root: u64, answer: String },
    /// See [`Event::Failed`].
    Failed { root: u64, error: String, path: Vec<String> },
}

impl From<&Event<'_>> for Line {
    fn from(event: &Event<'_>) -> Line {
        let text = |tokens: &[Token]| Text(tokens).to_string();
        let asker = |by: Asker| match by {
            Asker::Root(root) => (Some(root.0), None),
            Asker::Context(context) => (None, Some(context)),
        };
        match event {
            Event::Open { context, question, by, tail, depth } => {
                let ((root, parent), question) = (asker(*by), text(question));
                Line::Open { context: *context, question, root, parent, tail: *tail, depth: *depth }
            }
            Event::Recall { question, by, tail, waits_for, answer } => {
                let ((root, parent), question) = (asker(*by), text(question));
                let answer = answer.map(|answer| text(answer));
                Line::Recall { question, root, parent, tail: *tail, waits_for: *waits_for, answer }
            }
            Event::Say { context, tokens, margin } => {
                let margin = margin.is_finite().then_some(*margin);
                Line::Say { context: *context, tokens: text(tokens), margin }
            }
            Event::Answer { context, answer } => {
                Line::Answer { context: *context, answer: text(answer) }
            }
            Event::Solved { root, answer } => Line::Solved { root: root.0, answer: text(answer) },
            Event::Failed { root, failure } => Line::Failed {
                root: root.0,
                error: failure.to_string(),
                path: failure.path.iter().map(|question| text(question)).collect(),
            },
        }
    }
}

/// A context as a trace has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// Its question.
    pub question: Vec<Token>,
    /// All its tokens so far, the question and sub-answers included.
    pub tokens: Vec<Token>,
    /// What it asks, in order.
    pub asks: Vec<Asked>,
    /// Its answer, once there is one.
    pub answer: Option<Vec<Token>>,
    /// How many contexts are above it.
    pub depth: usize,
}

/// A sub-question as a trace has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The question.
    pub question: Vec<Token>,
    /// The context that answers it, unless its answer came from elsewhere.
    pub context: Option<u64>,
    /// Whether that was there, or on its way, before it was asked here.
    pub recalled: bool,
    /// Whether its answer is the answer.
    pub tail: bool,
}

/// What a trace adds up to: contexts, and for each root what was asked for it and how it ended.
#[derive(Clone, Debug, Default)]
pub struct Recursion {
    /// Contexts by number.
    pub contexts: HashMap<u64, Recorded>,
    /// What was put to the solver, by number.
    pub roots: Vec<(u64, Asked)>,
    /// Answers and errors, by root.
    pub ends: HashMap<u64, Result<Vec<Token>, String>>,
    /// The context that solved a question.
    solved: HashMap<Vec<Token>, u64>,
}

/// Why a line cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// Tokens that are none.
    #[error(transparent)]
    Token(#[from] UnknownToken),
    /// A context that was not opened.
    #[error("there is no context {0}")]
    NoContext(u64),
    /// A version that is not known.
    #[error("version {0} of the format is not known, only {TRACE_VERSION}")]
    Version(u32),
}

impl Recursion {
    /// Adds a line.
    pub fn add(&mut self, line: &Line) -> Result<(), LineError> {
        match line {
            Line::Trace { version, .. } => {
                if *version != TRACE_VERSION {
                    return Err(LineError::Version(*version));
                }
            }
            Line::Open { context, question, root, parent, tail, depth } => {
                let question = parse_tokens(question)?;
                let asked = Asked {
                    question: question.clone(),
                    context: Some(*context),
                    recalled: false,
                    tail: *tail,
                };
                self.ask(*root, *parent, asked)?;
                self.solved.insert(question.clone(), *context);
                let tokens = question.clone();
                let recorded = Recorded { question, tokens, depth: *depth, ..Recorded::default() };
                self.contexts.insert(*context, recorded);
            }
            Line::Recall { question, root, parent, tail, waits_for, .. } => {
                let question = parse_tokens(question)?;
                let context = waits_for.or_else(|| self.solved.get(&question).copied());
                let asked = Asked { question, context, recalled: true, tail: *tail };
                self.ask(*root, *parent, asked)?;
            }
            Line::Say { context, tokens, .. } => {
                let said = parse_tokens(tokens)?;
                self.context(*context)?.tokens.extend(said);
            }
            Line::Answer { context, answer } => {
                let answer = parse_tokens(answer)?;
                self.context(*context)?.answer = Some(answer);
            }
            Line::Solved { root, answer } => {
                let answer = parse_tokens(answer)?;
                self.ends.insert(*root, Ok(answer));
            }
            Line::Failed { root, error, .. } => {
                self.ends.insert(*root, Err(error.clone()));
            }
        }
        Ok(())
    }

    fn ask(
        &mut self,
        root: Option<u64>,
        parent: Option<u64>,
        asked: Asked,
    ) -> Result<(), LineError> {
        if let Some(parent) = parent {
            self.context(parent)?.asks.push(asked);
        } else {
            self.roots.push((root.unwrap_or(0), asked));
        }
        Ok(())
    }

    fn context(&mut self, number: u64) -> Result<&mut Recorded, LineError> {
        self.contexts.get_mut(&number).ok_or(LineError::NoContext(number))
    }

    /// The answer to a question that was asked: its own, or after a tail call that of the last.
    pub fn answer(&self, asked: &Asked) -> Option<&[Token]> {
        let mut context = self.contexts.get(&asked.context?)?;
        loop {
            if let Some(answer) = &context.answer {
                return Some(answer);
            }
            let last = context.asks.last().filter(|asked| asked.tail)?;
            context = self.contexts.get(&last.context?)?;
        }
    }
}
