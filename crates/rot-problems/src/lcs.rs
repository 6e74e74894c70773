//! Longest common subsequence of two sequences of digits.

use rot_core::{Done, Facts, Fault, Form, Pause, Problem, SampleRng, Sampling, Thoughts, Token};

use crate::compare::{Compare, Equal};
use crate::marks::{COMMA, EQUAL, LCS, SEMICOLON, VS};
use crate::number::{Decimal, ZERO, check_digits, parts, split};
use crate::random::{push_string, two_digits};

/// `1234<LCS>2468` is `24;2`: the subsequence and its length.
pub struct Lcs;

impl Problem for Lcs {
    fn facts(&self) -> &'static Facts {
        &Facts {
            name: "lcs",
            form: Form::Infix { operator: Token::LCS, operands: 2 },
            unit: "length",
            smallest: 1,
            paper_sizes: &[3, 4, 8, 12, 16, 20, 24, 28, 32],
            tokens: &[Token::LCS, Token::SEMICOLON],
            asks: &[&Equal, &Compare],
        }
    }

    fn check(&self, body: &[Token]) -> Result<(), Fault> {
        let sides = parts(body, 0..body.len(), Token::LCS);
        sides.iter().try_for_each(|side| check_digits(body, side.clone()))?;
        match sides.get(2) {
            Some(extra) => Err(Fault::new(extra.start, "expected two sequences only")),
            None if sides.len() < 2 => Err(Fault::new(body.len(), "expected another sequence")),
            None => Ok(()),
        }
    }

    fn think<'a>(&self, body: &'a [Token], t: &mut Thoughts<'a>) -> Result<Done, Pause> {
        let (left, right) = split(body, Token::LCS)?;
        if left.is_empty() || right.is_empty() {
            return t.answer(&[SEMICOLON, ZERO]);
        }

        let (l_rest, l_last) = left.split_at(left.len() - 1);
        let (r_rest, r_last) = right.split_at(right.len() - 1);
        if t.ask(&Equal, &[EQUAL, l_last, COMMA, r_last])? == [Token::TRUE] {
            let (rest, _) = split(t.ask(&Lcs, &[l_rest, LCS, r_rest])?, Token::SEMICOLON)?;
            return t.answer(&[rest, l_last, SEMICOLON, &Decimal::new(rest.len() as u64 + 1)]);
        }

        let without_left = t.ask(&Lcs, &[l_rest, LCS, right])?;
        let without_right = t.ask(&Lcs, &[left, LCS, r_rest])?;
        let (_, l_length) = split(without_left, Token::SEMICOLON)?;
        let (_, r_length) = split(without_right, Token::SEMICOLON)?;
        let order = t.ask(&Compare, &[l_length, VS, r_length])?;
        t.answer(&[if order == [Token::LT] { without_right } else { without_left }])
    }

    fn sample(&self, size: u32, sampling: Sampling, rng: &mut SampleRng, body: &mut Vec<Token>) {
        let two = two_digits(sampling, rng);
        push_string(size, two, rng, body);
        body.push(Token::LCS);
        push_string(size, two, rng, body);
    }
}
