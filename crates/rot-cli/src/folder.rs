//! Folders with results.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::output::note;

/// Makes the folder and tries to write there, before there is anything to lose.
pub(crate) fn make_folder(folder: &Path) -> Result<()> {
    let probe = unfinished(folder, "probe");
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&probe, ""))
        .and_then(|()| fs::remove_file(&probe))
        .with_context(|| format!("cannot write to the folder '{}'", folder.display()))
}

/// Writes a file whole or not at all.
pub(crate) fn write(folder: &Path, name: &str, content: &str) -> Result<()> {
    let (path, unfinished) = (folder.join(name), unfinished(folder, name));
    let written = fs::write(&unfinished, content).and_then(|()| fs::rename(&unfinished, &path));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written.with_context(|| format!("cannot write '{}'", path.display()))?;
    note(format_args!("wrote {}", path.display()));
    Ok(())
}

fn unfinished(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!(".{name}.unfinished"))
}
