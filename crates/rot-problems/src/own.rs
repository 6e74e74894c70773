//! Problems from outside: contexts in JSON Lines, one a line.
//!
//! ```json
//! {"question": "<GO>12+3=", "thoughts": [{"question": "<GO>2+3=", "answer": "5<STOP>", "tail": false}], "answer": "15<STOP>"}
//! {"question": "<GO>2+3=", "thoughts": [], "answer": "5<STOP>"}
//! ```
//!
//! [`check`] says whether the contexts of a file hold together.

mod line;

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead};

use rot_core::{Excerpt, Token, Vocabulary};
use serde::Serialize;

use self::line::{CONTEXT, OwnContext, Read, read_lines};

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
    let Read { contexts, broken, complete } = read_lines(input, &mut findings)?;

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
