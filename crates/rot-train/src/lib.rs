//! Training: recipes, batches of contexts, the loop, run folders; and teacher-forced evaluation.

mod model;

pub use model::Model;
