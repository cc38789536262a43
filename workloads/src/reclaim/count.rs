//! Counts retired and freed objects without a shared write per operation.
//!
//! Each registered thread has a slot. Only its owner writes how many objects it retired; how many were freed is a second
//! counter on another line, because with some schemes an object is counted in the slot of the thread that retired it, and
//! freed by another.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
};

/// Two lines, because adjacent-line prefetch pairs them.
#[repr(align(128))]
struct OwnLine<T>(T);

/// The counters of one registered thread.
pub(crate) struct Slot {
    retired: OwnLine<AtomicU64>,
    freed: OwnLine<AtomicU64>,
}

impl Slot {
    /// Counts one retired object. Only the thread that holds the slot may call it.
    pub(crate) fn count_retired(&self) {
        // Relaxed, and no read-modify-write: one writer (`Slots::take` hands a slot to one thread at a time).
        let retired = self.retired.0.load(Relaxed);
        self.retired.0.store(retired + 1, Relaxed);
    }

    /// Counts freed objects that had been counted as retired in some slot. Any thread may call it.
    pub(super) fn count_freed(&self, n_objects: u64) {
        // Release: their retirement happened before this; pairs with the Acquire in `Slots::unreclaimed`.
        self.freed.0.fetch_add(n_objects, Release);
    }
}

/// All slots of one reclaimer. They live as long as it does.
pub(crate) struct Slots(Mutex<Vec<Arc<Slot>>>);

impl Slots {
    /// Makes an empty set.
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Hands out a slot that no thread holds; it is given back when the returned `Arc` is dropped.
    pub(crate) fn take(&self) -> Arc<Slot> {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // `get_mut` succeeds only when no thread holds the slot, and synchronises with the drop of its last holder, so
        // the counts of that holder are visible to the next.
        let free = slots.iter_mut().position(|slot| Arc::get_mut(slot).is_some());
        let slot_idx = free.unwrap_or_else(|| {
            let zero = || OwnLine(AtomicU64::new(0));
            slots.push(Arc::new(Slot { retired: zero(), freed: zero() }));
            slots.len() - 1
        });
        Arc::clone(&slots[slot_idx])
    }

    /// Returns the objects retired and not freed.
    pub(crate) fn unreclaimed(&self) -> u64 {
        let slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // All of `freed` first, with Acquire: each free that is counted happened after its retirement was counted in
        // some slot, so the difference cannot be negative.
        let freed: u64 = slots.iter().map(|slot| slot.freed.0.load(Acquire)).sum();
        let retired: u64 = slots.iter().map(|slot| slot.retired.0.load(Relaxed)).sum();
        retired - freed
    }

    /// Returns how many slots were ever made.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
