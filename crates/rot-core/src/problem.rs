//! What a problem is: how its questions look, how it thinks, and how it is sampled.

use crate::Token;
use crate::sample::{SampleRng, Sampling};
use crate::thoughts::{Done, Pause, Thoughts};

/// A kind of question together with the procedure that answers it.
///
/// A question is nothing but its tokens: `<GO>`, the *body*, `=`. All methods deal in bodies.
/// `docs/adding-a-problem.md` builds one from nothing.
pub trait Problem: Sync {
    /// What can be said of it before any question is asked.
    fn facts(&self) -> &'static Facts;

    /// Whether a body is a question that has an answer.
    fn check(&self, body: &[Token]) -> Result<(), Fault>;

    /// Goes from a body and the answers so far to the next sub-question or the answer.
    fn think<'a>(&self, body: &'a [Token], t: &mut Thoughts<'a>) -> Result<Done, Pause>;

    /// Adds the body of a random question of the given size, which is not below the smallest.
    fn sample(&self, size: u32, sampling: Sampling, rng: &mut SampleRng, body: &mut Vec<Token>);

    /// The name that people type and files carry.
    fn name(&self) -> &'static str {
        self.facts().name
    }
}

/// What can be said of a problem before any question is asked.
pub struct Facts {
    /// The name that people type and files carry, such as `ternary-add`.
    pub name: &'static str,
    /// How a body is recognised.
    pub form: Form,
    /// What a size counts, such as `digits`.
    pub unit: &'static str,
    /// The smallest size there is.
    pub smallest: u32,
    /// The sizes in the paper's tables for the Transformer; none for what is only a helper.
    pub paper_sizes: &'static [u32],
    /// The tokens this problem writes itself, beside digits, GO, `=`, THINK and STOP.
    pub tokens: &'static [Token],
    /// The problems it asks; itself goes without saying.
    pub asks: &'static [&'static dyn Problem],
}

/// How a body is recognised: by its first token that is not a digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A token in front: `<SORT>3,1,2`.
    Prefix {
        /// The token.
        head: Token,
        /// What stands between the arguments, where there can be more than one.
        separator: Option<Token>,
    },
    /// A token between the operands: `1+2`.
    Infix {
        /// The token.
        operator: Token,
        /// How many operands there are.
        operands: usize,
    },
}

impl Form {
    /// The token by which a body is recognised.
    pub fn mark(&self) -> Token {
        match *self {
            Form::Prefix { head, .. } => head,
            Form::Infix { operator, .. } => operator,
        }
    }

    /// The token between arguments.
    pub fn separator(&self) -> Option<Token> {
        match *self {
            Form::Prefix { separator, .. } => separator,
            Form::Infix { operator, .. } => Some(operator),
        }
    }

    /// Whether a body has this form; whether it is well made is for [`Problem::check`] to say.
    pub fn fits(&self, body: &[Token]) -> bool {
        if body.iter().find(|token| !token.is_digit()) != Some(&self.mark()) {
            return false;
        }
        match *self {
            Form::Prefix { head, .. } => body[0] == head,
            Form::Infix { operator, operands } => {
                body.iter().filter(|&&token| token == operator).count() + 1 == operands
            }
        }
    }
}

/// What is wrong with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The place of the token at fault; the length of the body where something is missing.
    pub at: usize,
    /// What is wrong, and what to do about it.
    pub what: String,
}

impl Fault {
    /// A fault at the given place.
    pub fn new(at: usize, what: impl Into<String>) -> Fault {
        Fault { at, what: what.into() }
    }
}
