//! What has been solved already, and what is being solved: a question is solved once.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use rot_core::Token;

use crate::failure::Cause;
use crate::generator::ContextId;
use crate::memo_file::{MemoError, MemoFile};

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

/// Answers by question, in memory and, if wanted, in a file as well.
#[derive(Default)]
pub struct Memo {
    known: HashMap<Tokens, Known, FixedState>,
    bytes: usize,
    file: Option<MemoFile>,
    /// The first error of the file, after which it is left alone.
    error: Option<MemoError>,
}

/// What an entry takes beside its tokens.
const ENTRY: usize = 160;

impl Memo {
    /// A memo that knows what the file does, and keeps there what it learns.
    pub fn with_file(file: MemoFile) -> Memo {
        Memo { file: Some(file), ..Memo::default() }
    }

    /// What is known of a question, in the file too.
    pub(crate) fn recall(&mut self, question: &Tokens) -> Option<Known> {
        if let Some(known) = self.known.get(question) {
            return Some(known.clone());
        }
        let answer = match self.file.as_ref()?.get(question) {
            Ok(answer) => answer?,
            Err(error) => {
                self.give_up(error);
                return None;
            }
        };
        let known = Known::Answer(answer);
        self.insert(Arc::clone(question), known.clone());
        Some(known)
    }

    /// Learns an answer.
    pub(crate) fn learn(&mut self, question: Tokens, answer: &Tokens) {
        if let Some(file) = &mut self.file
            && let Err(error) = file.put(Arc::clone(&question), Arc::clone(answer))
        {
            self.give_up(error);
        }
        self.insert(question, Known::Answer(Arc::clone(answer)));
    }

    fn give_up(&mut self, error: MemoError) {
        self.file = None;
        self.error.get_or_insert(error);
    }

    /// Writes what the file does not have yet, and says what went wrong with it, if anything did.
    pub fn save(&mut self) -> Result<(), MemoError> {
        if let Some(file) = &mut self.file
            && let Err(error) = file.save()
        {
            self.give_up(error);
        }
        self.error.take().map_or(Ok(()), Err)
    }

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
}
