//! Update words, and the records of pending operations that they lead to.
//!
//! A [`Seen`] is loaded only from a node that was obtained under the same guard, or is what this thread has just written
//! there; the argument why its record can be followed is at [`Seen::state`].

use std::{marker::PhantomData, ptr};

use super::node::{Node, Word};
use crate::sync::atomic::{
    AtomicPtr, AtomicU8,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use crate::{reclaim::Guard, structures::unpublished::Unpublished};

/// The low bits of a stamp that say which of four it is.
const STATE: usize = 3;
/// No operation is pending here: a version is above the low bits.
const CLEAN: usize = 0;
/// One edge of the node is about to be swung (the paper's CHILDCAS): a [`Swing`].
const SWING: usize = 1;
/// The key of one node is about to move to another, and this is one of the two (RELOCATE): a [`Relocation`].
const RELOCATE: usize = 2;
/// The node is about to be unlinked. It has at most one child.
const MARK: usize = 3;
/// With SWING, which edge is meant.
const SIDE: usize = 4;
/// Bits below a version.
const VERSION_SHIFT: u32 = 3;

/// The update word of a node: a [`Stamp`] that threads compete for.
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
    /// To move a key from or to the node.
    Relocate(&'g Relocation),
    /// To unlink the node.
    Marked,
}

/// A change of one edge (ChildCASOp): the insertion of a node, or the unlinking of a marked one.
#[repr(align(8))]
pub(super) struct Swing {
    pub(super) old: Word,
    pub(super) new: Word,
    /// Version of the node when it was flagged.
    pub(super) version: u64,
}

/// The move of a key into the place of a removed one (RelocateOp). Both nodes are flagged with it, the source first.
/// Afterwards the target keeps it as the carrier of its value.
#[repr(align(8))]
pub(super) struct Relocation {
    decision: AtomicU8,
    /// The source as long as it is flagged, and the target as long as it has this as its carrier; from the start on.
    n_holders: AtomicU8,
    /// The node whose key is removed. An address to compare with: see [`super::help_relocation`].
    pub(super) target: *const Node,
    /// What the target held when its key was found: a clean stamp.
    pub(super) target_version: u64,
    /// Version of the source when it was flagged.
    pub(super) source_version: u64,
    pub(super) removed_key: u64,
    pub(super) moved_key: u64,
    /// Value of the moved key.
    pub(super) value: u64,
    /// The target's carrier before.
    pub(super) old_carrier: Carrier,
}

/// The address of the relocation that brought key and value to a node. It cannot be followed by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Carrier(pub(super) *mut Relocation);

/// Whether a relocation takes place. Once decided, it stays so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Decision {
    Pending,
    Success,
    Failure,
}

const _: () = assert!(align_of::<Swing>() > (STATE | SIDE) && align_of::<Relocation>() > (STATE | SIDE));

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
    /// Release: publishes the record under `new`, and with a clean stamp or a mark what came before it; pairs with the
    /// Acquire in [`Self::load`]. Relaxed on failure: what was read is not used.
    pub(super) fn exchange<'g>(&'g self, old: Stamp, new: Stamp, _guard: &'g impl Guard) -> Option<Seen<'g>> {
        let seen = Seen { stamp: new, guard: PhantomData };
        self.0.compare_exchange(old.0, new.0, Release, Relaxed).is_ok().then_some(seen)
    }
}

impl Stamp {
    /// The stamp of a node that is about to be unlinked.
    pub(super) const MARK: Self = Self(ptr::without_provenance_mut(MARK));

    pub(super) fn clean(version: u64) -> Self {
        Self(ptr::without_provenance_mut((version as usize) << VERSION_SHIFT | CLEAN))
    }

    /// Returns the stamp that flags a node whose edge on that side is to be swung.
    pub(super) fn swing(record: &Unpublished<Swing>, side: usize) -> Self {
        Self(record.as_ptr().cast()).with(SWING | (side * SIDE))
    }

    /// Returns the stamp that flags both nodes of a relocation.
    pub(super) fn relocate(record: &Unpublished<Relocation>) -> Self {
        Self(record.as_ptr().cast()).with(RELOCATE)
    }

    fn with(self, bits: usize) -> Self {
        Self(self.0.map_addr(|address| address | bits))
    }

    fn record(self) -> *mut () {
        self.0.map_addr(|address| address & !(STATE | SIDE))
    }

    fn state(self) -> usize {
        self.0.addr() & STATE
    }

    #[inline]
    pub(super) fn is_clean(self) -> bool {
        self.state() == CLEAN
    }

    /// Returns the version of a clean stamp; `None` of others.
    pub(super) fn version(self) -> Option<u64> {
        self.is_clean().then(|| (self.0.addr() >> VERSION_SHIFT) as u64)
    }

    /// Returns the side of a swing.
    pub(super) fn side(self) -> usize {
        usize::from(self.0.addr() & SIDE != 0)
    }

    /// Returns the address of the record of a relocation.
    pub(super) fn relocation(self) -> Carrier {
        Carrier(self.record().cast())
    }

    /// Hands the record of a swing to `guard`.
    ///
    /// # Safety
    /// The calling thread has changed this flag to a clean stamp (I5), and calls this once for it.
    pub(super) unsafe fn retire_swing(self, guard: &impl Guard) {
        // SAFETY: records come from `Unpublished`, which allocates them; no word leads to it any more, see the caller's
        // promise, and never will, since only the exchange that published it could have written its flag.
        unsafe { guard.retire(self.record().cast::<Swing>()) };
    }
}

impl Carrier {
    /// None: the value is the one that came with the node.
    pub(super) const NONE: Self = Self(ptr::null_mut());

    /// Returns the record, or `None` for [`Self::NONE`].
    ///
    /// # Safety
    /// The caller's guard, or a hold that is the caller's to give up, keeps the record allocated for `'g`.
    pub(super) unsafe fn follow<'g>(self) -> Option<&'g Relocation> {
        // SAFETY: null, or the address of a record whose fields were written before it was published, and never change
        // unless atomic; that it is allocated is the caller's promise.
        unsafe { self.0.as_ref() }
    }

    /// Gives up one of the two holds on the record, if there is one, and hands it to `guard` if that was the last.
    ///
    /// # Safety
    /// The hold is the calling thread's to give up: it changed the source's flag, or took the carrier from the target,
    /// or retires the target; and it calls this once for it.
    pub(super) unsafe fn let_go(self, guard: &impl Guard) {
        // SAFETY: there is a hold, and nobody else gives it up.
        let relocation = unsafe { self.follow() };
        if relocation.is_some_and(Relocation::let_go) {
            // SAFETY: the last hold is gone.
            unsafe { self.retire(guard) };
        }
    }

    /// Hands the record to `guard`.
    ///
    /// # Safety
    /// No flag and no node in the tree leads to it, or ever will; and this is the only call for it.
    pub(super) unsafe fn retire(self, guard: &impl Guard) {
        // SAFETY: records come from `Unpublished`, which allocates them; the rest is the caller's promise.
        unsafe { guard.retire(self.0) };
    }
}

impl<'g> Seen<'g> {
    /// Returns what is to be done.
    ///
    /// A record is retired when no flag leads to it any more, or later (I5), and never leads to it again. So one that is
    /// found under a flag is retired after the guard of its finder was obtained, and the guard protects it.
    pub(super) fn state(self) -> State<'g> {
        let record = self.stamp.record();
        match self.stamp.state() {
            CLEAN => State::Clean,
            // SAFETY: the state says that this is the address of a `Swing`, whose fields were written before it was
            // published and never change; the guard protects it, see above.
            SWING => State::Swing(unsafe { &*record.cast() }),
            // SAFETY: likewise of a `Relocation`, in which only the atomic decision changes.
            RELOCATE => State::Relocate(unsafe { &*record.cast() }),
            _ => State::Marked,
        }
    }
}

impl Relocation {
    /// Makes the record of a move from a source of that version, key and value to a target of that version and key.
    pub(super) fn new(
        (target, target_version, removed_key): (&Node, u64, u64),
        (source_version, moved_key, value): (u64, u64, u64),
        old_carrier: Carrier,
    ) -> Self {
        let decision = AtomicU8::new(Decision::Pending as u8);
        let n_holders = AtomicU8::new(2);
        Self { decision, n_holders, target, target_version, source_version, removed_key, moved_key, value, old_carrier }
    }

    /// Gives up one of the two holds; true if the other was given up before.
    pub(super) fn let_go(&self) -> bool {
        // AcqRel: what the other holder did happens before the record is retired; pairs with itself.
        self.n_holders.fetch_sub(1, AcqRel) == 1
    }

    pub(super) fn decision(&self) -> Decision {
        // Acquire: what its maker saw; pairs with the Release in `decide`.
        Decision::of(self.decision.load(Acquire))
    }

    /// Decides unless that was done; returns what is decided.
    pub(super) fn decide(&self, decision: Decision) -> Decision {
        // AcqRel: who sees a decision sees what its maker saw; pairs with itself and with the load in `decision`. Acquire
        // on failure: likewise.
        let decided = self.decision.compare_exchange(Decision::Pending as u8, decision as u8, AcqRel, Acquire);
        decided.map_or_else(Decision::of, |_| decision)
    }
}

impl Decision {
    fn of(byte: u8) -> Self {
        [Self::Pending, Self::Success, Self::Failure][usize::from(byte)]
    }
}

// SAFETY: a record is plain memory without a bond to a thread, and dropping it follows none of its addresses.
unsafe impl Send for Swing {}
// SAFETY: likewise.
unsafe impl Send for Relocation {}
// SAFETY: what is shared of it is read-only or atomic.
unsafe impl Sync for Relocation {}
