//! One sample in numbers: centre, spread, extremes, outliers. Nothing is ever removed from a sample.

use super::bootstrap::{self, Interval};

/// Modified z-scores above this count as outliers. Source: Iglewicz and Hoaglin, *How to detect and handle outliers*,
/// ASQC 1993.
pub const MODIFIED_Z_CUT: f64 = 3.5;

/// Values beyond this many interquartile ranges from the quartiles count as outliers. Source: Tukey, *Exploratory data
/// analysis*, 1977.
pub const TUKEY_FENCE: f64 = 1.5;

/// A described sample; the unit is that of the values.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Number of values, at least 1.
    pub n: usize,
    /// Middle value, or the mean of the two middle ones.
    pub median: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the sample (divided by n - 1); `None` for one value.
    pub sd: Option<f64>,
    /// Standard deviation over the mean, dimensionless; `None` for one value or a mean of zero.
    pub cv: Option<f64>,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// 95 % interval of the median; `None` at n <= 5, where no non-parametric interval reaches 95 %.
    pub interval: Option<Interval>,
    /// Values whose modified z-score is above [`MODIFIED_Z_CUT`]; `None` if more than half of the values are equal,
    /// since every score would be 0 or infinite.
    pub outliers_modified_z: Option<usize>,
    /// Values beyond [`TUKEY_FENCE`]; `None` at n < 4, where quartiles mean nothing.
    pub outliers_tukey: Option<usize>,
}

/// Describes `values`, which must be finite; `None` if there are none.
pub fn describe(values: &[f64]) -> Option<Description> {
    if values.is_empty() {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let mean = sorted.iter().sum::<f64>() / n as f64;
    let squares: f64 = sorted.iter().map(|value| (value - mean) * (value - mean)).sum();
    let sd = (n > 1).then(|| (squares / (n - 1) as f64).sqrt());
    Some(Description {
        n,
        median: median_of_sorted(&sorted),
        mean,
        sd,
        cv: sd.filter(|_| mean != 0.0).map(|sd| sd / mean),
        min: sorted[0],
        max: sorted[n - 1],
        interval: bootstrap::median_interval(&sorted),
        outliers_modified_z: modified_z_outliers(&sorted),
        outliers_tukey: tukey_outliers(&sorted),
    })
}

/// Returns the median of values in any order; `None` if there are none.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| median_of_sorted(&sorted))
}

/// Returns the median of ascending, non-empty `sorted`.
pub(crate) fn median_of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

/// Returns the quantile `share` by linear interpolation between order statistics (type 7 of Hyndman and Fan 1996).
pub(super) fn quantile_of_sorted(sorted: &[f64], share: f64) -> f64 {
    let position = share * (sorted.len() - 1) as f64;
    let below = position as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (position - below as f64) * (sorted[above] - sorted[below])
}

fn modified_z_outliers(sorted: &[f64]) -> Option<usize> {
    let median = median_of_sorted(sorted);
    let mut deviations: Vec<f64> = sorted.iter().map(|value| (value - median).abs()).collect();
    deviations.sort_by(f64::total_cmp);
    let mad = median_of_sorted(&deviations);
    // 0.6745 is the upper quartile of the standard normal: it makes the score comparable to a z-score.
    (mad > 0.0).then(|| deviations.iter().filter(|&&deviation| 0.6745 * deviation / mad > MODIFIED_Z_CUT).count())
}

fn tukey_outliers(sorted: &[f64]) -> Option<usize> {
    if sorted.len() < 4 {
        return None;
    }
    let (lower, upper) = (quantile_of_sorted(sorted, 0.25), quantile_of_sorted(sorted, 0.75));
    let reach = TUKEY_FENCE * (upper - lower);
    Some(sorted.iter().filter(|&&value| value < lower - reach || value > upper + reach).count())
}
