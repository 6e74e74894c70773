//! Checkpoints: named tensors and notes in one safetensors file.
//!
//! Read with the types of the crate `safetensors`; written by hand, because that crate orders notes
//! by a random hash, and equal state shall give equal bytes. Tensors go from the caller's memory to
//! the disk and back without a copy of the file between them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use half::f16;
use rot_nn::Layout;
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use serde::Serialize;

use super::{CheckpointError, FileError, write_atomically};

/// The most bytes of a header, as all readers of the format have it.
const HEADER_LIMIT: u64 = 100_000_000;
/// The length of the header comes first, in so many bytes.
const LENGTH_BYTES: u64 = 8;
/// Where the format keeps its notes, among the names of tensors.
const NOTES: &str = "__metadata__";
/// The note with the checksum of all values.
const CHECKSUM: &str = "crc32c";
/// How many values go through memory at once as bytes.
const CHUNK: usize = 1 << 14;

/// What a checkpoint shall hold, borrowed from whoever owns it.
#[derive(Clone, Debug, Default)]
pub struct Snapshot<'a> {
    tensors: BTreeMap<String, (Vec<usize>, &'a [f32])>,
    notes: BTreeMap<String, String>,
    precision: Precision,
}

/// How exactly values lie in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// To the bit, in 32 bits.
    #[default]
    Full,
    /// Rounded to the 16 bits of IEEE half precision.
    Half,
}

impl Precision {
    fn of(dtype: Dtype) -> Option<Precision> {
        match dtype {
            Dtype::F32 => Some(Precision::Full),
            Dtype::F16 => Some(Precision::Half),
            _ => None,
        }
    }

    fn dtype(self) -> Dtype {
        match self {
            Precision::Full => Dtype::F32,
            Precision::Half => Dtype::F16,
        }
    }

    /// The bytes of a value.
    fn bytes(self) -> usize {
        match self {
            Precision::Full => size_of::<f32>(),
            Precision::Half => size_of::<f16>(),
        }
    }
}

impl<'a> Snapshot<'a> {
    /// Adds a tensor, in place of one of the same name.
    pub fn add(&mut self, name: impl Into<String>, shape: &[usize], values: &'a [f32]) {
        self.tensors.insert(name.into(), (shape.to_vec(), values));
    }

    /// Adds values that lie as a layout says, each tensor under its name after the prefix.
    ///
    /// The parameters of a model and the moments of an optimiser lie so.
    pub fn add_layout(&mut self, prefix: &str, layout: &Layout, values: &'a [f32]) {
        for tensor in layout.tensors() {
            // Too few values give a tensor that does not fit, which saving refuses.
            let part = values.get(tensor.range.clone()).unwrap_or_default();
            self.add(format!("{prefix}{}", tensor.name), &tensor.shape, part);
        }
    }

    /// Adds a note, in place of one of the same key. The key `crc32c` is taken.
    pub fn note(&mut self, key: impl Into<String>, text: impl Into<String>) {
        self.notes.insert(key.into(), text.into());
    }

    /// Chooses how exactly values are written; to the bit if it is not called.
    pub fn with_precision(self, precision: Precision) -> Self {
        Snapshot { precision, ..self }
    }

    /// Writes everything to a file, [atomically](write_atomically). Equal snapshots give equal bytes.
    pub fn save(&self, path: &Path) -> Result<(), CheckpointError> {
        let mut infos = BTreeMap::new();
        let mut end = 0;
        let mut checksum = 0;
        for (name, (shape, values)) in &self.tensors {
            if name == NOTES || elements(shape) != Some(values.len()) {
                let (name, shape, values) = (name.clone(), shape.clone(), values.len());
                return Err(CheckpointError::Unfit {
                    path: path.to_path_buf(),
                    name,
                    shape,
                    values,
                });
            }
            let start = end;
            end += values.len() * self.precision.bytes();
            let (shape, dtype) = (shape.clone(), self.precision.dtype());
            let info = TensorInfo { dtype, shape, data_offsets: (start, end) };
            infos.insert(name.as_str(), info);
            as_bytes(values, self.precision, |bytes| {
                checksum = crc32c::crc32c_append(checksum, bytes);
                Ok(())
            })
            .map_err(FileError::at("write", path))?;
        }
        let mut notes = self.notes.clone();
        notes.insert(CHECKSUM.to_owned(), format!("{checksum:08x}"));
        write_atomically(path, |writer| {
            let mut header = serde_json::to_vec(&Header { notes, infos })?;
            // Readers that map the file want the values to begin at a multiple of eight.
            header.resize(header.len().next_multiple_of(8), b' ');
            if header.len() as u64 > HEADER_LIMIT {
                return Err(io::Error::other("its notes and names exceed 100 MB"));
            }
            writer.write_all(&(header.len() as u64).to_le_bytes())?;
            writer.write_all(&header)?;
            self.tensors.values().try_for_each(|(_, values)| {
                as_bytes(values, self.precision, |bytes| writer.write_all(bytes))
            })
        })?;
        Ok(())
    }
}

/// The header of the format, in an order of its own.
#[derive(Serialize)]
struct Header<'a> {
    #[serde(rename = "__metadata__")]
    notes: BTreeMap<String, String>,
    #[serde(flatten)]
    infos: BTreeMap<&'a str, TensorInfo>,
}

/// A checkpoint in memory.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    path: PathBuf,
    tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
    notes: BTreeMap<String, String>,
}

impl Checkpoint {
    /// Reads a whole file and confirms its checksum, if it has one as all of ours do.
    pub fn load(path: &Path) -> Result<Checkpoint, CheckpointError> {
        let open = || {
            let file = File::open(path)?;
            let size = file.metadata()?.len();
            Ok((file, size))
        };
        let (file, size) = open().map_err(FileError::at("read", path))?;
        Checkpoint::read(path, BufReader::new(file), size)
    }

    /// Reads what would be in a file; the path is what errors call it.
    pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Checkpoint, CheckpointError> {
        Checkpoint::read(path, bytes, bytes.len() as u64)
    }

    fn read(path: &Path, reader: impl Read, size: u64) -> Result<Checkpoint, CheckpointError> {
        let path = path.to_path_buf();
        match read(reader, size) {
            Ok((tensors, notes)) => Ok(Checkpoint { path, tensors, notes }),
            Err(Fault::Io(source)) => Err(FileError { action: "read", path, source }.into()),
            Err(Fault::Content(what)) => Err(CheckpointError::Damaged { path, what }),
        }
    }

    /// Takes a tensor out, if it is there with that shape.
    pub fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, CheckpointError> {
        match self.tensors.remove(name) {
            Some((found, values)) if found == shape => Ok(values),
            Some((found, _)) => {
                Err(self.mismatch(format!("'{name}' has the shape {found:?}, not {shape:?}")))
            }
            None => Err(self.mismatch(format!("there is no tensor '{name}'"))),
        }
    }

    /// Takes out what [`Snapshot::add_layout`] put in.
    pub fn take_layout(
        &mut self,
        prefix: &str,
        layout: &Layout,
    ) -> Result<Vec<f32>, CheckpointError> {
        let mut values = Vec::with_capacity(layout.len());
        for tensor in layout.tensors() {
            values.extend(self.take(&format!("{prefix}{}", tensor.name), &tensor.shape)?);
        }
        Ok(values)
    }

    /// The note with that key.
    pub fn note(&self, key: &str) -> Result<&str, CheckpointError> {
        let note = self.notes.get(key).map(String::as_str);
        note.ok_or_else(|| self.mismatch(format!("there is no note '{key}'")))
    }

    /// The error of a checkpoint that is whole but does not fit.
    pub(crate) fn mismatch(&self, what: String) -> CheckpointError {
        CheckpointError::Mismatch { path: self.path.clone(), what }
    }
}

/// Why a file is no checkpoint.
enum Fault {
    Io(io::Error),
    Content(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Io(error)
    }
}

type Content = (BTreeMap<String, (Vec<usize>, Vec<f32>)>, BTreeMap<String, String>);

fn read(mut reader: impl Read, size: u64) -> Result<Content, Fault> {
    let header = read_header(&mut reader, size)?;

    let names = header.offset_keys();
    let mut tensors = BTreeMap::new();
    let mut checksum = 0;
    for (name, info) in names.iter().filter_map(|name| Some((name, header.info(name)?))) {
        let precision = Precision::of(info.dtype).ok_or_else(|| {
            let kind = info.dtype;
            Fault::Content(format!("the tensor '{name}' is of type {kind}, not F32 or F16"))
        })?;
        let (start, end) = info.data_offsets;
        let count = (end - start) / precision.bytes();
        let values = read_values(&mut reader, count, precision, &mut checksum)?;
        tensors.insert(name.clone(), (info.shape.clone(), values));
    }
    let mut notes: BTreeMap<_, _> =
        header.metadata().clone().unwrap_or_default().into_iter().collect();
    match notes.remove(CHECKSUM) {
        Some(expected) if expected != format!("{checksum:08x}") => {
            let what = format!("its values have the checksum {checksum:08x}, not {expected}");
            Err(Fault::Content(what))
        }
        _ => Ok((tensors, notes)),
    }
}

/// Reads the header and confirms that the rest of the file is what it says.
fn read_header(reader: &mut impl Read, size: u64) -> Result<Metadata, Fault> {
    let mut length = [0; LENGTH_BYTES as usize];
    if size < LENGTH_BYTES {
        return Err(Fault::Content(format!("it ends after {size} bytes")));
    }
    reader.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    let rest = size - LENGTH_BYTES;
    if length > rest.min(HEADER_LIMIT) {
        return Err(Fault::Content(format!(
            "it says that its header has {length} bytes, where {rest} are left and \
             {HEADER_LIMIT} are the most"
        )));
    }
    let mut header = vec![0; length as usize];
    reader.read_exact(&mut header)?;
    let header: Metadata = serde_json::from_slice(&header)
        .map_err(|error| Fault::Content(format!("its header cannot be read: {error}")))?;
    let (expected, found) = (header.data_len() as u64, rest - length);
    if expected != found {
        let what = format!("it has {found} bytes of values, where {expected} should be");
        return Err(Fault::Content(what));
    }
    Ok(header)
}

fn read_values(
    reader: &mut impl Read,
    count: usize,
    precision: Precision,
    checksum: &mut u32,
) -> Result<Vec<f32>, Fault> {
    let mut values = Vec::new();
    // Files can say that they are larger than memory.
    values.try_reserve_exact(count).map_err(|_| Fault::Io(io::ErrorKind::OutOfMemory.into()))?;
    let mut buffer = vec![0; CHUNK.min(count) * precision.bytes()];
    while values.len() < count {
        let bytes = &mut buffer[..CHUNK.min(count - values.len()) * precision.bytes()];
        reader.read_exact(bytes)?;
        *checksum = crc32c::crc32c_append(*checksum, bytes);
        match precision {
            Precision::Full => {
                values.extend(bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)));
            }
            Precision::Half => {
                let halves = bytes.as_chunks().0.iter().map(|&bytes| f16::from_le_bytes(bytes));
                values.extend(halves.map(f16::to_f32));
            }
        }
    }
    Ok(values)
}

/// Gives the bytes of values, little-endian as the format has them, chunk by chunk.
fn as_bytes(
    values: &[f32],
    precision: Precision,
    mut each: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK.min(values.len()) * precision.bytes()];
    for values in values.chunks(CHUNK) {
        let bytes = &mut buffer[..values.len() * precision.bytes()];
        match precision {
            Precision::Full => {
                for (bytes, value) in bytes.as_chunks_mut().0.iter_mut().zip(values) {
                    *bytes = value.to_le_bytes();
                }
            }
            Precision::Half => {
                for (bytes, &value) in bytes.as_chunks_mut().0.iter_mut().zip(values) {
                    *bytes = f16::from_f32(value).to_le_bytes();
                }
            }
        }
        each(bytes)?;
    }
    Ok(())
}

fn elements(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |product, &length| product.checked_mul(length))
}

#[cfg(test)]
mod tests;
