//! GGUF files, which llama.cpp and what is built on it run.
//!
//! Version 3: a header of keys and of names, shapes and places of tensors; then the tensors as 32-bit
//! floats, each at a multiple of 32 bytes. Shapes are written with the number of columns first.
//!
//! The tokenizer is made so that token text comes out as it went in. All tokens are user-defined ones, which
//! llama.cpp finds in a text before anything else, and which it does not hide when they are generated.
//! STOP and THINK both end a generation and stay at the end of the text.

use std::io::{self, Write};

use rot_core::Token;

use crate::llama::{Llama, Role, Weight};

const VERSION: u32 = 3;
const ALIGNMENT: usize = 32;
/// The format's number of the type of our tensors, and of a file with no other.
const F32: u32 = 0;
/// The format's number of a kind of token.
const USER_DEFINED: i32 = 4;

/// Writes a model as a GGUF file; `name` is what programs call it.
pub fn write_gguf(llama: &Llama<'_>, name: &str, out: &mut impl Write) -> io::Result<()> {
    let keys = keys(llama, name)?;
    let mut header = b"GGUF".to_vec();
    header.extend(VERSION.to_le_bytes());
    header.extend((llama.weights().len() as u64).to_le_bytes());
    header.extend((keys.len() as u64).to_le_bytes());
    for (key, value) in &keys {
        put_text(&mut header, key);
        value.put(&mut header);
    }
    let mut offset = 0;
    for weight in llama.weights() {
        put_text(&mut header, &tensor_name(weight));
        header.extend((weight.shape.len() as u32).to_le_bytes());
        weight.shape.iter().rev().for_each(|&n| header.extend((n as u64).to_le_bytes()));
        header.extend(F32.to_le_bytes());
        header.extend((offset as u64).to_le_bytes());
        offset += size_of_val(weight.values).next_multiple_of(ALIGNMENT);
    }
    header.resize(header.len().next_multiple_of(ALIGNMENT), 0);
    out.write_all(&header)?;
    llama.weights().iter().try_for_each(|weight| write_tensor(llama, weight, out))
}

/// What a key is set to.
enum Value {
    U32(u32),
    F32(f32),
    Bool(bool),
    Text(String),
    Texts(Vec<String>),
    I32s(Vec<i32>),
}

impl Value {
    /// Appends the number of its type, and itself.
    fn put(&self, out: &mut Vec<u8>) {
        let [u32_type, i32_type, f32_type, bool_type, text_type, array_type] = [4, 5, 6, 7, 8, 9];
        let mut begin = |numbers: &[u32]| numbers.iter().for_each(|n| out.extend(n.to_le_bytes()));
        match self {
            Value::U32(value) => begin(&[u32_type, *value]),
            Value::F32(value) => begin(&[f32_type, value.to_bits()]),
            Value::Bool(value) => {
                begin(&[bool_type]);
                out.push(u8::from(*value));
            }
            Value::Text(text) => {
                begin(&[text_type]);
                put_text(out, text);
            }
            Value::Texts(texts) => {
                begin(&[array_type, text_type]);
                out.extend((texts.len() as u64).to_le_bytes());
                texts.iter().for_each(|text| put_text(out, text));
            }
            Value::I32s(values) => {
                begin(&[array_type, i32_type]);
                out.extend((values.len() as u64).to_le_bytes());
                values.iter().for_each(|value| out.extend(value.to_le_bytes()));
            }
        }
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn keys(llama: &Llama<'_>, name: &str) -> io::Result<Vec<(&'static str, Value)>> {
    let config = llama.config;
    let text = |text: &str| Value::Text(text.to_owned());
    let size = |n: usize| u32::try_from(n).map(Value::U32).map_err(io::Error::other);
    let tokens = llama.vocabulary.tokens();
    let mut keys = vec![
        ("general.architecture", text("llama")),
        ("general.name", text(name)),
        ("general.file_type", Value::U32(F32)),
        ("general.alignment", size(ALIGNMENT)?),
        ("llama.context_length", size(config.limit)?),
        ("llama.embedding_length", size(config.width)?),
        ("llama.block_count", size(config.layers)?),
        ("llama.feed_forward_length", size(config.feed_forward)?),
        ("llama.attention.head_count", size(config.heads)?),
        ("llama.attention.head_count_kv", size(config.heads)?),
        ("llama.attention.layer_norm_rms_epsilon", Value::F32(llama.epsilon())),
        ("llama.rope.dimension_count", size(llama.head())?),
        ("llama.rope.freq_base", Value::F32(llama.rotary_base())),
        ("llama.vocab_size", size(tokens.len())?),
        ("tokenizer.ggml.model", text("gpt2")),
        ("tokenizer.ggml.pre", text("gpt-2")),
        (
            "tokenizer.ggml.tokens",
            Value::Texts(tokens.iter().map(|token| token.text().to_owned()).collect()),
        ),
        ("tokenizer.ggml.token_type", Value::I32s(vec![USER_DEFINED; tokens.len()])),
        // This kind of tokenizer must have one; it is never reached.
        ("tokenizer.ggml.merges", Value::Texts(vec!["0 0".to_owned()])),
        ("tokenizer.ggml.add_bos_token", Value::Bool(false)),
        ("tokenizer.ggml.add_eos_token", Value::Bool(false)),
        ("tokenizer.ggml.add_space_prefix", Value::Bool(false)),
    ];
    for (key, token) in [
        ("tokenizer.ggml.bos_token_id", Token::GO),
        ("tokenizer.ggml.eos_token_id", Token::STOP),
        ("tokenizer.ggml.eot_token_id", Token::THINK),
        ("tokenizer.ggml.padding_token_id", Token::PAD),
    ] {
        if let Some(id) = llama.vocabulary.id(token) {
            keys.push((key, size(id)?));
        }
    }
    Ok(keys)
}

fn tensor_name(weight: &Weight<'_>) -> String {
    let part = match weight.role {
        Role::Embedding => return "token_embd.weight".to_owned(),
        Role::LastNorm => return "output_norm.weight".to_owned(),
        Role::Output => return "output.weight".to_owned(),
        Role::AttentionNorm => "attn_norm",
        Role::Query => "attn_q",
        Role::Key => "attn_k",
        Role::Value => "attn_v",
        Role::AttentionOut => "attn_output",
        Role::FeedForwardNorm => "ffn_norm",
        Role::Gate => "ffn_gate",
        Role::Up => "ffn_up",
        Role::Down => "ffn_down",
    };
    format!("blk.{}.{part}.weight", weight.layer)
}

fn write_tensor(llama: &Llama<'_>, weight: &Weight<'_>, out: &mut impl Write) -> io::Result<()> {
    let columns = weight.shape.last().copied().unwrap_or(1);
    let rows = weight.values.len() / columns;
    let mut bytes = Vec::with_capacity(size_of::<f32>() * columns);
    for row in 0..rows {
        let row = match weight.role {
            Role::Query | Role::Key => rotated_row(row, llama.head()),
            _ => row,
        };
        bytes.clear();
        let values = &weight.values[row * columns..][..columns];
        values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        out.write_all(&bytes)?;
    }
    let size = size_of_val(weight.values);
    out.write_all(&[0; ALIGNMENT][..size.next_multiple_of(ALIGNMENT) - size])
}

/// Which of our rows a row of a query or key matrix is. The two channels that rotary positions turn together
/// are half a head apart with us and next to each other in llama.cpp.
fn rotated_row(row: usize, head: usize) -> usize {
    let channel = row % head;
    row - channel + channel / 2 + channel % 2 * (head / 2)
}

#[cfg(test)]
mod tests;
