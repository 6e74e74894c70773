//! What tests of models share.

use crate::{Decoder, Memory, Packed, Workspace};

/// Reads each sequence by itself, in parts of all lengths, and compares every bit with the logits of
/// the whole batch.
#[track_caller]
pub(crate) fn assert_same_in_parts(
    decoder: &dyn Decoder,
    batch: &Packed,
    expected: &[f32],
    name: &str,
) {
    let (mut work, mut logits) = (Workspace::default(), Vec::new());
    let width = decoder.network().vocabulary();
    for sequence in batch.sequences() {
        let expected = &expected[sequence.start * width..sequence.end * width];
        for part in 1..=sequence.len() {
            let (mut memory, mut found) = ([Memory::default()], Vec::new());
            for ids in batch.ids()[sequence.clone()].chunks(part) {
                let mut piece = Packed::default();
                piece.push(ids, &vec![0; ids.len()]);
                decoder.read(&piece, &mut memory, &mut work, &mut logits);
                found.extend_from_slice(&logits);
            }
            assert_eq!(memory[0].tokens(), sequence.len());
            assert_eq!(found, expected, "{name}, in parts of {part}");
        }
    }
}
