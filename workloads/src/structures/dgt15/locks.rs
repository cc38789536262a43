//! The two locks of an internal node, one for each edge, in one word.
//!
//! Each is a ticket lock of 32 bits: the *version* is the ticket that is being served, and the lock is free when the
//! next ticket is the same. Nobody queues: a thread takes the next ticket only if it is served at once, and only if the
//! version is the one that it saw on its way down, so that the two locks of a node can be taken by one exchange.

use crate::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Version in the low 16 bits of each half, next ticket in the high 16: a carry out of either ticket is lost.
pub(super) struct Locks(AtomicU64);

/// What the locks were when they were read.
#[derive(Clone, Copy)]
pub(super) struct Seen(u64);

/// One lock, held by this thread. It stays locked until it is given back.
#[must_use]
pub(super) struct Held<'n> {
    locks: &'n Locks,
    side: usize,
    /// The half as it was before.
    free: u32,
}

const TICKET: u32 = 1 << 16;
const VERSION_MASK: u32 = TICKET - 1;

fn half(word: u64, side: usize) -> u32 {
    (word >> (32 * side)) as u32
}

fn is_free(half: u32) -> bool {
    half >> 16 == half & VERSION_MASK
}

fn with_ticket(half: u32) -> u32 {
    half.wrapping_add(TICKET)
}

/// The same with the next version, which is the ticket that the holder took.
fn with_version(half: u32) -> u32 {
    half & !VERSION_MASK | half.wrapping_add(1) & VERSION_MASK
}

/// What must be added to a word so that its half on `side` becomes `new`, where it is `old`.
fn change(side: usize, old: u32, new: u32) -> u64 {
    u64::from(new).wrapping_sub(u64::from(old)) << (32 * side)
}

impl Locks {
    /// Both free.
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Reads both.
    ///
    /// Acquire: an edge that is read after this is at least as new as the version; pairs with the Release in
    /// [`Held::release`].
    #[inline]
    pub(super) fn see(&self) -> Seen {
        Seen(self.0.load(Acquire))
    }

    /// Takes the lock of that side if it is still as it was seen, and was free.
    ///
    /// Acquire: pairs with the Release in [`Held::release`], so that this thread sees what the last holder did.
    pub(super) fn try_lock(&self, side: usize, seen: Seen) -> Option<Held<'_>> {
        let free = half(seen.0, side);
        if !is_free(free) {
            return None;
        }
        let take = change(side, free, with_ticket(free));
        let mut word = seen.0;
        while let Err(now) = self.0.compare_exchange(word, word.wrapping_add(take), Acquire, Relaxed) {
            // If only the other lock has changed, this one can still be taken.
            if half(now, side) != free {
                return None;
            }
            word = now;
        }
        Some(Held { locks: self, side, free })
    }

    /// Takes both locks if they are still as they were seen, and were free.
    ///
    /// Acquire: as in [`Self::try_lock`].
    pub(super) fn try_lock_both(&self, seen: Seen) -> bool {
        if !seen.are_both_free() {
            return false;
        }
        // The carry out of the ticket of side 0, if its lock wraps, must not reach side 1.
        let taken = [0, 1].map(|side| u64::from(with_ticket(half(seen.0, side))) << (32 * side));
        self.0.compare_exchange(seen.0, taken[0] | taken[1], Acquire, Relaxed).is_ok()
    }

    /// Gives both locks back with their old versions, after [`Self::try_lock_both`] took them.
    ///
    /// Release: as in [`Held::revert`]. A store, because nobody else changes a word whose halves are both locked.
    pub(super) fn revert_both(&self, seen: Seen) {
        self.0.store(seen.0, Release);
    }
}

impl Seen {
    /// Tells whether the lock of that side was free.
    pub(super) fn is_free(self, side: usize) -> bool {
        is_free(half(self.0, side))
    }

    /// Tells whether both locks were free.
    pub(super) fn are_both_free(self) -> bool {
        self.is_free(0) && self.is_free(1)
    }
}

impl Held<'_> {
    /// Gives the lock back with the next version.
    ///
    /// Release: pairs with the Acquire in [`Locks::see`] and [`Locks::try_lock`]. An addition rather than a store,
    /// because the other half may change meanwhile; it is exact, because nobody else changes a half that is locked. As
    /// the last write of every update it is also the read-modify-write on which `Local::pin` relies.
    pub(super) fn release(self) {
        let taken = with_ticket(self.free);
        self.locks.0.fetch_add(change(self.side, taken, with_version(taken)), Release);
    }

    /// Gives the lock back with its old version: nothing was changed under it.
    ///
    /// Release, so that a thread that reads this word still sees all that led to its version.
    pub(super) fn revert(self) {
        let taken = with_ticket(self.free);
        self.locks.0.fetch_add(change(self.side, taken, self.free), Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_taken_only_as_it_was_seen() {
        let locks = Locks::new();
        for side in [0, 1] {
            let seen = locks.see();
            let held = locks.try_lock(side, seen).expect("it is free");
            assert!(locks.try_lock(side, seen).is_none() && locks.try_lock(side, locks.see()).is_none());
            assert!(!locks.see().is_free(side) && locks.see().is_free(1 - side));
            held.revert();
            let held = locks.try_lock(side, seen).expect("its version is the same");
            held.release();
            assert!(locks.see().is_free(side));
            assert!(locks.try_lock(side, seen).is_none(), "its version is the next");
        }
    }

    #[test]
    fn one_lock_does_not_disturb_the_other() {
        let locks = Locks::new();
        let seen = locks.see();
        let one = locks.try_lock(0, seen).expect("it is free");
        let other = locks.try_lock(1, seen).expect("it is as it was seen, though the word is not");
        one.release();
        other.revert();
        assert!(locks.try_lock(0, seen).is_none());
        assert!(!locks.try_lock_both(seen));
        let now = locks.see();
        assert!(locks.try_lock_both(now) && !locks.see().is_free(0) && !locks.see().is_free(1));
        assert!(!locks.try_lock_both(now) && !locks.try_lock_both(locks.see()));
        locks.revert_both(now);
        assert!(locks.try_lock_both(now));
    }

    #[test]
    fn versions_and_tickets_wrap_within_their_half() {
        // Every pair of versions around the wrap, on both sides.
        let edges = [0_u16, 1, u16::MAX / 2, u16::MAX - 1, u16::MAX];
        let free = |version: u16| u32::from(version) << 16 | u32::from(version);
        let word = |low, high| u64::from(free(high)) << 32 | u64::from(free(low));
        for low in edges {
            for high in edges {
                let locks = Locks(AtomicU64::new(word(low, high)));
                locks.try_lock(0, locks.see()).expect("it is free").release();
                assert_eq!(locks.0.load(Relaxed), word(low.wrapping_add(1), high));
                locks.try_lock(1, locks.see()).expect("it is free").release();
                let both = word(low.wrapping_add(1), high.wrapping_add(1));
                assert_eq!(locks.0.load(Relaxed), both);
                locks.try_lock(1, locks.see()).expect("it is free").revert();
                locks.try_lock(0, locks.see()).expect("it is free").revert();
                assert_eq!(locks.0.load(Relaxed), both);
                let seen = locks.see();
                assert!(locks.try_lock_both(seen));
                for side in [0, 1] {
                    let now = half(locks.0.load(Relaxed), side);
                    assert_eq!(now & VERSION_MASK, half(both, side) & VERSION_MASK);
                    assert_eq!((now >> 16) as u16, ((half(both, side) >> 16) as u16).wrapping_add(1));
                }
            }
        }
    }
}
