//! Merge sort.

use rand::RngExt;
use rot_core::{Done, Facts, Fault, Form, Pause, Problem, SampleRng, Sampling, Thoughts, Token};

use crate::compare::Compare;
use crate::marks::{COMMA, MERGE, SEP, SORT, VS};
use crate::number::{check_head, check_numbers, compare, parts, split, split_if};
use crate::random::{push_list, term};

/// `<SORT>139,160,434,796,41` is `41,139,160,434,796`.
pub struct Sort;

impl Problem for Sort {
    fn facts(&self) -> &'static Facts {
        &Facts {
            name: "sort",
            form: Form::Prefix { head: Token::SORT, separator: Some(Token::COMMA) },
            unit: "most terms",
            smallest: 2,
            // The paper gives a figure and no table; these span its range.
            paper_sizes: &[4, 8, 16, 32, 64],
            tokens: &[Token::SORT, Token::COMMA, Token::TAIL],
            asks: &[&Merge],
        }
    }

    fn check(&self, body: &[Token]) -> Result<(), Fault> {
        check_numbers(body, check_head(body, Token::SORT)?, Token::COMMA).map(drop)
    }

    fn think<'a>(&self, body: &'a [Token], t: &mut Thoughts<'a>) -> Result<Done, Pause> {
        let (_, terms) = split(body, Token::SORT)?;
        let commas = terms.iter().filter(|&&token| token == Token::COMMA).count();
        if commas == 0 {
            return t.answer(&[terms]);
        }
        // Of an odd number of terms, the left half gets one more.
        let (left, right) = split_at_comma(terms, commas / 2)?;
        let left = t.ask(&Sort, &[SORT, left])?;
        let right = t.ask(&Sort, &[SORT, right])?;
        t.tail(&Merge, &[MERGE, left, SEP, right])
    }

    fn sample(&self, size: u32, sampling: Sampling, rng: &mut SampleRng, body: &mut Vec<Token>) {
        body.push(Token::SORT);
        let terms = rng.random_range(2..=size);
        push_list((0..terms).map(|_| term(sampling, rng)), Token::COMMA, body);
    }
}

/// What stands before and after the comma at `place`.
fn split_at_comma(terms: &[Token], place: usize) -> Result<(&[Token], &[Token]), Pause> {
    let mut commas = terms.iter().enumerate().filter(|&(_, &token)| token == Token::COMMA);
    match commas.nth(place) {
        Some((at, _)) => Ok((&terms[..at], &terms[at + 1..])),
        None => Err(Pause::lost("a comma is missing")),
    }
}

/// `<MERGE>41,139<SEP>160` is `41,139,160`: the smaller head first, then the rest.
pub struct Merge;

impl Problem for Merge {
    fn facts(&self) -> &'static Facts {
        &Facts {
            name: "merge",
            form: Form::Prefix { head: Token::MERGE, separator: Some(Token::SEP) },
            unit: "most terms",
            smallest: 2,
            paper_sizes: &[],
            tokens: &[Token::MERGE, Token::SEP, Token::COMMA],
            asks: &[&Compare],
        }
    }

    fn check(&self, body: &[Token]) -> Result<(), Fault> {
        let lists = parts(body, check_head(body, Token::MERGE)?, Token::SEP);
        for list in lists.iter().filter(|list| !list.is_empty()) {
            let terms = check_numbers(body, list.clone(), Token::COMMA)?;
            let falls = |pair: &&[std::ops::Range<usize>]| {
                compare(&body[pair[0].clone()], &body[pair[1].clone()]).is_gt()
            };
            if let Some(pair) = terms.windows(2).find(falls) {
                return Err(Fault::new(pair[1].start, "both lists must be sorted"));
            }
        }
        match lists.get(2) {
            Some(extra) => Err(Fault::new(extra.start, "expected two lists only")),
            None if lists.len() < 2 => {
                Err(Fault::new(body.len(), "expected '<SEP>' and another list"))
            }
            None => Ok(()),
        }
    }

    fn think<'a>(&self, body: &'a [Token], t: &mut Thoughts<'a>) -> Result<Done, Pause> {
        let (_, lists) = split(body, Token::MERGE)?;
        let (left, right) = split(lists, Token::SEP)?;
        if left.is_empty() || right.is_empty() {
            return t.answer(&[left, right]);
        }
        let (l_head, l_rest) = split_if(left, Token::COMMA).unwrap_or((left, &[]));
        let (r_head, r_rest) = split_if(right, Token::COMMA).unwrap_or((right, &[]));
        let left_first = t.ask(&Compare, &[l_head, VS, r_head])? == [Token::LT];
        let (head, left, right) =
            if left_first { (l_head, l_rest, right) } else { (r_head, left, r_rest) };
        let rest = if left.is_empty() {
            right
        } else if right.is_empty() {
            left
        } else {
            t.ask(&Merge, &[MERGE, left, SEP, right])?
        };
        t.answer(&[head, COMMA, rest])
    }

    /// Two sorted halves, as sorting meets them.
    fn sample(&self, size: u32, sampling: Sampling, rng: &mut SampleRng, body: &mut Vec<Token>) {
        let mut terms: Vec<Vec<Token>> =
            (0..rng.random_range(2..=size)).map(|_| term(sampling, rng)).collect();
        let mut right = terms.split_off(terms.len().div_ceil(2));
        terms.sort_by(|a, b| compare(a, b));
        right.sort_by(|a, b| compare(a, b));
        body.push(Token::MERGE);
        push_list(terms.into_iter(), Token::COMMA, body);
        body.push(Token::SEP);
        push_list(right.into_iter(), Token::COMMA, body);
    }
}
