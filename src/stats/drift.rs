//! Whether values change with the order in which they were taken, over several samples at once.
//!
//! A correlation of ranks (Spearman 1904) whose mean and variance are those of exchanging values within a sample
//! (Mantel, *The detection of disease clustering and a generalized regression approach*, Cancer Research 1967, for the
//! idea of testing against permutations). Within a sample only, because each value is relative to the median of its
//! sample: with three values a sample the plain formula would take its variance too small by a third.

use super::{
    describe::{median, median_of_sorted},
    normal,
};

/// A value with its place in the order of all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    /// Place in the order over all samples.
    pub position: usize,
    /// The value, in the unit of its sample.
    pub value: f64,
}

/// What the order says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Values in samples of two or more.
    pub n: usize,
    /// Two-sided p-value of no dependence on the order, by the normal approximation, which errs to the large side for
    /// few values: they cannot be more than sqrt(n - 1) deviations away.
    pub p: f64,
    /// Median of the last quarter over that of the first, each value relative to the median of its sample, less 1.
    pub change: f64,
}

/// Tests samples of positive values; `None` if no sample has two or more of them, or none of them differ.
pub fn test(samples: &[Vec<Placed>]) -> Option<Drift> {
    let relative: Vec<Vec<Placed>> = samples.iter().filter_map(|sample| relative(sample)).collect();
    let all: Vec<Placed> = relative.iter().flatten().copied().collect();
    let ranks = ranks(&all);
    let (mut covariance, mut variance, mut next) = (0.0, 0.0, 0);
    for sample in &relative {
        let of_sample = &ranks[next..next + sample.len()];
        next += sample.len();
        let places: Vec<f64> = sample.iter().map(|placed| placed.position as f64).collect();
        let (places, scores) = (centred(&places), centred(of_sample));
        covariance += places.iter().zip(&scores).map(|(place, score)| place * score).sum::<f64>();
        let squares = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>();
        variance += squares(&places) * squares(&scores) / (sample.len() - 1) as f64;
    }
    (variance > 0.0).then(|| {
        let deviations = covariance.abs() / variance.sqrt();
        Drift { n: all.len(), p: (2.0 * normal::upper_tail(deviations)).min(1.0), change: change(all) }
    })
}

fn relative(sample: &[Placed]) -> Option<Vec<Placed>> {
    let values: Vec<f64> = sample.iter().map(|placed| placed.value).collect();
    let middle = median(&values).filter(|&middle| middle > 0.0 && sample.len() > 1)?;
    Some(sample.iter().map(|placed| Placed { value: placed.value / middle, ..*placed }).collect())
}

/// Ranks from 1, equal values sharing the mean of theirs.
fn ranks(all: &[Placed]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&a, &b| all[a].value.total_cmp(&all[b].value));
    let mut ranks = vec![0.0; all.len()];
    let mut below = 0;
    for equal in order.chunk_by(|&a, &b| all[a].value == all[b].value) {
        equal.iter().for_each(|&idx| ranks[idx] = below as f64 + (equal.len() + 1) as f64 / 2.0);
        below += equal.len();
    }
    ranks
}

fn centred(values: &[f64]) -> Vec<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| value - mean).collect()
}

fn change(mut all: Vec<Placed>) -> f64 {
    all.sort_by_key(|placed| placed.position);
    let quarter = all.len().div_ceil(4);
    let middle = |part: &[Placed]| {
        let mut values: Vec<f64> = part.iter().map(|placed| placed.value).collect();
        values.sort_by(f64::total_cmp);
        median_of_sorted(&values)
    };
    middle(&all[all.len() - quarter..]) / middle(&all[..quarter]) - 1.0
}

#[cfg(test)]
mod tests {
    use rare_workloads::rng::Xoshiro256PlusPlus;

    use super::*;

    /// `n_samples` samples in blocks, with a spread of 3 % and a slope over the whole run.
    fn blocks(n_samples: usize, n: usize, slope: f64, rng: &mut Xoshiro256PlusPlus) -> Vec<Vec<Placed>> {
        let n_all = n_samples * n;
        let mut samples = vec![Vec::new(); n_samples];
        for block in 0..n {
            let mut order: Vec<usize> = (0..n_samples).collect();
            rng.shuffle(&mut order);
            for (place, sample) in order.into_iter().enumerate() {
                let position = block * n_samples + place;
                let noise = 1.0 + 0.03 * (rng.unit() + rng.unit() + rng.unit() - 1.5) * 2.0;
                let trend = 1.0 + slope * position as f64 / n_all as f64;
                samples[sample].push(Placed { position, value: (sample + 1) as f64 * noise * trend });
            }
        }
        samples
    }

    #[test]
    fn p_values_of_runs_without_a_drift_are_even() {
        let mut rng = Xoshiro256PlusPlus::new(5);
        for (n_samples, n) in [(144, 3), (20, 5), (1, 40)] {
            let n_runs = 1000;
            let below = |p: f64, all: &[f64]| all.iter().filter(|&&one| one < p).count();
            let all: Vec<f64> = (0..n_runs).map(|_| test(&blocks(n_samples, n, 0.0, &mut rng)).unwrap().p).collect();
            // Four deviations of a binomial count around a tenth and around 1 in 100.
            assert!(below(0.1, &all).abs_diff(100) < 38, "{n_samples} of {n}: {}", below(0.1, &all));
            assert!(below(0.01, &all) < 23, "{n_samples} of {n}: {}", below(0.01, &all));
        }
    }

    #[test]
    fn a_slope_is_found_with_its_size() {
        let mut rng = Xoshiro256PlusPlus::new(6);
        let drift = test(&blocks(12, 5, -0.2, &mut rng)).unwrap();
        assert!(drift.p < 1e-6, "{drift:?}");
        assert!((-0.18..-0.1).contains(&drift.change), "three quarters of the slope: {drift:?}");
    }

    #[test]
    fn single_and_equal_values_say_nothing() {
        let at = |position, value| Placed { position, value };
        assert_eq!(test(&[vec![at(0, 1.0)], vec![at(1, 2.0)]]), None);
        assert_eq!(test(&[vec![at(0, 1.0), at(1, 1.0)]]), None);
        assert_eq!(test(&[]), None);
    }
}
