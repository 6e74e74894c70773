//! Addition: the last digits first, then the carry, then the rest.

use rot_core::{Done, Facts, Fault, Form, Pause, Problem, SampleRng, Sampling, Thoughts, Token};

use crate::marks::PLUS;
use crate::number::{Decimal, ONE, check_infix, digit, is_zero, lead, split, split_last};
use crate::random::{operand, push_list};

/// `408+351` is `759`.
pub struct Add;

impl Problem for Add {
    fn facts(&self) -> &'static Facts {
        &Facts {
            name: "add",
            form: Form::Infix { operator: Token::PLUS, operands: 2 },
            unit: "digits",
            smallest: 1,
            paper_sizes: &[8, 16, 24, 32, 40, 48, 56, 64],
            tokens: &[Token::PLUS],
            asks: &[],
        }
    }

    fn check(&self, body: &[Token]) -> Result<(), Fault> {
        check_infix(body, Token::PLUS, 2).map(drop)
    }

    fn think<'a>(&self, body: &'a [Token], t: &mut Thoughts<'a>) -> Result<Done, Pause> {
        let (left, right) = split(body, Token::PLUS)?;
        if left.len() == 1 && right.len() == 1 {
            return t.answer(&[&Decimal::new(digit(left)? + digit(right)?)]);
        }

        let (mut l_rest, l_last) = split_last(left)?;
        let (r_rest, r_last) = split_last(right)?;
        let (carry, last) = split_last(t.ask(&Add, &[l_last, PLUS, r_last])?)?;
        if !is_zero(carry) {
            l_rest = t.ask(&Add, &[l_rest, PLUS, ONE])?;
        }

        let rest = if is_zero(l_rest) {
            r_rest
        } else if is_zero(r_rest) {
            l_rest
        } else {
            t.ask(&Add, &[l_rest, PLUS, r_rest])?
        };
        t.answer(&[lead(rest), last])
    }

    fn sample(&self, size: u32, sampling: Sampling, rng: &mut SampleRng, body: &mut Vec<Token>) {
        push_list((0..2).map(|_| operand(size, sampling, rng)), Token::PLUS, body);
    }
}

/// `108+0+60` is `168`: two additions, a step of matrix chain multiplication.
pub struct TernaryAdd;

impl Problem for TernaryAdd {
    fn facts(&self) -> &'static Facts {
        &Facts {
            name: "ternary-add",
            form: Form::Infix { operator: Token::PLUS, operands: 3 },
            unit: "digits",
            smallest: 1,
            paper_sizes: &[],
            tokens: &[Token::PLUS, Token::TAIL],
            asks: &[&Add],
        }
    }

    fn check(&self, body: &[Token]) -> Result<(), Fault> {
        check_infix(body, Token::PLUS, 3).map(drop)
    }

    fn think<'a>(&self, body: &'a [Token], t: &mut Thoughts<'a>) -> Result<Done, Pause> {
        let (first, others) = split(body, Token::PLUS)?;
        let (second, third) = split(others, Token::PLUS)?;
        let sum = t.ask(&Add, &[first, PLUS, second])?;
        t.tail(&Add, &[sum, PLUS, third])
    }

    fn sample(&self, size: u32, sampling: Sampling, rng: &mut SampleRng, body: &mut Vec<Token>) {
        push_list((0..3).map(|_| operand(size, sampling, rng)), Token::PLUS, body);
    }
}
