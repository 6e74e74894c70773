//! What has been solved already, and what is being solved: a question is solved once.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use rot_core::Token;

use crate::failure::Cause;
use crate::generator::ContextId;

/// Tokens that many places share.
pub type Tokens = Arc<[Token]>;

/// What is known of a question.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    /// Its answer, with STOP.
    Answer(Tokens),
    /// This context is solving it.
    Open(ContextId),
    /// It has none.
    Failed {
        cause: Cause,
        /// The question below it that has none either, if that is the reason.
        below: Option<Tokens>,
    },
}

/// Answers by question.
#[derive(Default)]
pub struct Memo {
    known: HashMap<Tokens, Known, FixedState>,
    bytes: usize,
}

/// What an entry takes beside its tokens.
const ENTRY: usize = 160;

impl Memo {
    pub(crate) fn get(&self, question: &[Token]) -> Option<&Known> {
        self.known.get(question)
    }

    pub(crate) fn insert(&mut self, question: Tokens, known: Known) {
        let answer = match &known {
            Known::Answer(answer) => answer.len(),
            _ => 0,
        };
        let question_len = question.len();
        match self.known.insert(question, known) {
            None => self.bytes += ENTRY + question_len + answer,
            Some(Known::Answer(before)) => self.bytes = self.bytes + answer - before.len(),
            Some(_) => self.bytes += answer,
        }
    }

    /// Forgets that a question is being solved.
    pub(crate) fn abandon(&mut self, question: &[Token]) {
        if let Some(Known::Open(_)) = self.known.get(question) {
            self.known.remove(question);
            self.bytes -= ENTRY + question.len();
        }
    }

    /// Forgets everything but what is being solved.
    pub(crate) fn forget(&mut self) {
        self.known.retain(|_, known| matches!(known, Known::Open(_)));
        self.known.shrink_to_fit();
        self.bytes = self.known.keys().map(|question| ENTRY + question.len()).sum();
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many answers are known.
    pub fn answers(&self) -> usize {
        self.known.values().filter(|known| matches!(known, Known::Answer(_))).count()
    }
}
