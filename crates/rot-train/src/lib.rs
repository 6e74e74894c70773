//! Training: recipes, batches of contexts, the loop, run folders; and teacher-forced evaluation.

mod card;
mod data;
mod encode;
pub mod eval;
mod hardest;
mod model;
mod recipe;
pub mod reproduce;
pub mod run;
mod session;
mod shapes;
mod trainer;

pub use card::{Card, CardError, Claim, FreeRunClaim};
pub use data::{BatchSize, DataError, Source};
pub use model::{Model, ModelError};
pub use recipe::{
    Data, Evaluation, ModelConfig, ProblemSize, Recipe, RecipeError, Schedule, Start, Training,
};
pub use session::{Ending, Event, Session, TrainError};
pub use trainer::{Step, Trainer};
