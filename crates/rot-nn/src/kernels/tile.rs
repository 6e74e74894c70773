//! Small products inside attention, held in registers: a few rows of sixteen columns.
//!
//! Written by hand because a general product packs its operands first, which costs more than it
//! gives for the few dozen rows of a context, and cannot skip what lies in the future.

/// Columns of a tile. Buffers that tiles read are padded to whole tiles.
pub(super) const COLUMNS: usize = 16;

/// `count` rounded up to whole tiles.
pub(super) fn padded(count: usize) -> usize {
    count.next_multiple_of(COLUMNS)
}

/// A sum for each of `R` rows and 16 columns.
pub(super) type Tile<const R: usize> = [[f32; COLUMNS]; R];

/// Runs `$body` for everything in a range, such as rows, as many at a time as the first size of a group says and the
/// last ones in smaller groups: `$first` is the first of a group, `$N` their number, a constant. A size may depend on a
/// condition.
macro_rules! in_groups {
    ($all:expr, [$($n:literal $(if $when:expr)?),+], |$first:ident, $N:ident| $body:block) => {{
        let all = $all;
        let mut $first = all.start;
        $(
            while all.end - $first >= $n $(&& $when)? {
                const $N: usize = $n;
                $body
                $first += $N;
            }
        )+
    }};
}
pub(super) use in_groups;

/// `a * b + c`, in one instruction where the machine has it (`FUSED`).
#[inline(always)]
fn multiply_add<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// `tiles[p] += a b[p]`: row `r` of `a` is `a[r]`, row `k` of `b[p]` is `b[k * stride + 16 p..][..16]`. Several tiles
/// at a time keep a wide machine busy, as a sum waits for the one before it.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "rows and columns of several slices at once")]
pub(super) fn add_product<const FUSED: bool, const R: usize, const P: usize>(
    tiles: &mut [Tile<R>; P],
    a: [&[f32]; R],
    b: &[f32],
    stride: usize,
) {
    let (depth, a) = equally_long(a);
    let mut sums = *tiles;
    let mut at = 0;
    for k in 0..depth {
        let b = &b[at..at + P * COLUMNS];
        for r in 0..R {
            for p in 0..P {
                for c in 0..COLUMNS {
                    sums[p][r][c] =
                        multiply_add::<FUSED>(a[r][k], b[p * COLUMNS + c], sums[p][r][c]);
                }
            }
        }
        at += stride;
    }
    *tiles = sums;
}

/// [`add_product`] with a tile and rows of `b` that lie one after another.
#[inline(always)]
pub(super) fn add_panel<const FUSED: bool, const R: usize>(
    tile: &mut Tile<R>,
    a: [&[f32]; R],
    b: &[f32],
) {
    add_block::<FUSED, R, 1>(std::array::from_mut(tile), a, [b]);
}

/// `tiles[p] += a b[p]`: the same rows with several panels, so that a number of `a` is fetched once for
/// all of them.
#[inline(always)]
pub(super) fn add_block<const FUSED: bool, const R: usize, const P: usize>(
    tiles: &mut [Tile<R>; P],
    a: [&[f32]; R],
    b: [&[f32]; P],
) {
    let (depth, a) = equally_long(a);
    let mut panels: [&[[f32; COLUMNS]]; P] = [&[]; P];
    for p in 0..P {
        panels[p] = &b[p].as_chunks().0[..depth];
    }
    let mut sums = *tiles;
    for k in 0..depth {
        for r in 0..R {
            for p in 0..P {
                for c in 0..COLUMNS {
                    sums[p][r][c] = multiply_add::<FUSED>(a[r][k], panels[p][k][c], sums[p][r][c]);
                }
            }
        }
    }
    *tiles = sums;
}

/// `tile[n] += a[n] b[n]`: rows with panels of their own, so that their sums do not wait for each other.
#[inline(always)]
pub(super) fn add_panels<const FUSED: bool, const N: usize>(
    tile: &mut Tile<N>,
    a: [&[f32]; N],
    b: [&[f32]; N],
) {
    let (depth, a) = equally_long(a);
    let mut panels: [&[[f32; COLUMNS]]; N] = [&[]; N];
    for n in 0..N {
        panels[n] = &b[n].as_chunks().0[..depth];
    }
    let mut sums = *tile;
    for k in 0..depth {
        for n in 0..N {
            for c in 0..COLUMNS {
                sums[n][c] = multiply_add::<FUSED>(a[n][k], panels[n][k][c], sums[n][c]);
            }
        }
    }
    *tile = sums;
}

/// `tile[n] += a[n] b`, where row `k` of `b` for `n` is `b[k * stride + 16 n..][..16]`.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "several slices at once")]
pub(super) fn add_side_by_side<const FUSED: bool, const N: usize>(
    tile: &mut Tile<N>,
    a: [&[f32]; N],
    b: &[f32],
    stride: usize,
) {
    let (depth, a) = equally_long(a);
    let mut sums = *tile;
    let mut at = 0;
    for k in 0..depth {
        let b = &b[at..at + N * COLUMNS];
        for n in 0..N {
            for c in 0..COLUMNS {
                sums[n][c] = multiply_add::<FUSED>(a[n][k], b[n * COLUMNS + c], sums[n][c]);
            }
        }
        at += stride;
    }
    *tile = sums;
}

/// The rows, cut to the length of the first: so the compiler checks it once, not at every element. (A
/// loop, as `map` is not always inlined, and then hides the length.)
#[inline(always)]
fn equally_long<const R: usize>(mut rows: [&[f32]; R]) -> (usize, [&[f32]; R]) {
    let depth = rows[0].len();
    for row in &mut rows {
        *row = &row[..depth];
    }
    (depth, rows)
}

/// `tiles[p] += a^T b[p]`: column `r` of `a` are `a[k * a_stride + r]`, for `depth` rows `k`; `b` as in [`add_product`].
#[inline(always)]
pub(super) fn add_transposed<const FUSED: bool, const R: usize, const P: usize>(
    tiles: &mut [Tile<R>; P],
    a: &[f32],
    a_stride: usize,
    b: &[f32],
    b_stride: usize,
    depth: usize,
) {
    let mut sums = *tiles;
    let (mut a_at, mut b_at) = (0, 0);
    for _ in 0..depth {
        let (a, b) = (&a[a_at..a_at + R], &b[b_at..b_at + P * COLUMNS]);
        for r in 0..R {
            for p in 0..P {
                for c in 0..COLUMNS {
                    sums[p][r][c] = multiply_add::<FUSED>(a[r], b[p * COLUMNS + c], sums[p][r][c]);
                }
            }
        }
        a_at += a_stride;
        b_at += b_stride;
    }
    *tiles = sums;
}
