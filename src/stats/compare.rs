//! Comparisons of cells: ratio, shift, effect size, and an answer that may be "not distinguishable".

use std::cmp::Ordering;

use super::{
    bootstrap::{self, Interval},
    describe::median_of_sorted,
    mann_whitney,
};

/// Chance, over all comparisons of a report together, of calling a difference that is none.
pub const ALPHA: f64 = 0.05;

/// What a comparison says of its left cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// The left is faster.
    Faster,
    /// The left is slower.
    Slower,
    /// The trials do not tell which is faster. Not the same as equal.
    NotDistinguishable,
}

/// Two cells that differ in their structure only, compared by throughput.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Cell index.
    pub left: u32,
    /// Cell index.
    pub right: u32,
    /// Median of the left over that of the right; `None` if the right's is zero.
    pub ratio: Option<f64>,
    /// 95 % interval of the ratio; `None` if either has five trials or fewer.
    pub interval: Option<Interval>,
    /// Hodges-Lehmann shift `left - right`, in operations per second.
    pub shift: f64,
    /// Cliff's delta in `-1..=1`: 1 if every trial of the left is faster than every one of the right.
    pub delta: f64,
    /// Two-sided p-value of the Mann-Whitney test.
    pub p: f64,
    /// Whether `p` is exact; otherwise the normal approximation.
    pub exact: bool,
    /// `p` after Holm's correction over all comparisons of the report.
    pub p_holm: f64,
    /// The smallest `p` that as many trials can reach at all.
    pub smallest_p: f64,
    /// Whether the corrected `p` is below [`ALPHA`], and in which direction.
    pub answer: Answer,
}

impl Comparison {
    /// Compares two samples of throughputs, alone: `p_holm` is `p` until [`correct`]; `None` if one is empty.
    pub fn new(left: (u32, &[f64]), right: (u32, &[f64])) -> Option<Self> {
        let test = mann_whitney::test(left.1, right.1)?;
        let (left_sorted, right_sorted) = (sorted(left.1), sorted(right.1));
        let right_median = median_of_sorted(&right_sorted);
        let mut comparison = Self {
            left: left.0,
            right: right.0,
            ratio: (right_median > 0.0).then(|| median_of_sorted(&left_sorted) / right_median),
            interval: bootstrap::ratio_interval(&left_sorted, &right_sorted),
            shift: mann_whitney::hodges_lehmann(left.1, right.1),
            delta: mann_whitney::cliffs_delta(left.1, right.1),
            p: test.p,
            exact: test.exact,
            p_holm: test.p,
            smallest_p: mann_whitney::smallest_p(left.1.len(), right.1.len()),
            answer: Answer::NotDistinguishable,
        };
        comparison.decide();
        Some(comparison)
    }

    fn decide(&mut self) {
        self.answer = match self.delta.total_cmp(&0.0) {
            _ if self.p_holm >= ALPHA => Answer::NotDistinguishable,
            Ordering::Greater => Answer::Faster,
            Ordering::Less => Answer::Slower,
            Ordering::Equal => Answer::NotDistinguishable,
        };
    }

    /// Tells whether no data could have told these cells apart among `n_comparisons`: there are too few trials.
    pub fn is_hopeless(&self, n_comparisons: usize) -> bool {
        self.smallest_p * n_comparisons as f64 >= ALPHA
    }
}

/// Corrects the p-values of all comparisons of a report and decides each anew.
pub fn correct(comparisons: &mut [Comparison]) {
    let p: Vec<f64> = comparisons.iter().map(|comparison| comparison.p).collect();
    for (comparison, p_holm) in comparisons.iter_mut().zip(holm(&p)) {
        comparison.p_holm = p_holm;
        comparison.decide();
    }
}

/// Returns p-values adjusted by Holm's step-down method, in the order given. Source: Holm, *A simple sequentially
/// rejective multiple test procedure*, Scandinavian Journal of Statistics 1979.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let (mut adjusted, mut largest) = (vec![1.0; p.len()], 0.0f64);
    for (rank, &idx) in order.iter().enumerate() {
        largest = largest.max((p[idx] * (p.len() - rank) as f64).min(1.0));
        adjusted[idx] = largest;
    }
    adjusted
}

/// Returns the fewest trials of each cell with which one of `n_comparisons` can be told apart.
pub fn trials_needed(n_comparisons: usize) -> usize {
    (2..).find(|&n| mann_whitney::smallest_p(n, n) * (n_comparisons as f64) < ALPHA).expect("the p-value falls to zero")
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}
