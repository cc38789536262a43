//! Internal nodes, and what their edges hold.
//!
//! Here is where pointers are followed. A [`Link`] is loaded only from an edge of the entry, or of a node that was
//! obtained from a link under the same guard; that is the fact (L) on which the comments below rest.

use std::{marker::PhantomData, mem, ops::Range};

use super::{leaf::Leaf, wait::Wait};
use crate::sync::atomic::{
    AtomicPtr, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::{
    nodes,
    reclaim::Guard,
    structures::fan::{self, Fan, MAX_SIZE},
};

/// The edge leads to a leaf.
const LEAF: usize = 1;

const LOCKED: u32 = 1;
const MARKED: u32 = 2;

/// A node that routes. All but its state and its edges is written before it is published, and never again.
#[repr(C, align(64))]
pub(super) struct Internal {
    state: AtomicU32,
    is_tagged: bool,
    n_children: u8,
    /// Child `i` has the keys below `keys[i]` that child `i - 1` has not. Filled up with the largest key.
    keys: [u64; MAX_SIZE - 1],
    children: [Edge; MAX_SIZE],
}

/// An edge to a child.
pub(super) struct Edge(AtomicPtr<Internal>);

/// An address, and in its low bit whether it is a leaf's. It cannot be followed: nothing says that the node still exists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(*mut Internal);

/// What an edge held when it was loaded under a guard that lives for `'g`: it can be followed so long.
#[derive(Clone, Copy)]
pub(super) struct Link<'g> {
    pub(super) word: Word,
    guard: PhantomData<&'g ()>,
}

/// A node that a link leads to.
#[derive(Clone, Copy)]
pub(super) enum Node<'g> {
    Leaf(&'g Leaf),
    Internal(&'g Internal),
}

/// An internal node locked by this thread.
pub(super) struct InternalLock<'g>(&'g Internal);

impl Internal {
    /// Makes a node of one child and no key.
    pub(super) fn over(child: Word) -> Self {
        Self::of(&Fan::of_one(child), 0..1)
    }

    /// Makes a node of two children, tagged or not.
    pub(super) fn fork(left: Word, key: u64, right: Word, is_tagged: bool) -> Self {
        let mut fan = Fan::of_one(left);
        fan.split(0, key, right);
        Self { is_tagged, ..Self::of(&fan, 0..2) }
    }

    /// Makes an untagged node of these children, at least one and at most [`MAX_SIZE`].
    pub(super) fn of(fan: &Fan<Word>, sides: Range<usize>) -> Self {
        let mut keys = [u64::MAX; MAX_SIZE - 1];
        keys[..sides.len() - 1].copy_from_slice(fan.keys(sides.clone()));
        let child = |idx: usize| if idx < sides.len() { fan.child(sides.start + idx) } else { Word::NULL };
        Self {
            state: AtomicU32::new(0),
            is_tagged: false,
            n_children: sides.len() as u8,
            keys,
            children: std::array::from_fn(|idx| Edge(AtomicPtr::new(child(idx).0))),
        }
    }

    pub(super) fn is_tagged(&self) -> bool {
        self.is_tagged
    }

    pub(super) fn n_children(&self) -> usize {
        usize::from(self.n_children)
    }

    /// Returns the keys; there is one less than children.
    pub(super) fn keys(&self) -> &[u64] {
        &self.keys[..self.n_children() - 1]
    }

    /// Returns the position of the child to which `key` belongs.
    #[inline]
    pub(super) fn side(&self, key: u64) -> usize {
        fan::side(&self.keys, key)
    }

    /// Loads the link to a child.
    #[inline]
    pub(super) fn child<'g>(&'g self, side: usize, guard: &'g impl Guard) -> Link<'g> {
        // Acquire, by the guard: pairs with the Release in `InternalLock::set`.
        Link { word: Word(guard.load(&self.children[side].0)), guard: PhantomData }
    }

    /// Waits for the lock; `None` if the node is marked.
    pub(super) fn lock(&self) -> Option<InternalLock<'_>> {
        let mut wait = Wait::new();
        loop {
            // Acquire: the holder sees the edges as the last one left them; pairs with the Release of `InternalLock`.
            match self.state.compare_exchange(0, LOCKED, Acquire, Relaxed) {
                Ok(_) => return Some(InternalLock(self)),
                Err(state) if state & MARKED != 0 => return None,
                Err(_) => wait.pause(),
            }
        }
    }

    /// Tells whether the node is locked or marked.
    pub(super) fn is_disturbed(&self) -> bool {
        // Relaxed: asked by a thread that is alone.
        self.state.load(Relaxed) != 0
    }
}

impl InternalLock<'_> {
    /// Returns keys and children, which stay as they are while the lock is held.
    pub(super) fn fan(&self) -> Fan<Word> {
        // Relaxed: the lock was taken with Acquire, and nobody else writes.
        Fan::of(self.0.keys(), |side| Word(self.0.children[side].0.load(Relaxed)))
    }

    pub(super) fn n_children(&self) -> usize {
        self.0.n_children()
    }

    /// Tells whether a child is the one that `link` led to.
    pub(super) fn leads_to(&self, side: usize, link: Link<'_>) -> bool {
        // Relaxed: as in `fan`.
        self.0.children[side].0.load(Relaxed) == link.word.0
    }

    /// Puts another node in the place of a child.
    pub(super) fn set(&self, side: usize, child: Word) {
        // Release: publishes the new nodes; pairs with the Acquire in `Internal::child`.
        self.0.children[side].0.store(child.0, Release);
    }

    /// Marks the node, which this thread has unlinked, and unlocks it.
    pub(super) fn mark(self) {
        // Release: as in `drop`; who finds the mark sees that no edge leads here any more.
        self.0.state.store(MARKED, Release);
        mem::forget(self);
    }
}

impl Drop for InternalLock<'_> {
    fn drop(&mut self) {
        // Release: the next holder sees the edges; pairs with the Acquire in `Internal::lock`.
        self.0.state.store(0, Release);
    }
}

impl Word {
    const NULL: Self = Self(std::ptr::null_mut());

    /// Allocates a leaf.
    pub(super) fn of_leaf(leaf: Leaf) -> Self {
        Self(nodes::allocate(leaf).cast::<Internal>().map_addr(|address| address | LEAF))
    }

    /// Allocates an internal node.
    pub(super) fn of_internal(internal: Internal) -> Self {
        Self(nodes::allocate(internal))
    }

    fn is_leaf(self) -> bool {
        self.0.addr() & LEAF != 0
    }

    /// Returns the address of the leaf.
    fn leaf(self) -> *mut Leaf {
        self.0.map_addr(|address| address & !LEAF).cast()
    }

    /// Hands the node to `guard`.
    ///
    /// # Safety
    /// The node was unlinked by the calling thread (I5), which calls this once for it.
    pub(super) unsafe fn retire(self, guard: &impl Guard) {
        if self.is_leaf() {
            // SAFETY: nodes are allocated in `of_leaf` and `of_internal`; the rest is the caller's promise, and
            // that edges of unlinked nodes never change is I4.
            unsafe { guard.retire(self.leaf()) };
        } else {
            // SAFETY: likewise.
            unsafe { guard.retire(self.0) };
        }
    }
}

impl<'g> Link<'g> {
    /// Returns the node.
    #[inline]
    pub(super) fn node(self) -> Node<'g> {
        if self.word.is_leaf() {
            // SAFETY: an edge with LEAF leads to a leaf, whose fields were written before it was published. By (L) and
            // the argument at `OccAbtree22::seek`, the guard keeps it allocated for 'g.
            Node::Leaf(unsafe { &*self.word.leaf() })
        } else {
            // SAFETY: as above; an edge below `n_children` is never null (I1), and without LEAF leads to an internal
            // node.
            Node::Internal(unsafe { &*self.word.0 })
        }
    }
}
