//! What is asked of a server, counted while it is.

use std::sync::Mutex;

use serde::Serialize;

/// Requests in a row without a reply, each tried as often as may be, after which there seems to be no server.
const NO_SERVER: u64 = 8;

/// What requests have come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Requests with a reply.
    pub requests: u64,
    /// How often one was tried again.
    pub retries: u64,
    /// Prompts that were not sent, because the journal had a reply.
    pub known: u64,
    /// Completions whose end the server did not say.
    pub inferred_ends: u64,
    /// Prompts without a reply.
    pub unanswered: u64,
    /// Tokens of prompts, as the server counts them.
    pub prompt_tokens: u64,
    /// Tokens of completions, as the server counts them.
    pub completion_tokens: u64,
}

/// Counts that several threads share, and what went wrong.
#[derive(Debug, Default)]
pub struct Traffic {
    state: Mutex<State>,
}

#[derive(Clone, Debug, Default)]
struct State {
    counts: Counts,
    /// Requests in a row without a reply.
    in_vain: u64,
    first_error: Option<String>,
    stopped: Option<String>,
}

impl Traffic {
    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.read().counts
    }

    /// Why the first prompt without a reply has none.
    pub fn first_error(&self) -> Option<String> {
        self.read().first_error
    }

    /// Why nothing is asked any more.
    pub(crate) fn stopped(&self) -> Option<String> {
        self.read().stopped
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut Counts)) {
        self.change(|state| count(&mut state.counts));
    }

    /// A request has its reply.
    pub(crate) fn reply(&self) {
        self.change(|state| {
            state.counts.requests += 1;
            state.in_vain = 0;
        });
    }

    /// A request was tried as often as may be.
    pub(crate) fn give_up(&self, why: &str) {
        self.change(|state| {
            state.in_vain += 1;
            if state.in_vain >= NO_SERVER {
                state.stopped.get_or_insert_with(|| why.to_owned());
            }
        });
    }

    /// Nothing is to be asked any more.
    pub(crate) fn stop(&self, why: &str) {
        self.change(|state| {
            state.stopped.get_or_insert_with(|| why.to_owned());
        });
    }

    /// A prompt stays without a reply.
    pub(crate) fn lose(&self, why: &str) {
        self.change(|state| {
            state.counts.unanswered += 1;
            state.first_error.get_or_insert_with(|| why.to_owned());
        });
    }

    fn read(&self) -> State {
        self.state.lock().map(|state| state.clone()).unwrap_or_default()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        if let Ok(mut state) = self.state.lock() {
            change(&mut state);
        }
    }
}
