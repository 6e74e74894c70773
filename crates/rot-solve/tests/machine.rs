//! The recursion machine with generators that say whatever a test needs.
#![expect(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use rot_core::{CostCounter, Sampler, Sampling, Text, ThoughtGraph, Token, UBig, parse_tokens};
use rot_solve::{
    Cause, ContextId, End, Generator, Limit, Limits, Memo, MemoFile, Oracle, Outcome, Rule, Solver,
    Span,
};

const LIMIT: usize = 2048;
const MEMORY: usize = 1 << 30;

/// Says what a function of the whole context gives.
struct Scripted<F> {
    say: F,
    contexts: HashMap<ContextId, Vec<Token>>,
    ready: Vec<(ContextId, usize)>,
}

fn scripted<F: FnMut(&str) -> String>(say: F) -> Scripted<F> {
    Scripted { say, contexts: HashMap::new(), ready: Vec::new() }
}

impl<F: FnMut(&str) -> String> Generator for Scripted<F> {
    fn limit(&self) -> usize {
        LIMIT
    }

    fn unknown(&self, tokens: &[Token]) -> Option<Token> {
        tokens.iter().copied().find(|&token| token == Token::SORT)
    }

    fn submit(&mut self, id: ContextId, append: &[Token], most: usize) {
        self.contexts.entry(id).or_default().extend_from_slice(append);
        self.ready.push((id, most));
    }

    fn poll(&mut self, ended: &mut Vec<Span>) {
        for (id, most) in std::mem::take(&mut self.ready) {
            let Some(context) = self.contexts.get_mut(&id) else { continue };
            let mut tokens = parse_tokens(&(self.say)(&Text(context).to_string())).unwrap();
            let whole = matches!(tokens.last(), Some(&Token::THINK | &Token::STOP));
            context.extend_from_slice(&tokens[..tokens.len() - usize::from(whole)]);
            let end = if tokens.len() > most || !whole { End::Full } else { End::Whole };
            tokens.truncate(most);
            ended.push(Span { id, tokens, margin: 1.0, end });
        }
    }

    fn release(&mut self, id: ContextId) {
        self.contexts.remove(&id);
        self.ready.retain(|&(ready, _)| ready != id);
    }
}

fn memo(on: bool) -> Option<Memo> {
    on.then(Memo::default)
}

/// Solves questions with what `say` says.
fn solve(
    questions: &[&str],
    limits: &Limits,
    with_memo: bool,
    say: impl FnMut(&str) -> String,
) -> Vec<Outcome> {
    let mut solver = Solver::new(scripted(say), limits.clone(), memo(with_memo), MEMORY);
    for question in questions {
        solver.ask(&parse_tokens(question).unwrap()).unwrap();
    }
    let outcomes = solver.run();
    assert_eq!((solver.pending(), solver.open_contexts()), (0, 0));
    outcomes
}

/// The answer, or the cause and the path.
fn text(outcome: &Outcome) -> String {
    match &outcome.answer {
        Ok(answer) => Text(answer).to_string(),
        Err(failure) => {
            let path: Vec<String> = failure.path.iter().map(|q| Text(q).to_string()).collect();
            format!("{:?} at {}", failure.cause, path.join(" "))
        }
    }
}

/// The number in a question such as `<GO>12=`.
fn number(context: &str) -> u64 {
    context.trim_start_matches("<GO>").split('=').next().unwrap().parse().unwrap()
}

#[test]
fn the_oracle_walks_the_thought_graph() {
    for &problem in rot_problems::PROBLEMS {
        let size = problem.facts().smallest.max(4);
        let sampler = Sampler::new(problem, size, Sampling::Paper, 7).unwrap();
        for index in 0..8 {
            let mut question = Vec::new();
            sampler.write_question(index, &mut question);
            let mut graph = ThoughtGraph::default();
            let root = graph.unfold(problem, &question).unwrap();
            let costs = CostCounter::new(&graph).unwrap().costs(root);
            for with_memo in [true, false] {
                let oracle = Oracle::new(rot_problems::PROBLEMS, LIMIT);
                let mut solver = Solver::new(oracle, Limits::default(), memo(with_memo), MEMORY);
                solver.ask(&question).unwrap();
                let outcome = solver.run().remove(0);
                let answer = outcome.answer.clone().unwrap();
                assert_eq!(*answer, *graph.answer(root), "{}", Text(&question));
                assert_eq!(outcome.stats.longest, costs.longest_context);
                if with_memo {
                    assert_eq!(outcome.stats.contexts, costs.unique_contexts as u64);
                    assert_eq!(outcome.stats.generated, costs.unique_tokens);
                } else {
                    assert_eq!(UBig::from(outcome.stats.contexts), costs.naive_contexts);
                    assert_eq!(UBig::from(outcome.stats.generated), costs.naive_tokens);
                    assert_eq!(outcome.stats.memo_hits, 0);
                }
            }
        }
    }
}

#[test]
fn a_million_tail_calls_keep_one_context() {
    for with_memo in [true, false] {
        let count = |context: &str| match number(context) {
            0 => "7<STOP>".to_owned(),
            n => format!("<TAIL>{}=<THINK>", n - 1),
        };
        let limits = Limits::default();
        let mut solver = Solver::new(scripted(count), limits, memo(with_memo), MEMORY);
        solver.ask(&parse_tokens("<GO>1000000=").unwrap()).unwrap();
        let mut outcomes = Vec::new();
        while outcomes.is_empty() {
            outcomes = solver.step();
            assert!(solver.open_contexts() <= 1);
        }
        assert_eq!(text(&outcomes[0]), "7<STOP>");
        let stats = outcomes[0].stats;
        assert_eq!((stats.contexts, stats.deepest), (1_000_001, 1));
        // With a memo all of them are known now.
        if with_memo {
            solver.ask(&parse_tokens("<GO>123456=").unwrap()).unwrap();
            let again = solver.run().remove(0);
            assert_eq!((text(&again), again.stats.memo_hits), ("7<STOP>".to_owned(), 1));
        }
    }
}

#[test]
fn a_frame_that_tail_calls_have_replaced_can_still_be_waited_for() {
    // 1 asks 9, which becomes 8, 7, ..., asks 3 and answers; 2 asks 9 while it is at it.
    let say = |context: &str| match (number(context), context.matches('=').count()) {
        (1 | 2, 1) => "<GO>9=<THINK>".to_owned(),
        (3, _) => "5<STOP>".to_owned(),
        (4, 1) => "<GO>3=<THINK>".to_owned(),
        (n, 1) => format!("<TAIL>{}=<THINK>", n - 1),
        _ => "6<STOP>".to_owned(),
    };
    let mut solver = Solver::new(scripted(say), Limits::default(), Some(Memo::default()), MEMORY);
    solver.ask(&parse_tokens("<GO>1=").unwrap()).unwrap();
    let mut outcomes = Vec::new();
    for _ in 0..4 {
        outcomes.extend(solver.step());
    }
    solver.ask(&parse_tokens("<GO>2=").unwrap()).unwrap();
    outcomes.extend(solver.run());
    assert_eq!(outcomes.iter().map(text).collect::<Vec<_>>(), ["6<STOP>", "6<STOP>"]);
    assert_eq!(outcomes[1].stats.memo_hits, 1);
}

#[test]
fn cycles_are_reported_at_once() {
    let never = "generated for ever";
    // 1 asks itself; 2 and 3 ask each other; 4 becomes 5, which becomes 4; 6 asks 7, which becomes 6.
    let say = |context: &str| match number(context) {
        1 => "<GO>1=<THINK>",
        2 => "<GO>3=<THINK>",
        3 => "<GO>2=<THINK>",
        4 => "<TAIL>5=<THINK>",
        5 => "<TAIL>4=<THINK>",
        6 => "<GO>7=<THINK>",
        7 => "<TAIL>6=<THINK>",
        8 => "<GO>2=<THINK>",
        _ => never,
    };
    for with_memo in [true, false] {
        let questions = ["<GO>1=", "<GO>2=", "<GO>3=", "<GO>4=", "<GO>6=", "<GO>8="];
        for question in questions {
            let outcome =
                solve(&[question], &Limits::default(), with_memo, |c| say(c).into()).remove(0);
            let failure = outcome.answer.unwrap_err();
            assert_eq!(failure.cause, Cause::Cycle, "{question}");
            assert_eq!(Text(&failure.path[0]).to_string(), question);
            assert!(outcome.stats.contexts <= 6, "{question}: {}", outcome.stats.contexts);
        }
        let together = solve(&questions, &Limits::default(), with_memo, |c| say(c).into());
        assert!(together.iter().all(|o| o.answer.as_ref().unwrap_err().cause == Cause::Cycle));
    }
    let outcome = solve(&["<GO>8="], &Limits::default(), true, |c| say(c).into()).remove(0);
    assert_eq!(text(&outcome), "Cycle at <GO>8= <GO>2= <GO>3= <GO>2=");
}

#[test]
fn what_steers_nowhere_is_an_error_of_its_context() {
    for (said, rule) in [
        ("<THINK>", Rule::ThinkAsks),
        ("12=<THINK>", Rule::ThinkAsks),
        ("<GO><THINK>", Rule::QuestionNotEmpty),
        ("<GO>=<THINK>", Rule::QuestionNotEmpty),
        ("<TAIL>=<THINK>", Rule::QuestionNotEmpty),
        ("<GO>12<THINK>", Rule::QuestionEnds),
        ("<GO>1<PAD>2=<THINK>", Rule::OnlyContent),
        ("<PAD><GO>12=<THINK>", Rule::OnlyContent),
        ("12<GO><STOP>", Rule::OnlyContent),
    ] {
        let say = |context: &str| match number(context) {
            1 => "<GO>2=<THINK>".to_owned(),
            2 => said.to_owned(),
            _ => "0<STOP>".to_owned(),
        };
        let outcomes = solve(&["<GO>1=", "<GO>3=", "<GO>2="], &Limits::default(), true, say);
        let failure = outcomes[0].answer.clone().unwrap_err();
        let expected = parse_tokens(said).unwrap();
        assert_eq!(failure.cause, Cause::Malformed { rule, said: expected });
        assert_eq!(failure.path.len(), 2);
        assert!(failure.to_string().contains("<GO>1= > <GO>2="), "{failure}");
        assert_eq!(text(&outcomes[1]), "0<STOP>", "others go on");
        assert_eq!(outcomes[2].answer.clone().unwrap_err().path.len(), 1);
    }
    // The last GO opens the sub-question, and what stands before it stays in the context.
    let say = |context: &str| match (number(context), context.contains("3<STOP>")) {
        (1, false) => "0<GO>5<GO>2=<THINK>".to_owned(),
        (1, true) => {
            assert_eq!(context, "<GO>1=0<GO>5<GO>2=3<STOP>");
            "4<STOP>".to_owned()
        }
        _ => "3<STOP>".to_owned(),
    };
    assert_eq!(text(&solve(&["<GO>1="], &Limits::default(), true, say)[0]), "4<STOP>");
}

#[test]
fn every_limit_is_kept_and_named() {
    // Each number asks the next one, for ever.
    let next = |context: &str| format!("<GO>{}=<THINK>", number(context) + 1);
    let cause = |limits: &Limits, with_memo: bool| {
        let outcome = solve(&["<GO>1="], limits, with_memo, next).remove(0);
        (outcome.answer.unwrap_err().cause, outcome.stats)
    };
    let limits = Limits::default();
    for with_memo in [true, false] {
        let deep = Limits { depth: 50, ..limits.clone() };
        let (found, stats) = cause(&deep, with_memo);
        assert_eq!((found, stats.deepest), (Cause::Limit(Limit::Depth(50)), 50));
        let few = Limits { contexts: 7, ..limits.clone() };
        let (found, stats) = cause(&few, with_memo);
        assert_eq!((found, stats.contexts), (Cause::Limit(Limit::Contexts(7)), 7));
        let short = Limits { tokens: 20, ..limits.clone() };
        let (found, stats) = cause(&short, with_memo);
        assert_eq!(found, Cause::Limit(Limit::Tokens(20)));
        assert!(stats.generated <= 24);
        let quick = Limits { time: Duration::ZERO, ..limits.clone() };
        assert_eq!(cause(&quick, with_memo).0, Cause::Limit(Limit::Time(Duration::ZERO)));
        let narrow = Limits { context: 5, ..limits.clone() };
        assert_eq!(cause(&narrow, with_memo).0, Cause::Limit(Limit::Context(5)));
        let nothing = Limits { context: 0, ..limits.clone() };
        assert_eq!(cause(&nothing, with_memo).0, Cause::Limit(Limit::Context(0)));
    }
    // A context that goes on for ever.
    let outcome = solve(&["<GO>1="], &limits, true, |_| "1".repeat(3000)).remove(0);
    let failure = outcome.answer.unwrap_err();
    assert_eq!(failure.cause, Cause::Limit(Limit::Context(LIMIT)));
    // Frames that take more memory than they may.
    let mut solver = Solver::new(scripted(next), limits, Some(Memo::default()), 100_000);
    solver.ask(&parse_tokens("<GO>1=").unwrap()).unwrap();
    let failure = solver.run().remove(0).answer.unwrap_err();
    assert_eq!(failure.cause, Cause::Limit(Limit::Memory(100_000)));
    assert!(failure.path.len() < 1000);
}

#[test]
fn who_gives_up_leaves_to_others_what_they_wait_for() {
    // 1 asks four times and then 9; 2 asks 9 straight away. 9 asks ten times. 1 cannot afford that.
    let say = |context: &str| {
        let answers = context.matches("<STOP>").count();
        match number(context) {
            1 if answers < 4 => format!("<GO>10{answers}=<THINK>"),
            1 | 2 if !context.contains("<GO>9=") => "<GO>9=<THINK>".to_owned(),
            9 if answers < 10 => format!("<GO>90{answers}=<THINK>"),
            9 => "99<STOP>".to_owned(),
            _ => "5<STOP>".to_owned(),
        }
    };
    let limits = Limits { contexts: 12, ..Limits::default() };
    let opened = Rc::new(Cell::new(0));
    let mut solver = Solver::new(scripted(say), limits, Some(Memo::default()), MEMORY);
    let counter = Rc::clone(&opened);
    solver.observe(move |event| {
        if matches!(event, rot_solve::Event::Open { .. }) {
            counter.set(counter.get() + 1);
        }
    });
    solver.ask(&parse_tokens("<GO>1=").unwrap()).unwrap();
    // 1 has opened 9 when 2 comes.
    let mut outcomes = Vec::new();
    for _ in 0..12 {
        outcomes.extend(solver.step());
    }
    solver.ask(&parse_tokens("<GO>2=").unwrap()).unwrap();
    outcomes.extend(solver.run());
    outcomes.sort_by_key(|outcome| outcome.root);
    let failure = outcomes[0].answer.clone().unwrap_err();
    assert_eq!(failure.cause, Cause::Limit(Limit::Contexts(12)));
    assert_eq!(text(&outcomes[1]), "5<STOP>");
    assert!(outcomes[1].stats.contexts < 12);
    assert_eq!(opened.get(), 1 + 4 + 1 + 10 + 1, "nothing was opened twice");
    assert_eq!(solver.open_contexts(), 0);
}

#[test]
fn questions_in_flight_are_solved_once() {
    let asked = Cell::new(0);
    let say = |context: &str| match number(context) {
        n if n < 100 && !context.contains("<STOP>") => "<GO>100=<THINK>".to_owned(),
        100 => {
            asked.set(asked.get() + 1);
            "1<STOP>".to_owned()
        }
        n => format!("{n}<STOP>"),
    };
    let questions: Vec<String> = (0..100).map(|n| format!("<GO>{n}=")).collect();
    let questions: Vec<&str> = questions.iter().map(String::as_str).collect();
    let outcomes = solve(&questions, &Limits::default(), true, say);
    assert_eq!(asked.get(), 1);
    assert_eq!(outcomes.iter().map(|outcome| outcome.stats.memo_hits).sum::<u64>(), 99);
    assert!(outcomes.iter().enumerate().all(|(n, o)| text(o) == format!("{n}<STOP>")));
}

#[test]
fn an_unknown_token_is_named() {
    let mut solver = Solver::new(scripted(|_| "<STOP>".into()), Limits::default(), None, MEMORY);
    let error = solver.ask(&parse_tokens("<GO><SORT>1=").unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "the model does not know the token <SORT>");
    assert_eq!(solver.pending(), 0);
}

#[test]
fn a_memo_file_keeps_answers_for_the_same_model_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memo");
    let solve = |model: [u8; 32], save: bool| {
        let file = MemoFile::open(&path, model).unwrap();
        let memo = Some(Memo::with_file(file));
        let oracle = Oracle::new(rot_problems::PROBLEMS, LIMIT);
        let mut solver = Solver::new(oracle, Limits::default(), memo, MEMORY);
        solver.ask(&parse_tokens("<GO>12345*678=").unwrap()).unwrap();
        let outcome = solver.run().remove(0);
        assert_eq!(text(&outcome), "8369910<STOP>");
        if save {
            solver.memo().unwrap().save().unwrap();
        }
        outcome.stats
    };
    let first = solve([1; 32], false);
    assert!(first.contexts > 50);
    assert_eq!(solve([1; 32], true), first, "what was not saved is not there");
    let again = solve([1; 32], true);
    assert_eq!((again.contexts, again.generated, again.memo_hits), (0, 0, 1));
    assert_eq!(solve([2; 32], true), first, "another model has its own answers");
    assert_eq!(solve([1; 32], true), again);
    // Somebody else's file.
    std::fs::write(dir.path().join("other"), "not a database").unwrap();
    let error = MemoFile::open(&dir.path().join("other"), [0; 32]).err().unwrap().to_string();
    assert!(error.starts_with("cannot open the memo"), "{error}");
}
