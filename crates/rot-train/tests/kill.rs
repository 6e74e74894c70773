//! A process that trains is killed at any moment and resumed: the run ends as if nothing had been.

#![expect(clippy::unwrap_used, reason = "what fails must stop the test")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use rot_train::run::{Metrics, RunError, RunFolder, Snapshot, write_atomically};

/// Where the process to be killed trains; set for no other.
const FOLDER: &str = "ROT_TEST_KILL_FOLDER";
/// After so long something is wrong. It also ends a process whose killer is gone.
const PATIENCE: Duration = Duration::from_secs(120);
const VALUES: usize = 50_000;

/// Trains after a fashion: each state comes from the one before, so a wrong one stays wrong.
fn train(dir: &Path, last: u64) -> Result<(), RunError> {
    let started = Instant::now();
    let folder = match RunFolder::open(dir) {
        Err(RunError::NoRun { .. }) => {
            let folder = RunFolder::create(dir)?;
            write_atomically(&folder.recipe(), |writer| writer.write_all(b"of a test\n"))?;
            folder
        }
        opened => opened?,
    };
    let (mut step, mut state, mut metrics) = match folder.newest_checkpoint()? {
        None => (0, vec![0.0; VALUES], Metrics::create(&folder, &["sum"], &["seconds"])?),
        Some(mut newest) => {
            assert!(newest.damaged.is_empty(), "{:?}", newest.damaged);
            let state = newest.checkpoint.take("state", &[VALUES])?;
            assert_eq!(newest.checkpoint.note("step")?, newest.step.to_string());
            let metrics = Metrics::resume(&folder, &["sum"], &["seconds"], newest.step)?;
            (newest.step, state, metrics)
        }
    };
    while step < last && started.elapsed() < PATIENCE {
        step += 1;
        for (i, value) in state.iter_mut().enumerate() {
            *value = 0.5 * *value + ((i as u64 ^ step) % 17) as f32;
        }
        let sum = state.iter().copied().map(f64::from).sum();
        metrics.append(step, &[sum], &[started.elapsed().as_secs_f64()])?;
        if step % 3 == 0 {
            let mut snapshot = Snapshot::default();
            snapshot.add("state", &[VALUES], &state);
            snapshot.note("step", step.to_string());
            metrics.sync()?;
            folder.save_checkpoint(step, &snapshot)?;
            folder.save_best(&snapshot)?;
        }
    }
    Ok(())
}

/// Does nothing by itself; the test below runs it in a process of its own.
#[test]
fn trains_until_killed() {
    if let Some(dir) = env::var_os(FOLDER) {
        train(Path::new(&dir), u64::MAX).unwrap();
    }
}

/// A process that does not outlive the test.
struct Training(Child);

impl Training {
    fn start(dir: &Path) -> Training {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "trains_until_killed"]).env(FOLDER, dir);
        Training(command.stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Training {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// The last step in the metrics, whole or not.
fn last_step(dir: &Path) -> u64 {
    let metrics = fs::read_to_string(dir.join("metrics.csv")).unwrap_or_default();
    let last = metrics.lines().last().and_then(|line| line.split(',').next()?.parse().ok());
    last.unwrap_or(0)
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn a_killed_run_ends_as_an_uninterrupted_one() {
    let dir = tempfile::tempdir().unwrap();
    let killed = dir.path().join("killed");
    for round in 0..6 {
        let before = last_step(&killed);
        let training = Training::start(&killed);
        let started = Instant::now();
        while last_step(&killed) < before + 4 {
            assert!(started.elapsed() < PATIENCE, "the training does not get on");
            thread::sleep(Duration::from_millis(1));
        }
        let taken = RunFolder::open(&killed);
        assert!(matches!(taken, Err(RunError::Locked { .. })), "{taken:?}");
        thread::sleep(Duration::from_millis(round));
        drop(training);
    }

    let folder = RunFolder::open(&killed).unwrap();
    let newest = folder.newest_checkpoint().unwrap().unwrap();
    assert!(newest.damaged.is_empty(), "{:?}", newest.damaged);
    drop(folder);
    let last = newest.step + 10;
    train(&killed, last).unwrap();
    let whole = dir.path().join("whole");
    train(&whole, last).unwrap();

    for name in ["metrics.csv", "best.safetensors"] {
        assert_eq!(
            fs::read(killed.join(name)).unwrap(),
            fs::read(whole.join(name)).unwrap(),
            "{name}"
        );
    }
    let [killed, whole] = [killed, whole].map(|dir| files(&dir.join("checkpoints")));
    assert_eq!(whole.len(), 3);
    for (killed, whole) in killed.iter().zip(&whole) {
        assert_eq!(killed.file_name(), whole.file_name());
        assert_eq!(fs::read(killed).unwrap(), fs::read(whole).unwrap());
    }
    assert_eq!(killed.len(), whole.len(), "nothing half written is left");
}
