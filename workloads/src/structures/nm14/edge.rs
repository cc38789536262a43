//! Nodes of the tree, and what their edges hold.
//!
//! Here is where pointers are followed. A [`Link`] is loaded only from the root edge, or from an edge of a node that was
//! obtained from a link under the same guard; that is the fact (L) on which the comments below rest.

use std::marker::PhantomData;

use crate::{
    reclaim::Guard,
    structures::pick::pick,
    sync::atomic::{AtomicPtr, Ordering::Release},
};

/// The node under the edge stays, its parent goes.
const TAG: usize = 1;
/// The leaf under the edge goes, with its parent.
const FLAG: usize = 2;
/// The edge leads to a leaf.
const LEAF: usize = 4;

/// An edge: a [`Word`] that threads compete for.
pub(super) struct Edge(AtomicPtr<Internal>);

/// A node that routes: keys below its own are on side 0.
#[repr(align(8))]
pub(super) struct Internal {
    pub(super) key: u64,
    edges: [Edge; 2],
}

/// A node that holds a key.
#[repr(align(8))]
pub(super) struct Leaf {
    pub(super) key: u64,
    #[expect(dead_code, reason = "stored so that leaves have the size of a dictionary's")]
    pub(super) value: u64,
}

/// An address and TAG, FLAG and LEAF in its low bits. It cannot be followed: nothing says that the node still exists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(*mut Internal);

/// What an edge held when it was loaded under a guard that lives for `'g`: it can be followed so long.
#[derive(Clone, Copy)]
pub(super) struct Link<'g> {
    pub(super) word: Word,
    guard: PhantomData<&'g ()>,
}

impl Edge {
    pub(super) fn new(word: Word) -> Self {
        Self(AtomicPtr::new(word.0))
    }

    /// Loads the edge with Acquire: pairs with the Release of [`Self::swing`].
    #[inline]
    pub(super) fn load<'g>(&'g self, guard: &'g impl Guard) -> Link<'g> {
        Link { word: Word(guard.load(&self.0)), guard: PhantomData }
    }

    /// Changes `old` to `new`, or returns what the edge holds instead.
    ///
    /// Release: publishes the node under `new` and what this thread saw of its edges; pairs with the Acquire in
    /// [`Self::load`]. A failure reads Relaxed: what it returns is compared and never followed.
    pub(super) fn swing(&self, old: Word, new: Word) -> Result<(), Word> {
        use crate::sync::atomic::Ordering::Relaxed;
        self.0.compare_exchange(old.0, new.0, Release, Relaxed).map(drop).map_err(Word)
    }

    /// Tags the edge.
    ///
    /// Release: a thread that sees the tag sees the flag beside it that this thread saw before (I3 as others see it);
    /// pairs with the Acquire in [`Self::load`].
    pub(super) fn tag(&self) {
        self.0.fetch_or(TAG, Release);
    }
}

impl Internal {
    /// Makes the parent of two leaves of unlike keys.
    pub(super) fn fork(one: (u64, Word), other: (u64, Word)) -> Self {
        let (low, high) = if one.0 < other.0 { (one, other) } else { (other, one) };
        Self { key: high.0, edges: [Edge::new(low.1), Edge::new(high.1)] }
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

const _: () = assert!(align_of::<Internal>() > (TAG | FLAG | LEAF) && align_of::<Leaf>() > (TAG | FLAG | LEAF));

impl Word {
    /// No node. It counts as a leaf, so that traversals test one bit.
    pub(super) const EMPTY: Self = Self(std::ptr::without_provenance_mut(LEAF));

    pub(super) fn to_leaf(leaf: *mut Leaf) -> Self {
        Self(leaf.cast()).with(LEAF)
    }

    pub(super) fn to_internal(internal: *mut Internal) -> Self {
        Self(internal)
    }

    fn has(self, bit: usize) -> bool {
        self.0.addr() & bit != 0
    }

    fn with(self, bits: usize) -> Self {
        Self(self.0.map_addr(|address| address | bits))
    }

    fn without(self, bits: usize) -> Self {
        Self(self.0.map_addr(|address| address & !bits))
    }

    pub(super) fn is_tagged(self) -> bool {
        self.has(TAG)
    }

    pub(super) fn is_flagged(self) -> bool {
        self.has(FLAG)
    }

    /// The same without tag and flag.
    pub(super) fn clean(self) -> Self {
        self.without(TAG | FLAG)
    }

    /// The same without the tag.
    pub(super) fn untagged(self) -> Self {
        self.without(TAG)
    }

    /// The same with the flag and without the tag.
    pub(super) fn flagged(self) -> Self {
        self.without(TAG).with(FLAG)
    }

    /// Returns the address of the internal node, or the leaf in its place; null for EMPTY.
    fn address(self) -> *mut Internal {
        self.without(TAG | FLAG | LEAF).0
    }

    /// Returns the address of the internal node that this leads to.
    ///
    /// A flag leads to a leaf (I3), and tags are rare: the address is the word itself, so that a traversal need not wait
    /// for bits to be cleared at every step.
    #[inline]
    fn internal_address(self) -> *mut Internal {
        if self.has(TAG) { self.tagged_address() } else { self.0 }
    }

    /// Apart, so that it is a branch: computed beside the other it would be waited for.
    #[cold]
    #[inline(never)]
    fn tagged_address(self) -> *mut Internal {
        self.without(TAG).0
    }

    /// Hands the node to `guard`.
    ///
    /// # Safety
    /// This is not EMPTY; the node was unlinked by the calling thread (I6), which calls this once for it.
    pub(super) unsafe fn retire(self, guard: &impl Guard) {
        if self.has(LEAF) {
            // SAFETY: nodes come from `Unpublished`, which allocates them; the rest is the caller's promise, and that links
            // of unlinked nodes are frozen is I6.
            unsafe { guard.retire(self.address().cast::<Leaf>()) };
        } else {
            // SAFETY: likewise.
            unsafe { guard.retire(self.address()) };
        }
    }
}

impl<'g> Link<'g> {
    /// Returns the internal node; `None` if this leads to a leaf or is EMPTY.
    #[inline]
    pub(super) fn internal(self) -> Option<&'g Internal> {
        if self.word.has(LEAF) {
            return None;
        }
        // SAFETY: an edge without LEAF leads to an internal node (I1: only the root edge is ever EMPTY, and that has
        // LEAF), whose fields were written before it was published. By (L) and the argument at `Nm14::seek`, the guard
        // keeps it allocated for 'g.
        Some(unsafe { &*self.word.internal_address() })
    }

    /// Returns the leaf; `None` if this leads to an internal node or is EMPTY.
    #[inline]
    pub(super) fn leaf(self) -> Option<&'g Leaf> {
        if !self.word.has(LEAF) {
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

// SAFETY: both nodes are plain memory without a bond to a thread; `Edge` is an atomic.
unsafe impl Send for Internal {}
