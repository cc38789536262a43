//! Nodes of the tree, and what their edges hold.
//!
//! Here is where edges are followed. A [`Link`] is loaded only from the anchor, or from an edge of a node that was
//! obtained from a link under the same guard; that is the fact (L) on which the comments below rest.

use std::{marker::PhantomData, ptr};

use super::operation::{Carrier, Relocation, Update};
use crate::{
    reclaim::Guard,
    structures::pick::pick,
    sync::atomic::{
        AtomicPtr, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
};

/// The edge leads to nothing: in place of an address is the version of its node at which it became so.
const EMPTY: usize = 1;

/// An edge: a [`Word`] that is changed under the flag of the node that it belongs to.
pub(super) struct Edge(AtomicPtr<Node>);

/// A node that holds a key: smaller ones are on side 0, larger ones on side 1.
#[repr(align(8))]
pub(super) struct Node {
    key: AtomicU64,
    /// What is pending here: the paper's op field.
    pub(super) update: Update,
    edges: [Edge; 2],
    /// The value that came with the node.
    value: u64,
    /// The relocation that brought the key and a value of its own, if the key is not the one that came with the node.
    carrier: AtomicPtr<Relocation>,
}

/// An address, or EMPTY and a version. It cannot be followed: nothing says that the node still exists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(*mut Node);

/// What an edge held when it was loaded under a guard that lives for `'g`: it can be followed so long.
#[derive(Clone, Copy)]
pub(super) struct Link<'g> {
    pub(super) word: Word,
    guard: PhantomData<&'g ()>,
}

impl Edge {
    fn new(word: Word) -> Self {
        Self(AtomicPtr::new(word.0))
    }

    /// Loads the edge with Acquire: pairs with the Release of [`Self::swing`].
    #[inline]
    pub(super) fn load<'g>(&'g self, guard: &'g impl Guard) -> Link<'g> {
        Link { word: Word(guard.load(&self.0)), guard: PhantomData }
    }

    /// Changes `old` to `new` unless another thread has. Afterwards the edge does not hold `old`.
    ///
    /// Release: publishes the node under `new`; pairs with the Acquire in [`Self::load`]. A failure reads Relaxed: it
    /// tells only that the change was made.
    pub(super) fn swing(&self, old: Word, new: Word) {
        // Either outcome is the one wanted: `old` comes to an edge once (I4), so a failure means that it is gone.
        let _ = self.0.compare_exchange(old.0, new.0, Release, Relaxed);
    }
}

impl Node {
    pub(super) fn new(key: u64, value: u64) -> Self {
        let edges = [Edge::new(Word::empty(0)), Edge::new(Word::empty(0))];
        let carrier = AtomicPtr::new(Carrier::NONE.0);
        Self { key: AtomicU64::new(key), update: Update::new(), edges, value, carrier }
    }

    /// Returns the key that the node holds now.
    #[inline]
    pub(super) fn key(&self) -> u64 {
        // Acquire: who sees a relocated key sees the flag under which it came, when it looks at the update word
        // afterwards; pairs with the Release in `receive`.
        self.key.load(Acquire)
    }

    /// Loads the edge on one side, see [`pick`].
    #[inline]
    pub(super) fn next<'g>(&'g self, is_right: bool, guard: &'g impl Guard) -> Link<'g> {
        pick(is_right, self.edges.each_ref().map(|edge| edge.load(guard)))
    }

    /// Returns the edge on that side, 0 or 1.
    #[inline]
    pub(super) fn edge(&self, side: usize) -> &Edge {
        &self.edges[side]
    }

    /// Loads what brought the key and its value.
    pub(super) fn carrier(&self, guard: &impl Guard) -> Carrier {
        Carrier(guard.load(&self.carrier))
    }

    /// Returns the value of the key.
    pub(super) fn value(&self, guard: &impl Guard) -> u64 {
        // SAFETY: a node holds its carrier (I5); this was loaded from a node that the guard protects, so the hold was
        // given up after the guard was obtained, or still is there.
        let carrier = unsafe { self.carrier(guard).follow() };
        carrier.map_or(self.value, |relocation| relocation.value)
    }

    /// Changes key and value as the relocation says, unless another thread has.
    pub(super) fn receive(&self, relocation: &Relocation, carrier: Carrier) {
        // Neither comes back once it is gone: the keys of a node increase (I2), and the old carrier keeps its address
        // while there are helpers (I5). So a late exchange fails.
        // Release: publishes the record; pairs with the Acquire in `carrier`. A failure reads Relaxed: it is not used.
        let _ = self.carrier.compare_exchange(relocation.old_carrier.0, carrier.0, Release, Relaxed);
        // Release: see `key`. A failure reads Relaxed: it is not used.
        let _ = self.key.compare_exchange(relocation.removed_key, relocation.moved_key, Release, Relaxed);
    }
}

const _: () = assert!(align_of::<Node>() > EMPTY);

impl Word {
    /// No node, as from that version of the edge's node on.
    pub(super) fn empty(version: u64) -> Self {
        Self(ptr::without_provenance_mut((version as usize) << 1 | EMPTY))
    }

    pub(super) fn to_node(node: *mut Node) -> Self {
        Self(node)
    }

    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.0.addr() & EMPTY != 0
    }

    /// Hands the node, if there is one, and its carrier to `guard`.
    ///
    /// # Safety
    /// The calling thread is the one that retires the node (I5), and calls this once for it.
    pub(super) unsafe fn retire(self, guard: &impl Guard) {
        if self.is_empty() {
            return;
        }
        // SAFETY: nobody else retires the node, so it is allocated.
        let carrier = unsafe { &*self.0 }.carrier(guard);
        // SAFETY: the carrier of an unlinked node stays (I3), and its hold ends with the node.
        unsafe { carrier.let_go(guard) };
        // SAFETY: nodes come from `Unpublished`, which allocates them; the rest is the caller's promise, and that edges of
        // unlinked nodes are frozen is I3.
        unsafe { guard.retire(self.0) };
    }
}

impl<'g> Link<'g> {
    /// Returns the node; `None` if this leads to nothing.
    #[inline]
    pub(super) fn node(self) -> Option<&'g Node> {
        if self.word.is_empty() {
            return None;
        }
        // SAFETY: a word that is not empty is the address of a node, whose fields were written before it was published;
        // by (L) and the argument at `Hj12::find`, the guard keeps it allocated for 'g.
        Some(unsafe { &*self.word.0 })
    }
}
