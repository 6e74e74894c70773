//! Contexts as the ids that a network reads and says.

use rot_core::{Context, Token, Vocabulary};
use rot_nn::UNSUPERVISED;

/// Turns a context into the ids that a network reads, which are those of all tokens but the last, and
/// the ids it must say after each. Fails with the first token that the vocabulary does not have.
pub(crate) fn encode(
    context: &Context,
    vocabulary: &Vocabulary,
    ids: &mut Vec<u8>,
    targets: &mut Vec<u8>,
) -> Result<(), Token> {
    let id = |token: Token| vocabulary.id(token).map(|id| id as u8).ok_or(token);
    ids.clear();
    targets.clear();
    for (&read, &say) in context.x.iter().zip(context.y.iter().skip(1)) {
        ids.push(id(read)?);
        targets.push(if say == Token::PAD { UNSUPERVISED } else { id(say)? });
    }
    Ok(())
}
