//! A permutation of `0..n` that is computed, not stored: the prefill takes exactly its share of distinct keys in random
//! order from it, without rejection and without memory.
//!
//! Source: Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002, the generalised Feistel network: a
//! number is split as (left, right) of an `a` by `b` rectangle with `a * b >= n`, rounds add a keyed function of one
//! half to the other, and results outside `0..n` are fed back until one lies inside.

use crate::rng::{SplitMix64, mix};

/// With 4 rounds a chi-square test over the subsets of 3 of 6 keys fails, with 6 it passes; this is twice that.
const N_ROUNDS: usize = 12;

/// Key of the permutation that scatters ranks over keys. Fixed for ever: which keys are popular must not change with the
/// trial, or the cost of a skewed cell would depend on luck.
const SCATTER_SEED: u64 = 0x7261_7265_0000_0001;

/// A keyed permutation of `0..n`.
#[derive(Clone, Debug)]
pub struct Permutation {
    n: u64,
    n_left: u64,
    n_right: u64,
    round_keys: [u64; N_ROUNDS],
}

impl Permutation {
    /// Makes the permutation of `0..n` that belongs to `seed`; `n` is at least 1.
    pub fn new(n: u64, seed: u64) -> Self {
        let n_left = n.isqrt().max(1);
        let n_right = n.div_ceil(n_left);
        let mut seeder = SplitMix64::new(seed);
        Self { n, n_left, n_right, round_keys: [(); N_ROUNDS].map(|()| seeder.next_u64()) }
    }

    /// Makes the fixed permutation that scatters ranks over keys.
    pub fn scatter(n: u64) -> Self {
        Self::new(n, SCATTER_SEED)
    }

    /// Returns the image of `number`, which must be below `n`. Every number below `n` is the image of exactly one.
    pub fn apply(&self, number: u64) -> u64 {
        self.apply_all([number])[0]
    }

    /// Returns the images of several numbers, each below `n`.
    ///
    /// The rounds of one number wait for each other; those of several are computed side by side in not much more time.
    pub fn apply_all<const N: usize>(&self, numbers: [u64; N]) -> [u64; N] {
        debug_assert!(numbers.iter().all(|&number| number < self.n));
        self.network(numbers.map(u128::from)).map(|mut image| {
            // The walk stays on the cycle of the number in the rectangle and ends, at the latest, at the number itself.
            while image >= u128::from(self.n) {
                [image] = self.network([image]);
            }
            u64::try_from(image).expect("an image below n, which is a u64")
        })
    }

    /// One pass; the rectangle may be slightly larger than 2^64, hence the wide type.
    fn network<const N: usize>(&self, numbers: [u128; N]) -> [u128; N] {
        let mut halves = numbers.map(|number| self.split(number));
        for pair in self.round_keys.chunks_exact(2) {
            for (left, right) in &mut halves {
                *left = add_modulo(*left, bounded(mix(*right ^ pair[0]), self.n_left), self.n_left);
            }
            for (left, right) in &mut halves {
                *right = add_modulo(*right, bounded(mix(*left ^ pair[1]), self.n_right), self.n_right);
            }
        }
        halves.map(|(left, right)| u128::from(left) * u128::from(self.n_right) + u128::from(right))
    }

    /// Returns row and column of a number in the rectangle, both below 2^33.
    fn split(&self, number: u128) -> (u64, u64) {
        let half = |wide: u128| u64::try_from(wide).expect("both halves are below 2^33");
        let wide_right = u128::from(self.n_right);
        match u64::try_from(number) {
            // One instruction, where the wide division is a call.
            Ok(number) => (number / self.n_right, number % self.n_right),
            Err(_) => (half(number / wide_right), half(number % wide_right)),
        }
    }
}

/// Maps 64 random bits to `0..bound` (multiply-shift; the bias is below `bound` / 2^64, and `bound` below 2^33).
fn bounded(word: u64, bound: u64) -> u64 {
    ((u128::from(word) * u128::from(bound)) >> 64) as u64
}

/// Adds modulo `modulus`; both terms are below it and it is below 2^33, so the sum cannot overflow.
fn add_modulo(left: u64, right: u64, modulus: u64) -> u64 {
    let sum = left + right;
    if sum >= modulus { sum - modulus } else { sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_bijection_of_every_small_range_and_some_large() {
        for n in (1..=300).chain([1_000, 65_536, 99_999]) {
            for seed in [0, 1, 42] {
                let permutation = Permutation::new(n, seed);
                let mut images: Vec<u64> = (0..n).map(|number| permutation.apply(number)).collect();
                images.sort_unstable();
                assert!(images.iter().copied().eq(0..n), "n {n}, seed {seed}");
            }
        }
    }

    #[test]
    fn works_at_the_ends_of_the_number_range() {
        for n in [u64::MAX, u64::MAX - 1, 1 << 63, (1 << 32) + 1] {
            let permutation = Permutation::new(n, 3);
            let images: Vec<u64> = [0, 1, n / 2, n - 1].map(|number| permutation.apply(number)).into();
            assert!(images.iter().all(|&image| image < n), "{images:?}");
            let distinct: std::collections::BTreeSet<_> = images.iter().collect();
            assert_eq!(distinct.len(), 4);
        }
    }

    #[test]
    fn several_numbers_have_the_images_of_each() {
        // Of 3 numbers most images walk out of the rectangle of 1 by 3 or stay; of 5 some leave that of 2 by 3.
        for n in [3, 5, 99_999, (1 << 32) + 1, u64::MAX] {
            let permutation = Permutation::new(n, 7);
            let numbers = [0, n / 3, n / 2, n - 1];
            assert_eq!(permutation.apply_all(numbers), numbers.map(|number| permutation.apply(number)));
        }
    }

    #[test]
    fn images_stay_as_they_are() {
        // Recorded plans name their prefill by a seed alone: other images would be another experiment.
        let images = |n| Permutation::new(n, 1).apply_all([0, 1, n / 2, n - 1]);
        assert_eq!(images(100_000), [5581, 56496, 16542, 40534]);
        assert_eq!(
            images(u64::MAX),
            [15203492111137206792, 15663290296592201166, 5311776665807413153, 6073130075843021218]
        );
    }

    #[test]
    fn seeds_give_other_permutations() {
        let images = |seed| (0..100).map(|number| Permutation::new(100, seed).apply(number)).collect::<Vec<_>>();
        assert_eq!(images(1), images(1));
        assert_ne!(images(1), images(2));
    }
}
