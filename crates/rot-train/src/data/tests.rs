use std::collections::BTreeMap;

use super::*;

fn source(text: &str) -> Source {
    let recipe = Recipe::parse(&format!("data.problems = [\"mul-3\"]\n{text}")).unwrap();
    Source::new(&recipe, 512).unwrap()
}

fn contexts(chunks: &[Packed]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let of = |chunk: &Packed| {
        let part = |range: std::ops::Range<usize>| {
            (chunk.ids()[range.clone()].to_vec(), chunk.targets()[range].to_vec())
        };
        chunk.sequences().map(part).collect::<Vec<_>>()
    };
    chunks.iter().flat_map(of).collect()
}

#[test]
fn a_batch_depends_on_its_step_alone() {
    let source = source("data.balance = 0.5");
    let first = contexts(&source.batch(5).unwrap());
    assert_eq!(first.len(), 256);
    assert_eq!(first, contexts(&source.batch(5).unwrap()));
    assert_ne!(first, contexts(&source.batch(6).unwrap()));
    assert_ne!(first, contexts(&self::source("seed = 1").batch(5).unwrap()));
}

#[test]
fn chunks_have_about_the_same_number_of_tokens() {
    let chunks = source("").batch(0).unwrap();
    let tokens: Vec<usize> = chunks.iter().map(Packed::tokens).collect();
    assert_eq!(chunks.len() % CHUNKS, 0);
    let (most, least) = (tokens.iter().max().unwrap(), tokens.iter().min().unwrap());
    assert!(most - least <= 12, "{tokens:?}");
}

#[test]
fn a_large_batch_has_larger_chunks() {
    let batch = source("training.batch = 4096").batch(0).unwrap();
    assert_eq!(batch.len(), MOST_CHUNKS);
    assert_eq!(batch.iter().map(Packed::len).sum::<usize>(), 4096);
    assert_eq!(source("training.batch = 3").batch(0).unwrap().len(), 3);
}

#[test]
fn what_is_drawn_is_a_context_with_the_target_one_ahead() {
    let source = source("data.paradigm = \"wt\"\ntraining.batch = 1");
    let drawn = contexts(&source.batch(0).unwrap());
    let text = |ids: &[u8]| -> String {
        let token = |&id: &u8| source.vocabulary.tokens().get(usize::from(id));
        ids.iter().map(|id| token(id).map_or("·", |token| token.text())).collect()
    };
    let (read, said) = (text(&drawn[0].0), text(&drawn[0].1));
    let (question, answer) = read.split_once('=').unwrap();
    let blanks = "·".repeat(question.chars().filter(|&c| c != '<').count() - 2);
    assert_eq!(said, format!("{blanks}{answer}<STOP>"));
}

/// The share of each kind of context when sub-problems of division are drawn.
fn kinds(text: &str) -> BTreeMap<&'static str, f64> {
    let text = format!("data.problems = [\"div-4\"]\n{text}");
    let source = Source::new(&Recipe::parse(&text).unwrap(), 512).unwrap();
    let mut shares = BTreeMap::new();
    for step in 0..8 {
        for (ids, _) in contexts(&source.batch(step).unwrap()) {
            let tokens = ids.iter().map(|&id| source.vocabulary.tokens()[usize::from(id)]);
            let question = tokens.take_while(|&token| token != Token::EQUALS);
            let operator = question.skip(1).find(|token| !token.is_digit()).unwrap();
            *shares.entry(operator.text()).or_default() += 1.0 / 2048.0;
        }
    }
    shares
}

#[test]
fn balance_draws_what_is_rare() {
    let plain = kinds("");
    let balanced = kinds("data.balance = 1.0");
    // Divisions are the rarest of what a division asks.
    assert!(plain["÷"] < 0.25, "{plain:?}");
    assert!(balanced["÷"] > 1.4 * plain["÷"], "{plain:?} {balanced:?}");
}

#[test]
fn a_share_of_the_problems_has_numbers_of_full_length() {
    let text = "data.problems = [\"add-30\"]\ndata.paradigm = \"wt\"\ndata.uniform = 0.25";
    let source = Source::new(&Recipe::parse(text).unwrap(), 512).unwrap();
    let drawn = contexts(&source.batch(0).unwrap());
    let long = drawn.iter().filter(|(ids, _)| ids.len() > 85).count();
    assert!((60..90).contains(&long), "{long}");
}

#[test]
fn a_share_of_the_problems_has_few_different_digits() {
    let text = "data.problems = [\"add-30\"]\ndata.paradigm = \"wt\"\n\
                data.uniform = 0.25\ndata.repetitive = 0.5\ntraining.batch = 400";
    let source = Source::new(&Recipe::parse(text).unwrap(), 512).unwrap();
    let [mut uniform, mut repetitive] = [0, 0];
    for index in 0..400 {
        let sampling = sampling(index, &source.recipe.data);
        uniform += usize::from(sampling == Sampling::Uniform);
        repetitive += usize::from(sampling == Sampling::Repetitive);
    }
    assert_eq!((uniform, repetitive), (100, 200));
}

#[test]
fn of_a_large_problem_several_contexts_are_drawn() {
    let text = "data.problems = [\"lcs-32\", \"add-2\", \"lcs-2\"]\n\
                data.contexts_per_problem = 0\ntraining.batch = 32";
    let source = Source::new(&Recipe::parse(text).unwrap(), 512).unwrap();
    let contexts: Vec<usize> = source.problems.iter().map(|kind| kind.contexts).collect();
    assert_eq!(contexts, [4, 1, 1]);
    let mut scratch = Scratch::default();
    let of_one = source.draw(source.problems[0].problem, 0, 4, &mut scratch).unwrap();
    assert_eq!(of_one.len(), 4);
    // 11 contexts of the first two kinds, the first of three problems, and 10 of the last.
    let plus = source.vocabulary.id(Token::PLUS).unwrap() as u8;
    let drawn = self::contexts(&source.batch(0).unwrap());
    assert_eq!(drawn.len(), 32);
    assert_eq!(drawn.iter().filter(|(ids, _)| ids.contains(&plus)).count(), 11);
    let of_one = of_one.iter().map(|[ids, _]| ids.to_vec());
    let drawn: Vec<_> = drawn.into_iter().map(|(ids, _)| ids).collect();
    assert!(of_one.into_iter().all(|ids| drawn.contains(&ids)));
}

#[test]
fn problems_grow_to_their_size() {
    let source = source("data.grow = 0.5\ntraining.steps = 8");
    let sizes = (0..8).map(|step| source.grown(source.problems[0].problem, step).size);
    assert_eq!(sizes.collect::<Vec<_>>(), [1, 2, 2, 3, 3, 3, 3, 3]);
    let longest = |step| {
        source.batch(step).unwrap().iter().flat_map(Packed::iter).map(|[ids, _]| ids.len()).max()
    };
    assert!(longest(0) < longest(2) && longest(2) < longest(7));
    for step in [0, 2, 4, 8] {
        let shares: f64 = (0..step).map(|step| source.recipe.grown(step)).sum();
        assert_eq!(source.recipe.work(step), shares);
    }
    assert_eq!(self::source("").recipe.work(8), 8.0);
    assert_eq!(self::source("").grown(source.problems[0].problem, 0).size, 3);
}

#[test]
fn of_large_problems_some_are_smaller() {
    let text = "data = { problems = [\"mul-9\"], uniform = 0.5, long_smaller = 0.25 }\n\
                training.tokens = 1000";
    let source = Source::new(&Recipe::parse(text).unwrap(), 512).unwrap();
    let mut counts: BTreeMap<(u32, bool), usize> = BTreeMap::new();
    for index in 0..40_000 {
        let size = source.sized(source.problems[0].problem, index).size;
        let is_uniform = sampling(index, &source.recipe.data) == Sampling::Uniform;
        *counts.entry((size, is_uniform)).or_default() += 1;
    }
    // A quarter is below 9, size 1 as often as one from 4 to 7, half of each with uniform numbers.
    assert_eq!(counts.len(), 18);
    for (&(size, _), &count) in &counts {
        let share = f64::from(size + 1).log(9.0) - f64::from(size).log(9.0);
        let expected = if size == 9 { 15_000 } else { (5_000.0 * share) as usize };
        assert!(count.abs_diff(expected) < expected / 5, "{counts:?}");
    }
}

#[test]
fn of_long_contexts_there_are_fewer() {
    let size = |text: &str| {
        let text = format!("training = {{ batch = 128, candidates = 512, {text} }}");
        source(&text).size()
    };
    assert_eq!(size("tokens = 0"), BatchSize { drawn: 512, learnt: 128 });
    assert_eq!(size("tokens = 100000"), BatchSize { drawn: 512, learnt: 128 });
    let BatchSize { drawn, learnt } = size("tokens = 4000");
    assert_eq!(drawn / 4, learnt);
    let text = "training = { batch = 128, candidates = 512, tokens = 4000 }";
    let tokens: usize = source(text).batch(3).unwrap().iter().map(Packed::tokens).sum();
    assert!((3400..4600).contains(&tokens), "{tokens}");
    assert_eq!(size("tokens = 1"), BatchSize { drawn: 1, learnt: 1 });

    let shaped = |tokens: usize| {
        let text = "data = { problems = [\"mul-3\"], balance = 0.5, long_balance = 0.2 }";
        let text = format!("{text}\ntraining.tokens = {tokens}");
        Source::new(&Recipe::parse(&text).unwrap(), 512).unwrap().balance
    };
    assert_eq!((shaped(100_000), shaped(1_000)), (0.5, 0.1));
}

#[test]
fn of_long_contexts_classes_are_drawn_alike() {
    let shares = |long_classes: bool| {
        let text = format!(
            "data = {{ problems = [\"mcm-5\"], balance = 1.0, long_classes = {long_classes} }}\n\
             training.tokens = 1000"
        );
        let source = Source::new(&Recipe::parse(&text).unwrap(), 2048).unwrap();
        let mut scratch = Scratch::default();
        let (_, mut rng) = source.unfold(source.problems[0].problem, 0, &mut scratch).unwrap();
        scratch.weigh(&source.shapes, source.by_class);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for _ in 0..6_000 {
            let id = scratch.draw_by_shape(&mut rng).unwrap();
            *counts.entry(scratch.graph.class(id)).or_default() += 1;
        }
        counts
    };
    let alike = shares(true);
    assert_eq!(alike.len(), 6, "mcm, its sums, products and comparisons");
    assert!(alike.values().all(|count| (850..1150).contains(count)), "{alike:?}");
    let as_they_fall = shares(false);
    assert!(as_they_fall["mcm"] > 2 * as_they_fall["compare"], "{as_they_fall:?}");
}

#[test]
fn several_problems_take_turns() {
    let text = "data.problems = [\"add-3\", \"sub-3\"]\ndata.paradigm = \"wt\"";
    let source = Source::new(&Recipe::parse(text).unwrap(), 512).unwrap();
    let drawn = contexts(&source.batch(0).unwrap());
    let plus = source.vocabulary.id(Token::PLUS).unwrap() as u8;
    assert_eq!(drawn.iter().filter(|(ids, _)| ids.contains(&plus)).count(), 128);
}

#[test]
fn what_stands_twice_is_drawn_twice_as_often_and_anew() {
    let text = "data.problems = [\"add-9\", \"sub-9\", \"add-9\"]\ndata.paradigm = \"wt\"";
    let source = Source::new(&Recipe::parse(text).unwrap(), 512).unwrap();
    assert_eq!(source.recipe.data.names(), ["add-9 (twice)", "sub-9"]);
    let plus = source.vocabulary.id(Token::PLUS).unwrap() as u8;
    let sums = |step| {
        let mut drawn = contexts(&source.batch(step).unwrap());
        drawn.retain(|(ids, _)| ids.contains(&plus));
        drawn
    };
    // Of 256 contexts, with what is left over.
    let sums = [sums(0), sums(1)].concat();
    assert_eq!(sums.len(), 2 * 171);
    let different: std::collections::BTreeSet<_> = sums.iter().collect();
    assert!(different.len() > 330, "{} of 342", different.len());
}
