//! Files and folders that are there whole or not at all.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::{CheckpointError, FileError};

/// The end of a temporary file's name, by which one left by a killed process is known.
const TEMPORARY: &str = ".rot-partial";

/// Writes a file so that after a kill or a power cut its path has the old content or the new.
///
/// The content goes to a temporary file in the same folder, which then takes the place of `path`.
/// When `write` fails, `path` is as it was.
pub fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), FileError> {
    replace(path, write).map_err(FileError::at("write", path))
}

/// Makes a folder so that after a kill or a power cut it is there with all its files, or not at all.
///
/// `fill` writes the files to a temporary folder beside it, which then takes its name. A folder that has
/// something in it already is refused and stays as it is.
pub fn create_folder_atomically(
    path: &Path,
    fill: impl FnOnce(&Path) -> Result<(), CheckpointError>,
) -> Result<(), CheckpointError> {
    let failed = |error| FileError::at("create", path)(error);
    let (folder, temporary) = beside(path).map_err(failed)?;
    refuse_content(path).map_err(failed)?;
    fs::create_dir_all(folder).and_then(|()| fs::create_dir(&temporary)).map_err(failed)?;
    let named = || fs::rename(&temporary, path).and_then(|()| sync_folder(folder)).map_err(failed);
    let made = fill(&temporary).and_then(|()| Ok(named()?));
    if made.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_dir_all(&temporary);
    }
    made
}

/// Fails if a path is a folder with something in it, or something else.
fn refuse_content(path: &Path) -> io::Result<()> {
    match fs::read_dir(path) {
        Ok(mut entries) => match entries.next() {
            Some(_) => Err(io::ErrorKind::DirectoryNotEmpty.into()),
            None => Ok(()),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// The folder that a path is in, and a temporary name there.
fn beside(path: &Path) -> io::Result<(&Path, PathBuf)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    Ok((folder, folder.join(temporary_name(name))))
}

fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let (folder, temporary) = beside(path)?;
    let written = write_and_sync(&temporary, write).and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = written {
        // The first error is the one to tell; what cannot be removed now is removed later.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    sync_folder(folder)
}

fn write_and_sync(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let mut writer = BufWriter::new(File::create(path)?);
    write(&mut writer)?;
    writer.flush()?;
    // Before the rename: else a power cut could leave the new name with nothing in it.
    writer.get_ref().sync_all()
}

/// Makes the names in a folder survive a power cut.
fn sync_folder(folder: &Path) -> io::Result<()> {
    // Elsewhere folders cannot be opened as files.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

fn temporary_name(name: &OsStr) -> OsString {
    let mut temporary = OsString::from(".");
    temporary.push(name);
    // Two processes that write the same file must not share a temporary.
    temporary.push(format!(".{}{TEMPORARY}", std::process::id()));
    temporary
}

/// Removes the temporary files that killed processes left in a folder.
pub(super) fn remove_temporaries(folder: &Path) -> Result<(), FileError> {
    for entry in fs::read_dir(folder).map_err(FileError::at("list", folder))? {
        let entry = entry.map_err(FileError::at("list", folder))?;
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".")
            && name.as_encoded_bytes().ends_with(TEMPORARY.as_bytes())
        {
            fs::remove_file(entry.path()).map_err(FileError::at("remove", &entry.path()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<OsString> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for content in ["long before", "after", ""] {
            write_atomically(&path, |writer| writer.write_all(content.as_bytes())).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
            assert_eq!(names(dir.path()), ["file"]);
        }
    }

    #[test]
    fn until_all_is_written_the_old_content_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        write_atomically(&path, |writer| writer.write_all(b"before")).unwrap();
        let error = write_atomically(&path, |writer| {
            writer.write_all(&[0; 100_000])?;
            writer.flush()?;
            assert_eq!(fs::read(&path)?, b"before");
            Err(io::ErrorKind::StorageFull.into())
        })
        .unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), b"before");
        assert_eq!(names(dir.path()), ["file"]);
        let expected = format!("cannot write '{}' (make room on the disk)", path.display());
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_folder_is_there_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/model");
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let error = create_folder_atomically(&path, |folder| {
            write_atomically(&folder.join("a"), |writer| writer.write_all(b"a"))?;
            Err(FileError::at("write", folder)(full()).into())
        });
        assert!(error.is_err() && names(&dir.path().join("new")).is_empty());

        create_folder_atomically(&path, |folder| {
            assert!(!path.exists());
            Ok(write_atomically(&folder.join("a"), |writer| writer.write_all(b"a"))?)
        })
        .unwrap();
        assert_eq!((names(&path), names(&dir.path().join("new")).len()), (vec!["a".into()], 1));

        let error =
            create_folder_atomically(&path, |_| panic!("it is refused before")).unwrap_err();
        let expected = format!(
            "cannot create '{}' (choose another name, or remove what is there)",
            path.display()
        );
        assert_eq!(error.to_string(), expected);
        assert!(create_folder_atomically(&path.join("a"), |_| Ok(())).is_err(), "a file");
        assert_eq!(names(&path), ["a"]);
    }

    #[test]
    fn errors_name_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("missing/file");
        let error = write_atomically(&path, |_| Ok(())).unwrap_err();
        assert_eq!((error.path.as_path(), error.source.kind()), (&*path, io::ErrorKind::NotFound));
        assert!(write_atomically(Path::new("/"), |_| Ok(())).is_err());
        assert!(write_atomically(dir.path(), |_| Ok(())).is_err(), "a folder is no file");
    }

    #[test]
    fn temporaries_of_killed_processes_are_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let temporary = temporary_name(OsStr::new("best.safetensors"));
        for name in [&*temporary, "notes".as_ref(), ".lock".as_ref(), "a.rot-partial".as_ref()] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(names(dir.path()).len(), 4);
        remove_temporaries(dir.path()).unwrap();
        assert_eq!(names(dir.path()), [".lock", "a.rot-partial", "notes"]);
    }
}
