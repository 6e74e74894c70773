//! Division with remainder: the elementary-school procedure, by trial subtraction.

use rot_core::{
    Done, Facts, Fault, Form, Pause, Problem, SampleRng, Sampling, Thoughts, Token, UBig,
};

use crate::compare::Compare;
use crate::marks::{DIV, MINUS, R, VS};
use crate::number::{Decimal, ONE, ZERO, check_infix, digit, is_zero, lead, split, split_last};
use crate::random::{below, from_big, operand, quotient, to_big};
use crate::sub::Sub;

/// `76÷29` is `2<R>18`. The divisor is not zero.
pub struct Div;

impl Problem for Div {
    fn facts(&self) -> &'static Facts {
        &Facts {
            name: "div",
            form: Form::Infix { operator: Token::DIV, operands: 2 },
            unit: "digits",
            smallest: 1,
            paper_sizes: &[2, 4, 8, 12, 16, 20, 24, 28, 32],
            tokens: &[Token::DIV, Token::R],
            asks: &[&Compare, &Sub],
        }
    }

    fn check(&self, body: &[Token]) -> Result<(), Fault> {
        let numbers = check_infix(body, Token::DIV, 2)?;
        if is_zero(&body[numbers[1].clone()]) {
            return Err(Fault::new(numbers[1].start, "division by zero has no answer"));
        }
        Ok(())
    }

    fn think<'a>(&self, body: &'a [Token], t: &mut Thoughts<'a>) -> Result<Done, Pause> {
        let (left, right) = split(body, Token::DIV)?;
        match t.ask(&Compare, &[left, VS, right])? {
            [Token::LT] => return t.answer(&[ZERO, R, left]),
            [Token::EQ] => return t.answer(&[ONE, R, ZERO]),
            _ => {}
        }

        if t.ask(&Compare, &[left, VS, right, ZERO])? != [Token::GT] {
            let difference = t.ask(&Sub, &[left, MINUS, right])?;
            let (quotient, remainder) = split(t.ask(&Div, &[difference, DIV, right])?, Token::R)?;
            return t.answer(&[&Decimal::new(digit(quotient)? + 1), R, remainder]);
        }

        let (l_rest, l_last) = split_last(left)?;
        let (high, remainder) = split(t.ask(&Div, &[l_rest, DIV, right])?, Token::R)?;
        let low = t.ask(&Div, &[lead(remainder), l_last, DIV, right])?;
        let (low, remainder) = split(low, Token::R)?;
        t.answer(&[high, low, R, remainder])
    }

    /// Divisor, quotient and remainder are drawn, so that quotients of all lengths appear. The
    /// remainder is drawn again where the dividend would have too many digits.
    fn sample(&self, size: u32, sampling: Sampling, rng: &mut SampleRng, body: &mut Vec<Token>) {
        let limit = UBig::from(10u8).pow(size as usize);
        let divisor = loop {
            let divisor = operand(size, sampling, rng);
            if !is_zero(&divisor) {
                break divisor;
            }
        };
        let quotient = quotient(size, &divisor, sampling, rng);
        let multiple = to_big(&divisor) * to_big(&quotient);
        let dividend = loop {
            let remainder = below(&divisor, sampling, rng);
            let dividend = &multiple + to_big(&remainder);
            if dividend < limit {
                break dividend;
            }
        };
        body.extend(from_big(&dividend));
        body.push(Token::DIV);
        body.extend(divisor);
    }
}
