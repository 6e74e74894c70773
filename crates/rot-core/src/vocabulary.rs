//! The part of the alphabet that a model knows.

use std::fmt;
use std::str::FromStr;

use crate::{Problem, Text, Token, UnknownToken, parse_tokens};

/// A set of tokens in canonical order. A token's id is its rank in the set.
///
/// It is stored as text beside whatever uses it, so that ids keep their meaning:
///
/// ```
/// use rot_core::{Token, Vocabulary};
///
/// let vocabulary = Vocabulary::of([Token::PLUS, Token::D1, Token::GO, Token::D1]);
/// assert_eq!(vocabulary.to_string(), "<GO>1+");
/// assert_eq!(vocabulary.id(Token::PLUS), Some(2));
/// assert_eq!(vocabulary.id(Token::D7), None);
/// assert_eq!("<GO>1+".parse(), Ok(vocabulary));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vocabulary {
    tokens: Vec<Token>,
}

impl Vocabulary {
    /// The set of the given tokens.
    pub fn of(tokens: impl IntoIterator<Item = Token>) -> Vocabulary {
        let mut tokens: Vec<Token> = tokens.into_iter().collect();
        tokens.sort_unstable();
        tokens.dedup();
        Vocabulary { tokens }
    }

    /// The tokens that the contexts of some problems are made of, with those of all they ask.
    pub fn of_problems(problems: &[&'static dyn Problem]) -> Vocabulary {
        let mut tokens = vec![Token::PAD, Token::GO, Token::STOP, Token::THINK, Token::EQUALS];
        tokens.extend((0..10).map(Token::digit));
        let mut known: Vec<&'static str> = Vec::new();
        let mut open = problems.to_vec();
        while let Some(problem) = open.pop() {
            if known.contains(&problem.name()) {
                continue;
            }
            known.push(problem.name());
            open.extend_from_slice(problem.facts().asks);
            tokens.extend_from_slice(problem.facts().tokens);
        }
        Vocabulary::of(tokens)
    }

    /// The tokens, in the order of their ids.
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there is no token at all.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The id of a token, if it belongs to the vocabulary.
    pub fn id(&self, token: Token) -> Option<usize> {
        self.tokens.binary_search(&token).ok()
    }
}

impl fmt::Display for Vocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Text(&self.tokens).fmt(f)
    }
}

/// Text that is not a stored vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VocabularyError {
    /// Something in it is not a token.
    #[error(transparent)]
    Unknown(#[from] UnknownToken),
    /// It was not written by [`Vocabulary`]: reading it would give the tokens other ids.
    #[error("the vocabulary is not in canonical order: {token} stands after {before}")]
    Order {
        /// The token that is out of place.
        token: Token,
        /// The token before it.
        before: Token,
    },
}

impl FromStr for Vocabulary {
    type Err = VocabularyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let tokens = parse_tokens(text)?;
        match tokens.windows(2).find(|pair| pair[0] >= pair[1]) {
            Some(pair) => Err(VocabularyError::Order { token: pair[1], before: pair[0] }),
            None => Ok(Vocabulary { tokens }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_ranks_in_canonical_order() {
        let vocabulary = Vocabulary::of(Token::ALL.iter().rev().copied());
        assert_eq!(vocabulary.len(), 45);
        for (id, &token) in vocabulary.tokens().iter().enumerate() {
            assert_eq!(vocabulary.id(token), Some(id));
        }
    }

    #[test]
    fn text_that_would_change_the_ids_is_refused() {
        let error = "<GO>+1".parse::<Vocabulary>().unwrap_err();
        assert_eq!(error, VocabularyError::Order { token: Token::D1, before: Token::PLUS });
        assert!("11".parse::<Vocabulary>().is_err());
        assert!("1?".parse::<Vocabulary>().is_err());
    }
}
