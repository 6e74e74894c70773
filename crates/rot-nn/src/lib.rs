//! Tiny models on a CPU: kernels, the Transformer and the LSTM of the paper with better settings
//! beside them, optimisers, and weights on disk. Tokens are ids here, nothing more.
//!
//! A [`Network`] computes; its parameters are one slice that [`Layout`] gives names to. Batches are
//! [`Packed`]: sequences one after another, without padding. One call works on one thread; training
//! splits a step over sequences and adds up the gradients.

mod config_error;
mod coordinates;
mod decode;
pub mod kernels;
mod layout;
mod lstm;
mod network;
mod optimizer;
mod packed;
pub mod parity;
pub mod speed;
#[cfg(test)]
mod testing;
mod transformer;

pub use config_error::ConfigError;
pub use coordinates::Role;
pub use decode::{Decoder, Memory, read_afresh};
pub use layout::{Initial, Layout, Tensor};
pub use lstm::{Lstm, LstmConfig};
pub use network::{Network, Score, Workspace};
pub use optimizer::{Optimizer, OptimizerConfig, sum_gradients};
pub use packed::{Packed, UNSUPERVISED};
pub use transformer::{
    Activation, Placement, Positions, ROTARY_BASE, Transformer, TransformerConfig,
};
