//! Lines of text from outside: of any encoding, and of bounded length.

use std::io::{self, BufRead, Read};

/// The longest line that is read, in bytes.
const LONGEST_LINE: usize = 16 << 20;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Reads lines one by one. What follows the first 16 MiB of a line is dropped.
pub struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    begun: bool,
}

impl<R: BufRead> Lines<R> {
    /// The lines of a reader.
    pub fn new(reader: R) -> Lines<R> {
        Lines { reader, buffer: Vec::new(), begun: false }
    }

    /// The next line without its end, or what is wrong with it; `None` at the end of the input.
    pub fn next_line(&mut self) -> io::Result<Option<Result<&str, LineError<'_>>>> {
        self.buffer.clear();
        let most = LONGEST_LINE as u64 + 1;
        if self.reader.by_ref().take(most).read_until(b'\n', &mut self.buffer)? == 0 {
            return Ok(None);
        }
        let ended = self.buffer.pop_if(|byte| *byte == b'\n').is_some();
        if !ended && self.buffer.len() > LONGEST_LINE {
            self.reader.skip_until(b'\n')?;
            self.buffer.truncate(1 << 10);
            return Ok(Some(Err(LineError {
                start: String::from_utf8_lossy(&self.buffer),
                what: format!("the line is longer than {} MiB", LONGEST_LINE >> 20),
            })));
        }
        self.buffer.pop_if(|byte| *byte == b'\r');
        // Some editors begin a file with a mark of the byte order.
        if !std::mem::replace(&mut self.begun, true) && self.buffer.starts_with(BYTE_ORDER_MARK) {
            self.buffer.drain(..BYTE_ORDER_MARK.len());
        }
        match std::str::from_utf8(&self.buffer) {
            Ok(line) => Ok(Some(Ok(line))),
            Err(error) => Ok(Some(Err(LineError {
                start: String::from_utf8_lossy(&self.buffer),
                what: format!("byte {} is not UTF-8", error.valid_up_to() + 1),
            }))),
        }
    }
}

/// A line that is not text of bounded length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError<'a> {
    /// The line, or its beginning, as far as it can be shown.
    pub start: std::borrow::Cow<'a, str>,
    /// What is wrong.
    pub what: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_one_by_one_whatever_they_hold() {
        let mut input = b"\xef\xbb\xbfone\r\n\xef\xbb\xbf\n\xff2\n".to_vec();
        input.resize(input.len() + LONGEST_LINE + 7, b'x');
        input.extend(b"\nlast");
        let mut lines = Lines::new(input.as_slice());
        let mut next = || match lines.next_line().unwrap() {
            Some(Ok(line)) => format!("line {line}"),
            Some(Err(error)) => error.what,
            None => "end".to_owned(),
        };
        assert_eq!(next(), "line one");
        assert_eq!(next(), "line \u{feff}");
        assert_eq!(next(), "byte 1 is not UTF-8");
        assert_eq!(next(), "the line is longer than 16 MiB");
        assert_eq!(next(), "line last");
        assert_eq!(next(), "end");
    }
}
