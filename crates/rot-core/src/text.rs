//! Tokens as text: every token is one character, or a name in angle brackets.
//!
//! ```
//! use rot_core::{Text, Token, parse_tokens};
//!
//! let tokens = parse_tokens("<GO>8+1=9<STOP>").unwrap();
//! assert_eq!(tokens[0], Token::GO);
//! assert_eq!(Text(&tokens).to_string(), "<GO>8+1=9<STOP>");
//!
//! let error = parse_tokens("<GO>8#1=").unwrap_err();
//! assert_eq!(error.to_string(), "unknown token '#' at position 6");
//! ```

use std::fmt;

use crate::Token;

/// Shows tokens as text.
#[derive(Clone, Copy)]
pub struct Text<'a>(pub &'a [Token]);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|token| f.write_str(token.text()))
    }
}

/// Shows tokens as text, the middle left out where there are many: for messages.
#[derive(Clone, Copy)]
pub struct Excerpt<'a>(pub &'a [Token]);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const EDGE: usize = 24;
        let tokens = self.0;
        if tokens.len() <= 2 * EDGE {
            return Text(tokens).fmt(f);
        }
        let (head, tail) = (&tokens[..EDGE], &tokens[tokens.len() - EDGE..]);
        write!(f, "{}…{}", Text(head), Text(tail))
    }
}

/// A piece of text that is not a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown token '{piece}' at position {position}")]
pub struct UnknownToken {
    /// The place of its first character, counted in characters from 1.
    pub position: usize,
    /// The offending piece, cut where it is long.
    pub piece: String,
}

/// Reads text that is made of tokens and nothing else.
pub fn parse_tokens(text: &str) -> Result<Vec<Token>, UnknownToken> {
    let mut tokens = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(piece) = next_piece(rest) {
        let token = Token::from_text(piece).ok_or_else(|| UnknownToken {
            position: text[..text.len() - rest.len()].chars().count() + 1,
            piece: shorten(piece),
        })?;
        tokens.push(token);
        rest = &rest[piece.len()..];
    }
    Ok(tokens)
}

/// The next piece that could be a token: up to the `>` that closes a `<`, otherwise one character.
pub fn next_piece(text: &str) -> Option<&str> {
    let first = text.chars().next()?;
    let end = match first {
        '<' => text.find('>').map_or(text.len(), |close| close + 1),
        _ => first.len_utf8(),
    };
    Some(&text[..end])
}

/// Cuts text from outside to what fits in a message, and makes it printable.
pub fn shorten(text: &str) -> String {
    const MOST: usize = 24;
    let mut short: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    if text.chars().nth(MOST).is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> (usize, String) {
        let error = parse_tokens(text).unwrap_err();
        (error.position, error.piece)
    }

    #[test]
    fn all_tokens_go_through_text_and_back() {
        let text = Text(Token::ALL).to_string();
        assert_eq!(parse_tokens(&text).unwrap(), Token::ALL);
    }

    #[test]
    fn what_is_no_token_is_refused_with_its_place() {
        assert_eq!(parse_tokens("").unwrap(), []);
        assert_eq!(refused("a"), (1, "a".into()));
        assert_eq!(refused("76÷29 ="), (6, " ".into()));
        assert_eq!(refused("4×2<FOO>="), (4, "<FOO>".into()));
        assert_eq!(refused("12<GO"), (3, "<GO".into()));
        assert_eq!(refused("1<"), (2, "<".into()));
        assert_eq!(refused("<go>"), (1, "<go>".into()));
        assert_eq!(refused("1\n2"), (2, "\\n".into()));
    }

    #[test]
    fn a_long_piece_is_cut() {
        let (position, piece) = refused(&format!("1<{}", "é".repeat(1 << 20)));
        assert_eq!(position, 2);
        assert_eq!(piece.chars().count(), 25);
    }

    #[test]
    fn an_excerpt_keeps_both_ends() {
        let short = parse_tokens("<GO>1+2=").unwrap();
        assert_eq!(Excerpt(&short).to_string(), "<GO>1+2=");
        let long = vec![Token::D7; 1000];
        assert_eq!(Excerpt(&long).to_string().chars().filter(|&c| c == '7').count(), 48);
    }
}
