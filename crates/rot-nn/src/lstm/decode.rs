//! The LSTM token by token.

use super::Lstm;
use super::pass::{Pass, Start, Weights};
use super::steps::Steps;
use crate::{Decoder, Memory, Network, Packed, UNSUPERVISED, Workspace};

/// An LSTM with its parameters, laid out for reading. It remembers, for each layer, what it put out
/// last and its cells.
pub(super) struct LstmDecoder {
    lstm: Lstm,
    weights: Vec<Weights>,
}

impl LstmDecoder {
    pub(super) fn new(lstm: &Lstm, params: &[f32]) -> LstmDecoder {
        let mut work = Workspace::default();
        let layers = 0..lstm.layers.len();
        let weights = layers.map(|l| Weights::new(lstm, l, params, &mut work)).collect();
        LstmDecoder { lstm: lstm.clone(), weights }
    }
}

impl Decoder for LstmDecoder {
    fn network(&self) -> &dyn Network {
        &self.lstm
    }

    fn read(
        &self,
        batch: &Packed,
        memories: &mut [Memory],
        work: &mut Workspace,
        logits: &mut Vec<f32>,
    ) {
        let (p, h) = (self.lstm.vocabulary, self.lstm.config.hidden);
        crate::decode::check(self, batch, memories);
        let pass = Pass { lstm: &self.lstm, steps: Steps::new(batch) };
        for memory in memories.iter_mut() {
            memory.state.resize(self.weights.len() * (p + h), 0.0);
        }
        let mut out = vec![];
        for (l, weights) in self.weights.iter().enumerate() {
            let kept = l * (p + h)..(l + 1) * (p + h);
            let mut start = Start::zero(&self.lstm, &pass.steps, work);
            let rows = start.state.chunks_exact_mut(p).zip(start.cells.chunks_exact_mut(h));
            for ((state, cells), &place) in rows.zip(&pass.steps.order) {
                let (kept_state, kept_cells) = memories[place].state[kept.clone()].split_at(p);
                state.copy_from_slice(kept_state);
                cells.copy_from_slice(kept_cells);
            }
            let (trace, above) = pass.forward(l, weights, &start, &out, work);
            for (row, &place) in pass.steps.last_rows().zip(&pass.steps.order) {
                let (state, cells) = memories[place].state[kept.clone()].split_at_mut(p);
                state.copy_from_slice(&above[row * p..][..p]);
                cells.copy_from_slice(&trace.cells[(pass.steps.sequences() + row) * h..][..h]);
            }
            start.give(work);
            trace.give(work);
            work.give(std::mem::replace(&mut out, above));
        }
        let mut all = work.take(out.len());
        pass.steps.by_sequence(&out, &mut all, p);
        logits.clear();
        for (row, &target) in all.chunks_exact(p).zip(batch.targets()) {
            if target != UNSUPERVISED {
                logits.extend_from_slice(row);
            }
        }
        work.give(all);
        work.give(out);
        for (memory, sequence) in memories.iter_mut().zip(batch.sequences()) {
            memory.cursor.position += sequence.len();
        }
    }
}
