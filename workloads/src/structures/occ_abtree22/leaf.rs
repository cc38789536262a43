//! Leaves: unsorted slots under one state word that is version, lock, mark and map of used slots at once.
//!
//! Readers take no lock. They read the state, then the slots, then the state again ([`Leaf::look`]), and what they read
//! is what the leaf held while the state was the same. Every shared field is atomic, so that a read which another thread
//! overtakes yields a stale value, never an undefined one. Why a torn look is noticed: a slot is written only while it is
//! unused and the leaf is locked. Let a look see a write that came after the state which it read first. The writer locked
//! the leaf, then executed its release fence, then wrote the slot ([`LeafLock::fill`]). The look read the slot, then
//! executes its acquire fence, then reads the state again: since it saw a write from behind the one fence, it sees a state
//! no older than that lock. Either that has another version; or only the lock is new, and the slot is one that both
//! states call unused.

use std::mem;

use super::wait::Wait;
use crate::structures::fan::MAX_SIZE;
use crate::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

const LOCKED: u64 = 1;
const MARKED: u64 = 2;
const USED_SHIFT: u32 = 2;
const LAST_SHIFT: u32 = USED_SHIFT + MAX_SIZE as u32;
const LAST_BITS: u64 = 0b1111;
const VERSION_SHIFT: u32 = LAST_SHIFT + 4;
const ALL_USED: u32 = (1 << MAX_SIZE) - 1;
/// No slot was changed yet. Larger than any slot.
const NO_SLOT: u64 = 15;

const _: () = assert!((MAX_SIZE as u64) < NO_SLOT);

/// A leaf. Its state and most keys share the first line; values are only written, and read by rebalancing.
#[repr(C, align(64))]
pub(super) struct Leaf {
    state: AtomicU64,
    keys: [AtomicU64; MAX_SIZE],
    values: [AtomicU64; MAX_SIZE],
}

/// What the state word of a leaf held.
///
/// From the low bit: locked; marked (unlinked); a bit for each slot that is used; the slot that the last update filled or
/// cleared; the number of updates. With the lock as its low bit this is the paper's version, odd while being modified.
/// The number wraps after 2^47 updates of one leaf, during which a look would have to stall to be misled.
#[derive(Clone, Copy)]
pub(super) struct State(u64);

/// What a leaf held while its state was `state`.
pub(super) struct Look {
    pub(super) state: State,
    /// A bit for each slot, used or not, in which the key is.
    matches: u32,
}

/// Keys and values by key.
pub(super) struct Entries {
    entries: [(u64, u64); MAX_SIZE + 1],
    len: usize,
}

/// A leaf locked by this thread, to be unlinked or left as it was.
pub(super) struct LeafLock<'g> {
    leaf: &'g Leaf,
    /// Without the lock.
    state: State,
}

impl State {
    pub(super) fn is_locked(self) -> bool {
        self.0 & LOCKED != 0
    }

    pub(super) fn is_marked(self) -> bool {
        self.0 & MARKED != 0
    }

    /// Returns the number of keys.
    pub(super) fn len(self) -> usize {
        self.used().count_ones() as usize
    }

    /// Returns a bit for each slot that is used.
    fn used(self) -> u32 {
        (self.0 >> USED_SHIFT) as u32 & ALL_USED
    }

    /// Returns the slot of the last update, or `NO_SLOT`.
    fn last(self) -> u64 {
        self.0 >> LAST_SHIFT & LAST_BITS
    }

    fn version(self) -> u64 {
        self.0 >> VERSION_SHIFT
    }

    fn unlocked(self) -> Self {
        Self(self.0 & !LOCKED)
    }

    fn locked(self) -> Self {
        Self(self.0 | LOCKED)
    }

    fn of(version: u64, last: u64, used: u32) -> Self {
        Self(version << VERSION_SHIFT | last << LAST_SHIFT | u64::from(used) << USED_SHIFT)
    }

    /// The unlocked state after an update of `slot`, which was used or unused before and is the contrary after it.
    fn after_update_of(self, slot: u32) -> Self {
        Self::of(self.version().wrapping_add(1), u64::from(slot), self.used() ^ 1 << slot)
    }
}

impl Look {
    /// Returns the slot that holds the key, if one does.
    pub(super) fn slot(&self) -> Option<u32> {
        let used = self.matches & self.state.used();
        (used != 0).then(|| used.trailing_zeros())
    }

    /// Tells whether the last update of the leaf was one of this key, and took place after a look that saw `first`.
    ///
    /// This is the paper's publishing record, for which the state word and the key that stays in a cleared slot suffice.
    /// A locked state says nothing: the slot may be in use again.
    pub(super) fn was_updated_since(&self, first: State) -> bool {
        !self.state.is_locked()
            && self.state.version() != first.version()
            && u64::from(self.matches) >> self.state.last() & 1 == 1
    }
}

impl Leaf {
    /// Makes a leaf of at most [`MAX_SIZE`] unlike keys.
    pub(super) fn new(entries: &[(u64, u64)]) -> Self {
        let field =
            |of: fn(&(u64, u64)) -> u64| std::array::from_fn(|slot| AtomicU64::new(entries.get(slot).map_or(0, of)));
        let used = (1 << entries.len()) - 1;
        Self {
            state: AtomicU64::new(State::of(0, NO_SLOT, used).0),
            keys: field(|entry| entry.0),
            values: field(|entry| entry.1),
        }
    }

    /// Finds the key, without a lock, in what the leaf holds at one moment.
    ///
    /// It reads again only if another thread has updated or unlinked the leaf meanwhile: a lock alone, even one that is
    /// never released, does not hold it up.
    #[inline]
    pub(super) fn look(&self, key: u64) -> Look {
        loop {
            // Acquire: the used slots are as filled; pairs with the Release in `fill`, whose release sequence the
            // exchanges of later updates continue. New leaves are published by the edge to them.
            let state = State(self.state.load(Acquire));
            let matches = self.slots_with(key);
            // Acquire: pairs with the release fence in `fill`, see the head of this file.
            fence(Acquire);
            let again = State(self.state.load(Relaxed));
            if state.unlocked().0 == again.unlocked().0 {
                // Locked if it was at either time.
                return Look { state: State(state.0 | again.0), matches };
            }
        }
    }

    /// Returns a bit for each slot that holds the key, used or not.
    ///
    /// Without branches, which would be mispredicted in every other leaf.
    #[inline]
    fn slots_with(&self, key: u64) -> u32 {
        let mut slots = 0;
        for (slot, other) in self.keys.iter().enumerate() {
            slots |= u32::from(other.load(Relaxed) == key) << slot;
        }
        slots
    }

    /// Returns the number of keys.
    pub(super) fn len(&self) -> usize {
        // Relaxed: it decides only whether to look closer under the lock.
        State(self.state.load(Relaxed)).len()
    }

    /// Clears a slot of an unmarked leaf if it is unlocked and still in that state; else returns false.
    pub(super) fn try_clear(&self, state: State, slot: u32) -> bool {
        // Relaxed: it publishes nothing, and continues the release sequence of what published the other slots. That a
        // later filling of the slot comes after it is in the order of the state word alone.
        let new = state.after_update_of(slot);
        !state.is_locked() && self.state.compare_exchange(state.0, new.0, Relaxed, Relaxed).is_ok()
    }

    /// Locks a leaf if it is unlocked and still in that state.
    pub(super) fn try_lock(&self, state: State) -> Option<LeafLock<'_>> {
        // Acquire: the holder sees the slots as filled; pairs with the Release in `fill`. It also sees what holders
        // before it did to the parent's edges; pairs with the Release in `LeafLock`.
        let exchange = || self.state.compare_exchange(state.0, state.locked().0, Acquire, Relaxed);
        (!state.is_locked() && exchange().is_ok()).then(|| LeafLock { leaf: self, state })
    }

    /// Waits for the lock; `None` if the leaf is marked.
    pub(super) fn lock(&self) -> Option<LeafLock<'_>> {
        let mut wait = Wait::new();
        loop {
            // Relaxed: the exchange in `try_lock` decides.
            let state = State(self.state.load(Relaxed));
            if state.is_marked() {
                return None;
            }
            if let Some(lock) = self.try_lock(state) {
                return Some(lock);
            }
            wait.pause();
        }
    }
}

impl LeafLock<'_> {
    /// Returns the number of keys.
    pub(super) fn len(&self) -> usize {
        self.state.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.state.used() == ALL_USED
    }

    /// Fills an unused slot, of which there must be one, and unlocks the leaf.
    pub(super) fn fill(self, key: u64, value: u64) {
        // The first unused one, so that keys crowd on the first line.
        let slot = self.state.used().trailing_ones();
        // Release: orders the lock before the writes below; pairs with the acquire fence in `look`.
        fence(Release);
        self.leaf.keys[slot as usize].store(key, Relaxed);
        self.leaf.values[slot as usize].store(value, Relaxed);
        // Release: publishes the slot; pairs with the Acquire in `look` and `try_lock`. An exchange, although nobody
        // else writes a locked state, because schemes count on updates to be read-modify-writes (`Local::pin`).
        self.leaf.state.swap(self.state.after_update_of(slot).0, Release);
        mem::forget(self);
    }

    /// Adds the leaf's entries to `entries`.
    pub(super) fn copy_to(&self, entries: &mut Entries) {
        for slot in (0..MAX_SIZE).filter(|slot| self.state.used() >> slot & 1 == 1) {
            // Relaxed: the lock was taken with Acquire, and nobody else writes.
            entries.push(self.leaf.keys[slot].load(Relaxed), self.leaf.values[slot].load(Relaxed));
        }
    }

    /// Marks the leaf, which this thread has unlinked, and unlocks it.
    pub(super) fn mark(self) {
        // Release: who locks next, or looks, sees the edge that no longer leads here; pairs with the Acquire in
        // `try_lock` and `look`. An exchange for the reason in `fill`.
        self.leaf.state.swap(self.state.0 | MARKED, Release);
        mem::forget(self);
    }
}

impl Drop for LeafLock<'_> {
    /// Unlocks the leaf as it was.
    fn drop(&mut self) {
        // Release: orders what was read under the lock before what the next holder writes; pairs with the Acquire in
        // `try_lock`.
        self.leaf.state.store(self.state.0, Release);
    }
}

impl Entries {
    pub(super) fn new() -> Self {
        Self { entries: [(0, 0); MAX_SIZE + 1], len: 0 }
    }

    pub(super) fn push(&mut self, key: u64, value: u64) {
        self.entries[self.len] = (key, value);
        self.len += 1;
    }

    /// Returns the entries in the order of their keys.
    pub(super) fn sorted(&mut self) -> &[(u64, u64)] {
        let entries = &mut self.entries[..self.len];
        entries.sort_unstable();
        entries
    }
}
