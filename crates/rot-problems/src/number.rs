//! Decimal numbers as slices of digit tokens: dropping the last digit is taking a sub-slice.
//!
//! A number has at least one digit and no leading zero.

use std::cmp::Ordering;
use std::ops::{Deref, Range};

use rot_core::{Fault, Pause, Token};

/// The number 0.
pub const ZERO: &[Token] = &[Token::D0];
/// The number 1.
pub const ONE: &[Token] = &[Token::D1];
/// The number 2.
pub const TWO: &[Token] = &[Token::D2];

/// A number without its last digit, and that digit: `n / 10` and `n % 10`.
pub fn split_last(number: &[Token]) -> Result<(&[Token], &[Token]), Pause> {
    match number.split_at(number.len().saturating_sub(1)) {
        (_, []) => Err(Pause::lost("a number is missing")),
        ([], last) => Ok((ZERO, last)),
        (rest, last) => Ok((rest, last)),
    }
}

/// The first digit, and what follows as a number: leading zeros vanish.
pub fn split_first(number: &[Token]) -> Result<(&[Token], &[Token]), Pause> {
    match number.split_at(number.len().min(1)) {
        ([], _) => Err(Pause::lost("a number is missing")),
        (first, []) => Ok((first, ZERO)),
        (first, rest) => {
            let zeros = rest[..rest.len() - 1].iter().take_while(|&&digit| digit == Token::D0);
            Ok((first, &rest[zeros.count()..]))
        }
    }
}

/// Whether a number is 0.
pub fn is_zero(number: &[Token]) -> bool {
    number == ZERO
}

/// The digits to put before others: none where the number is zero.
pub fn lead(number: &[Token]) -> &[Token] {
    if is_zero(number) { &[] } else { number }
}

/// The value of a number of one digit.
pub fn digit(number: &[Token]) -> Result<u64, Pause> {
    match number {
        [digit] => digit.as_digit().map(u64::from).ok_or(Pause::lost("a digit is missing")),
        _ => Err(Pause::lost("a number should have one digit")),
    }
}

/// Which of two numbers is larger.
pub fn compare(left: &[Token], right: &[Token]) -> Ordering {
    left.len().cmp(&right.len()).then_with(|| left.cmp(right))
}

/// A number made from a value.
pub struct Decimal {
    digits: [Token; 20],
    start: usize,
}

impl Decimal {
    /// The digits of a value.
    pub fn new(mut value: u64) -> Decimal {
        let mut digits = [Token::D0; 20];
        let mut start = digits.len();
        loop {
            start -= 1;
            digits[start] = Token::digit((value % 10) as u8);
            value /= 10;
            if value == 0 {
                return Decimal { digits, start };
            }
        }
    }
}

impl Deref for Decimal {
    type Target = [Token];

    fn deref(&self) -> &[Token] {
        &self.digits[self.start..]
    }
}

/// What stands before and after the first `mark`.
pub fn split(tokens: &[Token], mark: Token) -> Result<(&[Token], &[Token]), Pause> {
    split_if(tokens, mark).ok_or(Pause::lost("a separator is missing"))
}

/// What stands before and after the first `mark`, if there is one.
pub fn split_if(tokens: &[Token], mark: Token) -> Option<(&[Token], &[Token])> {
    let at = tokens.iter().position(|&token| token == mark)?;
    Some((&tokens[..at], &tokens[at + 1..]))
}

/// The places of the parts of `body[range]` between the marks.
pub fn parts(body: &[Token], range: Range<usize>, mark: Token) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = range.start;
    for at in range.clone() {
        if body[at] == mark {
            parts.push(start..at);
            start = at + 1;
        }
    }
    parts.push(start..range.end);
    parts
}

/// Checks that `body[range]` is a number.
pub fn check_number(body: &[Token], range: Range<usize>) -> Result<(), Fault> {
    check_digits(body, range.clone())?;
    if range.is_empty() {
        return Err(Fault::new(range.start, "a number is missing here"));
    }
    if range.len() > 1 && body[range.start] == Token::D0 {
        return Err(Fault::new(range.start, "a number has no leading zeros: leave them out"));
    }
    Ok(())
}

/// Checks that `body[range]` is made of digits.
pub fn check_digits(body: &[Token], range: Range<usize>) -> Result<(), Fault> {
    match range.clone().find(|&at| !body[at].is_digit()) {
        Some(at) => Err(Fault::new(at, format!("expected a digit, not '{}'", body[at]))),
        None => Ok(()),
    }
}

/// Checks that a body begins with its head, and gives the place of what follows.
pub fn check_head(body: &[Token], head: Token) -> Result<Range<usize>, Fault> {
    match body.first() {
        Some(&first) if first == head => Ok(1..body.len()),
        _ => Err(Fault::new(0, format!("expected '{head}' in front"))),
    }
}

/// Checks a body that is numbers with a mark between them, and gives the places of the numbers.
pub fn check_numbers(
    body: &[Token],
    range: Range<usize>,
    mark: Token,
) -> Result<Vec<Range<usize>>, Fault> {
    let parts = parts(body, range, mark);
    parts.iter().try_for_each(|part| check_number(body, part.clone()))?;
    Ok(parts)
}

/// Checks a body that is `operands` numbers with an operator between them.
pub fn check_infix(
    body: &[Token],
    operator: Token,
    operands: usize,
) -> Result<Vec<Range<usize>>, Fault> {
    let parts = check_numbers(body, 0..body.len(), operator)?;
    match parts.get(operands) {
        Some(extra) => Err(Fault::new(extra.start, format!("expected {operands} numbers only"))),
        None if parts.len() < operands => {
            Err(Fault::new(body.len(), format!("expected '{operator}' and another number")))
        }
        None => Ok(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rot_core::parse_tokens;

    fn tokens(text: &str) -> Vec<Token> {
        parse_tokens(text).unwrap()
    }

    #[test]
    fn a_number_comes_apart_at_either_end() {
        let number = tokens("5003");
        let (rest, last) = split_last(&number).ok().unwrap();
        assert_eq!((rest, last), (&tokens("500")[..], &tokens("3")[..]));
        let (first, rest) = split_first(&number).ok().unwrap();
        assert_eq!((first, rest), (&tokens("5")[..], &tokens("3")[..]));
        let number = tokens("400");
        let (first, rest) = split_first(&number).ok().unwrap();
        assert_eq!((first, rest), (&tokens("4")[..], ZERO));
        assert!(split_last(&[]).is_err() && split_first(&[]).is_err());
    }

    #[test]
    fn values_become_digits() {
        assert_eq!(&*Decimal::new(0), ZERO);
        assert_eq!(&*Decimal::new(18_446), &tokens("18446")[..]);
        assert_eq!(Decimal::new(u64::MAX).len(), 20);
    }

    #[test]
    fn a_bad_number_is_shown_where_it_is() {
        let fault = |text: &str| check_infix(&tokens(text), Token::PLUS, 2).unwrap_err().at;
        assert_eq!(fault("12+"), 3);
        assert_eq!(fault("+12"), 0);
        assert_eq!(fault("12"), 2);
        assert_eq!(fault("1+012"), 2);
        assert_eq!(fault("1+2+3"), 4);
        assert_eq!(fault("1+2*3"), 3);
        assert!(check_infix(&tokens("0+10"), Token::PLUS, 2).is_ok());
    }
}
