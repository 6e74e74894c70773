//! What a server has replied to each prompt, kept so that nothing is asked twice.
//!
//! A journal is a file of JSON Lines: first what decides the replies, then a reply a line, written as
//! soon as it has come. A line that a kill has cut off is dropped when the file is opened again.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use foldhash::fast::FixedState;
use serde::{Deserialize, Serialize};

use crate::completion::Reply;

/// The version of the format.
const VERSION: u32 = 1;
/// How often the file is made safe against a power cut; against a kill it is at any time.
const SYNC_EVERY: Duration = Duration::from_secs(2);

/// What decides a reply besides the prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    journal: u32,
    model: String,
    spelling: String,
    few_shot: usize,
    max_tokens: usize,
}

impl Header {
    pub(crate) fn new(model: &str, spelling: &str, few_shot: usize, max_tokens: usize) -> Header {
        let (model, spelling) = (model.to_owned(), spelling.to_owned());
        Header { journal: VERSION, model, spelling, few_shot, max_tokens }
    }
}

/// A line of a journal.
#[derive(Serialize, Deserialize)]
struct Line {
    /// Without the worked examples before it.
    prompt: String,
    #[serde(flatten)]
    reply: Reply,
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error("cannot use the journal '{0}': {1}")]
    Io(PathBuf, #[source] io::Error),
    /// Another process writes to it.
    #[error("another process uses the journal '{0}': wait for it, or choose another file")]
    Locked(PathBuf),
    /// It belongs to something else.
    #[error("the journal '{path}' is {found}, not {wanted}: choose another file")]
    Other {
        /// The file.
        path: PathBuf,
        /// What it is of.
        found: String,
        /// What was wanted.
        wanted: String,
    },
    /// A line is not as it was written.
    #[error("line {line} of the journal '{path}' is damaged: remove it, and it is asked again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
    },
}

/// The replies so far.
pub(crate) struct Journal {
    /// By a hash of the prompt, which is long enough to tell all apart.
    replies: HashMap<[u8; 16], Reply, FixedState>,
    file: Option<(PathBuf, File, Instant)>,
}

impl Journal {
    /// A journal that is gone when the process is.
    pub(crate) fn in_memory() -> Journal {
        Journal { replies: HashMap::default(), file: None }
    }

    /// Opens a journal, or makes one.
    pub(crate) fn open(path: &Path, header: &Header) -> Result<Journal, JournalError> {
        let failed = |error| JournalError::Io(path.to_owned(), error);
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => (),
            Err(TryLockError::WouldBlock) => return Err(JournalError::Locked(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let mut replies = HashMap::default();
        let (mut reader, mut line, mut whole) = (BufReader::new(&file), Vec::new(), 0);
        for number in 1.. {
            line.clear();
            let bytes = reader.read_until(b'\n', &mut line).map_err(failed)?;
            // What has no end was cut off.
            if line.last() != Some(&b'\n') {
                break;
            }
            whole += bytes as u64;
            if number == 1 {
                check(path, &line, header)?;
                continue;
            }
            let damaged = |_| JournalError::Damaged { path: path.to_owned(), line: number };
            let Line { prompt, reply } = serde_json::from_slice(&line).map_err(damaged)?;
            replies.insert(key(&prompt), reply);
        }
        file.set_len(whole).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        if whole == 0 {
            let line = serde_json::to_string(header).map_err(io::Error::from).map_err(failed)?;
            file.write_all(format!("{line}\n").as_bytes()).map_err(failed)?;
        }
        Ok(Journal { replies, file: Some((path.to_owned(), file, Instant::now())) })
    }

    /// How many replies there are.
    pub(crate) fn len(&self) -> usize {
        self.replies.len()
    }

    /// The reply to a prompt, if it was asked before.
    pub(crate) fn get(&self, prompt: &str) -> Option<&Reply> {
        self.replies.get(&key(prompt))
    }

    /// Keeps a reply.
    pub(crate) fn insert(&mut self, prompt: &str, reply: Reply) -> Result<(), JournalError> {
        if let Some((path, file, synced)) = &mut self.file {
            let failed = |error| JournalError::Io(path.clone(), error);
            let line = Line { prompt: prompt.to_owned(), reply: reply.clone() };
            let line = serde_json::to_string(&line).map_err(io::Error::from).map_err(failed)?;
            // In one piece, so that a kill comes before or after it.
            file.write_all(format!("{line}\n").as_bytes()).map_err(failed)?;
            if synced.elapsed() > SYNC_EVERY {
                file.sync_data().map_err(failed)?;
                *synced = Instant::now();
            }
        }
        self.replies.insert(key(prompt), reply);
        Ok(())
    }
}

fn key(prompt: &str) -> [u8; 16] {
    let mut key = [0; 16];
    key.copy_from_slice(&blake3::hash(prompt.as_bytes()).as_bytes()[..16]);
    key
}

/// Whether the first line of a journal is as it should be.
fn check(path: &Path, line: &[u8], wanted: &Header) -> Result<(), JournalError> {
    let shown = |header: &Header| {
        format!(
            "of the model '{}' in {} with {} worked contexts and up to {} tokens",
            header.model, header.spelling, header.few_shot, header.max_tokens
        )
    };
    let found: Option<Header> = serde_json::from_slice(line).ok();
    if found.as_ref() == Some(wanted) {
        return Ok(());
    }
    Err(JournalError::Other {
        path: path.to_owned(),
        found: match &found {
            Some(header) if header.journal == VERSION => shown(header),
            Some(header) => format!("of version {}", header.journal),
            None => "no journal".to_owned(),
        },
        wanted: shown(wanted),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(text: &str) -> Reply {
        Reply { text: text.to_owned(), stop: None, full: false }
    }

    #[test]
    fn nothing_is_lost_but_what_was_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let header = Header::new("m", "words", 0, 9);
        let mut journal = Journal::open(&path, &header).unwrap();
        journal.insert(" go 1", reply(" stop")).unwrap();
        let full = Reply { full: true, stop: Some(" think".to_owned()), ..reply(" 2") };
        journal.insert(" go 2", full.clone()).unwrap();
        assert!(matches!(Journal::open(&path, &header), Err(JournalError::Locked(_))));
        drop(journal);

        let whole = std::fs::read(&path).unwrap();
        // However much of the last line is there.
        let last = whole[..whole.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
        for cut in last..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut journal = Journal::open(&path, &header).unwrap();
            assert_eq!((journal.len(), journal.get(" go 2")), (1, None));
            assert_eq!(journal.get(" go 1"), Some(&reply(" stop")));
            journal.insert(" go 2", full.clone()).unwrap();
            drop(journal);
            assert_eq!(std::fs::read(&path).unwrap(), whole);
        }
        let journal = Journal::open(&path, &header).unwrap();
        assert_eq!(journal.get(" go 2"), Some(&full));
    }

    #[test]
    fn a_journal_of_something_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        drop(Journal::open(&path, &Header::new("m", "words", 0, 9)).unwrap());
        let error = |header: &Header| Journal::open(&path, header).err().unwrap().to_string();
        let other = error(&Header::new("n", "words", 0, 9));
        assert!(other.contains("of the model 'm'") && other.contains("'n'"), "{other}");
        std::fs::write(&path, "{\"journal\":1}\n").unwrap();
        assert!(error(&Header::new("m", "words", 0, 9)).contains("is no journal"));
        let header = Header::new("m", "words", 0, 9);
        let text = format!("{}\nnonsense\n", serde_json::to_string(&header).unwrap());
        std::fs::write(&path, text).unwrap();
        assert!(error(&header).contains("line 2"));
    }
}
