//! Where a token stands in its context: in its number, in its part, in the whole.
//!
//! The borders of a context, such as `<GO>`, `=` and `<STOP>`, cut it into parts: a question, an answer, the next
//! question. A number is a run of digits.

/// What a token is to those that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A digit, part of a number.
    Digit,
    /// A token that begins or ends a question or an answer.
    Border,
    /// Any other.
    Other,
}

/// The coordinates of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Coordinates {
    /// Tokens before it.
    pub(crate) position: usize,
    /// Its index in its number, from 1. The token that ends a number has the index after its last digit, so that an
    /// end can be found as a digit can; other tokens have 0.
    pub(crate) digit: usize,
    /// Numbers that have begun in the context.
    pub(crate) number: usize,
    /// Numbers that have begun in its part.
    pub(crate) number_in_part: usize,
    /// Borders up to it.
    pub(crate) part: usize,
}

/// A place in a sequence.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    /// Tokens before it.
    pub(crate) position: usize,
    /// Digits since the last token that is none.
    digits: usize,
    numbers: usize,
    numbers_in_part: usize,
    parts: usize,
}

impl Cursor {
    /// Goes on by a token.
    pub(crate) fn step(&mut self, role: Role) -> Coordinates {
        let is_digit = role == Role::Digit;
        let digit = if is_digit || self.digits > 0 { self.digits + 1 } else { 0 };
        if is_digit && self.digits == 0 {
            self.numbers += 1;
            self.numbers_in_part += 1;
        }
        if role == Role::Border {
            self.parts += 1;
        }
        self.digits = if is_digit { digit } else { 0 };
        let coordinates = Coordinates {
            position: self.position,
            digit,
            number: self.numbers,
            number_in_part: self.numbers_in_part,
            part: self.parts,
        };
        if role == Role::Border {
            // The border itself still tells how many numbers there were.
            self.numbers_in_part = 0;
        }
        self.position += 1;
        coordinates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_digits_numbers_and_parts() {
        let roles = [
            Role::Border, // <GO>
            Role::Digit,
            Role::Digit,
            Role::Other, // +
            Role::Digit,
            Role::Border, // =
            Role::Border, // <GO>
            Role::Digit,
            Role::Other,
        ];
        let mut cursor = Cursor::default();
        let found: Vec<_> = roles.iter().map(|&role| cursor.step(role)).collect();
        let column = |of: fn(&Coordinates) -> usize| found.iter().map(of).collect::<Vec<_>>();
        assert_eq!(column(|c| c.position), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(column(|c| c.digit), [0, 1, 2, 3, 1, 2, 0, 1, 2]);
        assert_eq!(column(|c| c.number), [0, 1, 1, 1, 2, 2, 2, 3, 3]);
        assert_eq!(column(|c| c.number_in_part), [0, 1, 1, 1, 2, 2, 0, 1, 1]);
        assert_eq!(column(|c| c.part), [1, 1, 1, 1, 1, 2, 3, 3, 3]);
    }
}
