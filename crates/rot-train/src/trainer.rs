//! The training loop, one step at a time.

use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;
use rot_nn::{Network, Optimizer, Packed, Score, Workspace, sum_gradients};

use crate::Model;
use crate::data::{BatchSize, DataError, Source, chunks};
use crate::hardest::{Reader, hardest};
use crate::recipe::{Recipe, RecipeError};

/// A model in training.
pub struct Trainer {
    recipe: Recipe,
    source: Source,
    network: Arc<dyn Network>,
    /// The parameters.
    pub params: Vec<f32>,
    /// Their average, if the recipe asks for one.
    pub average: Option<Vec<f32>>,
    /// The optimiser, which counts the steps.
    pub optimizer: Optimizer,
    /// One for each chunk of a step.
    gradients: Vec<Vec<f32>>,
    /// As many as threads have worked at once.
    workspaces: Mutex<Vec<Workspace>>,
    /// The same for reading.
    readers: Mutex<Vec<Reader>>,
}

/// What a step was like.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// How well the model did on the batch, before the step.
    pub score: Score,
    /// Tokens that were read, to learn from or to choose from.
    pub tokens: usize,
    /// Multiplications and additions, forward and backward.
    pub flops: u64,
    /// The norm of all gradients together.
    pub norm: f64,
}

impl Trainer {
    /// A model before its first step.
    pub fn new(recipe: &Recipe) -> Result<Trainer, RecipeError> {
        recipe.check()?;
        let limit = recipe.model.limit();
        let source = Source::new(recipe, limit)?;
        let network = recipe.model.network(source.vocabulary())?;
        let params = network.layout().initial(recipe.seed);
        let average = (recipe.training.average > 0.0).then(|| params.clone());
        let optimizer = Optimizer::new(&recipe.optimizer, network.layout());
        Ok(Trainer {
            recipe: recipe.clone(),
            source,
            network,
            params,
            average,
            optimizer,
            gradients: Vec::new(),
            workspaces: Mutex::default(),
            readers: Mutex::default(),
        })
    }

    /// Goes on from the weights that the recipe names, if it names some, and notes how they were made.
    pub(crate) fn start(&mut self) -> Result<(), RecipeError> {
        let Some(start) = &mut self.recipe.start else { return Ok(()) };
        let wrong = |what: String| Err(RecipeError::Setting(format!("[start] {what}")));
        let model = match Model::open(&start.weights) {
            Ok(model) => model,
            Err(error) => return wrong(error.to_string()),
        };
        let weights = start.weights.display();
        if model.recipe.model != self.recipe.model {
            return wrong(format!("'{weights}' has other settings in [model]: take over those"));
        }
        if model.vocabulary != *self.source.vocabulary() {
            return wrong(format!(
                "'{weights}' knows the tokens {}, and the problems need {}",
                model.vocabulary,
                self.source.vocabulary()
            ));
        }
        start.recipe = Some(Box::new(model.recipe));
        self.average = self.average.is_some().then(|| model.params.clone());
        self.params = model.params;
        Ok(())
    }

    /// The recipe.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// The model without its parameters.
    pub fn network(&self) -> &dyn Network {
        self.network.as_ref()
    }

    /// Where batches come from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The parameters to test and keep: the average, if there is one.
    pub fn best_params(&self) -> &[f32] {
        self.average.as_deref().unwrap_or(&self.params)
    }

    /// The model as it is now, to test and to keep.
    pub fn model(&self) -> Model {
        Model {
            network: Arc::clone(&self.network),
            params: self.best_params().to_vec(),
            vocabulary: self.source.vocabulary().clone(),
            recipe: self.recipe.clone(),
        }
    }

    /// Makes the next step. Where the loss is not finite, the parameters stay as they were.
    pub fn step(&mut self) -> Result<Step, DataError> {
        let step = self.optimizer.steps;
        let drawn = self.source.batch(step)?;
        let BatchSize { drawn: contexts, learnt } = self.source.size();
        let factor = self.recipe.training.factor(step);
        if contexts <= learnt {
            return Ok(self.learn(&drawn, factor));
        }
        let decoder = self.network.decoder(&self.params);
        let (score, chosen) = hardest(decoder.as_ref(), &drawn, learnt, &self.readers);
        let learnt = self.learn(&chunks(chosen), factor);
        // What stops a training is in what was learnt from.
        let loss = if learnt.score.loss.is_finite() { score.loss } else { learnt.score.loss };
        let flops: u64 = drawn.iter().map(|chunk| self.network.flops(chunk)).sum();
        Ok(Step {
            score: Score { loss, ..score },
            tokens: drawn.iter().map(Packed::tokens).sum(),
            flops: learnt.flops + flops,
            ..learnt
        })
    }

    /// One step on the given chunks, with that share of the learning rates.
    pub fn learn(&mut self, chunks: &[Packed], factor: f64) -> Step {
        let (network, params) = (self.network.as_ref(), &self.params);
        let supervised: usize = chunks.iter().map(|chunk| chunk.supervised().count()).sum();
        let scale = 1.0 / supervised.max(1) as f32;
        self.gradients.resize_with(chunks.len(), Vec::new);
        let workspaces = &self.workspaces;
        let lock = || workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        let work = chunks.par_iter().zip(&mut self.gradients).with_max_len(1);
        let scores = work.map(|(chunk, gradient)| {
            gradient.clear();
            gradient.resize(params.len(), 0.0);
            let mut workspace = lock().pop().unwrap_or_default();
            let score = network.learn(params, chunk, scale, gradient, &mut workspace);
            lock().push(workspace);
            score
        });
        let mut score = Score::default();
        scores.collect::<Vec<_>>().into_iter().for_each(|chunk| score += chunk);

        let norm = sum_gradients(&mut self.gradients);
        if score.loss.is_finite()
            && norm.is_finite()
            && let Some(gradient) = self.gradients.first_mut()
        {
            self.optimizer.step(self.network.layout(), &mut self.params, gradient, norm, factor);
            if let Some(average) = &mut self.average {
                let keep = self.recipe.training.average as f32;
                let parts = average.par_chunks_mut(1 << 14).zip(self.params.par_chunks(1 << 14));
                parts.for_each(|(average, params)| {
                    for (average, &param) in average.iter_mut().zip(params) {
                        *average += (1.0 - keep) * (param - *average);
                    }
                });
            }
        }
        Step {
            score,
            tokens: chunks.iter().map(Packed::tokens).sum(),
            flops: 3 * chunks.iter().map(|chunk| network.flops(chunk)).sum::<u64>(),
            norm,
        }
    }
}
