//! The recipes that come with the program.

/// The one for a problem unless another is asked for.
pub(crate) const DEFAULT: &str = "fast";

/// Names and texts.
pub(crate) const NAMED: &[(&str, &str)] = &[
    ("fast", include_str!("../../../recipes/fast/transformer.toml")),
    ("fast-llama", include_str!("../../../recipes/fast/llama.toml")),
    ("fast-lstm", include_str!("../../../recipes/fast/lstm.toml")),
    ("paper", include_str!("../../../recipes/paper/transformer.toml")),
    ("paper-lstm", include_str!("../../../recipes/paper/lstm.toml")),
];
