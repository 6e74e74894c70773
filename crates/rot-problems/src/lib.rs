//! The nine problems of the paper and the helpers they ask, as ground-truth procedures.
//!
//! ```
//! use rot_core::{Context, Text, ThoughtGraph};
//!
//! let question = rot_problems::read("408+351").unwrap();
//! let mut graph = ThoughtGraph::default();
//! let root = graph.unfold(question.problem, &question.tokens).unwrap();
//! assert_eq!(Text(graph.answer(root)).to_string(), "759<STOP>");
//!
//! let mut context = Context::default();
//! graph.write_rot(root, &mut context);
//! assert_eq!(
//!     Text(&context.x).to_string(),
//!     "<GO>408+351=<GO>8+1=9<STOP><GO>40+35=75<STOP>759<STOP>"
//! );
//! ```

mod add;
mod compare;
mod div;
mod knapsack;
mod lcs;
mod lines;
mod lps;
pub mod marks;
mod mcm;
mod mul;
pub mod number;
pub mod own;
pub mod random;
mod read;
mod sort;
pub mod stats;
mod sub;

pub use add::{Add, TernaryAdd};
pub use compare::{Compare, Equal};
pub use div::Div;
pub use knapsack::Knapsack;
pub use lcs::Lcs;
pub use lines::{LineError, Lines};
pub use lps::Lps;
pub use mcm::Mcm;
pub use mul::{Mul, TernaryMul};
pub use read::{Question, ReadError, problem_of, read, read_among};
pub use sort::{Merge, Sort};
pub use sub::Sub;

use rot_core::Problem;

/// Every problem, the paper's nine in its order and then the helpers. A new one is a line here.
pub static PROBLEMS: &[&dyn Problem] = &[
    &Add,
    &Sub,
    &Mul,
    &Div,
    &Lcs,
    &Lps,
    &Knapsack,
    &Mcm,
    &Sort,
    &Compare,
    &Equal,
    &TernaryAdd,
    &TernaryMul,
    &Merge,
];

/// Compiles and runs the worked example.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/adding-a-problem.md")]
struct AddingAProblem;
