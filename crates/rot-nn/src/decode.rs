//! Reading token by token: what a model remembers of a sequence, so that going on costs only what is
//! new.
//!
//! What is computed for a token depends on the tokens before it in its own sequence and on nothing
//! else, to the bit: it does not matter which other sequences are read beside it, nor in how many
//! parts it is read.

use crate::coordinates::Cursor;
use crate::{Network, Packed, Workspace};

/// A network with its parameters, ready to read.
pub trait Decoder: Send + Sync {
    /// The network.
    fn network(&self) -> &dyn Network;

    /// Reads each sequence after what its memory holds already. The logits of all tokens that have a
    /// target replace those in `logits`, row by row; what the targets are does not matter.
    ///
    /// # Panics
    /// If there is not a memory for each sequence, or one gets longer than the network's limit.
    fn read(
        &self,
        batch: &Packed,
        memories: &mut [Memory],
        work: &mut Workspace,
        logits: &mut Vec<f32>,
    );
}

/// What a model remembers of a sequence. The default is that of an empty one.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Where it is.
    pub(crate) cursor: Cursor,
    /// What has the same size however long the sequence is.
    pub(crate) state: Vec<f32>,
    /// What grows with it.
    pub(crate) blocks: Vec<Box<[f32]>>,
}

impl Memory {
    /// How many tokens have been read.
    pub fn tokens(&self) -> usize {
        self.cursor.position
    }

    /// The bytes it takes.
    pub fn bytes(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(|block| block.len()).sum();
        size_of::<Memory>() + (self.state.capacity() + blocks) * size_of::<f32>()
    }

    /// Forgets the sequence and keeps the memory, for another one of the same model.
    pub fn clear(&mut self) {
        self.cursor = Cursor::default();
        self.state.fill(0.0);
    }
}

/// The logits of sequences that are read from their beginning, of all tokens that have a target.
pub fn read_afresh(decoder: &dyn Decoder, batch: &Packed, work: &mut Workspace) -> Vec<f32> {
    let mut logits = Vec::new();
    decoder.read(batch, &mut vec![Memory::default(); batch.len()], work, &mut logits);
    logits
}

/// Checks what [`Decoder::read`] demands.
pub(crate) fn check(decoder: &dyn Decoder, batch: &Packed, memories: &[Memory]) {
    let limit = decoder.network().limit();
    assert_eq!(batch.len(), memories.len(), "a memory for each sequence");
    for (memory, sequence) in memories.iter().zip(batch.sequences()) {
        assert!(memory.tokens() + sequence.len() <= limit, "more than {limit} tokens");
    }
}
