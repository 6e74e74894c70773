//! One module a command.

pub(crate) mod check;
pub(crate) mod contexts;
pub(crate) mod sample;
pub(crate) mod solve;
pub(crate) mod stats;
