//! Files to fine-tune a model with.

use std::collections::HashSet;
use std::hash::BuildHasher;
use std::io::{self, Write};

use foldhash::fast::FixedState;
use rot_core::{
    Context, Example, Paradigm, Problem, Sampler, Sampling, SizeError, ThoughtGraph, Token,
    UnfoldError,
};
use serde::Serialize;

use crate::words::write_words;

/// How a line of the file looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `{"prompt": ..., "completion": ...}`, as in the paper.
    PromptCompletion,
    /// `{"messages": [...]}`: a user and an assistant.
    Chat,
    /// `{"segments": [...]}`: text without and with a label.
    Segments,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 3] = [Format::PromptCompletion, Format::Chat, Format::Segments];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Format::PromptCompletion => "prompt-completion",
            Format::Chat => "chat",
            Format::Segments => "segments",
        }
    }
}

/// What to write.
pub struct Finetune<'a> {
    /// Problems with their sizes, taken in turn.
    pub problems: &'a [(&'static dyn Problem, u32)],
    /// RoT or WT.
    pub paradigm: Paradigm,
    /// Which problems are drawn.
    pub seed: u64,
    /// How many lines.
    pub examples: u64,
    /// Whether a line is written only once. That takes about 16 bytes of memory a line.
    pub unique: bool,
    /// How a line looks.
    pub format: Format,
    /// What is written after a completion, for formats whose readers do not add an end themselves.
    pub end: &'a str,
    /// Problems that are left out, as for a test.
    pub without: &'a HashSet<Vec<Token>>,
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exported {
    /// Lines.
    pub examples: u64,
    /// Those that end in THINK; the others end in STOP.
    pub thinks: u64,
    /// Problems that they come from.
    pub problems: u64,
    /// Contexts that they come from.
    pub contexts: u64,
    /// Lines that were left out because they had been written.
    pub repeated: u64,
    /// Problems that were left out for the test.
    pub left_out: u64,
    /// Tokens of all prompts, and of the longest.
    pub prompt_tokens: u64,
    /// The most tokens of a prompt.
    pub longest_prompt: usize,
    /// Tokens of all completions.
    pub completion_tokens: u64,
    /// The most tokens of a completion.
    pub longest_completion: usize,
}

/// Why a file cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A size that the problem does not have.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// A problem cannot be unfolded.
    #[error(transparent)]
    Unfold(#[from] UnfoldError),
    /// Chains of thought are one context: there is nothing to say THINK to.
    #[error("chains of thought are not made for fine-tuning here: choose rot or wt")]
    Paradigm,
    /// There is nothing new to write.
    #[error("after {0} lines there seem to be no others: ask for fewer, or for repeated ones")]
    Exhausted(u64),
    /// The file.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Problems in a row without anything new after which there seems to be nothing left.
const PATIENCE: u64 = 10_000;

impl Finetune<'_> {
    /// Writes the lines; `progress` hears after each problem how many there are.
    ///
    /// As in the paper, all different contexts of a problem are written, one after another, so memory
    /// holds one problem at a time.
    pub fn write(
        &self,
        out: &mut impl Write,
        mut progress: impl FnMut(u64),
    ) -> Result<Exported, ExportError> {
        if self.paradigm == Paradigm::Cot {
            return Err(ExportError::Paradigm);
        }
        let sampler = |&(problem, size)| Sampler::new(problem, size, Sampling::Paper, self.seed);
        let samplers: Vec<Sampler> = self.problems.iter().map(sampler).collect::<Result<_, _>>()?;
        let mut written = Exported::default();
        let mut seen = HashSet::with_hasher(FixedState::default());
        let (mut graph, mut context) = (ThoughtGraph::default(), Context::default());
        let (mut question, mut in_vain) = (Vec::new(), 0);
        for index in 0u64.. {
            if written.examples >= self.examples {
                break;
            }
            if in_vain >= PATIENCE {
                return Err(ExportError::Exhausted(written.examples));
            }
            let turn = (index % samplers.len().max(1) as u64) as usize;
            let Some(sampler) = samplers.get(turn) else { break };
            sampler.write_question(index / samplers.len() as u64, &mut question);
            in_vain += 1;
            if self.without.contains(&question) {
                written.left_out += 1;
                continue;
            }
            graph.clear();
            let root = graph.unfold(self.problems[turn].0, &question)?;
            written.problems += 1;
            let contexts: Vec<_> = match self.paradigm {
                Paradigm::Rot => graph.contexts().collect(),
                Paradigm::Wt | Paradigm::Cot => vec![root],
            };
            for id in contexts {
                context.clear();
                match self.paradigm {
                    Paradigm::Rot => graph.write_rot(id, &mut context),
                    Paradigm::Wt | Paradigm::Cot => graph.write_wt(id, &mut context),
                }
                written.contexts += 1;
                for example in context.examples() {
                    if written.examples >= self.examples {
                        break;
                    }
                    let text = write_example(&example, self.format, self.end);
                    if self.unique && !seen.insert(FixedState::default().hash_one(&text)) {
                        written.repeated += 1;
                        continue;
                    }
                    out.write_all(text.as_bytes())?;
                    written.count(&example);
                    in_vain = 0;
                }
            }
            progress(written.examples);
        }
        Ok(written)
    }
}

impl Exported {
    fn count(&mut self, example: &Example<'_>) {
        let Example { prompt, completion } = example;
        self.examples += 1;
        self.thinks += u64::from(completion.last() == Some(&Token::THINK));
        self.prompt_tokens += prompt.len() as u64;
        self.longest_prompt = self.longest_prompt.max(prompt.len());
        self.completion_tokens += completion.len() as u64;
        self.longest_completion = self.longest_completion.max(completion.len());
    }
}

/// An example as a line of a file, with spaces between as the paper's lines have them.
pub fn write_example(example: &Example<'_>, format: Format, end: &str) -> String {
    let (mut prompt, mut completion) = (String::new(), String::new());
    write_words(example.prompt, &mut prompt);
    write_words(example.completion, &mut completion);
    completion.push_str(end);
    let prompt = serde_json::Value::from(prompt);
    let completion = serde_json::Value::from(completion);
    match format {
        Format::PromptCompletion => {
            format!("{{\"prompt\": {prompt}, \"completion\": {completion}}}\n")
        }
        Format::Chat => format!(
            "{{\"messages\": [{{\"role\": \"user\", \"content\": {prompt}}}, \
             {{\"role\": \"assistant\", \"content\": {completion}}}]}}\n"
        ),
        Format::Segments => format!(
            "{{\"segments\": [{{\"label\": false, \"text\": {prompt}}}, \
             {{\"label\": true, \"text\": {completion}}}]}}\n"
        ),
    }
}

#[cfg(test)]
mod tests {
    use rot_core::parse_tokens;
    use rot_problems::{Add, Mul};

    use super::*;

    /// The lines of a context of a problem.
    fn lines(problem: &'static dyn Problem, root: &str, question: &str, wt: bool) -> String {
        let mut graph = ThoughtGraph::default();
        graph.unfold(problem, &parse_tokens(root).unwrap()).unwrap();
        let id = graph.find(&parse_tokens(question).unwrap()).unwrap();
        let mut context = Context::default();
        match wt {
            true => graph.write_wt(id, &mut context),
            false => graph.write_rot(id, &mut context),
        }
        let line = |example| write_example(&example, Format::PromptCompletion, "");
        context.examples().map(line).collect()
    }

    #[test]
    fn the_papers_lines_byte_for_byte() {
        let rot = lines(&Add, "<GO>408+351=", "<GO>40+35=", false);
        let expected = r#"{"prompt": " go 4 0 + 3 5 =", "completion": " go 0 + 5 = think"}
{"prompt": " go 4 0 + 3 5 = go 0 + 5 = 5 stop", "completion": " go 4 + 3 = think"}
{"prompt": " go 4 0 + 3 5 = go 0 + 5 = 5 stop go 4 + 3 = 7 stop", "completion": " 7 5 stop"}
"#;
        assert_eq!(rot, expected);
        let wt = lines(&Add, "<GO>40+35=", "<GO>40+35=", true);
        assert_eq!(wt, "{\"prompt\": \" go 4 0 + 3 5 =\", \"completion\": \" 7 5 stop\"}\n");
        let tail = lines(&Mul, "<GO>34*5=", "<GO>34*5=", false);
        let last = tail.lines().last().unwrap();
        assert!(last.ends_with(r#""completion": " tail 1 5 0 + 2 0 = think"}"#), "{last}");
    }

    fn written(unique: bool, without: &HashSet<Vec<Token>>, examples: u64) -> (Exported, String) {
        let finetune = Finetune {
            problems: &[(&Add, 3), (&Mul, 2)],
            paradigm: Paradigm::Rot,
            seed: 1,
            examples,
            unique,
            format: Format::Segments,
            end: "</s>",
            without,
        };
        let mut out = Vec::new();
        let exported = finetune.write(&mut out, |_| ()).unwrap();
        (exported, String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_file_has_what_was_asked_for() {
        let (all, text) = written(false, &HashSet::new(), 5000);
        assert_eq!((all.examples, text.lines().count()), (5000, 5000));
        assert!(all.thinks > 1000 && all.thinks < 4000);
        for line in text.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(line["segments"][1]["text"].as_str().unwrap().ends_with("</s>"));
        }
        let (once, text) = written(true, &HashSet::new(), 3000);
        let different: HashSet<&str> = text.lines().collect();
        assert_eq!((different.len(), once.examples), (3000, 3000));
        assert!(once.repeated > 0);
    }

    #[test]
    fn problems_of_a_test_are_left_out() {
        let mut first = Vec::new();
        Sampler::new(&Add, 3, Sampling::Paper, 1).unwrap().write_question(0, &mut first);
        let (exported, _) = written(false, &HashSet::from([first]), 100);
        assert!(exported.left_out >= 1);
    }

    #[test]
    fn what_is_exhausted_ends() {
        let finetune = Finetune {
            problems: &[(&Add, 1)],
            paradigm: Paradigm::Wt,
            seed: 0,
            examples: 1000,
            unique: true,
            format: Format::Chat,
            end: "",
            without: &HashSet::new(),
        };
        let error = finetune.write(&mut Vec::new(), |_| ()).unwrap_err();
        assert!(matches!(error, ExportError::Exhausted(count) if count <= 100), "{error}");
    }
}
