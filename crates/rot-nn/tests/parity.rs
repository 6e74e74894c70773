//! Agreement with PyTorch, from data that PyTorch made.

use std::fs;
use std::path::{Path, PathBuf};

use rot_nn::parity::{ParityError, compare};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

#[test]
fn the_transformer_computes_what_pytorch_computes() {
    let parity = compare(&data("transformer_small.safetensors")).unwrap();
    assert!(parity.holds(), "{parity:#?}");
    assert_eq!((parity.losses.len(), parity.gradients.len()), (10, 27));
}

#[test]
fn the_lstm_computes_what_pytorch_computes() {
    let parity = compare(&data("lstm_small.safetensors")).unwrap();
    assert!(parity.holds(), "{parity:#?}");
    assert_eq!((parity.losses.len(), parity.gradients.len()), (10, 11));
    assert!(parity.parameters_after < 1e-5, "{}", parity.parameters_after);
}

#[test]
fn a_difference_is_seen() {
    let mut bytes = fs::read(data("lstm_small.safetensors")).unwrap();
    // One parameter somewhere in the middle of the file, twice as large.
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let text = String::from_utf8(bytes[8..8 + header].to_vec()).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let place = json["param.lstm.weight_hr_l1"]["data_offsets"][0].as_u64().unwrap() as usize;
    let at = 8 + header + place;
    let value = f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) * 2.0 + 0.1;
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("changed.safetensors");
    fs::write(&path, bytes).unwrap();
    assert!(!compare(&path).unwrap().holds());
}

#[test]
fn what_is_no_parity_file_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    assert!(matches!(compare(&path), Err(ParityError::Read { .. })));
    let whole = fs::read(data("lstm_small.safetensors")).unwrap();
    for bytes in
        [&b""[..], b"garbage that is long enough", &whole[..whole.len() - 1], &whole[..100]]
    {
        fs::write(&path, bytes).unwrap();
        assert!(matches!(compare(&path), Err(ParityError::Format { .. })));
    }
}
