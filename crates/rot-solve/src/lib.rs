//! Recursive inference: a model answers a question by opening contexts, with nobody feeding it the
//! ground truth.
//!
//! The [`Solver`] is the recursion of the paper's Algorithm 1. It knows models only as
//! [`Generator`]s: the ground truth is one ([`Oracle`]), our own networks are ([`Native`]).
//!
//! ```
//! use rot_core::{Text, parse_tokens};
//! use rot_solve::{Limits, Memo, Oracle, Solver};
//!
//! let oracle = Oracle::new(rot_problems::PROBLEMS, 2048);
//! let mut solver = Solver::new(oracle, Limits::default(), Some(Memo::default()), 1 << 30);
//! solver.ask(&parse_tokens("<GO>408+351=").unwrap()).unwrap();
//! let outcome = solver.run().remove(0);
//! assert_eq!(Text(&outcome.answer.unwrap()).to_string(), "759<STOP>");
//! assert_eq!(outcome.stats.deepest, 3);
//! ```

mod failure;
mod generator;
mod limits;
mod machine;
mod memo;
mod memo_file;
mod native;
mod oracle;
mod record;
mod trace;

pub use failure::{Cause, Failure, Rule};
pub use generator::{ContextId, End, Generator, Span};
pub use limits::{Limit, Limits};
pub use machine::{Outcome, Solver, Stats, UnknownToken};
pub use memo::{Memo, Tokens};
pub use memo_file::{MemoError, MemoFile};
pub use native::{Guidance, Native, roles};
pub use oracle::Oracle;
pub use record::{Asked, Line, LineError, Recorded, Recursion, TRACE_VERSION};
pub use trace::{Asker, Event, RootId};
