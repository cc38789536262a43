//! Nodes of the tree, and what their edges hold.
//!
//! Here is where pointers are followed. A [`Link`] is loaded only from the root, or from an edge of a node that was
//! obtained from a link under the same guard; that is the fact (L) on which the comments below rest.

use std::{marker::PhantomData, ptr};

use super::locks::Locks;
use crate::{
    reclaim::Guard,
    structures::pick::pick,
    sync::atomic::{
        AtomicPtr,
        Ordering::{Relaxed, Release},
    },
};

/// The edge leads to a leaf.
const LEAF: usize = 1;

/// An edge. Only the holder of its lock writes it; anybody reads it.
pub(super) struct Edge(AtomicPtr<Internal>);

/// A node that routes: keys below its own are on side 0.
pub(super) struct Internal {
    pub(super) key: u64,
    /// One for each edge.
    pub(super) locks: Locks,
    edges: [Edge; 2],
}

/// A node that holds a key.
#[repr(align(8))]
pub(super) struct Leaf {
    pub(super) key: u64,
    #[expect(dead_code, reason = "stored so that leaves have the size of a dictionary's")]
    pub(super) value: u64,
}

/// An address with LEAF in its low bit. It cannot be followed: nothing says that the node still exists.
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

    /// Loads the edge with Acquire: pairs with the Release of [`Self::set`].
    #[inline]
    pub(super) fn load<'g>(&'g self, guard: &'g impl Guard) -> Link<'g> {
        Link { word: Word(guard.load(&self.0)), guard: PhantomData }
    }

    /// Reads the edge while this thread holds its lock.
    ///
    /// Relaxed: whoever wrote it held the lock before, and taking the lock ordered that before this.
    pub(super) fn read_locked(&self) -> Word {
        Word(self.0.load(Relaxed))
    }

    /// Changes the edge while this thread holds its lock.
    ///
    /// Release: publishes the node under `new`; pairs with the Acquire in [`Self::load`].
    pub(super) fn set(&self, new: Word) {
        self.0.store(new.0, Release);
    }
}

impl Internal {
    /// Makes the parent of two leaves of unlike keys.
    pub(super) fn fork(one: (u64, Word), other: (u64, Word)) -> Self {
        let (low, high) = if one.0 < other.0 { (one, other) } else { (other, one) };
        Self { key: high.0, locks: Locks::new(), edges: [Edge::new(low.1), Edge::new(high.1)] }
    }

    /// Makes the root of an empty tree, which never routes: the tree hangs on its side 0.
    pub(super) fn root() -> Self {
        Self { key: 0, locks: Locks::new(), edges: [Edge::new(Word::EMPTY), Edge::new(Word::EMPTY)] }
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

const _: () = assert!(align_of::<Internal>() > LEAF && align_of::<Leaf>() > LEAF);

impl Word {
    /// No node. It counts as a leaf, so that traversals test one bit.
    pub(super) const EMPTY: Self = Self(ptr::without_provenance_mut(LEAF));

    pub(super) fn to_leaf(leaf: *mut Leaf) -> Self {
        Self(leaf.cast::<Internal>().map_addr(|address| address | LEAF))
    }

    pub(super) fn to_internal(internal: *mut Internal) -> Self {
        Self(internal)
    }

    fn is_leaf(self) -> bool {
        self.0.addr() & LEAF != 0
    }

    /// Returns the address of the internal node, or the leaf in its place; null for EMPTY.
    fn address(self) -> *mut Internal {
        self.0.map_addr(|address| address & !LEAF)
    }

    /// Hands the node to `guard`.
    ///
    /// # Safety
    /// This is not EMPTY; the node was unlinked by the calling thread (I4), which calls this once for it.
    pub(super) unsafe fn retire(self, guard: &impl Guard) {
        if self.is_leaf() {
            // SAFETY: nodes come from `Unpublished`, which allocates them; the rest is the caller's promise.
            unsafe { guard.retire(self.address().cast::<Leaf>()) };
        } else {
            // SAFETY: likewise; that the edges of an unlinked node never change is I3.
            unsafe { guard.retire(self.address()) };
        }
    }
}

impl<'g> Link<'g> {
    /// Returns the internal node; `None` if this leads to a leaf or is EMPTY.
    #[inline]
    pub(super) fn internal(self) -> Option<&'g Internal> {
        if self.word.is_leaf() {
            return None;
        }
        // SAFETY: an edge without LEAF leads to an internal node (I1: only the root's edges are ever EMPTY, and EMPTY
        // has LEAF), whose fields were written before it was published. By (L) and the argument at `Dgt15::seek`, the
        // guard keeps it allocated for 'g.
        Some(unsafe { &*self.word.address() })
    }

    /// Returns the leaf; `None` if this leads to an internal node or is EMPTY.
    #[inline]
    pub(super) fn leaf(self) -> Option<&'g Leaf> {
        if !self.word.is_leaf() {
            return None;
        }
        // SAFETY: as in `internal`; an edge with LEAF leads to a leaf, or is EMPTY and its address null.
        unsafe { self.word.address().cast::<Leaf>().as_ref() }
    }

    /// Tells whether this leads to a leaf with that key.
    #[inline]
    pub(super) fn holds(self, key: u64) -> bool {
        self.leaf().is_some_and(|leaf| leaf.key == key)
    }
}

// SAFETY: both nodes are plain memory without a bond to a thread; `Edge` and `Locks` are atomics.
unsafe impl Send for Internal {}
