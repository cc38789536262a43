//! Update words, and the records of pending operations that they lead to.
//!
//! A [`Seen`] is loaded only from a node that was obtained under the same guard, or is what this thread has just written
//! there; the argument why its record can be followed is at [`Seen::state`].

use std::{marker::PhantomData, ptr};

use super::node::{Internal, Word};
use crate::sync::atomic::{
    AtomicPtr,
    Ordering::{Relaxed, Release},
};
use crate::{reclaim::Guard, structures::unpublished::Unpublished};

/// The low bits of a stamp that say which of four it is.
const STATE: usize = 3;
/// No operation is pending here: a version is above the low bits.
const CLEAN: usize = 0;
/// One edge of the node is about to be swung (IFlag): a [`Swing`].
const SWING: usize = 1;
/// The child of the node is about to be removed with a leaf (DFlag): a [`Removal`].
const REMOVE: usize = 2;
/// The node is being removed with a leaf (Mark): the [`Removal`] that its parent is flagged with.
const MARK: usize = 3;
/// Which edge is meant: with SWING the one to swing, with REMOVE and MARK the one to the leaf that goes.
const SIDE: usize = 4;
/// Bits below a version.
const VERSION_SHIFT: u32 = 3;

/// The update word of an internal node: a [`Stamp`] that threads compete for.
pub(super) struct Update(AtomicPtr<()>);

/// A state, and a version or the address of a record. It cannot be followed: nothing says that the record still exists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp(*mut ());

/// What an update word held under a guard that lives for `'g`: its record can be followed so long.
#[derive(Clone, Copy)]
pub(super) struct Seen<'g> {
    pub(super) stamp: Stamp,
    guard: PhantomData<&'g ()>,
}

/// What is to be done, so that any thread can do it.
pub(super) enum State<'g> {
    /// Nothing.
    Clean,
    /// To swing one edge of the node.
    Swing(&'g Swing),
    /// To mark the node's child, and then to swing the node's edge past it.
    Remove(&'g Removal),
    /// To swing the parent's edge past the node.
    Marked(&'g Removal),
}

/// A change of one edge: an insertion, the paper's IInfo, or the removal of the only leaf.
#[repr(align(8))]
pub(super) struct Swing {
    pub(super) old: Word,
    pub(super) new: Word,
    /// Version of the node when it was flagged.
    pub(super) version: u64,
}

/// The removal of a leaf and its parent: the paper's DInfo. The leaf is given by the side bit of the stamp.
#[repr(align(8))]
pub(super) struct Removal {
    pub(super) grandparent: *const Internal,
    pub(super) parent: Word,
    /// What the parent held when the leaf was found: a clean stamp.
    pub(super) parent_stamp: Stamp,
    /// Version of the grandparent when it was flagged.
    pub(super) version: u64,
}

const _: () = assert!(align_of::<Swing>() > (STATE | SIDE) && align_of::<Removal>() > (STATE | SIDE));

impl Update {
    /// Makes the word of a new node.
    pub(super) fn new() -> Self {
        Self(AtomicPtr::new(Stamp::clean(0).0))
    }

    /// Loads the word with Acquire: pairs with the Release of [`Self::exchange`].
    #[inline]
    pub(super) fn load<'g>(&'g self, guard: &'g impl Guard) -> Seen<'g> {
        Seen { stamp: Stamp(guard.load(&self.0)), guard: PhantomData }
    }

    /// Changes `old` to `new`, and returns `new` as seen; `None` if the word holds something else.
    ///
    /// Release: publishes the record under `new`, and with a clean stamp the swing that came before it; pairs with the
    /// Acquire in [`Self::load`]. Relaxed on failure: what was read is not used.
    pub(super) fn exchange<'g>(&'g self, old: Stamp, new: Stamp, _guard: &'g impl Guard) -> Option<Seen<'g>> {
        let seen = Seen { stamp: new, guard: PhantomData };
        self.0.compare_exchange(old.0, new.0, Release, Relaxed).is_ok().then_some(seen)
    }
}

impl Stamp {
    pub(super) fn clean(version: u64) -> Self {
        Self(ptr::without_provenance_mut((version as usize) << VERSION_SHIFT | CLEAN))
    }

    /// Returns the stamp that flags a node whose edge on that side is to be swung.
    pub(super) fn swing(record: &Unpublished<Swing>, side: usize) -> Self {
        Self(record.as_ptr().cast()).with(SWING | (side * SIDE))
    }

    /// Returns the stamp that flags the parent of a node whose leaf on that side is to be removed.
    pub(super) fn remove(record: &Unpublished<Removal>, side: usize) -> Self {
        Self(record.as_ptr().cast()).with(REMOVE | (side * SIDE))
    }

    fn with(self, bits: usize) -> Self {
        Self(self.0.map_addr(|address| address | bits))
    }

    fn without(self, bits: usize) -> Self {
        Self(self.0.map_addr(|address| address & !bits))
    }

    fn state(self) -> usize {
        self.0.addr() & STATE
    }

    /// Returns the version of a clean stamp; `None` of others.
    pub(super) fn version(self) -> Option<u64> {
        (self.state() == CLEAN).then(|| (self.0.addr() >> VERSION_SHIFT) as u64)
    }

    /// Returns the side bit of a stamp that is not clean.
    pub(super) fn side(self) -> usize {
        usize::from(self.0.addr() & SIDE != 0)
    }

    /// The stamp that marks the parent under a removal, from the one that flags the grandparent.
    pub(super) fn marked(self) -> Self {
        self.without(STATE).with(MARK)
    }

    /// The stamp that flags the grandparent under a removal, from either.
    pub(super) fn flagged(self) -> Self {
        self.without(STATE).with(REMOVE)
    }

    /// Hands the record to `guard`.
    ///
    /// # Safety
    /// The calling thread has changed the flag of this record to a clean stamp (I5), and calls this once for it.
    pub(super) unsafe fn retire(self, guard: &impl Guard) {
        let record = self.without(STATE | SIDE).0;
        if self.state() == SWING {
            // SAFETY: records come from `Unpublished`, which allocates them; no word leads to it any more, see the caller's
            // promise, and never will, since only the exchange that published it could have written its flag.
            unsafe { guard.retire(record.cast::<Swing>()) };
        } else {
            // SAFETY: likewise; the marked parent that may lead to it was unlinked before.
            unsafe { guard.retire(record.cast::<Removal>()) };
        }
    }
}

impl<'g> Seen<'g> {
    /// Returns what is to be done.
    ///
    /// A record is retired after its flag was changed to a clean stamp (I5), so one that is found under a flag, which
    /// was still there when it was loaded, is retired after the guard of its finder was obtained. One found under a mark
    /// is retired after the marked node was unlinked, and that was in the tree at some moment since the guard was
    /// obtained (see `Efrb10::seek`). So the guard protects every record found.
    pub(super) fn state(self) -> State<'g> {
        let record = self.stamp.without(STATE | SIDE).0;
        match self.stamp.state() {
            CLEAN => State::Clean,
            // SAFETY: the state says that this is the address of a `Swing`, whose fields were written before it was
            // published and never change; the guard protects it, see above.
            SWING => State::Swing(unsafe { &*record.cast() }),
            // SAFETY: likewise of a `Removal`.
            REMOVE => State::Remove(unsafe { &*record.cast() }),
            // SAFETY: likewise.
            _ => State::Marked(unsafe { &*record.cast() }),
        }
    }
}

impl Removal {
    /// Returns the node that is flagged with the record.
    pub(super) fn grandparent(&self) -> &Internal {
        // SAFETY: it is the anchor, or a node that a seek visited. It is flagged with this record, so it cannot be marked
        // (I1), and is in the tree, until the flag is taken away. The record was found under a guard obtained before
        // that (see `Seen::state`), hence before the node was retired; and the borrow of the record is as long.
        unsafe { &*self.grandparent }
    }

    /// Returns the node that goes.
    pub(super) fn parent(&self) -> &Internal {
        // SAFETY: an internal node that a seek visited, and the child of the grandparent when that was flagged, hence
        // until this record's swing (I1). It is retired when the flag is taken away or later, see `grandparent`.
        unsafe { self.parent.follow() }
    }
}

// SAFETY: a record is plain memory without a bond to a thread, and dropping it follows none of its addresses.
unsafe impl Send for Swing {}
// SAFETY: likewise.
unsafe impl Send for Removal {}
