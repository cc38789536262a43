//! The throughput within a trial: its rate from sample to sample, and whether it falls or rises.
//!
//! A machine that is shared changes its speed in steps: it is slow for a second or a minute, and then as fast as before.
//! A structure that decays is slower in each part of the trial than in the one before. So a trend test and a comparison of
//! the ends, which a single step deceives, stand beside the question whether every part falls.

use rare_workloads::protocol::Sample;

use super::{describe::quantile_of_sorted, normal};

/// Fewest rates that have a course: three for each third.
pub const MIN_RATES: usize = 9;

/// Parts of a trial that must all fall, or all rise: with as many, noise does it once in a hundred times, a single step of
/// the machine never.
const N_PARTS: usize = 5;

/// By how much a part differs at least from the one before it: means of a second vary by one or two percent.
const STEP_SHARE: f64 = 0.03;

/// The course of the throughput within a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Course {
    /// Upper quartile of the first third of the rates, in operations per second.
    pub first: f64,
    /// That of the last third.
    pub last: f64,
    /// Kendall's tau of rate and time in `-1..=1`: 1 if each rate is higher than the one before.
    pub tau: f64,
    /// Two-sided p-value of the test of Mann and Kendall.
    pub p: f64,
    /// Whether each fifth is slower, or each faster, than the one before, by more than noise.
    pub is_steady: bool,
}

impl Course {
    /// Reads the course of `rates`, in time order; `None` if there are fewer than [`MIN_RATES`] or the first third has
    /// none above zero.
    pub fn of(rates: &[f64]) -> Option<Self> {
        let third = rates.len() / 3;
        if rates.len() < MIN_RATES {
            return None;
        }
        let (first, last) = (upper_quartile(&rates[..third]), upper_quartile(&rates[rates.len() - third..]));
        let (tau, p) = mann_kendall(rates);
        (first > 0.0).then(|| Self { first, last, tau, p, is_steady: is_steady(rates) })
    }

    /// Returns the last third over the first, dimensionless.
    pub fn ratio(&self) -> f64 {
        self.last / self.first
    }
}

fn is_steady(rates: &[f64]) -> bool {
    let parts = stretches(rates, N_PARTS);
    let all = |differs: fn(f64, f64) -> bool| parts.windows(2).all(|pair| differs(pair[0], pair[1]));
    all(|earlier, later| later < earlier * (1.0 - STEP_SHARE))
        || all(|earlier, later| later > earlier * (1.0 + STEP_SHARE))
}

/// Returns the mean of the second half of `rates` over that of the first; `None` if there are fewer than two or the first
/// half is zero.
pub fn second_half_over_first(rates: &[f64]) -> Option<f64> {
    if rates.len() < 2 {
        return None;
    }
    let halves = stretches(rates, 2);
    (halves[0] > 0.0).then(|| halves[1] / halves[0])
}

/// Returns the rates between consecutive samples in operations per second, in time order. An interval of less than half
/// of the longest is left out: the one that the end of the window cuts off says little.
pub fn rates(samples: &[Sample]) -> Vec<f64> {
    let intervals = || samples.windows(2).map(|pair| pair[1].at_ns.saturating_sub(pair[0].at_ns));
    let longest = intervals().max().unwrap_or(0);
    let whole = samples.windows(2).zip(intervals()).filter(|&(_, nanos)| nanos > 0 && nanos >= longest / 2);
    whole
        .map(|(pair, nanos)| pair[1].operations.saturating_sub(pair[0].operations) as f64 * 1e9 / nanos as f64)
        .collect()
}

/// Returns the means of `n` consecutive stretches of `rates`, as equal in length as can be; at least one each.
///
/// # Panics
/// If `n` is zero or larger than the number of rates.
pub fn stretches(rates: &[f64], n: usize) -> Vec<f64> {
    let bound = |idx: usize| idx * rates.len() / n;
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    assert!((1..=rates.len()).contains(&n), "{n} stretches of {} rates", rates.len());
    (0..n).map(|idx| mean(&rates[bound(idx)..bound(idx + 1)])).collect()
}

/// Returns the upper quartile of values in any order.
///
/// # Panics
/// If there is none.
pub fn upper_quartile(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_of_sorted(&sorted, 0.75)
}

/// Returns Kendall's tau of values and their order, and the two-sided p-value of no trend by the normal approximation with
/// continuity correction, corrected for ties. `values` has two or more.
///
/// Sources: Mann, *Nonparametric tests against trend*, Econometrica 1945; Kendall, *Rank correlation methods*, 1975.
fn mann_kendall(values: &[f64]) -> (f64, f64) {
    let mut score = 0i64;
    for (idx, earlier) in values.iter().enumerate() {
        for later in &values[idx + 1..] {
            score += later.total_cmp(earlier) as i64;
        }
    }
    let n = values.len() as f64;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let spread = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let tied: f64 = sorted.chunk_by(|a, b| a == b).map(|group| spread(group.len() as f64)).sum();
    let variance = (spread(n) - tied) / 18.0;
    let score = score as f64;
    let tau = score / (n * (n - 1.0) / 2.0);
    if variance <= 0.0 {
        // Every value is equal: nothing speaks for a trend.
        return (tau, 1.0);
    }
    let distance = (score.abs() - 1.0).max(0.0);
    (tau, (2.0 * normal::upper_tail(distance / variance.sqrt())).min(1.0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where it does not find what it expects")]

    use super::*;

    fn sampled(at_ms: &[u64], operations: &[u64]) -> Vec<Sample> {
        let sample = |(&at_ms, &operations): (&u64, &u64)| Sample { at_ns: at_ms * 1_000_000, operations };
        at_ms.iter().zip(operations).map(sample).collect()
    }

    #[test]
    fn rates_are_operations_over_the_time_between_samples() {
        let samples = sampled(&[0, 100, 200, 210], &[0, 1_000, 3_000, 3_900]);
        assert_eq!(rates(&samples), [10_000.0, 20_000.0], "the interval of 10 ms is left out");
        assert!(rates(&samples[..1]).is_empty());
    }

    #[test]
    fn stretches_are_means_of_neighbours() {
        assert_eq!(stretches(&[1.0, 3.0, 5.0, 7.0, 9.0], 2), [2.0, 7.0]);
        assert_eq!(stretches(&[1.0, 3.0], 2), [1.0, 3.0]);
        assert_eq!(stretches(&[1.0, 3.0], 1), [2.0]);
    }

    #[test]
    fn a_falling_course_falls() {
        let falling: Vec<f64> = (0..12).map(|idx| 100.0 - f64::from(idx)).collect();
        let course = Course::of(&falling).unwrap();
        assert_eq!((course.first, course.last, course.tau), (99.25, 91.25, -1.0));
        assert!(course.p < 0.0001, "{}", course.p);
        assert!(Course::of(&falling[..MIN_RATES - 1]).is_none());
        assert!(Course::of(&[0.0; 12]).is_none());
        assert!(!course.is_steady, "a fall of 2 % from fifth to fifth is noise");
        assert_eq!(second_half_over_first(&falling).map(|ratio| (ratio * 1000.0) as u32), Some(938));
    }

    #[test]
    fn only_what_falls_or_rises_all_the_time_is_steady() {
        let steady = |rates: &[f64]| Course::of(rates).unwrap().is_steady;
        let decaying: Vec<f64> = (1..=40).map(|idx| 1e6 / f64::from(idx).sqrt()).collect();
        assert!(steady(&decaying));
        let rising: Vec<f64> = decaying.iter().rev().copied().collect();
        assert!(steady(&rising));
        for step in 1..40 {
            let stepping: Vec<f64> = (0..40).map(|idx| if idx < step { 12.0 } else { 4.8 }).collect();
            assert!(!steady(&stepping), "a step at {step}");
        }
    }

    #[test]
    fn a_disturbed_moment_is_no_course() {
        let mut rates = [100.0; 12];
        rates[10] = 40.0;
        let course = Course::of(&rates).unwrap();
        assert_eq!((course.ratio(), course.is_steady), (1.0, false));
        assert!(course.p > 0.3, "{}", course.p);
    }

    /// By hand: 32 of the 36 pairs rise and 4 fall, and without ties the variance is 9 * 8 * 23 / 18 = 92.
    #[test]
    fn agrees_with_reference() {
        let (tau, p) = mann_kendall(&[1.0, 3.0, 2.0, 5.0, 4.0, 7.0, 6.0, 9.0, 8.0]);
        assert!((tau - 28.0 / 36.0).abs() < 1e-12, "{tau}");
        // z = 27 / sqrt(92) = 2.81493, two-sided.
        assert!((p - 0.004_878_6).abs() < 1e-6, "{p}");
        assert_eq!(mann_kendall(&[5.0; 6]), (0.0, 1.0));
    }
}
