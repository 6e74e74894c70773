//! One suite for all generators, and networks with weights that mean no good.
#![expect(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

mod conformance;

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rot_core::{Token, Vocabulary, parse_tokens};
use rot_nn::{Lstm, LstmConfig, Network, Placement, Positions, Transformer, TransformerConfig};
use rot_solve::{Guidance, Limits, Memo, Native, Oracle, Solver, roles};

use self::conformance::{LIMIT, conforms};

fn vocabulary() -> Vocabulary {
    Vocabulary::of_problems(&[&rot_problems::Mul])
}

fn networks() -> Vec<Box<dyn Network>> {
    let roles = roles(&vocabulary());
    let transformer = TransformerConfig {
        layers: 2,
        width: 32,
        feed_forward: 32,
        limit: LIMIT,
        ..TransformerConfig::default()
    };
    let better = TransformerConfig {
        placement: Placement::Before,
        positions: Positions::Rotary,
        convolution: 4,
        digit_index: 4,
        number_index: 4,
        part_index: 4,
        ..transformer.clone()
    };
    let lstm =
        LstmConfig { embedding: 8, hidden: 32, layers: 2, limit: LIMIT, ..LstmConfig::default() };
    vec![
        Box::new(Transformer::new(&transformer, &roles).unwrap()),
        Box::new(Transformer::new(&better, &roles).unwrap()),
        Box::new(Lstm::new(&lstm, roles.len()).unwrap()),
    ]
}

/// A network with large random weights, so that it says one thing and then another.
fn native(network: &dyn Network, seed: u64, scale: f32, memory: usize) -> Native {
    let mut params = network.layout().initial(seed);
    params.iter_mut().for_each(|param| *param *= scale);
    Native::new(network.decoder(&params), vocabulary(), memory)
}

#[test]
fn every_generator_keeps_to_the_rules() {
    conforms(|| Box::new(Oracle::new(rot_problems::PROBLEMS, LIMIT)));
    for network in networks() {
        for (seed, memory) in [(1, usize::MAX), (2, 0), (3, 40_000)] {
            let make = || native(network.as_ref(), seed, 4.0, memory);
            conforms(|| Box::new(make()));
            let oracle = || Box::new(Oracle::new(rot_problems::PROBLEMS, LIMIT));
            conforms(|| Box::new(make().with_drafter(oracle())));
        }
    }
}

#[test]
fn a_guided_network_says_what_its_guide_says() {
    let questions =
        ["<GO>47*36=", "<GO>99*99=", "<GO>8+7="].map(|text| parse_tokens(text).unwrap());
    let guided = |network| [Guidance::Tokens, Guidance::Spans].map(|guidance| (network, guidance));
    for (network, guidance) in networks().iter().flat_map(guided) {
        let guide = Box::new(Oracle::new(rot_problems::PROBLEMS, LIMIT));
        let generator = native(network.as_ref(), 1, 4.0, 40_000).guided_by(guide, guidance);
        let mut solver = Solver::new(generator, Limits::default(), None, usize::MAX);
        for question in &questions {
            solver.ask(question).unwrap();
        }
        let mut outcomes = solver.run();
        outcomes.sort_by_key(|outcome| outcome.root);
        let answers = outcomes.into_iter().map(|outcome| outcome.answer.unwrap().to_vec());
        let expected = ["1692<STOP>", "9801<STOP>", "15<STOP>"];
        assert!(answers.eq(expected.map(|text| parse_tokens(text).unwrap())));
    }
}

#[test]
fn whatever_a_network_says_there_is_an_answer_or_an_error() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let tokens = vocabulary();
    let (mut answered, mut failed) = (0, 0);
    for network in networks() {
        for (seed, scale) in [(1, 1.0), (2, 3.0), (3, 10.0), (4, 1e20), (5, f32::NAN)] {
            for with_memo in [true, false] {
                let limits = Limits {
                    context: 8 + (rng.next_u32() % 56) as usize,
                    depth: (rng.next_u32() % 40) as usize,
                    contexts: u64::from(rng.next_u32() % 200),
                    tokens: u64::from(rng.next_u32() % 3000),
                    time: Duration::from_secs(60),
                };
                let memo = with_memo.then(Memo::default);
                let generator = native(network.as_ref(), seed, scale, 200_000);
                let mut solver = Solver::new(generator, limits, memo, 400_000);
                let mut asked = 0;
                let mut ended = 0;
                while ended < 340 {
                    while asked < 340 && solver.pending() < 64 {
                        let mut question = vec![Token::GO];
                        for _ in 0..rng.next_u32() % 12 {
                            let place = rng.next_u32() as usize % tokens.len();
                            question.push(tokens.tokens()[place]);
                        }
                        question.push(Token::EQUALS);
                        solver.ask(&question).unwrap();
                        asked += 1;
                    }
                    for outcome in solver.step() {
                        ended += 1;
                        match outcome.answer {
                            Ok(answer) => {
                                assert_eq!(answer.last(), Some(&Token::STOP));
                                answered += 1;
                            }
                            Err(failure) => {
                                assert!(!failure.to_string().is_empty());
                                failed += 1;
                            }
                        }
                    }
                }
                assert_eq!(solver.open_contexts(), 0);
            }
        }
    }
    assert!(answered > 100 && failed > 1000, "{answered} answers, {failed} errors");
}
