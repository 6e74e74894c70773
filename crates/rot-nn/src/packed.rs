//! Sequences one after another, without padding.

/// The target of a token whose successor the model is not asked for.
pub const UNSUPERVISED: u8 = u8::MAX;

/// Sequences of token ids, packed.
///
/// `targets[i]` is the id that should follow token `i`, or [`UNSUPERVISED`].
///
/// ```
/// use rot_nn::{Packed, UNSUPERVISED};
///
/// let mut batch = Packed::default();
/// batch.push(&[1, 7, 7], &[UNSUPERVISED, 7, 2]);
/// batch.push(&[1], &[2]);
/// assert_eq!(batch.tokens(), 4);
/// assert_eq!(batch.sequences().collect::<Vec<_>>(), [0..3, 3..4]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Packed {
    ids: Vec<u8>,
    targets: Vec<u8>,
    /// Where each sequence ends.
    ends: Vec<usize>,
}

impl Packed {
    /// Adds a sequence with its targets. An empty one is left out.
    ///
    /// # Panics
    /// If there is not a target for each id.
    pub fn push(&mut self, ids: &[u8], targets: &[u8]) {
        assert_eq!(ids.len(), targets.len(), "a target for each id");
        if !ids.is_empty() {
            self.ids.extend_from_slice(ids);
            self.targets.extend_from_slice(targets);
            self.ends.push(self.ids.len());
        }
    }

    /// The same sequences, with every token's successor asked for.
    pub fn asking_all(&self) -> Packed {
        Packed { targets: vec![0; self.ids.len()], ..self.clone() }
    }

    /// Forgets the sequences and keeps the memory.
    pub fn clear(&mut self) {
        self.ids.clear();
        self.targets.clear();
        self.ends.clear();
    }

    /// The number of tokens in all sequences.
    pub fn tokens(&self) -> usize {
        self.ids.len()
    }

    /// The number of sequences.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no sequence.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All ids.
    pub fn ids(&self) -> &[u8] {
        &self.ids
    }

    /// All targets.
    pub fn targets(&self) -> &[u8] {
        &self.targets
    }

    /// Where each sequence lies in the ids.
    pub fn sequences(&self) -> impl Iterator<Item = std::ops::Range<usize>> + Clone + '_ {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        (0..self.ends.len()).zip(starts).map(|(i, start)| start..self.ends[i])
    }

    /// The ids and the targets of each sequence.
    pub fn iter(&self) -> impl Iterator<Item = [&[u8]; 2]> + '_ {
        self.sequences().map(|range| [&self.ids[range.clone()], &self.targets[range]])
    }

    /// The tokens that have a target.
    pub fn supervised(&self) -> impl Iterator<Item = usize> + '_ {
        let targets = self.targets.iter().enumerate();
        targets.filter(|&(_, &target)| target != UNSUPERVISED).map(|(t, _)| t)
    }
}
