//! How the keys of a trial are chosen: a [`PrefillShare`] for the prefill and one [`KeySource`] per distribution for the
//! window.
//!
//! Everything is built before the window and is the harness's memory, not the structure's. No source allocates or
//! reads a clock while it is drawn from, and none but the faulty one divides.

mod permutation;
mod prefill;
mod zipf;

use std::sync::Arc;

pub use permutation::Permutation;
pub use prefill::PrefillShare;
pub use zipf::{AliasTable, STREAM_KEYS, ZipfRanks};

use crate::{
    protocol::{Distribution, GeneratorKind, Request},
    rng::{Bound, Fnv1aAlternating, Phase, RandomSource, Xoshiro256PlusPlus},
};

/// Largest key range for which zipf keys come from an alias table.
///
/// Its 8 bytes per key are 0.8 MB here, about a second-level cache, shared by all threads and read only; above, each
/// draw would miss the caches that the structure needs, and a key stream is cheaper.
pub const ALIAS_KEYS_MAX: u64 = 100_000;

/// Draws keys in the window.
pub trait KeySource: Send {
    /// What keys are drawn from, and the operations with them.
    type Random: RandomSource;

    /// Returns the next key.
    fn key(&mut self, rng: &mut Self::Random) -> u64;
}

/// Each key of `0..key_range` equally likely.
#[derive(Clone, Debug)]
pub struct UniformKeys(Bound);

impl UniformKeys {
    /// Prepares draws from `0..key_range`, which must not be empty.
    pub fn new(key_range: u64) -> Self {
        Self(Bound::new(key_range))
    }
}

impl KeySource for UniformKeys {
    type Random = Xoshiro256PlusPlus;

    #[inline(always)]
    fn key(&mut self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        self.0.draw(rng)
    }
}

/// Keys by the weights of an alias table that all threads share.
#[derive(Clone, Debug)]
pub struct AliasKeys(Arc<AliasTable>);

impl KeySource for AliasKeys {
    type Random = Xoshiro256PlusPlus;

    #[inline(always)]
    fn key(&mut self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        self.0.draw(rng)
    }
}

/// Keys drawn beforehand, [`STREAM_KEYS`] of them, and taken again from the start when they are used up.
///
/// Cost: 8 MiB per thread, read in order, so that a line of 64 bytes is fetched (and predicted) every 8 operations. At
/// most [`STREAM_KEYS`] distinct keys are touched per thread; operations are drawn afresh on each pass.
#[derive(Clone, Debug)]
pub struct StreamKeys {
    keys: Box<[u64]>,
    next_idx: usize,
}

impl KeySource for StreamKeys {
    type Random = Xoshiro256PlusPlus;

    #[inline(always)]
    fn key(&mut self, _rng: &mut Xoshiro256PlusPlus) -> u64 {
        let key = self.keys[self.next_idx];
        self.next_idx = if self.next_idx + 1 == self.keys.len() { 0 } else { self.next_idx + 1 };
        key
    }
}

/// Keys as harnesses in use draw them: the remainder of a draw whose lowest bit alternates.
///
/// The faults are kept. A remainder has the parity of its draw when the key range is even, and an operation takes two
/// draws, so each thread sees keys of one parity only; and smaller keys are likelier by up to `key_range` / 2^64.
#[derive(Clone, Debug)]
pub struct RemainderKeys {
    key_range: u64,
}

impl KeySource for RemainderKeys {
    type Random = Fnv1aAlternating;

    #[inline(always)]
    fn key(&mut self, rng: &mut Fnv1aAlternating) -> u64 {
        rng.next_u64() % self.key_range
    }
}

/// What the threads of a trial share of the key distribution; built once, before the threads.
#[derive(Clone, Debug)]
pub enum KeyPlan {
    /// Uniform keys of this range.
    Uniform(u64),
    /// Skewed keys of a small range.
    Alias(Arc<AliasTable>),
    /// Skewed keys of a large range.
    Stream(ZipfRanks),
    /// Uniform keys of this range, but for the faults of their generator.
    Remainder(u64),
}

/// The keys of one thread. A window is compiled once for each kind, so that no draw is a virtual call.
#[derive(Clone, Debug)]
pub enum ThreadKeys {
    /// See [`UniformKeys`].
    Uniform(UniformKeys),
    /// See [`AliasKeys`].
    Alias(AliasKeys),
    /// See [`StreamKeys`].
    Stream(StreamKeys),
    /// See [`RemainderKeys`].
    Remainder(RemainderKeys),
}

impl KeyPlan {
    /// Prepares the keys of a trial.
    ///
    /// # Errors
    /// In words: an empty key range, or what [`Request::harness_refusal`] says.
    pub fn of(request: &Request) -> Result<Self, String> {
        if request.key_range == 0 {
            return Err("the key range is empty".to_owned());
        }
        if let Some(reason) = request.harness_refusal() {
            return Err(reason.to_owned());
        }
        Ok(match request.harness.generator {
            GeneratorKind::Xoshiro => Self::new(request.distribution, request.key_range),
            GeneratorKind::Fnv1aAlternating => Self::Remainder(request.key_range),
        })
    }

    /// Prepares a distribution over `0..key_range`, which must not be empty, drawn by the sound generator.
    pub fn new(distribution: Distribution, key_range: u64) -> Self {
        match distribution {
            Distribution::Uniform => Self::Uniform(key_range),
            Distribution::Zipf(millionths) if key_range <= ALIAS_KEYS_MAX => {
                Self::Alias(Arc::new(AliasTable::zipf(key_range, exponent(millionths))))
            }
            Distribution::Zipf(millionths) => Self::Stream(ZipfRanks::new(key_range, exponent(millionths))),
        }
    }

    /// Prepares the keys of one thread; called by that thread, so that its memory is local to it.
    pub fn thread(&self, trial_seed: u64, thread_idx: u32) -> ThreadKeys {
        match self {
            Self::Uniform(key_range) => ThreadKeys::Uniform(UniformKeys::new(*key_range)),
            Self::Alias(table) => ThreadKeys::Alias(AliasKeys(Arc::clone(table))),
            Self::Stream(ranks) => {
                let mut rng = Xoshiro256PlusPlus::stream(trial_seed, thread_idx, Phase::KeyStream);
                let scatter = Permutation::scatter(ranks.n_ranks());
                let keys = (0..STREAM_KEYS).map(|_| scatter.apply(ranks.draw(&mut rng))).collect();
                ThreadKeys::Stream(StreamKeys { keys, next_idx: 0 })
            }
            Self::Remainder(key_range) => ThreadKeys::Remainder(RemainderKeys { key_range: *key_range }),
        }
    }
}

fn exponent(millionths: u32) -> f64 {
    f64::from(millionths) / 1e6
}
