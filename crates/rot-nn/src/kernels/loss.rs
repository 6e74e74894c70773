//! The loss: cross entropy of supervised tokens.

use super::math::{exp, max, sum};
use super::vectorised;
use crate::{Packed, Score, UNSUPERVISED};

/// The likeliest id of a row of logits; the first of equals.
pub fn likeliest(logits: &[f32]) -> u8 {
    let mut best = 0;
    for (id, logit) in logits.iter().enumerate() {
        if *logit > logits[best] {
            best = id;
        }
    }
    best as u8
}

/// The loss of a row of logits: how little was expected of the target.
pub fn surprise(logits: &[f32], target: u8) -> f32 {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f32 = logits.iter().map(|x| exp(x - largest)).sum();
    total.ln() - (logits[usize::from(target)] - largest)
}

/// Turns logits `[tokens, vocabulary]` into the gradient of `scale` times the summed loss, and counts
/// what was right.
///
/// Where a logit is not finite, neither is the loss.
pub fn cross_entropy(logits: &mut [f32], vocabulary: usize, batch: &Packed, scale: f32) -> Score {
    vectorised(
        #[inline(always)]
        || {
            let mut score = Score::default();
            let mut found = Vec::with_capacity(batch.tokens());
            for (row, &target) in logits.chunks_exact_mut(vocabulary).zip(batch.targets()) {
                found.push(likeliest(row));
                if target == UNSUPERVISED {
                    row.fill(0.0);
                    continue;
                }
                let (target, largest) = (usize::from(target), max(row));
                let right = row[target] - largest;
                for x in row.iter_mut() {
                    *x = exp(*x - largest);
                }
                let total = sum(vocabulary, |i| row[i]);
                score.loss += f64::from(total).ln() - f64::from(right);
                let factor = scale / total;
                for x in row.iter_mut() {
                    *x *= factor;
                }
                row[target] -= scale;
            }
            score.count(batch, &found);
            score
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{assert_gradient, noise};

    fn batch() -> Packed {
        let mut batch = Packed::default();
        batch.push(&[1, 2, 3], &[UNSUPERVISED, 2, 4]);
        batch.push(&[0], &[0]);
        batch
    }

    fn slow(logits: &[f32], batch: &Packed) -> f64 {
        let mut loss = 0.0;
        for (row, &target) in logits.chunks(5).zip(batch.targets()) {
            if target != UNSUPERVISED {
                let total: f64 = row.iter().map(|&x| f64::from(x).exp()).sum();
                loss += total.ln() - f64::from(row[usize::from(target)]);
            }
        }
        loss
    }

    #[test]
    fn loss_and_gradient_match_the_slow_twin() {
        let (batch, logits) = (batch(), noise(20, 3));
        let mut gradient = logits.clone();
        let score = cross_entropy(&mut gradient, 5, &batch, 0.5);
        assert!((score.loss - slow(&logits, &batch)).abs() < 1e-6);
        assert_gradient(&logits, &gradient, |logits| 0.5 * slow(logits, &batch));
        assert_eq!((score.supervised, score.sequences), (3, 2));
    }

    #[test]
    fn a_sequence_is_right_if_all_its_tokens_are() {
        let mut logits = vec![0.0; 20];
        for (row, id) in [(1, 2), (2, 4), (3, 1)] {
            logits[row * 5 + id] = 1.0;
        }
        let score = cross_entropy(&mut logits, 5, &batch(), 1.0);
        assert_eq!((score.right, score.right_sequences), (2, 1));
    }

    #[test]
    fn a_logit_that_is_not_finite_shows_in_the_loss() {
        for bad in [f32::NAN, f32::INFINITY] {
            let mut logits = vec![0.0; 20];
            logits[7] = bad;
            let score = cross_entropy(&mut logits, 5, &batch(), 1.0);
            assert!(!score.loss.is_finite(), "{bad}");
        }
    }
}
