//! Answers against independent oracles: big integers, plain dynamic programming, a library sort.
//! No procedure here has anything to do with how the problems think.

use proptest::prelude::*;
use rot_core::{Text, ThoughtGraph, UBig};

/// The answer of a question, without its `<STOP>`.
fn answer(question: &str) -> String {
    let question = rot_problems::read(question).unwrap_or_else(|e| panic!("{question}: {e}"));
    let mut graph = ThoughtGraph::default();
    let root = graph.unfold(question.problem, &question.tokens).expect("it fits");
    let answer = graph.answer(root);
    Text(&answer[..answer.len() - 1]).to_string()
}

fn big(text: &str) -> UBig {
    UBig::from_str_radix(text, 10).expect("a number")
}

/// A number of up to 64 digits, of any length equally often, with runs of nines and zeros.
fn number() -> impl Strategy<Value = String> {
    let digits = prop_oneof!["[0-9]", Just("9".to_owned()), Just("0".to_owned())];
    (1usize..=64)
        .prop_flat_map(move |length| prop::collection::vec(digits.clone(), length))
        .prop_map(|digits| big(&digits.concat()).to_string())
}

fn small_number() -> impl Strategy<Value = String> {
    (0u32..=9).prop_flat_map(|digits| 0..10u64.pow(digits)).prop_map(|number| number.to_string())
}

/// A sequence over few digits, so that much is equal.
fn sequence(most: usize) -> impl Strategy<Value = Vec<u8>> {
    (1u8..=9).prop_flat_map(move |last| prop::collection::vec(0..=last, 1..=most))
}

fn text(sequence: &[u8]) -> String {
    sequence.iter().map(|digit| char::from(b'0' + digit)).collect()
}

/// The length of the longest common subsequence, by the usual table.
fn lcs_length(left: &[u8], right: &[u8]) -> usize {
    let mut table = vec![vec![0; right.len() + 1]; left.len() + 1];
    for (i, a) in left.iter().enumerate() {
        for (j, b) in right.iter().enumerate() {
            table[i + 1][j + 1] =
                if a == b { table[i][j] + 1 } else { table[i][j + 1].max(table[i + 1][j]) };
        }
    }
    table[left.len()][right.len()]
}

fn is_subsequence(part: &[u8], whole: &[u8]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|digit| whole.any(|other| other == digit))
}

fn digits(text: &str) -> Vec<u8> {
    text.bytes().map(|byte| byte - b'0').collect()
}

/// The best value, by the usual table over capacities.
fn knapsack_value(items: &[(usize, usize)], capacity: usize) -> usize {
    let mut best = vec![0; capacity + 1];
    for &(value, weight) in items {
        for room in (weight..=capacity).rev() {
            best[room] = best[room].max(best[room - weight] + value);
        }
    }
    best[capacity]
}

/// The least number of multiplications, by the usual table over intervals.
fn chain_cost(dimensions: &[u64]) -> u64 {
    let count = dimensions.len() - 1;
    let mut cost = vec![vec![0; count]; count];
    for length in 1..count {
        for i in 0..count - length {
            let j = i + length;
            let split = |k: usize| {
                cost[i][k] + cost[k + 1][j] + dimensions[i] * dimensions[k + 1] * dimensions[j + 1]
            };
            cost[i][j] = (i..j).map(split).min().expect("a split");
        }
    }
    cost[0][count - 1]
}

/// The shape and cost of an order written with parentheses.
fn order_cost(text: &str) -> (u64, u64, u64) {
    let (shape, rest) = parse_pair(text);
    assert_eq!(rest, "", "{text}");
    shape
}

fn parse_pair(text: &str) -> ((u64, u64, u64), &str) {
    let (left, rest) = parse_one(text);
    let Some(rest) = rest.strip_prefix(',') else { return (left, rest) };
    let (right, rest) = parse_one(rest);
    assert_eq!(left.1, right.0);
    ((left.0, right.1, left.2 + right.2 + left.0 * left.1 * right.1), rest)
}

fn parse_one(text: &str) -> ((u64, u64, u64), &str) {
    if let Some(inner) = text.strip_prefix('(') {
        let (shape, rest) = parse_pair(inner);
        return (shape, rest.strip_prefix(')').expect("a closing parenthesis"));
    }
    let end = text.find([',', ')']).unwrap_or(text.len());
    let (rows, columns) = text[..end].split_once('×').expect("a matrix");
    ((rows.parse().expect("rows"), columns.parse().expect("columns"), 0), &text[end..])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn addition(a in number(), b in number()) {
        prop_assert_eq!(answer(&format!("{a}+{b}")), (big(&a) + big(&b)).to_string());
    }

    #[test]
    fn subtraction(a in number(), b in number()) {
        let (a, b) = if big(&a) < big(&b) { (b, a) } else { (a, b) };
        prop_assert_eq!(answer(&format!("{a}-{b}")), (big(&a) - big(&b)).to_string());
    }

    #[test]
    fn multiplication(a in number(), b in number()) {
        prop_assert_eq!(answer(&format!("{a}*{b}")), (big(&a) * big(&b)).to_string());
    }

    #[test]
    fn division(a in number(), b in number()) {
        prop_assume!(b != "0");
        let (a, b) = (big(&a), big(&b));
        let expected = format!("{}<R>{}", &a / &b, &a % &b);
        prop_assert_eq!(answer(&format!("{a}÷{b}")), expected);
    }

    #[test]
    fn comparison(a in number(), b in number(), same in any::<bool>()) {
        let b = if same { a.clone() } else { b };
        let expected = match big(&a).cmp(&big(&b)) {
            std::cmp::Ordering::Less => "<LT>",
            std::cmp::Ordering::Equal => "<EQ>",
            std::cmp::Ordering::Greater => "<GT>",
        };
        prop_assert_eq!(answer(&format!("{a} vs {b}")), expected);
    }

    #[test]
    fn ternary_operations(a in small_number(), b in small_number(), c in small_number()) {
        let [x, y, z] = [big(&a), big(&b), big(&c)];
        prop_assert_eq!(answer(&format!("{a}+{b}+{c}")), (&x + &y + &z).to_string());
        prop_assert_eq!(answer(&format!("{a}*{b}*{c}")), (x * y * z).to_string());
    }

    #[test]
    fn equality(a in 0..10u8, b in 0..10u8) {
        let expected = if a == b { "<TRUE>" } else { "<FALSE>" };
        prop_assert_eq!(answer(&format!("equal {a} {b}")), expected);
    }

    #[test]
    fn longest_common_subsequence(left in sequence(32), right in sequence(32)) {
        let answer = answer(&format!("lcs {} {}", text(&left), text(&right)));
        let (found, length) = answer.split_once(';').expect("a length");
        prop_assert_eq!(length.parse::<usize>().expect("a length"), lcs_length(&left, &right));
        prop_assert_eq!(found.len(), lcs_length(&left, &right));
        prop_assert!(is_subsequence(&digits(found), &left));
        prop_assert!(is_subsequence(&digits(found), &right));
    }

    #[test]
    fn longest_palindromic_subsequence(sequence in sequence(40)) {
        let answer = answer(&format!("lps {}", text(&sequence)));
        let (found, length) = answer.split_once(';').expect("a length");
        // A longest palindrome is a longest common subsequence with the reverse.
        let reverse: Vec<u8> = sequence.iter().rev().copied().collect();
        prop_assert_eq!(length.parse::<usize>().expect("a length"), lcs_length(&sequence, &reverse));
        prop_assert_eq!(found.len(), lcs_length(&sequence, &reverse));
        prop_assert!(is_subsequence(&digits(found), &sequence));
        prop_assert!(found.chars().eq(found.chars().rev()));
    }

    #[test]
    fn knapsack(
        items in prop::collection::vec((0usize..100, 0usize..100), 1..=10),
        capacity in 0usize..600,
    ) {
        let show = |items: &[(usize, usize)]| -> String {
            let items: Vec<String> = items.iter().map(|(v, w)| format!("{v}&{w}")).collect();
            items.join(",")
        };
        let answer = answer(&format!("knapsack {}@{capacity}", show(&items)));
        let (chosen, value) = answer.split_once('$').expect("a value");
        let value: usize = value.parse().expect("a value");
        prop_assert_eq!(value, knapsack_value(&items, capacity));

        let chosen: Vec<(usize, usize)> = chosen
            .split(',')
            .filter(|item| !item.is_empty())
            .map(|item| {
                let (value, weight) = item.split_once('&').expect("an item");
                (value.parse().expect("a value"), weight.parse().expect("a weight"))
            })
            .collect();
        prop_assert_eq!(chosen.iter().map(|item| item.0).sum::<usize>(), value);
        prop_assert!(chosen.iter().map(|item| item.1).sum::<usize>() <= capacity);
        let mut left = items.iter();
        prop_assert!(chosen.iter().all(|item| left.any(|other| other == item)));
    }

    #[test]
    fn matrix_chain(dimensions in prop::collection::vec(1u64..100, 2..=9)) {
        let matrices: Vec<String> =
            dimensions.windows(2).map(|pair| format!("{}×{}", pair[0], pair[1])).collect();
        let answer = answer(&format!("mcm {}", matrices.join(",")));
        let (order, cost) = answer.split_once(';').expect("a cost");
        prop_assert_eq!(cost.parse::<u64>().expect("a cost"), chain_cost(&dimensions));
        let last = dimensions[dimensions.len() - 1];
        prop_assert_eq!(order_cost(order), (dimensions[0], last, chain_cost(&dimensions)));
        prop_assert_eq!(order.replace(['(', ')'], ""), matrices.join(","));
    }

    #[test]
    fn sorting(terms in prop::collection::vec(0u64..1000, 1..=64)) {
        let show = |terms: &[u64]| {
            let terms: Vec<String> = terms.iter().map(u64::to_string).collect();
            terms.join(",")
        };
        let mut sorted = terms.clone();
        sorted.sort_unstable();
        prop_assert_eq!(answer(&format!("sort {}", show(&terms))), show(&sorted));

        let middle = terms.len() / 2;
        let mut halves = terms;
        halves[..middle].sort_unstable();
        halves[middle..].sort_unstable();
        let question = format!("<MERGE>{}<SEP>{}", show(&halves[..middle]), show(&halves[middle..]));
        prop_assert_eq!(answer(&question), show(&sorted));
    }
}

/// A number with all digits in it, zeros and nines in runs.
fn long(seed: u64, length: usize) -> String {
    let mut state = seed;
    let mut digits = String::from("7");
    while digits.len() < length {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let digit = (state >> 33) % 10;
        let run = if digit.is_multiple_of(9) { 1 + (state >> 40) % 4 } else { 1 };
        digits.extend((0..run).map(|_| char::from(b'0' + digit as u8)));
    }
    digits.truncate(length);
    digits
}

/// Numbers of a thousand digits, and an addition that is ten thousand contexts deep.
#[test]
fn numbers_of_any_length() {
    let (a, b) = (long(1, 1000), long(2, 1000));
    assert_eq!(answer(&format!("{a}+{b}")), (big(&a) + big(&b)).to_string());
    let (larger, smaller) = if big(&a) > big(&b) { (&a, &b) } else { (&b, &a) };
    assert_eq!(answer(&format!("{larger}-{smaller}")), (big(larger) - big(smaller)).to_string());
    let c = long(3, 20);
    assert_eq!(answer(&format!("{a}*{c}")), (big(&a) * big(&c)).to_string());
    let d = long(5, 990);
    let expected = format!("{}<R>{}", big(&a) / big(&d), big(&a) % big(&d));
    assert_eq!(answer(&format!("{a}/{d}")), expected);

    let nines = "9".repeat(10_000);
    assert_eq!(answer(&format!("{nines}+{nines}")), format!("1{}8", "9".repeat(9_999)));
}

#[test]
#[ignore = "takes 4 GiB and half a minute: cargo test --release -- --ignored"]
fn a_product_of_thousand_digit_numbers() {
    let (a, b) = (long(6, 1000), long(7, 1000));
    assert_eq!(answer(&format!("{a}*{b}")), (big(&a) * big(&b)).to_string());
}
