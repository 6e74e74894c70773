//! Batches: contexts drawn from random problems, packed into chunks.
//!
//! What a step is made of depends on the recipe and the step alone, so that a run can go on from any
//! step, and threads share the work in any way.

use std::collections::HashMap;

use rand::{Rng, SeedableRng};
use rayon::prelude::*;
use rot_core::{
    Context, ContextId, CostCounter, Paradigm, SampleRng, Sampler, Sampling, SizeError,
    ThoughtGraph, Token, UBig, UnfoldError, Vocabulary,
};
use rot_nn::Packed;

use crate::encode::encode;
use crate::recipe::{Data, ProblemSize, Recipe, RecipeError};
use crate::shapes::Shapes;

/// Tokens that a chunk should have: enough for matrix products to be fast, few enough for the cache.
const CHUNK_TOKENS: usize = 768;
/// Chunks come in multiples of this, so that two, four or eight workers end together.
const CHUNKS: usize = 8;
/// The most chunks, as each has a gradient of its own; long batches have larger ones.
const MOST_CHUNKS: usize = 64;

/// Contexts whose shapes are counted before the first batch.
const COUNTED: usize = 400_000;

/// Of how many contexts of a problem one is drawn, where the recipe leaves it open: to unfold that many
/// costs little beside learning from one.
const UNFOLDED: usize = 256;
/// Problems by which it is found out how many contexts they have.
const LOOKED_AT: u64 = 20;
/// Contexts of each kind of problem by which it is found out how long they are.
const MEASURED: usize = 256;

/// Why there is no batch.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// A context does not fit into the model.
    #[error(
        "a {paradigm} context of {problem} needs {needed} tokens, and the model's limit is {limit}: \
         choose a smaller size, another paradigm, or a higher [model] limit"
    )]
    TooLong {
        /// The problem and its size.
        problem: ProblemSize,
        /// The paradigm.
        paradigm: &'static str,
        /// The tokens of the context.
        needed: UBig,
        /// The most that fit.
        limit: usize,
    },
    /// A problem cannot be unfolded.
    #[error("cannot unfold a problem of {problem}: {error}")]
    Unfold {
        /// The problem and its size.
        problem: ProblemSize,
        /// Why not.
        error: UnfoldError,
    },
    /// A problem does not have such a size.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// A context has a token that the vocabulary lacks.
    #[error("the vocabulary lacks {token}, which {problem} needs")]
    Token {
        /// The problem and its size.
        problem: ProblemSize,
        /// The token.
        token: Token,
    },
}

/// Draws the batches of a recipe.
pub struct Source {
    problems: Vec<Kind>,
    vocabulary: Vocabulary,
    shapes: Shapes,
    recipe: Recipe,
    limit: usize,
    size: BatchSize,
    /// The share of contexts that are drawn by shape.
    balance: f64,
    /// Whether these are of each class alike.
    by_class: bool,
    /// The share of problems that are smaller than their kind says.
    smaller: f64,
}

/// How many contexts a step draws, and how many of them it learns from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSize {
    /// Contexts that are drawn.
    pub drawn: usize,
    /// Contexts that are learnt from.
    pub learnt: usize,
}

/// A kind of problem.
struct Kind {
    problem: ProblemSize,
    /// How often it stands in the recipe.
    times: usize,
    /// How many contexts are drawn from each problem.
    contexts: usize,
}

/// How many of the problems before an index are of a kind that has a share of all.
fn until(index: u64, share: f64) -> u64 {
    (index as f64 * share) as u64
}

/// Whether the problem at an index is of that kind.
fn is_due(index: u64, share: f64) -> bool {
    until(index + 1, share) > until(index, share)
}

/// The distribution of the numbers in the problem at an index.
fn sampling(index: u64, data: &Data) -> Sampling {
    if is_due(index, data.uniform) {
        return Sampling::Uniform;
    }
    let others = index - until(index, data.uniform);
    // Of what is left; at most all of it, however the two shares are rounded.
    let share = data.repetitive / (1.0 - data.uniform).max(data.repetitive);
    if data.repetitive > 0.0 && is_due(others, share) {
        Sampling::Repetitive
    } else {
        data.sampling
    }
}

/// What a worker uses again for every problem.
#[derive(Default)]
struct Scratch {
    graph: ThoughtGraph,
    question: Vec<Token>,
    /// For each context of the problem, the weights up to and including its own.
    weights: Vec<f64>,
    /// The weights of each class together.
    classes: HashMap<&'static str, f64>,
}

impl Source {
    /// The source of a recipe's batches, for a model that reads up to `limit` tokens.
    pub fn new(recipe: &Recipe, limit: usize) -> Result<Source, RecipeError> {
        let data = &recipe.data;
        let problems: Vec<_> = data.problems.iter().map(|problem| problem.problem).collect();
        let mut source = Source {
            problems: Vec::new(),
            vocabulary: Vocabulary::of_problems(&problems),
            shapes: Shapes::default(),
            recipe: recipe.clone(),
            limit,
            size: BatchSize { drawn: recipe.training.drawn(), learnt: recipe.training.batch },
            balance: data.balance,
            by_class: false,
            smaller: 0.0,
        };
        for (problem, times) in data.kinds() {
            // A size that cannot be is the recipe's fault.
            Sampler::new(problem.problem, problem.size, data.sampling, recipe.seed)?;
            let contexts = match (data.paradigm, data.contexts_per_problem) {
                (Paradigm::Rot, 0) => (source.mean_contexts(problem) / UNFOLDED).max(1),
                (Paradigm::Rot, contexts) => contexts,
                (Paradigm::Cot | Paradigm::Wt, _) => 1,
            };
            source.problems.push(Kind { problem, times, contexts });
        }
        if source.is_balanced() {
            source.count_shapes();
        }
        if recipe.training.tokens > 0 {
            source.shrink_batch();
        }
        Ok(source)
    }

    /// Draws fewer contexts by shape and more of smaller problems if they are so long that there would be too
    /// many tokens, and fewer at all if there still are.
    fn shrink_batch(&mut self) {
        let BatchSize { drawn, learnt } = self.size;
        let most = self.recipe.training.tokens as f64 / drawn as f64;
        if self.mean_tokens() > most {
            self.balance *= self.recipe.data.long_balance;
            self.by_class = self.recipe.data.long_classes;
            self.smaller = self.recipe.data.long_smaller;
        }
        let share = most / self.mean_tokens();
        if share < 1.0 {
            let fewer = |contexts: usize| ((contexts as f64 * share) as usize).max(1);
            self.size = BatchSize { drawn: fewer(drawn), learnt: fewer(learnt) };
        }
    }

    /// How long contexts are.
    fn mean_tokens(&self) -> f64 {
        let kinds = self.problems.iter().map(|kind| kind.times as f64 * self.mean_tokens_of(kind));
        kinds.sum::<f64>() / self.times() as f64
    }

    /// How many problems stand in the recipe.
    fn times(&self) -> usize {
        self.recipe.data.problems.len()
    }

    /// How long contexts of a kind are, by the first that are drawn.
    fn mean_tokens_of(&self, kind: &Kind) -> f64 {
        let mut scratch = Scratch::default();
        let (mut tokens, mut contexts) = (0, 0);
        for index in 0..MEASURED.div_ceil(kind.contexts) as u64 {
            // What cannot be drawn is reported when it is to be learnt from.
            let problem = self.sized(kind.problem, index);
            if let Ok(drawn) = self.draw(problem, index, kind.contexts, &mut scratch) {
                tokens += drawn.tokens();
                contexts += drawn.len();
            }
        }
        tokens as f64 / f64::from(contexts.max(1) as u32)
    }

    /// How many contexts a step draws and learns from.
    pub fn size(&self) -> BatchSize {
        self.size
    }

    /// How many contexts problems of a kind have, by the first few of them.
    fn mean_contexts(&self, problem: ProblemSize) -> usize {
        let mut scratch = Scratch::default();
        let mut contexts = 0;
        for index in 0..LOOKED_AT {
            // What cannot be unfolded is reported when it is drawn.
            if self.unfold(problem, index, &mut scratch).is_ok() {
                contexts += scratch.graph.len();
            }
        }
        contexts / LOOKED_AT as usize
    }

    fn is_balanced(&self) -> bool {
        self.recipe.data.paradigm == Paradigm::Rot && self.recipe.data.balance > 0.0
    }

    /// Counts the shapes in as many problems of each kind as have its share of [`COUNTED`] contexts.
    fn count_shapes(&mut self) {
        let (mut shapes, mut scratch) = (Shapes::default(), Scratch::default());
        for kind in &self.problems {
            let mut left = COUNTED / self.times() * kind.times;
            for index in 0..left as u64 {
                if left == 0 || self.unfold(kind.problem, index, &mut scratch).is_err() {
                    break;
                }
                shapes.count(&scratch.graph);
                left = left.saturating_sub(scratch.graph.len());
            }
        }
        self.shapes = shapes;
    }

    /// The tokens of all its problems.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// What is drawn for a step, in chunks of about the same number of tokens. Kinds of problems get the
    /// share of the contexts with which they stand in the recipe; what is left over goes to the first of them.
    pub fn batch(&self, step: u64) -> Result<Vec<Packed>, DataError> {
        let (contexts, times) = (self.size.drawn, self.times());
        let (mut problems, mut place) = (Vec::new(), 0);
        for kind in &self.problems {
            let problem = self.grown(kind.problem, step);
            let most = (contexts.div_ceil(times) * kind.times).div_ceil(kind.contexts) as u64;
            let before = |place: usize| contexts / times * place + (contexts % times).min(place);
            let mut left = before(place + kind.times) - before(place);
            place += kind.times;
            for index in 0..most {
                let count = left.min(kind.contexts);
                if count == 0 {
                    break;
                }
                let index = step.wrapping_mul(most).wrapping_add(index);
                problems.push((self.sized(problem, index), index, count));
                left -= count;
            }
        }
        let problems = problems.par_iter().with_min_len(problems.len().div_ceil(16));
        let drawn = problems.map_init(Scratch::default, |scratch, &(problem, index, count)| {
            self.draw(problem, index, count, scratch)
        });
        let drawn: Vec<Packed> = drawn.collect::<Result<_, DataError>>()?;
        Ok(chunks(drawn.iter().flat_map(Packed::iter).collect()))
    }

    /// A problem in the size that it has at a step.
    fn grown(&self, problem: ProblemSize, step: u64) -> ProblemSize {
        let smallest = problem.problem.facts().smallest.min(problem.size);
        let grown = f64::from(problem.size - smallest) * self.recipe.grown(step);
        let size = smallest + grown as u32;
        ProblemSize { size, ..problem }
    }

    /// The problem at an index in its own size, or in a smaller one.
    fn sized(&self, problem: ProblemSize, index: u64) -> ProblemSize {
        // A random stream of its own, so that nothing else that depends on the index falls into step with it.
        let mut rng = SampleRng::seed_from_u64(index);
        if unit(&mut rng) >= self.smaller {
            return problem;
        }
        // Size 1 as often as one from 16 to 31: short problems have shapes of their own, and few.
        let smallest = f64::from(problem.problem.facts().smallest.min(problem.size));
        let ratio = f64::from(problem.size) / smallest;
        let size = (smallest * ratio.powf(unit(&mut rng))) as u32;
        ProblemSize { size, ..problem }
    }

    /// Unfolds the problem at an index: its context, and what else is random about it.
    fn unfold(
        &self,
        problem: ProblemSize,
        index: u64,
        scratch: &mut Scratch,
    ) -> Result<(ContextId, SampleRng), DataError> {
        let ProblemSize { problem: kind, size } = problem;
        let sampling = sampling(index, &self.recipe.data);
        let sampler = Sampler::new(kind, size, sampling, self.recipe.seed)?;
        let rng = sampler.write_question(index, &mut scratch.question);
        scratch.graph.clear();
        let root = scratch
            .graph
            .unfold(kind, &scratch.question)
            .map_err(|error| DataError::Unfold { problem, error })?;
        Ok((root, rng))
    }

    /// So many contexts of the problem at an index.
    fn draw(
        &self,
        problem: ProblemSize,
        index: u64,
        count: usize,
        scratch: &mut Scratch,
    ) -> Result<Packed, DataError> {
        let (root, mut rng) = self.unfold(problem, index, scratch)?;
        let mut batch = Packed::default();
        let (mut context, mut ids, mut targets) = (Context::default(), Vec::new(), Vec::new());
        let balanced = self.is_balanced();
        if balanced {
            scratch.weigh(&self.shapes, self.by_class);
        }
        for _ in 0..count {
            context.clear();
            match self.recipe.data.paradigm {
                Paradigm::Wt => scratch.graph.write_wt(root, &mut context),
                Paradigm::Cot => {
                    if !scratch.graph.write_cot(root, self.limit, &mut context) {
                        let mut counter = CostCounter::new(&scratch.graph)
                            .map_err(|error| DataError::Unfold { problem, error })?;
                        return Err(self.too_long(problem, counter.costs(root).cot_context));
                    }
                }
                Paradigm::Rot => {
                    let id = if balanced && unit(&mut rng) < self.balance {
                        scratch.draw_by_shape(&mut rng).unwrap_or(root)
                    } else {
                        scratch.graph.context(below(&mut rng, scratch.graph.len())).unwrap_or(root)
                    };
                    scratch.graph.write_rot(id, &mut context);
                }
            }
            if context.len() > self.limit {
                return Err(self.too_long(problem, UBig::from(context.len())));
            }
            encode(&context, &self.vocabulary, &mut ids, &mut targets)
                .map_err(|token| DataError::Token { problem, token })?;
            batch.push(&ids, &targets);
        }
        Ok(batch)
    }

    fn too_long(&self, problem: ProblemSize, needed: UBig) -> DataError {
        DataError::TooLong {
            problem,
            paradigm: self.recipe.data.paradigm.name(),
            needed,
            limit: self.limit,
        }
    }
}

impl Scratch {
    /// Weighs the contexts of the problem: the rarer the shape, the more; all classes alike if so asked.
    fn weigh(&mut self, shapes: &Shapes, by_class: bool) {
        let Scratch { graph, weights, classes, .. } = self;
        weights.clear();
        weights.extend(graph.contexts().map(|id| shapes.weight(graph, id)));
        if by_class {
            classes.clear();
            for (id, weight) in graph.contexts().zip(&*weights) {
                *classes.entry(graph.class(id)).or_default() += weight;
            }
            for (id, weight) in graph.contexts().zip(&mut *weights) {
                *weight /= classes[graph.class(id)];
            }
        }
        let mut total = 0.0;
        for weight in weights {
            total += *weight;
            *weight = total;
        }
    }

    /// Draws a context by its weight.
    fn draw_by_shape(&self, rng: &mut SampleRng) -> Option<ContextId> {
        let drawn = unit(rng) * self.weights.last()?;
        self.graph.context(self.weights.partition_point(|&upto| upto <= drawn))
    }
}

/// A number below `count`, which is small: every one as likely to within 2^-32.
fn below(rng: &mut SampleRng, count: usize) -> usize {
    ((u64::from(rng.next_u32()) * count as u64) >> 32) as usize
}

/// A number from 0 to below 1.
fn unit(rng: &mut SampleRng) -> f64 {
    f64::from(rng.next_u32()) / 4_294_967_296.0
}

/// Distributes sequences, ids with targets, over chunks: the longest first, each to the chunk with the
/// fewest tokens.
pub(crate) fn chunks(mut sequences: Vec<[&[u8]; 2]>) -> Vec<Packed> {
    let tokens: usize = sequences.iter().map(|[ids, _]| ids.len()).sum();
    sequences.sort_by_key(|[ids, _]| std::cmp::Reverse(ids.len()));
    let count = tokens.div_ceil(CHUNK_TOKENS).next_multiple_of(CHUNKS);
    let count = count.min(MOST_CHUNKS).min(sequences.len());
    let mut chunks = vec![Packed::default(); count];
    for [ids, targets] in sequences {
        if let Some(chunk) = chunks.iter_mut().min_by_key(|chunk| chunk.tokens()) {
            chunk.push(ids, targets);
        }
    }
    chunks
}

#[cfg(test)]
mod tests;
