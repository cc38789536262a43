//! Epoch-based reclamation by crossbeam-epoch, and the same with eager freeing.
//!
//! Source: Fraser, Practical Lock-Freedom, 2004; crate crossbeam-epoch. Every instance has a collector of its own: the
//! crate's global collector is shared by all, and never frees what it holds when the process ends.
//!
//! The crate frees an object once the global epoch has advanced twice since its retirement, which cannot happen while
//! a guard obtained before is alive. Pinning tries to advance and to free at most 8 bags of 64 objects every 128th
//! time.
//!
//! [`Eager`] does not wait for that: each retirement tries to advance the epoch and to free what has become safe, so that
//! an object is freed with the second retirement after it, unless another thread stays in an operation. What it pays
//! for small memory is that each object goes through the shared queue of the collector alone, in a bag with room for 64.

use std::{marker::PhantomData, sync::Arc};

use crossbeam_epoch::{Collector, LocalHandle};

use super::{
    Guard, Local, Reclaimer,
    count::{Slot, Slots},
};
use crate::{
    families::set::Parameters,
    nodes,
    sync::atomic::{AtomicPtr, Ordering},
};

/// Epochs; objects are freed in bulk.
pub type Epoch = Epochs<false>;

/// Epochs; each retirement frees what can be freed.
pub type Eager = Epochs<true>;

/// Epochs with a collector of its own.
pub struct Epochs<const IS_EAGER: bool> {
    // Declared before `slots`, hence dropped before: freeing what is left counts into the slots.
    collector: Collector,
    slots: Slots,
}

impl<const IS_EAGER: bool> Epochs<IS_EAGER> {
    /// Returns how many slots were ever made.
    #[cfg(test)]
    pub(super) fn n_slots(&self) -> usize {
        self.slots.len()
    }
}

// SAFETY: crossbeam-epoch frees an object only when every participant that was pinned at its retirement has been
// unpinned since, and what it defers runs exactly once; a guard here is a pinned participant of the one collector.
unsafe impl<const IS_EAGER: bool> Reclaimer for Epochs<IS_EAGER> {
    type Local<'r> = EpochLocal<'r, IS_EAGER>;

    fn with(_parameters: &Parameters) -> Self {
        Self { collector: Collector::new(), slots: Slots::new() }
    }

    fn register(&self) -> EpochLocal<'_, IS_EAGER> {
        EpochLocal { handle: self.collector.register(), slot: self.slots.take(), reclaimer: PhantomData }
    }

    fn unreclaimed(&self) -> u64 {
        self.slots.unreclaimed()
    }
}

/// A participant of the collector.
pub struct EpochLocal<'r, const IS_EAGER: bool> {
    handle: LocalHandle,
    slot: Arc<Slot>,
    // What a participant frees is counted in slots of the reclaimer, so it must not outlive that.
    reclaimer: PhantomData<&'r Epochs<IS_EAGER>>,
}

impl<const IS_EAGER: bool> Local for EpochLocal<'_, IS_EAGER> {
    type Guard<'l>
        = EpochGuard<'l, IS_EAGER>
    where
        Self: 'l;

    fn pin(&mut self) -> EpochGuard<'_, IS_EAGER> {
        // The crate executes a sequentially consistent fence (on x86-64 a locked instruction) in here.
        EpochGuard { guard: self.handle.pin(), slot: &self.slot }
    }
}

/// A pinned participant.
pub struct EpochGuard<'l, const IS_EAGER: bool> {
    guard: crossbeam_epoch::Guard,
    slot: &'l Arc<Slot>,
}

impl<const IS_EAGER: bool> Guard for EpochGuard<'_, IS_EAGER> {
    fn load<T>(&self, source: &AtomicPtr<T>) -> *mut T {
        source.load(Ordering::Acquire)
    }

    unsafe fn retire<T: Send>(&self, object: *mut T) {
        self.slot.count_retired();
        let slot = Arc::as_ptr(self.slot);
        // Two words, which the crate stores without allocating.
        let reclaim = move || {
            // SAFETY: by the contract of `retire` nobody else frees it; by the collector nobody reads it any more.
            unsafe { nodes::free(object) };
            // SAFETY: closures run inside a participant, which borrows the reclaimer, or while the collector is
            // dropped, before `slots`. If a participant was leaked, then the collector outlives the reclaimer, but
            // nothing is left that could run this closure.
            unsafe { &*slot }.count_freed(1);
        };
        // SAFETY: `T: Send`, and a slot is `Sync`, so the closure may run on any thread; the crate runs it only when no
        // guard obtained before this call is left, and by the contract of `retire` no later one can reach the object.
        unsafe { self.guard.defer_unchecked(reclaim) };
        if IS_EAGER {
            self.guard.flush();
        }
    }
}
