//! A CSV file that grows by a row at a time and can be taken back to an earlier step.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{FileError, RunError, write_atomically};

/// The first column.
const STEP: &str = "step";
/// How much of a line errors show, in characters.
const SHOWN: usize = 80;

/// A CSV file of numbers whose first column is the step.
#[derive(Debug)]
pub(super) struct Table {
    path: PathBuf,
    file: File,
    /// How many there are beside the step.
    columns: usize,
}

impl Table {
    /// Starts a table, in place of any that is there.
    pub(super) fn create(path: &Path, columns: &[&str]) -> Result<Table, RunError> {
        Table::write(path, columns, header(path, columns)?.as_bytes())
    }

    /// Goes on with a table after a step: rows of later steps are dropped, and so is a line that a
    /// killed process did not finish.
    pub(super) fn resume(path: &Path, columns: &[&str], step: u64) -> Result<Table, RunError> {
        let header = header(path, columns)?;
        let content = match fs::read(path) {
            // Killed before the first row: there is nothing to keep.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read.map_err(FileError::at("read", path))?,
        };
        let mut lines = content.split_inclusive(|&byte| byte == b'\n').enumerate();
        let mut kept = header.clone().into_bytes();
        match lines.next() {
            Some((_, line)) if line != header.as_bytes() => {
                let found = String::from_utf8_lossy(line);
                return Err(RunError::Header {
                    path: path.to_path_buf(),
                    found: found.trim_end().chars().take(SHOWN).collect(),
                    expected: header.trim_end().to_owned(),
                });
            }
            _ => {}
        }
        for (index, line) in lines.filter(|(_, line)| line.ends_with(b"\n")) {
            let row = row_step(line, columns.len()).ok_or_else(|| RunError::Row {
                path: path.to_path_buf(),
                line: index + 1,
                columns: columns.len() + 1,
            })?;
            if row <= step {
                kept.extend_from_slice(line);
            }
        }
        Table::write(path, columns, &kept)
    }

    fn write(path: &Path, columns: &[&str], content: &[u8]) -> Result<Table, RunError> {
        write_atomically(path, |writer| writer.write_all(content))?;
        let file = OpenOptions::new().append(true).open(path);
        let file = file.map_err(FileError::at("open", path))?;
        Ok(Table { path: path.to_path_buf(), file, columns: columns.len() })
    }

    /// Adds a row.
    pub(super) fn append(&mut self, step: u64, values: &[f64]) -> Result<(), RunError> {
        self.check(step, values)?;
        let mut row = step.to_string();
        for value in values {
            // The shortest text that reads back as the same number. Writing to memory cannot fail.
            let _ = write!(row, ",{value}");
        }
        row.push('\n');
        // One call for the whole row, so that a kill hardly ever finds half of it.
        Ok(self.file.write_all(row.as_bytes()).map_err(FileError::at("write", &self.path))?)
    }

    /// Whether a row has a value for each column.
    pub(super) fn check(&self, step: u64, values: &[f64]) -> Result<(), RunError> {
        if values.len() == self.columns {
            return Ok(());
        }
        let path = self.path.clone();
        Err(RunError::Values { path, step, values: values.len(), columns: self.columns })
    }

    /// Makes all rows survive a power cut.
    pub(super) fn sync(&self) -> Result<(), RunError> {
        Ok(self.file.sync_data().map_err(FileError::at("write", &self.path))?)
    }
}

fn header(path: &Path, columns: &[&str]) -> Result<String, RunError> {
    let mut header = STEP.to_owned();
    for (i, column) in columns.iter().enumerate() {
        let unfit = column.is_empty() || column.contains([',', '"', '\n', '\r']);
        if unfit || *column == STEP || columns[..i].contains(column) {
            let column = (*column).to_owned();
            return Err(RunError::Column { path: path.to_path_buf(), column });
        }
        header.push(',');
        header.push_str(column);
    }
    header.push('\n');
    Ok(header)
}

/// The step of a row with so many numbers after it; none if the line is not one.
fn row_step(line: &[u8], columns: usize) -> Option<u64> {
    let line = str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let mut fields = line.split(',');
    let step = fields.next()?.parse().ok()?;
    let numbers = fields.map(|field| field.parse().ok()).collect::<Option<Vec<f64>>>()?;
    (numbers.len() == columns).then_some(step)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    const COLUMNS: [&str; 2] = ["loss", "right"];

    fn path() -> (TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("table.csv");
        (dir, path)
    }

    fn fill(table: &mut Table, steps: std::ops::RangeInclusive<u64>) {
        for step in steps {
            table.append(step, &[1.0 / step as f64, step as f64]).unwrap();
        }
    }

    #[test]
    fn rows_are_on_disk_as_soon_as_they_are_added() {
        let (_dir, path) = path();
        let mut table = Table::create(&path, &COLUMNS).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "step,loss,right\n");
        table.append(1, &[0.1, 1.0]).unwrap();
        table.append(2, &[f64::NAN, -1e-9]).unwrap();
        let expected = "step,loss,right\n1,0.1,1\n2,NaN,-0.000000001\n";
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    }

    #[test]
    fn a_resumed_table_equals_an_uninterrupted_one() {
        let (_dir, path) = path();
        fill(&mut Table::create(&path, &COLUMNS).unwrap(), 1..=9);
        let whole = fs::read(&path).unwrap();
        // Killed after any byte that is written after the rows until the checkpoint of step 4.
        let until = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(4).unwrap().0;
        for length in until + 1..=whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let mut table = Table::resume(&path, &COLUMNS, 4).unwrap();
            assert_eq!(fs::read(&path).unwrap(), whole[..=until], "killed at {length}");
            fill(&mut table, 5..=9);
            assert_eq!(fs::read(&path).unwrap(), whole, "killed at {length}");
        }
    }

    #[test]
    fn what_was_never_written_is_an_empty_table() {
        let (_dir, path) = path();
        for content in [None, Some("")] {
            if let Some(content) = content {
                fs::write(&path, content).unwrap();
            }
            Table::resume(&path, &COLUMNS, 4).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "step,loss,right\n");
        }
    }

    #[test]
    fn values_that_are_no_finite_numbers_are_read_back() {
        let (_dir, path) = path();
        let mut table = Table::create(&path, &COLUMNS).unwrap();
        table.append(1, &[f64::NAN, f64::INFINITY]).unwrap();
        table.append(2, &[f64::NEG_INFINITY, f64::MIN_POSITIVE]).unwrap();
        let before = fs::read(&path).unwrap();
        Table::resume(&path, &COLUMNS, 2).unwrap();
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    #[test]
    fn other_columns_are_refused_and_left_alone() {
        let (_dir, path) = path();
        for content in ["step,loss\n1,0.5\n", "step,right,loss\n", "\0\0\0", "step,loss,ri"] {
            fs::write(&path, content).unwrap();
            let error = Table::resume(&path, &COLUMNS, 1).unwrap_err();
            assert!(matches!(error, RunError::Header { .. }), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
    }

    #[test]
    fn lines_that_are_no_rows_are_named_and_left_alone() {
        let (_dir, path) = path();
        let bad: [&[u8]; 8] =
            [b"", b"2", b"2,1", b"2,1,1,1", b"2,1,x", b"-2,1,1", b"2,\xff,1", b"2,1,1\r"];
        for bad in bad {
            let content = [b"step,loss,right\n1,1,1\n", bad, b"\n3,1,1\n"].concat();
            fs::write(&path, &content).unwrap();
            let error = Table::resume(&path, &COLUMNS, 1).unwrap_err();
            assert!(matches!(error, RunError::Row { line: 3, .. }), "{error}");
            assert_eq!(fs::read(&path).unwrap(), content);
        }
    }

    #[test]
    fn columns_need_names_of_their_own() {
        let (_dir, path) = path();
        let bad: [&[&str]; 6] = [&["a", "a"], &["step"], &[""], &["a,b"], &["a\nb"], &["a\"b"]];
        for columns in bad {
            let error = Table::create(&path, columns).unwrap_err();
            assert!(matches!(error, RunError::Column { .. }), "{error}");
        }
        assert!(!path.exists());
    }

    #[test]
    fn rows_have_a_value_for_each_column() {
        let (_dir, path) = path();
        let mut table = Table::create(&path, &COLUMNS).unwrap();
        for values in [&[][..], &[1.0], &[1.0, 2.0, 3.0]] {
            let error = table.append(1, values).unwrap_err();
            assert!(matches!(error, RunError::Values { columns: 2, .. }), "{error}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "step,loss,right\n");
    }
}
