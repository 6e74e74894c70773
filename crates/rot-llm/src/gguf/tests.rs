//! A file is read back by a reader that shares nothing with the writer.

use std::collections::BTreeMap;

use super::*;
use crate::testing::{CONFIG, Small};

/// A GGUF file, taken apart.
struct File {
    keys: BTreeMap<String, Found>,
    tensors: BTreeMap<String, (Vec<u64>, Vec<f32>)>,
}

#[derive(Debug, PartialEq)]
enum Found {
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    Text(String),
    Array(Vec<Found>),
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let taken = self.bytes[self.at..self.at + N].try_into().unwrap();
        self.at += N;
        taken
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn text(&mut self) -> String {
        let length = self.u64() as usize;
        self.at += length;
        String::from_utf8(self.bytes[self.at - length..self.at].to_vec()).unwrap()
    }

    fn value(&mut self, kind: u32) -> Found {
        match kind {
            4 => Found::U32(self.u32()),
            5 => Found::I32(i32::from_le_bytes(self.take())),
            6 => Found::F32(f32::from_le_bytes(self.take())),
            7 => Found::Bool(self.take::<1>() == [1]),
            8 => Found::Text(self.text()),
            9 => {
                let (kind, length) = (self.u32(), self.u64());
                Found::Array((0..length).map(|_| self.value(kind)).collect())
            }
            other => panic!("no type {other} here"),
        }
    }
}

impl File {
    fn parse(bytes: &[u8]) -> File {
        let mut reader = Reader { bytes, at: 0 };
        assert_eq!(&reader.take::<4>(), b"GGUF");
        assert_eq!(reader.u32(), 3);
        let (tensors, keys) = (reader.u64(), reader.u64());
        let keys: BTreeMap<_, _> = (0..keys)
            .map(|_| {
                let (key, kind) = (reader.text(), reader.u32());
                (key, reader.value(kind))
            })
            .collect();
        let places: Vec<_> = (0..tensors)
            .map(|_| {
                let name = reader.text();
                let dimensions = reader.u32();
                let shape: Vec<u64> = (0..dimensions).map(|_| reader.u64()).collect();
                assert_eq!(reader.u32(), 0, "{name} holds 32-bit floats");
                (name, shape, reader.u64() as usize)
            })
            .collect();
        let data = &bytes[reader.at.next_multiple_of(32)..];
        let mut end = 0;
        let tensors = places.into_iter().map(|(name, shape, offset)| {
            assert!(offset.is_multiple_of(32) && offset >= end && offset < end + 32, "{name}");
            let length = shape.iter().product::<u64>() as usize;
            end = offset + 4 * length;
            let values = data[offset..end].as_chunks().0.iter().map(|&b| f32::from_le_bytes(b));
            (name, (shape, values.collect()))
        });
        let tensors = tensors.collect();
        assert_eq!(data.len(), end.next_multiple_of(32));
        File { keys, tensors }
    }
}

fn file(small: &Small) -> File {
    let mut bytes = Vec::new();
    write_gguf(&small.llama(), "small", &mut bytes).unwrap();
    File::parse(&bytes)
}

#[test]
fn keys_tell_the_shape() {
    let keys = file(&Small::new()).keys;
    for (key, value) in [
        ("context_length", 64),
        ("embedding_length", 32),
        ("block_count", 2),
        ("feed_forward_length", 24),
        ("attention.head_count", 2),
        ("attention.head_count_kv", 2),
        ("rope.dimension_count", 16),
        ("vocab_size", 45),
    ] {
        assert_eq!(keys[&format!("llama.{key}")], Found::U32(value), "{key}");
    }
    assert_eq!(keys["llama.attention.layer_norm_rms_epsilon"], Found::F32(1e-5));
    assert_eq!(keys["llama.rope.freq_base"], Found::F32(10_000.0));
    assert_eq!(keys["general.architecture"], Found::Text("llama".to_owned()));
    assert_eq!(keys["general.name"], Found::Text("small".to_owned()));
    assert_eq!(keys["general.alignment"], Found::U32(32));
}

#[test]
fn token_texts_have_our_ids() {
    let small = Small::new();
    let keys = file(&small).keys;
    let Found::Array(tokens) = &keys["tokenizer.ggml.tokens"] else { panic!("a list of tokens") };
    let expected = Token::ALL.iter().map(|token| Found::Text(token.text().to_owned()));
    assert!(tokens.iter().eq(&expected.collect::<Vec<_>>()));
    let types = (0..tokens.len()).map(|_| Found::I32(4)).collect();
    assert_eq!(keys["tokenizer.ggml.token_type"], Found::Array(types));
    assert_eq!(keys["tokenizer.ggml.add_bos_token"], Found::Bool(false));
    for (key, token) in [("eos", Token::STOP), ("eot", Token::THINK), ("padding", Token::PAD)] {
        let id = small.vocabulary.id(token).unwrap() as u32;
        assert_eq!(keys[&format!("tokenizer.ggml.{key}_token_id")], Found::U32(id));
    }
}

#[test]
fn tensors_are_the_weights() {
    let small = Small::new();
    let file = file(&small);
    assert_eq!(file.tensors.len(), 3 + 9 * CONFIG.layers);
    let ours = |name: &str| {
        let layout = small.layout();
        let tensor = layout.tensors().iter().find(|tensor| tensor.name == name).unwrap();
        small.params[tensor.range.clone()].to_vec()
    };
    let theirs = |name: &str| file.tensors[name].clone();
    assert_eq!(theirs("token_embd.weight"), (vec![32, 45], ours("embedding.weight")));
    assert_eq!(theirs("output.weight"), (vec![32, 45], ours("output.weight")));
    assert_eq!(theirs("output_norm.weight"), (vec![32], ours("norm.weight")));
    let layer = |part: &str| ours(&format!("transformer_encoder.layers.1.{part}"));
    let (gate_up, down) = (layer("linear1.weight"), layer("linear2.weight"));
    assert_eq!(theirs("blk.1.ffn_gate.weight"), (vec![32, 24], gate_up[..32 * 24].to_vec()));
    assert_eq!(theirs("blk.1.ffn_up.weight"), (vec![32, 24], gate_up[32 * 24..].to_vec()));
    assert_eq!(theirs("blk.1.ffn_down.weight"), (vec![24, 32], down));
    assert_eq!(theirs("blk.1.attn_norm.weight").1, layer("norm1.weight"));
    assert_eq!(theirs("blk.1.ffn_norm.weight").1, layer("norm2.weight"));
    assert_eq!(theirs("blk.1.attn_output.weight").1, layer("self_attn.out_proj.weight"));

    let attention = layer("self_attn.in_proj_weight");
    assert_eq!(theirs("blk.1.attn_v.weight").1, attention[2 * 32 * 32..]);
    // Of a head of 16 channels, pairs that are turned together come to lie side by side.
    for (name, first) in [("attn_q", 0), ("attn_k", 32)] {
        let (shape, values) = theirs(&format!("blk.1.{name}.weight"));
        assert_eq!(shape, [32, 32]);
        for (row, values) in values.chunks(32).enumerate() {
            let (head, pair, second) = (row / 16, row % 16 / 2, row % 2);
            let from = first + head * 16 + second * 8 + pair;
            assert_eq!(values, &attention[from * 32..][..32], "{name} row {row}");
        }
    }
}
