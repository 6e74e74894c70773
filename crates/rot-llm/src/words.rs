//! Tokens as words for models that have a tokenizer of their own.
//!
//! As in the paper's appendix on GPT-3, every token stands after a space, so that the tokenizer takes each by
//! itself, digits too; tokens such as `<GO>` become lower-case words. Two signs that such tokenizers may
//! split into bytes have plain names.

use rot_core::Token;

/// Signs with another name.
const RENAMED: [(Token, &str); 2] = [(Token::DIV, "/"), (Token::TIMES, "by")];

/// Appends tokens, a space and a word for each.
pub(crate) fn write_words(tokens: &[Token], out: &mut String) {
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

/// The token of a word.
pub(crate) fn parse_word(word: &str) -> Option<Token> {
    let renamed = RENAMED.iter().find(|(_, name)| *name == word).map(|(token, _)| *token);
    let known = || {
        let plain = Token::from_text(word).filter(|_| !word.starts_with('<'));
        plain.or_else(|| Token::from_text(&format!("<{}>", word.to_ascii_uppercase())))
    };
    renamed.or_else(known)
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
            assert_eq!(parse_word(text.trim()), Some(token), "{text}");
        }
        assert_eq!(parse_word("maybe"), None);
        assert_eq!(parse_word("<GO>"), None);
    }
}
