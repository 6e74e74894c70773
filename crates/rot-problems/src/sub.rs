//! Subtraction: the last digits with a borrowed ten first, then the borrow, then the rest.

use rot_core::{Done, Facts, Fault, Form, Pause, Problem, SampleRng, Sampling, Thoughts, Token};

use crate::marks::MINUS;
use crate::number::{Decimal, ONE, check_infix, compare, digit, is_zero, lead, split, split_last};
use crate::random::operand;

/// `432-216` is `216`. The first number is not smaller than the second.
pub struct Sub;

impl Problem for Sub {
    fn facts(&self) -> &'static Facts {
        &Facts {
            name: "sub",
            form: Form::Infix { operator: Token::MINUS, operands: 2 },
            unit: "digits",
            smallest: 1,
            paper_sizes: &[8, 16, 24, 32, 40, 48, 56, 64],
            tokens: &[Token::MINUS],
            asks: &[],
        }
    }

    fn check(&self, body: &[Token]) -> Result<(), Fault> {
        let numbers = check_infix(body, Token::MINUS, 2)?;
        let [left, right] = [&body[numbers[0].clone()], &body[numbers[1].clone()]];
        if compare(left, right).is_lt() {
            let what = "the result would be below zero: put the larger number first";
            return Err(Fault::new(numbers[1].start, what));
        }
        Ok(())
    }

    fn think<'a>(&self, body: &'a [Token], t: &mut Thoughts<'a>) -> Result<Done, Pause> {
        let (left, right) = split(body, Token::MINUS)?;
        let (mut l_rest, l_last) = split_last(left)?;
        let (r_rest, r_last) = split_last(right)?;
        // Up to 19 minus a digit is known by heart.
        if (is_zero(l_rest) || l_rest == ONE) && is_zero(r_rest) {
            let left = 10 * digit(l_rest)? + digit(l_last)?;
            let difference = left.checked_sub(digit(r_last)?);
            return match difference {
                Some(difference) => t.answer(&[&Decimal::new(difference)]),
                None => Err(Pause::lost("the result is below zero")),
            };
        }

        let (spared, last) = split_last(t.ask(&Sub, &[ONE, l_last, MINUS, r_last])?)?;
        if is_zero(spared) {
            l_rest = t.ask(&Sub, &[l_rest, MINUS, ONE])?;
        }
        let rest = if is_zero(r_rest) { l_rest } else { t.ask(&Sub, &[l_rest, MINUS, r_rest])? };
        t.answer(&[lead(rest), last])
    }

    fn sample(&self, size: u32, sampling: Sampling, rng: &mut SampleRng, body: &mut Vec<Token>) {
        let mut left = operand(size, sampling, rng);
        let mut right = operand(size, sampling, rng);
        if compare(&left, &right).is_lt() {
            std::mem::swap(&mut left, &mut right);
        }
        body.extend(left);
        body.push(Token::MINUS);
        body.extend(right);
    }
}
