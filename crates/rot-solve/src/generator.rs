//! The boundary between the recursion and whatever continues a context.

use rot_core::Token;

/// A context, for as long as it is open. After its release another one can have the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub u64);

/// Continues contexts, each until it has said THINK or STOP. Many are in flight at once.
///
/// A context always gets the same answer: what it says depends on its own tokens alone.
pub trait Generator {
    /// The most tokens that fit into a context.
    fn limit(&self) -> usize;

    /// The first of the tokens that cannot be read.
    fn unknown(&self, tokens: &[Token]) -> Option<Token>;

    /// Appends tokens, to a new context or to one whose span has ended, and has it continued by up
    /// to `most` tokens, of which there is at least one. Together they fit into the limit.
    fn submit(&mut self, id: ContextId, append: &[Token], most: usize);

    /// Works for a while, and adds the spans that have ended, in any order. Something ends sooner or
    /// later if anything was submitted.
    fn poll(&mut self, ended: &mut Vec<Span>);

    /// Forgets a context, whether or not its span has ended.
    fn release(&mut self, id: ContextId);
}

/// What a context has said since tokens were submitted last.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The context.
    pub id: ContextId,
    /// The tokens, with the THINK or STOP at the end. It is not part of the context yet.
    pub tokens: Vec<Token>,
    /// How clear the least clear decision was: the difference of the two largest logits, infinite
    /// where nothing was decided by logits.
    pub margin: f32,
    /// Why it ended.
    pub end: End,
}

/// Why a span ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With THINK or STOP.
    Whole,
    /// It is as long as it may be.
    Full,
    /// The context cannot be continued, for that reason.
    Failed(String),
}
