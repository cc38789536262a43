//! The keys with which a structure is filled before the window.

use std::ops::Range;

use super::Permutation;
use crate::rng::{Bound, Phase, Xoshiro256PlusPlus, stream_seed};

/// Keys that are computed at once. One after the other they would cost more than an insertion into a hash table.
const LANES: usize = 4;

/// One thread's part of the prefill.
#[derive(Clone, Copy, Debug)]
pub struct PrefillShare {
    /// Threads that fill together, at least 1.
    pub n_threads: u64,
    /// Which of them, below `n_threads`.
    pub thread_idx: u64,
}

impl PrefillShare {
    /// Iterates over the keys that this thread inserts.
    ///
    /// The threads together insert the first `n_keys` images of a permutation of `0..key_range` that belongs to the trial:
    /// distinct keys, a random subset in random order, exactly as many as asked for, whatever the number of threads.
    pub fn keys(self, key_range: u64, n_keys: u64, trial_seed: u64) -> impl Iterator<Item = u64> {
        let permutation = Permutation::new(key_range, stream_seed(trial_seed, 0, Phase::Prefill));
        let Range { start, end } = self.part_of(n_keys);
        // A number beyond the end is not wanted, but must be one of the permutation's: the last serves.
        let images = move |first: u64| {
            permutation.apply_all(std::array::from_fn::<u64, LANES, _>(|lane| {
                (end - 1).min(first.saturating_add(lane as u64))
            }))
        };
        (start..end).step_by(LANES).flat_map(images).take(usize::try_from(end - start).unwrap_or(usize::MAX))
    }

    /// Iterates over as many keys drawn with replacement: the fault of harnesses that draw and do not look at what is there.
    pub fn draws(self, key_range: u64, n_keys: u64, trial_seed: u64) -> impl Iterator<Item = u64> {
        let thread_idx = u32::try_from(self.thread_idx).expect("there are fewer than 2^32 threads");
        let mut rng = Xoshiro256PlusPlus::stream(trial_seed, thread_idx, Phase::Prefill);
        let bound = Bound::new(key_range);
        self.part_of(n_keys).map(move |_| bound.draw(&mut rng))
    }

    /// Cuts `0..n_keys` into parts whose sizes differ by at most one.
    fn part_of(self, n_keys: u64) -> Range<u64> {
        let (size, n_larger) = (n_keys / self.n_threads, n_keys % self.n_threads);
        let start = self.thread_idx * size + self.thread_idx.min(n_larger);
        start..start + size + u64::from(self.thread_idx < n_larger)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_all_keys_once_and_evenly() {
        for (n_keys, n_threads) in [(0, 1), (0, 3), (1, 4), (7, 3), (8, 4), (50_000, 7), (u64::MAX, 3)] {
            let parts: Vec<_> =
                (0..n_threads).map(|thread_idx| PrefillShare { n_threads, thread_idx }.part_of(n_keys)).collect();
            assert_eq!((parts[0].start, parts.last().unwrap().end), (0, n_keys));
            assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start), "{parts:?}");
            let sizes: Vec<u64> = parts.iter().map(|part| part.end - part.start).collect();
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
        }
    }

    #[test]
    fn draws_with_replacement_repeat_themselves() {
        let shares = (0..3).map(|thread_idx| PrefillShare { n_threads: 3, thread_idx });
        let keys: Vec<u64> = shares.flat_map(|share| share.draws(100_000, 50_000, 9)).collect();
        let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(keys.len(), 50_000);
        // 1 - e^-0.5 of the range, and some 100 are a standard deviation.
        assert!(distinct.len().abs_diff(39_347) < 500, "{}", distinct.len());
    }

    #[test]
    fn shares_are_the_first_images_whatever_their_size() {
        for (key_range, n_keys) in [(1, 1), (5, 5), (100, 43), (u64::MAX, 7)] {
            let permutation = Permutation::new(key_range, stream_seed(9, 0, Phase::Prefill));
            let expected: Vec<u64> = (0..n_keys).map(|number| permutation.apply(number)).collect();
            for n_threads in 1..=5 {
                let shares = (0..n_threads).map(|thread_idx| PrefillShare { n_threads, thread_idx });
                let keys: Vec<u64> = shares.flat_map(|share| share.keys(key_range, n_keys, 9)).collect();
                assert_eq!(keys, expected, "{n_keys} of {key_range} by {n_threads}");
            }
        }
    }
}
