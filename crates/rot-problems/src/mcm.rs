//! Matrix chain multiplication: all splits into two groups, one after the other, the best kept.

use std::ops::Range;

use rot_core::{Done, Facts, Fault, Form, Pause, Problem, SampleRng, Sampling, Thoughts, Token};

use crate::add::TernaryAdd;
use crate::compare::Compare;
use crate::marks::{ACC, BAR, CLOSE, COMMA, MCM, OPEN, PLUS, SEMICOLON, STAR, TIMES, VS};
use crate::mul::TernaryMul;
use crate::number::{Decimal, ZERO, check_head, check_number, is_zero, parts, split, split_if};
use crate::random::{push_list, upto_99};

/// `<MCM>4×2,2×8,8×3` is `4×2,(2×8,8×3);72`: the order with the fewest multiplications, and their
/// number. While the splits are tried, the question holds the two groups of the next one and the
/// best order so far: `<MCM>4×2,2×8|8×3<ACC>4×2,(2×8,8×3);72`.
pub struct Mcm;

impl Problem for Mcm {
    fn facts(&self) -> &'static Facts {
        &Facts {
            name: "mcm",
            form: Form::Prefix { head: Token::MCM, separator: Some(Token::COMMA) },
            unit: "matrices",
            smallest: 1,
            paper_sizes: &[2, 4, 6, 8, 10, 12],
            tokens: &[
                Token::MCM,
                Token::TIMES,
                Token::COMMA,
                Token::OPEN,
                Token::CLOSE,
                Token::SEMICOLON,
                Token::BAR,
                Token::ACC,
                Token::TAIL,
            ],
            asks: &[&TernaryMul, &TernaryAdd, &Compare],
        }
    }

    fn check(&self, body: &[Token]) -> Result<(), Fault> {
        let acc = body.iter().position(|&token| token == Token::ACC);
        let start = check_head(body, Token::MCM)?.start;
        let groups = parts(body, start..acc.unwrap_or(body.len()), Token::BAR);
        let matrices: Vec<Range<usize>> =
            groups.iter().flat_map(|group| parts(body, group.clone(), Token::COMMA)).collect();
        check_chain(body, &matrices)?;
        match (acc, groups.len()) {
            (None, 1) => Ok(()),
            (Some(acc), 2) => check_best(body, acc + 1, &matrices),
            (None, _) => Err(Fault::new(body.len(), "expected '<ACC>' and the best order so far")),
            (Some(acc), _) => Err(Fault::new(acc, "expected two groups with '|' between them")),
        }
    }

    fn think<'a>(&self, body: &'a [Token], t: &mut Thoughts<'a>) -> Result<Done, Pause> {
        let (_, question) = split(body, Token::MCM)?;
        let (left, right, best) = match split_if(question, Token::ACC) {
            Some((groups, best)) => {
                let (left, right) = split(groups, Token::BAR)?;
                (left, right, Some(split(best, Token::SEMICOLON)?))
            }
            None => match split_if(question, Token::COMMA) {
                Some((left, right)) => (left, right, None),
                None => return t.answer(&[question, SEMICOLON, ZERO]),
            },
        };

        let (l_order, l_cost) = split(t.ask(&Mcm, &[MCM, left])?, Token::SEMICOLON)?;
        let (r_order, r_cost) = split(t.ask(&Mcm, &[MCM, right])?, Token::SEMICOLON)?;
        let (rows, _) = split(left, Token::TIMES)?;
        let (inner, _) = split(right, Token::TIMES)?;
        let columns = right.rsplit(|&token| token == Token::TIMES).next().unwrap_or(&[]);
        let product = t.ask(&TernaryMul, &[rows, STAR, inner, STAR, columns])?;
        let cost = t.ask(&TernaryAdd, &[l_cost, PLUS, r_cost, PLUS, product])?;

        let (l_open, l_close) = parentheses(l_order);
        let (r_open, r_close) = parentheses(r_order);
        let this: [&[Token]; 9] =
            [l_open, l_order, l_close, COMMA, r_open, r_order, r_close, SEMICOLON, cost];
        let before: [&[Token]; 3];
        let best: &[&[Token]] = match best {
            // Where both cost the same, the earlier order stays.
            Some((order, least)) if t.ask(&Compare, &[cost, VS, least])? != [Token::LT] => {
                before = [order, SEMICOLON, least];
                &before
            }
            _ => &this,
        };

        match split_if(right, Token::COMMA) {
            Some((next, rest)) => {
                let mut question = vec![MCM, left, COMMA, next, BAR, rest, ACC];
                question.extend_from_slice(best);
                t.tail(&Mcm, &question)
            }
            None => t.answer(best),
        }
    }

    /// Dimensions from 1 to 99.
    fn sample(&self, size: u32, sampling: Sampling, rng: &mut SampleRng, body: &mut Vec<Token>) {
        body.push(Token::MCM);
        let mut rows = upto_99(sampling, rng);
        let matrix = |_| {
            let columns = upto_99(sampling, rng);
            let matrix = [&Decimal::new(rows), TIMES, &Decimal::new(columns)].concat();
            rows = columns;
            matrix
        };
        push_list((0..size).map(matrix), Token::COMMA, body);
    }
}

/// The parentheses around an order within another: none around a single matrix.
fn parentheses(order: &[Token]) -> (&'static [Token], &'static [Token]) {
    if order.contains(&Token::COMMA) { (OPEN, CLOSE) } else { (&[], &[]) }
}

/// Checks that matrices can be multiplied with their neighbours.
fn check_chain(body: &[Token], matrices: &[Range<usize>]) -> Result<(), Fault> {
    let mut before: Option<Range<usize>> = None;
    for matrix in matrices {
        let sides = parts(body, matrix.clone(), Token::TIMES);
        for side in &sides {
            check_number(body, side.clone())?;
            if is_zero(&body[side.clone()]) {
                return Err(Fault::new(side.start, "a matrix has at least one row and one column"));
            }
        }
        let [rows, columns] = sides.as_slice() else {
            return Err(Fault::new(matrix.end, "a matrix is rows×columns, such as 4×2"));
        };
        if before.is_some_and(|before| body[before] != body[rows.clone()]) {
            let what = "a matrix needs as many rows as the one before it has columns";
            return Err(Fault::new(rows.start, what));
        }
        before = Some(columns.clone());
    }
    Ok(())
}

/// Checks that the best order so far, from `start`, holds the given matrices, and has a cost.
fn check_best(body: &[Token], start: usize, matrices: &[Range<usize>]) -> Result<(), Fault> {
    let [order, cost] = &parts(body, start..body.len(), Token::SEMICOLON)[..] else {
        return Err(Fault::new(body.len(), "expected an order, ';' and its cost"));
    };
    check_number(body, cost.clone())?;

    // Two things stand in every pair of parentheses, so each comma splits one group.
    let mut groups = vec![0];
    let mut at = order.start;
    let mut matrices = matrices.iter();
    let wrong = |at| Fault::new(at, "the order does not hold the matrices of the chain, in pairs");
    while at < order.end {
        match body[at] {
            Token::OPEN => groups.push(0),
            Token::CLOSE if groups.len() > 1 && groups.pop() == Some(1) => {}
            Token::COMMA => match groups.last_mut() {
                Some(commas) if *commas == 0 => *commas = 1,
                _ => return Err(wrong(at)),
            },
            _ => {
                let matrix = matrices.next().map_or(&[][..], |matrix| &body[matrix.clone()]);
                if matrix.is_empty() || !body[at..order.end].starts_with(matrix) {
                    return Err(wrong(at));
                }
                at += matrix.len() - 1;
            }
        }
        at += 1;
    }
    if matrices.next().is_some() || groups != [1] {
        return Err(wrong(order.end));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str) -> Result<(), usize> {
        Mcm.check(&rot_core::parse_tokens(body).unwrap()).map_err(|fault| fault.at)
    }

    #[test]
    fn a_chain_fits_together() {
        assert_eq!(check("<MCM>4×2"), Ok(()));
        assert_eq!(check("<MCM>4×2,2×8,8×3"), Ok(()));
        assert_eq!(check("<MCM>"), Err(1));
        assert_eq!(check("<MCM>4×2,3×8"), Err(5));
        assert_eq!(check("<MCM>4×0,0×8"), Err(3));
        assert_eq!(check("<MCM>4×2×3"), Err(6));
        assert_eq!(check("<MCM>4×2,"), Err(5));
    }

    #[test]
    fn the_best_order_so_far_holds_the_same_matrices() {
        assert_eq!(check("<MCM>4×2,2×8|8×3<ACC>4×2,(2×8,8×3);72"), Ok(()));
        assert_eq!(check("<MCM>4×2|2×8,8×3<ACC>(4×2,2×8),8×3;72"), Ok(()));
        for wrong in [
            "<MCM>4×2,2×8|8×3",
            "<MCM>4×2,2×8,8×3<ACC>4×2,(2×8,8×3);72",
            "<MCM>4×2,2×8|8×3<ACC>4×2,(2×8,8×3)",
            "<MCM>4×2,2×8|8×3<ACC>4×2,(2×8,8×3);",
            "<MCM>4×2,2×8|8×3<ACC>4×2,2×8,8×3;72",
            "<MCM>4×2,2×8|8×3<ACC>4×2,(2×8);72",
            "<MCM>4×2,2×8|8×3<ACC>4×2,(2×8,8×3;72",
            "<MCM>4×2,2×8|8×3<ACC>4×2,2×8),8×3;72",
            "<MCM>4×2,2×8|8×3<ACC>4×2,(2×8,8×4);72",
            "<MCM>4×2,2×8|8×3<ACC>;72",
        ] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }
}
