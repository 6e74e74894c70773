//! Event files, which TensorBoard draws.
//!
//! A file is a sequence of records, each with its length and checksums (the framing of TFRecord);
//! a record is an `Event` in the encoding of Protocol Buffers, with the fields that
//! `tensorboard/compat/proto/{event,summary}.proto` give numbers to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::FileError;

/// The beginning of the names by which TensorBoard finds its files.
const PREFIX: &str = "events.out.tfevents.";
/// The version of the format, in the first record of each file.
const VERSION: &str = "brain.Event:2";

/// An event file.
#[derive(Debug)]
pub(super) struct Events {
    path: PathBuf,
    file: File,
}

impl Events {
    /// Starts a new file after those that are there. TensorBoard forgets what they have of
    /// `next_step` and later: those steps are done again.
    pub(super) fn create(dir: &Path, next_step: u64) -> Result<Events, FileError> {
        // TensorBoard reads the files in the order of their names. Counting keeps it whatever the
        // clock says.
        let number = last_number(dir).map_err(FileError::at("list", dir))? + 1;
        let path = dir.join(format!("{PREFIX}{number:010}"));
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.map_err(FileError::at("create", &path))?;
        let mut events = Events { path, file };
        events.write(&version(now()))?;
        // In the first file too: TensorBoard takes the first start for that of the run, and only
        // those after it for a return.
        events.write(&start(now(), next_step))?;
        Ok(events)
    }

    /// Adds values that were measured after a step, each with its tag.
    pub(super) fn append<'a>(
        &mut self,
        step: u64,
        values: impl Iterator<Item = (&'a str, f64)>,
    ) -> Result<(), FileError> {
        self.write(&scalars(now(), step, values))
    }

    fn write(&mut self, event: &[u8]) -> Result<(), FileError> {
        self.file.write_all(&framed(event)).map_err(FileError::at("write", &self.path))
    }
}

/// The number of the last event file in a folder, 0 if there is none.
fn last_number(dir: &Path) -> io::Result<u64> {
    let mut last = 0;
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse().ok());
        last = last.max(number.unwrap_or(0));
    }
    Ok(last)
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

/// `Event { wall_time = 1, file_version = 3 }`
fn version(time: f64) -> Vec<u8> {
    let mut event = Message::default();
    event.double(1, time);
    event.bytes(3, VERSION.as_bytes());
    event.0
}

/// `Event { wall_time = 1, step = 2, session_log = 7 }`, `SessionLog { status = 1 }`
fn start(time: f64, step: u64) -> Vec<u8> {
    const START: u64 = 1;
    let mut log = Message::default();
    log.varint(1, START);
    let mut event = Message::default();
    event.double(1, time);
    event.varint(2, step);
    event.bytes(7, &log.0);
    event.0
}

/// `Event { wall_time = 1, step = 2, summary = 5 }`, `Summary { repeated value = 1 }`,
/// `Value { tag = 1, simple_value = 2 }`
fn scalars<'a>(time: f64, step: u64, values: impl Iterator<Item = (&'a str, f64)>) -> Vec<u8> {
    let mut summary = Message::default();
    for (tag, number) in values {
        let mut value = Message::default();
        value.bytes(1, tag.as_bytes());
        value.float(2, number as f32);
        summary.bytes(1, &value.0);
    }
    let mut event = Message::default();
    event.double(1, time);
    event.varint(2, step);
    event.bytes(5, &summary.0);
    event.0
}

/// A record: length and checksum, data and checksum, all little-endian.
fn framed(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let parts: [&[u8]; 4] =
        [&length, &checksum(&length).to_le_bytes(), data, &checksum(data).to_le_bytes()];
    parts.concat()
}

/// CRC-32C, masked as TFRecord has it, for data that holds checksums itself.
fn checksum(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// A message in the encoding of Protocol Buffers: fields with their numbers, one after another.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, field: u8, value: u64) {
        self.key(field, 0);
        self.bare_varint(value);
    }

    fn double(&mut self, field: u8, value: f64) {
        self.key(field, 1);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u8, value: &[u8]) {
        self.key(field, 2);
        self.bare_varint(value.len() as u64);
        self.0.extend(value);
    }

    fn float(&mut self, field: u8, value: f32) {
        self.key(field, 5);
        self.0.extend(value.to_le_bytes());
    }

    /// Numbers of fields up to 15 have keys of one byte.
    fn key(&mut self, field: u8, kind: u8) {
        self.0.push(field << 3 | kind);
    }

    /// Seven bits a byte, the low ones first; the eighth says that more follow.
    fn bare_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// CRC-32C by its definition, bit by bit.
    fn crc(data: &[u8]) -> u32 {
        !data.iter().fold(!0, |crc, &byte| {
            (0..8).fold(crc ^ u32::from(byte), |crc, _| {
                if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 }
            })
        })
    }

    fn masked(data: &[u8]) -> u32 {
        crc(data).rotate_right(15).wrapping_add(0xa282_ead8)
    }

    /// A value of a field.
    #[derive(Debug, PartialEq)]
    enum Field<'a> {
        Number(u64),
        Bytes(&'a [u8]),
    }

    fn take<'a>(data: &mut &'a [u8], length: usize) -> &'a [u8] {
        let (taken, rest) = data.split_at(length);
        *data = rest;
        taken
    }

    fn take_varint(data: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = take(data, 1)[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    }

    fn fields(mut data: &[u8]) -> Vec<(u64, Field<'_>)> {
        let mut fields = Vec::new();
        while !data.is_empty() {
            let key = take_varint(&mut data);
            let value = match key & 7 {
                0 => Field::Number(take_varint(&mut data)),
                1 => Field::Bytes(take(&mut data, 8)),
                2 => {
                    let length = take_varint(&mut data) as usize;
                    Field::Bytes(take(&mut data, length))
                }
                5 => Field::Bytes(take(&mut data, 4)),
                kind => panic!("kind {kind}"),
            };
            fields.push((key >> 3, value));
        }
        fields
    }

    fn field(message: &[u8], number: u64) -> Option<Field<'_>> {
        fields(message).into_iter().find(|(found, _)| *found == number).map(|(_, value)| value)
    }

    fn bytes(message: &[u8], number: u64) -> Option<&[u8]> {
        match field(message, number)? {
            Field::Bytes(bytes) => Some(bytes),
            Field::Number(number) => panic!("{number} is not bytes"),
        }
    }

    /// The records of a file, with their framing confirmed.
    fn records(mut file: &[u8]) -> Vec<&[u8]> {
        let mut records = Vec::new();
        while !file.is_empty() {
            let length = take(&mut file, 8);
            assert_eq!(take(&mut file, 4), masked(length).to_le_bytes());
            let data = take(&mut file, u64::from_le_bytes(length.try_into().unwrap()) as usize);
            assert_eq!(take(&mut file, 4), masked(data).to_le_bytes());
            records.push(data);
        }
        records
    }

    /// What a file says: the step it starts at, and all scalars with their steps.
    pub(in super::super) fn read(path: &Path) -> (u64, Vec<(u64, String, f32)>) {
        let file = fs::read(path).unwrap();
        let records = records(&file);
        for record in &records {
            let time = f64::from_le_bytes(bytes(record, 1).unwrap().try_into().unwrap());
            assert!((1e9..1e11).contains(&time), "{time} is not in seconds since 1970");
        }
        assert_eq!(bytes(records[0], 3).unwrap(), b"brain.Event:2");
        let step = |record| match field(record, 2) {
            Some(Field::Number(step)) => step,
            other => panic!("{other:?} is not a step"),
        };
        assert_eq!(fields(bytes(records[1], 7).unwrap()), [(1, Field::Number(1))]);
        let mut scalars = Vec::new();
        for record in &records[2..] {
            for (number, value) in fields(bytes(record, 5).unwrap()) {
                let Field::Bytes(value) = value else { panic!("{value:?} is not a value") };
                assert_eq!(number, 1);
                let tag = String::from_utf8(bytes(value, 1).unwrap().to_vec()).unwrap();
                let number = f32::from_le_bytes(bytes(value, 2).unwrap().try_into().unwrap());
                scalars.push((step(record), tag, number));
            }
        }
        (step(records[1]), scalars)
    }

    #[test]
    fn checksums_are_those_of_the_standard() {
        // RFC 3720, B.4, and the check value of CRC-32C.
        assert_eq!(crc(b"123456789"), 0xe306_9283);
        assert_eq!(crc(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc(&[0xff; 32]), 0x62a8_ab43);
        for data in [&b"123456789"[..], &[0; 32], &[]] {
            assert_eq!(checksum(data), masked(data));
        }
        // The first twelve bytes of any event file that TensorFlow writes.
        let expected = [0x18, 0, 0, 0, 0, 0, 0, 0, 0xa3, 0x7f, 0x4b, 0x22];
        assert_eq!(framed(&version(1.7e9))[..12], expected);
    }

    #[test]
    fn events_have_the_fields_of_the_format() {
        let time = 0.0f64.to_le_bytes();
        let mut expected = [&[0x09][..], &time, &[0x10, 0xac, 0x02, 0x3a, 2, 0x08, 1]].concat();
        assert_eq!(start(0.0, 300), expected);
        expected = [&[0x09][..], &time, &[0x10, 5, 0x2a, 10, 0x0a, 8]].concat();
        expected.extend(*b"\x0a\x01x\x15\0\0\x80\x3f");
        assert_eq!(scalars(0.0, 5, [("x", 1.0)].into_iter()), expected);
    }

    #[test]
    fn files_say_what_was_added() {
        let dir = tempfile::tempdir().unwrap();
        let mut events = Events::create(dir.path(), 7).unwrap();
        let long = "long tag ".repeat(50);
        events.append(u64::from(u32::MAX), [("loss", 0.1), (&long, f64::NAN)].into_iter()).unwrap();
        events.append(u64::MAX >> 1, [("loss", -2.0)].into_iter()).unwrap();
        let (start, scalars) = read(&events.path);
        assert_eq!((start, scalars.len()), (7, 3));
        assert_eq!(scalars[0], (u64::from(u32::MAX), "loss".to_owned(), 0.1));
        assert_eq!(scalars[1].1, long);
        assert!(scalars[1].2.is_nan());
        assert_eq!(scalars[2], (u64::MAX >> 1, "loss".to_owned(), -2.0));
    }

    #[test]
    fn later_files_sort_after_earlier_ones() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("events.out.tfevents.of others"), "").unwrap();
        let paths: Vec<PathBuf> =
            (0..12).map(|step| Events::create(dir.path(), step).unwrap().path).collect();
        assert!(paths.is_sorted());
        assert!(paths.iter().zip(0..).all(|(path, step)| read(path).0 == step));
    }
}
