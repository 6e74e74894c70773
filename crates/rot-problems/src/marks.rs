//! The marks between numbers, as parts to put questions and answers together from.

use rot_core::Token;

macro_rules! marks {
    ($($name:ident)*) => {
        $(#[doc = concat!("[`Token::", stringify!($name), "`] as a part.")]
        pub const $name: &[Token] = &[Token::$name];)*
    };
}

marks! { PLUS MINUS STAR DIV R VS LT GT EQ EQUAL COMMA LCS LPS SEMICOLON KNAPSACK AMPERSAND AT DOLLAR MCM TIMES OPEN CLOSE BAR ACC SORT MERGE SEP }
