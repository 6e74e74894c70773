//! Comparison of numbers and equality of digits: helpers of the larger problems.

use rand::RngExt;
use rot_core::{Done, Facts, Fault, Form, Pause, Problem, SampleRng, Sampling, Thoughts, Token};

use crate::marks::{EQ, GT, LT, VS};
use crate::number::{check_digits, check_head, check_infix, compare, parts, split, split_first};
use crate::random::{operand, push_digits, push_list};

/// `153<VS>159` is `<LT>`: lengths at a glance, then digit by digit from the first.
pub struct Compare;

impl Problem for Compare {
    fn facts(&self) -> &'static Facts {
        &Facts {
            name: "compare",
            form: Form::Infix { operator: Token::VS, operands: 2 },
            unit: "digits",
            smallest: 1,
            paper_sizes: &[],
            tokens: &[Token::VS, Token::LT, Token::GT, Token::EQ],
            asks: &[],
        }
    }

    fn check(&self, body: &[Token]) -> Result<(), Fault> {
        check_infix(body, Token::VS, 2).map(drop)
    }

    fn think<'a>(&self, body: &'a [Token], t: &mut Thoughts<'a>) -> Result<Done, Pause> {
        let (left, right) = split(body, Token::VS)?;
        if left.len() != right.len() || left.len() == 1 {
            return t.answer(&[match compare(left, right) {
                std::cmp::Ordering::Less => LT,
                std::cmp::Ordering::Greater => GT,
                std::cmp::Ordering::Equal => EQ,
            }]);
        }
        let (l_first, l_rest) = split_first(left)?;
        let (r_first, r_rest) = split_first(right)?;
        let mut order = t.ask(&Compare, &[l_first, VS, r_first])?;
        if order == EQ {
            order = t.ask(&Compare, &[l_rest, VS, r_rest])?;
        }
        t.answer(&[order])
    }

    fn sample(&self, size: u32, sampling: Sampling, rng: &mut SampleRng, body: &mut Vec<Token>) {
        push_list((0..2).map(|_| operand(size, sampling, rng)), Token::VS, body);
    }
}

/// `<EQUAL>3,4` is `<FALSE>`.
pub struct Equal;

impl Problem for Equal {
    fn facts(&self) -> &'static Facts {
        &Facts {
            name: "equal",
            form: Form::Prefix { head: Token::EQUAL, separator: Some(Token::COMMA) },
            unit: "digits",
            smallest: 1,
            paper_sizes: &[],
            tokens: &[Token::EQUAL, Token::COMMA, Token::TRUE, Token::FALSE],
            asks: &[],
        }
    }

    fn check(&self, body: &[Token]) -> Result<(), Fault> {
        let sides = parts(body, check_head(body, Token::EQUAL)?, Token::COMMA);
        for side in &sides {
            check_digits(body, side.clone())?;
            if side.is_empty() {
                return Err(Fault::new(side.start, "a digit is missing here"));
            }
        }
        match sides.get(2) {
            Some(extra) => Err(Fault::new(extra.start, "expected two sides only")),
            None if sides.len() < 2 => {
                Err(Fault::new(body.len(), "expected ',' and another digit"))
            }
            None => Ok(()),
        }
    }

    fn think<'a>(&self, body: &'a [Token], t: &mut Thoughts<'a>) -> Result<Done, Pause> {
        let (_, sides) = split(body, Token::EQUAL)?;
        let (left, right) = split(sides, Token::COMMA)?;
        t.answer(&[&[if left == right { Token::TRUE } else { Token::FALSE }]])
    }

    /// Half of the questions are about equal digits.
    fn sample(&self, size: u32, _: Sampling, rng: &mut SampleRng, body: &mut Vec<Token>) {
        body.push(Token::EQUAL);
        let left = body.len();
        push_digits(size, rng, body);
        let right = body.len();
        body.push(Token::COMMA);
        if rng.random_range(0..2u32) == 0 {
            body.extend_from_within(left..right);
        } else {
            push_digits(size, rng, body);
        }
    }
}
