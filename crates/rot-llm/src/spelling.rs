//! How tokens are written for a model that has a tokenizer of its own.

use rot_core::{Text, Token};

use crate::words::{parse_word, write_words};

/// How tokens are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// As in the paper: ` go 4 0 + 3 5 =`, for models that know words.
    Words,
    /// As they are: `<GO>40+35=`, for our own models, whose tokenizers know each token.
    Tokens,
}

/// What was read of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Its tokens, up to and including the first THINK or STOP.
    pub(crate) tokens: Vec<Token>,
    /// What stands after them and is no token, if anything kept them from going on.
    pub(crate) unknown: Option<String>,
}

impl Spelling {
    /// Both.
    pub const ALL: [Spelling; 2] = [Spelling::Words, Spelling::Tokens];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Spelling::Words => "words",
            Spelling::Tokens => "tokens",
        }
    }

    /// Appends tokens to a text.
    pub(crate) fn write(self, tokens: &[Token], out: &mut String) {
        match self {
            Spelling::Words => write_words(tokens, out),
            Spelling::Tokens => out.push_str(&Text(tokens).to_string()),
        }
    }

    /// What ends a text that a server is to write. Our own models end theirs by themselves, and servers
    /// leave THINK or STOP in the text then.
    pub(crate) fn stops(self) -> &'static [&'static str] {
        match self {
            // Words end a line of worked examples, too.
            Spelling::Words => &[" think", " stop", "\n"],
            Spelling::Tokens => &[],
        }
    }

    /// Reads tokens until one of them ends the text, or something else stands there.
    pub(crate) fn read(self, text: &str) -> Reading {
        let mut reading = Reading::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let end = match self {
                Spelling::Words => rest.find(char::is_whitespace),
                Spelling::Tokens if rest.starts_with('<') => rest.find('>').map(|at| at + 1),
                Spelling::Tokens => rest.char_indices().nth(1).map(|(at, _)| at),
            };
            let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
            let token = match self {
                Spelling::Words => parse_word(word),
                Spelling::Tokens => Token::from_text(word),
            };
            let Some(token) = token else {
                reading.unknown = Some(word.to_owned());
                break;
            };
            reading.tokens.push(token);
            if token == Token::THINK || token == Token::STOP {
                break;
            }
            // A new line is the end, whatever a model goes on to write there.
            let blank = after.len() - after.trim_start().len();
            if after[..blank].contains('\n') {
                break;
            }
            rest = &after[blank..];
        }
        reading
    }
}

#[cfg(test)]
mod tests {
    use rot_core::parse_tokens;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let context = parse_tokens("<GO>4÷2=<GO>10<VS>9=<THINK>").unwrap();
        for spelling in Spelling::ALL {
            let mut text = String::new();
            spelling.write(&context, &mut text);
            assert_eq!(spelling.read(&text), Reading { tokens: context.clone(), unknown: None });
        }
    }

    #[test]
    fn a_text_is_cut_at_its_end() {
        let tokens = parse_tokens("75<STOP>").unwrap();
        let whole = Reading { tokens: tokens.clone(), unknown: None };
        assert_eq!(Spelling::Words.read(" 7 5 stop and so on"), whole);
        assert_eq!(Spelling::Tokens.read("75<STOP><nonsense"), whole);
        let open = Reading { tokens: tokens[..2].to_vec(), unknown: None };
        assert_eq!(Spelling::Words.read(" 7 5\n go 1"), open);
        let lost = Reading { unknown: Some("seven".to_owned()), ..open };
        assert_eq!(Spelling::Words.read("7 5 seven stop"), lost);
        assert_eq!(Spelling::Tokens.read("75<"), Reading { unknown: Some("<".to_owned()), ..lost });
        assert_eq!(Spelling::Words.read("  "), Reading::default());
    }
}
