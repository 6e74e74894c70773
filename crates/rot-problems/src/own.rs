//! Problems from outside: contexts in JSON Lines, one a line.
//!
//! ```json
//! {"question": "<GO>12+3=", "thoughts": [{"question": "<GO>2+3=", "answer": "5<STOP>", "tail": false}], "answer": "15<STOP>"}
//! {"question": "<GO>2+3=", "thoughts": [], "answer": "5<STOP>"}
//! ```
//!
//! [`check`] says whether the contexts of a file hold together.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead};

use rot_core::{Excerpt, Token, Vocabulary, parse_tokens};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::lines;

/// After so many findings in single lines the rest of the file is not read, and no more are listed.
const MOST_FINDINGS: usize = 1000;

/// What is wrong in a line, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

/// What a file of contexts holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Different questions with a context.
    pub contexts: usize,
    /// Questions that no context asks: the problems.
    pub problems: usize,
    /// The number of tokens in the longest context.
    pub longest_context: usize,
    /// The tokens of all contexts, in canonical order.
    pub vocabulary: String,
    /// How many of them there are.
    pub vocabulary_size: usize,
    /// What is wrong, in the order of the lines.
    pub findings: Vec<Finding>,
    /// How many more findings there are than listed.
    pub findings_left_out: usize,
}

/// Checks contexts in JSON Lines. No context may be longer than `max_context` tokens.
pub fn check(input: impl BufRead, max_context: usize) -> io::Result<Report> {
    let mut findings = Vec::new();
    let Lines { contexts, broken, complete } = read_lines(input, &mut findings)?;

    let mut longest_context = 0;
    let mut tokens = Vec::new();
    for context in &contexts {
        let length = context.len();
        longest_context = longest_context.max(length);
        if length > max_context {
            findings.push(Finding {
                line: context.line,
                what: format!("the context has {length} tokens, over the limit of {max_context}"),
                remedy: "split it into more thoughts, or raise --max-context".into(),
            });
        }
        context.push_tokens(&mut tokens);
        tokens.sort_unstable();
        tokens.dedup();
    }
    let vocabulary = Vocabulary::of(tokens);
    if contexts.is_empty() && findings.is_empty() {
        findings.push(Finding {
            line: 1,
            what: "there is no context".into(),
            remedy: format!("write {CONTEXT}, one a line"),
        });
    }

    let index = index_contexts(&contexts, &mut findings);
    let mut is_asked = vec![false; contexts.len()];
    // What the rest of the file would say is not known: its contexts may be just those missed.
    if complete {
        let asked = check_thoughts(&contexts, &index, &broken, &mut findings);
        check_cycles(&contexts, &asked, &mut findings);
        asked.iter().flatten().for_each(|&context| is_asked[context] = true);
    }
    findings.sort();
    let findings_left_out = findings.len().saturating_sub(MOST_FINDINGS);
    findings.truncate(MOST_FINDINGS);
    Ok(Report {
        contexts: index.len(),
        problems: index.values().filter(|&&context| !is_asked[context]).count(),
        longest_context,
        vocabulary: vocabulary.to_string(),
        vocabulary_size: vocabulary.len(),
        findings,
        findings_left_out,
    })
}

type Object = serde_json::Map<String, serde_json::Value>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ContextLine {
    question: String,
    thoughts: Vec<Object>,
    answer: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThoughtLine {
    question: String,
    answer: String,
    #[serde(default)]
    tail: bool,
}

struct OwnContext {
    line: usize,
    question: Vec<Token>,
    thoughts: Vec<OwnThought>,
    answer: Vec<Token>,
}

#[derive(PartialEq, Eq)]
struct OwnThought {
    /// As its own context begins: with `<GO>`.
    question: Vec<Token>,
    answer: Vec<Token>,
    tail: bool,
}

impl OwnContext {
    fn ends_in_tail(&self) -> bool {
        self.thoughts.last().is_some_and(|thought| thought.tail)
    }

    /// The number of tokens that a model sees.
    fn len(&self) -> usize {
        let thoughts = self.thoughts.iter().map(|thought| {
            thought.question.len() + if thought.tail { 1 } else { thought.answer.len() }
        });
        let answer = if self.ends_in_tail() { 0 } else { self.answer.len() };
        self.question.len() + thoughts.sum::<usize>() + answer
    }

    fn push_tokens(&self, tokens: &mut Vec<Token>) {
        tokens.push(Token::PAD);
        tokens.extend(&self.question);
        tokens.extend(&self.answer);
        for thought in &self.thoughts {
            tokens.extend(&thought.question);
            tokens.extend(&thought.answer);
            tokens.push(Token::THINK);
            if thought.tail {
                tokens.push(Token::TAIL);
            }
        }
    }
}

/// What the lines of a file hold, each by itself.
struct Lines {
    contexts: Vec<OwnContext>,
    /// The questions of lines that are otherwise wrong: they are not missing.
    broken: HashSet<Vec<Token>>,
    /// Whether the whole file was read.
    complete: bool,
}

/// Reads the lines that are contexts by themselves, and reports the others.
fn read_lines(input: impl BufRead, findings: &mut Vec<Finding>) -> io::Result<Lines> {
    let mut read = Lines { contexts: Vec::new(), broken: HashSet::new(), complete: true };
    let mut lines = lines::Lines::new(input);
    let mut number = 0;
    while let Some(line) = lines.next_line()? {
        number += 1;
        let result = match line {
            Ok(line) if line.trim().is_empty() => continue,
            Ok(line) => read_context(line, number, &mut read.broken),
            Err(error) => Err(Complaint::new(error.what, "write UTF-8, one context a line")),
        };
        match result {
            Ok(context) => read.contexts.push(context),
            Err(Complaint { what, remedy }) => {
                findings.push(Finding { line: number, what, remedy });
            }
        }
        if findings.len() == MOST_FINDINGS {
            read.complete = false;
            break;
        }
    }
    Ok(read)
}

struct Complaint {
    what: String,
    remedy: String,
}

impl Complaint {
    fn new(what: impl Into<String>, remedy: impl Into<String>) -> Complaint {
        Complaint { what: what.into(), remedy: remedy.into() }
    }
}

/// Reads a context. Where only its answer or its thoughts are wrong, its question is remembered.
fn read_context(
    line: &str,
    number: usize,
    broken: &mut HashSet<Vec<Token>>,
) -> Result<OwnContext, Complaint> {
    let object: Object = serde_json::from_str(line).map_err(|error| not_a(CONTEXT, &error))?;
    let raw: ContextLine = from_object(object, CONTEXT)?;
    let question = read_question(&raw.question, "the question", false)?;
    match read_solution(raw) {
        Ok((thoughts, answer)) => Ok(OwnContext { line: number, question, thoughts, answer }),
        Err(complaint) => {
            broken.insert(question);
            Err(complaint)
        }
    }
}

const CONTEXT: &str = r#"{"question": ..., "thoughts": [...], "answer": ...}"#;
const THOUGHT: &str = r#"{"question": ..., "answer": ..., "tail": false}"#;

/// Reads fields by name: by itself, serde would take a list of values for them.
fn from_object<T: DeserializeOwned>(object: Object, shape: &str) -> Result<T, Complaint> {
    serde_json::from_value(object.into()).map_err(|error| not_a(shape, &error))
}

fn not_a(shape: &str, error: &serde_json::Error) -> Complaint {
    // The line in serde's message would be that within this one line.
    let message = error.to_string();
    let message = message.rsplit_once(" at line").map_or(message.as_str(), |(what, _)| what);
    let column = match error.column() {
        0 => String::new(),
        column => format!(" (column {column})"),
    };
    let what = if shape == CONTEXT { "a context" } else { "a thought" };
    Complaint::new(format!("not {what}: {message}{column}"), format!("write {shape}"))
}

/// Reads the thoughts and the answer of a context.
fn read_solution(raw: ContextLine) -> Result<(Vec<OwnThought>, Vec<Token>), Complaint> {
    let answer = read_answer(&raw.answer, "the answer")?;
    let mut thoughts = Vec::with_capacity(raw.thoughts.len());
    let count = raw.thoughts.len();
    for (place, thought) in raw.thoughts.into_iter().enumerate() {
        let which = place + 1;
        let thought: ThoughtLine = from_object(thought, THOUGHT)?;
        if thought.tail && which < count {
            return Err(Complaint::new(
                format!("thought {which} of {count} is a tail call"),
                "only the last thought may have \"tail\": true",
            ));
        }
        thoughts.push(OwnThought {
            question: read_question(
                &thought.question,
                &format!("the question of thought {which}"),
                thought.tail,
            )?,
            answer: read_answer(&thought.answer, &format!("the answer of thought {which}"))?,
            tail: thought.tail,
        });
    }
    if let Some(tail) = thoughts.last().filter(|thought| thought.tail && thought.answer != answer) {
        return Err(Complaint::new(
            format!(
                "the answer is '{}', but that of the tail call is '{}'",
                Excerpt(&answer),
                Excerpt(&tail.answer)
            ),
            "the answer of a tail call is the answer of the context: make them equal",
        ));
    }
    Ok((thoughts, answer))
}

fn read_tokens(text: &str, which: &str) -> Result<Vec<Token>, Complaint> {
    parse_tokens(text).map_err(|error| {
        let known: Vec<&str> = Token::ALL.iter().map(|token| token.text()).collect();
        Complaint::new(
            format!("{which} has an {error}"),
            format!("use only the known tokens: {}", known.join(" ")),
        )
    })
}

/// Reads a question, which begins with `<GO>`; that of a tail call may begin with `<TAIL>`.
fn read_question(text: &str, which: &str, tail: bool) -> Result<Vec<Token>, Complaint> {
    let mut tokens = read_tokens(text, which)?;
    match tokens.first_mut() {
        Some(first) if *first == Token::GO => {}
        Some(first) if tail && *first == Token::TAIL => *first = Token::GO,
        _ => {
            let what = format!("{which} does not begin with <GO>");
            return Err(Complaint::new(what, "begin every question with <GO>"));
        }
    }
    if tokens.len() == 1 {
        let what = format!("{which} is empty");
        return Err(Complaint::new(what, "write the question after its <GO>"));
    }
    check_no_control(&tokens[1..], which)?;
    Ok(tokens)
}

/// Reads an answer, which ends with `<STOP>`.
fn read_answer(text: &str, which: &str) -> Result<Vec<Token>, Complaint> {
    let tokens = read_tokens(text, which)?;
    match tokens.split_last() {
        Some((&Token::STOP, before)) => check_no_control(before, which)?,
        _ => {
            let what = format!("{which} does not end with <STOP>");
            return Err(Complaint::new(what, "end every answer with <STOP>"));
        }
    }
    Ok(tokens)
}

fn check_no_control(tokens: &[Token], which: &str) -> Result<(), Complaint> {
    match tokens.iter().find(|token| token.is_control()) {
        Some(token) => Err(Complaint::new(
            format!("{which} has a {token} inside"),
            "take it out: PAD, GO, STOP, THINK and TAIL are put in where contexts are built",
        )),
        None => Ok(()),
    }
}

/// Finds the context of each question. A line may be repeated, but not with another content.
fn index_contexts<'a>(
    contexts: &'a [OwnContext],
    findings: &mut Vec<Finding>,
) -> HashMap<&'a [Token], usize> {
    let mut index: HashMap<&[Token], usize> = HashMap::with_capacity(contexts.len());
    for (place, context) in contexts.iter().enumerate() {
        let first = *index.entry(&context.question).or_insert(place);
        let first = &contexts[first];
        if first.answer != context.answer || first.thoughts != context.thoughts {
            let differs = if first.answer == context.answer { "solved" } else { "answered" };
            findings.push(Finding {
                line: context.line,
                what: format!(
                    "'{}' is {differs} in another way on line {}",
                    Excerpt(&context.question),
                    first.line
                ),
                remedy: "keep one of the two: a question has one answer and one way to it".into(),
            });
        }
    }
    index
}

/// Finds the context that answers each thought, and reports those without one or with another answer.
fn check_thoughts(
    contexts: &[OwnContext],
    index: &HashMap<&[Token], usize>,
    broken: &HashSet<Vec<Token>>,
    findings: &mut Vec<Finding>,
) -> Vec<Vec<usize>> {
    let mut asked = vec![Vec::new(); contexts.len()];
    for (place, context) in contexts.iter().enumerate() {
        for (which, thought) in context.thoughts.iter().enumerate() {
            let which = which + 1;
            let question = Excerpt(&thought.question);
            let Some(&found) = index.get(thought.question.as_slice()) else {
                if !broken.contains(&thought.question) {
                    let what =
                        format!("no context answers '{question}', which thought {which} asks");
                    let remedy = "add a line with that question, or mend the thought".into();
                    findings.push(Finding { line: context.line, what, remedy });
                }
                continue;
            };
            asked[place].push(found);
            let answering = &contexts[found];
            if answering.answer != thought.answer {
                findings.push(Finding {
                    line: context.line,
                    what: format!(
                        "thought {which} answers '{question}' with '{}', but line {} with '{}'",
                        Excerpt(&thought.answer),
                        answering.line,
                        Excerpt(&answering.answer)
                    ),
                    remedy: "make the two answers equal".into(),
                });
            }
        }
    }
    asked
}

/// Reports each context that waits, directly or not, for its own question.
fn check_cycles(contexts: &[OwnContext], asked: &[Vec<usize>], findings: &mut Vec<Finding>) {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        /// On the path, at that place.
        Open(usize),
        Done,
    }
    let mut states = vec![State::New; contexts.len()];
    for start in 0..contexts.len() {
        if states[start] != State::New {
            continue;
        }
        states[start] = State::Open(0);
        // The path from `start`, each context with the number of its thoughts that were followed.
        let mut path = vec![(start, 0)];
        while let Some((context, followed)) = path.last_mut() {
            let context = *context;
            let Some(&next) = asked[context].get(*followed) else {
                states[context] = State::Done;
                path.pop();
                continue;
            };
            *followed += 1;
            match states[next] {
                State::New => {
                    states[next] = State::Open(path.len());
                    path.push((next, 0));
                }
                State::Open(first) => {
                    let circle = &path[first..];
                    let lines: Vec<String> = circle
                        .iter()
                        .take(8)
                        .map(|&(open, _)| contexts[open].line.to_string())
                        .collect();
                    let more = if circle.len() > lines.len() { " -> ..." } else { "" };
                    findings.push(Finding {
                        line: contexts[context].line,
                        what: format!(
                            "'{}' waits for its own answer, through line {}{more}",
                            Excerpt(&contexts[next].question),
                            lines.join(" -> ")
                        ),
                        remedy: "a thought must ask something smaller: break the circle".into(),
                    });
                }
                State::Done => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(question: &str, thoughts: &[(&str, &str, bool)], answer: &str) -> String {
        let thoughts: Vec<_> = thoughts
            .iter()
            .map(|(q, a, tail)| serde_json::json!({"question": q, "answer": a, "tail": tail}))
            .collect();
        serde_json::json!({"question": question, "thoughts": thoughts, "answer": answer})
            .to_string()
    }

    fn report(lines: &[String]) -> Report {
        check(lines.join("\n").as_bytes(), 100).unwrap()
    }

    /// The one finding: its line and what is wrong.
    fn finding(lines: &[String]) -> (usize, String) {
        let findings = report(lines).findings;
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(!findings[0].remedy.is_empty());
        (findings[0].line, findings[0].what.clone())
    }

    fn leaf() -> String {
        context("<GO>2+3=", &[], "5<STOP>")
    }

    #[test]
    fn a_good_file_is_summed_up() {
        let lines = [
            context("<GO>12+3=", &[("<GO>2+3=", "5<STOP>", false)], "15<STOP>"),
            leaf(),
            String::new(),
            leaf(),
            context("<GO>2*3=", &[("<TAIL>2+3=", "5<STOP>", true)], "5<STOP>"),
        ];
        let report = report(&lines);
        assert_eq!(report.findings, []);
        assert_eq!((report.contexts, report.problems, report.longest_context), (3, 2, 16));
        assert_eq!(report.vocabulary, "<PAD><GO><STOP><THINK><TAIL>1235=+*");
    }

    #[test]
    fn a_line_must_be_a_context() {
        for (line, what) in [
            ("{", "not a context: EOF while parsing an object (column 1)"),
            ("3", "not a context: invalid type: integer `3`, expected a map (column 1)"),
            (r#"["<GO>2+3=", [], "5<STOP>"]"#, "not a context: invalid type: sequence"),
            (r#"{"question": "<GO>1=", "answer": "1<STOP>"}"#, "missing field `thoughts`"),
            (r#"{"question": 1, "thoughts": [], "answer": ""}"#, "invalid type: integer `1`"),
            (
                r#"{"question": "<GO>1=", "thoughts": [], "answer": "1<STOP>", "tial": 1}"#,
                "unknown field `tial`",
            ),
            (
                r#"{"question": "<GO>1=", "thoughts": [["<GO>2+3=", "5<STOP>"]], "answer": "1<STOP>"}"#,
                "invalid type: sequence",
            ),
            (
                r#"{"question": "<GO>1=", "thoughts": [{"question": "<GO>2+3="}], "answer": "1<STOP>"}"#,
                "not a thought: missing field `answer`",
            ),
        ] {
            let (number, found) = finding(&[leaf(), line.to_owned()]);
            assert_eq!(number, 2);
            assert!(found.contains(what), "{found}");
        }
    }

    #[test]
    fn tokens_stand_where_they_may() {
        let thought = |q: &str, a: &str| context("<GO>1=", &[(q, a, false)], "1<STOP>");
        for (line, what) in [
            (
                context("<GO>1?=", &[], "1<STOP>"),
                "the question has an unknown token '?' at position 6",
            ),
            (context("1=", &[], "1<STOP>"), "the question does not begin with <GO>"),
            (context("", &[], "1<STOP>"), "the question does not begin with <GO>"),
            (context("<GO>", &[], "1<STOP>"), "the question is empty"),
            (context("<GO>1<GO>=", &[], "1<STOP>"), "the question has a <GO> inside"),
            (context("<GO>1=", &[], "1"), "the answer does not end with <STOP>"),
            (context("<GO>1=", &[], "<THINK><STOP>"), "the answer has a <THINK> inside"),
            (
                thought("<TAIL>2+3=", "5<STOP>"),
                "the question of thought 1 does not begin with <GO>",
            ),
            (thought("<GO>2+3=", "5"), "the answer of thought 1 does not end with <STOP>"),
        ] {
            assert_eq!(finding(&[leaf(), line]), (2, what.to_owned()));
        }
    }

    #[test]
    fn a_tail_call_comes_last_and_gives_the_answer() {
        let tail = ("<GO>2+3=", "5<STOP>", true);
        let (line, what) = finding(&[leaf(), context("<GO>1=", &[tail, tail], "5<STOP>")]);
        assert_eq!((line, what.as_str()), (2, "thought 1 of 2 is a tail call"));
        let (_, what) = finding(&[leaf(), context("<GO>1=", &[tail], "6<STOP>")]);
        assert_eq!(what, "the answer is '6<STOP>', but that of the tail call is '5<STOP>'");
    }

    #[test]
    fn thoughts_are_answered_by_contexts() {
        let asks = |answer: &str| context("<GO>12+3=", &[("<GO>2+3=", answer, false)], "15<STOP>");
        let (line, what) = finding(&[asks("5<STOP>")]);
        assert_eq!(
            (line, what.as_str()),
            (1, "no context answers '<GO>2+3=', which thought 1 asks")
        );
        let (line, what) = finding(&[leaf(), asks("6<STOP>")]);
        assert_eq!(line, 2);
        assert_eq!(what, "thought 1 answers '<GO>2+3=' with '6<STOP>', but line 1 with '5<STOP>'");
    }

    #[test]
    fn a_question_has_one_answer() {
        let (line, what) = finding(&[leaf(), context("<GO>2+3=", &[], "6<STOP>")]);
        assert_eq!((line, what.as_str()), (2, "'<GO>2+3=' is answered in another way on line 1"));
    }

    #[test]
    fn circles_are_found_however_long() {
        let (line, what) =
            finding(&[context("<GO>1=", &[("<GO>1=", "1<STOP>", false)], "1<STOP>")]);
        assert_eq!((line, what.as_str()), (1, "'<GO>1=' waits for its own answer, through line 1"));

        let count = 100_000;
        let question = |number: usize| format!("<GO>{}=", number % count);
        let lines: Vec<String> = (0..count)
            .map(|n| context(&question(n), &[(&question(n + 1), "1<STOP>", false)], "1<STOP>"))
            .collect();
        assert!(finding(&lines).1.starts_with("'<GO>0=' waits for its own answer"));
    }

    #[test]
    fn long_contexts_are_reported() {
        let long = context("<GO>1=", &[], &format!("{}<STOP>", "1".repeat(97)));
        let (_, what) = finding(&[long]);
        assert_eq!(what, "the context has 101 tokens, over the limit of 100");
    }

    #[test]
    fn a_hopeless_file_is_not_read_to_the_end() {
        let asks = context("<GO>12+3=", &[("<GO>2+3=", "5<STOP>", false)], "15<STOP>");
        let mut lines = vec![asks];
        lines.extend(vec!["junk".to_owned(); 5000]);
        lines.push(leaf());
        // Nothing is said of the thought in the first line: its answer was not read.
        let report = report(&lines);
        assert_eq!((report.findings.len(), report.findings_left_out), (MOST_FINDINGS, 0));
        assert_eq!((report.findings[0].line, report.findings[999].line), (2, 1001));
    }

    #[test]
    fn an_empty_file_holds_nothing() {
        assert_eq!(finding(&[]), (1, "there is no context".into()));
        assert_eq!(finding(&[String::new(), " ".into()]), (1, "there is no context".into()));
    }

    #[test]
    fn a_broken_line_is_not_a_missing_one() {
        let asks = context("<GO>12+3=", &[("<GO>2+3=", "5<STOP>", false)], "15<STOP>");
        let (line, what) = finding(&[asks, context("<GO>2+3=", &[], "5")]);
        assert_eq!((line, what.as_str()), (2, "the answer does not end with <STOP>"));
    }

    #[test]
    fn many_findings_are_counted_and_some_are_listed() {
        let asks =
            |n: usize| context(&format!("<GO>{n}="), &[("<GO>=", "1<STOP>", false)], "1<STOP>");
        let report = report(&(1..=1500).map(asks).collect::<Vec<_>>());
        assert_eq!((report.findings.len(), report.findings_left_out), (MOST_FINDINGS, 500));
    }
}
