//! Random numbers of any length, as the paper draws them.
//!
//! Logarithms come from the crate `libm`, in software: the standard library's differ between
//! systems in the last bit, and a seed would give other questions there.

use rand::{Rng, RngExt};
use rot_core::{SampleRng, Sampling, Token, UBig};

use crate::number::{Decimal, compare};

/// The offset of the extended log-uniform distribution for operands (paper, "The Arithmetic
/// Problems").
const OPERAND_OFFSET: f64 = 3.0;
/// The offset for the terms of a list (paper, "Sorting").
const TERM_OFFSET: f64 = 5.0;

/// Adds digits, each uniform.
pub fn push_digits(count: u32, rng: &mut SampleRng, out: &mut Vec<Token>) {
    out.extend((0..count).map(|_| Token::digit(rng.random_range(0..10))));
}

/// The two digits that strings with repetitive digits are made of, so that they have much in common.
pub fn two_digits(sampling: Sampling, rng: &mut SampleRng) -> Option<[Token; 2]> {
    (sampling == Sampling::Repetitive).then(|| {
        let first = rng.random_range(0..10);
        [first, (first + rng.random_range(1..10)) % 10].map(Token::digit)
    })
}

/// Adds digits, each uniform: one of two, or any.
pub fn push_string(count: u32, two: Option<[Token; 2]>, rng: &mut SampleRng, out: &mut Vec<Token>) {
    match two {
        Some(two) => out.extend((0..count).map(|_| two[rng.random_range(0..two.len())])),
        None => push_digits(count, rng, out),
    }
}

/// From 1 to 99, all equally likely; with repetitive digits one of 1 to 9, alone, twice or before a zero.
pub fn upto_99(sampling: Sampling, rng: &mut SampleRng) -> u64 {
    match sampling {
        Sampling::Paper | Sampling::Uniform => rng.random_range(1..=99),
        Sampling::Repetitive => rng.random_range(1..=9) * [1, 10, 11][rng.random_range(0..3)],
    }
}

/// Adds items with a separator between them.
pub fn push_list(items: impl Iterator<Item = Vec<Token>>, separator: Token, out: &mut Vec<Token>) {
    for (place, item) in items.enumerate() {
        if place > 0 {
            out.push(separator);
        }
        out.extend(item);
    }
}

/// A number of at most `size` digits.
pub fn operand(size: u32, sampling: Sampling, rng: &mut SampleRng) -> Vec<Token> {
    below(&power_of_ten(size), sampling, rng)
}

/// A number below `bound`, which is not zero.
pub fn below(bound: &[Token], sampling: Sampling, rng: &mut SampleRng) -> Vec<Token> {
    draw(bound, log(bound), OPERAND_OFFSET, sampling, rng)
}

/// A number below `10^size / divisor`. That bound is not a whole number: the largest quotient is
/// as much rarer as the bound leaves of it.
pub fn quotient(
    size: u32,
    divisor: &[Token],
    sampling: Sampling,
    rng: &mut SampleRng,
) -> Vec<Token> {
    let dividends = power_of_ten(size);
    let quotients = (to_big(&dividends) - UBig::ONE) / to_big(divisor) + UBig::ONE;
    let log_bound = log(&dividends) - log(divisor);
    draw(&from_big(&quotients), log_bound, OPERAND_OFFSET, sampling, rng)
}

/// A term of a list to sort: below 1000.
pub fn term(sampling: Sampling, rng: &mut SampleRng) -> Vec<Token> {
    let bound = power_of_ten(3);
    draw(&bound, log(&bound), TERM_OFFSET, sampling, rng)
}

/// A number below a bound β with the given logarithm. `bound` is the first whole number from β on.
fn draw(
    bound: &[Token],
    log_bound: f64,
    offset: f64,
    sampling: Sampling,
    rng: &mut SampleRng,
) -> Vec<Token> {
    let mut paper = || log_uniform(bound, log_with_offset(log_bound, offset), offset, rng);
    match sampling {
        Sampling::Paper => paper(),
        Sampling::Uniform => uniform(bound, rng),
        Sampling::Repetitive => {
            let number = paper();
            repetitive(bound, number, rng)
        }
    }
}

/// A number as long as another, of its first digit and one more. Where that reaches the bound, it is the
/// first digit over and over, or else the number itself.
fn repetitive(bound: &[Token], number: Vec<Token>, rng: &mut SampleRng) -> Vec<Token> {
    let digits = [number[0], Token::digit(rng.random_range(0..10))];
    let mut mixed = number.clone();
    for digit in &mut mixed[1..] {
        *digit = digits[rng.random_range(0..2)];
    }
    let same = vec![number[0]; number.len()];
    let fits = |number: &Vec<Token>| compare(number, bound).is_lt();
    [mixed, same].into_iter().find(fits).unwrap_or(number)
}

/// A number below `bound`, all equally likely.
fn uniform(bound: &[Token], rng: &mut SampleRng) -> Vec<Token> {
    let most = bound.first().and_then(|digit| digit.as_digit()).unwrap_or(9);
    loop {
        // The first digit is at most that of the bound: at least every other draw fits.
        let mut number = vec![Token::digit(rng.random_range(0..=most))];
        push_digits(bound.len() as u32 - 1, rng, &mut number);
        if number.as_slice() < bound {
            let zeros = number.iter().take_while(|&&digit| digit == Token::D0).count();
            number.drain(..zeros.min(number.len() - 1));
            return number;
        }
    }
}

/// The paper's `U_log(0, β, offset)`: `floor(exp(r) - offset)` for a uniform r below
/// `high = log(β + offset)`. No number reaches `bound`.
fn log_uniform(bound: &[Token], high: f64, offset: f64, rng: &mut SampleRng) -> Vec<Token> {
    let low = libm::log(offset);
    loop {
        let r = low + (high - low) * unit(rng);
        let number = floor_exp(r, offset, rng);
        // Rounding may reach the bound itself.
        if compare(&number, bound).is_lt() {
            return number;
        }
    }
}

/// `floor(exp(r) - offset)` with all its digits. A float knows the first ten of them; within so
/// small a step the distribution is flat, and the others are drawn uniformly.
fn floor_exp(r: f64, offset: f64, rng: &mut SampleRng) -> Vec<Token> {
    const KNOWN: u32 = 10;
    if r < f64::from(KNOWN) * std::f64::consts::LN_10 {
        return Decimal::new((libm::exp(r) - offset).max(0.0) as u64).to_vec();
    }
    let length = (r / std::f64::consts::LN_10).floor();
    let first = libm::exp(r - (length - f64::from(KNOWN - 1)) * std::f64::consts::LN_10);
    let mut number = Decimal::new(first as u64).to_vec();
    push_digits(length as u32 - (KNOWN - 1), rng, &mut number);
    number
}

/// The logarithm of a number of any length but zero.
fn log(number: &[Token]) -> f64 {
    let (first, rest) = number.split_at(number.len().min(17));
    let value = |sum: f64, digit: &Token| 10.0 * sum + f64::from(digit.as_digit().unwrap_or(0));
    libm::log(first.iter().fold(0.0, value)) + rest.len() as f64 * std::f64::consts::LN_10
}

/// `log(exp(x) + offset)`, also where `exp(x)` is too large for a float.
fn log_with_offset(x: f64, offset: f64) -> f64 {
    x + libm::log1p(offset * libm::exp(-x))
}

fn power_of_ten(exponent: u32) -> Vec<Token> {
    let mut number = vec![Token::D0; exponent as usize + 1];
    number[0] = Token::D1;
    number
}

/// A number in [0, 1) with 53 random bits.
fn unit(rng: &mut SampleRng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// The value of a number.
pub fn to_big(number: &[Token]) -> UBig {
    let text: String = number.iter().map(|digit| digit.text()).collect();
    UBig::from_str_radix(&text, 10).unwrap_or_default()
}

/// The digits of a value.
pub fn from_big(value: &UBig) -> Vec<Token> {
    value.to_string().bytes().map(|digit| Token::digit(digit - b'0')).collect()
}
