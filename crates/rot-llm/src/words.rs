//! Tokens as words for models that have a tokenizer of their own.
//!
//! As in the paper's appendix on GPT-3, every token stands after a space, so that the tokenizer takes each by
//! itself, digits too; tokens such as `<GO>` become lower-case words. Two signs that such tokenizers may
//! split into bytes have plain names.

use rot_core::Token;

/// Signs with another name.
const RENAMED: [(Token, &str); 2] = [(Token::DIV, "/"), (Token::TIMES, "by")];

/// A word that stands for no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no word of the problems")]
pub struct UnknownWord(pub String);

/// Appends tokens, a space and a word for each.
pub fn write_words(tokens: &[Token], out: &mut String) {
    for &token in tokens {
        out.push(' ');
        match RENAMED.iter().find(|(renamed, _)| *renamed == token) {
            Some((_, word)) => out.push_str(word),
            None => {
                let text = token.text();
                let name = text.strip_prefix('<').and_then(|text| text.strip_suffix('>'));
                match name {
                    Some(name) => out.extend(name.chars().map(|c| c.to_ascii_lowercase())),
                    None => out.push_str(text),
                }
            }
        }
    }
}

/// The tokens of words between white space.
pub fn parse_words(text: &str) -> Result<Vec<Token>, UnknownWord> {
    let token = |word: &str| {
        let renamed = RENAMED.iter().find(|(_, name)| *name == word).map(|(token, _)| *token);
        let known = || {
            let plain = Token::from_text(word).filter(|_| !word.starts_with('<'));
            plain.or_else(|| Token::from_text(&format!("<{}>", word.to_ascii_uppercase())))
        };
        renamed.or_else(known).ok_or_else(|| UnknownWord(word.to_owned()))
    };
    text.split_whitespace().map(token).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_has_a_word_of_its_own() {
        for &token in Token::ALL {
            let mut text = String::new();
            write_words(&[token], &mut text);
            assert!(text.starts_with(' ') && text.is_ascii(), "{text}");
            assert_eq!(parse_words(&text), Ok(vec![token]), "{text}");
        }
        assert_eq!(parse_words(" go 4 maybe"), Err(UnknownWord("maybe".to_owned())));
        assert_eq!(parse_words("<GO>"), Err(UnknownWord("<GO>".to_owned())));
        assert_eq!(parse_words(" \n"), Ok(Vec::new()));
    }
}
