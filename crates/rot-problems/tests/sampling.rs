//! Samples against the exact probabilities of the paper's distributions, and against the past: a
//! seed gives the same questions for ever.

use rot_core::{Problem, Sampler, Sampling, Text, Token, UBig};
use rot_problems::{
    Add, Compare, Div, Equal, Knapsack, Lcs, Lps, Mcm, Merge, Mul, PROBLEMS, Sort, Sub,
};

const SAMPLES: u64 = 100_000;

/// The bodies of the first questions.
fn bodies(
    problem: &'static dyn Problem,
    size: u32,
    sampling: Sampling,
    count: u64,
) -> impl Iterator<Item = Vec<Token>> {
    let sampler = Sampler::new(problem, size, sampling, 2023).expect("a valid size");
    (0..count).map(move |index| {
        let mut question = Vec::new();
        sampler.write_question(index, &mut question);
        question[1..question.len() - 1].to_vec()
    })
}

fn split(body: &[Token], mark: Token) -> Vec<&[Token]> {
    body.split(|&token| token == mark).collect()
}

fn value(number: &[Token]) -> UBig {
    UBig::from_str_radix(&Text(number).to_string(), 10).expect("a number")
}

/// Fails where counts are further from their probabilities than chance explains. The bound on
/// chi-squared is passed once in a million times; the seed is fixed, so it holds or it does not.
fn assert_distribution(name: &str, counts: &[u64], probabilities: &[f64]) {
    assert_eq!(counts.len(), probabilities.len());
    let total: u64 = counts.iter().sum();
    assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{name}");
    let chi_squared: f64 = counts
        .iter()
        .zip(probabilities)
        .map(|(&count, probability)| {
            let expected = total as f64 * probability;
            assert!(expected > 5.0, "{name}: too few samples for a cell of {probability}");
            (count as f64 - expected).powi(2) / expected
        })
        .sum();
    // Wilson and Hilferty: the cube root is nearly normal; 4.75 standard deviations.
    let freedom = counts.len() as f64 - 1.0;
    let spread = 2.0 / (9.0 * freedom);
    let bound = freedom * (1.0 - spread + 4.75 * spread.sqrt()).powi(3);
    assert!(chi_squared < bound, "{name}: {chi_squared:.1} of {bound:.1}: {counts:?}");
}

/// The probability that `U_log(low, 10^size, offset)` has each number of digits.
fn log_uniform_digits(low: f64, size: u32, offset: f64) -> Vec<f64> {
    let log = |exponent: u32| {
        let scale = f64::from(exponent) * std::f64::consts::LN_10;
        scale + (offset * (-scale).exp()).ln_1p()
    };
    let bottom = (low + offset).ln();
    let all = log(size) - bottom;
    (1..=size)
        .map(|digits| (log(digits) - if digits == 1 { bottom } else { log(digits - 1) }) / all)
        .collect()
}

fn digit_counts<'a>(numbers: impl Iterator<Item = &'a [Token]>, size: u32) -> Vec<u64> {
    let mut counts = vec![0; size as usize];
    numbers.for_each(|number| counts[number.len() - 1] += 1);
    counts
}

#[test]
fn operands_are_log_uniform() {
    for size in [6, 64] {
        let expected = log_uniform_digits(0.0, size, 3.0);
        for (problem, mark) in [
            (&Add as &'static dyn Problem, Token::PLUS),
            (&Mul, Token::STAR),
            (&Compare, Token::VS),
        ] {
            let all: Vec<_> = bodies(problem, size, Sampling::Paper, SAMPLES).collect();
            for operand in [0, 1] {
                let numbers = all.iter().map(|body| split(body, mark)[operand]);
                let name = format!("{}-{size} operand {operand}", problem.name());
                assert_distribution(&name, &digit_counts(numbers, size), &expected);
            }
        }
    }
}

#[test]
fn small_values_are_log_uniform_one_by_one() {
    let mut counts = vec![0; 100];
    for body in bodies(&Add, 2, Sampling::Paper, SAMPLES) {
        let number = value(split(&body, Token::PLUS)[0]);
        counts[usize::try_from(number).expect("two digits")] += 1;
    }
    let all = (103.0f64 / 3.0).ln();
    let expected: Vec<f64> =
        (0..100).map(|v| ((f64::from(v) + 4.0) / (f64::from(v) + 3.0)).ln() / all).collect();
    assert_distribution("values below 100", &counts, &expected);
}

/// Leading digits follow from the logarithm; those further on are uniform.
#[test]
fn long_numbers_have_true_digits() {
    let all: Vec<_> = bodies(&Add, 64, Sampling::Paper, SAMPLES).collect();
    let long: Vec<&[Token]> = all
        .iter()
        .flat_map(|body| split(body, Token::PLUS))
        .filter(|number| number.len() >= 32)
        .collect();
    let digit = |token: Token| usize::from(token.as_digit().expect("a digit"));
    let first: Vec<f64> = (1..10).map(|d| (1.0 + 1.0 / f64::from(d)).log10()).collect();
    let mut counts = vec![0; 9];
    long.iter().for_each(|number| counts[digit(number[0]) - 1] += 1);
    assert_distribution("first digit", &counts, &first);
    for place in [9, 10, 11, 20, 31] {
        let mut counts = vec![0; 10];
        long.iter().for_each(|number| counts[digit(number[place])] += 1);
        assert_distribution(&format!("digit {place}"), &counts, &[0.1; 10]);
    }
}

#[test]
fn the_larger_operand_of_a_subtraction_comes_first() {
    for size in [6, 64] {
        // The larger of two: the probability that both have at most so many digits, in steps.
        let one = log_uniform_digits(0.0, size, 3.0);
        let (mut below, mut expected) = (0.0, Vec::new());
        for p in one {
            expected.push((below + p) * (below + p) - below * below);
            below += p;
        }
        let all: Vec<_> = bodies(&Sub, size, Sampling::Paper, SAMPLES).collect();
        let first = all.iter().map(|body| split(body, Token::MINUS)[0]);
        let counts = digit_counts(first, size);
        // The shortest lengths are too rare at 64 digits: put them together.
        let few = expected.iter().take_while(|&&p| p * (SAMPLES as f64) < 50.0).count();
        let together = |values: &[f64]| -> Vec<f64> {
            let mut merged = vec![values[..=few].iter().sum()];
            merged.extend_from_slice(&values[few + 1..]);
            merged
        };
        let counts: Vec<f64> = together(&counts.iter().map(|&c| c as f64).collect::<Vec<_>>());
        let counts: Vec<u64> = counts.into_iter().map(|count| count as u64).collect();
        assert_distribution(&format!("sub-{size}"), &counts, &together(&expected));
        for body in &all {
            let numbers = split(body, Token::MINUS);
            assert!(value(numbers[0]) >= value(numbers[1]));
        }
    }
}

#[test]
fn divisors_are_log_uniform() {
    for size in [6, 64] {
        let all: Vec<_> = bodies(&Div, size, Sampling::Paper, SAMPLES).collect();
        let divisors = all.iter().map(|body| split(body, Token::DIV)[1]);
        let expected = log_uniform_digits(1.0, size, 3.0);
        let name = format!("div-{size} divisor");
        assert_distribution(&name, &digit_counts(divisors, size), &expected);
        assert!(all.iter().all(|body| split(body, Token::DIV)[0].len() <= size as usize));
    }
}

/// Long quotients and remainders are log-uniform: the share of the distribution below each is
/// uniform itself.
#[test]
fn long_quotients_and_remainders_are_log_uniform() {
    let log = |number: &UBig| rot_problems::stats::log10(number) * std::f64::consts::LN_10;
    let share = |value: &UBig, bound: f64| {
        (log(&(value + UBig::from(3u8))) - 3f64.ln()) / (bound - 3f64.ln())
    };
    let limit = 64.0 * std::f64::consts::LN_10;
    let (mut quotients, mut remainders) = (vec![0; 10], vec![0; 10]);
    for body in bodies(&Div, 64, Sampling::Paper, SAMPLES) {
        let numbers = split(&body, Token::DIV);
        let [a, b] = [value(numbers[0]), value(numbers[1])];
        // In the middle both bounds are so large that offsets and steps of one do not show.
        if (20..44).contains(&numbers[1].len()) {
            quotients[(share(&(&a / &b), limit - log(&b)) * 10.0) as usize] += 1;
            remainders[(share(&(&a % &b), log(&b)) * 10.0) as usize] += 1;
        }
    }
    assert_distribution("quotients", &quotients, &[0.1; 10]);
    assert_distribution("remainders", &remainders, &[0.1; 10]);
}

/// With the divisor known, the quotient is `U_log(0, 10^N / b, 3)`, whose end is no whole number.
#[test]
fn quotients_are_log_uniform_up_to_a_broken_end() {
    let questions: Vec<(usize, usize)> = bodies(&Div, 3, Sampling::Paper, 2 * SAMPLES)
        .map(|body| {
            let numbers = split(&body, Token::DIV);
            let [a, b] =
                [0, 1].map(|at| usize::try_from(value(numbers[at])).expect("three digits"));
            (b, a / b)
        })
        .collect();
    for divisors in [101..250, 250..500, 501..1000] {
        let quotients = 1000usize.div_ceil(divisors.start);
        let (mut counts, mut expected) = (vec![0; quotients], vec![0.0; quotients]);
        let within = questions.iter().filter(|(divisor, _)| divisors.contains(divisor));
        for &(divisor, quotient) in within {
            counts[quotient] += 1;
            let end = 1000.0 / divisor as f64;
            let log = |x: f64| ((x.min(end) + 3.0) / 3.0).ln() / ((end + 3.0) / 3.0).ln();
            for (q, sum) in expected.iter_mut().enumerate() {
                *sum += log(q as f64 + 1.0) - log(q as f64);
            }
        }
        let total: u64 = counts.iter().sum();
        let expected: Vec<f64> = expected.iter().map(|sum| sum / total as f64).collect();
        assert_distribution(&format!("quotients by {divisors:?}"), &counts, &expected);
    }
}

#[test]
fn uniform_operands_are_uniform() {
    for size in [6, 64] {
        let all: Vec<_> = bodies(&Add, size, Sampling::Uniform, SAMPLES).collect();
        // Nine of ten have full length; what has three digits less or fewer goes together.
        let mut counts = vec![0; 4];
        for body in &all {
            let missing = size as usize - split(body, Token::PLUS)[1].len();
            counts[missing.min(3)] += 1;
        }
        assert_distribution(&format!("add-{size}"), &counts, &[0.9, 0.09, 0.009, 0.001]);
    }
}

#[test]
fn repetitive_operands_are_as_long_as_the_papers_and_have_two_digits() {
    let lengths = |sampling| {
        let mut counts = [0; 9];
        for body in bodies(&Mul, 8, sampling, SAMPLES) {
            for number in split(&body, Token::STAR) {
                let different: std::collections::HashSet<_> = number.iter().collect();
                assert!(sampling == Sampling::Paper || different.len() <= 2);
                counts[number.len()] += 1;
            }
        }
        counts.map(|count| f64::from(count) / (2 * SAMPLES) as f64)
    };
    let (paper, repetitive) = (lengths(Sampling::Paper), lengths(Sampling::Repetitive));
    for (paper, repetitive) in paper.into_iter().zip(repetitive) {
        assert!((paper - repetitive).abs() < 0.02, "{paper} {repetitive}");
    }
    // Also where the bound is not a power of ten.
    for body in bodies(&Div, 8, Sampling::Repetitive, 2_000) {
        assert!(split(&body, Token::DIV)[0].len() <= 8);
    }
}

#[test]
fn sequences_are_uniform() {
    let mut counts = vec![0; 10];
    let lcs = bodies(&Lcs, 8, Sampling::Paper, 20_000);
    for body in lcs.chain(bodies(&Lps, 8, Sampling::Paper, 20_000)) {
        let digits = body.iter().filter_map(|token| token.as_digit());
        digits.for_each(|digit| counts[usize::from(digit)] += 1);
    }
    assert_distribution("digits", &counts, &[0.1; 10]);
    for body in bodies(&Equal, 1, Sampling::Paper, 100) {
        assert_eq!(body.len(), 4);
    }
}

#[test]
fn repetitive_sequences_are_of_two_digits() {
    let lcs = bodies(&Lcs, 12, Sampling::Repetitive, 500);
    let mut of_both = 0;
    for body in lcs.chain(bodies(&Lps, 12, Sampling::Repetitive, 500)) {
        let digits: std::collections::HashSet<_> =
            body.iter().filter_map(|token| token.as_digit()).collect();
        assert!(digits.len() <= 2, "{body:?}");
        of_both += usize::from(digits.len() == 2);
    }
    // A string of twelve is hardly ever of one digit alone.
    assert!(of_both > 980, "{of_both}");
}

#[test]
fn repetitive_items_and_matrices_are_of_one_digit() {
    let questions = bodies(&Mcm, 4, Sampling::Repetitive, 500).chain(
        bodies(&Knapsack, 4, Sampling::Repetitive, 500).map(|body| {
            split(&body[..], Token::AT)[0].to_vec() // The capacity is what it is.
        }),
    );
    let mut lengths = [0; 2];
    for body in questions {
        for number in body[1..].split(|token| token.as_digit().is_none()) {
            let same = |digit: &Token| *digit == number[0] || *digit == Token::D0;
            assert!(number[0] != Token::D0 && number.iter().all(same));
            lengths[number.len() - 1] += 1;
        }
    }
    assert!(lengths[0] > 2_000 && lengths[1] > lengths[0], "{lengths:?}");
}

#[test]
fn items_and_matrices_are_uniform() {
    let number = |tokens: &[Token]| usize::try_from(value(tokens)).expect("a small number");
    let mut counts = vec![0; 99];
    let mut places = vec![0; 10];
    for body in bodies(&Knapsack, 3, Sampling::Paper, SAMPLES / 2) {
        let halves = split(&body[1..], Token::AT);
        let mut weights = Vec::new();
        for item in split(halves[0], Token::COMMA) {
            let numbers = split(item, Token::AMPERSAND);
            counts[number(numbers[0]) - 1] += 1;
            counts[number(numbers[1]) - 1] += 1;
            weights.push(number(numbers[1]));
        }
        let capacity = number(halves[1]);
        let (least, most) = (*weights.iter().min().expect("items"), weights.iter().sum::<usize>());
        assert!((least..=most).contains(&capacity));
        // Where the range is a multiple of ten, each tenth of it is equally likely.
        let range = most - least + 1;
        if range.is_multiple_of(10) {
            places[(capacity - least) * 10 / range] += 1;
        }
    }
    assert_distribution("values and weights", &counts, &[1.0 / 99.0; 99]);
    assert_distribution("capacities", &places, &[0.1; 10]);

    let mut counts = vec![0; 99];
    for body in bodies(&Mcm, 2, Sampling::Paper, SAMPLES) {
        let matrices = split(&body[1..], Token::COMMA);
        for dimension in matrices.iter().map(|matrix| split(matrix, Token::TIMES)) {
            counts[number(dimension[1]) - 1] += 1;
        }
    }
    assert_distribution("dimensions", &counts, &[1.0 / 99.0; 99]);
}

#[test]
fn lists_have_all_lengths_and_log_uniform_terms() {
    let mut lengths = vec![0; 15];
    let mut counts = vec![0; 3];
    for body in bodies(&Sort, 16, Sampling::Paper, SAMPLES / 4) {
        let terms = split(&body[1..], Token::COMMA);
        lengths[terms.len() - 2] += 1;
        terms.iter().for_each(|term| counts[term.len() - 1] += 1);
    }
    assert_distribution("numbers of terms", &lengths, &[1.0 / 15.0; 15]);
    assert_distribution("terms", &counts, &log_uniform_digits(0.0, 3, 5.0));
    for body in bodies(&Merge, 5, Sampling::Paper, 1000) {
        let lists = split(&body[1..], Token::SEP);
        let [left, right] = [0, 1].map(|at| split(lists[at], Token::COMMA).len());
        assert!(left == right || left == right + 1);
    }
}

#[test]
fn a_size_that_cannot_be_is_refused() {
    assert!(Sampler::new(&Sort, 1, Sampling::Paper, 0).is_err());
    for &problem in PROBLEMS {
        assert!(Sampler::new(problem, 0, Sampling::Paper, 0).is_err());
        assert!(Sampler::new(problem, problem.facts().smallest, Sampling::Paper, 0).is_ok());
    }
}

/// These questions were drawn once. If they change, every published seed loses its meaning.
#[test]
fn a_seed_keeps_its_questions() {
    let first = |problem: &'static dyn Problem, size, sampling| {
        let sampler = Sampler::new(problem, size, sampling, 1).expect("a valid size");
        let mut question = Vec::new();
        sampler.write_question(1_000_000_007, &mut question);
        Text(&question).to_string()
    };
    let drawn: Vec<String> =
        PROBLEMS.iter().map(|&problem| first(problem, 12, Sampling::Paper)).collect();
    assert_eq!(drawn, EXPECTED);
    assert_eq!(first(&Div, 40, Sampling::Uniform), EXPECTED_UNIFORM);
    assert_eq!(first(&Add, 64, Sampling::Paper), EXPECTED_LONG);
}

const EXPECTED: [&str; 14] = [
    "<GO>53381+8798447=",
    "<GO>36-2=",
    "<GO>4129398*41373603=",
    "<GO>1189671÷307=",
    "<GO>769612285469<LCS>599197060275=",
    "<GO><LPS>670910931446=",
    "<GO><KNAPSACK>77&84,42&2,88&61,38&35,1&63,1&41,31&23,42&39,48&14,86&34,89&66,89&80@70=",
    "<GO><MCM>3×71,71×38,38×63,63×34,34×24,24×8,8×79,79×97,97×39,39×8,8×69,69×68=",
    "<GO><SORT>6,167,561,147,60,3,126,30,784=",
    "<GO>15416404459<VS>27418=",
    "<GO><EQUAL>065960788138,359786698273=",
    "<GO>467742571+23811513155+52=",
    "<GO>14*3320242496*88120666007=",
    "<GO><MERGE>13,32,42,404<SEP>0,6,81=",
];
const EXPECTED_UNIFORM: &str =
    "<GO>5206870690682554514582572957162355874970÷747257362073881506665134383972532160786=";
const EXPECTED_LONG: &str = "<GO>280260440088895871075582210428385495736147764612502448601+1405210376995348375072168400880745515386385142421187158=";
