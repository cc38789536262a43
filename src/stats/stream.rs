//! Examines a stream of drawn keys and operations for the faults of generators in use.
//!
//! A function of the draws alone, so that a test can hand it a broken stream. Each examination gives one p-value, already
//! corrected for what it looks at several times; the bound is the check's. Expectations of skewed keys need powers, which
//! a platform's library computes: the bound is so far out that a last bit decides nothing.
//!
//! Rules: Kharal and Brown 2022 and the generators of public harnesses. Tests: Knuth, *The Art of Computer Programming* 2,
//! section 3.3.

use rare_workloads::{
    keys::Permutation,
    protocol::{Distribution, Mix},
};

use super::{normal, tails};

/// Fewest draws that a class of a chi-square test is expected to have; with 5, the rule of thumb, the tail of the
/// distribution is far off where the bound lies.
const MIN_EXPECTED: f64 = 100.0;

/// Most classes of a chi-square test.
const MAX_CLASSES: u64 = 256;

/// Up to this expected count the Poisson distribution is exact enough, and above it the normal one is.
const POISSON_BELOW: f64 = tails::MAX_MEAN;

/// Ranks of a skewed distribution that are told apart; the others are one class.
const TOP_RANKS: u64 = 4096;

/// Kinds of operations.
pub const N_KINDS: usize = 4;

/// Names of the kinds.
const KIND_NAMES: [&str; N_KINDS] = ["insert", "remove", "contains", "range"];

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// Its key.
    pub key: u64,
    /// Its kind: 0 insert, 1 remove, 2 contains, 3 range query.
    pub kind: u8,
}

/// What a stream is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// Keys are below it; at least 1.
    pub key_range: u64,
    /// How keys are drawn.
    pub distribution: Distribution,
    /// Shares of the kinds.
    pub mix: Mix,
}

/// What one examination found.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Probability that a stream that keeps the promise looks as far off.
    pub p: f64,
    /// What was found, and what was due.
    pub text: String,
}

/// Examines a stream; empty if it has too few draws to say anything.
pub fn examine(promise: &Promise, draws: &[Draw]) -> Vec<Finding> {
    if draws.len() < 2 {
        return Vec::new();
    }
    if let Some(draw) = draws.iter().find(|draw| draw.key >= promise.key_range || usize::from(draw.kind) >= N_KINDS) {
        return vec![Finding { p: 0.0, text: format!("drew {draw:?} of {} keys", promise.key_range) }];
    }
    let keys = match promise.distribution {
        Distribution::Uniform => vec![uniform(promise, draws), bits(promise, draws), distinct(promise, draws)],
        Distribution::Zipf(millionths) => vec![ranks(promise.key_range, exponent(millionths), draws)],
    };
    let rest = [correlation(draws), shares(promise.mix, draws), independence(promise.key_range, draws)];
    keys.into_iter().chain(rest).flatten().collect()
}

/// Compares the streams of two threads, draw by draw: equal ones are rare unless one stream is the other.
pub fn compare(promise: &Promise, left: &[Draw], right: &[Draw]) -> Finding {
    let n = left.len().min(right.len());
    let n_equal = left.iter().zip(right).filter(|(left, right)| left == right).count();
    let Mix { insert, remove, contains, range } = promise.mix;
    let squares = |share: u32| (f64::from(share) / f64::from(Mix::WHOLE)).powi(2);
    let kinds: f64 = [insert, remove, contains, range].into_iter().map(squares).sum();
    let keys = match promise.distribution {
        Distribution::Uniform => 1.0 / promise.key_range as f64,
        Distribution::Zipf(millionths) => {
            let exponent = exponent(millionths);
            weight_of_ranks(promise.key_range, 2.0 * exponent) / weight_of_ranks(promise.key_range, exponent).powi(2)
        }
    };
    let text = format!("{n_equal} of {n} draws of two threads are the same, {:.0} are due", keys * kinds * n as f64);
    // One key and one kind: all draws are the same, as they must be.
    let p = if keys * kinds < 1.0 { count_p(n, keys * kinds, n_equal).1 } else { 1.0 };
    Finding { p, text }
}

fn exponent(millionths: u32) -> f64 {
    f64::from(millionths) / 1e6
}

/// Classes of the key range of about equal size.
fn uniform(promise: &Promise, draws: &[Draw]) -> Option<Finding> {
    let n_classes = MAX_CLASSES.min(promise.key_range).min((draws.len() as f64 / MIN_EXPECTED) as u64);
    let observed = count_parts(draws, promise.key_range, n_classes);
    let edge = |class: u64| (u128::from(class) * u128::from(promise.key_range)).div_ceil(u128::from(n_classes.max(1)));
    let scale = draws.len() as f64 / promise.key_range as f64;
    let expected: Vec<f64> = (0..n_classes).map(|class| (edge(class + 1) - edge(class)) as f64 * scale).collect();
    let p = chi_square_p(&observed, &expected)?;
    Some(Finding { p, text: format!("the keys fill {n_classes} parts of the range unevenly") })
}

/// Counts the draws in each of so many parts of the key range.
fn count_parts(draws: &[Draw], key_range: u64, n_parts: u64) -> Vec<f64> {
    let mut observed = vec![0.0; n_parts as usize];
    draws.iter().filter(|_| n_parts > 0).for_each(|draw| observed[part(draw.key, key_range, n_parts)] += 1.0);
    observed
}

fn part(key: u64, key_range: u64, n_parts: u64) -> usize {
    // Division of wide numbers is a call; few ranges need it.
    match key.checked_mul(n_parts) {
        Some(product) => (product / key_range) as usize,
        None => (u128::from(key) * u128::from(n_parts) / u128::from(key_range)) as usize,
    }
}

/// How often each bit of the keys is set.
fn bits(promise: &Promise, draws: &[Draw]) -> Option<Finding> {
    let n_bits = u64::BITS - (promise.key_range - 1).leading_zeros();
    let judged = (0..n_bits).map(|bit| {
        let n_set = draws.iter().filter(|draw| draw.key >> bit & 1 == 1).count();
        let share = keys_with_bit(promise.key_range, bit) as f64 / promise.key_range as f64;
        let p = two_sided(count_p(draws.len(), share, n_set)) * f64::from(n_bits);
        let found = 100.0 * n_set as f64 / draws.len() as f64;
        Finding { p, text: format!("bit {bit} is set in {found:.2} % of the keys, {:.2} % are due", 100.0 * share) }
    });
    judged.min_by(|a, b| a.p.total_cmp(&b.p))
}

/// Counts the numbers below `n` that have a bit set.
fn keys_with_bit(n: u64, bit: u32) -> u64 {
    let half = 1_u64 << bit;
    let whole = n.checked_shr(bit + 1).unwrap_or(0) << bit;
    let rest = n & (half - 1) | n & half;
    whole + rest.saturating_sub(half)
}

/// How many keys of the range were drawn at all: by those that were not, or by the draws that repeat a key.
fn distinct(promise: &Promise, draws: &[Draw]) -> Option<Finding> {
    if promise.key_range < 2 {
        return None;
    }
    let (n, keys) = (draws.len() as f64, promise.key_range as f64);
    let n_distinct = count_distinct(promise.key_range, draws);
    // Logarithm of the chance that no draw hits a key, by its series: -ln(1 - 1/keys) is the sum of 1 / (k keys^k).
    let rate: f64 = (1..=60).map(|k| 1.0 / (f64::from(k) * keys.powi(k))).sum();
    let missed = normal::exp_negative(rate * n);
    let (due_missed, n_missed) = (keys * missed, promise.key_range - n_distinct);
    let (due_repeats, n_repeats) = (n - keys * (1.0 - missed), draws.len() as u64 - n_distinct);
    let p = if due_missed <= POISSON_BELOW {
        two_sided((tails::poisson_lower(due_missed, n_missed), tails::poisson_upper(due_missed, n_missed)))
    } else if due_repeats <= POISSON_BELOW || keys > 1e9 {
        // The exact form cancels out where keys are many; pairs are what matters then.
        let pairs = n * (n - 1.0) / 2.0 / keys;
        let due = if keys > 1e9 { pairs } else { due_repeats };
        two_sided((tails::poisson_lower(due, n_repeats), tails::poisson_upper(due, n_repeats)))
    } else {
        let load = n / keys;
        let variance = keys * missed * (1.0 - (1.0 + load) * missed);
        normal_two_sided((n_missed as f64 - due_missed) / variance.sqrt())
    };
    let due = keys - due_missed;
    Some(Finding { p, text: format!("{n_distinct} of {} keys were drawn, {due:.0} are due", promise.key_range) })
}

fn count_distinct(key_range: u64, draws: &[Draw]) -> u64 {
    // A map of bits where it is no larger than the keys themselves.
    if key_range <= 64 * draws.len() as u64 {
        let mut seen = vec![0_u64; key_range.div_ceil(64) as usize];
        draws.iter().for_each(|draw| seen[(draw.key / 64) as usize] |= 1 << (draw.key % 64));
        return seen.iter().map(|word| u64::from(word.count_ones())).sum();
    }
    let mut keys: Vec<u64> = draws.iter().map(|draw| draw.key).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.len() as u64
}

/// Correlation of each key with the next, and of their lowest bits.
fn correlation(draws: &[Draw]) -> Option<Finding> {
    let of = |what: &str, value: fn(&Draw) -> f64| {
        let r = lag_1(draws, value)?;
        let p = 2.0 * normal_two_sided(r * (draws.len() as f64).sqrt());
        Some(Finding { p, text: format!("{what} correlate with those of the next draw by {r:.4}") })
    };
    let keys = of("keys", |draw| draw.key as f64);
    let parities = of("lowest bits of keys", |draw| (draw.key & 1) as f64);
    keys.into_iter().chain(parities).min_by(|a, b| a.p.total_cmp(&b.p))
}

/// `None` if all values are equal.
fn lag_1(draws: &[Draw], value: fn(&Draw) -> f64) -> Option<f64> {
    let mean = draws.iter().map(value).sum::<f64>() / draws.len() as f64;
    let variance: f64 = draws.iter().map(|draw| (value(draw) - mean).powi(2)).sum();
    let covariance: f64 = draws.windows(2).map(|pair| (value(&pair[0]) - mean) * (value(&pair[1]) - mean)).sum();
    (variance > 0.0).then(|| covariance / variance)
}

/// Shares of the kinds.
fn shares(mix: Mix, draws: &[Draw]) -> Option<Finding> {
    let shares = [mix.insert, mix.remove, mix.contains, mix.range];
    let counts = kind_counts(draws);
    let judged = (0..N_KINDS).map(|kind| {
        let share = f64::from(shares[kind]) / f64::from(Mix::WHOLE);
        let p = match shares[kind] {
            0 => f64::from(u8::from(counts[kind] == 0)),
            Mix::WHOLE => f64::from(u8::from(counts[kind] == draws.len())),
            _ => two_sided(count_p(draws.len(), share, counts[kind])) * N_KINDS as f64,
        };
        let found = 100.0 * counts[kind] as f64 / draws.len() as f64;
        let name = KIND_NAMES[kind];
        Finding { p, text: format!("{found:.2} % of the draws are `{name}`, {:.2} % are due", 100.0 * share) }
    });
    judged.min_by(|a, b| a.p.total_cmp(&b.p))
}

fn kind_counts(draws: &[Draw]) -> [usize; N_KINDS] {
    let mut counts = [0; N_KINDS];
    draws.iter().for_each(|draw| counts[usize::from(draw.kind)] += 1);
    counts
}

/// Kind of operation against the part of the range, and the parity, of its key.
fn independence(key_range: u64, draws: &[Draw]) -> Option<Finding> {
    let parities = ("on the parity of the key", 2, None);
    let halves = ("on the half of the range that the key lies in", 2.min(key_range), Some(key_range));
    let parts = ("on the part of the range that the key lies in", 16.min(key_range), Some(key_range));
    let judge = |(what, n_parts, range): (&str, u64, Option<u64>)| {
        let part = |draw: &Draw| range.map_or((draw.key & 1) as usize, |range| part(draw.key, range, n_parts));
        let p = 3.0 * contingency_p(n_parts as usize, draws, part)?;
        Some(Finding { p, text: format!("the kind of operation depends {what}") })
    };
    [parities, halves, parts].into_iter().filter_map(judge).min_by(|a, b| a.p.total_cmp(&b.p))
}

/// Chi-square test of a table of parts and kinds; parts and kinds that are too rare are left out, which keeps what is
/// left independent. `None` if nothing is left.
fn contingency_p(n_parts: usize, draws: &[Draw], part: impl Fn(&Draw) -> usize) -> Option<f64> {
    let mut table = vec![[0.0; N_KINDS]; n_parts];
    draws.iter().for_each(|draw| table[part(draw)][usize::from(draw.kind)] += 1.0);
    let n = draws.len() as f64;
    // Of the sums over all: leaving out by what was counted in single fields would choose by the result.
    let rows: Vec<f64> = table.iter().map(|row| row.iter().sum()).collect();
    let columns: Vec<f64> = (0..N_KINDS).map(|kind| table.iter().map(|row| row[kind]).sum()).collect();
    let (common_row, common_column) =
        (rows.iter().copied().fold(0.0, f64::max), columns.iter().copied().fold(0.0, f64::max));
    let parts: Vec<usize> = (0..n_parts).filter(|&idx| rows[idx] * common_column / n >= MIN_EXPECTED).collect();
    let least_row = parts.iter().map(|&idx| rows[idx]).fold(common_row, f64::min);
    let kinds: Vec<usize> = (0..N_KINDS).filter(|&kind| columns[kind] * least_row / n >= MIN_EXPECTED).collect();
    if parts.len() < 2 || kinds.len() < 2 {
        return None;
    }
    let row_sum = |idx: usize| kinds.iter().map(|&kind| table[idx][kind]).sum::<f64>();
    let column_sum = |kind: usize| parts.iter().map(|&idx| table[idx][kind]).sum::<f64>();
    let all: f64 = parts.iter().map(|&idx| row_sum(idx)).sum();
    let mut statistic = 0.0;
    for &idx in &parts {
        for &kind in &kinds {
            let expected = row_sum(idx) * column_sum(kind) / all;
            statistic += (table[idx][kind] - expected).powi(2) / expected;
        }
    }
    Some(tails::chi_square_upper(statistic, (parts.len() - 1) * (kinds.len() - 1)))
}

/// Frequencies of the ranks of a skewed distribution, the common ones apart and the rest together.
fn ranks(key_range: u64, exponent: f64, draws: &[Draw]) -> Option<Finding> {
    let scatter = Permutation::scatter(key_range);
    let scale = draws.len() as f64 / weight_of_ranks(key_range, exponent);
    let enough = MIN_EXPECTED.max(draws.len() as f64 / MAX_CLASSES as f64);
    // Class of each common key, by key; the class of the rest is the last one.
    let (mut classes, mut expected) = (Vec::new(), vec![0.0]);
    for rank_idx in 0..TOP_RANKS.min(key_range) {
        if expected[expected.len() - 1] >= enough {
            expected.push(0.0);
        }
        let class = expected.len() - 1;
        classes.push((scatter.apply(rank_idx), class));
        expected[class] += ((rank_idx + 1) as f64).powf(-exponent) * scale;
    }
    let rest = (draws.len() as f64 - expected.iter().sum::<f64>()).max(0.0);
    // A class that is too rare joins the rest.
    let n_full = expected.iter().take_while(|&&due| due >= enough).count();
    let rest = rest + expected.drain(n_full..).sum::<f64>();
    let has_rest = rest >= enough;
    if has_rest {
        expected.push(rest);
    }
    classes.sort_unstable();
    let last = expected.len().checked_sub(1)?;
    let mut observed = vec![0.0; expected.len()];
    for draw in draws {
        let found = classes.binary_search_by_key(&draw.key, |&(key, _)| key).map_or(last, |at| classes[at].1.min(last));
        observed[found] += 1.0;
    }
    if !has_rest {
        expected[last] += rest;
    }
    let p = chi_square_p(&observed, &expected)?;
    let share = |counts: &[f64]| 100.0 * counts[0] / draws.len() as f64;
    let (found, due) = (share(&observed), share(&expected));
    let text =
        format!("frequencies of ranks are off, such as {found:.2} % for the most common, where {due:.2} % are due");
    Some(Finding { p, text })
}

/// The sum of rank^-exponent over all ranks from 1.
fn weight_of_ranks(n_ranks: u64, exponent: f64) -> f64 {
    /// Summed one by one; the integral over the rest is then off by less than 1e-9 of the sum.
    const DIRECT: u64 = 1 << 16;
    let direct: f64 = (1..=n_ranks.min(DIRECT)).map(|rank| (rank as f64).powf(-exponent)).sum();
    if n_ranks <= DIRECT {
        return direct;
    }
    let (from, to) = (DIRECT as f64 + 0.5, n_ranks as f64 + 0.5);
    let log = (to / from).ln();
    let scaled = (1.0 - exponent) * log;
    let ratio = if scaled.abs() > 1e-9 { scaled.exp_m1() / scaled } else { 1.0 };
    direct + from.powf(1.0 - exponent) * log * ratio
}

/// Two-sided p-value of counts against expectations: too even is as wrong as too uneven. `None` for a single class.
fn chi_square_p(observed: &[f64], expected: &[f64]) -> Option<f64> {
    let statistic: f64 =
        observed.iter().zip(expected).map(|(observed, expected)| (observed - expected).powi(2) / expected).sum();
    (expected.len() > 1).then(|| {
        let upper = tails::chi_square_upper(statistic, expected.len() - 1);
        two_sided((1.0 - upper, upper))
    })
}

/// Probabilities that at most, and at least, so many of `n` draws have a property of that share, below 1.
fn count_p(n: usize, share: f64, count: usize) -> (f64, f64) {
    let n = n as f64;
    if share > 0.5 {
        let (lower, upper) = count_p(n as usize, 1.0 - share, n as usize - count);
        return (upper, lower);
    }
    if n * share <= POISSON_BELOW && share < 0.05 {
        return (tails::poisson_lower(n * share, count as u64), tails::poisson_upper(n * share, count as u64));
    }
    let deviations = (count as f64 - n * share) / (n * share * (1.0 - share)).sqrt();
    let tail = normal::upper_tail(deviations.abs());
    if deviations > 0.0 { (1.0 - tail, tail) } else { (tail, 1.0 - tail) }
}

fn two_sided((lower, upper): (f64, f64)) -> f64 {
    (2.0 * lower.min(upper)).clamp(0.0, 1.0)
}

fn normal_two_sided(deviations: f64) -> f64 {
    (2.0 * normal::upper_tail(deviations.abs())).min(1.0)
}
