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
    /// end can be found as a digit can. Where marks are counted, such as a run of parentheses, those after it go on
    /// from there, up to the next number; other tokens have 0.
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
    /// The index of the last token, 0 after a border.
    index: usize,
    numbers: usize,
    numbers_in_part: usize,
    parts: usize,
}

impl Cursor {
    /// Goes on by a token, and counts marks or does not.
    pub(crate) fn step(&mut self, role: Role, marks: bool) -> Coordinates {
        let is_digit = role == Role::Digit;
        let goes_on = self.digits > 0 || marks && (role == Role::Other || self.index > 0);
        let digit = match is_digit {
            true => self.digits + 1,
            false if goes_on => self.index + 1,
            false => 0,
        };
        if is_digit && self.digits == 0 {
            self.numbers += 1;
            self.numbers_in_part += 1;
        }
        if role == Role::Border {
            self.parts += 1;
        }
        self.digits = if is_digit { digit } else { 0 };
        self.index = if role == Role::Border { 0 } else { digit };
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
        let found: Vec<_> = roles.iter().map(|&role| cursor.step(role, false)).collect();
        let column = |of: fn(&Coordinates) -> usize| found.iter().map(of).collect::<Vec<_>>();
        assert_eq!(column(|c| c.position), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(column(|c| c.digit), [0, 1, 2, 3, 1, 2, 0, 1, 2]);
        assert_eq!(column(|c| c.number), [0, 1, 1, 1, 2, 2, 2, 3, 3]);
        assert_eq!(column(|c| c.number_in_part), [0, 1, 1, 1, 2, 2, 0, 1, 1]);
        assert_eq!(column(|c| c.part), [1, 1, 1, 1, 1, 2, 3, 3, 3]);
    }

    #[test]
    fn marks_can_be_counted() {
        let text = "<((12,(3))=<<6";
        let role = |c: char| match c {
            '<' | '=' => Role::Border,
            c if c.is_ascii_digit() => Role::Digit,
            _ => Role::Other,
        };
        let indices = |marks: bool| -> Vec<usize> {
            let mut cursor = Cursor::default();
            text.chars().map(|c| cursor.step(role(c), marks).digit).collect()
        };
        assert_eq!(indices(false), [0, 0, 0, 1, 2, 3, 0, 1, 2, 0, 0, 0, 0, 1]);
        assert_eq!(indices(true), [0, 1, 2, 1, 2, 3, 4, 1, 2, 3, 4, 0, 0, 1]);
    }
}
