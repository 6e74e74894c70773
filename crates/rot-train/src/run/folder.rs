//! The folder of a run: where its files are, and that one process at a time writes them.
//!
//! ```text
//! recipe.toml            how the model is trained; once it is there, the folder holds a run
//! vocabulary.txt         the tokens it knows
//! metrics.csv            values that only the recipe decides
//! timing.csv             values that the machine decides
//! events.out.tfevents.*  both, for TensorBoard
//! report.md              what came out
//! best.safetensors       the best parameters so far
//! checkpoints/           the newest states of training
//! ```

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use super::atomic::remove_temporaries;
use super::{Checkpoint, CheckpointError, FileError, RunError, Snapshot};

/// How many checkpoints are kept.
pub const KEPT_CHECKPOINTS: usize = 3;

pub(super) const RECIPE: &str = "recipe.toml";
const VOCABULARY: &str = "vocabulary.txt";
const METRICS: &str = "metrics.csv";
const TIMING: &str = "timing.csv";
const REPORT: &str = "report.md";
const BEST: &str = "best.safetensors";
const CHECKPOINTS: &str = "checkpoints";
const LOCK: &str = ".lock";

/// What a new run must not overwrite.
const OCCUPANTS: [&str; 4] = [RECIPE, METRICS, BEST, CHECKPOINTS];

/// A run's folder, which no other process writes into as long as this value lives.
#[derive(Debug)]
pub struct RunFolder {
    dir: PathBuf,
    /// The system gives the lock back when the file is closed, however the process ends.
    _lock: File,
}

/// The newest checkpoint that is whole.
#[derive(Debug)]
pub struct Newest {
    /// The step that it was made after.
    pub step: u64,
    /// What it holds.
    pub checkpoint: Checkpoint,
    /// What is wrong with the newer ones.
    pub damaged: Vec<CheckpointError>,
}

/// Where the best parameters of a run lie.
pub fn best_weights(dir: &Path) -> PathBuf {
    dir.join(BEST)
}

/// The step of the last row in a run's timings, and the seconds of training until then.
pub fn last_timing(dir: &Path) -> Option<(u64, f64)> {
    let text = fs::read_to_string(dir.join(TIMING)).ok()?;
    let mut columns = text.lines().next_back()?.split(',');
    Some((columns.next()?.parse().ok()?, columns.next()?.parse().ok()?))
}

/// Whether a folder holds a run.
pub fn holds_run(dir: &Path) -> bool {
    dir.join(RECIPE).is_file()
}

impl RunFolder {
    /// Makes a folder for a new run, or takes one that holds none.
    ///
    /// From when [`RunFolder::recipe`] is written, the folder holds a run. Before it goes what a
    /// resumed run cannot do without, such as the vocabulary; after it metrics and checkpoints. A run
    /// that was killed before its recipe was written can be created again.
    pub fn create(dir: &Path) -> Result<RunFolder, RunError> {
        fs::create_dir_all(dir).map_err(FileError::at("create", dir))?;
        let folder = RunFolder::lock(dir)?;
        if let Some(found) = OCCUPANTS.into_iter().find(|name| dir.join(name).exists()) {
            return Err(RunError::Occupied { dir: dir.to_path_buf(), found });
        }
        folder.clean()?;
        Ok(folder)
    }

    /// Opens the folder of a run to go on with it.
    pub fn open(dir: &Path) -> Result<RunFolder, RunError> {
        // Before the lock, so that a mistyped path does not get one.
        if !holds_run(dir) {
            return Err(RunError::NoRun { dir: dir.to_path_buf() });
        }
        let folder = RunFolder::lock(dir)?;
        folder.clean()?;
        Ok(folder)
    }

    fn lock(dir: &Path) -> Result<RunFolder, RunError> {
        let path = dir.join(LOCK);
        let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let lock = opened.map_err(FileError::at("open", &path))?;
        match lock.try_lock() {
            Ok(()) => Ok(RunFolder { dir: dir.to_path_buf(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(RunError::Locked { dir: dir.to_path_buf() }),
            Err(TryLockError::Error(error)) => Err(FileError::at("lock", &path)(error).into()),
        }
    }

    /// Removes what killed processes left half written. Only under the lock is all of it theirs.
    fn clean(&self) -> Result<(), RunError> {
        remove_temporaries(&self.dir)?;
        if self.checkpoints().is_dir() {
            remove_temporaries(&self.checkpoints())?;
        }
        Ok(())
    }

    /// The folder itself.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The path of the recipe.
    pub fn recipe(&self) -> PathBuf {
        self.dir.join(RECIPE)
    }

    /// The path of the vocabulary.
    pub fn vocabulary(&self) -> PathBuf {
        self.dir.join(VOCABULARY)
    }

    /// The path of the table of values that only the recipe decides.
    pub fn metrics(&self) -> PathBuf {
        self.dir.join(METRICS)
    }

    /// The path of the table of values that the machine decides.
    pub fn timing(&self) -> PathBuf {
        self.dir.join(TIMING)
    }

    /// The path of the report.
    pub fn report(&self) -> PathBuf {
        self.dir.join(REPORT)
    }

    /// The path of the best parameters so far.
    pub fn best(&self) -> PathBuf {
        best_weights(&self.dir)
    }

    /// The folder of the checkpoints.
    pub fn checkpoints(&self) -> PathBuf {
        self.dir.join(CHECKPOINTS)
    }

    /// The path of the checkpoint after a step.
    pub fn checkpoint(&self, step: u64) -> PathBuf {
        self.checkpoints().join(checkpoint_name(step))
    }

    /// The steps that there are checkpoints of, whole or not, in ascending order.
    pub fn checkpoint_steps(&self) -> Result<Vec<u64>, RunError> {
        let dir = self.checkpoints();
        if !dir.exists() {
            return Ok(Vec::new());
        }
        let mut steps = Vec::new();
        for entry in fs::read_dir(&dir).map_err(FileError::at("list", &dir))? {
            let entry = entry.map_err(FileError::at("list", &dir))?;
            steps.extend(entry.file_name().to_str().and_then(checkpoint_step));
        }
        steps.sort_unstable();
        Ok(steps)
    }

    /// Saves the state after a step, and only then removes older ones until
    /// [`KEPT_CHECKPOINTS`] are left.
    ///
    /// Later ones are removed too: they are of a line of training that was given up, by going back
    /// behind damaged checkpoints or by hand. For the same reason metrics of a step belong on disk
    /// before its checkpoint: they are not made again after it.
    pub fn save_checkpoint(&self, step: u64, snapshot: &Snapshot<'_>) -> Result<(), RunError> {
        let dir = self.checkpoints();
        fs::create_dir_all(&dir).map_err(FileError::at("create", &dir))?;
        snapshot.save(&self.checkpoint(step))?;
        let (until, after): (Vec<u64>, Vec<u64>) =
            self.checkpoint_steps()?.into_iter().partition(|&other| other <= step);
        let older = &until[..until.len().saturating_sub(KEPT_CHECKPOINTS)];
        for &step in older.iter().chain(&after) {
            let path = self.checkpoint(step);
            fs::remove_file(&path).map_err(FileError::at("remove", &path))?;
        }
        Ok(())
    }

    /// The newest checkpoint that is whole; none if there is no checkpoint at all.
    pub fn newest_checkpoint(&self) -> Result<Option<Newest>, RunError> {
        let steps = self.checkpoint_steps()?;
        let mut damaged = Vec::new();
        for &step in steps.iter().rev() {
            match Checkpoint::load(&self.checkpoint(step)) {
                Ok(checkpoint) => return Ok(Some(Newest { step, checkpoint, damaged })),
                Err(error) => damaged.push(error),
            }
        }
        match damaged.into_iter().next() {
            Some(newest) => {
                Err(RunError::NoneWhole { dir: self.checkpoints(), count: steps.len(), newest })
            }
            None => Ok(None),
        }
    }

    /// Saves the best parameters so far in place of those before.
    pub fn save_best(&self, snapshot: &Snapshot<'_>) -> Result<(), RunError> {
        Ok(snapshot.save(&self.best())?)
    }
}

/// Padded with zeros, so that names sort as steps do.
fn checkpoint_name(step: u64) -> String {
    format!("step-{step:08}.safetensors")
}

/// The step of a checkpoint by its name; none for other files.
fn checkpoint_step(name: &str) -> Option<u64> {
    let step = name.strip_prefix("step-")?.strip_suffix(".safetensors")?.parse().ok()?;
    (name == checkpoint_name(step)).then_some(step)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// A folder that holds a run.
    fn run() -> (TempDir, RunFolder) {
        let dir = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(dir.path()).unwrap();
        fs::write(folder.recipe(), "").unwrap();
        (dir, folder)
    }

    fn save(folder: &RunFolder, step: u64) {
        let mut snapshot = Snapshot::default();
        let values = [step as f32];
        snapshot.add("step", &[1], &values);
        folder.save_checkpoint(step, &snapshot).unwrap();
    }

    fn cut(path: &Path) {
        let content = fs::read(path).unwrap();
        fs::write(path, &content[..content.len() - 1]).unwrap();
    }

    #[test]
    fn files_have_their_names() {
        let (dir, folder) = run();
        let path = |name: &str| dir.path().join(name);
        assert_eq!(folder.recipe(), path("recipe.toml"));
        assert_eq!(folder.vocabulary(), path("vocabulary.txt"));
        assert_eq!(folder.metrics(), path("metrics.csv"));
        assert_eq!(folder.timing(), path("timing.csv"));
        assert_eq!(folder.report(), path("report.md"));
        assert_eq!(folder.best(), path("best.safetensors"));
        assert_eq!(folder.checkpoint(1000), path("checkpoints/step-00001000.safetensors"));
        let long = path("checkpoints/step-12345678901.safetensors");
        assert_eq!(folder.checkpoint(12_345_678_901), long);
    }

    #[test]
    fn a_run_is_not_overwritten() {
        for occupant in OCCUPANTS {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join(occupant), "kept").unwrap();
            let error = RunFolder::create(dir.path()).unwrap_err();
            let RunError::Occupied { found, .. } = error else { panic!("{error}") };
            assert_eq!(found, occupant);
            let text = error.to_string();
            assert!(text.contains("--resume") && text.contains("another folder"), "{text}");
            assert_eq!(fs::read(dir.path().join(occupant)).unwrap(), b"kept");
        }
    }

    #[test]
    fn a_run_killed_before_its_recipe_was_written_is_created_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("some/where");
        let folder = RunFolder::create(&path).unwrap();
        fs::write(folder.vocabulary(), "").unwrap();
        drop(folder);
        RunFolder::create(&path).unwrap();
    }

    #[test]
    fn only_a_run_can_be_resumed() {
        let dir = tempfile::tempdir().unwrap();
        for path in [dir.path().to_path_buf(), dir.path().join("missing")] {
            let error = RunFolder::open(&path).unwrap_err();
            assert!(matches!(error, RunError::NoRun { .. }), "{error}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left there");
    }

    #[test]
    fn two_never_train_into_the_same_folder() {
        let (dir, folder) = run();
        for taken in [RunFolder::open(dir.path()), RunFolder::create(dir.path())] {
            let error = taken.unwrap_err();
            assert!(matches!(error, RunError::Locked { .. }), "{error}");
        }
        drop(folder);
        RunFolder::open(dir.path()).unwrap();
    }

    #[test]
    fn the_newest_checkpoints_are_kept() {
        let (_dir, folder) = run();
        assert!(folder.checkpoint_steps().unwrap().is_empty());
        for step in [0, 5, 99_999_999, 100_000_000, 100_000_001] {
            save(&folder, step);
        }
        let kept = [99_999_999, 100_000_000, 100_000_001];
        assert_eq!(folder.checkpoint_steps().unwrap(), kept);
        save(&folder, 100_000_001);
        assert_eq!(folder.checkpoint_steps().unwrap(), kept);
    }

    #[test]
    fn nothing_is_removed_before_the_new_one_is_there() {
        let (_dir, folder) = run();
        for step in [1, 2, 3] {
            save(&folder, step);
        }
        let mut unfit = Snapshot::default();
        unfit.add("x", &[2], &[0.0]);
        assert!(folder.save_checkpoint(4, &unfit).is_err());
        assert_eq!(folder.checkpoint_steps().unwrap(), [1, 2, 3]);
    }

    #[test]
    fn files_of_others_stay() {
        let (_dir, folder) = run();
        save(&folder, 1);
        for name in ["step-2.safetensors", "step-+0000003.safetensors", "mine.safetensors"] {
            fs::write(folder.checkpoints().join(name), "").unwrap();
        }
        for step in 4..9 {
            save(&folder, step);
        }
        assert_eq!(folder.checkpoint_steps().unwrap(), [6, 7, 8]);
        assert_eq!(fs::read_dir(folder.checkpoints()).unwrap().count(), 6);
    }

    #[test]
    fn a_damaged_checkpoint_is_passed_over_with_a_note() {
        let (_dir, folder) = run();
        assert!(folder.newest_checkpoint().unwrap().is_none());
        for step in [1, 2, 3] {
            save(&folder, step);
        }
        assert_eq!(folder.newest_checkpoint().unwrap().unwrap().step, 3);
        cut(&folder.checkpoint(3));
        let mut newest = folder.newest_checkpoint().unwrap().unwrap();
        assert_eq!(newest.step, 2);
        assert_eq!(newest.checkpoint.take("step", &[1]).unwrap(), [2.0]);
        assert_eq!(newest.damaged.len(), 1);
        let note = newest.damaged[0].to_string();
        assert!(note.contains(&folder.checkpoint(3).display().to_string()), "{note}");
    }

    #[test]
    fn a_run_does_not_begin_again_by_itself() {
        let (_dir, folder) = run();
        for step in [1, 2] {
            save(&folder, step);
            cut(&folder.checkpoint(step));
        }
        let error = folder.newest_checkpoint().unwrap_err();
        assert!(matches!(error, RunError::NoneWhole { count: 2, .. }), "{error}");
    }

    #[test]
    fn damaged_later_checkpoints_do_not_push_out_new_ones() {
        let (_dir, folder) = run();
        for step in [10, 20, 30] {
            save(&folder, step);
        }
        cut(&folder.checkpoint(20));
        cut(&folder.checkpoint(30));
        save(&folder, 15);
        assert_eq!(folder.checkpoint_steps().unwrap(), [10, 15]);
    }

    #[test]
    fn opening_removes_what_a_killed_process_left() {
        let (dir, folder) = run();
        save(&folder, 1);
        drop(folder);
        let left = [".best.safetensors.7.rot-partial", "checkpoints/.step-2.7.rot-partial"];
        for name in left {
            fs::write(dir.path().join(name), "half").unwrap();
        }
        let folder = RunFolder::open(dir.path()).unwrap();
        for name in left {
            assert!(!dir.path().join(name).exists(), "{name}");
        }
        assert_eq!(folder.newest_checkpoint().unwrap().unwrap().step, 1);
    }

    #[test]
    fn the_best_is_replaced() {
        let (_dir, folder) = run();
        for value in [1.0, 2.0] {
            let values = [value];
            let mut snapshot = Snapshot::default();
            snapshot.add("x", &[1], &values);
            folder.save_best(&snapshot).unwrap();
            let mut best = Checkpoint::load(&folder.best()).unwrap();
            assert_eq!(best.take("x", &[1]).unwrap(), values);
        }
    }
}
