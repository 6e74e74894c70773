//! The recursion machine: Algorithm 1 of the paper without recursion.
//!
//! A context is a frame on the heap. When it says THINK it waits for the context of its sub-question;
//! when that one says STOP, the answer takes the place of THINK and it goes on. A sub-question after
//! TAIL replaces the frame: its answer goes straight to whoever waits for the frame.
//!
//! Contexts of many questions are open at the same time; all that do not wait are continued together
//! by the [`Generator`]. A root has at most one context that does not wait, at the end of its *chain*:
//! the root waits for a context, which waits for another one, and so on. Chains of several roots can
//! run together: a question that is being solved already is not opened again.

mod failing;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use foldhash::fast::FixedState;
use rot_core::Token;

use crate::failure::{Cause, Failure, Rule};
use crate::generator::{ContextId, End, Generator, Span};
use crate::limits::{Limit, Limits};
use crate::memo::{Known, Memo, Tokens};
use crate::trace::{Asker, Event, RootId};

/// Who waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiter {
    /// Whoever put the question.
    Root(RootId),
    /// A context, at its THINK.
    Context(ContextId),
}

/// What a question has cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Contexts that were opened for it.
    pub contexts: u64,
    /// Tokens that were generated for it.
    pub generated: u64,
    /// Questions whose answer was known, or that were being solved.
    pub memo_hits: u64,
    /// The most contexts one below the other.
    pub deepest: usize,
    /// Tokens of the longest context.
    pub longest: usize,
}

/// How a question ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The question.
    pub root: RootId,
    /// The answer with its STOP, or why there is none.
    pub answer: Result<Tokens, Failure>,
    /// What it has cost.
    pub stats: Stats,
}

/// Tokens that a model does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the model does not know the token {0}")]
pub struct UnknownToken(pub Token);

/// Solves questions, many at once.
pub struct Solver<'a, G> {
    pub(super) generator: G,
    pub(super) limits: Limits,
    pub(super) memo: Option<Memo>,
    /// Bytes that memo and frames may take.
    pub(super) memory_limit: usize,
    pub(super) contexts: HashMap<ContextId, Frame, FixedState>,
    pub(super) roots: BTreeMap<RootId, Root>,
    /// Frames so far.
    pub(super) framed: u64,
    /// Contexts so far.
    pub(super) opened: u64,
    pub(super) asked: u64,
    pub(super) ended: Vec<Span>,
    pub(super) observer: Box<dyn FnMut(&Event<'_>) + 'a>,
    pub(super) outcomes: Vec<Outcome>,
}

/// A context that is open, and after a tail call the one that has taken its place.
pub(super) struct Frame {
    /// The number of the context in traces; the frame keeps its id.
    pub(super) number: u64,
    pub(super) question: Tokens,
    /// Questions that tail calls have replaced by this one: they have the same answer.
    pub(super) replaced: Vec<Tokens>,
    pub(super) waiters: Vec<Waiter>,
    /// The context that it waits for, at its THINK.
    pub(super) waits: Option<ContextId>,
    /// The root that pays for it.
    pub(super) owner: RootId,
    /// How many contexts are above it.
    pub(super) depth: usize,
    /// Tokens so far.
    pub(super) length: usize,
    pub(super) chase: Option<Chase>,
}

/// Finds out, with one question kept, whether a row of tail calls has come back to where it was
/// (Brent's algorithm).
pub(super) struct Chase {
    mark: Tokens,
    steps: u64,
    until: u64,
}

/// A question that was put to the solver.
pub(super) struct Root {
    pub(super) question: Tokens,
    pub(super) since: Instant,
    pub(super) waits: ContextId,
    pub(super) stats: Stats,
}

impl<'a, G: Generator> Solver<'a, G> {
    /// A solver with nothing to do; without a memo every question is solved each time it is asked.
    /// Memo and frames may take `memory_limit` bytes.
    pub fn new(generator: G, limits: Limits, memo: Option<Memo>, memory_limit: usize) -> Self {
        Solver {
            generator,
            limits,
            memo,
            memory_limit,
            contexts: HashMap::default(),
            roots: BTreeMap::new(),
            framed: 0,
            opened: 0,
            asked: 0,
            ended: Vec::new(),
            observer: Box::new(|_| ()),
            outcomes: Vec::new(),
        }
    }

    /// Has every event shown to `observer`.
    pub fn observe(&mut self, observer: impl FnMut(&Event<'_>) + 'a) {
        self.observer = Box::new(observer);
    }

    /// Puts a question: GO, its body, `=`.
    pub fn ask(&mut self, question: &[Token]) -> Result<RootId, UnknownToken> {
        if let Some(token) = self.generator.unknown(question) {
            return Err(UnknownToken(token));
        }
        let root = RootId(self.asked);
        self.asked += 1;
        // Until it waits for something.
        let nowhere = ContextId(u64::MAX);
        let stats = Stats::default();
        let (question, since): (Tokens, _) = (question.into(), Instant::now());
        let asked = Root { question: Arc::clone(&question), since, waits: nowhere, stats };
        self.roots.insert(root, asked);
        self.put(question, Waiter::Root(root));
        Ok(root)
    }

    /// How many questions are not answered yet.
    pub fn pending(&self) -> usize {
        self.roots.len()
    }

    /// How many contexts are open.
    pub fn open_contexts(&self) -> usize {
        self.contexts.len()
    }

    /// The memo, if there is one.
    pub fn memo(&mut self) -> Option<&mut Memo> {
        self.memo.as_mut()
    }

    /// Works for a while; gives what has ended since the last time.
    pub fn step(&mut self) -> Vec<Outcome> {
        if !self.roots.is_empty() {
            let mut ended = std::mem::take(&mut self.ended);
            self.generator.poll(&mut ended);
            for span in ended.drain(..) {
                self.hear(&span);
            }
            self.ended = ended;
            self.check_time();
            self.check_memory();
        }
        std::mem::take(&mut self.outcomes)
    }

    /// Solves everything that is pending, in the order it was asked.
    pub fn run(&mut self) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        while self.pending() > 0 || !self.outcomes.is_empty() {
            outcomes.extend(self.step());
        }
        outcomes.sort_by_key(|outcome| outcome.root);
        outcomes
    }

    /// A context has said something.
    fn hear(&mut self, span: &Span) {
        let Some(frame) = self.contexts.get_mut(&span.id) else { return };
        let (id, said) = (span.id, span.tokens.as_slice());
        frame.length += said.len();
        let (length, number) = (frame.length, frame.number);
        (self.observer)(&Event::Say { context: number, tokens: said, margin: span.margin });
        if let Some(root) = self.roots.get_mut(&frame.owner) {
            root.stats.generated += said.len() as u64;
            root.stats.longest = root.stats.longest.max(length);
        }
        // Whoever pays for it now: if that one cannot, another may.
        while let Some(owner) = self.contexts.get(&id).map(|frame| frame.owner)
            && self.roots.get(&owner).is_some_and(|root| root.stats.generated > self.limits.tokens)
        {
            self.fail_root(owner, Cause::Limit(Limit::Tokens(self.limits.tokens)));
        }
        if !self.contexts.contains_key(&id) {
            return;
        }
        match (&span.end, said) {
            (End::Failed(why), _) => self.fail(id, &Cause::Generator(why.clone()), None),
            (End::Full, _) => self.fail(id, &Cause::Limit(Limit::Context(self.most())), None),
            (End::Whole, [said @ .., Token::STOP]) => {
                if said.iter().any(|token| token.is_control()) {
                    self.malformed(id, Rule::OnlyContent, &span.tokens);
                } else {
                    self.answer(id, &span.tokens[..].into());
                }
            }
            (End::Whole, [said @ .., Token::THINK]) => match sub_question(said) {
                Ok((question, tail)) => self.think(id, question, tail),
                Err(rule) => self.malformed(id, rule, &span.tokens),
            },
            (End::Whole, _) => self.malformed(id, Rule::ThinkAsks, &span.tokens),
        }
    }

    /// The most tokens of a context.
    fn most(&self) -> usize {
        self.limits.context.min(self.generator.limit())
    }

    /// A context asks a sub-question.
    fn think(&mut self, id: ContextId, question: Tokens, tail: bool) {
        if tail {
            self.tail(id, question);
        } else {
            if let Some(frame) = self.contexts.get_mut(&id) {
                // THINK makes room for the answer.
                frame.length -= 1;
            }
            self.put(question, Waiter::Context(id));
        }
    }

    /// Has a question answered for a waiter: from the memo, by a context that is at it, or by a new one.
    fn put(&mut self, question: Tokens, by: Waiter) {
        let known = self.recall(&question, by, false);
        match known {
            Some(Known::Answer(answer)) => self.tell(by, &answer),
            Some(Known::Failed { cause, .. }) => self.fail_waiter(by, &cause, question),
            Some(Known::Open(other)) => {
                if let Waiter::Context(id) = by
                    && self.waits_for(other, id)
                {
                    self.fail(id, &Cause::Cycle, Some(question));
                    return;
                }
                self.set_waits(by, other);
                if let Some(frame) = self.contexts.get_mut(&other) {
                    frame.waiters.push(by);
                }
            }
            None => {
                let (owner, depth) = match by {
                    Waiter::Root(root) => (root, 0),
                    Waiter::Context(id) => match self.contexts.get(&id) {
                        Some(frame) => (frame.owner, frame.depth + 1),
                        None => return,
                    },
                };
                if let Waiter::Context(id) = by
                    && self.memo.is_none()
                    && self.is_above(&question, id)
                {
                    self.fail(id, &Cause::Cycle, Some(question));
                    return;
                }
                let id = ContextId(self.framed);
                self.framed += 1;
                let frame = Frame {
                    number: u64::MAX,
                    question,
                    replaced: Vec::new(),
                    waiters: vec![by],
                    waits: None,
                    owner,
                    depth,
                    length: 0,
                    chase: None,
                };
                self.contexts.insert(id, frame);
                self.set_waits(by, id);
                self.open(id, false);
            }
        }
    }

    /// A context asks a last sub-question, which replaces it.
    fn tail(&mut self, id: ContextId, question: Tokens) {
        let by = Waiter::Context(id);
        let known = self.recall(&question, by, true);
        match known {
            Some(Known::Answer(answer)) => self.answer(id, &answer),
            Some(Known::Failed { cause, .. }) => self.fail_waiter(by, &cause, question),
            Some(Known::Open(other)) => {
                if other == id || self.waits_for(other, id) {
                    self.fail(id, &Cause::Cycle, Some(question));
                    return;
                }
                let Some(frame) = self.close(id) else { return };
                for &waiter in &frame.waiters {
                    self.set_waits(waiter, other);
                }
                // Its questions get their answer with that of the other one.
                if let Some(memo) = &mut self.memo {
                    for question in frame.replaced.iter().chain([&frame.question]) {
                        memo.insert(Arc::clone(question), Known::Open(other));
                    }
                }
                if let Some(to) = self.contexts.get_mut(&other) {
                    to.waiters.extend(frame.waiters);
                    to.replaced.extend(frame.replaced);
                    to.replaced.push(frame.question);
                }
            }
            None => {
                if self.memo.is_none() && self.comes_back(id, &question) {
                    self.fail(id, &Cause::Cycle, Some(question));
                    return;
                }
                self.generator.release(id);
                let Some(frame) = self.contexts.get_mut(&id) else { return };
                let before = std::mem::replace(&mut frame.question, question);
                if self.memo.is_some() {
                    frame.replaced.push(before);
                }
                self.open(id, true);
            }
        }
    }

    /// Opens the context of a frame.
    fn open(&mut self, id: ContextId, tail: bool) {
        let number = self.opened;
        self.opened += 1;
        let Some(frame) = self.contexts.get_mut(&id) else { return };
        let question = Arc::clone(&frame.question);
        frame.length = question.len();
        let before = std::mem::replace(&mut frame.number, number);
        let by = match frame.waiters.first() {
            _ if tail => Asker::Context(before),
            Some(&waiter) => self.asker(waiter),
            None => return,
        };
        if let Some(memo) = &mut self.memo {
            memo.insert(Arc::clone(&question), Known::Open(id));
        }
        let mut first = true;
        // Whoever pays for it now: if that one cannot, another may.
        while let Some(frame) = self.contexts.get(&id) {
            let (owner, depth) = (frame.owner, frame.depth);
            if first {
                let question = &question;
                (self.observer)(&Event::Open { context: number, question, by, tail, depth });
                first = false;
            }
            let Some(root) = self.roots.get_mut(&owner) else { return };
            if root.stats.contexts >= self.limits.contexts {
                self.fail_root(owner, Cause::Limit(Limit::Contexts(self.limits.contexts)));
            } else if depth >= self.limits.depth {
                self.fail_root(owner, Cause::Limit(Limit::Depth(self.limits.depth)));
            } else {
                root.stats.contexts += 1;
                root.stats.deepest = root.stats.deepest.max(depth + 1);
                root.stats.longest = root.stats.longest.max(question.len());
                self.submit(id, &question);
                return;
            }
        }
    }

    /// Who asks, as traces have it.
    fn asker(&self, waiter: Waiter) -> Asker {
        match waiter {
            Waiter::Root(root) => Asker::Root(root),
            Waiter::Context(id) => {
                Asker::Context(self.contexts.get(&id).map_or(u64::MAX, |frame| frame.number))
            }
        }
    }

    /// Has a context continued after some more tokens.
    fn submit(&mut self, id: ContextId, tokens: &[Token]) {
        let most = self.most();
        let Some(frame) = self.contexts.get(&id) else { return };
        match most.checked_sub(frame.length) {
            None | Some(0) => self.fail(id, &Cause::Limit(Limit::Context(most)), None),
            Some(left) => self.generator.submit(id, tokens, left),
        }
    }

    /// A context has its answer.
    fn answer(&mut self, id: ContextId, answer: &Tokens) {
        let Some(frame) = self.close(id) else { return };
        (self.observer)(&Event::Answer { context: frame.number, answer });
        if let Some(memo) = &mut self.memo {
            for question in frame.replaced.into_iter().chain([frame.question]) {
                memo.learn(question, answer);
            }
        }
        for waiter in frame.waiters {
            self.tell(waiter, answer);
        }
    }

    /// Gives a waiter the answer it waits for.
    fn tell(&mut self, waiter: Waiter, answer: &Tokens) {
        match waiter {
            Waiter::Root(root) => {
                if let Some(Root { stats, .. }) = self.roots.remove(&root) {
                    (self.observer)(&Event::Solved { root, answer });
                    let answer = Ok(Arc::clone(answer));
                    self.outcomes.push(Outcome { root, answer, stats });
                }
            }
            Waiter::Context(id) => {
                if let Some(frame) = self.contexts.get_mut(&id) {
                    frame.waits = None;
                    frame.length += answer.len();
                    self.submit(id, answer);
                }
            }
        }
    }

    /// Takes a context away.
    pub(super) fn close(&mut self, id: ContextId) -> Option<Frame> {
        self.generator.release(id);
        self.contexts.remove(&id)
    }

    fn set_waits(&mut self, waiter: Waiter, on: ContextId) {
        match waiter {
            Waiter::Root(root) => {
                if let Some(root) = self.roots.get_mut(&root) {
                    root.waits = on;
                }
            }
            Waiter::Context(id) => {
                if let Some(frame) = self.contexts.get_mut(&id) {
                    frame.waits = Some(on);
                }
            }
        }
    }

    /// What is known of a question that is asked.
    fn recall(&mut self, question: &Tokens, by: Waiter, tail: bool) -> Option<Known> {
        let known = self.memo.as_mut()?.recall(question)?;
        let number = |id: &ContextId| self.contexts.get(id).map(|frame| frame.number);
        let (waits_for, answer) = match &known {
            Known::Open(other) => (number(other), None),
            Known::Answer(answer) => (None, Some(answer)),
            Known::Failed { .. } => (None, None),
        };
        let owner = match by {
            Waiter::Root(root) => Some(root),
            Waiter::Context(id) => self.contexts.get(&id).map(|frame| frame.owner),
        };
        if let Some(root) = owner.and_then(|root| self.roots.get_mut(&root)) {
            root.stats.memo_hits += 1;
        }
        let by = self.asker(by);
        (self.observer)(&Event::Recall { question, by, tail, waits_for, answer });
        Some(known)
    }

    /// Whether `from` waits for `to`, through any number of others.
    fn waits_for(&self, from: ContextId, to: ContextId) -> bool {
        let next = |id: &ContextId| self.contexts.get(id).and_then(|frame| frame.waits);
        std::iter::successors(Some(from), next).any(|id| id == to)
    }

    /// Whether a context, or one that waits for it, has that question. Without a memo each has one
    /// waiter.
    fn is_above(&self, question: &[Token], id: ContextId) -> bool {
        let mut above = Some(id);
        while let Some(frame) = above.and_then(|id| self.contexts.get(&id)) {
            if *frame.question == *question {
                return true;
            }
            above = match frame.waiters.first() {
                Some(&Waiter::Context(id)) => Some(id),
                _ => None,
            };
        }
        false
    }

    /// Whether a tail call comes back to where the frame has been, or to a frame above it.
    fn comes_back(&mut self, id: ContextId, question: &Tokens) -> bool {
        if self.is_above(question, id) {
            return true;
        }
        let Some(frame) = self.contexts.get_mut(&id) else { return false };
        let first = &frame.question;
        let chase = frame.chase.get_or_insert_with(|| Chase {
            mark: Arc::clone(first),
            steps: 0,
            until: 1,
        });
        if chase.mark == *question {
            return true;
        }
        chase.steps += 1;
        if chase.steps == chase.until {
            *chase = Chase { mark: Arc::clone(question), steps: 0, until: 2 * chase.until };
        }
        false
    }
}

/// The sub-question that a context has just asked, and whether it is its last.
fn sub_question(said: &[Token]) -> Result<(Tokens, bool), Rule> {
    let opens = |token: &Token| *token == Token::GO || *token == Token::TAIL;
    let start = said.iter().rposition(opens).ok_or(Rule::ThinkAsks)?;
    // Once a context has said TAIL it is at its last sub-question.
    let tail = said.contains(&Token::TAIL);
    let [body @ .., Token::EQUALS] = &said[start + 1..] else {
        return Err(match said.len() - start {
            1 => Rule::QuestionNotEmpty,
            _ => Rule::QuestionEnds,
        });
    };
    if body.is_empty() {
        return Err(Rule::QuestionNotEmpty);
    }
    if said.contains(&Token::PAD) || body.iter().any(|token| token.is_control()) {
        return Err(Rule::OnlyContent);
    }
    let question = [Token::GO].iter().chain(body).chain(&[Token::EQUALS]).copied().collect();
    Ok((question, tail))
}
