//! The Mann-Whitney test, Cliff's delta and the Hodges-Lehmann shift: comparisons that assume no distribution.
//!
//! Sources: Mann and Whitney, *On a test of whether one of two random variables is stochastically larger than the
//! other*, Annals of Mathematical Statistics 1947; Hodges and Lehmann, *Estimates of location based on rank tests*,
//! Annals of Mathematical Statistics 1963; Cliff, *Dominance statistics*, Psychological Bulletin 1993.

use super::{describe::median_of_sorted, normal};

/// Up to this many values a side, and without ties, the distribution of U is enumerated; the work grows with the fourth
/// power, and the normal approximation is good to three digits from about 20 on.
const MAX_EXACT: usize = 30;

/// Result of the two-sided test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MannWhitney {
    /// Pairs in which the left value is larger, ties counting half.
    pub u: f64,
    /// Two-sided p-value, in `0..=1`.
    pub p: f64,
    /// Whether `p` is exact or the tie-corrected normal approximation with continuity correction.
    pub exact: bool,
}

/// Tests whether values of `left` tend to be larger or smaller than those of `right`; `None` if a side is empty.
pub fn test(left: &[f64], right: &[f64]) -> Option<MannWhitney> {
    if left.is_empty() || right.is_empty() {
        return None;
    }
    let u = u_statistic(left, right);
    let ties = tie_sizes(left, right);
    let exact = ties.is_empty() && left.len().max(right.len()) <= MAX_EXACT;
    let p = if exact { exact_p(u, left.len(), right.len()) } else { normal_p(u, left.len(), right.len(), &ties) };
    Some(MannWhitney { u, p, exact })
}

/// Returns the smallest two-sided p-value that samples of these sizes can reach without ties: `2 / C(n + m, n)`.
pub fn smallest_p(n_left: usize, n_right: usize) -> f64 {
    let (small, large) = (n_left.min(n_right), n_left.max(n_right));
    let inverse = (1..=small).fold(1.0, |inverse, k| inverse * k as f64 / (large + k) as f64);
    (2.0 * inverse).min(1.0)
}

/// Returns Cliff's delta: the share of pairs with the left larger minus the share with it smaller, in `-1..=1`.
pub fn cliffs_delta(left: &[f64], right: &[f64]) -> f64 {
    let n_pairs = (left.len() * right.len()) as f64;
    2.0 * u_statistic(left, right) / n_pairs - 1.0
}

/// Returns the median of all differences `left - right`, in the unit of the values; both sides must be non-empty.
pub fn hodges_lehmann(left: &[f64], right: &[f64]) -> f64 {
    let mut differences: Vec<f64> = left.iter().flat_map(|l| right.iter().map(move |r| l - r)).collect();
    differences.sort_by(f64::total_cmp);
    median_of_sorted(&differences)
}

fn u_statistic(left: &[f64], right: &[f64]) -> f64 {
    let won = |l: f64, r: f64| if l > r { 1.0 } else { f64::from(u8::from(l == r)) / 2.0 };
    left.iter().flat_map(|&l| right.iter().map(move |&r| won(l, r))).sum()
}

/// Sizes of the groups of equal values over both samples, those above 1.
fn tie_sizes(left: &[f64], right: &[f64]) -> Vec<usize> {
    let mut all: Vec<f64> = left.iter().chain(right).copied().collect();
    all.sort_by(f64::total_cmp);
    all.chunk_by(|a, b| a == b).map(<[f64]>::len).filter(|&size| size > 1).collect()
}

/// Counts the orderings by U: `counts[u]` is the number of ways to interleave so that the left wins `u` pairs. The
/// largest value is either of the left (it wins against all of the right) or of the right (it wins nothing).
fn exact_p(u: f64, n_left: usize, n_right: usize) -> f64 {
    // counts[m][u] for the current number of left values.
    let mut counts: Vec<Vec<f64>> = vec![vec![1.0]; n_right + 1];
    for n in 1..=n_left {
        let mut next: Vec<Vec<f64>> = vec![vec![1.0]];
        for m in 1..=n_right {
            let mut row = vec![0.0; n * m + 1];
            for (wins, count) in counts[m].iter().enumerate() {
                row[wins + m] += count;
            }
            for (wins, count) in next[m - 1].iter().enumerate() {
                row[wins] += count;
            }
            next.push(row);
        }
        counts = next;
    }
    let row = &counts[n_right];
    let total: f64 = row.iter().sum();
    // U is a whole number here: there are no ties.
    let extreme = u.max((n_left * n_right) as f64 - u) as usize;
    (2.0 * row[extreme..].iter().sum::<f64>() / total).min(1.0)
}

fn normal_p(u: f64, n_left: usize, n_right: usize, ties: &[usize]) -> f64 {
    let (n, m) = (n_left as f64, n_right as f64);
    let all = n + m;
    let tied: f64 = ties.iter().map(|&size| (size * size * size - size) as f64).sum();
    let variance = n * m / 12.0 * ((all + 1.0) - tied / (all * (all - 1.0)));
    if variance <= 0.0 {
        // Every value is equal: nothing speaks for a difference.
        return 1.0;
    }
    let distance = ((u - n * m / 2.0).abs() - 0.5).max(0.0);
    (2.0 * normal::upper_tail(distance / variance.sqrt())).min(1.0)
}
