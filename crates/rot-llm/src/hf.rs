//! Folders for Hugging Face Transformers, and for servers that read the same.
//!
//! The tokenizer takes token text: a name in angle brackets, or a single character. Only PAD is one of its
//! special tokens, as servers leave those out of what they give back; GO, STOP, THINK and TAIL must come
//! through. STOP and THINK end a generation.

use rot_core::Token;
use serde_json::{Map, Value, json};

use crate::llama::{Llama, Role, Weight};

/// The name of the file with the weights.
pub const HF_WEIGHTS: &str = "model.safetensors";
/// What its metadata must say: whose order of elements it has.
pub const HF_METADATA: (&str, &str) = ("format", "pt");

/// All files but the weights, with their names.
pub fn hf_texts(llama: &Llama<'_>) -> [(&'static str, String); 4] {
    [
        ("config.json", config(llama)),
        ("generation_config.json", generation_config(llama)),
        ("tokenizer.json", tokenizer(llama)),
        ("tokenizer_config.json", tokenizer_config(llama)),
    ]
    .map(|(name, value)| (name, format!("{value:#}\n")))
}

/// The name of a weight in the file.
pub fn hf_tensor_name(weight: &Weight<'_>) -> String {
    let part = match weight.role {
        Role::Embedding => return "model.embed_tokens.weight".to_owned(),
        Role::LastNorm => return "model.norm.weight".to_owned(),
        Role::Output => return "lm_head.weight".to_owned(),
        Role::AttentionNorm => "input_layernorm",
        Role::Query => "self_attn.q_proj",
        Role::Key => "self_attn.k_proj",
        Role::Value => "self_attn.v_proj",
        Role::AttentionOut => "self_attn.o_proj",
        Role::FeedForwardNorm => "post_attention_layernorm",
        Role::Gate => "mlp.gate_proj",
        Role::Up => "mlp.up_proj",
        Role::Down => "mlp.down_proj",
    };
    format!("model.layers.{}.{part}.weight", weight.layer)
}

fn config(llama: &Llama<'_>) -> Value {
    let config = llama.config;
    let id = |token: Token| llama.vocabulary.id(token);
    json!({
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "torch_dtype": "float32",
        "hidden_size": config.width,
        "intermediate_size": config.feed_forward,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.heads,
        "head_dim": llama.head(),
        "hidden_act": "silu",
        "rms_norm_eps": decimal(llama.epsilon()),
        "rope_theta": decimal(llama.rotary_base()),
        "max_position_embeddings": config.limit,
        "vocab_size": llama.vocabulary.len(),
        "tie_word_embeddings": false,
        "attention_bias": false,
        "mlp_bias": false,
        "bos_token_id": id(Token::GO),
        "eos_token_id": ends(llama),
        "pad_token_id": id(Token::PAD),
    })
}

/// The shortest decimal number that is the given one as a 32-bit float: not 9.999999747378752e-06.
fn decimal(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}

/// The tokens that end a generation.
fn ends(llama: &Llama<'_>) -> Vec<usize> {
    [Token::STOP, Token::THINK].iter().filter_map(|&token| llama.vocabulary.id(token)).collect()
}

fn generation_config(llama: &Llama<'_>) -> Value {
    json!({
        "do_sample": false,
        "bos_token_id": llama.vocabulary.id(Token::GO),
        "eos_token_id": ends(llama),
        "pad_token_id": llama.vocabulary.id(Token::PAD),
    })
}

fn tokenizer(llama: &Llama<'_>) -> Value {
    let tokens = llama.vocabulary.tokens().iter().enumerate();
    let ids: Map<String, Value> =
        tokens.map(|(id, token)| (token.text().to_owned(), json!(id))).collect();
    let special: Vec<Value> = (llama.vocabulary.id(Token::PAD).iter())
        .map(|id| {
            json!({
                "id": id,
                "content": Token::PAD.text(),
                "single_word": false,
                "lstrip": false,
                "rstrip": false,
                "normalized": false,
                "special": true,
            })
        })
        .collect();
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": special,
        "normalizer": null,
        "pre_tokenizer": {
            "type": "Split",
            "pattern": { "Regex": "<[A-Z]+>|." },
            "behavior": "Isolated",
            "invert": false,
        },
        "post_processor": null,
        "decoder": { "type": "Fuse" },
        // Servers try a tokenizer with words of theirs when they start, so unknown text must not be an
        // error. It becomes what never is in a context.
        "model": { "type": "WordLevel", "vocab": ids, "unk_token": Token::PAD.text() },
    })
}

fn tokenizer_config(llama: &Llama<'_>) -> Value {
    json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": llama.config.limit,
        "clean_up_tokenization_spaces": false,
        "pad_token": llama.vocabulary.id(Token::PAD).map(|_| Token::PAD.text()),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::testing::Small;

    fn text(name: &str) -> Value {
        let small = Small::new();
        let texts = hf_texts(&small.llama());
        let (_, text) = texts.iter().find(|(other, _)| *other == name).unwrap();
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn the_config_tells_the_shape() {
        let config = text("config.json");
        for (key, value) in [
            ("hidden_size", json!(32)),
            ("intermediate_size", json!(24)),
            ("num_hidden_layers", json!(2)),
            ("num_attention_heads", json!(2)),
            ("num_key_value_heads", json!(2)),
            ("head_dim", json!(16)),
            ("vocab_size", json!(45)),
            ("max_position_embeddings", json!(64)),
            ("rms_norm_eps", json!(1e-5)),
            ("rope_theta", json!(10_000.0)),
            ("hidden_act", json!("silu")),
            ("tie_word_embeddings", json!(false)),
            ("architectures", json!(["LlamaForCausalLM"])),
            ("eos_token_id", json!([2, 3])),
        ] {
            assert_eq!(config[key], value, "{key}");
        }
        assert_eq!(text("generation_config.json")["eos_token_id"], json!([2, 3]));
    }

    #[test]
    fn every_token_has_our_id_and_only_pad_is_special() {
        let small = Small::new();
        let tokenizer = text("tokenizer.json");
        let ids = tokenizer["model"]["vocab"].as_object().unwrap();
        assert_eq!(ids.len(), small.vocabulary.len());
        for (id, token) in small.vocabulary.tokens().iter().enumerate() {
            assert_eq!(ids[token.text()], json!(id), "{token}");
        }
        assert_eq!(tokenizer["model"]["unk_token"], "<PAD>");
        let added = tokenizer["added_tokens"].as_array().unwrap();
        assert_eq!(added.len(), 1);
        assert_eq!((&added[0]["content"], &added[0]["id"]), (&json!("<PAD>"), &json!(0)));
        assert_eq!(text("tokenizer_config.json")["pad_token"], "<PAD>");
    }

    #[test]
    fn weights_have_names_of_their_own() {
        let small = Small::new();
        let llama = small.llama();
        let names: HashSet<String> = llama.weights().iter().map(hf_tensor_name).collect();
        assert_eq!(names.len(), llama.weights().len());
        let named = |name: &str| {
            llama.weights().iter().find(|weight| hf_tensor_name(weight) == name).unwrap()
        };
        assert_eq!(named("model.layers.1.mlp.up_proj.weight").shape, [24, 32]);
        // Queries, keys and values lie one after another in our file.
        let [q, k, v] =
            ["q", "k", "v"].map(|part| format!("model.layers.0.self_attn.{part}_proj.weight"));
        let first = named(&q).values[0];
        assert_eq!(named(&k).values[0], first + 32.0 * 32.0);
        assert_eq!(named(&v).values[0], first + 2.0 * 32.0 * 32.0);
    }
}
