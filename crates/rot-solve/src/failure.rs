//! Why a question has no answer.

use std::fmt;
use std::sync::Arc;

use rot_core::{Excerpt, Text, Token};

use crate::limits::Limit;

/// Why a context could not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A limit was met.
    Limit(Limit),
    /// The context waits, directly or not, for its own question.
    Cycle,
    /// What it said steers nowhere.
    Malformed {
        /// The rule that it broke.
        rule: Rule,
        /// The end of what it said.
        said: Vec<Token>,
    },
    /// The generator could not continue it.
    Generator(String),
}

/// What a context must keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// THINK comes after a sub-question.
    ThinkAsks,
    /// A sub-question has something between GO or TAIL and its end.
    QuestionNotEmpty,
    /// A sub-question ends in `=`.
    QuestionEnds,
    /// Neither a question nor an answer has a token in it that steers the recursion.
    OnlyContent,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rule::ThinkAsks => "<THINK> must follow a sub-question that <GO> or <TAIL> opens",
            Rule::QuestionNotEmpty => "a sub-question must not be empty",
            Rule::QuestionEnds => "a sub-question must end in =",
            Rule::OnlyContent => {
                "no token that steers the recursion may stand inside a question or an answer"
            }
        })
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Limit(limit) => write!(f, "the {} limit was met: {limit}", limit.name()),
            Cause::Cycle => write!(f, "a context waits for its own question"),
            Cause::Malformed { rule, said } => {
                write!(f, "{rule}, but the model said {}", Text(said))
            }
            Cause::Generator(why) => f.write_str(why),
        }
    }
}

/// Why a question has no answer, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What happened.
    pub cause: Cause,
    /// The questions from the root to the context where it happened. After a tail call only the last
    /// question of a context is known.
    pub path: Vec<Arc<[Token]>>,
}

/// Questions of a long path that are shown at each end.
const SHOWN: usize = 3;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; at ", self.cause)?;
        let count = self.path.len();
        for (i, question) in self.path.iter().enumerate() {
            if count > 2 * SHOWN && i == SHOWN {
                write!(f, " > ({} more)", count - 2 * SHOWN)?;
            }
            if count <= 2 * SHOWN || i < SHOWN || i >= count - SHOWN {
                let separator = if i == 0 { "" } else { " > " };
                write!(f, "{separator}{}", Excerpt(question))?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}
