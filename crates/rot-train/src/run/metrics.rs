//! What is measured during a run, a row at a time: `metrics.csv`, `timing.csv` and TensorBoard.
//!
//! `metrics.csv` has what the recipe alone decides, such as losses: however often a run was
//! interrupted, the file ends up the same to the byte. What differs from run to run, such as seconds
//! and tokens a second, goes to `timing.csv`. TensorBoard gets both.

use super::events::Events;
use super::table::Table;
use super::{RunError, RunFolder};

/// The tables and the event file of a run.
#[derive(Debug)]
pub struct Metrics {
    values: Table,
    timings: Table,
    events: Events,
    /// The names of the values, then of the timings.
    tags: Vec<String>,
}

impl Metrics {
    /// Starts the tables with those columns after the step, in place of any that are there.
    ///
    /// A run that was killed before its first checkpoint starts so again.
    pub fn create(
        folder: &RunFolder,
        values: &[&str],
        timings: &[&str],
    ) -> Result<Metrics, RunError> {
        Ok(Metrics {
            values: Table::create(&folder.metrics(), values)?,
            timings: Table::create(&folder.timing(), timings)?,
            events: Events::create(folder.dir(), 0)?,
            tags: tags(values, timings),
        })
    }

    /// Goes on after the checkpoint of a step: what was measured after it is dropped.
    pub fn resume(
        folder: &RunFolder,
        values: &[&str],
        timings: &[&str],
        step: u64,
    ) -> Result<Metrics, RunError> {
        Ok(Metrics {
            values: Table::resume(&folder.metrics(), values, step)?,
            timings: Table::resume(&folder.timing(), timings, step)?,
            events: Events::create(folder.dir(), step.saturating_add(1))?,
            tags: tags(values, timings),
        })
    }

    /// Adds what was measured after a step. A kill of the process cannot take it back.
    pub fn append(&mut self, step: u64, values: &[f64], timings: &[f64]) -> Result<(), RunError> {
        // Both before either is written: a row is in all files or in none.
        self.values.check(step, values)?;
        self.timings.check(step, timings)?;
        self.values.append(step, values)?;
        self.timings.append(step, timings)?;
        let numbers = values.iter().chain(timings).copied();
        self.events.append(step, self.tags.iter().map(String::as_str).zip(numbers))?;
        Ok(())
    }

    /// Makes all rows survive a power cut too. Call it before the checkpoint of a step is saved:
    /// a run that resumes there does not measure again what came before.
    pub fn sync(&self) -> Result<(), RunError> {
        self.values.sync()?;
        self.timings.sync()
    }
}

fn tags(values: &[&str], timings: &[&str]) -> Vec<String> {
    values.iter().chain(timings).map(|&tag| tag.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::super::events::tests::read;
    use super::*;

    const VALUES: [&str; 2] = ["loss", "right"];
    const TIMINGS: [&str; 1] = ["seconds"];

    fn event_files(folder: &RunFolder) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder.dir()).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> =
            entries.filter(|path| path.to_string_lossy().contains("tfevents")).collect();
        files.sort();
        files
    }

    fn train(metrics: &mut Metrics, steps: std::ops::RangeInclusive<u64>, speed: f64) {
        for step in steps {
            let values = [1.0 / step as f64, step as f64];
            metrics.append(step, &values, &[step as f64 / speed]).unwrap();
        }
        metrics.sync().unwrap();
    }

    #[test]
    fn an_interrupted_run_has_the_metrics_of_an_uninterrupted_one() {
        let whole = tempfile::tempdir().unwrap();
        let whole = RunFolder::create(whole.path()).unwrap();
        train(&mut Metrics::create(&whole, &VALUES, &TIMINGS).unwrap(), 1..=9, 3.0);

        let killed = tempfile::tempdir().unwrap();
        let killed = RunFolder::create(killed.path()).unwrap();
        train(&mut Metrics::create(&killed, &VALUES, &TIMINGS).unwrap(), 1..=3, 5.0);
        train(&mut Metrics::create(&killed, &VALUES, &TIMINGS).unwrap(), 1..=6, 6.0);
        let mut resumed = Metrics::resume(&killed, &VALUES, &TIMINGS, 4).unwrap();
        train(&mut resumed, 5..=9, 7.0);

        let [expected, metrics] = [&whole, &killed].map(|folder| fs::read(folder.metrics()));
        assert_eq!(metrics.unwrap(), expected.unwrap());
        let timing = fs::read_to_string(killed.timing()).unwrap();
        let steps: Vec<&str> = timing.lines().map(|line| line.split(',').next().unwrap()).collect();
        assert_eq!(steps, ["step", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);

        let events: Vec<_> = event_files(&killed).iter().map(|path| read(path)).collect();
        let starts: Vec<u64> = events.iter().map(|(start, _)| *start).collect();
        assert_eq!(starts, [0, 0, 5]);
        let counts: Vec<usize> = events.iter().map(|(_, scalars)| scalars.len()).collect();
        assert_eq!(counts, [9, 18, 15]);
        let first = [("loss", 0.2), ("right", 5.0), ("seconds", 5.0 / 7.0)];
        for ((step, tag, value), expected) in events[2].1.iter().zip(first) {
            assert_eq!((*step, tag.as_str(), *value), (5, expected.0, expected.1 as f32));
        }
    }

    #[test]
    fn a_row_that_does_not_fit_is_written_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(dir.path()).unwrap();
        let mut metrics = Metrics::create(&folder, &VALUES, &TIMINGS).unwrap();
        assert!(metrics.append(1, &[0.0], &[0.0]).is_err());
        assert!(metrics.append(1, &[0.0, 0.0], &[]).is_err());
        assert_eq!(fs::read_to_string(folder.metrics()).unwrap(), "step,loss,right\n");
        assert_eq!(fs::read_to_string(folder.timing()).unwrap(), "step,seconds\n");
        assert_eq!(read(&event_files(&folder)[0]).1, []);
    }
}
