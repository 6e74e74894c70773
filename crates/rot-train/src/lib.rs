//! Training: recipes, batches of contexts, the loop, run folders; and teacher-forced evaluation.

mod data;
pub mod eval;
mod model;
mod recipe;
pub mod run;
mod trainer;

pub use data::{DataError, Source, push_context};
pub use model::{Model, ModelError};
pub use recipe::{
    Data, Evaluation, ModelConfig, ProblemSize, Recipe, RecipeError, Schedule, Training,
};
pub use trainer::{Step, Trainer};
