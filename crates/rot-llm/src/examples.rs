//! A context as examples: one for each THINK or STOP that a model has to say.

use rot_core::{Context, Token};

/// What stands before, and what a model has to say after it, with its THINK or STOP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example<'a> {
    /// The context so far.
    pub prompt: &'a [Token],
    /// What comes next.
    pub completion: &'a [Token],
}

/// The examples of a context, in its order.
pub fn examples(context: &Context) -> impl Iterator<Item = Example<'_>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let rest = context.y.get(from..)?;
        let start = from + rest.iter().position(|&token| token != Token::PAD)?;
        let ends = |token: &Token| matches!(*token, Token::THINK | Token::STOP);
        // What is not ended by either is not to be said.
        let end = start + context.y[start..].iter().position(ends)? + 1;
        from = end;
        Some(Example { prompt: &context.x[..start], completion: &context.y[start..end] })
    })
}
