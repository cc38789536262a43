//! The random streams of everything in `rare`: splitmix64 for seeding, xoshiro256++ for drawing.
//!
//! Must not read a clock or the operating system: every stream is a function of its seed. Value-stable: the test vectors
//! below are part of the format, since plans promise the same draws for the same seed.
//!
//! Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014 (splitmix64); Blackman and
//! Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS 2021 (xoshiro256++); Lemire, "Fast random integer
//! generation in an interval", ACM TOMACS 2019 (bounded draws).

/// The weyl increment of splitmix64: the golden ratio in 64 bits, odd.
const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads every bit of `word` over all 64; a bijection (the finaliser of splitmix64).
pub const fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// The seeding generator.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Starts the sequence of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN_GAMMA);
        mix(self.0)
    }
}

/// What a stream is drawn for. The numbers are part of the format: never reuse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Phase {
    /// The permutation of the keys from which the prefill takes its share; one for all threads.
    Prefill = 1,
    /// Keys and operations of the window.
    Window = 2,
    /// The pre-drawn key stream of large skewed ranges.
    KeyStream = 3,
}

/// Returns the seed of the stream of one thread in one phase of the trial with `trial_seed`.
///
/// For one trial seed, no two (thread, phase) share a stream: packing and mixing are bijections.
pub const fn stream_seed(trial_seed: u64, thread_idx: u32, phase: Phase) -> u64 {
    let packed = (thread_idx as u64) << 32 | phase as u64;
    mix(mix(trial_seed.wrapping_add(GOLDEN_GAMMA)) ^ packed)
}

/// The drawing generator: 256 bits of state, period 2^256 - 1, no linear artefact in any output bit.
#[derive(Clone, Debug)]
pub struct Xoshiro256PlusPlus {
    state: [u64; 4],
}

impl Xoshiro256PlusPlus {
    /// Seeds the four words from splitmix64, as its authors advise; the all-zero state cannot arise, since splitmix64
    /// yields zero at most once in its period.
    pub const fn new(seed: u64) -> Self {
        let mut seeder = SplitMix64::new(seed);
        Self { state: [seeder.next_u64(), seeder.next_u64(), seeder.next_u64(), seeder.next_u64()] }
    }

    /// Starts the stream of one thread in one phase.
    pub const fn stream(trial_seed: u64, thread_idx: u32, phase: Phase) -> Self {
        Self::new(stream_seed(trial_seed, thread_idx, phase))
    }

    /// Returns the next 64 bits.
    #[inline(always)]
    pub const fn next_u64(&mut self) -> u64 {
        let [s0, s1, s2, s3] = self.state;
        let output = s0.wrapping_add(s3).rotate_left(23).wrapping_add(s0);
        let (s2, s3) = (s2 ^ s0, s3 ^ s1);
        self.state = [s0 ^ s3, s1 ^ s2, s2 ^ (s1 << 17), s3.rotate_left(45)];
        output
    }

    /// Returns a number in `0..1` with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        /// 2^-53.
        const ULP: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.next_u64() >> 11) as f64 * ULP
    }

    /// Shuffles `items`, each order equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let chosen = Bound::new(last as u64 + 1).draw(self);
            items.swap(last, usize::try_from(chosen).expect("an index below the length of a slice"));
        }
    }
}

/// A stream from which one thread draws keys and operations in the window.
pub trait RandomSource {
    /// Starts the stream of one thread.
    fn of_window(trial_seed: u64, thread_idx: u32) -> Self;

    /// Returns the next 64 bits.
    fn next_u64(&mut self) -> u64;
}

impl RandomSource for Xoshiro256PlusPlus {
    fn of_window(trial_seed: u64, thread_idx: u32) -> Self {
        Self::stream(trial_seed, thread_idx, Phase::Window)
    }

    #[inline(always)]
    fn next_u64(&mut self) -> u64 {
        self.next_u64()
    }
}

/// The unsound generator of harnesses in use, kept for the sake of its fault: its lowest bit alternates.
///
/// Each draw is one step of FNV-1a, 64 bits wide, over the draw before it. FNV-1a proper takes one byte a step; taking the
/// whole word at once is what makes the lowest bit of a draw the opposite of the one before, since the offset and the prime
/// are odd.
///
/// Source: Fowler, Noll, Vo, "The FNV non-cryptographic hash algorithm", IETF draft (offset and prime); the generator of
/// SetBench (the step).
#[derive(Clone, Debug)]
pub struct Fnv1aAlternating(u64);

impl RandomSource for Fnv1aAlternating {
    fn of_window(trial_seed: u64, thread_idx: u32) -> Self {
        Self(stream_seed(trial_seed, thread_idx, Phase::Window))
    }

    #[inline(always)]
    fn next_u64(&mut self) -> u64 {
        const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0100_0000_01b3;
        self.0 = (OFFSET ^ self.0).wrapping_mul(PRIME);
        self.0
    }
}

/// Draws from `0..bound`, each number equally likely: multiply-shift with rejection, exact for every bound.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    bound: u64,
    /// 2^64 modulo `bound`: products whose low half is below it belong to an incomplete share.
    rejected_below: u64,
}

impl Bound {
    /// Prepares draws from `0..bound`.
    ///
    /// # Panics
    /// If `bound` is 0: there is nothing to draw.
    pub const fn new(bound: u64) -> Self {
        assert!(bound > 0, "a draw needs at least one outcome");
        Self { bound, rejected_below: bound.wrapping_neg() % bound }
    }

    /// Returns one number.
    #[inline(always)]
    pub const fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        self.draw_with_fraction(rng).0
    }

    /// Returns one number and, from the same product, its fraction in units of 2^-64.
    ///
    /// Given the number, the fraction is uniform on a lattice of step `bound`, so it decides an event of probability p
    /// with an error below `bound` / 2^64.
    #[inline(always)]
    pub const fn draw_with_fraction(&self, rng: &mut Xoshiro256PlusPlus) -> (u64, u64) {
        loop {
            let product = rng.next_u64() as u128 * self.bound as u128;
            let (number, fraction) = ((product >> 64) as u64, product as u64);
            if fraction >= self.rejected_below {
                return (number, fraction);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published outputs: splitmix64 with seed 1234567 (Rosetta Code), xoshiro256++ seeded by splitmix64(42) and with
    /// state 1, 2, 3, 4 (rand_xoshiro, from the authors' C code).
    #[test]
    fn published_vectors() {
        let mut splitmix = SplitMix64::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([splitmix.next_u64(), splitmix.next_u64(), splitmix.next_u64()], expected);

        assert_eq!(Xoshiro256PlusPlus::new(42).next_u64(), 0xd076_4d4f_4476_689f);

        let mut counted = Xoshiro256PlusPlus { state: [1, 2, 3, 4] };
        let expected = [
            41_943_041,
            58_720_359,
            3_588_806_011_781_223,
            3_591_011_842_654_386,
            9_228_616_714_210_784_205,
            9_973_669_472_204_895_162,
        ];
        assert_eq!(expected.map(|_| counted.next_u64()), expected);
    }

    #[test]
    fn the_lowest_bit_of_fnv1a_alternates_and_the_others_do_not() {
        for thread_idx in 0..4 {
            let mut rng = Fnv1aAlternating::of_window(7, thread_idx);
            let draws: Vec<u64> = (0..10_000).map(|_| rng.next_u64()).collect();
            let n_flips = |bit: u32| draws.windows(2).filter(|pair| (pair[0] ^ pair[1]) >> bit & 1 == 1).count();
            assert_eq!(n_flips(0), draws.len() - 1);
            // Some 8 standard deviations around the half: the upper bits pass for random.
            for bit in 32..64 {
                assert!((4_600..5_400).contains(&n_flips(bit)), "bit {bit} flips {} times", n_flips(bit));
            }
        }
        // From an empty hash, the hash of the single byte 0 that its authors publish.
        assert_eq!(Fnv1aAlternating(0).next_u64(), 0xaf63_bd4c_8601_b7df);
    }

    #[test]
    fn streams_of_threads_and_phases_differ() {
        let mut seeds: Vec<u64> = (0..64)
            .flat_map(|thread| {
                [Phase::Prefill, Phase::Window, Phase::KeyStream].map(|phase| stream_seed(7, thread, phase))
            })
            .collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 64 * 3);
    }

    #[test]
    fn bounded_draws_stay_below_their_bound_and_reach_both_ends() {
        for bound in [1, 2, 3, 10, 1_000] {
            let mut rng = Xoshiro256PlusPlus::new(bound);
            let bounded = Bound::new(bound);
            let draws: Vec<u64> = (0..20_000).map(|_| bounded.draw(&mut rng)).collect();
            assert_eq!(draws.iter().min(), Some(&0));
            assert_eq!(draws.iter().max(), Some(&(bound - 1)));
        }
    }

    /// With a bound of 3/4 of 2^64 plain multiply-shift would give a third of the numbers twice the chance.
    #[test]
    fn rejection_removes_the_bias_of_large_bounds() {
        let bound = 3_u64 << 62;
        let bounded = Bound::new(bound);
        let mut rng = Xoshiro256PlusPlus::new(5);
        let n_draws = 300_000;
        let n_multiples = (0..n_draws).filter(|_| bounded.draw(&mut rng).is_multiple_of(3)).count();
        // Without rejection half of the draws are multiples of 3, with it a third; 5 standard deviations are 0.43 %.
        let share = n_multiples as f64 / n_draws as f64;
        assert!((share - 1.0 / 3.0).abs() < 0.004_3, "{share}");
    }

    #[test]
    fn shuffle_gives_every_order() {
        let mut rng = Xoshiro256PlusPlus::new(1);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..6_000 {
            let mut items = [0, 1, 2];
            rng.shuffle(&mut items);
            *seen.entry(items).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|&count| (850..1_150).contains(&count)), "{seen:?}");
    }
}
