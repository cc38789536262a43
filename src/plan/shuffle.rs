//! Seeded permutations.
//!
//! Pure: the permutation depends only on the seed and the length. The generator is part of the plan format: another
//! one would change every plan hash.

/// SplitMix64: one 64-bit word of state, every output once per period of 2^64.
///
/// Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014, figure 17 (`mix64`
/// with the constants of Stafford's variant 13).
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Makes the stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Draws 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Draws a number below `bound`, each equally likely. `bound` is at least 1.
    ///
    /// Source: Lemire, "Fast Random Integer Generation in an Interval", ACM TOMACS 29(1), 2019, algorithm 5. The draws
    /// whose low word falls below 2^64 mod `bound` are repeated: without that some numbers would come more often.
    pub fn below(&mut self, bound: u64) -> u64 {
        let surplus = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.draw()) * u128::from(bound);
            let (high, low) = ((product >> 64) as u64, product as u64);
            if low >= surplus {
                return high;
            }
        }
    }
}

/// Returns a permutation of `0..length`, each equally likely over the seeds.
///
/// Source: Durstenfeld, "Algorithm 235: Random permutation", CACM 7(7), 1964, which is Fisher and Yates in place.
pub fn permutation(seed: u64, length: u32) -> Vec<u32> {
    let mut stream = SplitMix64::new(seed);
    let mut order: Vec<u32> = (0..length).collect();
    for last in (1..order.len()).rev() {
        let chosen = stream.below(last as u64 + 1) as usize;
        order.swap(last, chosen);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_is_that_of_the_reference_implementation() {
        // Outputs of the reference C code (prng.di.unimi.it/splitmix64.c) for state 1234567.
        let mut stream = SplitMix64::new(1_234_567);
        let drawn: Vec<u64> = (0..3).map(|_| stream.draw()).collect();
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn every_permutation_of_four_is_equally_likely() {
        const SEEDS: u64 = 48_000;
        let mut counts = std::collections::BTreeMap::<Vec<u32>, u64>::new();
        for seed in 0..SEEDS {
            *counts.entry(permutation(seed, 4)).or_default() += 1;
        }
        assert_eq!(counts.len(), 24);
        let expected = (SEEDS / 24) as f64;
        let chi_square: f64 = counts.values().map(|&count| (count as f64 - expected).powi(2) / expected).sum();
        // 99.9th percentile of chi-square with 23 degrees of freedom.
        assert!(chi_square < 49.73, "chi-square {chi_square}");
    }

    #[test]
    fn bounded_draws_reject_the_surplus() {
        // With a bound just above half the range, a draw without rejection would hit the lower numbers twice as often.
        let bound = (1 << 63) + 1;
        let mut stream = SplitMix64::new(7);
        let in_lower_half = (0..10_000).filter(|_| stream.below(bound) < bound / 2).count();
        assert!((4_800..5_200).contains(&in_lower_half), "{in_lower_half} of 10,000");
    }

    #[test]
    fn short_lengths_are_permutations_too() {
        assert_eq!(permutation(1, 0), [0u32; 0]);
        assert_eq!(permutation(1, 1), [0]);
    }
}
