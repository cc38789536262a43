//! Bootstrap intervals of a median and of a ratio of two medians.
//!
//! The distribution that resampling approaches is known in closed form for a median: which order statistic the median
//! of a resample falls on depends on ranks only. So nothing is drawn here: the interval is the one of infinitely many
//! resamples, without a seed and without simulation error. Source: Efron, *Bootstrap methods: another look at the
//! jackknife*, Annals of Statistics 1979, section 3, for odd n; the pair of middle order statistics for even n follows
//! in the same way.

/// Smallest sample with an interval. With five values even the range from the smallest to the largest misses the
/// median with a probability of 2 / 2^5 = 6.25 % (Hoefler and Belli, SC'15, rule 6).
pub const MIN_N: usize = 6;

/// Largest sample with an interval: the binomial coefficients of larger ones leave the range of a double.
pub const MAX_N: usize = 1000;

/// Share of the distribution outside an interval, half on each side: 95 % intervals.
const TAIL: f64 = 0.025;

/// A 95 % interval, `low <= high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A value that the median of a resample can take, with its probability.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Atom {
    value: f64,
    weight: f64,
}

/// Returns the percentile interval of the median of ascending `sorted`; `None` outside of [`MIN_N`] to [`MAX_N`] values.
pub fn median_interval(sorted: &[f64]) -> Option<Interval> {
    (MIN_N..=MAX_N).contains(&sorted.len()).then(|| {
        let atoms = median_atoms(sorted);
        Interval { low: quantile(atoms.iter().copied(), TAIL), high: quantile(atoms.iter().rev().copied(), TAIL) }
    })
}

/// Returns the percentile interval of `median(left) / median(right)`, both ascending and positive; `None` if either
/// is outside of [`MIN_N`] to [`MAX_N`] values or has one that is not positive.
pub fn ratio_interval(left: &[f64], right: &[f64]) -> Option<Interval> {
    let usable = |sorted: &[f64]| (MIN_N..=MAX_N).contains(&sorted.len()) && sorted[0] > 0.0;
    if !usable(left) || !usable(right) {
        return None;
    }
    let (left, right) = (median_atoms(left), median_atoms(right));
    Some(Interval { low: ratio_quantile(&left, &right, TAIL), high: 1.0 / ratio_quantile(&right, &left, TAIL) })
}

/// Distribution of the median of a resample, ascending by value; the weights add up to 1.
fn median_atoms(sorted: &[f64]) -> Vec<Atom> {
    let mut atoms = if sorted.len() % 2 == 1 { odd_atoms(sorted) } else { even_atoms(sorted) };
    atoms.retain(|atom| atom.weight > 0.0);
    atoms.sort_by(|a, b| a.value.total_cmp(&b.value));
    atoms
}

/// Odd n: the median is the order statistic `m = (n + 1) / 2`, which is at most the i-th smallest value if at least m
/// draws are.
fn odd_atoms(sorted: &[f64]) -> Vec<Atom> {
    let (n, m) = (sorted.len(), sorted.len().div_ceil(2));
    let mut below = 0.0;
    let atom = |(i, &value): (usize, &f64)| {
        let up_to = at_least(n, m, (i + 1) as f64 / n as f64);
        let weight = up_to - below;
        below = up_to;
        Atom { value, weight }
    };
    sorted.iter().enumerate().map(atom).collect()
}

/// Even n = 2m: the m-th is the i-th smallest value and the next the j-th, with i < j, if m draws are at most the i-th
/// (and not all below it) and the others at least the j-th (and not all above it). The rest of the m-th's weight is i = j.
fn even_atoms(sorted: &[f64]) -> Vec<Atom> {
    let (n, m) = (sorted.len(), sorted.len() / 2);
    let ways = binomial(n, m);
    let power = |count: usize| (0..m).fold(1.0, |product, _| product * count as f64 / n as f64);
    // powers[c] = (c / n)^m
    let powers: Vec<f64> = (0..=n).map(power).collect();
    let mut atoms = Vec::with_capacity(n * (n + 1) / 2);
    let mut below = 0.0;
    for i in 0..n {
        let up_to = at_least(n, m, (i + 1) as f64 / n as f64);
        let mut rest = up_to - below;
        below = up_to;
        for j in i + 1..n {
            let weight = ways * (powers[i + 1] - powers[i]) * (powers[n - j] - powers[n - j - 1]);
            rest -= weight;
            atoms.push(Atom { value: (sorted[i] + sorted[j]) / 2.0, weight });
        }
        atoms.push(Atom { value: sorted[i], weight: rest.max(0.0) });
    }
    atoms
}

/// Probability of at least `m` successes in `n` draws of probability `p`.
fn at_least(n: usize, m: usize, p: f64) -> f64 {
    if p > 0.5 {
        // Summed from the side where the first term is the largest, so that it underflows only if all do.
        return 1.0 - at_least(n, n - m + 1, 1.0 - p);
    }
    let hits = (0..m).fold(binomial(n, m), |product, _| product * p);
    let mut term = (m..n).fold(hits, |product, _| product * (1.0 - p));
    let mut sum = term;
    for k in m..n {
        term *= (n - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
        sum += term;
    }
    sum.min(1.0)
}

/// Number of ways to choose `k` of `n`; a float, since it only weighs.
fn binomial(n: usize, k: usize) -> f64 {
    (1..=k).fold(1.0, |product, i| product * (n - k + i) as f64 / i as f64)
}

/// First value, in the order given, at which the accumulated weight exceeds `share`.
fn quantile(atoms: impl Iterator<Item = Atom>, share: f64) -> f64 {
    let (mut sum, mut last) = (0.0, f64::NAN);
    for atom in atoms {
        sum += atom.weight;
        last = atom.value;
        if sum > share {
            break;
        }
    }
    last
}

/// Smallest ratio `left / right` at which the distribution of the ratio exceeds `share`, by bisection: listing every
/// pair would take the fourth power of n.
fn ratio_quantile(left: &[Atom], right: &[Atom], share: f64) -> f64 {
    let mut low = left[0].value / right[right.len() - 1].value;
    let mut high = left[left.len() - 1].value / right[0].value;
    // 64 halvings leave no more than the last bit of any double.
    for _ in 0..64 {
        let middle = low + (high - low) / 2.0;
        if share_at_most(left, right, middle) > share { high = middle } else { low = middle }
    }
    high
}

/// Probability that `left <= ratio * right`.
fn share_at_most(left: &[Atom], right: &[Atom], ratio: f64) -> f64 {
    let (mut sum, mut reached, mut next) = (0.0, 0.0, 0);
    for atom in right {
        while next < left.len() && left[next].value <= ratio * atom.value {
            reached += left[next].weight;
            next += 1;
        }
        sum += atom.weight * reached;
    }
    sum
}
