//! Longest palindromic subsequence of a sequence of digits.

use rot_core::{Done, Facts, Fault, Form, Pause, Problem, SampleRng, Sampling, Thoughts, Token};

use crate::add::Add;
use crate::compare::{Compare, Equal};
use crate::marks::{COMMA, EQUAL, LPS, PLUS, SEMICOLON, VS};
use crate::number::{ONE, TWO, check_digits, check_head, split};
use crate::random::{push_string, two_digits};

/// `<LPS>41253261` is `12521;5`: the subsequence and its length.
pub struct Lps;

impl Problem for Lps {
    fn facts(&self) -> &'static Facts {
        &Facts {
            name: "lps",
            form: Form::Prefix { head: Token::LPS, separator: None },
            unit: "length",
            smallest: 1,
            paper_sizes: &[4, 7, 8, 16, 24, 32, 40, 48, 56],
            tokens: &[Token::LPS, Token::SEMICOLON],
            asks: &[&Equal, &Add, &Compare],
        }
    }

    fn check(&self, body: &[Token]) -> Result<(), Fault> {
        check_digits(body, check_head(body, Token::LPS)?)?;
        if body.len() < 2 {
            return Err(Fault::new(body.len(), "a sequence of digits is missing here"));
        }
        Ok(())
    }

    fn think<'a>(&self, body: &'a [Token], t: &mut Thoughts<'a>) -> Result<Done, Pause> {
        let (_, sequence) = split(body, Token::LPS)?;
        let (first, last, inner) = match sequence {
            [] => return Err(Pause::lost("the sequence is missing")),
            [_] => return t.answer(&[sequence, SEMICOLON, ONE]),
            [_, inner @ .., _] => (&sequence[..1], &sequence[sequence.len() - 1..], inner),
        };

        let ends_meet = t.ask(&Equal, &[EQUAL, first, COMMA, last])? == [Token::TRUE];
        match (ends_meet, inner) {
            (true, []) => t.answer(&[sequence, SEMICOLON, TWO]),
            (false, []) => t.answer(&[first, SEMICOLON, ONE]),
            (true, _) => {
                let (middle, length) = split(t.ask(&Lps, &[LPS, inner])?, Token::SEMICOLON)?;
                let length = t.ask(&Add, &[length, PLUS, TWO])?;
                t.answer(&[first, middle, last, SEMICOLON, length])
            }
            (false, _) => {
                let without_last = t.ask(&Lps, &[LPS, &sequence[..sequence.len() - 1]])?;
                let without_first = t.ask(&Lps, &[LPS, &sequence[1..]])?;
                let (_, l_length) = split(without_last, Token::SEMICOLON)?;
                let (_, r_length) = split(without_first, Token::SEMICOLON)?;
                let order = t.ask(&Compare, &[l_length, VS, r_length])?;
                t.answer(&[if order == [Token::LT] { without_first } else { without_last }])
            }
        }
    }

    fn sample(&self, size: u32, sampling: Sampling, rng: &mut SampleRng, body: &mut Vec<Token>) {
        body.push(Token::LPS);
        push_string(size, two_digits(sampling, rng), rng, body);
    }
}
