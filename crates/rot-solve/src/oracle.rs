//! The ground truth as a generator: it says what a perfect model says.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use rot_core::{Problem, Span as Stretch, Step, Thoughts, Token};
use rot_problems::problem_of;

use crate::generator::{ContextId, End, Generator, Span};

/// Thinks as the problems do.
pub struct Oracle {
    problems: &'static [&'static dyn Problem],
    limit: usize,
    contexts: HashMap<ContextId, Open, FixedState>,
    /// What has been submitted and not continued yet.
    ready: Vec<(ContextId, usize)>,
}

/// An open context.
struct Open {
    /// The body of the question.
    question: Vec<Token>,
    /// The answers so far, without their STOP.
    memory: Vec<Token>,
    answers: Vec<Stretch>,
}

impl Oracle {
    /// For questions of the given problems, in contexts of up to `limit` tokens.
    pub fn new(problems: &'static [&'static dyn Problem], limit: usize) -> Oracle {
        Oracle { problems, limit, contexts: HashMap::default(), ready: Vec::new() }
    }

    fn say(&self, open: &Open) -> Result<Vec<Token>, String> {
        let problem = problem_of(self.problems, &open.question)
            .filter(|problem| problem.check(&open.question).is_ok())
            .ok_or("no problem has such a question")?;
        let mut out = Vec::new();
        let step = Thoughts::step(problem, &open.question, &open.memory, &open.answers, &mut out)
            .map_err(|lost| format!("{}: {}", problem.name(), lost.0))?;
        match step {
            Step::Ask(_) => out.push(Token::THINK),
            Step::Tail(_) => {
                out[0] = Token::TAIL;
                out.push(Token::THINK);
            }
            Step::Answer => (),
        }
        Ok(out)
    }
}

impl Generator for Oracle {
    fn limit(&self) -> usize {
        self.limit
    }

    fn unknown(&self, _: &[Token]) -> Option<Token> {
        None
    }

    fn submit(&mut self, id: ContextId, append: &[Token], most: usize) {
        match self.contexts.get_mut(&id) {
            None => {
                let body = append.get(1..append.len() - 1).unwrap_or_default();
                let question = body.to_vec();
                self.contexts.insert(id, Open { question, memory: vec![], answers: vec![] });
            }
            Some(open) => {
                let answer = append.strip_suffix(&[Token::STOP]).unwrap_or(append);
                open.answers.push(Stretch { start: open.memory.len(), len: answer.len() as u32 });
                open.memory.extend_from_slice(answer);
            }
        }
        self.ready.push((id, most));
    }

    fn poll(&mut self, ended: &mut Vec<Span>) {
        for (id, most) in std::mem::take(&mut self.ready) {
            let Some(open) = self.contexts.get(&id) else { continue };
            let (mut tokens, mut end) = match self.say(open) {
                Ok(tokens) => (tokens, End::Whole),
                Err(why) => (Vec::new(), End::Failed(why)),
            };
            if tokens.len() > most {
                tokens.truncate(most);
                end = End::Full;
            }
            ended.push(Span { id, tokens, margin: f32::INFINITY, end });
        }
    }

    fn release(&mut self, id: ContextId) {
        self.contexts.remove(&id);
        self.ready.retain(|&(ready, _)| ready != id);
    }
}
