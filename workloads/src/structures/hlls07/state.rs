//! The lock and the two flags of a node.

use crate::sync::{
    atomic::{
        AtomicBool,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
    hint, thread,
};

/// What a node keeps besides its key. Three bytes rather than bits of one, so that unlocking and marking are stores.
pub(super) struct State {
    is_locked: AtomicBool,
    /// The node is removed; never reset.
    is_marked: AtomicBool,
    /// The node is in all its levels; the paper's fullyLinked. Never reset.
    is_linked: AtomicBool,
}

impl State {
    /// The state of a new node.
    pub(super) fn new() -> Self {
        Self { is_locked: AtomicBool::new(false), is_marked: AtomicBool::new(false), is_linked: AtomicBool::new(false) }
    }

    /// Waits for the lock and takes it.
    pub(super) fn lock(&self) {
        let mut wait = Wait::new();
        // Acquire: what was done under the lock is visible; pairs with the Release in `unlock`.
        while self.is_locked.swap(true, Acquire) {
            // Relaxed: only waits; the swap decides. Reading leaves the line with its holder.
            while self.is_locked.load(Relaxed) {
                wait.pause();
            }
        }
    }

    /// Releases the lock, which the calling thread has.
    pub(super) fn unlock(&self) {
        // Release: pairs with the Acquire in `lock`.
        self.is_locked.store(false, Release);
    }

    pub(super) fn is_locked(&self) -> bool {
        self.is_locked.load(Relaxed)
    }

    /// Tells whether the node is removed.
    ///
    /// Acquire: pairs with the Release in [`Self::mark`], so that its key is seen absent from then on.
    pub(super) fn is_marked(&self) -> bool {
        self.is_marked.load(Acquire)
    }

    /// Tells whether the key of the node is present. In this order, since only linked nodes are marked.
    ///
    /// Acquire: pairs with [`Self::set_linked`].
    pub(super) fn is_present(&self) -> bool {
        self.is_linked.load(Acquire) && !self.is_marked()
    }

    /// Marks the linked node. True if this call did it.
    pub(super) fn mark(&self) -> bool {
        self.lock();
        // Under the lock, so no read-modify-write.
        let is_mine = !self.is_marked.load(Relaxed);
        if is_mine {
            // Release: pairs with the Acquire in `is_marked`.
            self.is_marked.store(true, Release);
        }
        self.unlock();
        is_mine
    }

    /// Notes that the node is in all its levels: here an insertion takes effect.
    ///
    /// AcqRel: pairs with the Acquire in [`Self::is_present`]. A read-modify-write, though one thread alone sets it: the
    /// guards of `none` order updates before later loads only if they end with one (`mark` is followed by one in `lock`).
    pub(super) fn set_linked(&self) {
        self.is_linked.swap(true, AcqRel);
    }

    /// Waits until the node is in all its levels.
    pub(super) fn wait_until_linked(&self) {
        let mut wait = Wait::new();
        // Acquire: pairs with `set_linked`.
        while !self.is_linked.load(Acquire) {
            wait.pause();
        }
    }
}

/// Waiting for another thread.
pub(super) struct Wait {
    n_pauses: u32,
}

impl Wait {
    pub(super) fn new() -> Self {
        Self { n_pauses: 0 }
    }

    /// Waits a little: first in place, then by letting others run, since the other thread may have no core.
    pub(super) fn pause(&mut self) {
        /// Pauses in place. A lock is held for some ten stores, each at worst a line from another core: 50 to 100 ns.
        /// This many pauses take 1 to 5 µs, so that beyond them the holder has most likely lost its core.
        const N_IN_PLACE: u32 = 100;
        self.n_pauses += 1;
        if self.n_pauses <= N_IN_PLACE { hint::spin_loop() } else { thread::yield_now() }
    }
}
