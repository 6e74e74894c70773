//! Our models as Llama's: the same arithmetic under other names.
//!
//! A Transformer with RMSNorm in front of its branches, rotary positions, a gated feed-forward branch,
//! no biases and nothing else computes what a Llama of the same size computes. So a file for one is the
//! parameters of the other, cut apart: our queries, keys and values are one matrix, as are gate and up.

use std::collections::HashMap;
use std::fmt;

use rot_core::Vocabulary;
use rot_nn::kernels::norm::EPSILON;
use rot_nn::{Layout, ROTARY_BASE, Tensor, TransformerConfig};
use serde::Serialize;
use serde_json::{Value, json};

/// A model of ours that computes what a Llama does.
#[derive(Clone, Debug)]
pub struct Llama<'a> {
    /// Its settings.
    pub config: &'a TransformerConfig,
    /// The tokens it knows; a token's id is its rank.
    pub vocabulary: &'a Vocabulary,
    weights: Vec<Weight<'a>>,
}

/// A matrix of a Llama, or the gain of a norm.
#[derive(Clone, Debug, PartialEq)]
pub struct Weight<'a> {
    /// What it is there for.
    pub role: Role,
    /// The layer; 0 for what belongs to none.
    pub layer: usize,
    /// Rows and columns, or channels; a row gives one channel of the result.
    pub shape: Vec<usize>,
    /// Its elements, row by row.
    pub values: &'a [f32],
}

/// What a weight is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of the papers")]
pub enum Role {
    Embedding,
    AttentionNorm,
    Query,
    Key,
    Value,
    AttentionOut,
    FeedForwardNorm,
    Gate,
    Up,
    Down,
    LastNorm,
    Output,
}

/// What a model is, for whoever exports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Layers of attention and feed-forward.
    pub layers: usize,
    /// Channels of a token.
    pub width: usize,
    /// Attention heads.
    pub heads: usize,
    /// Channels inside the feed-forward branch.
    pub feed_forward: usize,
    /// Tokens that it knows.
    pub vocabulary: usize,
    /// The most tokens in a context.
    pub limit: usize,
    /// Numbers in all its weights.
    pub parameters: usize,
}

/// A setting that no Llama has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its name in a recipe.
    pub setting: &'static str,
    /// What it is, as in a recipe.
    pub is: String,
    /// What it must be.
    pub must_be: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} instead of {}", self.setting, self.is, self.must_be)
    }
}

/// Why a model cannot be written as a Llama.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LlamaError {
    /// It computes something else.
    #[error(
        "the model is not Llama-shaped: its recipe has {}; train one with \
         'rot train PROBLEM --size N --recipe fast-llama --out DIR'",
        .0.iter().map(Difference::to_string).collect::<Vec<_>>().join(", ")
    )]
    Shape(Vec<Difference>),
    /// Its parameters are not those of its settings.
    #[error("the model has no tensor '{name}' of shape {shape:?}: it is not that of its recipe")]
    Tensor {
        /// The tensor that is not there.
        name: String,
        /// The shape it must have.
        shape: Vec<usize>,
    },
}

impl<'a> Llama<'a> {
    /// A model with the given settings, whose parameters lie as the layout says.
    pub fn new(
        config: &'a TransformerConfig,
        layout: &Layout,
        params: &'a [f32],
        vocabulary: &'a Vocabulary,
    ) -> Result<Llama<'a>, LlamaError> {
        let differences = differences(config);
        if !differences.is_empty() {
            return Err(LlamaError::Shape(differences));
        }
        let mut parts = Parts {
            tensors: layout.tensors().iter().map(|tensor| (&*tensor.name, tensor)).collect(),
            params,
            weights: Vec::new(),
        };
        parts.take_all(config, vocabulary.len())?;
        Ok(Llama { config, vocabulary, weights: parts.weights })
    }

    /// All weights, from the embedding to the output.
    pub fn weights(&self) -> &[Weight<'a>] {
        &self.weights
    }

    /// Channels of a head.
    pub fn head(&self) -> usize {
        self.config.width / self.config.heads
    }

    /// What is added to the mean square in its norms.
    pub fn epsilon(&self) -> f32 {
        EPSILON
    }

    /// The base of its rotary angles.
    pub fn rotary_base(&self) -> f32 {
        ROTARY_BASE as f32
    }

    /// What it is.
    pub fn summary(&self) -> Summary {
        let TransformerConfig { layers, width, heads, feed_forward, limit, .. } = *self.config;
        let parameters = self.weights.iter().map(|weight| weight.values.len()).sum();
        let vocabulary = self.vocabulary.len();
        Summary { layers, width, heads, feed_forward, vocabulary, limit, parameters }
    }
}

/// The settings that make a Transformer something else than a Llama.
fn differences(config: &TransformerConfig) -> Vec<Difference> {
    // As in a recipe, so that names and values are those that people write.
    let settings = serde_json::to_value(config).unwrap_or(Value::Null);
    let must_be = [
        ("norm", json!("rms")),
        ("placement", json!("before")),
        ("positions", json!("rotary")),
        ("turn", json!(1.0)),
        ("activation", json!("gated")),
        ("bias", json!(false)),
        ("convolution", json!(0)),
        ("digit_index", json!(0)),
        ("number_index", json!(0)),
        ("part_index", json!(0)),
    ];
    let differs = must_be.into_iter().filter(|(setting, value)| settings[*setting] != *value);
    differs
        .map(|(setting, value)| Difference {
            setting,
            is: settings[setting].to_string(),
            must_be: value.to_string(),
        })
        .collect()
}

/// Cuts parameters into weights.
struct Parts<'a, 'l> {
    tensors: HashMap<&'l str, &'l Tensor>,
    params: &'a [f32],
    weights: Vec<Weight<'a>>,
}

impl Parts<'_, '_> {
    fn take_all(
        &mut self,
        config: &TransformerConfig,
        vocabulary: usize,
    ) -> Result<(), LlamaError> {
        let TransformerConfig { layers, width, feed_forward, .. } = *config;
        self.take("embedding.weight", 0, &[vocabulary, width], &[Role::Embedding])?;
        for layer in 0..layers {
            let mut take = |part: &str, shape: &[usize], roles: &[Role]| {
                let name = format!("transformer_encoder.layers.{layer}.{part}");
                self.take(&name, layer, shape, roles)
            };
            take("norm1.weight", &[width], &[Role::AttentionNorm])?;
            let attention = [Role::Query, Role::Key, Role::Value];
            take("self_attn.in_proj_weight", &[width, width], &attention)?;
            take("self_attn.out_proj.weight", &[width, width], &[Role::AttentionOut])?;
            take("norm2.weight", &[width], &[Role::FeedForwardNorm])?;
            take("linear1.weight", &[feed_forward, width], &[Role::Gate, Role::Up])?;
            take("linear2.weight", &[width, feed_forward], &[Role::Down])?;
        }
        self.take("norm.weight", 0, &[width], &[Role::LastNorm])?;
        self.take("output.weight", 0, &[vocabulary, width], &[Role::Output])
    }

    /// Takes a tensor apart into weights of one shape, one above the other.
    fn take(
        &mut self,
        name: &str,
        layer: usize,
        shape: &[usize],
        roles: &[Role],
    ) -> Result<(), LlamaError> {
        let mut whole = shape.to_vec();
        whole[0] *= roles.len();
        let tensor = self.tensors.get(name).filter(|tensor| tensor.shape == whole);
        let values = tensor.and_then(|tensor| self.params.get(tensor.range.clone()));
        let values =
            values.ok_or_else(|| LlamaError::Tensor { name: name.to_owned(), shape: whole })?;
        let parts = values.chunks_exact(values.len() / roles.len());
        self.weights.extend(parts.zip(roles).map(|(values, &role)| Weight {
            role,
            layer,
            shape: shape.to_vec(),
            values,
        }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CONFIG, Small};
    use rot_nn::{Activation, Placement, Positions};

    #[test]
    fn every_parameter_is_in_one_weight() {
        let small = Small::new();
        let llama = small.llama();
        let mut all: Vec<f32> =
            llama.weights().iter().flat_map(|weight| weight.values.iter().copied()).collect();
        assert_eq!(llama.summary().parameters, small.params.len());
        all.sort_by(f32::total_cmp);
        let mut params = small.params.clone();
        params.sort_by(f32::total_cmp);
        assert_eq!(all, params);
        for weight in llama.weights() {
            assert_eq!(weight.shape.iter().product::<usize>(), weight.values.len(), "{weight:?}");
        }
    }

    #[test]
    fn what_no_llama_has_is_named() {
        let small = Small::new();
        let refused = |config: &TransformerConfig| {
            let error =
                Llama::new(config, &small.layout(), &small.params, &small.vocabulary).unwrap_err();
            error.to_string()
        };
        let paper = refused(&TransformerConfig::default());
        for part in [
            r#"norm = "layer" instead of "rms""#,
            r#"placement = "after" instead of "before""#,
            r#"positions = "sinusoidal" instead of "rotary""#,
            r#"activation = "relu" instead of "gated""#,
            "bias = true instead of false",
            "--recipe fast-llama",
        ] {
            assert!(paper.contains(part), "{paper}");
        }
        assert!(!paper.contains("convolution"), "{paper}");
        for (changed, part) in [
            (TransformerConfig { convolution: 4, ..CONFIG }, "has convolution = 4 instead of 0;"),
            (TransformerConfig { digit_index: 8, ..CONFIG }, "has digit_index = 8 instead of 0;"),
            (TransformerConfig { positions: Positions::Structured, ..CONFIG }, "\"structured\""),
            (TransformerConfig { turn: 2.0, ..CONFIG }, "turn = 2.0"),
            (TransformerConfig { placement: Placement::After, ..CONFIG }, "\"after\""),
            (TransformerConfig { activation: Activation::Relu, ..CONFIG }, "\"relu\""),
        ] {
            let text = refused(&changed);
            assert!(text.contains(part) && text.matches("instead").count() == 1, "{text}");
        }
    }

    #[test]
    fn parameters_of_another_size_are_refused() {
        let small = Small::new();
        let wider = TransformerConfig { feed_forward: 99, ..CONFIG };
        let error =
            Llama::new(&wider, &small.layout(), &small.params, &small.vocabulary).unwrap_err();
        let expected = "the model has no tensor 'transformer_encoder.layers.0.linear1.weight' of \
                        shape [198, 32]: it is not that of its recipe";
        assert_eq!(error.to_string(), expected);
        let short = &small.params[1..];
        assert!(Llama::new(&CONFIG, &small.layout(), short, &small.vocabulary).is_err());
    }
}
