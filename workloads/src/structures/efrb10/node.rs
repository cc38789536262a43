//! Nodes of the tree, and what their edges hold.
//!
//! Here is where edges are followed. A [`Link`] is loaded only from the anchor, or from an edge of a node that was
//! obtained from a link, or from a record, under the same guard; that is the fact (L) on which the comments below rest.

use std::{marker::PhantomData, ptr};

use super::update::Update;
use crate::{
    reclaim::Guard,
    structures::pick::pick,
    sync::atomic::{
        AtomicPtr,
        Ordering::{Relaxed, Release},
    },
};

/// The edge leads to a leaf, or to nothing.
const LEAF: usize = 1;
/// The edge leads to nothing: in place of an address is the version of the anchor at which it became so.
const EMPTY: usize = 2;

/// An edge: a [`Word`] that is changed under the flag of the node that it belongs to.
pub(super) struct Edge(AtomicPtr<Internal>);

/// A node that routes: keys below its own are on side 0.
#[repr(align(8))]
pub(super) struct Internal {
    pub(super) key: u64,
    /// Who may change the edges: the paper's update field.
    pub(super) update: Update,
    edges: [Edge; 2],
}

/// A node that holds a key.
#[derive(Clone, Copy)]
#[repr(align(8))]
pub(super) struct Leaf {
    pub(super) key: u64,
    #[expect(dead_code, reason = "stored so that leaves have the size of a dictionary's")]
    pub(super) value: u64,
}

/// An address, and LEAF and EMPTY in its low bits. It cannot be followed: nothing says that the node still exists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(*mut Internal);

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

    /// Changes `old` to `new` unless another thread has (the paper's CAS-Child). Afterwards the edge does not hold `old`.
    ///
    /// Release: publishes the node under `new`; pairs with the Acquire in [`Self::load`]. A failure reads Relaxed: it
    /// tells only that the change was made.
    pub(super) fn swing(&self, old: Word, new: Word) {
        // Either outcome is the one wanted: `old` comes to an edge once (I4), so a failure means that it is gone.
        let _ = self.0.compare_exchange(old.0, new.0, Release, Relaxed);
    }
}

impl Internal {
    fn new(key: u64, edges: [Word; 2]) -> Self {
        Self { key, update: Update::new(), edges: edges.map(Edge::new) }
    }

    /// Makes the parent of the tree: the tree hangs on its side 0, and side 1 is never used.
    pub(super) fn anchor() -> Self {
        Self::new(0, [Word::empty(0); 2])
    }

    /// Makes the parent of two leaves of unlike keys.
    pub(super) fn fork(one: (u64, Word), other: (u64, Word)) -> Self {
        let (low, high) = if one.0 < other.0 { (one, other) } else { (other, one) };
        Self::new(high.0, [low.1, high.1])
    }

    /// Returns the side on which `key` belongs.
    ///
    /// An index rather than a branch: half of these branches would be mispredicted.
    #[inline]
    pub(super) fn side(&self, key: u64) -> usize {
        usize::from(key >= self.key)
    }

    /// Loads the edge on the side of `key`, see [`pick`].
    #[inline]
    pub(super) fn next<'g>(&'g self, key: u64, guard: &'g impl Guard) -> Link<'g> {
        pick(key >= self.key, self.edges.each_ref().map(|edge| edge.load(guard)))
    }

    /// Returns the edge on that side, 0 or 1.
    #[inline]
    pub(super) fn edge(&self, side: usize) -> &Edge {
        &self.edges[side]
    }
}

const _: () = assert!(align_of::<Internal>() > (LEAF | EMPTY) && align_of::<Leaf>() > (LEAF | EMPTY));

impl Word {
    /// No node, as from that version of the anchor on. It counts as a leaf, so that traversals test one bit.
    pub(super) fn empty(version: u64) -> Self {
        Self(ptr::without_provenance_mut((version as usize) << 2 | LEAF | EMPTY))
    }

    pub(super) fn to_leaf(leaf: *mut Leaf) -> Self {
        Self(leaf.cast::<Internal>().map_addr(|address| address | LEAF))
    }

    pub(super) fn to_internal(internal: *mut Internal) -> Self {
        Self(internal)
    }

    #[inline]
    fn has(self, bit: usize) -> bool {
        self.0.addr() & bit != 0
    }

    /// Returns the address of the leaf; `None` if this leads to no leaf.
    #[inline]
    fn leaf(self) -> Option<*mut Leaf> {
        let is_leaf = self.0.addr() & (LEAF | EMPTY) == LEAF;
        is_leaf.then(|| self.0.map_addr(|address| address & !LEAF).cast())
    }

    /// Returns the internal node that the word leads to.
    ///
    /// # Safety
    /// It leads to an internal node that the caller's guard keeps allocated for `'g`.
    pub(super) unsafe fn follow<'g>(self) -> &'g Internal {
        // SAFETY: by the caller's promise the word is the address of an internal node, without bits, that is allocated;
        // its fields were written before it was published, and are atomic or never change.
        unsafe { &*self.0 }
    }

    /// Hands the node, if there is one, to `guard`.
    ///
    /// # Safety
    /// The calling thread is the one that retires the node (I5), and calls this once for it.
    pub(super) unsafe fn retire(self, guard: &impl Guard) {
        if let Some(leaf) = self.leaf() {
            // SAFETY: nodes come from `Unpublished`, which allocates them; the rest is the caller's promise, and that edges
            // of unlinked nodes are frozen is I3.
            unsafe { guard.retire(leaf) };
        } else if !self.has(EMPTY) {
            // SAFETY: likewise.
            unsafe { guard.retire(self.0) };
        }
    }
}

impl<'g> Link<'g> {
    /// Returns the internal node; `None` if this leads to a leaf or to nothing.
    #[inline]
    pub(super) fn internal(self) -> Option<&'g Internal> {
        if self.word.has(LEAF) {
            return None;
        }
        // SAFETY: a word without LEAF is the address of an internal node; by (L) and the argument at `Efrb10::seek`, the
        // guard keeps it allocated for 'g.
        Some(unsafe { self.word.follow() })
    }

    /// Returns the leaf; `None` if this leads to an internal node or to nothing.
    #[inline]
    pub(super) fn leaf(self) -> Option<&'g Leaf> {
        // SAFETY: a word with LEAF and without EMPTY leads to a leaf, whose fields were written before it was published
        // and never change; by (L) and the argument at `Efrb10::seek`, the guard keeps it allocated for 'g.
        self.word.leaf().map(|leaf| unsafe { &*leaf })
    }

    /// Tells whether this leads to a leaf with that key.
    #[inline]
    pub(super) fn holds(self, key: u64) -> bool {
        self.leaf().is_some_and(|leaf| leaf.key == key)
    }
}
