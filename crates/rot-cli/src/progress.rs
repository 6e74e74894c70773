//! How far work is, on standard error.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::output::{grouped, note};

/// A bar with the rate and the time left.
pub(crate) fn bar(total: u64, unit: &str) -> ProgressBar {
    let template = format!("{{msg:12}} {{wide_bar}} {{percent}}%, {{rate}} {unit}/s, {{eta}} left");
    let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = out.write_str(&rate_text(state.per_sec()));
    };
    let bar = ProgressBar::new(total);
    match ProgressStyle::with_template(&template) {
        Ok(style) => bar.with_style(style.with_key("rate", rate)),
        Err(_) => bar,
    }
}

/// A bar on a terminal and lines elsewhere, for work that takes more than two seconds.
pub(crate) struct Meter {
    doing: &'static str,
    unit: &'static str,
    bar: ProgressBar,
    start: Instant,
    /// When to show something next, in milliseconds after the start.
    due: AtomicU64,
}

impl Meter {
    pub(crate) fn new(doing: &'static str, unit: &'static str) -> Meter {
        let bar = bar(0, unit).with_message(doing);
        bar.set_draw_target(ProgressDrawTarget::hidden());
        Meter { doing, unit, bar, start: Instant::now(), due: AtomicU64::new(2000) }
    }

    /// Counts work that has been done, out of all there is.
    pub(crate) fn add(&self, done: u64, of: u64) {
        self.bar.set_length(of);
        self.bar.inc(done);
        let (now, due) = (self.start.elapsed(), self.due.load(Ordering::Relaxed));
        let terminal = std::io::stderr().is_terminal();
        let now_ms = now.as_millis() as u64;
        let next = if terminal { u64::MAX } else { now_ms + 10_000 };
        let swap = || self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed);
        if now_ms < due || swap().is_err() {
            return;
        }
        if terminal {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.bar.enable_steady_tick(Duration::from_millis(200));
        } else {
            note(self.line(self.bar.position(), of, now.as_secs_f64()));
        }
    }

    fn line(&self, position: u64, of: u64, seconds: f64) -> String {
        let rate = position as f64 / seconds;
        let (doing, unit, share) = (self.doing, self.unit, 100.0 * position as f64 / of as f64);
        let left = of.saturating_sub(position) as f64 / rate;
        format!("{doing}: {share:.0}%, {} {unit}/s, {left:.0} s left", rate_text(rate))
    }
}

/// A rate, with a decimal where that is not nothing.
fn rate_text(rate: f64) -> String {
    if rate < 10.0 { format!("{rate:.1}") } else { grouped(rate as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_rate_and_the_time_left() {
        let meter = Meter::new("reading", "tokens");
        assert_eq!(meter.line(25_000, 100_000, 10.0), "reading: 25%, 2,500 tokens/s, 30 s left");
        assert_eq!(meter.line(1, 3, 4.0), "reading: 33%, 0.2 tokens/s, 8 s left");
    }
}
