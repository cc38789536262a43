//! Hyaline by crate seize: batches of retired objects with a count of the threads that may still read them.
//!
//! Source: Nikolaev and Ravindran, Snapshot-Free, Transparent, and Robust Memory Reclamation for Lock-Free Data
//! Structures, PLDI 2021, the variant Hyaline-1 without robustness; crate seize. Every instance has a collector of its
//! own.
//!
//! A thread gathers what it retires; a full batch is handed to every thread that is inside an operation, and the last of
//! them to leave frees it. A batch must have as many objects as threads are inside, else it waits for more. The cost of
//! ordering lies with the thread that hands a batch over: it makes all others execute a barrier (`membarrier`), so that
//! beginning an operation costs a plain store.

use std::{cell::Cell, ops::RangeInclusive, sync::Arc};

use seize::{Collector, Guard as _, LocalGuard};

use super::{
    Guard, Local, Reclaimer,
    count::{Slot, Slots},
    order::order_after_updates,
};
use crate::{
    families::set::Parameters,
    nodes,
    sync::atomic::{AtomicPtr, Ordering},
};

/// Objects of a batch that a spec may ask for. Above, a thread keeps megabytes to itself.
pub const BATCHES: RangeInclusive<u32> = 1..=65_536;

/// Objects of a batch when a spec does not say: what the crate takes on machines of up to 32 CPUs, here on all, so that
/// one plan means the same everywhere.
pub const DEFAULT_BATCH: u32 = 32;

/// Under this name the batch is among the parameters of a structure; no structure can have a parameter with a dot.
pub(crate) const BATCH_PARAMETER: &str = "hyaline.batch";

thread_local! {
    /// Objects that calls of the crate have freed on this thread since it was read last.
    ///
    /// A return value that the crate does not hand through: [`Counter::note`] takes it after each call. Instances share
    /// nothing by it, since it is zero between calls.
    static FREED: Cell<u64> = const { Cell::new(0) };
}

/// Hyaline with a collector of its own.
pub struct Hyaline {
    collector: Collector,
    slots: Slots,
}

// SAFETY: seize frees an object only when every thread that was inside a guard when its batch was handed over, which is
// after its retirement, has left, and once; a guard here is one of the one collector, and loads go through it.
unsafe impl Reclaimer for Hyaline {
    type Local<'r> = HyalineLocal<'r>;

    fn with(parameters: &Parameters) -> Self {
        Self { collector: collector(parameters), slots: Slots::new() }
    }

    fn register(&self) -> HyalineLocal<'_> {
        HyalineLocal { collector: &self.collector, slot: self.slots.take() }
    }

    fn unreclaimed(&self) -> u64 {
        self.slots.unreclaimed()
    }
}

impl Drop for Hyaline {
    /// Frees what is left, here and not in the drop of the collector, so that nothing is counted for another instance.
    fn drop(&mut self) {
        // SAFETY: `&mut self` excludes guards, and what was retired cannot be reached.
        unsafe { self.collector.reclaim_all() };
        FREED.set(0);
    }
}

/// Makes a collector with the batch that is among the parameters of a structure.
pub(crate) fn collector(parameters: &Parameters) -> Collector {
    let batch = parameters.get(BATCH_PARAMETER).copied().unwrap_or(u64::from(DEFAULT_BATCH));
    Collector::new().batch_size(usize::try_from(batch).expect("it was validated against its range"))
}

/// A thread that enters the collector.
pub struct HyalineLocal<'r> {
    collector: &'r Collector,
    slot: Arc<Slot>,
}

impl Local for HyalineLocal<'_> {
    type Guard<'l>
        = HyalineGuard<'l>
    where
        Self: 'l;

    #[inline]
    fn pin(&mut self) -> HyalineGuard<'_> {
        let guard = self.collector.enter();
        // The crate leaves it to the barriers of others to order what it must have ordered; that is not enough here.
        order_after_updates();
        HyalineGuard { guard, counter: Counter(&self.slot) }
    }
}

/// A thread that is inside the collector.
pub struct HyalineGuard<'l> {
    // Declared before `counter`, hence dropped before: leaving may free batches, of which this thread was the last reader.
    guard: LocalGuard<'l>,
    counter: Counter<'l>,
}

/// Counts what a thread frees, in its own slot and not in that of the thread that retired: sums over all slots are the
/// same.
struct Counter<'l>(&'l Slot);

impl Counter<'_> {
    /// Counts what the calls before have freed on this thread.
    #[inline]
    fn note(&self) {
        let n_freed = FREED.get();
        if n_freed > 0 {
            FREED.set(0);
            self.0.count_freed(n_freed);
        }
    }
}

impl Drop for Counter<'_> {
    #[inline]
    fn drop(&mut self) {
        self.note();
    }
}

impl Guard for HyalineGuard<'_> {
    #[inline]
    fn load<T>(&self, source: &AtomicPtr<T>) -> *mut T {
        // The crate strengthens the ordering where its barriers need it. It does not know the types of model checkers,
        // which explore no scheme but `none`.
        #[cfg(not(feature = "schedules"))]
        return self.guard.protect(source, Ordering::Acquire);
        #[cfg(feature = "schedules")]
        return source.load(Ordering::SeqCst);
    }

    unsafe fn retire<T: Send>(&self, object: *mut T) {
        /// # Safety
        /// To be called once, by the collector, on an object that was retired with it.
        unsafe fn reclaim<T>(object: *mut T, _collector: &Collector) {
            // SAFETY: by the contract of `retire`, nobody else frees it; by the collector, nobody reads it any more.
            unsafe { nodes::free(object) };
            FREED.set(FREED.get() + 1);
        }
        self.counter.0.count_retired();
        // SAFETY: by the contract of `retire` no thread that enters later can reach the object; `T: Send`.
        unsafe { self.guard.defer_retire(object, reclaim::<T>) };
        self.counter.note();
    }
}
