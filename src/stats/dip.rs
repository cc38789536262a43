//! Hartigan's dip: how far a sample is from every distribution with a single mode.
//!
//! Source: Hartigan and Hartigan, *The dip test of unimodality*, Annals of Statistics 1985. The dip is the largest
//! distance between the empirical distribution and the nearest one that is convex up to its mode and concave after it.
//! Found as they describe: between the greatest convex minorant and the least concave majorant the mode's interval is
//! narrowed to where they are farthest apart, until that is no farther than what was given up on the way.

/// Smallest sample that is judged: below, even two clear modes are hardly rarer than what one mode gives by chance.
pub const MIN_N: usize = 10;

/// Probabilities of the columns of [`TABLE`].
const TAILS: [f64; 5] = [0.05, 0.01, 1e-3, 1e-4, 1e-5];

/// For each n, the dip times the square root of n that a sample of the uniform distribution exceeds with each
/// probability of [`TAILS`]. No distribution with a single mode is thought to exceed it more often (Hartigan and
/// Hartigan 1985, section 4). From three million
/// samples each; the tests repeat it with fewer. Beyond the last row its quantiles stand: they hardly change any more.
const TABLE: [(usize, [f64; 5]); 7] = [
    (10, [0.4415, 0.5045, 0.5709, 0.6187, 0.6746]),
    (15, [0.4596, 0.5264, 0.6018, 0.6599, 0.7112]),
    (20, [0.4701, 0.5395, 0.6197, 0.6858, 0.7418]),
    (30, [0.4832, 0.5563, 0.6414, 0.7118, 0.7673]),
    (50, [0.4968, 0.5730, 0.6634, 0.7389, 0.8061]),
    (100, [0.5108, 0.5904, 0.6856, 0.7670, 0.8282]),
    (200, [0.5212, 0.6032, 0.7028, 0.7851, 0.8679]),
];

/// Returns an upper bound of the probability that a sample of `n` values with one mode has a dip of at least `dip`; one
/// of a few round numbers. `None` below [`MIN_N`] values.
pub fn p_at_most(dip: f64, n: usize) -> Option<f64> {
    let above = TABLE.iter().position(|(known, _)| *known >= n).unwrap_or(TABLE.len() - 1);
    // The larger quantile of both neighbours: they change slowly and need not rise with n.
    let bound = |tail_idx: usize| {
        let below = if TABLE[above].0 == n { above } else { above.saturating_sub(1) };
        TABLE[above].1[tail_idx].max(TABLE[below].1[tail_idx])
    };
    let scaled = dip * (n as f64).sqrt();
    let passed = (0..TAILS.len()).take_while(|&tail_idx| scaled > bound(tail_idx)).last();
    (n >= MIN_N).then(|| passed.map_or(1.0, |tail_idx| TAILS[tail_idx]))
}

/// One distinct value with the number of values below it and up to it.
#[derive(Clone, Copy)]
struct Step {
    value: f64,
    below: f64,
    up_to: f64,
}

/// Returns the dip of ascending `sorted`, between 1 / 2n and 1/4; 0 if there are no two distinct values.
pub fn dip(sorted: &[f64]) -> f64 {
    let steps = steps(sorted);
    if steps.len() < 2 {
        return 0.0;
    }
    // Distances are counted in values; the empirical distribution jumps by one, so no curve is nearer than half of it.
    let (mut low, mut high, mut largest) = (0, steps.len() - 1, 1.0);
    loop {
        let minorant = hull(&steps[low..=high], |step| step.below, |turn| turn > 0.0);
        let majorant = hull(&steps[low..=high], |step| step.up_to, |turn| turn < 0.0);
        let widest = widest(&steps[low..=high], &minorant, &majorant);
        if widest.gap <= largest {
            break;
        }
        // Not at the ends of what is left: the mode may be there, and only a mode may have a jump.
        let given_up_left = (0..widest.low).map(|idx| steps[low + idx].up_to - minorant.at(steps[low + idx].value));
        let given_up_right =
            (widest.high + 1..=high - low).map(|idx| majorant.at(steps[low + idx].value) - steps[low + idx].below);
        largest = given_up_left.chain(given_up_right).fold(largest, f64::max);
        if (widest.low, widest.high) == (0, high - low) {
            break;
        }
        (low, high) = (low + widest.low, low + widest.high);
    }
    largest / (2.0 * sorted.len() as f64)
}

fn steps(sorted: &[f64]) -> Vec<Step> {
    let mut below = 0;
    let step = |equal: &[f64]| {
        let step = Step { value: equal[0], below: below as f64, up_to: (below + equal.len()) as f64 };
        below += equal.len();
        step
    };
    sorted.chunk_by(|a, b| a == b).map(step).collect()
}

/// A convex or concave curve through some of the steps.
struct Hull {
    /// Index of each corner among the steps, with its place and height.
    corners: Vec<(usize, f64, f64)>,
}

/// Builds the curve that `bends` the right way at each corner: up for a minorant, down for a majorant.
fn hull(steps: &[Step], height: impl Fn(&Step) -> f64, bends: impl Fn(f64) -> bool) -> Hull {
    let mut corners: Vec<(usize, f64, f64)> = Vec::new();
    for (idx, step) in steps.iter().enumerate() {
        let next = (idx, step.value, height(step));
        while let [.., before, last] = corners.as_slice() {
            let turn = (last.1 - before.1) * (next.2 - last.2) - (next.1 - last.1) * (last.2 - before.2);
            if bends(turn) {
                break;
            }
            corners.pop();
        }
        corners.push(next);
    }
    Hull { corners }
}

impl Hull {
    /// The height of the curve at a value between its ends.
    fn at(&self, value: f64) -> f64 {
        let right = self.corners.partition_point(|corner| corner.1 < value).min(self.corners.len() - 1);
        let (_, x, y) = self.corners[right];
        if x <= value || right == 0 {
            return y;
        }
        let (_, left_x, left_y) = self.corners[right - 1];
        left_y + (y - left_y) * (value - left_x) / (x - left_x)
    }

    /// The last corner at or before a step.
    fn corner_before(&self, step_idx: usize) -> usize {
        self.corners[self.corners.partition_point(|corner| corner.0 <= step_idx) - 1].0
    }

    /// The first corner at or after a step.
    fn corner_after(&self, step_idx: usize) -> usize {
        self.corners[self.corners.partition_point(|corner| corner.0 < step_idx)].0
    }
}

/// Where the two curves are farthest apart, and the interval that is left for the mode.
struct Widest {
    gap: f64,
    low: usize,
    high: usize,
}

fn widest(steps: &[Step], minorant: &Hull, majorant: &Hull) -> Widest {
    let gap = |idx: usize| majorant.at(steps[idx].value) - minorant.at(steps[idx].value);
    let of_minorant = minorant.corners.iter().map(|&(idx, ..)| (idx, majorant.corner_after(idx)));
    let of_majorant = majorant.corners.iter().map(|&(idx, ..)| (minorant.corner_before(idx), idx));
    let from_minorant = of_minorant.map(|(low, high)| Widest { gap: gap(low), low, high });
    let from_majorant = of_majorant.map(|(low, high)| Widest { gap: gap(high), low, high });
    let all = from_minorant.chain(from_majorant);
    all.max_by(|a, b| a.gap.total_cmp(&b.gap)).expect("a curve has corners")
}

#[cfg(test)]
mod tests {
    use rare_workloads::rng::Xoshiro256PlusPlus;

    use super::*;

    /// The package diptest 0.12 of Python, which wraps the authors' algorithm; but for the first, where it says 0.
    #[test]
    fn agrees_with_reference() {
        let even: Vec<f64> = (0..10).map(f64::from).collect();
        let squares: Vec<f64> = (1..=20).map(|i| f64::from(i * i)).collect();
        let mut scattered: Vec<f64> = (0..60).map(|i| f64::from(i * 37 % 101)).collect();
        scattered.sort_by(f64::total_cmp);
        for (sorted, expected) in [
            (even.as_slice(), 0.05),
            (&[0.0, 0.1, 0.2, 0.3, 0.4, 5.0, 5.1, 5.2, 5.3, 5.4], 0.23),
            (&[1.0, 1.1, 1.15, 1.3, 1.9, 2.0, 2.05, 3.5, 7.0, 7.1, 7.3, 9.9, 10.0], 0.106_593_406_593_406_59),
            (&[1.0, 1.0, 1.0, 2.0, 2.0, 3.0, 5.0, 5.0, 5.0, 5.0, 6.0, 9.0], 0.145_833_333_333_333_33),
            (&[0.95, 0.97, 0.98, 0.99, 1.0, 1.01, 1.02, 1.2, 1.21, 1.22, 1.23, 1.3], 0.142_857_142_857_142_82),
            (&squares, 0.025),
            (&scattered, 0.016_049_382_716_049_394),
        ] {
            assert!((dip(sorted) - expected).abs() < 1e-9, "{sorted:?}: {} instead of {expected}", dip(sorted));
        }
        assert_eq!(dip(&[3.0, 3.0, 3.0]), 0.0);
        assert!((dip(&[0.0, 0.0, 1.0, 1.0]) - 0.25).abs() < 1e-12);
    }

    fn uniform(n: usize, rng: &mut Xoshiro256PlusPlus) -> f64 {
        let mut values: Vec<f64> = (0..n).map(|_| rng.unit()).collect();
        values.sort_by(f64::total_cmp);
        dip(&values)
    }

    #[test]
    fn the_table_is_what_uniform_samples_give() {
        let n_samples = 20_000;
        for (n, quantiles) in TABLE.into_iter().filter(|(n, _)| *n <= 50) {
            let mut rng = Xoshiro256PlusPlus::new(n as u64 + 1);
            let all: Vec<f64> = (0..n_samples).map(|_| uniform(n, &mut rng) * (n as f64).sqrt()).collect();
            for (tail, quantile) in TAILS.into_iter().zip(quantiles).take(3) {
                let n_above = all.iter().filter(|&&one| one > quantile).count() as f64;
                let due = tail * f64::from(n_samples);
                assert!((n_above - due).abs() < 4.0 * due.sqrt(), "{n} values: {n_above} above, {due} due");
            }
        }
    }

    #[test]
    fn p_is_never_too_small_between_the_rows() {
        assert_eq!(p_at_most(0.25, 9), None);
        assert_eq!(p_at_most(0.05, 10), Some(1.0));
        assert_eq!(p_at_most(0.25, 10), Some(1e-5));
        // The larger neighbour's quantile holds for 12 values.
        let scaled = |quantile: f64| quantile / 12_f64.sqrt();
        assert_eq!(p_at_most(scaled(0.52), 12), Some(0.05));
        assert_eq!(p_at_most(scaled(0.53), 12), Some(0.01));
        assert_eq!(p_at_most(0.7 / 500_f64.sqrt(), 500), Some(0.01));
    }
}
