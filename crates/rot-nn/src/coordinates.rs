//! Where a token stands in its context: in its number, in its part, in the whole.
//!
//! The borders of a context, such as `<GO>`, `=` and `<STOP>`, cut it into parts: a question, an answer, the next
//! question. A number is a run of digits; marks that repeat are counted too.

/// What a token is to those that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A digit, part of a number.
    Digit,
    /// A token that begins or ends a part: a question, an answer, what has been found so far.
    Border,
    /// Any other: a mark.
    Other,
}

/// The coordinates of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Coordinates {
    /// Tokens before it.
    pub(crate) position: usize,
    /// Its index in its number, from 1. The token that ends a number has the index after its last digit, so that an
    /// end can be found as a digit can. A mark that repeats the one before it, as parentheses do, has the index after
    /// that one's; other tokens have 0.
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
    /// The token before it, with its role and its index in its number.
    last: Option<(u8, Role, usize)>,
    numbers: usize,
    numbers_in_part: usize,
    parts: usize,
}

impl Cursor {
    /// Goes on by a token.
    pub(crate) fn step(&mut self, id: u8, role: Role) -> Coordinates {
        let digit = match self.last {
            Some((_, Role::Digit, digit)) => digit + 1,
            _ if role == Role::Digit => 1,
            Some((last, Role::Other, digit)) if last == id => digit + 1,
            _ => 0,
        };
        self.last = Some((id, role, digit));
        if role == Role::Digit && digit == 1 {
            self.numbers += 1;
            self.numbers_in_part += 1;
        }
        if role == Role::Border {
            self.parts += 1;
        }
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
    fn counts_digits_marks_numbers_and_parts() {
        let tokens = [
            (0, Role::Border), // <GO>
            (1, Role::Digit),
            (1, Role::Digit),
            (2, Role::Other), // +
            (1, Role::Digit),
            (3, Role::Border), // =
            (0, Role::Border), // <GO>
            (4, Role::Other),  // (
            (4, Role::Other),
            (4, Role::Other),
            (1, Role::Digit),
            (5, Role::Other), // )
            (5, Role::Other),
            (4, Role::Other),
            (3, Role::Border),
            (3, Role::Border),
        ];
        let mut cursor = Cursor::default();
        let found: Vec<_> = tokens.iter().map(|&(id, role)| cursor.step(id, role)).collect();
        let column = |of: fn(&Coordinates) -> usize| found.iter().map(of).collect::<Vec<_>>();
        assert_eq!(column(|c| c.position), Vec::from_iter(0..tokens.len()));
        assert_eq!(column(|c| c.digit), [0, 1, 2, 3, 1, 2, 0, 0, 1, 2, 1, 2, 3, 0, 0, 0]);
        assert_eq!(column(|c| c.number), [0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3]);
        assert_eq!(column(|c| c.number_in_part), [0, 1, 1, 1, 2, 2, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0]);
        assert_eq!(column(|c| c.part), [1, 1, 1, 1, 1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 4, 5]);
    }
}
