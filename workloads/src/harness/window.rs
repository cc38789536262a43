//! The measured loop: draw an operation, call it, count it. Nothing else happens in it.
//!
//! No clock, no allocation, no virtual call, and no write that another thread reads but the thread's own progress, on a
//! line of its own; unless a request asks for a clock or a shared line, to show what they cost.
//!
//! Range queries are a type of the generator. Without them the loop is compiled as if there were none: their type then has
//! no value, so no draw is compared with their share and no branch leads to them.

use std::{convert::Infallible, hint::black_box};

use super::clock;
use crate::{
    families::set::{RangeAnswer, RangeHandle, SetHandle},
    keys::KeySource,
    protocol::{Mix, Operations, Tally},
    rng::RandomSource,
    sync::crew::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

/// What to do next. `Q` is a range query; [`Infallible`] where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation<Q = Infallible> {
    /// Insert the key.
    Insert,
    /// Remove the key.
    Remove,
    /// Look the key up.
    Contains,
    /// Query the interval that begins with the key.
    Range(Q),
}

/// Whether a generator draws range queries, and which.
pub trait Ranges {
    /// A range query, but for the key that begins it.
    type Query;

    /// Returns the query if a draw that is neither an insert nor a remove is one.
    fn query(&self, choice: u64) -> Option<Self::Query>;
}

/// A range query as a handle of type `H` answers it.
pub trait Ask<H> {
    /// Queries the interval that begins with `lo`.
    fn ask(self, handle: &mut H, lo: u64) -> RangeAnswer;
}

/// No range queries.
#[derive(Clone, Copy, Debug)]
pub struct NoRanges;

impl Ranges for NoRanges {
    type Query = Infallible;

    #[inline(always)]
    fn query(&self, _choice: u64) -> Option<Infallible> {
        None
    }
}

impl<H> Ask<H> for Infallible {
    #[inline(always)]
    fn ask(self, _handle: &mut H, _lo: u64) -> RangeAnswer {
        match self {}
    }
}

/// Range queries that all have one size.
#[derive(Clone, Copy, Debug)]
pub struct SizedRanges {
    size: Size,
    /// Draws below this, and neither inserts nor removes, are range queries; at most 2^32.
    below: u64,
}

impl SizedRanges {
    /// Prepares the range queries of a mix, each over `n_keys` keys.
    pub fn new(mix: Mix, n_keys: u64) -> Self {
        Self { size: Size(n_keys), below: threshold(mix.insert + mix.remove + mix.range) }
    }
}

impl Ranges for SizedRanges {
    type Query = Size;

    #[inline(always)]
    fn query(&self, choice: u64) -> Option<Size> {
        (choice < self.below).then_some(self.size)
    }
}

/// Keys in the interval of a range query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl<H: RangeHandle> Ask<H> for Size {
    #[inline(always)]
    fn ask(self, handle: &mut H, lo: u64) -> RangeAnswer {
        handle.range(lo, self.0)
    }
}

/// Draws keys and operations: the stream of one thread in the window.
///
/// Key and operation come from two draws, so no bit decides over both. The source of the keys is that of the operations. An operation is chosen by the upper 32 bits of its
/// draw; each probability is within 2^-32 of its share, and a share of 0 or of the whole is exact.
#[derive(Clone, Debug)]
pub struct Generator<K: KeySource, R = NoRanges> {
    keys: K,
    rng: K::Random,
    /// Draws below this are inserts; at most 2^32.
    insert_below: u64,
    /// Draws below this, and not inserts, are removes; at most 2^32.
    remove_below: u64,
    ranges: R,
}

impl<K: KeySource> Generator<K> {
    /// Begins the stream of one thread, of a mix without range queries.
    pub fn new(keys: K, mix: Mix, trial_seed: u64, thread_idx: u32) -> Self {
        Self::with_ranges(keys, mix, NoRanges, trial_seed, thread_idx)
    }
}

impl<K: KeySource, R: Ranges> Generator<K, R> {
    /// Begins the stream of one thread.
    pub fn with_ranges(keys: K, mix: Mix, ranges: R, trial_seed: u64, thread_idx: u32) -> Self {
        Self {
            keys,
            rng: K::Random::of_window(trial_seed, thread_idx),
            insert_below: threshold(mix.insert),
            remove_below: threshold(mix.insert + mix.remove),
            ranges,
        }
    }

    /// Draws the next key and operation.
    #[inline(always)]
    pub fn draw(&mut self) -> (u64, Operation<R::Query>) {
        let key = self.keys.key(&mut self.rng);
        let choice = self.rng.next_u64() >> 32;
        let operation = if choice < self.insert_below {
            Operation::Insert
        } else if choice < self.remove_below {
            Operation::Remove
        } else if let Some(query) = self.ranges.query(choice) {
            Operation::Range(query)
        } else {
            Operation::Contains
        };
        (key, operation)
    }
}

/// Returns the draw of 32 bits below which a share of the draws lies.
fn threshold(share: u32) -> u64 {
    (u64::from(share) << 32) / u64::from(Mix::WHOLE)
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

/// Open for a number of operations, and for as many again each time that the clock says so.
#[derive(Debug)]
pub struct Countdown {
    n_left: u64,
    batch: u64,
    end_ns: u64,
}

impl Countdown {
    /// Open for so many operations.
    pub fn once(operations: u64) -> Self {
        // Whenever the clock is read, the end is past.
        Self::until(0, operations)
    }

    /// Open until `end_ns` of CLOCK_MONOTONIC, which is read after each `batch` operations.
    pub fn until(end_ns: u64, batch: u64) -> Self {
        Self { n_left: batch, batch, end_ns }
    }
}

impl Until for Countdown {
    #[inline(always)]
    fn goes_on(&mut self) -> bool {
        if self.n_left == 0 {
            if clock::now_ns() >= self.end_ns {
                return false;
            }
            self.n_left = self.batch;
        }
        self.n_left -= 1;
        true
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
pub fn run<H: SetHandle, K: KeySource, R: Ranges<Query: Ask<H>>>(
    handle: &mut H,
    generator: Generator<K, R>,
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
            Operation::Range(query) => {
                let answer = black_box(query.ask(handle, key));
                count(&mut done.operations.range, answer.count > 0);
                done.operations.range_keys += answer.count;
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

#[cfg(all(test, not(feature = "schedules")))]
mod tests {
    use super::*;

    /// Operations until the window is closed.
    fn n_operations(mut until: impl Until) -> u64 {
        let mut n_operations = 0;
        while until.goes_on() {
            n_operations += 1;
        }
        n_operations
    }

    #[test]
    fn a_countdown_is_exact() {
        for operations in [0, 1, 2, 1_000] {
            assert_eq!(n_operations(Countdown::once(operations)), operations);
        }
    }

    #[test]
    fn the_clock_is_read_after_each_batch_only() {
        const LENGTH_NS: u64 = 2_000_000;
        for batch in [1, 7, 1_000] {
            let began_ns = clock::now_ns();
            let n_operations = n_operations(Countdown::until(began_ns + LENGTH_NS, batch));
            assert!(clock::now_ns() - began_ns >= LENGTH_NS);
            assert!(n_operations > batch && n_operations.is_multiple_of(batch), "{n_operations} by {batch}");
        }
        assert_eq!(n_operations(Countdown::until(clock::now_ns(), 5)), 5, "it is not looked at before");
    }
}
