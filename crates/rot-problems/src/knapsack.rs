//! The 0-1 knapsack: the first item is left out, or put in if it fits and pays.

use rand::RngExt;
use rot_core::{Done, Facts, Fault, Form, Pause, Problem, SampleRng, Sampling, Thoughts, Token};

use crate::add::Add;
use crate::compare::Compare;
use crate::marks::{AMPERSAND, AT, COMMA, DOLLAR, KNAPSACK, MINUS, PLUS, VS};
use crate::number::{Decimal, ZERO, check_head, check_number, parts, split, split_if};
use crate::random::{push_list, upto_99};
use crate::sub::Sub;

/// `<KNAPSACK>5&12,25&15,19&18@40` is `25&15,19&18$44`: items as value and weight, then the
/// capacity; the items to take and their value.
pub struct Knapsack;

impl Problem for Knapsack {
    fn facts(&self) -> &'static Facts {
        &Facts {
            name: "knapsack",
            form: Form::Prefix { head: Token::KNAPSACK, separator: Some(Token::COMMA) },
            unit: "items",
            smallest: 1,
            paper_sizes: &[2, 4, 6, 8, 10, 12],
            tokens: &[Token::KNAPSACK, Token::AMPERSAND, Token::COMMA, Token::AT, Token::DOLLAR],
            asks: &[&Compare, &Sub, &Add],
        }
    }

    fn check(&self, body: &[Token]) -> Result<(), Fault> {
        let halves = parts(body, check_head(body, Token::KNAPSACK)?, Token::AT);
        let items = halves[0].clone();
        for item in parts(body, items, Token::COMMA) {
            let numbers = parts(body, item.clone(), Token::AMPERSAND);
            numbers.iter().try_for_each(|number| check_number(body, number.clone()))?;
            if numbers.len() != 2 {
                return Err(Fault::new(item.end, "an item is value&weight, such as 12&34"));
            }
        }
        let Some(capacity) = halves.get(1) else {
            return Err(Fault::new(body.len(), "expected '@' and the capacity"));
        };
        check_number(body, capacity.clone())?;
        match halves.get(2) {
            Some(extra) => Err(Fault::new(extra.start, "expected one capacity only")),
            None => Ok(()),
        }
    }

    fn think<'a>(&self, body: &'a [Token], t: &mut Thoughts<'a>) -> Result<Done, Pause> {
        let (_, question) = split(body, Token::KNAPSACK)?;
        let (items, capacity) = split(question, Token::AT)?;
        let (item, others) = split_if(items, Token::COMMA).unwrap_or((items, &[]));
        let (value, weight) = split(item, Token::AMPERSAND)?;
        if others.is_empty() {
            let too_heavy = t.ask(&Compare, &[weight, VS, capacity])? == [Token::GT];
            return if too_heavy {
                t.answer(&[DOLLAR, ZERO])
            } else {
                t.answer(&[item, DOLLAR, value])
            };
        }

        let without = t.ask(&Knapsack, &[KNAPSACK, others, AT, capacity])?;
        if t.ask(&Compare, &[weight, VS, capacity])? == [Token::GT] {
            return t.answer(&[without]);
        }
        let room = t.ask(&Sub, &[capacity, MINUS, weight])?;
        let with = t.ask(&Knapsack, &[KNAPSACK, others, AT, room])?;
        let (_, value_without) = split(without, Token::DOLLAR)?;
        let (items_with, value_with) = split(with, Token::DOLLAR)?;
        let value_with = t.ask(&Add, &[value_with, PLUS, value])?;
        // Where both are worth the same, the item stays out.
        if t.ask(&Compare, &[value_with, VS, value_without])? != [Token::GT] {
            return t.answer(&[without]);
        }
        let comma = if items_with.is_empty() { &[] } else { COMMA };
        t.answer(&[item, comma, items_with, DOLLAR, value_with])
    }

    /// Values and weights from 1 to 99; a capacity that holds the lightest item and at most all.
    fn sample(&self, size: u32, sampling: Sampling, rng: &mut SampleRng, body: &mut Vec<Token>) {
        let items: Vec<[u64; 2]> =
            (0..size).map(|_| [(); 2].map(|()| upto_99(sampling, rng))).collect();
        let total: u64 = items.iter().map(|[_, weight]| weight).sum();
        let lightest = items.iter().map(|&[_, weight]| weight).min().unwrap_or(total);
        let capacity = rng.random_range(lightest..=total);
        body.push(Token::KNAPSACK);
        let item = |&[value, weight]: &[u64; 2]| {
            [&Decimal::new(value), AMPERSAND, &Decimal::new(weight)].concat()
        };
        push_list(items.iter().map(item), Token::COMMA, body);
        body.push(Token::AT);
        body.extend_from_slice(&Decimal::new(capacity));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_without_weight_or_value_is_still_an_item() {
        let body = rot_core::parse_tokens("<KNAPSACK>0&0@0").unwrap();
        assert!(Knapsack.check(&body).is_ok());
    }
}
