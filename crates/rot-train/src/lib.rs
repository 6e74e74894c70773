//! Training: recipes, batches of contexts, the loop, run folders; and teacher-forced evaluation.

pub mod eval;
mod model;

pub use model::{Model, ModelError};
