//! The measured loop: draw an operation, call it, count it. Nothing else happens in it.
//!
//! No clock, no allocation, no virtual call, and no write that another thread reads but the thread's own progress, on a
//! line of its own.

use std::hint::black_box;

use crate::{
    families::set::SetHandle,
    keys::KeySource,
    protocol::{Mix, Operations, Tally},
    rng::{Phase, Xoshiro256PlusPlus},
    sync::crew::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Insert the key.
    Insert,
    /// Remove the key.
    Remove,
    /// Look the key up.
    Contains,
}

/// Draws keys and operations: the stream of one thread in the window.
///
/// Key and operation come from two draws, so no bit decides over both. An operation is chosen by the upper 32 bits of its
/// draw; each probability is within 2^-32 of its share, and a share of 0 or of the whole is exact.
#[derive(Clone, Debug)]
pub struct Generator<K> {
    keys: K,
    rng: Xoshiro256PlusPlus,
    /// Draws below this are inserts; at most 2^32.
    insert_below: u64,
    /// Draws below this, and not inserts, are removes; at most 2^32.
    remove_below: u64,
}

impl<K: KeySource> Generator<K> {
    /// Begins the stream of one thread.
    pub fn new(keys: K, mix: Mix, trial_seed: u64, thread_idx: u32) -> Self {
        let threshold = |share: u32| (u64::from(share) << 32) / u64::from(Mix::WHOLE);
        Self {
            keys,
            rng: Xoshiro256PlusPlus::stream(trial_seed, thread_idx, Phase::Window),
            insert_below: threshold(mix.insert),
            remove_below: threshold(mix.insert + mix.remove),
        }
    }

    /// Draws the next key and operation.
    #[inline(always)]
    pub fn draw(&mut self) -> (u64, Operation) {
        let key = self.keys.key(&mut self.rng);
        let choice = self.rng.next_u64() >> 32;
        let operation = if choice < self.insert_below {
            Operation::Insert
        } else if choice < self.remove_below {
            Operation::Remove
        } else {
            Operation::Contains
        };
        (key, operation)
    }
}

/// Decides whether the window is still open; asked before each operation.
pub trait Until {
    /// Returns false once the window has ended.
    fn goes_on(&mut self) -> bool;
}

/// Open until a flag is set.
#[derive(Debug)]
pub struct Flag<'f>(pub &'f AtomicBool);

impl Until for Flag<'_> {
    #[inline(always)]
    fn goes_on(&mut self) -> bool {
        // Relaxed: nothing is read because of it; the structure was handed over before.
        !self.0.load(Relaxed)
    }
}

/// Open for a number of operations.
#[derive(Debug)]
pub struct Countdown(pub u64);

impl Until for Countdown {
    #[inline(always)]
    fn goes_on(&mut self) -> bool {
        let open = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        open
    }
}

/// What one thread did in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Operations by kind.
    pub operations: Operations,
    /// Wrapping sum of the keys inserted effectively.
    pub inserted_sum: u64,
    /// Wrapping sum of the keys removed effectively.
    pub removed_sum: u64,
}

/// Runs operations until the window ends. The value stored with a key is the key.
#[inline(never)]
pub fn run<H: SetHandle, K: KeySource>(
    handle: &mut H,
    generator: Generator<K>,
    mut until: impl Until,
    progress: &AtomicU64,
) -> Done {
    // A local copy: the generator's state stays in registers.
    let mut generator = generator;
    let mut done = Done::default();
    let mut n_completed = 0_u64;
    while until.goes_on() {
        let (key, operation) = generator.draw();
        match operation {
            Operation::Insert => {
                let effective = black_box(handle.insert(key, key));
                count(&mut done.operations.insert, effective);
                done.inserted_sum = done.inserted_sum.wrapping_add(if effective { key } else { 0 });
            }
            Operation::Remove => {
                let effective = black_box(handle.remove(key));
                count(&mut done.operations.remove, effective);
                done.removed_sum = done.removed_sum.wrapping_add(if effective { key } else { 0 });
            }
            Operation::Contains => {
                let effective = black_box(handle.contains(key));
                count(&mut done.operations.contains, effective);
            }
        }
        n_completed += 1;
        // Relaxed: read by the sampler only, every 100 ms.
        progress.store(n_completed, Relaxed);
    }
    done
}

#[inline(always)]
fn count(tally: &mut Tally, effective: bool) {
    tally.attempted += 1;
    tally.effective += u64::from(effective);
}
