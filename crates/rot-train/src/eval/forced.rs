//! Teacher forcing: every context is read once, and what the network finds likeliest after each token
//! is compared with what it had to say.

use std::ops::{ControlFlow, Range};

use rayon::prelude::*;
use rot_core::{Context, ContextId, CostCounter, Excerpt, Paradigm, ThoughtGraph, Token, UBig};
use rot_nn::kernels::loss::likeliest;
use rot_nn::{Decoder, Memory, Packed, Score, UNSUPERVISED, Workspace};

use super::{EvalError, Failure, Progress, TestSet, WrongContext};
use crate::Model;
use crate::encode::encode;

/// About how many tokens a worker reads at once: enough for the matrix products to be fast, few
/// enough for their results to stay in the cache.
const CHUNK: usize = 1024;

/// The contexts of a test set in one paradigm, ready to be read.
pub(super) struct Forced<'a> {
    model: &'a Model,
    decoder: Box<dyn Decoder>,
    graph: &'a ThoughtGraph,
    paradigm: Paradigm,
    /// Whose contexts they are.
    pub(super) ids: Vec<ContextId>,
    /// The parts of `ids` that are read at once.
    chunks: Vec<Range<usize>>,
    /// How many tokens will be read.
    pub(super) tokens: usize,
    /// The length of the longest context.
    pub(super) longest: usize,
}

/// What a worker uses again for every chunk.
#[derive(Default)]
struct Worker {
    context: Context,
    ids: Vec<u8>,
    targets: Vec<u8>,
    batch: Packed,
    memories: Vec<Memory>,
    work: Workspace,
    logits: Vec<f32>,
    found: Vec<u8>,
}

/// What was seen in some contexts.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) score: Score,
    /// Those that were not right, in the order of the ids.
    pub(super) wrong: Vec<ContextId>,
    /// The kinds of their mistakes, in the order of [`Failure::ALL`].
    pub(super) failures: [usize; Failure::ALL.len()],
    /// The first of them in detail.
    pub(super) details: Vec<WrongContext>,
}

impl<'a> Forced<'a> {
    /// Checks that the model can read all contexts, before any is read, and divides the work.
    pub(super) fn plan(
        model: &'a Model,
        test: &'a TestSet,
        paradigm: Paradigm,
    ) -> Result<Forced<'a>, EvalError> {
        let graph = &test.graph;
        let ids = test.tested(paradigm);
        let chunks = Vec::new();
        let decoder = model.network.decoder(&model.params);
        let mut forced =
            Forced { model, decoder, graph, paradigm, ids, chunks, tokens: 0, longest: 0 };
        let mut longest_id = None;
        let mut worker = Worker::default();
        let (mut start, mut filled) = (0, 0);
        for (place, &id) in forced.ids.iter().enumerate() {
            forced.write(id, &mut worker)?;
            if worker.context.len() > forced.longest {
                (forced.longest, longest_id) = (worker.context.len(), Some(id));
            }
            let tokens = worker.ids.len();
            if filled > 0 && filled + tokens > CHUNK {
                forced.chunks.push(start..place);
                (start, filled) = (place, 0);
            }
            filled += tokens;
            forced.tokens += tokens;
        }
        if filled > 0 {
            forced.chunks.push(start..forced.ids.len());
        }
        match longest_id {
            Some(id) if forced.longest > model.network.limit() => {
                Err(forced.too_long(id, forced.longest.into()))
            }
            _ => Ok(forced),
        }
    }

    /// Reads all contexts on all cores, unless `progress` stops it, and keeps the first `most_wrong` wrong ones in
    /// detail.
    pub(super) fn read(
        &self,
        most_wrong: usize,
        progress: impl Fn(Progress) -> ControlFlow<()> + Sync,
    ) -> Result<Tally, EvalError> {
        let read = |worker: &mut Worker, chunk: &Range<usize>| {
            let tally = self.read_chunk(&self.ids[chunk.clone()], most_wrong, worker)?;
            match progress(Progress { tokens: worker.batch.tokens(), of: self.tokens }) {
                ControlFlow::Continue(()) => Ok(tally),
                ControlFlow::Break(()) => Err(EvalError::Stopped),
            }
        };
        let join = |one: Tally, other: Tally| Ok(one.join(other, most_wrong));
        self.chunks.par_iter().map_init(Worker::default, read).try_reduce(Tally::default, join)
    }

    fn read_chunk(
        &self,
        ids: &[ContextId],
        most_wrong: usize,
        worker: &mut Worker,
    ) -> Result<Tally, EvalError> {
        worker.batch.clear();
        for &id in ids {
            self.write(id, worker)?;
            worker.batch.push(&worker.ids, &worker.targets);
        }
        worker.memories.iter_mut().for_each(Memory::clear);
        worker.memories.resize_with(ids.len().max(worker.memories.len()), Memory::default);
        let memories = &mut worker.memories[..ids.len()];
        self.decoder.read(&worker.batch, memories, &mut worker.work, &mut worker.logits);
        let mut rows = worker.logits.chunks_exact(self.model.network.vocabulary());
        worker.found.clear();
        worker.found.extend(worker.batch.targets().iter().map(|&target| match target {
            UNSUPERVISED => UNSUPERVISED,
            _ => rows.next().map_or(UNSUPERVISED, likeliest),
        }));

        let mut tally = Tally::default();
        tally.score.count(&worker.batch, &worker.found);
        for (place, sequence) in worker.batch.sequences().enumerate() {
            if worker.found[sequence.clone()] != worker.batch.targets()[sequence.clone()] {
                tally.wrong.push(ids[place]);
                let detail = self.detail(ids[place], &worker.found[sequence]);
                let kinds = Failure::ALL.iter().zip(&mut tally.failures);
                kinds.for_each(|(&kind, count)| *count += usize::from(kind == detail.failure));
                if tally.details.len() < most_wrong {
                    tally.details.push(detail);
                }
            }
        }
        Ok(tally)
    }

    /// A wrong context, from the ids that were found after each of its tokens but the last.
    fn detail(&self, id: ContextId, found: &[u8]) -> WrongContext {
        let mut context = Context::default();
        self.write_context(id, &mut context);
        // What no token has as its id is where the model was not asked.
        let token = |&id: &u8| self.model.vocabulary.tokens().get(usize::from(id)).copied();
        let mut produced = vec![Token::PAD];
        produced.extend(found.iter().map(|id| token(id).unwrap_or(Token::PAD)));
        let failure = Failure::of(&context, &produced).unwrap_or(Failure::Other);
        WrongContext { class: self.graph.class(id), context, produced, failure }
    }

    /// Writes a context, what the network reads of it, and what it must say.
    fn write(&self, id: ContextId, worker: &mut Worker) -> Result<(), EvalError> {
        worker.context.clear();
        if !self.write_context(id, &mut worker.context) {
            return Err(self.longest_cot(id)?);
        }
        encode(&worker.context, &self.model.vocabulary, &mut worker.ids, &mut worker.targets)
            .map_err(|token| EvalError::UnknownToken { token, question: self.excerpt(id) })
    }

    /// Writes a context, unless it is one of CoT and too long.
    fn write_context(&self, id: ContextId, context: &mut Context) -> bool {
        match self.paradigm {
            Paradigm::Rot => self.graph.write_rot(id, context),
            Paradigm::Wt => self.graph.write_wt(id, context),
            Paradigm::Cot => {
                return self.graph.write_cot(id, self.model.network.limit(), context);
            }
        }
        true
    }

    /// The error where the CoT context of `id` is too long, for the longest of all.
    fn longest_cot(&self, id: ContextId) -> Result<EvalError, EvalError> {
        let mut counter = CostCounter::new(self.graph)?;
        let lengths = self.ids.iter().map(|&id| (counter.costs(id).cot_context, id));
        let (tokens, id) = lengths.max().unwrap_or((UBig::ZERO, id));
        Ok(self.too_long(id, tokens))
    }

    fn too_long(&self, id: ContextId, tokens: UBig) -> EvalError {
        EvalError::TooLong {
            paradigm: self.paradigm.name(),
            class: self.graph.class(id),
            question: self.excerpt(id),
            tokens,
            limit: self.model.network.limit(),
        }
    }

    fn excerpt(&self, id: ContextId) -> String {
        Excerpt(self.graph.question(id)).to_string()
    }
}

impl Tally {
    /// Adds what was seen in the contexts that follow.
    fn join(mut self, next: Tally, most_wrong: usize) -> Tally {
        self.score += next.score;
        self.wrong.extend(next.wrong);
        for (count, more) in self.failures.iter_mut().zip(next.failures) {
            *count += more;
        }
        self.details.extend(next.details);
        self.details.truncate(most_wrong);
        self
    }
}
