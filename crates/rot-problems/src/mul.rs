//! Multiplication: digit by digit of the second number, then of the first; sums as tail calls.

use rot_core::{Done, Facts, Fault, Form, Pause, Problem, SampleRng, Sampling, Thoughts, Token};

use crate::add::Add;
use crate::marks::{PLUS, STAR};
use crate::number::{Decimal, ONE, ZERO, check_infix, digit, is_zero, split, split_last};
use crate::random::{operand, push_list};

/// `43*21` is `903`.
pub struct Mul;

impl Problem for Mul {
    fn facts(&self) -> &'static Facts {
        &Facts {
            name: "mul",
            form: Form::Infix { operator: Token::STAR, operands: 2 },
            unit: "digits",
            smallest: 1,
            paper_sizes: &[2, 4, 8, 12, 16, 20, 24, 28, 32],
            tokens: &[Token::STAR, Token::PLUS, Token::TAIL],
            asks: &[&Add],
        }
    }

    fn check(&self, body: &[Token]) -> Result<(), Fault> {
        check_infix(body, Token::STAR, 2).map(drop)
    }

    fn think<'a>(&self, body: &'a [Token], t: &mut Thoughts<'a>) -> Result<Done, Pause> {
        let (left, right) = split(body, Token::STAR)?;
        if is_zero(left) || is_zero(right) {
            return t.answer(&[ZERO]);
        }
        if left == ONE || right == ONE {
            return t.answer(&[if left == ONE { right } else { left }]);
        }
        if left.len() == 1 && right.len() == 1 {
            return t.answer(&[&Decimal::new(digit(left)? * digit(right)?)]);
        }

        let (low, high) = if right.len() == 1 {
            let (rest, last) = split_last(left)?;
            (t.ask(&Mul, &[last, STAR, right])?, t.ask(&Mul, &[rest, STAR, right])?)
        } else {
            let (rest, last) = split_last(right)?;
            (t.ask(&Mul, &[left, STAR, last])?, t.ask(&Mul, &[left, STAR, rest])?)
        };
        t.tail(&Add, &[high, ZERO, PLUS, low])
    }

    fn sample(&self, size: u32, sampling: Sampling, rng: &mut SampleRng, body: &mut Vec<Token>) {
        push_list((0..2).map(|_| operand(size, sampling, rng)), Token::STAR, body);
    }
}

/// `3*9*5` is `135`: two multiplications, a step of matrix chain multiplication.
pub struct TernaryMul;

impl Problem for TernaryMul {
    fn facts(&self) -> &'static Facts {
        &Facts {
            name: "ternary-mul",
            form: Form::Infix { operator: Token::STAR, operands: 3 },
            unit: "digits",
            smallest: 1,
            paper_sizes: &[],
            tokens: &[Token::STAR, Token::TAIL],
            asks: &[&Mul],
        }
    }

    fn check(&self, body: &[Token]) -> Result<(), Fault> {
        check_infix(body, Token::STAR, 3).map(drop)
    }

    fn think<'a>(&self, body: &'a [Token], t: &mut Thoughts<'a>) -> Result<Done, Pause> {
        let (first, others) = split(body, Token::STAR)?;
        let (second, third) = split(others, Token::STAR)?;
        let product = t.ask(&Mul, &[first, STAR, second])?;
        t.tail(&Mul, &[product, STAR, third])
    }

    fn sample(&self, size: u32, sampling: Sampling, rng: &mut SampleRng, body: &mut Vec<Token>) {
        push_list((0..3).map(|_| operand(size, sampling, rng)), Token::STAR, body);
    }
}
