//! Models on servers: every question ends in an answer or in an error that says why, whatever a server
//! does, and nothing is asked again once it was answered.
#![expect(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

#[path = "../../rot-solve/tests/conformance/mod.rs"]
mod conformance;
#[path = "remote/server.rs"]
mod server;

use std::hash::BuildHasher;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::Command as Rot;
use rot_core::{Sampler, Sampling, ThoughtGraph, Token, parse_tokens};
use rot_llm::{Remote, Spelling};
use rot_solve::{Cause, Limits, Memo, Outcome, Solver};

use self::server::{Ends, Fault, Server};

const ENDS: [Ends; 4] = [Ends::Untrimmed, Ends::StopReason, Ends::MatchedStop, Ends::Unsaid];

/// Something different for every prompt, and always the same.
fn chance(prompt: &str, of: u64) -> u64 {
    foldhash::fast::FixedState::default().hash_one(prompt) % of
}

fn ends(prompt: &str) -> Ends {
    ENDS[chance(prompt, 4) as usize]
}

fn settings(server: &Server) -> rot_llm::Server {
    rot_llm::Server {
        base_url: server.url.clone(),
        model: "model".to_owned(),
        key: Some("sk-secret".to_owned()),
        spelling: Spelling::Words,
        max_tokens: 256,
        concurrency: 8,
        retries: 5,
        pause: Duration::from_millis(2),
        timeout: Duration::from_secs(1),
        per_minute: None,
    }
}

fn questions() -> Vec<Vec<Token>> {
    let problems: [(&'static dyn rot_core::Problem, u32); 3] =
        [(&rot_problems::Add, 6), (&rot_problems::Mul, 2), (&rot_problems::Div, 2)];
    let mut questions = Vec::new();
    for (problem, size) in problems {
        let sampler = Sampler::new(problem, size, Sampling::Paper, 5).unwrap();
        for index in 0..20 {
            let mut question = Vec::new();
            sampler.write_question(index, &mut question);
            questions.push(question);
        }
    }
    questions
}

fn solve(remote: Remote, questions: &[Vec<Token>], memo: bool) -> Vec<Outcome> {
    let memo = memo.then(Memo::default);
    let mut solver = Solver::new(remote, Limits::default(), memo, 1 << 30);
    questions.iter().for_each(|question| {
        solver.ask(question).unwrap();
    });
    solver.run()
}

fn is_right(question: &[Token], outcome: &Outcome) -> bool {
    let body = &question[1..question.len() - 1];
    let problem = rot_problems::problem_of(rot_problems::PROBLEMS, body).unwrap();
    let mut graph = ThoughtGraph::default();
    let root = graph.unfold(problem, question).unwrap();
    outcome.answer.as_ref().is_ok_and(|answer| **answer == *graph.answer(root))
}

#[test]
fn a_server_keeps_to_the_rules_of_generators() {
    let server = Server::start(&[], |prompt, _| (None, ends(prompt)));
    let make = || Remote::new(settings(&server), 0, conformance::LIMIT, None).unwrap();
    conformance::conforms(|| Box::new(make()));
}

#[test]
fn what_can_pass_is_tried_again() {
    let server = Server::start(&["no_stop_trim"], |prompt, times| {
        let faults = [
            Fault::TooMany,
            Fault::Broken,
            Fault::Dropped,
            Fault::Truncated,
            Fault::Nonsense,
            Fault::Slow,
        ];
        // Up to two faults for a prompt; few are slow.
        let fault = chance(prompt, 23) as usize + times;
        let faulty = times < 2 && chance(prompt, 3) == 0;
        let fault = faults.get(fault % 23).copied().filter(|_| faulty);
        (fault, ends(prompt))
    });
    let questions = questions();
    for memo in [true, false] {
        let remote = Remote::new(settings(&server), 0, 2048, None).unwrap();
        let traffic = remote.traffic();
        let outcomes = solve(remote, &questions, memo);
        for (question, outcome) in questions.iter().zip(&outcomes) {
            assert!(is_right(question, outcome), "{outcome:?}");
        }
        let counts = traffic.counts();
        assert_eq!((counts.unanswered, traffic.first_error()), (0, None));
        assert!(counts.inferred_ends > 0);
        assert_eq!(counts.prompt_tokens, 10 * counts.requests);
        if memo {
            assert!(counts.retries > 20, "{counts:?}");
            assert_eq!(counts.requests as usize, server.answered().len());
            let twice = server.answered().into_iter().find(|(_, times)| *times > 1);
            assert_eq!(twice, None, "nothing is asked again once it was answered");
        }
    }
}

#[test]
fn what_cannot_pass_is_an_error_of_its_question() {
    let lost = |prompt: &str| prompt.starts_with(" go 9 + ") || prompt.starts_with(" go 8 + ");
    let server = Server::start(&[], move |prompt, _| {
        let fault = match prompt.starts_with(" go 9 + ") {
            true => Some(Fault::Refused),
            false => prompt.starts_with(" go 8 + ").then_some(Fault::WrongWord),
        };
        (fault, ends(prompt))
    });
    let questions = questions();
    let remote = Remote::new(settings(&server), 0, 2048, None).unwrap();
    let outcomes = solve(remote, &questions, true);
    let (mut refused, mut wrong, mut right) = (0, 0, 0);
    for (question, outcome) in questions.iter().zip(&outcomes) {
        match &outcome.answer {
            Ok(_) => {
                assert!(is_right(question, outcome));
                right += 1;
            }
            Err(failure) => {
                let Cause::Generator(why) = &failure.cause else { panic!("{failure}") };
                refused += usize::from(why.contains("status 400: too long for me"));
                wrong += usize::from(why.contains("'seven'"));
                let mut text = String::new();
                for token in failure.path.last().unwrap().iter() {
                    let name = token.text().trim_matches(['<', '>']);
                    text.push_str(&format!(" {}", name.to_ascii_lowercase()));
                }
                assert!(lost(&text), "{failure}");
            }
        }
    }
    assert!(refused > 0 && wrong > 0 && right > 0, "{refused} {wrong} {right}");
    assert_eq!(refused + wrong + right, questions.len());
}

#[test]
fn a_wrong_key_stops_everything_and_is_not_shown() {
    let server = Server::start(&[], |_, _| (Some(Fault::Unauthorised), Ends::Unsaid));
    let remote = Remote::new(settings(&server), 0, 2048, None).unwrap();
    let traffic = remote.traffic();
    let outcomes = solve(remote, &questions(), true);
    for outcome in &outcomes {
        let failure = outcome.answer.as_ref().unwrap_err().to_string();
        assert!(failure.contains("401") && failure.contains("wrong: Bearer [key]"), "{failure}");
    }
    assert!(!format!("{outcomes:?} {traffic:?}").contains("sk-secret"));
    assert!(server.asked() <= 8, "each thread may ask once");
}

#[test]
fn where_there_is_no_server_it_ends_soon() {
    let server = Server::start(&[], |_, _| (None, Ends::Unsaid));
    let mut settings = settings(&server);
    settings.base_url = "http://127.0.0.1:1/v1".to_owned();
    settings.retries = 2;
    let start = Instant::now();
    let remote = Remote::new(settings, 0, 2048, None).unwrap();
    let outcomes = solve(remote, &questions(), true);
    assert!(outcomes.iter().all(|outcome| outcome.answer.is_err()));
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn worked_contexts_stand_in_front() {
    let server = Server::start(&[], |prompt, _| {
        let lines: Vec<&str> = prompt.lines().collect();
        let (last, worked) = lines.split_last().unwrap();
        let ends = |line: &&str| line.ends_with(" think") || line.ends_with(" stop");
        assert!(worked.len() >= 2 && worked.iter().all(ends), "{prompt}");
        assert!(worked.iter().all(|line| !line.starts_with(&format!("{last} "))));
        (None, Ends::Unsaid)
    });
    let remote = Remote::new(settings(&server), 2, 2048, None).unwrap();
    let question = parse_tokens("<GO>408+351=").unwrap();
    let outcome = solve(remote, std::slice::from_ref(&question), true).remove(0);
    assert!(is_right(&question, &outcome), "{outcome:?}");
}

fn eval(server: &Server, journal: &Path) -> Vec<String> {
    let args = "eval model --problem add --size 8 --count 60 --free-run --json --concurrency 4";
    let mut all: Vec<String> = args.split(' ').map(str::to_owned).collect();
    let more = ["--base-url", &server.url, "--journal", journal.to_str().unwrap()];
    all.extend(more.map(str::to_owned));
    all
}

/// An evaluation without what depends on the clock and on what was known.
fn result(output: &[u8]) -> serde_json::Value {
    let mut record: serde_json::Value = serde_json::from_slice(output).unwrap();
    record["seconds"].take();
    record["free_run"]["seconds"].take();
    record["remote"].take();
    record
}

#[test]
fn a_killed_evaluation_goes_on() {
    // One kind of context is wrong, so that there is something to compare.
    let script = |prompt: &str, _| {
        let wrong = prompt.starts_with(" go 7 + 5 ");
        std::thread::sleep(Duration::from_millis(2));
        (wrong.then_some(Fault::WrongWord), ends(prompt))
    };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&[], script);
    let mut whole = Rot::cargo_bin("rot").unwrap();
    let whole = whole.args(eval(&server, &folder.path().join("whole"))).output().unwrap();
    assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
    let all = server.answered().len();
    let expected = result(&whole.stdout);
    assert!(expected["right_problems"].as_u64().unwrap() < 60);
    assert_eq!(expected["free_run"]["disagreements"], 0);

    let server = Server::start(&[], script);
    let journal = folder.path().join("killed");
    let (mut kills, mut kept) = (0, 0);
    for after in [all / 5, all / 2, all * 4 / 5] {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin("rot"))
            .args(eval(&server, &journal))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let start = Instant::now();
        while server.answered().len() < after && start.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(2));
        }
        kills += usize::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        let lines = std::fs::read_to_string(&journal).unwrap().lines().count();
        assert!(lines >= kept, "nothing is lost");
        kept = lines;
    }
    assert!(kills > 1, "the test would show nothing");
    let mut last = Rot::cargo_bin("rot").unwrap();
    let last = last.args(eval(&server, &journal)).output().unwrap();
    assert_eq!(result(&last.stdout), expected);
    // What was on its way when it was killed may have been asked again.
    let answered: usize = server.answered().values().sum();
    assert!(answered <= all + 4 * kills, "{answered} requests for {all}");
}

#[test]
fn people_are_told_what_will_be_asked_and_was() {
    let server = Server::start(&[], |prompt, _| (None, ends(prompt)));
    let mut rot = Rot::cargo_bin("rot").unwrap();
    let args =
        ["eval", "model", "--problem", "add", "--size", "3", "--count", "20", "--price", "1,2"];
    rot.args(args).args(["--base-url", &server.url, "--paradigm", "wt"]);
    let output = rot.env("OPENAI_API_KEY", "sk-secret").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // Answers without thoughts are not what this server says.
    assert!(output.status.success(), "{said}");
    assert!(said.contains("20 requests with") && said.contains("at these prices"), "{said}");
    assert!(said.contains("20 requests, 0 tried again"), "{said}");
    let all = format!("{said}{}", String::from_utf8_lossy(&output.stdout));
    assert!(all.contains("add-3 by model") && !all.contains("sk-secret"), "{all}");

    let folder = tempfile::tempdir().unwrap();
    let [journal, trace] = ["journal", "trace"].map(|name| folder.path().join(name));
    let mut rot = Rot::cargo_bin("rot").unwrap();
    rot.args(["solve", "408+351", "--base-url", &server.url, "--model", "m", "--few-shot", "1"]);
    rot.arg("--journal").arg(&journal).arg("--trace").arg(&trace);
    let output = rot.env("OPENAI_API_KEY", "sk-secret").output().unwrap();
    for file in [journal, trace] {
        let kept = std::fs::read_to_string(&file).unwrap();
        assert!(kept.lines().count() > 3 && !kept.contains("sk-secret"), "{kept}");
    }
    assert!(String::from_utf8_lossy(&output.stdout).contains("408+351 = 759"));
    assert!(String::from_utf8_lossy(&output.stdout).contains("not fine-tuned"));

    let wrong = |args: &[&str]| {
        let output = Rot::cargo_bin("rot").unwrap().args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    };
    wrong(&["solve", "1+1", "--base-url", "localhost:80", "--model", "m"]);
    wrong(&["solve", "1+1", "--base-url", &server.url]);
    wrong(&["solve", "1+1", "--few-shot", "3"]);
    let tokens = ["--spelling", "tokens", "--few-shot", "3"];
    wrong(&[&["solve", "1+1", "--base-url", &server.url, "--model", "m"], &tokens[..]].concat());
}
