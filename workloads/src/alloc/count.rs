//! Counts of allocations, kept by each thread for itself.
//!
//! A block freed by another thread than the one that allocated it is counted as a free there: only sums over all threads
//! are balances, and each thread must hand in its own before it ends.

use std::{cell::Cell, ops::AddAssign};

use crate::protocol::Balance;

thread_local! {
    // Const and without a destructor: no registration, no allocation, usable while the thread is torn down.
    static COUNTS: Cell<Counts> = const { Cell::new(Counts::NONE) };
}

/// Allocations and frees of one thread, or their sum over threads. A reallocation counts as a free of the old block and
/// an allocation of the new one, wherever it ends up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Blocks allocated.
    pub allocations: u64,
    /// Bytes asked for.
    pub allocated_bytes: u64,
    /// Blocks freed.
    pub frees: u64,
    /// Bytes that had been asked for in the freed blocks.
    pub freed_bytes: u64,
}

impl Counts {
    /// Nothing counted.
    pub const NONE: Self = Self { allocations: 0, allocated_bytes: 0, frees: 0, freed_bytes: 0 };

    /// Returns what the calling thread did since it began, as far as counting was on.
    pub fn of_this_thread() -> Self {
        COUNTS.get()
    }

    /// Returns what the calling thread does in `action`, and its result.
    pub fn during<T>(action: impl FnOnce() -> T) -> (Self, T) {
        let before = Self::of_this_thread();
        let result = action();
        (Self::of_this_thread().since(before), result)
    }

    /// Returns the difference to an earlier count of the same thread.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            allocations: self.allocations - earlier.allocations,
            allocated_bytes: self.allocated_bytes - earlier.allocated_bytes,
            frees: self.frees - earlier.frees,
            freed_bytes: self.freed_bytes - earlier.freed_bytes,
        }
    }

    /// Returns what is allocated and not freed. Below zero where one thread freed what another allocated.
    pub fn balance(self) -> Balance {
        Balance {
            blocks: self.allocations.wrapping_sub(self.frees).cast_signed(),
            bytes: self.allocated_bytes.wrapping_sub(self.freed_bytes).cast_signed(),
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.allocations += other.allocations;
        self.allocated_bytes += other.allocated_bytes;
        self.frees += other.frees;
        self.freed_bytes += other.freed_bytes;
    }
}

pub(super) fn allocated(bytes: usize) {
    let mut counts = COUNTS.get();
    counts.allocations += 1;
    counts.allocated_bytes += bytes as u64;
    COUNTS.set(counts);
}

pub(super) fn freed(bytes: usize) {
    let mut counts = COUNTS.get();
    counts.frees += 1;
    counts.freed_bytes += bytes as u64;
    COUNTS.set(counts);
}
