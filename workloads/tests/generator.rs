//! The streams of trials, examined as a skeptic would: the very keys and operations that a window draws, and the very keys
//! that a prefill inserts.
//!
//! Every examination is a function that returns what it found wrong, and is also given generators with the faults of real
//! harnesses, which it must reject. Seeds are fixed, so a verdict never changes by chance.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

use std::collections::{BTreeMap, BTreeSet};

use rare_workloads::{
    harness::{
        stream::draw_into,
        window::{Generator, Operation, Size},
    },
    keys::{KeyPlan, Permutation, PrefillShare, ThreadKeys},
    nodes::Nodes,
    protocol::{AllocatorRequest, Distribution, FORMAT, GeneratorKind, Harness, Length, Mix, Reclamation, Request},
    rng::{Bound, Xoshiro256PlusPlus},
};

type Draw = (u64, Operation<Size>);

const MIX: Mix = Mix { insert: 2_500, remove: 2_500, contains: 5_000, range: 0 };

/// Enough that every bound below lies many standard deviations away from a sound generator.
const N_DRAWS: usize = 1_000_000;

/// Distance from the expectation, in standard deviations, beyond which chance is ruled out.
const DEVIATIONS_MAX: f64 = 4.5;

/// A trial with the sound generator.
fn request(distribution: Distribution, key_range: u64, seed: u64) -> Request {
    Request {
        format: FORMAT,
        structure: "noop".to_owned(),
        structure_parameters: BTreeMap::new(),
        reclamation: Reclamation::None,
        allocator: AllocatorRequest { name: "system".to_owned(), preload: None },
        cpus: vec![None],
        key_range,
        mix: MIX,
        range_keys: None,
        distribution,
        prefill_keys: 0,
        length: Length::Nanos(1),
        seed,
        nice: 0,
        nodes: Nodes::PLAIN,
        harness: Harness::default(),
        watch: None,
    }
}

/// The same with the generator whose lowest bit alternates.
fn alternating(distribution: Distribution, key_range: u64, seed: u64) -> Request {
    let harness = Harness { generator: GeneratorKind::Fnv1aAlternating, ..Harness::default() };
    Request { harness, ..request(distribution, key_range, seed) }
}

/// Draws from the stream of one thread of a trial.
fn draws_of(request: &Request, thread_idx: u32, n_draws: usize) -> Vec<Draw> {
    let mut draws = Vec::with_capacity(n_draws);
    draw_into(request, thread_idx, n_draws as u64, &mut |key, operation| draws.push((key, operation))).unwrap();
    draws
}

fn draws(distribution: Distribution, key_range: u64, seed: u64, thread_idx: u32, n_draws: usize) -> Vec<Draw> {
    draws_of(&request(distribution, key_range, seed), thread_idx, n_draws)
}

/// Compares counts with expectations; the statistic must be neither too large nor too good to be true.
fn chi_square(observed: &[f64], expected: &[f64]) -> Result<(), String> {
    assert!(expected.iter().all(|&count| count >= 5.0), "bins must be pooled first");
    let statistic: f64 =
        observed.iter().zip(expected).map(|(observed, expected)| (observed - expected).powi(2) / expected).sum();
    let freedom = (expected.len() - 1) as f64;
    let deviations = (statistic - freedom) / (2.0 * freedom).sqrt();
    if deviations.abs() < DEVIATIONS_MAX {
        Ok(())
    } else {
        Err(format!("chi-square {statistic:.0} at {freedom} degrees of freedom: {deviations:.1} deviations"))
    }
}

fn all_keys_are_touched(draws: &[Draw], key_range: u64) -> Result<(), String> {
    let touched: BTreeSet<u64> = draws.iter().map(|&(key, _)| key).collect();
    if touched.iter().any(|&key| key >= key_range) {
        return Err("a key lies outside the range".to_owned());
    }
    if touched.len() as u64 == key_range { Ok(()) } else { Err(format!("{} of {key_range} keys", touched.len())) }
}

fn parities_are_even(draws: &[Draw]) -> Result<(), String> {
    let share = draws.iter().filter(|(key, _)| key % 2 == 0).count() as f64 / draws.len() as f64;
    if (share - 0.5).abs() <= 0.005 { Ok(()) } else { Err(format!("a share of {share} is even")) }
}

fn keys_are_uniform(draws: &[Draw], key_range: u64) -> Result<(), String> {
    let mut observed = vec![0.0; key_range as usize];
    draws.iter().for_each(|&(key, _)| observed[key as usize] += 1.0);
    chi_square(&observed, &vec![draws.len() as f64 / key_range as f64; key_range as usize])
}

/// Correlation of each key with the next one.
fn keys_are_uncorrelated(draws: &[Draw]) -> Result<(), String> {
    let keys: Vec<f64> = draws.iter().map(|&(key, _)| key as f64).collect();
    let mean = keys.iter().sum::<f64>() / keys.len() as f64;
    let variance: f64 = keys.iter().map(|key| (key - mean).powi(2)).sum();
    let covariance: f64 = keys.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    let deviations = covariance / variance * (keys.len() as f64).sqrt();
    if deviations.abs() < DEVIATIONS_MAX {
        Ok(())
    } else {
        Err(format!("lag-1 correlation: {deviations:.1} deviations"))
    }
}

/// The place of an operation in tables.
fn position<Query>(operation: Operation<Query>) -> usize {
    match operation {
        Operation::Insert => 0,
        Operation::Remove => 1,
        Operation::Contains => 2,
        Operation::Range(_) => unreachable!("the mix has none"),
    }
}

/// Operation against the part of the range in which its key lies: halves, and sixteenths.
fn operations_are_independent_of_keys(draws: &[Draw], key_range: u64) -> Result<(), String> {
    [2, 16].into_iter().try_for_each(|n_parts| {
        let mut observed = vec![0.0; n_parts * 3];
        for &(key, operation) in draws {
            let part = (u128::from(key) * n_parts as u128 / u128::from(key_range)) as usize;
            observed[part * 3 + position(operation)] += 1.0;
        }
        let part_total = |part: usize| observed[part * 3..][..3].iter().sum::<f64>();
        let operation_total = |operation: usize| observed.iter().skip(operation).step_by(3).sum::<f64>();
        let expected: Vec<f64> = (0..n_parts * 3)
            .map(|cell| part_total(cell / 3) * operation_total(cell % 3) / draws.len() as f64)
            .collect();
        let statistic: f64 =
            observed.iter().zip(&expected).map(|(observed, expected)| (observed - expected).powi(2) / expected).sum();
        let freedom = ((n_parts - 1) * 2) as f64;
        let deviations = (statistic - freedom) / (2.0 * freedom).sqrt();
        if deviations < DEVIATIONS_MAX {
            Ok(())
        } else {
            Err(format!("operations depend on which of {n_parts} parts a key lies in: {deviations:.1} deviations"))
        }
    })
}

fn shares_are_kept(draws: &[Draw]) -> Result<(), String> {
    let mut observed = [0.0; 3];
    draws.iter().for_each(|&(_, operation)| observed[position(operation)] += 1.0);
    let whole = draws.len() as f64 / f64::from(Mix::WHOLE);
    chi_square(&observed, &[MIX.insert, MIX.remove, MIX.contains].map(|share| f64::from(share) * whole))
}

/// Compares the frequencies of ranks with the exact probabilities; rare ranks are pooled.
fn ranks_are_zipf(draws: &[Draw], key_range: u64, exponent: f64) -> Result<(), String> {
    let scatter = Permutation::scatter(key_range);
    let mut by_key = vec![0.0; key_range as usize];
    draws.iter().for_each(|&(key, _)| by_key[key as usize] += 1.0);
    let weight = |rank_idx: u64| ((rank_idx + 1) as f64).powf(-exponent);
    let scale = draws.len() as f64 / (0..key_range).map(weight).sum::<f64>();
    let (mut observed, mut expected) = (vec![0.0], vec![0.0]);
    for rank_idx in 0..key_range {
        // Pools of 50: small enough to see a wrong tail, large enough for the test to hold.
        if *expected.last().unwrap() >= 50.0 {
            observed.push(0.0);
            expected.push(0.0);
        }
        *observed.last_mut().unwrap() += by_key[scatter.apply(rank_idx) as usize];
        *expected.last_mut().unwrap() += weight(rank_idx) * scale;
    }
    if expected.len() > 1 && *expected.last().unwrap() < 50.0 {
        let (tail_observed, tail_expected) = (observed.pop().unwrap(), expected.pop().unwrap());
        *observed.last_mut().unwrap() += tail_observed;
        *expected.last_mut().unwrap() += tail_expected;
    }
    chi_square(&observed, &expected)
}

fn prefill_is_exact(keys: &[u64], key_range: u64, target: u64) -> Result<(), String> {
    let distinct: BTreeSet<u64> = keys.iter().copied().collect();
    if distinct.iter().any(|&key| key >= key_range) {
        return Err("a key lies outside the range".to_owned());
    }
    if distinct.len() as u64 == target && keys.len() as u64 == target {
        Ok(())
    } else {
        let share = 100.0 * distinct.len() as f64 / key_range as f64;
        Err(format!("{} distinct keys of {target}: {share:.1} % of the range", distinct.len()))
    }
}

/// Every key that all threads of a trial insert in the prefill, thread after thread.
fn prefill(key_range: u64, n_keys: u64, seed: u64, n_threads: u64) -> Vec<u64> {
    (0..n_threads).flat_map(|thread_idx| PrefillShare { n_threads, thread_idx }.keys(key_range, n_keys, seed)).collect()
}

#[test]
fn uniform_streams_are_sound() {
    for (seed, thread_idx) in [(0, 0), (1, 0), (1, 1), (u64::MAX, 63)] {
        for key_range in [16, 1_000, 65_536] {
            let draws = draws(Distribution::Uniform, key_range, seed, thread_idx, N_DRAWS);
            let at = format!("seed {seed}, thread {thread_idx}, {key_range} keys");
            for outcome in [
                keys_are_uniform(&draws, key_range),
                parities_are_even(&draws),
                keys_are_uncorrelated(&draws),
                operations_are_independent_of_keys(&draws, key_range),
                shares_are_kept(&draws),
            ] {
                assert_eq!(outcome, Ok(()), "{at}");
            }
        }
        let draws = draws(Distribution::Uniform, 1_000, seed, thread_idx, N_DRAWS);
        assert_eq!(all_keys_are_touched(&draws, 1_000), Ok(()));
    }
}

#[test]
fn zipf_streams_have_the_exact_frequencies() {
    for exponent in [0.5, 0.99, 1.2] {
        let distribution = Distribution::Zipf((exponent * 1e6_f64).round() as u32);
        // The first two take the alias table, the last the pre-drawn stream.
        for key_range in [1_000, 100_000, 250_000] {
            for thread_idx in [0, 1] {
                let draws = draws(distribution, key_range, 11, thread_idx, N_DRAWS);
                let at = format!("exponent {exponent}, {key_range} keys, thread {thread_idx}");
                assert_eq!(ranks_are_zipf(&draws, key_range, exponent), Ok(()), "{at}");
                assert_eq!(shares_are_kept(&draws), Ok(()), "{at}");
            }
        }
    }
}

#[test]
fn streams_of_threads_are_unrelated() {
    for distribution in [Distribution::Uniform, Distribution::Zipf(500_000)] {
        let streams: Vec<Vec<Draw>> =
            (0..4).map(|thread_idx| draws(distribution, 250_000, 3, thread_idx, 50_000)).collect();
        for left in 0..4 {
            for right in 0..left {
                let n_equal =
                    streams[left].iter().zip(&streams[right]).filter(|(left, right)| left.0 == right.0).count();
                assert!(n_equal < 500, "threads {left} and {right} draw {n_equal} of 50,000 keys alike");
            }
        }
    }
}

#[test]
fn the_prefill_is_exact_for_any_number_of_threads() {
    for (key_range, n_keys) in [(1, 0), (1, 1), (2, 1), (10, 5), (1_000, 500), (1_000, 1_000), (65_537, 32_768)] {
        let alone = prefill(key_range, n_keys, 5, 1);
        for n_threads in [1, 2, 3, 7, 64] {
            let keys = prefill(key_range, n_keys, 5, n_threads);
            assert_eq!(prefill_is_exact(&keys, key_range, n_keys), Ok(()), "{key_range} keys, {n_threads} threads");
            assert_eq!(keys, alone, "the number of threads must not change which keys are inserted");
        }
    }
}

/// Every subset of 3 of 6 keys, and every first key, must be equally likely over the seeds.
#[test]
fn the_prefill_is_a_random_subset_in_random_order() {
    let n_seeds = 40_000;
    let (mut subsets, mut firsts) = ([0.0; 64], [0.0; 6]);
    for seed in 0..n_seeds {
        let keys = prefill(6, 3, seed, 1);
        subsets[keys.iter().map(|key| 1 << key).sum::<usize>()] += 1.0;
        firsts[keys[0] as usize] += 1.0;
    }
    let subsets: Vec<f64> = subsets.into_iter().filter(|&count| count > 0.0).collect();
    assert_eq!(subsets.len(), 20);
    assert_eq!(chi_square(&subsets, &[n_seeds as f64 / 20.0; 20]), Ok(()));
    assert_eq!(chi_square(&firsts, &[n_seeds as f64 / 6.0; 6]), Ok(()));

    let mut included = [0.0; 1_000];
    for seed in 0..2_000 {
        prefill(1_000, 500, seed, 1).into_iter().for_each(|key| included[key as usize] += 1.0);
    }
    // Half of the variance of independent counts: compare through the exact binomial deviation instead.
    let worst = included.iter().map(|count| (count - 1_000.0_f64).abs() / 500_f64.sqrt()).fold(0.0, f64::max);
    assert!(worst < DEVIATIONS_MAX, "a key is in the prefill {worst:.1} deviations too often or too rarely");
}

/// What is examined is what a window draws.
#[test]
fn a_stream_is_the_one_of_the_window() {
    let ThreadKeys::Uniform(keys) = KeyPlan::new(Distribution::Uniform, 1_000).thread(7, 3) else {
        panic!("uniform keys are drawn as such");
    };
    let mut generator = Generator::new(keys, MIX, 7, 3);
    for (key, operation) in draws(Distribution::Uniform, 1_000, 7, 3, 1_000) {
        let (expected_key, expected) = generator.draw();
        assert_eq!((key, position(operation)), (expected_key, position(expected)));
    }
}

#[test]
fn range_queries_take_their_share_of_the_stream() {
    let mix = Mix { contains: 2_500, range: 2_500, ..MIX };
    let ranged = Request { mix, range_keys: Some(10), ..request(Distribution::Uniform, 1_000, 7) };
    let n_ranges =
        draws_of(&ranged, 0, N_DRAWS).iter().filter(|(_, operation)| *operation == Operation::Range(Size(10))).count();
    assert!(n_ranges.abs_diff(N_DRAWS / 4) < 2_000, "{n_ranges}");
}

/// The fault of a generator in use: two draws an operation, and the lowest bit of the draws alternates.
#[test]
fn a_generator_of_alternating_parity_is_rejected() {
    for thread_idx in 0..4 {
        let draws = draws_of(&alternating(Distribution::Uniform, 1_000, 12), thread_idx, N_DRAWS);
        assert_eq!(all_keys_are_touched(&draws, 1_000), Err("500 of 1000 keys".to_owned()));
        assert!(parities_are_even(&draws).is_err());
        assert!(keys_are_uniform(&draws, 1_000).is_err());
        // Otherwise it passes for one: what is asked for is done, to other keys.
        assert_eq!(shares_are_kept(&draws), Ok(()), "thread {thread_idx}");
    }
    let odd_range = draws_of(&alternating(Distribution::Uniform, 1_001, 12), 0, N_DRAWS);
    assert_eq!(parities_are_even(&odd_range), Ok(()), "an odd key range hides the fault");
}

#[test]
fn streams_that_nobody_draws_are_refused_in_words() {
    let refusal = |request: &Request| draw_into(request, 0, 1, &mut |_, _| ()).unwrap_err();
    let zipf = alternating(Distribution::Zipf(990_000), 1_000, 1);
    assert_eq!(refusal(&zipf), "the generator `fnv1a-alternating` draws uniform keys only");
    assert_eq!(refusal(&request(Distribution::Uniform, 0, 1)), "the key range is empty");
}

#[test]
fn one_draw_for_key_and_operation_is_rejected() {
    let mut rng = Xoshiro256PlusPlus::new(1);
    let draws: Vec<Draw> = (0..N_DRAWS)
        .map(|_| {
            let word = rng.next_u64();
            let key = ((u128::from(word) * 1_000) >> 64) as u64;
            let operation = match word >> 62 {
                0 => Operation::Insert,
                1 => Operation::Remove,
                _ => Operation::Contains,
            };
            (key, operation)
        })
        .collect();
    assert_eq!(keys_are_uniform(&draws, 1_000), Ok(()), "the fault hides from tests of the keys alone");
    assert_eq!(shares_are_kept(&draws), Ok(()), "and from tests of the operations alone");
    assert!(operations_are_independent_of_keys(&draws, 1_000).is_err());
}

#[test]
fn a_prefill_with_replacement_is_rejected() {
    let mut rng = Xoshiro256PlusPlus::new(1);
    let bound = Bound::new(100_000);
    let keys: Vec<u64> = (0..50_000).map(|_| bound.draw(&mut rng)).collect();
    let error = prefill_is_exact(&keys, 100_000, 50_000).unwrap_err();
    assert!(error.contains("39."), "{error}");
}

/// An exponent that was never stored, and a draw of 53 bits divided by 2^64.
#[test]
fn the_known_faults_of_zipf_are_rejected() {
    let uniform = draws(Distribution::Uniform, 1_000, 1, 0, N_DRAWS);
    assert!(ranks_are_zipf(&uniform, 1_000, 0.5).is_err());

    let mut rng = Xoshiro256PlusPlus::new(1);
    let total: f64 = (1..=1_000).map(|rank| f64::from(rank).powf(-0.99)).sum();
    let scatter = Permutation::scatter(1_000);
    let narrow: Vec<Draw> = (0..100_000)
        .map(|_| {
            let mut left = (rng.next_u64() >> 11) as f64 / 2_f64.powi(64) * total;
            let rank_idx = (0..999)
                .find(|&rank_idx| {
                    left -= f64::from(rank_idx + 1).powf(-0.99);
                    left < 0.0
                })
                .unwrap_or(999);
            (scatter.apply(rank_idx as u64), Operation::Insert)
        })
        .collect();
    assert!(ranks_are_zipf(&narrow, 1_000, 0.99).is_err());
    // A slightly wrong exponent is seen too.
    let near = draws(Distribution::Zipf(980_000), 1_000, 1, 0, N_DRAWS);
    assert!(ranks_are_zipf(&near, 1_000, 0.99).is_err());
}

#[test]
fn skewed_correlated_keys_are_rejected() {
    let mut rng = Xoshiro256PlusPlus::new(1);
    let mut key = 0;
    let draws: Vec<Draw> = (0..N_DRAWS)
        .map(|_| {
            // Every eighth key is near the last one.
            key = if rng.next_u64() >> 61 == 0 { (key + 1) % 1_000 } else { Bound::new(1_000).draw(&mut rng) };
            (key, Operation::Contains)
        })
        .collect();
    assert!(keys_are_uncorrelated(&draws).is_err());
}
