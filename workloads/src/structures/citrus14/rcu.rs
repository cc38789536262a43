//! Read-copy-update in user space: readers that write only to a line of their own, and updaters that can wait until all
//! readers of a moment are gone.
//!
//! Source: Arbel and Attiya, Concurrent Updates with RCU: Search Tree as an Example, PODC 2014, section 5. As there, each
//! reader has a counter of its own and no state is shared by all, so that updaters wait for readers side by side and not
//! for each other. Each instance has its own readers; the paper's are those of the process.
//!
//! This is not a reclamation scheme, although some are built so: it lets the tree order its own steps, whatever scheme
//! frees the nodes.

use std::ptr;

use crate::structures::patience::Patience;
use crate::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    compiler_fence, fence,
};

/// All readers of one instance.
pub(super) struct Rcu {
    /// A list to which slots are only ever added: it can be walked without a lock.
    slots: AtomicPtr<Slot>,
}

/// What others see of one reader. Two lines, because adjacent-line prefetch pairs them.
#[repr(align(128))]
struct Slot {
    /// Odd while the reader is inside a section. Only the reader writes it.
    n_steps: AtomicU64,
    is_taken: AtomicBool,
    next: *const Slot,
}

// SAFETY: the fields but `next` are atomics; `next` is written before the slot is published and never after, and leads
// to a slot that lives as long (`Rcu::drop`).
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

/// A registered thread. It is never inside two sections, since each borrows it mutably.
pub(super) struct Reader<'r> {
    rcu: &'r Rcu,
    slot: &'r Slot,
}

/// A read section; it ends when this is dropped. It must not wait for anything.
pub(super) struct Section<'s>(&'s Slot);

impl Rcu {
    pub(super) fn new() -> Self {
        Self { slots: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Registers the calling thread. May allocate; not meant for the measured loop.
    pub(super) fn register(&self) -> Reader<'_> {
        // Acquire: what the last reader counted in the slot; pairs with the Release in `Reader::drop`.
        let take = |slot: &&Slot| slot.is_taken.compare_exchange(false, true, Acquire, Relaxed).is_ok();
        let slot = self.slots().find(take).unwrap_or_else(|| self.add());
        Reader { rcu: self, slot }
    }

    /// Adds a slot that is taken.
    fn add(&self) -> &Slot {
        let (n_steps, is_taken) = (AtomicU64::new(0), AtomicBool::new(true));
        // Acquire and Release: each slot is published with those that it leads to; pairs with the Acquire in `slots`.
        let mut next = self.slots.load(Acquire);
        let slot = Box::into_raw(Box::new(Slot { n_steps, is_taken, next }));
        while let Err(now) = self.slots.compare_exchange(next, slot, Release, Acquire) {
            next = now;
            // SAFETY: the slot was allocated above and is not published yet.
            unsafe { (*slot).next = next };
        }
        // SAFETY: slots are freed only when the `Rcu`, which is borrowed, is dropped.
        unsafe { &*slot }
    }

    fn slots(&self) -> impl Iterator<Item = &Slot> {
        // SAFETY: null, or a slot that was published with Release and lives as long as `self`.
        let first = unsafe { self.slots.load(Acquire).cast_const().as_ref() };
        std::iter::successors(first, |slot| {
            // SAFETY: null, or a slot published before this one, which lives as long as `self`.
            unsafe { slot.next.as_ref() }
        })
    }
}

impl Drop for Rcu {
    fn drop(&mut self) {
        let mut slot = *self.slots.get_mut();
        while !slot.is_null() {
            // SAFETY: slots come from `Box::into_raw` in `add`; no reader is left, since they borrow the `Rcu`; and this
            // comes once to each.
            let owned = unsafe { Box::from_raw(slot) };
            slot = owned.next.cast_mut();
        }
    }
}

impl Reader<'_> {
    /// Enters a read section.
    #[inline]
    pub(super) fn read(&mut self) -> Section<'_> {
        let entered = self.slot.n_steps.load(Relaxed) + 1;
        // A full barrier between the counter and the loads of the section: either an updater in `synchronize` sees that
        // this reader is inside, or this reader sees what the updater did before; pairs with the fence there.
        if cfg!(target_arch = "x86_64") {
            // An exchange is a full barrier on this architecture and costs less than a store and a fence.
            self.slot.n_steps.swap(entered, SeqCst);
            compiler_fence(SeqCst);
        } else {
            self.slot.n_steps.store(entered, Relaxed);
            fence(SeqCst);
        }
        Section(self.slot)
    }

    /// Waits until every reader that is inside a section now has left it. The borrow excludes that this thread is one.
    pub(super) fn synchronize(&mut self) {
        // Pairs with the barrier in `read`.
        fence(SeqCst);
        for slot in self.rcu.slots() {
            // Acquire: what the reader loaded, it loaded before; pairs with the Release in `Section::drop`.
            let n_steps = slot.n_steps.load(Acquire);
            let is_inside = |n_steps: u64| n_steps % 2 == 1;
            let mut patience = Patience::new();
            // Another value: it has left this section, and if it is inside another, that began after this call.
            while is_inside(n_steps) && slot.n_steps.load(Acquire) == n_steps {
                patience.wait();
            }
        }
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `Rcu::register`.
        self.slot.is_taken.store(false, Release);
    }
}

impl Drop for Section<'_> {
    #[inline]
    fn drop(&mut self) {
        let left = self.0.n_steps.load(Relaxed) + 1;
        // Release: the loads of the section come before; pairs with the Acquire in `synchronize`.
        self.0.n_steps.store(left, Release);
    }
}

#[cfg(test)]
mod tests {
    use std::{mem, thread};

    use super::*;

    #[test]
    fn updaters_wait_for_the_readers_of_the_moment() {
        let rcu = Rcu::new();
        let mut updater = rcu.register();
        updater.synchronize();
        let (is_inside, is_leaving) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut reader = rcu.register();
                let section = reader.read();
                is_inside.store(true, SeqCst);
                // Time enough for an updater that does not wait.
                (0..1000).for_each(|_| thread::yield_now());
                is_leaving.store(true, SeqCst);
                drop(section);
            });
            while !is_inside.load(SeqCst) {
                thread::yield_now();
            }
            updater.synchronize();
            assert!(is_leaving.load(SeqCst));
        });
    }

    #[test]
    fn a_slot_serves_the_next_thread() {
        let rcu = Rcu::new();
        for _ in 0..10 {
            drop(rcu.register().read());
        }
        assert_eq!(rcu.slots().count(), 1);
        let two = (rcu.register(), rcu.register());
        assert_eq!(rcu.slots().count(), 2);
        assert!(mem::align_of_val(two.0.slot) == 128);
    }
}
