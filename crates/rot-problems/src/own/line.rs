//! The lines of a file of contexts, each by itself.

use std::collections::HashSet;
use std::io::{self, BufRead};

use rot_core::{Excerpt, Token, parse_tokens};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Finding, MOST_FINDINGS};
use crate::lines::Lines;

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

pub(super) struct OwnContext {
    pub(super) line: usize,
    pub(super) question: Vec<Token>,
    pub(super) thoughts: Vec<OwnThought>,
    pub(super) answer: Vec<Token>,
}

#[derive(PartialEq, Eq)]
pub(super) struct OwnThought {
    /// As its own context begins: with `<GO>`.
    pub(super) question: Vec<Token>,
    pub(super) answer: Vec<Token>,
    pub(super) tail: bool,
}

impl OwnContext {
    fn ends_in_tail(&self) -> bool {
        self.thoughts.last().is_some_and(|thought| thought.tail)
    }

    /// The number of tokens that a model sees.
    pub(super) fn len(&self) -> usize {
        let thoughts = self.thoughts.iter().map(|thought| {
            thought.question.len() + if thought.tail { 1 } else { thought.answer.len() }
        });
        let answer = if self.ends_in_tail() { 0 } else { self.answer.len() };
        self.question.len() + thoughts.sum::<usize>() + answer
    }

    pub(super) fn push_tokens(&self, tokens: &mut Vec<Token>) {
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
pub(super) struct Read {
    pub(super) contexts: Vec<OwnContext>,
    /// The questions of lines that are otherwise wrong: they are not missing.
    pub(super) broken: HashSet<Vec<Token>>,
    /// Whether the whole file was read.
    pub(super) complete: bool,
}

/// Reads the lines that are contexts by themselves, and reports the others.
pub(super) fn read_lines(input: impl BufRead, findings: &mut Vec<Finding>) -> io::Result<Read> {
    let mut read = Read { contexts: Vec::new(), broken: HashSet::new(), complete: true };
    let mut lines = Lines::new(input);
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

/// The shape of a context.
pub(super) const CONTEXT: &str = r#"{"question": ..., "thoughts": [...], "answer": ...}"#;
/// The shape of a thought.
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
