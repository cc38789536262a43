//! No reclamation: every removed node leaks until the process ends.
//!
//! A bound on speed, not a usable scheme. It counts what it leaks, so that reports can say how much.

use std::sync::Arc;

use super::{
    Guard, Local, Reclaimer,
    count::{Slot, Slots},
    order::order_after_updates,
};
use crate::{
    families::set::Parameters,
    sync::atomic::{AtomicPtr, Ordering},
};

/// Frees nothing.
pub struct NoReclamation {
    slots: Slots,
}

// SAFETY: an object that is never freed outlives every guard.
unsafe impl Reclaimer for NoReclamation {
    type Local<'r> = LeakingLocal;

    fn with(_parameters: &Parameters) -> Self {
        Self { slots: Slots::new() }
    }

    fn register(&self) -> LeakingLocal {
        LeakingLocal { slot: self.slots.take() }
    }

    fn unreclaimed(&self) -> u64 {
        self.slots.unreclaimed()
    }
}

/// A thread that counts what it leaks.
pub struct LeakingLocal {
    slot: Arc<Slot>,
}

impl Local for LeakingLocal {
    type Guard<'l> = LeakingGuard<'l>;

    fn pin(&mut self) -> LeakingGuard<'_> {
        order_after_updates();
        LeakingGuard { slot: &self.slot }
    }
}

/// Protects nothing, because nothing is freed.
pub struct LeakingGuard<'l> {
    slot: &'l Slot,
}

impl Guard for LeakingGuard<'_> {
    fn load<T>(&self, source: &AtomicPtr<T>) -> *mut T {
        source.load(Ordering::Acquire)
    }

    unsafe fn retire<T: Send>(&self, _object: *mut T) {
        self.slot.count_retired();
    }
}
