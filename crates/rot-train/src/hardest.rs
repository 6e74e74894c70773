//! Learning from what is hardest: a step reads more contexts than it learns from.
//!
//! The ground truth has no noise, so a context of which the model is sure teaches it next to nothing,
//! and to read costs about a quarter of what to learn costs. What is hard is often what is rare.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use rot_nn::kernels::loss::{likeliest, surprise};
use rot_nn::{Decoder, Memory, Packed, Score, UNSUPERVISED, Workspace};

/// What a worker uses again for every chunk of every step.
#[derive(Default)]
pub(crate) struct Reader {
    memories: Vec<Memory>,
    work: Workspace,
    logits: Vec<f32>,
    found: Vec<u8>,
}

/// How well the network did on some sequences, and how hard each was.
struct Reading<'a> {
    score: Score,
    /// The ids and targets of each sequence, with the loss of the token it was worst at.
    hard: Vec<(f32, [&'a [u8]; 2])>,
}

/// The `count` sequences of all chunks that the network is least sure of, and how well it did on all.
pub(crate) fn hardest<'a>(
    decoder: &dyn Decoder,
    chunks: &'a [Packed],
    count: usize,
    readers: &Mutex<Vec<Reader>>,
) -> (Score, Vec<[&'a [u8]; 2]>) {
    let lock = || readers.lock().unwrap_or_else(PoisonError::into_inner);
    let readings = chunks.par_iter().with_max_len(1).map(|chunk| {
        let mut reader = lock().pop().unwrap_or_default();
        let reading = reader.read(decoder, chunk);
        lock().push(reader);
        reading
    });
    let mut score = Score::default();
    let mut hard = Vec::new();
    for reading in readings.collect::<Vec<_>>() {
        score += reading.score;
        hard.extend(reading.hard);
    }
    // A stable order: which of equals is learnt from depends on nothing but where they were drawn.
    hard.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    (score, hard.into_iter().take(count).map(|(_, sequence)| sequence).collect())
}

impl Reader {
    fn read<'a>(&mut self, decoder: &dyn Decoder, chunk: &'a Packed) -> Reading<'a> {
        let Reader { memories, work, logits, found } = self;
        memories.iter_mut().for_each(Memory::clear);
        memories.resize_with(chunk.len().max(memories.len()), Memory::default);
        decoder.read(chunk, &mut memories[..chunk.len()], work, logits);
        let mut rows = logits.chunks_exact(decoder.network().vocabulary());
        found.clear();
        found.resize(chunk.tokens(), UNSUPERVISED);
        let mut reading = Reading { score: Score::default(), hard: Vec::new() };
        for sequence in chunk.sequences() {
            let targets = &chunk.targets()[sequence.clone()];
            let mut worst = 0.0;
            for (&target, found) in targets.iter().zip(&mut found[sequence.clone()]) {
                if target != UNSUPERVISED
                    && let Some(row) = rows.next()
                {
                    *found = likeliest(row);
                    let loss = surprise(row, target);
                    reading.score.loss += f64::from(loss);
                    // What is no number is the hardest, and stops the training.
                    worst = if loss.total_cmp(&worst).is_gt() { loss } else { worst };
                }
            }
            reading.hard.push((worst, [&chunk.ids()[sequence], targets]));
        }
        reading.score.count(chunk, found);
        reading
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recipe;
    use crate::trainer::Trainer;

    #[test]
    fn the_hardest_are_chosen_as_learning_would_see_them() {
        let recipe = "data.problems = [\"mul-2\"]\ntraining.batch = 60\n\
                      model = { kind = \"transformer\", layers = 1, width = 32, heads = 2 }";
        let mut trainer = Trainer::new(&Recipe::parse(recipe).unwrap()).unwrap();
        for _ in 0..3 {
            trainer.step().unwrap();
        }
        let chunks = trainer.source().batch(7).unwrap();
        let decoder = trainer.network().decoder(&trainer.params);
        let (score, chosen) = hardest(decoder.as_ref(), &chunks, 20, &Mutex::default());

        // The worst token of a sequence, through the gradient's own code: one target at a time.
        let loss = |ids: &[u8], targets: &[u8]| {
            let mut grads = vec![0.0; trainer.params.len()];
            let mut worst = 0f64;
            for i in (0..ids.len()).filter(|&i| targets[i] != UNSUPERVISED) {
                let mut one = vec![UNSUPERVISED; ids.len()];
                one[i] = targets[i];
                let mut batch = Packed::default();
                batch.push(ids, &one);
                let mut work = Workspace::default();
                let score =
                    trainer.network().learn(&trainer.params, &batch, 0.0, &mut grads, &mut work);
                worst = worst.max(score.loss);
            }
            worst
        };
        let mut expected: Vec<f64> = chunks
            .iter()
            .flat_map(|chunk| {
                chunk.sequences().map(|s| loss(&chunk.ids()[s.clone()], &chunk.targets()[s]))
            })
            .collect();
        expected.sort_by(|a, b| b.total_cmp(a));
        assert_eq!((chosen.len(), score.sequences), (20, 60));
        for ([ids, targets], expected) in chosen.iter().zip(expected) {
            let found = loss(ids, targets);
            assert!((found - expected).abs() < 1e-4, "{found} {expected}");
        }
        let learnt = trainer.learn(&chunks, 0.0).score;
        assert!((learnt.loss - score.loss).abs() < 1e-3 * learnt.loss, "{learnt:?} {score:?}");
        assert_eq!((learnt.right, learnt.right_sequences), (score.right, score.right_sequences));
    }
}
