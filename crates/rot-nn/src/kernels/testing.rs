//! What kernel tests share.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Numbers between -1 and 1.
pub(crate) fn noise(len: usize, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..len).map(|_| (f64::from(rng.next_u32()) / 2_147_483_648.0 - 1.0) as f32).collect()
}

/// Both the same to within `tolerance`, relative to the largest.
#[track_caller]
pub(crate) fn assert_close(found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(1e-3f32, |largest, x| largest.max(x.abs()));
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= tolerance * largest, "element {i}: {a}, expected {b}");
    }
}

/// Compares a gradient with central differences of `loss`, a sum in double precision.
#[track_caller]
pub(crate) fn assert_gradient(x: &[f32], gradient: &[f32], loss: impl Fn(&[f32]) -> f64) {
    let step = 1.0 / 128.0;
    let numeric: Vec<f32> = (0..x.len())
        .map(|i| {
            let moved = |by: f32| {
                let mut x = x.to_vec();
                x[i] += by;
                loss(&x)
            };
            ((moved(step) - moved(-step)) / (2.0 * f64::from(step))) as f32
        })
        .collect();
    assert_close(gradient, &numeric, 4e-3);
}
