//! Training: recipes, batches of contexts, the loop, run folders; and teacher-forced evaluation.

mod model;
pub mod run;

pub use model::Model;
