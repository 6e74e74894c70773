//! How a run looks while it goes on: a line that changes on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use rot_nn::Score;
use rot_nn::speed::step_product_flops;
use rot_train::{BatchSize, Event, Session, Step};

use crate::output::{grouped, note};

/// How often a line is shown where it cannot change.
const LINES: Duration = Duration::from_secs(10);
/// How often it changes on a terminal.
const CHANGES: Duration = Duration::from_millis(500);
/// For how long the rate of matrix products is measured.
const PEAK: Duration = Duration::from_millis(240);

pub(crate) struct View {
    bar: Option<ProgressBar>,
    /// Floating-point operations a second of matrix products alone.
    peak: f64,
    shown: Instant,
    recent: Recent,
    /// Seconds of training steps in this process, without tests.
    training: f64,
    /// The step it began with.
    first: u64,
    since: Instant,
}

/// Since the last line.
#[derive(Default)]
struct Recent {
    score: Score,
    tokens: usize,
    flops: u64,
    seconds: f64,
}

impl View {
    pub(crate) fn new(session: &Session) -> View {
        let recipe = session.trainer().recipe();
        let parameters = grouped(session.trainer().network().layout().len());
        let threads = rayon::current_num_threads();
        let (paradigm, seed) = (recipe.data.paradigm.name(), recipe.seed);
        let BatchSize { drawn, learnt } = session.trainer().source().size();
        let contexts = match learnt == drawn {
            true => format!("{drawn} contexts a step"),
            false => format!("the hardest {learnt} of {drawn} contexts a step"),
        };
        note(format_args!(
            "{} {paradigm}, {parameters} parameters, seed {seed}, {contexts}, {threads} threads, in {}",
            recipe.data.names().join(" "),
            session.dir().display()
        ));
        let steps = recipe.training.steps;
        let style = ProgressStyle::with_template("{wide_bar} {msg}");
        let bar = std::io::stderr().is_terminal().then(|| ProgressBar::new(steps));
        let bar = bar.map(|bar| style.map_or(bar.clone(), |style| bar.with_style(style)));
        let peak = step_product_flops(PEAK);
        let now = Instant::now();
        View {
            bar,
            peak,
            shown: now,
            recent: Recent::default(),
            training: 0.0,
            first: session.step(),
            since: now,
        }
    }

    pub(crate) fn show(&mut self, session: &Session, event: &Event<'_>) {
        match event {
            Event::Step(step) => self.step(session, step),
            Event::Testing => self.count_time(),
            Event::Result(share, results) => {
                let problems: usize = results.iter().map(|(_, result)| result.problems).sum();
                let contexts: usize = results.iter().map(|(_, result)| result.contexts).sum();
                let right: usize = results.iter().map(|(_, result)| result.right_contexts).sum();
                self.line(format!(
                    "step {}: {:.2}% of {} test problems right, {:.3}% of their contexts",
                    grouped(session.step()),
                    100.0 * share,
                    grouped(problems),
                    100.0 * right as f64 / contexts.max(1) as f64
                ));
                self.since = Instant::now();
            }
        }
    }

    /// Counts the time since the last event as training.
    fn count_time(&mut self) {
        let seconds = self.since.elapsed().as_secs_f64();
        self.recent.seconds += seconds;
        self.training += seconds;
        self.since = Instant::now();
    }

    fn step(&mut self, session: &Session, step: &Step) {
        self.count_time();
        self.recent.score += step.score;
        self.recent.tokens += step.tokens;
        self.recent.flops += step.flops;
        let due = if self.bar.is_some() { CHANGES } else { LINES };
        if self.shown.elapsed() < due {
            return;
        }
        self.shown = Instant::now();
        // Where a step is faster than the products, these were measured while the machine had other work.
        let rate = self.recent.flops as f64 / self.recent.seconds;
        if rate > self.peak {
            self.peak = step_product_flops(PEAK).max(rate);
            self.since = Instant::now();
        }
        let line = self.status(session);
        self.recent = Recent::default();
        match &self.bar {
            Some(bar) => {
                bar.set_position(session.step());
                bar.set_message(line);
            }
            None => note(line),
        }
    }

    fn status(&self, session: &Session) -> String {
        let Recent { score, tokens, flops, seconds } = &self.recent;
        let recipe = session.trainer().recipe();
        let steps = recipe.training.steps;
        let work = |from: u64, to: u64| recipe.work(to) - recipe.work(from);
        let left = self.training * work(session.step(), steps) / work(self.first, session.step());
        let tested = match session.accuracy() {
            (_, None) => String::new(),
            (last, Some(_)) => format!(", problems {:.2}%", 100.0 * last),
        };
        format!(
            "step {}/{}, loss {:.4}, contexts {:.2}%{tested}, {} tokens/s, {:.0}% of GEMM peak, {} left",
            grouped(session.step()),
            grouped(steps),
            score.loss / score.supervised.max(1) as f64,
            100.0 * score.right_sequences as f64 / score.sequences.max(1) as f64,
            grouped((*tokens as f64 / seconds) as u64),
            100.0 * *flops as f64 / seconds / self.peak,
            duration(left)
        )
    }

    fn line(&self, text: String) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => note(text),
        }
    }

    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Seconds as people say them: `42 s`, `3 min 5 s`, `2 h 10 min`.
pub(crate) fn duration(seconds: f64) -> String {
    let seconds = seconds.clamp(0.0, 1e9) as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_said_as_people_do() {
        assert_eq!(duration(42.9), "42 s");
        assert_eq!(duration(185.0), "3 min 5 s");
        assert_eq!(duration(7800.0), "2 h 10 min");
        assert_eq!(duration(f64::NAN), "0 s");
    }
}
