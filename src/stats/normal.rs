//! The upper tail of the standard normal distribution.
//!
//! Built from additions, multiplications and divisions alone: `exp` of a platform's mathematics library may differ in
//! the last bit from another's, and a p-value on the edge would then decide differently on two machines.

/// Returns the probability that a standard normal variable exceeds `z`, for `z >= 0`.
///
/// Source: the series of the error function below 2.5, the continued fraction of its complement above (Abramowitz and
/// Stegun 1964, 7.1.6 and 7.1.14). Relative error below 1e-12.
pub fn upper_tail(z: f64) -> f64 {
    let x = z * std::f64::consts::FRAC_1_SQRT_2;
    if x < 2.5 { 0.5 - 0.5 * erf_series(x) } else { 0.5 * erfc_fraction(x) }
}

/// 1 / sqrt(pi).
const FRAC_1_SQRT_PI: f64 = 0.564_189_583_547_756_3;

/// The error function by its series `2/sqrt(pi) exp(-x²) sum (2x²)^k x / (2k+1)!!`, whose terms are all positive.
fn erf_series(x: f64) -> f64 {
    let (mut term, mut sum, mut k) = (x, x, 0.0);
    while term > sum * 1e-17 {
        k += 1.0;
        term *= 2.0 * x * x / (2.0 * k + 1.0);
        sum += term;
    }
    2.0 * FRAC_1_SQRT_PI * exp_negative(x * x) * sum
}

/// The complement by its continued fraction, evaluated from the tail.
fn erfc_fraction(x: f64) -> f64 {
    // 120 levels converge to the last bit for every x >= 2.5.
    let tail = (1..=120).rev().fold(x, |tail, k| x + f64::from(k) / 2.0 / tail);
    exp_negative(x * x) * FRAC_1_SQRT_PI / tail
}

/// Returns `exp(-y)` for `y >= 0`: the series on `y / 2^n`, squared n times.
pub(super) fn exp_negative(y: f64) -> f64 {
    if y > 745.0 {
        return 0.0;
    }
    let (mut reduced, mut n_squarings) = (y, 0);
    while reduced > 0.125 {
        reduced /= 2.0;
        n_squarings += 1;
    }
    let series = (1..=16).rev().fold(1.0, |sum, k| 1.0 - sum * reduced / f64::from(k));
    (0..n_squarings).fold(series, |power, _| power * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scipy 1.x `norm.sf`.
    #[test]
    fn agrees_with_reference() {
        for (z, expected) in [
            (0.0, 0.5),
            (0.5, 0.308_537_538_725_986_9),
            (1.959_963_984_540_054, 0.025),
            (3.0, 0.001_349_898_031_630_094_6),
            (3.6, 0.000_159_108_590_157_533_64),
            (6.0, 9.865_876_450_376_98e-10),
            (10.0, 7.619_853_024_160_527e-24),
        ] {
            let error = (upper_tail(z) / expected - 1.0).abs();
            assert!(error < 1e-11, "z {z}: {} instead of {expected}", upper_tail(z));
        }
        assert_eq!(upper_tail(60.0), 0.0);
    }
}
