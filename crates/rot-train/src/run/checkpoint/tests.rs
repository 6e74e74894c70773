use std::fs;

use rot_nn::Initial;
use safetensors::SafeTensors;
use tempfile::TempDir;

use super::*;

fn snapshot<'a>(weights: &'a [f32], scalar: &'a [f32]) -> Snapshot<'a> {
    let mut snapshot = Snapshot::default();
    snapshot.add("weights", &[2, 3], weights);
    snapshot.add("a scalar", &[], scalar);
    snapshot.add("nothing", &[0, 7], &[]);
    for i in 0..20 {
        snapshot.note(format!("note {i}"), "\"quoted\"\nand ünlike");
    }
    snapshot
}

const WEIGHTS: [f32; 6] = [1.0, -0.0, f32::MIN_POSITIVE / 2.0, f32::INFINITY, 1e-45, 0.1];

fn saved() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("checkpoint.safetensors");
    snapshot(&WEIGHTS, &[f32::NAN]).save(&path).unwrap();
    (dir, path)
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// A file with that header, whose length is right, and so many bytes after it.
fn file_of(header: &str, bytes: usize) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.resize(file.len() + bytes, 0);
    file
}

fn refusal(content: &[u8]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("refused.safetensors");
    fs::write(&path, content).unwrap();
    let error = Checkpoint::load(&path).unwrap_err();
    assert!(matches!(error, CheckpointError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    error.to_string()
}

#[test]
fn what_is_saved_is_loaded_to_the_last_bit() {
    let (_dir, path) = saved();
    let mut checkpoint = Checkpoint::load(&path).unwrap();
    assert_eq!(bits(&checkpoint.take("weights", &[2, 3]).unwrap()), bits(&WEIGHTS));
    assert_eq!(bits(&checkpoint.take("a scalar", &[]).unwrap()), bits(&[f32::NAN]));
    assert!(checkpoint.take("nothing", &[0, 7]).unwrap().is_empty());
    assert_eq!(checkpoint.note("note 7").unwrap(), "\"quoted\"\nand ünlike");
    assert_eq!(checkpoint.notes.len(), 20);
}

#[test]
fn half_precision_rounds_to_the_nearest() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("half");
    let values: Vec<f32> = (0..CHUNK + 5).map(|i| (i as f32 - 7e3) / 3e3).collect();
    let mut snapshot = Snapshot::default();
    snapshot.add("x", &[values.len()], &values);
    snapshot.with_precision(Precision::Half).save(&path).unwrap();
    assert!(fs::metadata(&path).unwrap().len() < 2 * values.len() as u64 + 200);
    let found = Checkpoint::load(&path).unwrap().take("x", &[values.len()]).unwrap();
    for (found, value) in found.iter().zip(&values) {
        // Half of the last of eleven bits.
        assert!((found - value).abs() <= value.abs() / 2048.0 + 1e-7, "{found} {value}");
    }
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    assert!(refusal(&bytes).contains("checksum"));
}

#[test]
fn tensors_of_more_than_a_chunk_keep_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long");
    let values: Vec<f32> = (0..3 * CHUNK + 5).map(|i| i as f32).collect();
    let mut snapshot = Snapshot::default();
    snapshot.add("b", &[values.len()], &values);
    snapshot.add("a", &[CHUNK], &values[1..=CHUNK]);
    snapshot.save(&path).unwrap();
    let mut checkpoint = Checkpoint::load(&path).unwrap();
    assert_eq!(checkpoint.take("b", &[values.len()]).unwrap(), values);
    assert_eq!(checkpoint.take("a", &[CHUNK]).unwrap(), values[1..=CHUNK]);
}

#[test]
fn equal_state_gives_equal_bytes() {
    let (dir, path) = saved();
    let expected = fs::read(path).unwrap();
    let again = dir.path().join("again.safetensors");
    for _ in 0..50 {
        snapshot(&WEIGHTS, &[f32::NAN]).save(&again).unwrap();
        assert_eq!(fs::read(&again).unwrap(), expected);
    }
    snapshot(&WEIGHTS, &[0.0]).save(&again).unwrap();
    assert_ne!(fs::read(&again).unwrap(), expected);
}

#[test]
fn other_readers_of_the_format_agree() {
    let (_dir, path) = saved();
    let bytes = fs::read(path).unwrap();
    let (length, header) = SafeTensors::read_metadata(&bytes).unwrap();
    assert_eq!(length % 8, 0);
    assert_eq!(header.metadata().as_ref().unwrap().len(), 21);
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let weights = tensors.tensor("weights").unwrap();
    assert_eq!((weights.dtype(), weights.shape()), (Dtype::F32, &[2, 3][..]));
    let expected: Vec<u8> = WEIGHTS.iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(weights.data(), expected);
}

#[test]
fn files_of_other_writers_are_read() {
    let header = r#"{"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},
            "a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}"#;
    let mut file = file_of(header, 12);
    let start = file.len() - 12;
    file[start + 4..][..4].copy_from_slice(&1.5f32.to_le_bytes());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("foreign");
    fs::write(&path, file).unwrap();
    let mut checkpoint = Checkpoint::load(&path).unwrap();
    assert_eq!(checkpoint.take("b", &[2]).unwrap(), [1.5, 0.0]);
    assert_eq!(checkpoint.take("a", &[]).unwrap(), [0.0]);
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let (_dir, path) = saved();
    let whole = fs::read(path).unwrap();
    for length in 0..whole.len() {
        refusal(&whole[..length]);
    }
    refusal(&[&whole[..], &[0]].concat());
}

#[test]
fn a_changed_value_is_noticed() {
    let (_dir, path) = saved();
    let mut bytes = fs::read(path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    assert!(refusal(&bytes).contains("checksum"));
}

#[test]
fn garbage_is_refused() {
    let mut state = 1u32;
    for length in 0..300 {
        let garbage: Vec<u8> = (0..length)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        refusal(&garbage);
        refusal(&file_of(&String::from_utf8_lossy(&garbage), 0));
    }
    assert!(refusal(&u64::MAX.to_le_bytes()).contains("18446744073709551615 bytes"));
    refusal(&[0; 64]);
    refusal(&file_of(&"[".repeat(100_000), 0));
}

#[test]
fn headers_that_lie_are_refused() {
    let of = |dtype: &str, shape: &str, start: u64, end: u64| {
        format!(r#"{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{start},{end}]}}"#)
    };
    let named = |tensor: String| format!(r#"{{"x":{tensor}}}"#);
    let refused = |header: String| refusal(&file_of(&header, 8));
    assert!(refused(named(of("F64", "[1]", 0, 8))).contains("'x' is of type F64, not F32 or"));
    refused(named(of("F16", "[3]", 0, 8)));
    refused(named(of("F31", "[2]", 0, 8)));
    refused(named(of("F32", "[3]", 0, 8)));
    refused(named(of("F32", "[-2]", 0, 8)));
    refused(named(of("F32", "[1]", 4, 8)));
    refused(named(of("F32", "[2]", 8, 0)));
    refused(named(of("F32", "[3]", 0, 12)));
    refused(named(of("F32", "[4294967296,4294967296]", 0, 8)));
    refused(named(of("F32", "[4611686018427387904]", 0, 0)));
    refused(r#"{"__metadata__":{"a":1}}"#.to_owned());
    // Sizes that are fine one by one, and whose sum has no room in a word.
    let size = (1u64 << 61) - 4;
    let huge: Vec<String> = (0..8)
        .map(|i| {
            let tensor = of("F32", &format!("[{}]", size / 4), i * size, (i + 1) * size);
            format!(r#""{i}":{tensor}"#)
        })
        .collect();
    refused(format!("{{{}}}", huge.join(",")));
    // The same header without a lie is read: it is the lies that were refused.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("honest");
    fs::write(&path, file_of(&named(of("F32", "[2]", 0, 8)), 8)).unwrap();
    Checkpoint::load(&path).unwrap();
}

#[test]
fn what_is_no_file_is_an_error_with_its_path() {
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path().to_path_buf(), dir.path().join("missing")] {
        let Err(CheckpointError::File(error)) = Checkpoint::load(&path) else {
            panic!("{} cannot be a checkpoint", path.display())
        };
        assert_eq!(error.path, path);
    }
}

#[test]
fn tensors_that_cannot_be_read_back_are_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("refused");
    for (name, shape) in [("x", &[2][..]), (NOTES, &[3]), ("x", &[usize::MAX, 5])] {
        let mut snapshot = Snapshot::default();
        snapshot.add(name, shape, &[0.0; 3]);
        let error = snapshot.save(&path).unwrap_err();
        assert!(matches!(error, CheckpointError::Unfit { .. }), "{error}");
        assert!(!path.exists());
    }
}

#[test]
fn layouts_are_kept_tensor_by_tensor() {
    let mut layout = Layout::default();
    layout.add("z", &[2, 2], Initial::Constant(0.0));
    layout.add("a", &[3], Initial::Constant(0.0));
    let params = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
    let moments = params.map(|value: f32| -value);
    let mut snapshot = Snapshot::default();
    snapshot.add_layout("model.", &layout, &params);
    snapshot.add_layout("momentum.", &layout, &moments);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("layout");
    snapshot.save(&path).unwrap();
    let checkpoint = Checkpoint::load(&path).unwrap();
    assert_eq!(checkpoint.clone().take("model.a", &[3]).unwrap(), [5.0, 6.0, 7.0]);
    assert_eq!(checkpoint.clone().take_layout("model.", &layout).unwrap(), params);
    assert_eq!(checkpoint.clone().take_layout("momentum.", &layout).unwrap(), moments);

    layout.add("new", &[1], Initial::Constant(0.0));
    let error = checkpoint.clone().take_layout("model.", &layout).unwrap_err().to_string();
    assert!(error.contains("there is no tensor 'model.new'"), "{error}");
    let error = checkpoint.clone().take("model.a", &[1, 3]).unwrap_err().to_string();
    assert!(error.contains("'model.a' has the shape [3], not [1, 3]"), "{error}");
    let error = checkpoint.note("step").unwrap_err().to_string();
    assert!(error.contains("there is no note 'step'"), "{error}");
    let mut short = Snapshot::default();
    short.add_layout("model.", &layout, &params);
    assert!(short.save(&path).is_err());
}
