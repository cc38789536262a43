//! Zipf: the key of rank r (from 1) has a probability proportional to r^-exponent. Two exact samplers: an alias table for
//! small ranges, and rejection-inversion for ranges whose table would not fit a cache.
//!
//! Floating point serves to build tables and pre-drawn streams only; the window draws integers.
//!
//! Source: Walker, "An efficient method for generating discrete random variables with general distributions", ACM TOMS
//! 1977, in the construction of Vose 1991; Hörmann and Derflinger, "Rejection-inversion to generate variates from
//! monotone discrete distributions", ACM TOMACS 1996.

use super::Permutation;
use crate::rng::{Bound, Xoshiro256PlusPlus};

/// Keys drawn beforehand per thread: long enough that a pass outlasts the caches, short enough to draw in well under a
/// second (about 0.1 us a key).
pub const STREAM_KEYS: usize = 1 << 20;

/// Draws from a finite distribution in constant time: pick a column evenly, then its own key or its alias.
#[derive(Debug)]
pub struct AliasTable {
    columns: Box<[Column]>,
    bound: Bound,
}

/// One column; its own key is its index.
#[derive(Clone, Copy, Debug)]
struct Column {
    /// The own key is taken when the upper half of the draw's fraction is below this: its share in units of 2^-32.
    own_below: u32,
    /// The key taken otherwise. A full column, whose share of 1 `own_below` cannot express, is its own alias.
    alias: u32,
}

impl AliasTable {
    /// Builds the table for zipf over `0..n_keys`, with ranks scattered over the keys by the fixed permutation.
    ///
    /// # Panics
    /// If `n_keys` is 0 or does not fit 32 bits.
    pub fn zipf(n_keys: u64, exponent: f64) -> Self {
        let scatter = Permutation::scatter(n_keys);
        let mut weights = vec![0.0; usize::try_from(n_keys).expect("a table fits memory")];
        for rank_idx in 0..n_keys {
            weights[scatter.apply(rank_idx) as usize] = ((rank_idx + 1) as f64).powf(-exponent);
        }
        Self::new(&weights)
    }

    /// Builds the table in which key k has the probability `weights[k]` over their sum.
    ///
    /// # Panics
    /// If `weights` is empty or does not fit 32 bits.
    pub fn new(weights: &[f64]) -> Self {
        let n_keys = u32::try_from(weights.len()).expect("an alias table has fewer than 2^32 keys");
        let scale = f64::from(n_keys) / weights.iter().sum::<f64>();
        let mut shares: Vec<f64> = weights.iter().map(|weight| weight * scale).collect();
        let mut columns: Vec<Column> = (0..n_keys).map(|key| Column { own_below: u32::MAX, alias: key }).collect();
        let (mut poor, mut rich): (Vec<u32>, Vec<u32>) = (0..n_keys).partition(|&key| shares[key as usize] < 1.0);
        while let (Some(poorest), Some(&richest)) = (poor.pop(), rich.last()) {
            let share = shares[poorest as usize];
            columns[poorest as usize] = Column { own_below: (share * 2_f64.powi(32)) as u32, alias: richest };
            shares[richest as usize] -= 1.0 - share;
            if shares[richest as usize] < 1.0 {
                rich.pop();
                poor.push(richest);
            }
        }
        // What is left over has a share of 1 up to rounding: its alias is itself.
        Self { columns: columns.into(), bound: Bound::new(u64::from(n_keys)) }
    }

    /// Draws one key.
    #[inline(always)]
    pub fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        let (column_idx, fraction) = self.bound.draw_with_fraction(rng);
        let column = self.columns[column_idx as usize];
        let own = (fraction >> 32) < u64::from(column.own_below);
        if own { column_idx } else { u64::from(column.alias) }
    }
}

/// Draws zipf ranks of any range in constant expected time without a table.
#[derive(Clone, Debug)]
pub struct ZipfRanks {
    n_ranks: u64,
    exponent: f64,
    /// The integral of the hat at 1.5, less the mass of rank 1: the upper end of the inverted range.
    top: f64,
    /// The integral of the hat at `n_ranks` + 0.5: the lower end.
    bottom: f64,
    /// Ranks this close to the drawn point need no second test.
    sure_within: f64,
}

impl ZipfRanks {
    /// Prepares draws of ranks `0..n_ranks`; rank 0 is the most likely.
    pub fn new(n_ranks: u64, exponent: f64) -> Self {
        let top = integral(1.5, exponent) - 1.0;
        let bottom = integral(n_ranks as f64 + 0.5, exponent);
        let sure_within = 2.0 - inverse(integral(2.5, exponent) - hat(2.0, exponent), exponent);
        Self { n_ranks, exponent, top, bottom, sure_within }
    }

    /// Returns the number of ranks.
    pub fn n_ranks(&self) -> u64 {
        self.n_ranks
    }

    /// Draws one rank, from 0.
    pub fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        loop {
            let area = self.bottom + rng.unit() * (self.top - self.bottom);
            let point = inverse(area, self.exponent);
            let rank = point.round().clamp(1.0, self.n_ranks as f64);
            let accepted = rank - point <= self.sure_within
                || area >= integral(rank + 0.5, self.exponent) - hat(rank, self.exponent);
            if accepted {
                return rank as u64 - 1;
            }
        }
    }
}

/// The hat: x^-exponent.
fn hat(x: f64, exponent: f64) -> f64 {
    (-exponent * x.ln()).exp()
}

/// An antiderivative of the hat: (x^(1-exponent) - 1) / (1-exponent), and ln x at exponent 1, without cancellation near
/// it.
fn integral(x: f64, exponent: f64) -> f64 {
    let log = x.ln();
    ratio_expm1((1.0 - exponent) * log) * log
}

/// The inverse of [`integral`].
fn inverse(area: f64, exponent: f64) -> f64 {
    // Rounding may push the argument to -1 or below for exponents above 1; the rank is clamped afterwards.
    let scaled = (area * (1.0 - exponent)).max(-1.0 + f64::EPSILON);
    (ratio_ln1p(scaled) * area).exp()
}

/// (e^x - 1) / x, 1 at 0.
fn ratio_expm1(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

/// ln(1 + x) / x, 1 at 0.
fn ratio_ln1p(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alias_columns_add_up_to_the_weights() {
        for (n_keys, exponent) in [(1, 0.99), (2, 1.2), (10, 0.5), (1_000, 0.99), (100_000, 1.2)] {
            let table = AliasTable::zipf(n_keys, exponent);
            let mut mass = vec![0.0; n_keys as usize];
            for (key, column) in table.columns.iter().enumerate() {
                let own = f64::from(column.own_below) / 2_f64.powi(32);
                mass[key] += own;
                mass[column.alias as usize] += 1.0 - own;
            }
            let total: f64 = (1..=n_keys).map(|rank| (rank as f64).powf(-exponent)).sum();
            let scatter = Permutation::scatter(n_keys);
            for rank_idx in 0..n_keys {
                let exact = ((rank_idx + 1) as f64).powf(-exponent) / total * n_keys as f64;
                let built = mass[scatter.apply(rank_idx) as usize];
                // 2^-32 a column; the largest key is the alias of up to all of them.
                assert!((built - exact).abs() < n_keys as f64 * 2_f64.powi(-31) + 1e-9, "{rank_idx}: {built} {exact}");
            }
        }
    }

    #[test]
    fn ranks_stay_in_range_for_extreme_exponents() {
        for exponent in [0.0, 1e-6, 0.999_999, 1.0, 1.000_001, 3.0, 10.0] {
            for n_ranks in [1, 2, 1_000_000, u64::MAX >> 12] {
                let ranks = ZipfRanks::new(n_ranks, exponent);
                let mut rng = Xoshiro256PlusPlus::new(9);
                for _ in 0..1_000 {
                    assert!(ranks.draw(&mut rng) < n_ranks, "exponent {exponent}, {n_ranks} ranks");
                }
            }
        }
    }
}
