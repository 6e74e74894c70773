//! Test sets solved the slow way, and a network that knows the solutions by heart.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rot_core::{
    Context, ContextId, Paradigm, Problem, Sampler, Sampling, Text, ThoughtGraph, Token, Vocabulary,
};
use rot_nn::{Decoder, Layout, Memory, Network, Packed, Score, UNSUPERVISED, Workspace};

use crate::Model;
use crate::eval::test_seed;

/// A network that has learned contexts by heart: from all it reads to what it says after each token.
#[derive(Clone)]
struct ByHeart {
    known: Arc<HashMap<Vec<u8>, Vec<u8>>>,
    vocabulary: usize,
    limit: usize,
    layout: Layout,
    read: &'static AtomicUsize,
}

impl Network for ByHeart {
    fn layout(&self) -> &Layout {
        &self.layout
    }
    fn vocabulary(&self) -> usize {
        self.vocabulary
    }
    fn limit(&self) -> usize {
        self.limit
    }
    fn flops(&self, _: &Packed) -> u64 {
        0
    }
    fn decoder(&self, _: &[f32]) -> Box<dyn Decoder> {
        Box::new(self.clone())
    }
    fn learn(&self, _: &[f32], _: &Packed, _: f32, _: &mut [f32], _: &mut Workspace) -> Score {
        Score::default()
    }
}

impl Decoder for ByHeart {
    fn network(&self) -> &dyn Network {
        self
    }

    fn read(&self, batch: &Packed, _: &mut [Memory], _: &mut Workspace, logits: &mut Vec<f32>) {
        logits.clear();
        assert!(batch.len() == 1 || (1..=1024).contains(&batch.tokens()), "chunks of a good size");
        for sequence in batch.sequences() {
            self.read.fetch_add(1, Ordering::Relaxed);
            let said = &self.known[&batch.ids()[sequence.clone()]];
            for (&said, &target) in said.iter().zip(&batch.targets()[sequence]) {
                if target != UNSUPERVISED {
                    logits
                        .extend((0..self.vocabulary).map(|id| f32::from(id == usize::from(said))));
                }
            }
        }
    }
}

/// A context by itself, as a naive solver meets it.
pub(super) struct Known {
    pub(super) class: &'static str,
    pub(super) context: Context,
    pub(super) produced: Vec<Token>,
    asks: Vec<String>,
}

/// Everything about a test set, found without sharing anything between problems.
pub(super) struct Naive {
    pub(super) questions: Vec<String>,
    pub(super) contexts: HashMap<String, Known>,
}

/// What is said in place of the right tokens of a context; `None` leaves it right.
pub(super) type Fault = fn(&str, &Context) -> Option<Vec<Token>>;

impl Naive {
    pub(super) fn new(
        problem: &'static dyn Problem,
        size: u32,
        count: usize,
        paradigm: Paradigm,
        fault: Fault,
    ) -> Naive {
        let sampler = Sampler::new(problem, size, Sampling::Paper, test_seed(3)).unwrap();
        let mut naive = Naive { questions: Vec::new(), contexts: HashMap::new() };
        let mut question = Vec::new();
        let mut seen = HashSet::new();
        for index in 0.. {
            if seen.len() == count {
                break;
            }
            sampler.write_question(index, &mut question);
            let text = Text(&question).to_string();
            if !seen.insert(text.clone()) {
                continue;
            }
            naive.questions.push(text);
            let mut graph = ThoughtGraph::default();
            let root = graph.unfold(problem, &question).unwrap();
            match paradigm {
                Paradigm::Rot => graph.contexts().for_each(|id| {
                    naive.learn(&graph, id, fault, |context| graph.write_rot(id, context));
                }),
                Paradigm::Wt => naive.learn(&graph, root, fault, |context| {
                    graph.write_wt(root, context);
                }),
                Paradigm::Cot => naive.learn(&graph, root, fault, |context| {
                    assert!(graph.write_cot(root, usize::MAX, context));
                }),
            }
        }
        naive
    }

    fn learn(
        &mut self,
        graph: &ThoughtGraph,
        id: ContextId,
        fault: Fault,
        write: impl FnOnce(&mut Context),
    ) {
        let question = Text(graph.question(id)).to_string();
        let mut context = Context::default();
        write(&mut context);
        let produced = fault(&question, &context).unwrap_or_else(|| context.y.clone());
        assert_eq!(produced.len(), context.len());
        let asks = graph.thoughts(id).map(|t| Text(graph.question(t.context)).to_string());
        let known = Known { class: graph.class(id), asks: asks.collect(), context, produced };
        self.contexts.insert(question, known);
    }

    pub(super) fn model(&self, limit: usize) -> (Model, &'static AtomicUsize) {
        let read: &AtomicUsize = Box::leak(Box::default());
        let vocabulary = Vocabulary::of(Token::ALL.iter().copied());
        // All tokens are known, so that an id is a token's place among them.
        let ids = |tokens: &[Token]| tokens.iter().map(|token| token.index() as u8).collect();
        let known = self.contexts.values().map(|known| {
            let length = known.context.len();
            (ids(&known.context.x[..length - 1]), ids(&known.produced[1..]))
        });
        let network = ByHeart {
            known: Arc::new(known.collect()),
            vocabulary: vocabulary.len(),
            limit,
            layout: Layout::default(),
            read,
        };
        let recipe = crate::Recipe::default();
        let network = Arc::new(network);
        (Model { network, params: Vec::new(), vocabulary, recipe }, read)
    }

    pub(super) fn is_right(&self, question: &str) -> bool {
        let known = &self.contexts[question];
        known.context.y == known.produced
    }

    /// Solves a problem with no cache: it is right if nothing wrong is met on the way.
    pub(super) fn is_deep_right(&self, question: &str) -> bool {
        let asks = &self.contexts[question].asks;
        self.is_right(question) && asks.iter().all(|asked| self.is_deep_right(asked))
    }

    /// Contexts, right ones and deep-right ones by class.
    pub(super) fn by_class(&self) -> BTreeMap<&'static str, [usize; 3]> {
        let mut classes = BTreeMap::new();
        for (question, known) in &self.contexts {
            let counts = classes.entry(known.class).or_insert([0; 3]);
            counts[0] += 1;
            counts[1] += usize::from(self.is_right(question));
            counts[2] += usize::from(self.is_deep_right(question));
        }
        classes
    }
}
