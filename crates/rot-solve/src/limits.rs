//! What a model may use for one question, all contexts below it included.

use std::fmt;
use std::time::Duration;

/// Limits that hold for the whole tree of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Tokens of one context; the model's own limit holds as well.
    pub context: usize,
    /// Contexts that wait for each other, one below the other.
    pub depth: usize,
    /// Contexts that are opened.
    pub contexts: u64,
    /// Tokens that are generated.
    pub tokens: u64,
    /// Time from the question to its answer.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            context: usize::MAX,
            depth: 10_000,
            contexts: 10_000_000,
            tokens: 1_000_000_000,
            time: Duration::from_secs(600),
        }
    }
}

/// A limit that was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many tokens in one context.
    Context(usize),
    /// So many contexts one below the other.
    Depth(usize),
    /// So many contexts opened.
    Contexts(u64),
    /// So many tokens generated.
    Tokens(u64),
    /// So much time.
    Time(Duration),
    /// So many bytes for questions that are open and answers that are remembered.
    Memory(usize),
}

impl Limit {
    /// Its name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Context(_) => "context",
            Limit::Depth(_) => "depth",
            Limit::Contexts(_) => "contexts",
            Limit::Tokens(_) => "tokens",
            Limit::Time(_) => "time",
            Limit::Memory(_) => "memory",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Context(tokens) => write!(f, "a context may have {tokens} tokens"),
            Limit::Depth(depth) => write!(f, "contexts may be {depth} deep"),
            Limit::Contexts(count) => write!(f, "a question may open {count} contexts"),
            Limit::Tokens(count) => write!(f, "a question may generate {count} tokens"),
            Limit::Time(time) => write!(f, "a question may take {} s", time.as_secs_f64()),
            Limit::Memory(bytes) => write!(f, "the recursion may take {bytes} bytes"),
        }
    }
}
