//! A training run: steps, tests, checkpoints and metrics in a run folder.
//!
//! The recipe decides every bit of the result. A run that is interrupted, or killed at any moment, and
//! then resumed goes through the same parameters as one that was not.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rot_core::DEFAULT_MEMORY_LIMIT;
use rot_nn::Score;

use crate::data::DataError;
use crate::eval::{self, EvalError, Evaluation, Questions, TestSet, evaluate, until};
use crate::model::{RECIPE, VOCABULARY};
use crate::recipe::{ProblemSize, Recipe, RecipeError};
use crate::run::{
    CheckpointError, FileError, Metrics, Newest, RunError, RunFolder, Snapshot, last_timing,
    write_atomically,
};
use crate::trainer::{Step, Trainer};

/// Steps between rows of the metrics.
const ROW_EVERY: u64 = 20;
/// What the recipe decides: mean loss and share of right contexts since the last row, share of the
/// learning rate, and share of test problems with every step right in the last test.
const VALUES: [&str; 4] = ["loss", "context_accuracy", "rate_factor", "deep_accuracy"];
/// What differs from run to run.
const TIMINGS: [&str; 3] = ["seconds", "tokens_per_second", "gflops"];
/// The seed of the problems that a run is tested with on its way; final tests use others.
const VALIDATION_SEED: u64 = 1 << 62;

/// A training run.
pub struct Session {
    folder: RunFolder,
    trainer: Trainer,
    metrics: Metrics,
    tests: Vec<(ProblemSize, TestSet)>,
    progress: Progress,
    clock: Clock,
}

/// What a run remembers besides parameters and optimiser.
#[derive(Clone, Debug, Default, PartialEq)]
struct Progress {
    /// Since the last row of the metrics.
    recent: Score,
    /// Share of problems right in the last test, and in the best.
    last: f64,
    best: Option<f64>,
}

/// How long it takes. None of it is part of a checkpoint.
struct Clock {
    /// Seconds of training before this process went on.
    before: f64,
    start: Instant,
    /// Since the last row of the metrics.
    row: Instant,
    tokens: usize,
    flops: u64,
}

/// What happens in a run, for those who watch.
#[derive(Debug)]
pub enum Event<'a> {
    /// A step was made.
    Step(&'a Step),
    /// A test with one kind of problem begins.
    Testing,
    /// A test has ended; the share of problems right over all kinds, and each kind.
    Result(f64, &'a [(ProblemSize, Evaluation)]),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All steps were made.
    Finished,
    /// A test was passed without a fault, and the recipe says to end there.
    Perfect,
    /// Somebody asked it to stop.
    Interrupted,
}

/// Why a run cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The recipe cannot be followed.
    #[error("{place}: {source}")]
    Recipe {
        /// Which recipe.
        place: String,
        /// Why not.
        source: RecipeError,
    },
    /// No batch could be made.
    #[error(transparent)]
    Data(#[from] DataError),
    /// No test could be made.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// The run folder.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The loss is not a number any more.
    #[error(
        "the loss is not finite at step {step}: lower {setting} in line {line} of '{recipe}' and start \
         again; {kept}"
    )]
    NotFinite {
        /// The step.
        step: u64,
        /// The setting to change, with its value.
        setting: String,
        /// Where it stands in the recipe.
        line: usize,
        /// The recipe.
        recipe: String,
        /// What is left of the run.
        kept: String,
    },
}

impl From<CheckpointError> for TrainError {
    fn from(error: CheckpointError) -> Self {
        TrainError::Run(error.into())
    }
}

impl From<FileError> for TrainError {
    fn from(error: FileError) -> Self {
        TrainError::Run(error.into())
    }
}

impl Session {
    /// Starts a run in a folder that holds none yet. The last batch is drawn, with problems of full size,
    /// so that those that do not fit the model show before the folder is made.
    pub fn create(dir: &Path, recipe: &Recipe) -> Result<Session, TrainError> {
        let wrong = |source| TrainError::Recipe { place: "the recipe".to_owned(), source };
        let mut trainer = Trainer::new(recipe).map_err(wrong)?;
        trainer.start().map_err(wrong)?;
        trainer.source().batch(recipe.training.steps.saturating_sub(1))?;
        let tests = tests(recipe)?;
        let folder = RunFolder::create(dir)?;
        let vocabulary = trainer.source().vocabulary().to_string();
        write_text(&folder.vocabulary(), &format!("{vocabulary}\n"))?;
        write_text(&folder.recipe(), &trainer.recipe().to_toml())?;
        let metrics = Metrics::create(&folder, &VALUES, &TIMINGS)?;
        let (progress, clock) = (Progress::default(), Clock::new(0.0));
        let mut session = Session { folder, trainer, metrics, tests, progress, clock };
        if recipe.start.is_some() {
            // Whatever becomes of the weights, the run has them.
            session.save()?;
        }
        Ok(session)
    }

    /// Goes on with the run in a folder, from its newest checkpoint that is whole. Also returns what was
    /// wrong with those that are not.
    pub fn resume(dir: &Path) -> Result<(Session, Vec<CheckpointError>), TrainError> {
        let folder = RunFolder::open(dir)?;
        let path = folder.recipe();
        let place = format!("'{}'", path.display());
        let text = fs::read_to_string(&path).map_err(|source| FileError {
            action: "read",
            path,
            source,
        })?;
        let wrong = |source| TrainError::Recipe { place: place.clone(), source };
        let recipe = Recipe::parse(&text).map_err(wrong)?;
        let mut trainer = Trainer::new(&recipe).map_err(wrong)?;
        let tests = tests(&recipe)?;
        let Some(newest) = folder.newest_checkpoint()? else {
            trainer.start().map_err(wrong)?;
            let metrics = Metrics::create(&folder, &VALUES, &TIMINGS)?;
            let (progress, clock) = (Progress::default(), Clock::new(0.0));
            return Ok((Session { folder, trainer, metrics, tests, progress, clock }, Vec::new()));
        };
        let Newest { step, mut checkpoint, damaged } = newest;
        let layout = trainer.network().layout().clone();
        let kept = checkpoint.take_layout("", &layout)?;
        if trainer.average.is_some() {
            trainer.average = Some(kept);
            trainer.params = checkpoint.take_layout("raw.", &layout)?;
        } else {
            trainer.params = kept;
        }
        trainer.optimizer.mean = checkpoint.take_layout("optimizer.mean.", &layout)?;
        trainer.optimizer.square = checkpoint.take_layout("optimizer.square.", &layout)?;
        trainer.optimizer.steps = step;
        let note = checkpoint.note(PROGRESS)?;
        let progress = Progress::from_note(note)
            .ok_or_else(|| checkpoint.mismatch(format!("'{note}' is no progress of a run")))?;
        let measured = step - u64::from(progress.is_test_due(step, &recipe));
        let metrics = Metrics::resume(&folder, &VALUES, &TIMINGS, measured)?;
        let clock = Clock::new(last_timing(dir).map_or(0.0, |(_, seconds)| seconds));
        Ok((Session { folder, trainer, metrics, tests, progress, clock }, damaged))
    }

    /// The model in training.
    pub fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    /// Steps that have been made.
    pub fn step(&self) -> u64 {
        self.trainer.optimizer.steps
    }

    /// The share of problems right in the last test, and in the best.
    pub fn accuracy(&self) -> (f64, Option<f64>) {
        (self.progress.last, self.progress.best)
    }

    /// Whether there is nothing left to do: all steps are made, or the last test was passed without a
    /// fault and the recipe ends there.
    fn is_done(&self) -> bool {
        let Recipe { training, evaluation, .. } = self.trainer.recipe();
        let tested = self.step() > 0 && self.step().is_multiple_of(evaluation.every);
        let perfect = tested && self.progress.last == 1.0;
        let is_over = self.step() >= training.steps || (training.stop_when_perfect && perfect);
        is_over && !self.is_test_due()
    }

    fn is_test_due(&self) -> bool {
        self.progress.is_test_due(self.step(), self.trainer.recipe())
    }

    /// Seconds of training, with what came before an interruption.
    pub fn seconds(&self) -> f64 {
        self.clock.seconds()
    }

    /// Trains to the end, or until `stop` is set. In any case the last state is on disk then. What
    /// happens goes to `watch`, and how far a test is to `testing`.
    pub fn run(
        &mut self,
        stop: &AtomicBool,
        mut watch: impl FnMut(&Session, Event<'_>),
        testing: impl Fn(eval::Progress) + Sync,
    ) -> Result<Ending, TrainError> {
        let checkpoint_every = self.trainer.recipe().training.checkpoint_every;
        // Whoever goes on with one that is done wants to know how it ended.
        if self.is_done() && !self.test(stop, &mut watch, &testing)? {
            return Ok(Ending::Interrupted);
        }
        while !self.is_done() {
            if stop.load(Ordering::Relaxed) {
                self.save()?;
                return Ok(Ending::Interrupted);
            }
            // A run that was stopped during a test goes on with it.
            if !self.is_test_due() {
                let made = self.trainer.step()?;
                if !made.score.loss.is_finite() || !made.norm.is_finite() {
                    return Err(self.not_finite());
                }
                self.progress.recent += made.score;
                self.clock.count(&made);
                watch(self, Event::Step(&made));
            }
            let step = self.step();
            let is_test_due = self.is_test_due();
            if is_test_due && !self.test(stop, &mut watch, &testing)? {
                self.save()?;
                return Ok(Ending::Interrupted);
            }
            if step.is_multiple_of(ROW_EVERY) || is_test_due {
                self.write_row(step)?;
            }
            if self.is_done() || step.is_multiple_of(checkpoint_every) {
                self.save()?;
            }
        }
        Ok(if self.progress.last == 1.0 { Ending::Perfect } else { Ending::Finished })
    }

    /// Tests the model as it is, and keeps it if none was better. Returns whether it did, or was stopped.
    fn test(
        &mut self,
        stop: &AtomicBool,
        watch: &mut impl FnMut(&Session, Event<'_>),
        testing: &(impl Fn(eval::Progress) + Sync),
    ) -> Result<bool, TrainError> {
        let model = self.trainer.model();
        let paradigm = self.trainer.recipe().data.paradigm;
        let mut results = Vec::with_capacity(self.tests.len());
        for (problem, test) in &self.tests {
            watch(self, Event::Testing);
            let evaluation = evaluate(&model, test, paradigm, 0, |progress| {
                testing(progress);
                until(stop)
            });
            match evaluation {
                Err(EvalError::Stopped) => return Ok(false),
                evaluation => results.push((*problem, evaluation?)),
            }
        }
        let sum = |count: fn(&Evaluation) -> usize| -> usize {
            results.iter().map(|(_, result)| count(result)).sum()
        };
        let share = sum(|result| result.right_problems) as f64
            / sum(|result| result.problems).max(1) as f64;
        self.progress.last = share;
        if self.progress.best.is_none_or(|best| share >= best) {
            self.progress.best = Some(share);
            self.folder.save_best(&model.snapshot())?;
        }
        watch(self, Event::Result(share, &results));
        Ok(true)
    }

    fn write_row(&mut self, step: u64) -> Result<(), TrainError> {
        let Score { loss, supervised, sequences, right_sequences, .. } = self.progress.recent;
        let share = |part: f64, of: usize| part / of.max(1) as f64;
        let factor = self.trainer.recipe().training.factor(step - 1);
        let values = [
            share(loss, supervised),
            share(right_sequences as f64, sequences),
            factor,
            self.progress.last,
        ];
        let timings = self.clock.row();
        self.metrics.append(step, &values, &timings)?;
        self.progress.recent = Score::default();
        Ok(())
    }

    /// Writes a checkpoint of the state as it is.
    fn save(&mut self) -> Result<(), TrainError> {
        self.metrics.sync()?;
        let trainer = &self.trainer;
        let layout = trainer.network().layout();
        let mut snapshot = Snapshot::default();
        snapshot.note(RECIPE, trainer.recipe().to_toml());
        snapshot.note(VOCABULARY, trainer.source().vocabulary().to_string());
        snapshot.note(PROGRESS, self.progress.to_note());
        snapshot.add_layout("", layout, trainer.best_params());
        if trainer.average.is_some() {
            snapshot.add_layout("raw.", layout, &trainer.params);
        }
        snapshot.add_layout("optimizer.mean.", layout, &trainer.optimizer.mean);
        snapshot.add_layout("optimizer.square.", layout, &trainer.optimizer.square);
        self.folder.save_checkpoint(self.step(), &snapshot)?;
        Ok(())
    }

    /// The error where the loss is not finite, which keeps the newest checkpoint as it is.
    fn not_finite(&self) -> TrainError {
        let text = self.trainer.recipe().to_toml();
        let lines = text.lines().enumerate().skip_while(|(_, line)| *line != "[optimizer]");
        let mut rates = lines.filter(|(_, line)| line.starts_with("rate = "));
        let (line, setting) = rates.next().unwrap_or((0, "rate"));
        let kept = match self.folder.checkpoint_steps().ok().and_then(|steps| steps.last().copied())
        {
            Some(step) => {
                format!("the last good checkpoint is '{}'", self.folder.checkpoint(step).display())
            }
            None => "there was no checkpoint yet".to_owned(),
        };
        TrainError::NotFinite {
            step: self.step() + 1,
            setting: format!("'{setting}'"),
            line: line + 1,
            recipe: self.folder.recipe().display().to_string(),
            kept,
        }
    }

    /// Writes the report of a run that has ended.
    pub fn write_report(&self, text: &str) -> Result<(), TrainError> {
        Ok(write_text(&self.folder.report(), text)?)
    }

    /// The folder of the run.
    pub fn dir(&self) -> &Path {
        self.folder.dir()
    }
}

fn write_text(path: &Path, text: &str) -> Result<(), FileError> {
    write_atomically(path, |writer| writer.write_all(text.as_bytes()))
}

/// The problems that a run is tested with.
fn tests(recipe: &Recipe) -> Result<Vec<(ProblemSize, TestSet)>, TrainError> {
    let draw = |(problem, _): (ProblemSize, usize)| {
        let ProblemSize { problem: kind, size } = problem;
        let sampling = recipe.data.sampling;
        let questions = Questions { problem: kind, size, sampling, seed: VALIDATION_SEED };
        let mut count = recipe.evaluation.problems as usize;
        if recipe.evaluation.contexts > 0 {
            count = count.min((recipe.evaluation.contexts / questions.mean_contexts()?).max(1));
        }
        Ok((problem, TestSet::draw(&questions, count, DEFAULT_MEMORY_LIMIT, || ())?))
    };
    recipe.data.kinds().into_iter().map(draw).collect()
}

const PROGRESS: &str = "progress";

impl Progress {
    /// Whether the model is to be tested after a step before anything else is done: where a row ends, nothing is
    /// left of what was seen since the last one.
    fn is_test_due(&self, step: u64, recipe: &Recipe) -> bool {
        let Recipe { training, evaluation, .. } = recipe;
        let is_tested = step.is_multiple_of(evaluation.every) || step == training.steps;
        is_tested && self.recent.sequences > 0
    }

    /// As text, exact to the bit.
    fn to_note(&self) -> String {
        let Score { loss, supervised, right, sequences, right_sequences } = self.recent;
        let best = self.best.map_or("none".to_owned(), |best| best.to_bits().to_string());
        let (loss, last) = (loss.to_bits(), self.last.to_bits());
        format!("{loss} {supervised} {right} {sequences} {right_sequences} {last} {best}")
    }

    /// From text, if it is of [`Progress::to_note`].
    fn from_note(text: &str) -> Option<Progress> {
        let words: Vec<&str> = text.split(' ').collect();
        let [loss, supervised, right, sequences, right_sequences, last, best] = words[..] else {
            return None;
        };
        let number = |word: &str| word.parse::<u64>().ok();
        let count = |word: &str| word.parse::<usize>().ok();
        let recent = Score {
            loss: f64::from_bits(number(loss)?),
            supervised: count(supervised)?,
            right: count(right)?,
            sequences: count(sequences)?,
            right_sequences: count(right_sequences)?,
        };
        let best = match best {
            "none" => None,
            best => Some(f64::from_bits(number(best)?)),
        };
        Some(Progress { recent, last: f64::from_bits(number(last)?), best })
    }
}

impl Clock {
    fn new(before: f64) -> Clock {
        let start = Instant::now();
        Clock { before, start, row: start, tokens: 0, flops: 0 }
    }

    fn seconds(&self) -> f64 {
        self.before + self.start.elapsed().as_secs_f64()
    }

    fn count(&mut self, step: &Step) {
        self.tokens += step.tokens;
        self.flops += step.flops;
    }

    fn row(&mut self) -> [f64; 3] {
        let since = self.row.elapsed().as_secs_f64();
        let row = [self.seconds(), self.tokens as f64 / since, self.flops as f64 / since * 1e-9];
        (self.row, self.tokens, self.flops) = (Instant::now(), 0, 0);
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_survives_as_text_and_nothing_else_is_progress() {
        let recent = Score { loss: 0.1, supervised: 5, right: 4, sequences: 3, right_sequences: 2 };
        for best in [None, Some(0.3)] {
            let progress = Progress { recent, last: 0.25, best };
            assert_eq!(Progress::from_note(&progress.to_note()), Some(progress));
        }
        for wrong in ["", "1 2 3", "1 2 3 4 5 6 some", "x 2 3 4 5 6 none", "1 2 3 4 5 6 none 8"] {
            assert_eq!(Progress::from_note(wrong), None, "{wrong}");
        }
    }
}
