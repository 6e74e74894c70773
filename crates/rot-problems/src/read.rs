//! Questions as people type them, and as token text.
//!
//! `408+351`, `76/29`, `lcs 1234 2468`, `sort 3 1 2`, `<GO>38<VS>74=`: what is typed becomes tokens
//! one by one; a name in front chooses the problem, otherwise the operator does; the problem itself
//! says whether the question is well made.

use rot_core::{Fault, Form, Problem, Token, next_piece, shorten};

use crate::PROBLEMS;

/// A question that has an answer.
#[derive(Clone)]
pub struct Question {
    /// The problem it belongs to.
    pub problem: &'static dyn Problem,
    /// All tokens, from `<GO>` to `=`.
    pub tokens: Vec<Token>,
}

/// A text that is not a question, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at position {position}: {what}")]
pub struct ReadError {
    /// The place of the first character at fault, counted in characters from 1.
    pub position: usize,
    /// What is wrong there.
    pub what: String,
}

/// Reads a question about one of the built-in problems.
pub fn read(text: &str) -> Result<Question, ReadError> {
    read_among(PROBLEMS, text)
}

/// Reads a question about one of the given problems.
pub fn read_among(problems: &[&'static dyn Problem], text: &str) -> Result<Question, ReadError> {
    let mut typed = Typed::lex(text)?;
    let named = typed.take_name(problems)?;
    let (problem, body) = match named {
        Some(problem) => (problem, typed.arguments_of(problem)?),
        None => typed.expression(problems)?,
    };
    let at_fault = |fault: Fault| ReadError {
        position: body.get(fault.at).map_or(typed.end, |&(_, position)| position),
        what: fault.what,
    };
    let bare: Vec<Token> = body.iter().map(|&(token, _)| token).collect();
    problem.check(&bare).map_err(at_fault)?;

    let mut tokens = Vec::with_capacity(bare.len() + 2);
    tokens.push(Token::GO);
    tokens.extend(bare);
    tokens.push(Token::EQUALS);
    Ok(Question { problem, tokens })
}

/// The names of some problems, for messages.
fn names(problems: &[&'static dyn Problem]) -> String {
    let names: Vec<&str> = problems.iter().map(|problem| problem.name()).collect();
    names.join(", ")
}

/// A piece of what people type.
struct Piece {
    kind: Kind,
    /// The place of its first character.
    position: usize,
    /// Whether white space stands before it.
    after_gap: bool,
}

enum Kind {
    Token(Token),
    Word(String),
}

impl Piece {
    fn is(&self, token: Token) -> bool {
        matches!(self.kind, Kind::Token(own) if own == token)
    }
}

/// A body with the position each token was typed at.
type Body = Vec<(Token, usize)>;

/// A question piece by piece, without the `<GO>` and the `=` at its ends.
struct Typed {
    pieces: Vec<Piece>,
    /// The position after the last character.
    end: usize,
}

impl Typed {
    fn lex(text: &str) -> Result<Typed, ReadError> {
        let mut pieces = Vec::new();
        let mut after_gap = false;
        let mut rest = text.trim_end();
        let mut position = 1;
        while let Some(first) = rest.chars().next() {
            let length = if first.is_whitespace() {
                after_gap = true;
                first.len_utf8()
            } else {
                let (kind, length) = lex_piece(rest).map_err(|piece| ReadError {
                    position,
                    what: format!("unknown token '{}'", shorten(piece)),
                })?;
                pieces.push(Piece { kind, position, after_gap });
                after_gap = false;
                length
            };
            position += rest[..length].chars().count();
            rest = &rest[length..];
        }

        pieces.pop_if(|last| last.is(Token::EQUALS));
        if pieces.first().is_some_and(|first| first.is(Token::GO)) {
            pieces.remove(0);
        }
        if pieces.is_empty() {
            let what = "the question is empty: try 408+351 or lcs 1234 2468".into();
            return Err(ReadError { position: 1, what });
        }
        Ok(Typed { pieces, end: position })
    }

    /// Takes the problem's name off the front, if there is one.
    fn take_name(
        &mut self,
        problems: &[&'static dyn Problem],
    ) -> Result<Option<&'static dyn Problem>, ReadError> {
        let Some(Piece { kind: Kind::Word(word), position, .. }) = self.pieces.first() else {
            return Ok(None);
        };
        let Some(&problem) =
            problems.iter().find(|problem| problem.name().eq_ignore_ascii_case(word))
        else {
            let what =
                format!("unknown problem '{}': there are {}", shorten(word), names(problems));
            return Err(ReadError { position: *position, what });
        };
        self.pieces.remove(0);
        Ok(Some(problem))
    }

    /// The body of a question that began with the problem's name. A gap between two numbers stands
    /// for whatever separates arguments; between operands, a comma or a cross does too.
    fn arguments_of(&self, problem: &'static dyn Problem) -> Result<Body, ReadError> {
        let form = problem.facts().form;
        let mut body = self.tokens(form.separator())?;
        match form {
            Form::Prefix { head, .. } => {
                if body.first().is_none_or(|&(token, _)| token != head) {
                    body.insert(0, (head, 1));
                }
            }
            Form::Infix { operator, .. } => {
                for (token, _) in &mut body {
                    if matches!(*token, Token::COMMA | Token::TIMES) {
                        *token = operator;
                    }
                }
            }
        }
        Ok(body)
    }

    /// The body of a question without a name, and the problem that its operator belongs to.
    fn expression(
        &self,
        problems: &[&'static dyn Problem],
    ) -> Result<(&'static dyn Problem, Body), ReadError> {
        let mut body = self.tokens(None)?;
        if let Some(problem) = likely_problem(problems, &body) {
            return Ok((problem, body));
        }
        // People write a cross for multiplication, too.
        for (token, _) in &mut body {
            if *token == Token::TIMES {
                *token = Token::STAR;
            }
        }
        if let Some(problem) = likely_problem(problems, &body) {
            return Ok((problem, body));
        }
        let mark = body.iter().find(|(token, _)| !token.is_digit());
        Err(match mark {
            Some(&(token, position)) => {
                let what = format!(
                    "no question has '{token}' here: begin with one of {}, or see 'rot --help'",
                    names(problems)
                );
                ReadError { position, what }
            }
            None => {
                let what = "a number is not a question: an operator is missing, as in 408+351";
                ReadError { position: self.end, what: what.into() }
            }
        })
    }

    /// The tokens with their positions. A gap between two digits becomes `gap`.
    fn tokens(&self, gap: Option<Token>) -> Result<Body, ReadError> {
        let mut body = Body::new();
        for Piece { kind, position, after_gap } in &self.pieces {
            let fault = |what| Err(ReadError { position: *position, what });
            let token = match kind {
                Kind::Word(word) => return fault(format!("unknown word '{}'", shorten(word))),
                Kind::Token(token) if token.is_control() || *token == Token::EQUALS => {
                    return fault(format!("'{token}' has no place inside a question"));
                }
                Kind::Token(token) => *token,
            };
            let before_is_digit = body.last().is_some_and(|(before, _)| before.is_digit());
            if *after_gap && token.is_digit() && before_is_digit {
                match gap {
                    Some(gap) => body.push((gap, *position)),
                    None => return fault("two numbers with nothing between them".into()),
                }
            }
            body.push((token, *position));
        }
        Ok(body)
    }
}

/// The problem that a body belongs to, by its form.
pub fn problem_of(
    problems: &[&'static dyn Problem],
    body: &[Token],
) -> Option<&'static dyn Problem> {
    problems.iter().copied().find(|problem| problem.facts().form.fits(body))
}

/// The problem that a body belongs to; failing that, one with the same mark, to say what is wrong.
fn likely_problem(problems: &[&'static dyn Problem], body: &Body) -> Option<&'static dyn Problem> {
    let bare: Vec<Token> = body.iter().map(|&(token, _)| token).collect();
    let mark = bare.iter().copied().find(|token| !token.is_digit());
    let similar = |problem: &&&'static dyn Problem| Some(problem.facts().form.mark()) == mark;
    problem_of(problems, &bare).or_else(|| problems.iter().rfind(similar).copied())
}

/// The piece at the start of `text` and its length, or what is there instead of a token.
fn lex_piece(text: &str) -> Result<(Kind, usize), &str> {
    if text.starts_with(|first: char| first.is_ascii_alphabetic()) {
        let word = word(text);
        return Ok((kind_of_word(word), word.len()));
    }
    let piece = next_piece(text).unwrap_or(text);
    match token_of(piece) {
        Some(token) => Ok((Kind::Token(token), piece.len())),
        None => Err(piece),
    }
}

/// The word at the start of `text`: letters, and hyphens between letters.
fn word(text: &str) -> &str {
    let bytes = text.as_bytes();
    let inside = |at: usize| {
        bytes[at].is_ascii_alphabetic()
            || bytes[at] == b'-' && bytes.get(at + 1).is_some_and(u8::is_ascii_alphabetic)
    };
    let end = (0..bytes.len()).find(|&at| !inside(at)).unwrap_or(bytes.len());
    &text[..end]
}

fn kind_of_word(word: &str) -> Kind {
    match word.to_ascii_lowercase().as_str() {
        "x" => Kind::Token(Token::TIMES),
        "vs" => Kind::Token(Token::VS),
        _ => Kind::Word(word.to_owned()),
    }
}

/// The token of a piece, in the spellings people use.
fn token_of(piece: &str) -> Option<Token> {
    match piece {
        "/" | "∕" => Some(Token::DIV),
        "−" | "–" => Some(Token::MINUS),
        "·" | "⋅" | "∗" => Some(Token::STAR),
        _ => Token::from_text(piece),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rot_core::Text;

    fn tokens(text: &str) -> String {
        match read(text) {
            Ok(question) => {
                format!("{} {}", question.problem.name(), Text(&question.tokens))
            }
            Err(error) => panic!("{text}: {error}"),
        }
    }

    fn refused(text: &str) -> (usize, String) {
        match read(text) {
            Ok(question) => panic!("{text} was read as {}", Text(&question.tokens)),
            Err(error) => (error.position, error.what),
        }
    }

    #[test]
    fn what_people_type_is_understood() {
        for (typed, question) in [
            ("408+351", "add <GO>408+351="),
            (" 408 + 351 = ", "add <GO>408+351="),
            ("add 408 351", "add <GO>408+351="),
            ("add 408+351", "add <GO>408+351="),
            ("<GO>408+351=", "add <GO>408+351="),
            ("432-216", "sub <GO>432-216="),
            ("432−216", "sub <GO>432-216="),
            ("43*21", "mul <GO>43*21="),
            ("43×21", "mul <GO>43*21="),
            ("43 x 21", "mul <GO>43*21="),
            ("mul 43x21", "mul <GO>43*21="),
            ("76/29", "div <GO>76÷29="),
            ("76÷29", "div <GO>76÷29="),
            ("div 76, 29", "div <GO>76÷29="),
            ("38 vs 74", "compare <GO>38<VS>74="),
            ("Compare 38 74", "compare <GO>38<VS>74="),
            ("compare 38 VS 74", "compare <GO>38<VS>74="),
            ("<GO>38<VS>74=", "compare <GO>38<VS>74="),
            ("equal 3 4", "equal <GO><EQUAL>3,4="),
            ("<EQUAL>3,4", "equal <GO><EQUAL>3,4="),
            ("lcs 1234 2468", "lcs <GO>1234<LCS>2468="),
            ("LCS 1234, 2468", "lcs <GO>1234<LCS>2468="),
            ("1234<LCS>2468=", "lcs <GO>1234<LCS>2468="),
            ("<GO><LCS>73=", "lcs <GO><LCS>73="),
            ("<GO>9<LCS>=", "lcs <GO>9<LCS>="),
            ("lps 41253261", "lps <GO><LPS>41253261="),
            ("<LPS>0041", "lps <GO><LPS>0041="),
            ("knapsack 5&12,25&15,19&18@40", "knapsack <GO><KNAPSACK>5&12,25&15,19&18@40="),
            ("knapsack 5&12 25&15 @ 40", "knapsack <GO><KNAPSACK>5&12,25&15@40="),
            ("mcm 4x2,2x8,8x3", "mcm <GO><MCM>4×2,2×8,8×3="),
            ("mcm 4×2 2×8", "mcm <GO><MCM>4×2,2×8="),
            ("sort 139,160,41", "sort <GO><SORT>139,160,41="),
            ("sort 139 160 41", "sort <GO><SORT>139,160,41="),
            ("merge 1,3 2,4", "merge <GO><MERGE>1,3<SEP>2,4="),
            ("merge 1,3<SEP>2,4", "merge <GO><MERGE>1,3<SEP>2,4="),
            ("108+0+60", "ternary-add <GO>108+0+60="),
            ("ternary-add 108 0 60", "ternary-add <GO>108+0+60="),
            ("3*9*5", "ternary-mul <GO>3*9*5="),
            ("3x9x5", "ternary-mul <GO>3*9*5="),
        ] {
            assert_eq!(tokens(typed), question, "{typed}");
        }
    }

    #[test]
    fn what_is_wrong_is_shown_where_it_is() {
        for (typed, position, what) in [
            ("", 1, "empty"),
            ("  ", 1, "empty"),
            ("<GO>=", 1, "empty"),
            ("12+", 4, "a number is missing"),
            ("+12", 1, "a number is missing"),
            ("12", 3, "an operator is missing"),
            ("12 34", 4, "nothing between"),
            ("12+34+56+78", 10, "3 numbers only"),
            ("12+3a", 5, "unknown word 'a'"),
            ("12#3", 3, "unknown token '#'"),
            ("12+<FOO>", 4, "unknown token '<FOO>'"),
            ("5/0", 3, "division by zero"),
            ("12-13", 4, "below zero"),
            ("007+5", 1, "leading zeros"),
            ("-5+3", 1, "a number is missing"),
            ("<GO>1+2=3<STOP>", 8, "no place inside"),
            ("<GO>1+2=<GO>1+2=", 8, "no place inside"),
            ("gcd 12 18", 1, "unknown problem 'gcd': there are add, sub"),
            ("lcs 1234", 9, "expected another sequence"),
            ("lps", 4, "missing"),
            ("lps 12 34", 8, "nothing between"),
            ("12+cL", 4, "unknown word 'cL'"),
            ("sort", 5, "missing"),
            ("sort 3,,4", 8, "missing"),
            ("knapsack 5&12", 14, "the capacity"),
            ("mcm 4x2,3x8", 9, "as many rows"),
            ("merge 3,1 2", 9, "sorted"),
            ("1;2", 2, "no question has ';' here"),
        ] {
            let (at, message) = refused(typed);
            assert!(message.contains(what), "{typed}: {message}");
            assert_eq!(at, position, "{typed}: {message}");
        }
    }

    #[test]
    fn junk_is_refused_with_a_short_message() {
        for junk in ["a".repeat(1 << 20), "<".repeat(1 << 20), "÷".repeat(1 << 20)] {
            assert!(refused(&junk).1.len() < 200);
        }
    }

    #[test]
    fn every_form_belongs_to_one_problem() {
        for (place, one) in PROBLEMS.iter().enumerate() {
            for other in &PROBLEMS[..place] {
                assert_ne!(
                    one.facts().form,
                    other.facts().form,
                    "{} and {}",
                    one.name(),
                    other.name()
                );
                assert_ne!(one.name(), other.name());
            }
        }
    }
}
