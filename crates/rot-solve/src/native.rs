//! Our own networks as a generator: all contexts that can go on advance together, a token at a time.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::FixedState;
use rayon::prelude::*;
use rot_core::{Token, Vocabulary};
use rot_nn::kernels::loss::likeliest;
use rot_nn::{Decoder, Memory, Packed, Role, UNSUPERVISED, Workspace};

use crate::generator::{ContextId, End, Generator, Span};

/// What the tokens of a vocabulary are to a network that counts digits, numbers and parts.
pub fn roles(vocabulary: &Vocabulary) -> Vec<Role> {
    let role = |token: &Token| match token {
        token if token.is_digit() => Role::Digit,
        token if token.is_control() || [Token::EQUALS, Token::ACC].contains(token) => Role::Border,
        _ => Role::Other,
    };
    vocabulary.tokens().iter().map(role).collect()
}

/// Contexts that are continued at once for each worker: enough for products to be fast, few enough for
/// their results, and what is remembered of them, to stay in the cache until they have said what they
/// say.
const CHUNK: usize = 96;

/// A network that continues contexts greedily.
///
/// What it remembers of a context is kept while the context waits for an answer, so that going on
/// costs the answer's tokens only. Under memory pressure it forgets those that have waited longest and
/// reads them again when they go on; that changes no bit of what is said.
///
/// With a *drafter* it does not say a span token by token: it reads what the drafter would say, all at
/// once, and keeps it as far as it would have said the same. That is faster where the drafter is often
/// right, and changes no bit either.
pub struct Native {
    decoder: Box<dyn Decoder>,
    drafter: Option<Box<dyn Generator>>,
    /// What decides instead of the network.
    guidance: Option<Guidance>,
    vocabulary: Vocabulary,
    /// The most bytes for memories.
    memory_limit: usize,
    /// Being continued.
    active: Vec<Held>,
    /// To be continued as soon as there is room.
    ready: VecDeque<Held>,
    /// Waiting for an answer, and when they began to.
    waiting: HashMap<ContextId, (u64, Held), FixedState>,
    /// Those of `waiting` that have a memory, oldest first. Some are not there any more.
    oldest: VecDeque<(u64, ContextId)>,
    /// Bytes of the memories of `waiting`.
    waiting_bytes: usize,
    /// Memories of contexts that are over, for the next.
    spare: Vec<Memory>,
    clock: u64,
    workers: Vec<Worker>,
}

/// How a network is guided by a drafter, which decides what is said, while the network computes as if it
/// did. So the cost of a network that is right can be measured before there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guidance {
    /// A token at a time, as without a drafter.
    Tokens,
    /// A span at once, as with a drafter that is right.
    Spans,
}

/// An open context.
struct Held {
    id: ContextId,
    /// All its tokens.
    ids: Vec<u8>,
    /// What the network remembers of the first of them.
    memory: Memory,
    /// Where the span begins.
    span: usize,
    /// How many tokens the span may have.
    most: usize,
    /// What comes next if the drafter is right, with the THINK or STOP at the end.
    draft: Vec<u8>,
    margin: f32,
    /// The last token that was said, or why there is none.
    end: Option<Result<u8, End>>,
}

/// What a worker uses again for every chunk.
#[derive(Default)]
struct Worker {
    batch: Packed,
    ids: Vec<u8>,
    targets: Vec<u8>,
    memories: Vec<Memory>,
    work: Workspace,
    logits: Vec<f32>,
}

impl Native {
    /// A network for contexts of the tokens in the vocabulary; memories take up to `memory_limit`
    /// bytes, or what a single context needs where that is more.
    pub fn new(decoder: Box<dyn Decoder>, vocabulary: Vocabulary, memory_limit: usize) -> Native {
        Native {
            decoder,
            drafter: None,
            guidance: None,
            vocabulary,
            memory_limit,
            active: Vec::new(),
            ready: VecDeque::new(),
            waiting: HashMap::default(),
            oldest: VecDeque::new(),
            waiting_bytes: 0,
            spare: Vec::new(),
            clock: 0,
            workers: Vec::new(),
        }
    }

    /// How many contexts are continued at once. More questions at the same time than that take more
    /// memory and no less time.
    pub fn at_once() -> usize {
        CHUNK * rayon::current_num_threads()
    }

    /// Has another generator draft what is said.
    pub fn with_drafter(self, drafter: Box<dyn Generator>) -> Native {
        Native { drafter: Some(drafter), ..self }
    }

    /// Has another generator decide what is said.
    pub fn guided_by(self, guide: Box<dyn Generator>, guidance: Guidance) -> Native {
        Native { drafter: Some(guide), guidance: Some(guidance), ..self }
    }

    /// What the drafter says to a context, up to THINK or STOP.
    fn draft(&mut self, id: ContextId, append: &[Token], most: usize) -> Vec<u8> {
        let (Some(drafter), mut ended) = (&mut self.drafter, Vec::new()) else {
            return Vec::new();
        };
        drafter.submit(id, append, most);
        drafter.poll(&mut ended);
        let whole = ended.into_iter().find(|span| span.id == id && span.end == End::Whole);
        let ids = whole.into_iter().flat_map(|span| span.tokens);
        let ids = ids.map(|token| self.vocabulary.id(token).map(|id| id as u8));
        ids.collect::<Option<_>>().unwrap_or_default()
    }

    /// Takes contexts in while there is room, and forgets what there is no room for.
    fn make_room(&mut self) {
        let most = Native::at_once();
        let mut bytes: usize = self.active.iter().map(|held| held.memory.bytes()).sum();
        let spare: usize = self.spare.iter().map(Memory::bytes).sum();
        if self.spare.len() > most || bytes + spare + self.waiting_bytes > self.memory_limit {
            self.spare.clear();
        }
        while bytes > self.memory_limit && self.active.len() > 1 {
            if let Some(mut held) = self.active.pop() {
                bytes -= held.memory.bytes();
                held.memory = Memory::default();
                self.ready.push_front(held);
            }
        }
        while self.active.len() < most
            && let Some(held) = self.ready.front()
        {
            // A context that goes on is about as large as those that do already.
            let guess = held.memory.bytes().max(bytes / self.active.len().max(1));
            if !self.active.is_empty() && bytes + guess > self.memory_limit {
                break;
            }
            bytes += guess;
            self.active.extend(self.ready.pop_front());
        }
        while bytes + self.waiting_bytes > self.memory_limit {
            let Some((since, id)) = self.oldest.pop_front() else { break };
            if let Some((at, held)) = self.waiting.get_mut(&id)
                && *at == since
            {
                self.waiting_bytes -= held.memory.bytes();
                held.memory = Memory::default();
                self.waiting_bytes += held.memory.bytes();
            }
        }
    }

    /// Has every active context say its next token.
    fn advance(&mut self) {
        let Native { decoder, active, workers, vocabulary, guidance, .. } = self;
        let by_tokens = *guidance == Some(Guidance::Tokens);
        let cost = |held: &Held| {
            let draft = if by_tokens { 0 } else { held.draft.len() };
            let unread = held.ids.len() - held.memory.tokens() + draft;
            // As measured: a context costs nearly a token by itself.
            unread + 1
        };
        let mut shares = shares(active, cost, rayon::current_num_threads());
        workers.resize_with(shares.len().max(workers.len()), Worker::default);
        let (decoder, size) = (decoder.as_ref(), vocabulary.len());
        let advance = |held: &mut [Held], worker: &mut Worker| match guidance {
            None => worker.advance(decoder, held, size, false),
            Some(Guidance::Spans) => worker.advance(decoder, held, size, true),
            Some(Guidance::Tokens) => worker.advance_by_tokens(decoder, held, size),
        };
        match shares.as_mut_slice() {
            [only] => advance(only, &mut workers[0]),
            shares => {
                let work = shares.par_iter_mut().zip(workers.par_iter_mut());
                work.for_each(|(held, worker)| advance(held, worker));
            }
        }
    }

    fn encode(&self, tokens: &[Token], ids: &mut Vec<u8>) {
        // Unknown tokens are refused before: see `Generator::unknown`.
        ids.extend(tokens.iter().filter_map(|&token| self.vocabulary.id(token)).map(|id| id as u8));
    }
}

/// Splits contexts into up to `count` parts that cost about the same: some read a whole question, most a
/// single token.
fn shares<T>(mut held: &mut [T], cost: impl Fn(&T) -> usize, count: usize) -> Vec<&mut [T]> {
    let all: usize = held.iter().map(&cost).sum();
    let (mut shares, mut before) = (Vec::with_capacity(count), 0);
    while !held.is_empty() {
        let until = (shares.len() + 1) * all / count;
        let mut size = 0;
        while size == 0 || (size < held.len() && before + cost(&held[size]) / 2 < until) {
            before += cost(&held[size]);
            size += 1;
        }
        shares.extend(held.split_off_mut(..size));
    }
    shares
}

impl Worker {
    /// Reads what there is to read, drafts as well, and takes the tokens that follow: the likeliest, or
    /// those of the draft if it decides.
    fn advance(
        &mut self,
        decoder: &dyn Decoder,
        held: &mut [Held],
        vocabulary: usize,
        draft_decides: bool,
    ) {
        let Worker { batch, ids, targets, memories, work, logits } = self;
        batch.clear();
        memories.clear();
        for held in held.iter_mut() {
            ids.clear();
            ids.extend_from_slice(&held.ids[held.memory.tokens()..]);
            targets.clear();
            targets.resize(ids.len() - 1, UNSUPERVISED);
            // The end of the draft is not read, only compared.
            ids.extend_from_slice(&held.draft[..held.draft.len().saturating_sub(1)]);
            targets.resize(ids.len(), 0);
            batch.push(ids, targets);
            memories.push(std::mem::take(&mut held.memory));
        }
        decoder.read(batch, memories, work, logits);
        let mut logits = logits.as_slice();
        for (held, memory) in held.iter_mut().zip(memories.drain(..)) {
            held.memory = memory;
            let draft = std::mem::take(&mut held.draft);
            let (own, others) = logits.split_at(draft.len().max(1) * vocabulary);
            held.hear(own.chunks_exact(vocabulary), &draft, draft_decides);
            logits = others;
        }
    }

    /// Reads as without a draft, and then takes the next token from it.
    fn advance_by_tokens(&mut self, decoder: &dyn Decoder, held: &mut [Held], vocabulary: usize) {
        let drafts: Vec<_> = held.iter_mut().map(|held| std::mem::take(&mut held.draft)).collect();
        self.advance(decoder, held, vocabulary, false);
        for (held, draft) in held.iter_mut().zip(drafts) {
            if let Some(&id) = draft.get(held.ids.len() - held.span) {
                held.end = Some(Ok(id));
            }
            held.draft = draft;
        }
    }
}

impl Held {
    /// Takes the likeliest token as the next, and goes on as long as it is the one of the draft.
    fn hear<'a>(
        &mut self,
        rows: impl ExactSizeIterator<Item = &'a [f32]>,
        draft: &[u8],
        draft_decides: bool,
    ) {
        let count = rows.len();
        for (i, row) in rows.enumerate() {
            self.end = Some(match (self.likeliest(row), draft.get(i)) {
                (Ok(_), Some(&drafted)) if draft_decides => Ok(drafted),
                (likeliest, _) => likeliest,
            });
            if i + 1 == count {
                break;
            }
            match self.end {
                Some(Ok(said)) if said == draft[i] => self.ids.push(said),
                _ => {
                    // It has read what it would not have said.
                    self.memory = Memory::default();
                    break;
                }
            }
        }
    }

    fn likeliest(&mut self, logits: &[f32]) -> Result<u8, End> {
        if !logits.iter().all(|logit| logit.is_finite()) {
            let why = "the network computes numbers that are not finite".to_owned();
            return Err(End::Failed(why));
        }
        let said = likeliest(logits);
        let best = logits[usize::from(said)];
        let others = logits.iter().enumerate().filter(|&(id, _)| id != usize::from(said));
        let second = others.fold(f32::NEG_INFINITY, |second, (_, &logit)| second.max(logit));
        self.margin = self.margin.min(best - second);
        Ok(said)
    }
}

impl Generator for Native {
    fn limit(&self) -> usize {
        self.decoder.network().limit()
    }

    fn unknown(&self, tokens: &[Token]) -> Option<Token> {
        tokens.iter().copied().find(|&token| self.vocabulary.id(token).is_none())
    }

    fn submit(&mut self, id: ContextId, append: &[Token], most: usize) {
        let mut held = match self.waiting.remove(&id) {
            Some((_, held)) => {
                self.waiting_bytes -= held.memory.bytes();
                held
            }
            None => Held {
                id,
                ids: Vec::new(),
                memory: self.spare.pop().unwrap_or_default(),
                span: 0,
                most,
                draft: Vec::new(),
                margin: f32::INFINITY,
                end: None,
            },
        };
        held.draft = self.draft(id, append, most);
        self.encode(append, &mut held.ids);
        held.span = held.ids.len();
        held.most = most;
        held.margin = f32::INFINITY;
        self.ready.push_back(held);
    }

    fn poll(&mut self, ended: &mut Vec<Span>) {
        self.make_room();
        if self.active.is_empty() {
            return;
        }
        self.advance();
        let tokens = self.vocabulary.tokens();
        for place in (0..self.active.len()).rev() {
            let held = &mut self.active[place];
            let end = match held.end.take() {
                None => continue,
                Some(Err(end)) => (None, end),
                Some(Ok(id)) => {
                    let token = tokens[usize::from(id)];
                    if token == Token::THINK || token == Token::STOP {
                        (Some(token), End::Whole)
                    } else {
                        held.ids.push(id);
                        if held.ids.len() - held.span < held.most {
                            continue;
                        }
                        (None, End::Full)
                    }
                }
            };
            let held = self.active.swap_remove(place);
            let said = held.ids[held.span..].iter().map(|&id| tokens[usize::from(id)]);
            let tokens = said.chain(end.0).collect();
            ended.push(Span { id: held.id, tokens, margin: held.margin, end: end.1 });
            self.clock += 1;
            self.waiting_bytes += held.memory.bytes();
            self.oldest.push_back((self.clock, held.id));
            self.waiting.insert(held.id, (self.clock, held));
        }
        // Those that went on long ago are not looked for any more.
        if self.oldest.len() > 2 * self.waiting.len() + 64 {
            let waiting = &self.waiting;
            self.oldest.retain(|(since, id)| waiting.get(id).is_some_and(|(at, _)| at == since));
        }
    }

    fn release(&mut self, id: ContextId) {
        if let Some(drafter) = &mut self.drafter {
            drafter.release(id);
        }
        if let Some((_, mut held)) = self.waiting.remove(&id) {
            self.waiting_bytes -= held.memory.bytes();
            held.memory.clear();
            self.spare.push(held.memory);
        } else {
            self.active.retain(|held| held.id != id);
            self.ready.retain(|held| held.id != id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_answers_lie_between_borders() {
        let vocabulary = Vocabulary::of(Token::ALL.iter().copied());
        let of = |token| roles(&vocabulary)[vocabulary.id(token).unwrap()];
        for border in [Token::GO, Token::TAIL, Token::EQUALS, Token::ACC, Token::THINK, Token::STOP]
        {
            assert_eq!(of(border), Role::Border, "{border}");
        }
        assert_eq!([of(Token::D0), of(Token::D9)], [Role::Digit; 2]);
        assert_eq!(of(Token::PLUS), Role::Other);
    }

    #[test]
    fn shares_cost_about_the_same() {
        let sizes = |costs: &mut [usize], count| -> Vec<usize> {
            shares(costs, |&cost| cost, count).iter().map(|share| share.len()).collect()
        };
        assert_eq!(sizes(&mut [2; 10], 2), [5, 5]);
        assert_eq!(sizes(&mut [2, 2, 2, 2, 2, 2, 12], 2), [6, 1]);
        assert_eq!(sizes(&mut [30, 2, 2, 2], 2), [1, 3]);
        assert_eq!(sizes(&mut [2, 2, 2, 30], 4), [3, 1]);
        assert_eq!(sizes(&mut [2], 8), [1]);
        assert_eq!(sizes(&mut [], 2), [0; 0]);
    }
}
