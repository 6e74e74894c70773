//! How far an accuracy that was measured can be from the true one.

/// The standard normal quantile of 97.5%.
const Z: f64 = 1.959_963_984_540_054;

/// The 95% Wilson score interval of `right` successes in `of` trials.
///
/// It is used for `n` of `n` as well, where it goes from `n / (n + 3.84)` to 1; the exact interval
/// of Clopper and Pearson would begin a little higher, at `0.025^(1/n)`. Without a trial nothing is
/// known, and it goes from 0 to 1.
///
/// ```
/// let [low, high] = rot_train::eval::wilson(30_000, 30_000);
/// assert!(0.99987 < low && low < 0.99988 && high == 1.0);
/// ```
pub fn wilson(right: usize, of: usize) -> [f64; 2] {
    if of == 0 {
        return [0.0, 1.0];
    }
    let (n, z2) = (of as f64, Z * Z);
    let share = right as f64 / n;
    let centre = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z / (1.0 + z2 / n) * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    // At the ends the formula is exact but for rounding.
    let low = if right == 0 { 0.0 } else { (centre - half).max(0.0) };
    let high = if right == of { 1.0 } else { (centre + half).min(1.0) };
    [low, high]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: [f64; 2], expected: [f64; 2]) {
        for (one, other) in found.into_iter().zip(expected) {
            assert!((one - other).abs() < 1e-4, "{found:?} is not {expected:?}");
        }
    }

    #[test]
    fn the_interval_is_wilsons() {
        // Both ends solve (p - share)^2 = z^2 p (1 - p) / n.
        for (right, of) in [(1, 2), (7, 10), (81, 263), (29_990, 30_000)] {
            let (share, n) = (right as f64 / of as f64, of as f64);
            for p in wilson(right, of) {
                let left = (p - share) * (p - share);
                assert!((left - Z * Z * p * (1.0 - p) / n).abs() < 1e-12, "{right} of {of}: {p}");
            }
        }
        // As published: Newcombe (1998), table I, method 3.
        close(wilson(81, 263), [0.2553, 0.3662]);
        close(wilson(15, 148), [0.0624, 0.1605]);
        close(wilson(1, 29), [0.0061, 0.1718]);
    }

    #[test]
    fn all_and_none_have_one_open_end() {
        close(wilson(0, 20), [0.0, 0.1611]);
        close(wilson(20, 20), [1.0 - 0.1611, 1.0]);
        assert_eq!(wilson(20, 20)[1], 1.0);
        assert_eq!(wilson(0, 20)[0], 0.0);
        assert_eq!(wilson(0, 0), [0.0, 1.0]);
    }
}
