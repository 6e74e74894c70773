//! How fast this machine multiplies matrices of the sizes that models have: the yardstick for
//! everything else.

use std::time::{Duration, Instant};

use rayon::prelude::*;

use crate::kernels::matmul::{Into, Matrix, matmul};

/// Rows of a product: the tokens of a chunk.
const ROWS: usize = 704;

/// A product of a training step: what it is for, and its `(m, k, n)`.
pub type Shape = (&'static str, [usize; 3]);

/// The products of a step of the paper's Transformer, as often as they occur in a layer: forward, the
/// gradient of what goes in, the gradient of the weights.
pub fn shapes() -> Vec<Shape> {
    let layers = [("query, key, value", 128, 384), ("attention out", 128, 128)];
    let feed_forward = [("feed-forward in", 128, 256), ("feed-forward out", 256, 128)];
    let products = layers.into_iter().chain(feed_forward);
    products
        .flat_map(|(name, inputs, outputs)| {
            [
                (name, [ROWS, inputs, outputs]),
                (name, [ROWS, outputs, inputs]),
                (name, [outputs, ROWS, inputs]),
            ]
        })
        .collect()
}

/// Floating-point operations a second of one product, on each of the current threads at once, summed
/// over them; measured for about `time`.
pub fn product_flops([m, k, n]: [usize; 3], time: Duration) -> f64 {
    let threads = rayon::current_num_threads();
    let rates: Vec<f64> = (0..threads)
        .into_par_iter()
        .with_max_len(1)
        .map(|_| {
            let (a, b, mut c) = (vec![0.5; m * k], vec![0.25; k * n], vec![0.0; m * n]);
            // Once to warm up.
            let (mut count, mut start) = (0u32, Instant::now());
            let mut warm = false;
            while !warm || start.elapsed() < time {
                matmul(&mut c, Into::Sum, Matrix::new(&a, k), Matrix::new(&b, n));
                count += 1;
                if !warm {
                    (count, start, warm) = (0, Instant::now(), true);
                }
            }
            std::hint::black_box(&c);
            f64::from(count) * (2 * m * k * n) as f64 / start.elapsed().as_secs_f64()
        })
        .collect();
    rates.iter().sum()
}

/// The rate of all products of a step together: what a step would reach if it did nothing else.
pub fn step_product_flops(time: Duration) -> f64 {
    let shapes = shapes();
    let each = time / shapes.len() as u32;
    let work = |[m, k, n]: [usize; 3]| (2 * m * k * n) as f64;
    let total: f64 = shapes.iter().map(|(_, shape)| work(*shape)).sum();
    let seconds: f64 =
        shapes.iter().map(|(_, shape)| work(*shape) / product_flops(*shape, each)).sum();
    total / seconds
}
