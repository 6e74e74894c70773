//! The alphabet: one byte a token in memory, one character or `<NAME>` as text.

use std::fmt;

/// One token. The value is its place in the canonical order of all tokens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, bytemuck::NoUninit)]
#[repr(transparent)]
pub struct Token(u8);

macro_rules! tokens {
    ($($(#[$doc:meta])* $name:ident $text:literal,)*) => {
        #[expect(clippy::upper_case_acronyms, reason = "named after the constants they number")]
        enum Place { $($name),* }

        impl Token {
            $($(#[$doc])* pub const $name: Token = Token(Place::$name as u8);)*

            /// Every token, in canonical order.
            pub const ALL: &'static [Token] = &[$(Token::$name),*];

            /// The token spelt `text`: one character, or a name in angle brackets.
            pub fn from_text(text: &str) -> Option<Token> {
                match text {
                    $($text => Some(Token::$name),)*
                    _ => None,
                }
            }
        }

        const TEXT: &[&str] = &[$($text),*];
    };
}

// The order is part of every stored vocabulary: new tokens go to the end.
tokens! {
    /// Marks what is not supervised in a target; never an input and never an output.
    PAD "<PAD>",
    /// Opens a question.
    GO "<GO>",
    /// Ends an answer.
    STOP "<STOP>",
    /// Asks for the answer of the question just written.
    THINK "<THINK>",
    /// Opens a last sub-question whose answer is the answer.
    TAIL "<TAIL>",
    /// The digit 0.
    D0 "0",
    /// The digit 1.
    D1 "1",
    /// The digit 2.
    D2 "2",
    /// The digit 3.
    D3 "3",
    /// The digit 4.
    D4 "4",
    /// The digit 5.
    D5 "5",
    /// The digit 6.
    D6 "6",
    /// The digit 7.
    D7 "7",
    /// The digit 8.
    D8 "8",
    /// The digit 9.
    D9 "9",
    /// Ends a question.
    EQUALS "=",
    /// Addition.
    PLUS "+",
    /// Subtraction.
    MINUS "-",
    /// Multiplication.
    STAR "*",
    /// Division.
    DIV "÷",
    /// Between quotient and remainder.
    R "<R>",
    /// Comparison.
    VS "<VS>",
    /// Less than.
    LT "<LT>",
    /// Greater than.
    GT "<GT>",
    /// Equal, as the answer of a comparison.
    EQ "<EQ>",
    /// Opens a question of equality.
    EQUAL "<EQUAL>",
    /// Between the items of a list.
    COMMA ",",
    /// True.
    TRUE "<TRUE>",
    /// False.
    FALSE "<FALSE>",
    /// Longest common subsequence.
    LCS "<LCS>",
    /// Longest palindromic subsequence.
    LPS "<LPS>",
    /// Between a solution and its measure.
    SEMICOLON ";",
    /// 0-1 knapsack.
    KNAPSACK "<KNAPSACK>",
    /// Between an item's value and its weight.
    AMPERSAND "&",
    /// Before the knapsack's capacity.
    AT "@",
    /// Before the total value of the chosen items.
    DOLLAR "$",
    /// Matrix chain multiplication.
    MCM "<MCM>",
    /// Between the rows and the columns of a matrix.
    TIMES "×",
    /// Opens a group of matrices.
    OPEN "(",
    /// Closes a group of matrices.
    CLOSE ")",
    /// Between the two groups of a matrix chain.
    BAR "|",
    /// Before the best order so far.
    ACC "<ACC>",
    /// Sorting.
    SORT "<SORT>",
    /// Merging of two sorted lists.
    MERGE "<MERGE>",
    /// Between the two lists of a merge.
    SEP "<SEP>",
}

impl Token {
    /// The token of a decimal digit; `value` is taken modulo 10.
    pub const fn digit(value: u8) -> Token {
        Token(Token::D0.0 + value % 10)
    }

    /// The value of a digit token.
    pub const fn as_digit(self) -> Option<u8> {
        if self.is_digit() { Some(self.0 - Token::D0.0) } else { None }
    }

    /// Whether this is one of the ten digits.
    pub const fn is_digit(self) -> bool {
        self.0 >= Token::D0.0 && self.0 <= Token::D9.0
    }

    /// Whether this is one of the tokens that steer the recursion: PAD, GO, STOP, THINK, TAIL.
    pub const fn is_control(self) -> bool {
        self.0 <= Token::TAIL.0
    }

    /// The place in the canonical order of all tokens.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// One character, or a name in angle brackets.
    pub fn text(self) -> &'static str {
        TEXT[self.index()]
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_is_known_by_its_text_and_its_place() {
        assert_eq!(Token::ALL.len(), 45);
        for (place, &token) in Token::ALL.iter().enumerate() {
            assert_eq!(token.index(), place);
            assert_eq!(Token::from_text(token.text()), Some(token));
            let text = token.text();
            let name = text.starts_with('<') && text.ends_with('>') && text.len() > 2;
            assert!(name || text.chars().count() == 1, "{text}");
        }
    }

    #[test]
    fn digits_have_values() {
        for value in 0..10 {
            assert_eq!(Token::digit(value).as_digit(), Some(value));
            assert_eq!(Token::digit(value).text(), value.to_string());
        }
        assert_eq!(Token::EQUALS.as_digit(), None);
        assert_eq!(Token::TAIL.as_digit(), None);
    }
}
