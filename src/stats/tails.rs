//! Tail probabilities of the chi-square and the Poisson distribution.
//!
//! Finite sums of additions, multiplications, divisions and square roots, for the reason that [`normal`] gives.

use super::normal;

/// Most degrees of freedom that [`chi_square_upper`] takes: with more, the terms of its sum leave the range of a double.
pub const MAX_FREEDOM: usize = 1000;

/// Largest mean that the Poisson tails take: half of what a chi-square variable may reach.
pub const MAX_MEAN: f64 = 450.0;

/// Beyond this, half of a chi-square variable with at most [`MAX_FREEDOM`] degrees of freedom has a tail below 1e-150.
const NEVER: f64 = 1400.0;

/// Returns the probability that a chi-square variable with `freedom` degrees of freedom is at least `x`, for `x >= 0`.
///
/// Source: Abramowitz and Stegun 1964, 26.4.4 and 26.4.5: a Poisson sum for an even number, the normal tail and a like
/// sum for an odd one. Relative error below 1e-11.
///
/// # Panics
/// If `freedom` is 0 or above [`MAX_FREEDOM`].
pub fn chi_square_upper(x: f64, freedom: usize) -> f64 {
    assert!((1..=MAX_FREEDOM).contains(&freedom), "{freedom} degrees of freedom");
    let half = x / 2.0;
    if half > NEVER {
        return 0.0;
    }
    let (first, step, tail) = if freedom.is_multiple_of(2) {
        (1.0, 0.0, 0.0)
    } else {
        // half^(1/2) over the gamma function of 3/2.
        (half.sqrt() * std::f64::consts::FRAC_2_SQRT_PI, 0.5, 2.0 * normal::upper_tail(x.sqrt()))
    };
    let mut term = first;
    let mut sum = 0.0;
    for k in 1..=freedom / 2 {
        sum += term;
        term *= half / (k as f64 + step);
    }
    // Half of the factor at a time: the whole of it may be too small for a double where the product is not.
    let factor = normal::exp_negative(half / 2.0);
    (tail + sum * factor * factor).min(1.0)
}

/// Returns the probability that a Poisson variable of that mean is at least `count`; the mean is at most [`MAX_MEAN`].
pub fn poisson_upper(mean: f64, count: u64) -> f64 {
    if count == 0 { 1.0 } else { 1.0 - poisson_lower(mean, count - 1) }
}

/// Returns the probability that a Poisson variable of that mean is at most `count`; the mean is at most [`MAX_MEAN`].
pub fn poisson_lower(mean: f64, count: u64) -> f64 {
    let half = usize::try_from(count).map_or(MAX_FREEDOM, |count| count.saturating_add(1));
    // Beyond twice the largest mean nothing is left.
    if half > MAX_FREEDOM / 2 {
        return if mean <= MAX_MEAN { 1.0 } else { f64::NAN };
    }
    chi_square_upper(2.0 * mean, 2 * half)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scipy 1.x `chi2.sf`.
    #[test]
    fn chi_square_agrees_with_reference() {
        for (x, freedom, expected) in [
            (3.0, 1, 0.083_264_516_663_550_42),
            (10.0, 2, 0.006_737_946_999_085_468),
            (20.5, 9, 0.015_065_373_645_983_756),
            (25.0, 7, 0.000_758_800_255_658_250_2),
            (300.0, 255, 0.027_727_522_053_904_83),
            (400.0, 255, 1.660_002_524_412_340_7e-8),
            (1100.0, 1000, 0.014_614_408_126_295_192),
            (1500.0, 1000, 1.045_464_038_598_082_5e-22),
        ] {
            let error = (chi_square_upper(x, freedom) / expected - 1.0).abs();
            assert!(error < 1e-10, "{x} with {freedom}: {}", chi_square_upper(x, freedom));
        }
        assert_eq!(chi_square_upper(0.0, 3), 1.0);
        assert_eq!(chi_square_upper(1e9, 3), 0.0);
    }

    /// scipy 1.x `poisson.sf` and `poisson.cdf`.
    #[test]
    fn poisson_agrees_with_reference() {
        for (mean, count, upper, lower) in [
            (0.5, 4, 0.001_751_622_556_290_824, 0.999_827_884_370_044_1),
            (10.0, 25, 4.694_938_142_679_987e-5, 0.999_982_319_727_582_6),
            (200.0, 150, 0.999_903_213_780_050_6, 0.000_131_357_030_169_440_27),
        ] {
            assert!((poisson_upper(mean, count) - upper).abs() < 1e-12, "{}", poisson_upper(mean, count));
            assert!((poisson_lower(mean, count) / lower - 1.0).abs() < 1e-10, "{}", poisson_lower(mean, count));
        }
        assert_eq!((poisson_upper(7.0, 0), poisson_upper(7.0, 10_000)), (1.0, 0.0));
    }
}
