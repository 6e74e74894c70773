//! Recipes: everything that decides what a training run computes, in one TOML file.
//!
//! Two runs with the same recipe end in the same bits, whatever the number of threads. Settings that
//! a recipe leaves out have the paper's values, which stand in the `Default`s here and in `rot-nn`;
//! the run folder keeps the recipe with all of them filled in.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use rot_core::{Paradigm, Problem, Sampling, SizeError, Vocabulary};
use rot_nn::{
    ConfigError, Lstm, LstmConfig, Network, OptimizerConfig, Transformer, TransformerConfig,
};
use rot_problems::PROBLEMS;
use rot_solve::roles;
use serde::{Deserialize, Serialize};

/// The most contexts of a step.
const MOST_CONTEXTS: usize = 1_000_000;

/// A recipe.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recipe {
    /// Decides the parameters at the start and the questions that are drawn.
    pub seed: u64,
    /// What training goes on from, instead of random parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// What is trained on.
    pub data: Data,
    /// What is trained.
    pub model: ModelConfig,
    /// How it moves.
    pub optimizer: OptimizerConfig,
    /// For how long, and how fast.
    pub training: Training,
    /// How it is tested on the way.
    pub evaluation: Evaluation,
}

/// Weights that training goes on from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// A weights file, or the folder of a run. Only the beginning of a run reads it.
    pub weights: PathBuf,
    /// How they were made; the beginning of a run fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<Box<Recipe>>,
}

/// What is trained on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Data {
    /// Problems with their sizes, such as `mul-4`, taken in turn: one that stands there twice has twice as
    /// many contexts drawn from it.
    pub problems: Vec<ProblemSize>,
    /// How they are put before the model: rot, cot or wt.
    #[serde(with = "named")]
    pub paradigm: Paradigm,
    /// The distribution of the numbers: paper, uniform or repetitive.
    #[serde(with = "named")]
    pub sampling: Sampling,
    /// The share of problems whose numbers are drawn uniformly instead, so that nearly all have full
    /// length.
    pub uniform: f64,
    /// The share of problems whose numbers have few different digits instead.
    pub repetitive: f64,
    /// Contexts drawn from each problem that is unfolded; 0 for one of every 256 that problems of its kind
    /// have, so that large ones cost no more to draw from. The paper draws one.
    pub contexts_per_problem: usize,
    /// The share of contexts that are drawn by the shape that is left when digits are not told apart,
    /// instead of as they fall: the rarer the shape, the likelier.
    pub balance: f64,
    /// What is left of `balance` where a step would have too many tokens with it: of large problems nearly every
    /// long context has a shape of its own, so that little else would be drawn.
    pub long_balance: f64,
    /// Whether what is drawn by shape where a step would have too many tokens is of each class of the problem alike:
    /// the rare comparisons of a chain of matrices as often as its chains.
    pub long_classes: bool,
    /// The share of problems that have a random smaller size, where a step would have too many tokens, size 1
    /// as often as one from 16 to 31: what is small, such as `2+2`, comes up once in a problem of thousands of contexts.
    pub long_smaller: f64,
    /// The share of the steps in which problems grow from the smallest to their size.
    pub grow: f64,
}

/// The settings of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ModelConfig {
    /// A Transformer.
    Transformer(TransformerConfig),
    /// An LSTM.
    Lstm(LstmConfig),
}

/// For how long, and how fast.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Training {
    /// Steps of the optimiser.
    pub steps: u64,
    /// Contexts that a step learns from.
    pub batch: usize,
    /// Contexts that a step reads first, to learn from the `batch` that the model is least sure of; 0
    /// to learn from all that are drawn.
    pub candidates: usize,
    /// The most tokens that a step draws, about: where contexts are long, there are fewer of them, in
    /// `batch` and in `candidates` alike; 0 for no such limit.
    pub tokens: usize,
    /// How the learning rate goes down.
    pub schedule: Schedule,
    /// Steps after which it is halved, in a step schedule.
    pub halve_every: u64,
    /// Steps in which it rises from zero first.
    pub warmup: u64,
    /// The share of the steps before it goes down, in a linear schedule.
    pub hold: f64,
    /// How slowly the average of the parameters follows them; 0 for no average. It is what is tested
    /// and kept.
    pub average: f64,
    /// Steps between checkpoints.
    pub checkpoint_every: u64,
    /// Whether to end as soon as a test is passed without a fault.
    pub stop_when_perfect: bool,
}

/// How the learning rate goes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// Halved every so many steps.
    Step,
    /// Held, then straight to zero.
    Linear,
    /// Half a cosine wave to zero.
    Cosine,
}

/// How it is tested on the way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Evaluation {
    /// Steps between tests; there is one at the end in any case.
    pub every: u64,
    /// Problems of each kind to test with.
    pub problems: u64,
    /// Fewer of them where they have more than so many contexts together; 0 for no such limit.
    pub contexts: usize,
}

impl Default for Data {
    fn default() -> Self {
        Data {
            problems: Vec::new(),
            paradigm: Paradigm::Rot,
            sampling: Sampling::Paper,
            uniform: 0.0,
            repetitive: 0.0,
            contexts_per_problem: 1,
            balance: 0.0,
            long_balance: 1.0,
            long_classes: false,
            long_smaller: 0.0,
            grow: 0.0,
        }
    }
}

impl Default for ModelConfig {
    fn default() -> Self {
        ModelConfig::Transformer(TransformerConfig::default())
    }
}

impl Default for Training {
    fn default() -> Self {
        Training {
            steps: 500_000,
            batch: 256,
            candidates: 0,
            tokens: 0,
            schedule: Schedule::Step,
            halve_every: 50_000,
            warmup: 0,
            hold: 0.0,
            average: 0.0,
            checkpoint_every: 1_000,
            stop_when_perfect: true,
        }
    }
}

impl Default for Evaluation {
    fn default() -> Self {
        Evaluation { every: 20_000, problems: 10_000, contexts: 0 }
    }
}

impl Training {
    /// Contexts that are drawn for a step, where `tokens` does not make them fewer.
    pub fn drawn(&self) -> usize {
        self.candidates.max(self.batch)
    }

    /// The share of the learning rate at a step, counted from zero.
    pub fn factor(&self, step: u64) -> f64 {
        let warm = if step < self.warmup { (step + 1) as f64 / self.warmup as f64 } else { 1.0 };
        let done = step as f64 / self.steps.max(1) as f64;
        let down = match self.schedule {
            Schedule::Step => 0.5f64.powf((step / self.halve_every.max(1)) as f64),
            Schedule::Linear if done < self.hold => 1.0,
            Schedule::Linear => (1.0 - done) / (1.0 - self.hold),
            Schedule::Cosine => 0.5 + 0.5 * (std::f64::consts::PI * done).cos(),
        };
        warm * down
    }
}

/// A problem and its size, written `mul-4`.
#[derive(Clone, Copy)]
pub struct ProblemSize {
    /// The problem.
    pub problem: &'static dyn Problem,
    /// Its size.
    pub size: u32,
}

impl PartialEq for ProblemSize {
    fn eq(&self, other: &Self) -> bool {
        self.problem.name() == other.problem.name() && self.size == other.size
    }
}

impl std::fmt::Display for ProblemSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.problem.name(), self.size)
    }
}

impl std::fmt::Debug for ProblemSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for ProblemSize {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for ProblemSize {
    type Err = String;

    fn from_str(text: &str) -> Result<ProblemSize, String> {
        let parts = text.rsplit_once('-');
        let found = parts.and_then(|(name, size)| {
            let problem = PROBLEMS.iter().find(|problem| problem.name() == name)?;
            Some(ProblemSize { problem: *problem, size: size.parse().ok()? })
        });
        found.ok_or_else(|| {
            let names: Vec<&str> = PROBLEMS.iter().map(|problem| problem.name()).collect();
            let known = names.join(", ");
            format!(
                "'{text}' is not a problem and its size, such as mul-4; the problems are {known}"
            )
        })
    }
}

impl<'de> Deserialize<'de> for ProblemSize {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Values that are written by their names.
mod named {
    use rot_core::{Paradigm, Sampling};
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) trait Named: Copy + 'static {
        const ALL: &'static [Self];
        fn name(self) -> &'static str;
    }

    impl Named for Paradigm {
        const ALL: &'static [Self] = &Paradigm::ALL;
        fn name(self) -> &'static str {
            Paradigm::name(self)
        }
    }

    impl Named for Sampling {
        const ALL: &'static [Self] = &Sampling::ALL;
        fn name(self) -> &'static str {
            Sampling::name(self)
        }
    }

    pub(super) fn serialize<T: Named, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(value.name())
    }

    pub(super) fn deserialize<'de, T: Named, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        let text = String::deserialize(deserializer)?;
        T::ALL.iter().copied().find(|value| value.name() == text).ok_or_else(|| {
            let names: Vec<&str> = T::ALL.iter().map(|value| value.name()).collect();
            serde::de::Error::custom(format_args!("'{text}' is none of {}", names.join(", ")))
        })
    }
}

/// A recipe that cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    /// It is not TOML, or not a recipe.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// A model that cannot be.
    #[error("[model] {0}")]
    Model(#[from] ConfigError),
    /// A size that a problem does not have.
    #[error("[data] {0}")]
    Size(#[from] SizeError),
    /// A setting that makes no sense.
    #[error("{0}")]
    Setting(String),
}

impl Recipe {
    /// Reads a recipe. Whether it can be followed shows when it is used.
    pub fn parse(text: &str) -> Result<Recipe, RecipeError> {
        Ok(toml::from_str(text)?)
    }

    /// The recipe with every setting.
    pub fn to_toml(&self) -> String {
        // Fails only for values that TOML cannot hold, of which a recipe has none.
        toml::to_string_pretty(self).unwrap_or_default()
    }

    /// The share of their size that problems have at a step, counted from zero.
    pub fn grown(&self, step: u64) -> f64 {
        ((step + 1) as f64 / self.growing()).min(1.0)
    }

    /// What all steps before one cost together, counted in steps of problems of full size: as long as
    /// problems grow, their contexts are about as much shorter as they are smaller.
    pub fn work(&self, step: u64) -> f64 {
        let (step, growing) = (step as f64, self.growing());
        let small = step.min(growing);
        let grown = if growing > 0.0 { small * (small + 1.0) / (2.0 * growing) } else { 0.0 };
        grown.min(small) + step - small
    }

    /// The steps in which problems grow.
    fn growing(&self) -> f64 {
        self.data.grow * self.training.steps as f64
    }

    /// Checks what the parts of a recipe cannot check for themselves.
    pub fn check(&self) -> Result<(), RecipeError> {
        let wrong = |what: &str| Err(RecipeError::Setting(what.to_owned()));
        let (training, data) = (&self.training, &self.data);
        let share = |x: f64| (0.0..=1.0).contains(&x);
        if data.problems.is_empty() {
            return wrong("[data] problems is empty: name at least one, such as \"mul-4\"");
        }
        if self.seed >= 1 << 63 {
            return wrong("seed must be below 2^63: those above belong to test sets");
        }
        if !(1..=MOST_CONTEXTS).contains(&training.batch) {
            return wrong("[training] batch must be between 1 and 1000000");
        }
        if training.candidates != 0
            && !(training.batch..=MOST_CONTEXTS).contains(&training.candidates)
        {
            return wrong("[training] candidates must be 0, or at least batch and at most 1000000");
        }
        if data.contexts_per_problem > training.drawn() {
            return wrong("[data] contexts_per_problem must be at most what a step draws");
        }
        let shares = [
            ("balance", data.balance),
            ("long_balance", data.long_balance),
            ("long_smaller", data.long_smaller),
            ("uniform", data.uniform),
            ("repetitive", data.repetitive),
            ("grow", data.grow),
        ];
        if let Some((name, _)) = shares.into_iter().find(|(_, value)| !share(*value)) {
            return wrong(&format!("[data] {name} must be between 0 and 1"));
        }
        if data.uniform + data.repetitive > 1.0 {
            return wrong("[data] uniform and repetitive must not be more than 1 together");
        }
        if !share(training.hold)
            || training.hold == 1.0
            || !share(training.average)
            || training.average == 1.0
        {
            return wrong("[training] hold and average must be at least 0 and below 1");
        }
        if self.evaluation.problems == 0
            || self.evaluation.every == 0
            || training.checkpoint_every == 0
        {
            return wrong(
                "[evaluation] problems and every, and [training] checkpoint_every, must be at least 1",
            );
        }
        let numbers = [
            self.optimizer.rate,
            self.optimizer.muon_rate,
            self.optimizer.epsilon,
            self.optimizer.clip,
            self.optimizer.weight_decay,
        ];
        if numbers.iter().any(|x| !x.is_finite() || *x < 0.0) {
            return wrong(
                "[optimizer] rates, epsilon, clip and weight_decay must be numbers and not negative",
            );
        }
        let betas = [self.optimizer.beta1, self.optimizer.beta2, self.optimizer.muon_momentum];
        if betas.iter().any(|x| !(0.0..1.0).contains(x)) {
            return wrong("[optimizer] betas and muon_momentum must be at least 0 and below 1");
        }
        Ok(())
    }
}

impl Data {
    /// The different problems, and how often each stands among them.
    pub fn kinds(&self) -> Vec<(ProblemSize, usize)> {
        let mut kinds: Vec<(ProblemSize, usize)> = Vec::new();
        for &problem in &self.problems {
            match kinds.iter_mut().find(|(kind, _)| *kind == problem) {
                Some((_, times)) => *times += 1,
                None => kinds.push((problem, 1)),
            }
        }
        kinds
    }

    /// The different problems as text, such as `mcm-12 (3 times)`.
    pub fn names(&self) -> Vec<String> {
        let name = |(problem, times)| match times {
            1 => format!("{problem}"),
            2 => format!("{problem} (twice)"),
            times => format!("{problem} ({times} times)"),
        };
        self.kinds().into_iter().map(name).collect()
    }
}

impl ModelConfig {
    /// The network for a vocabulary.
    pub fn network(&self, vocabulary: &Vocabulary) -> Result<Arc<dyn Network>, ConfigError> {
        Ok(match self {
            ModelConfig::Transformer(config) => {
                Arc::new(Transformer::new(config, &roles(vocabulary))?)
            }
            ModelConfig::Lstm(config) => Arc::new(Lstm::new(config, vocabulary.len())?),
        })
    }

    /// The most tokens in a context.
    pub fn limit(&self) -> usize {
        match self {
            ModelConfig::Transformer(config) => config.limit,
            ModelConfig::Lstm(config) => config.limit,
        }
    }
}
