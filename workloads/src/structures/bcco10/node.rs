//! Nodes of the tree, their one-word state, and their locks.
//!
//! Here is where pointers are followed. A [`Ref`] is made only of the holder, or of a link or parent link that was read
//! from a node that was obtained so under the same guard; that is the fact (L) on which the comments below rest.

use std::{
    marker::PhantomData,
    ops::Deref,
    ptr::{self, NonNull},
};

use crate::{
    reclaim::Guard,
    structures::{patience::Patience, pick::pick},
    sync::atomic::{
        AtomicPtr, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
};

/// A thread holds the node.
const LOCKED: u64 = 1;
/// The key is in the set; without it, the node only routes.
const PRESENT: u64 = 2;
/// The range of keys under the node is becoming smaller.
const SHRINKING: u64 = 4;
/// The node has left the tree.
const UNLINKED: u64 = 8;
const HEIGHT_SHIFT: u32 = 4;
/// A balanced tree stays below 100, and each thread that has yet to repair something adds one. Larger heights would
/// saturate, which costs balance and nothing else.
const MAX_HEIGHT: u64 = 0xffff;
/// One more shrinking. 44 bits: it cannot wrap while a thread takes one step.
const ONE_SHRINKING: u64 = 1 << 20;
/// What a traversal compares: whether and how often the node has shrunk, and whether it is still linked.
const VERSION: u64 = !(LOCKED | PRESENT | MAX_HEIGHT << HEIGHT_SHIFT);

/// A key, and what is under it: smaller keys on side 0. 48 bytes; what a traversal reads comes first.
#[repr(C)]
pub(super) struct Node {
    pub(super) key: u64,
    word: AtomicU64,
    links: [AtomicPtr<Node>; 2],
    /// Null if the parent is the holder.
    parent: AtomicPtr<Node>,
    value: AtomicU64,
}

/// The state of a node at one moment.
#[derive(Clone, Copy)]
pub(super) struct Word(u64);

/// The part of a [`Word`] that changes when keys may have left the range under the node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Version(u64);

/// A node that was in the tree at some moment since the guard that lives for `'g` was obtained.
pub(super) struct Ref<'g> {
    pointer: NonNull<Node>,
    guard: PhantomData<&'g Node>,
}

/// What a link leads to.
pub(super) type Link<'g> = Option<Ref<'g>>;

impl Node {
    /// Makes the node above the topmost: every key belongs on its side 1, and it never shrinks.
    pub(super) fn holder() -> Self {
        Self::new(0, 0, 0)
    }

    /// Makes a node without children.
    pub(super) fn leaf(key: u64, value: u64) -> Self {
        Self::new(key, value, PRESENT | 1 << HEIGHT_SHIFT)
    }

    fn new(key: u64, value: u64, word: u64) -> Self {
        let null = || AtomicPtr::new(ptr::null_mut());
        Self { key, word: AtomicU64::new(word), links: [null(), null()], parent: null(), value: AtomicU64::new(value) }
    }

    /// Returns the side of `key`, which is not the node's own key (or the node is the holder).
    #[inline]
    pub(super) fn side(&self, key: u64) -> usize {
        usize::from(key >= self.key)
    }

    /// Reads the state.
    ///
    /// Acquire: whoever sees a version sees the links that were changed before it, so that it does not take a link from
    /// before a shrinking for one from after; pairs with the Release stores of [`Locked`].
    #[inline]
    pub(super) fn word(&self) -> Word {
        Word(self.word.load(Acquire))
    }

    /// Waits until the range under the node is not becoming smaller.
    pub(super) fn wait_while_shrinking(&self) {
        let mut patience = Patience::new();
        while self.word().0 & SHRINKING != 0 {
            patience.wait();
        }
    }

    /// Sets the parent of a node that is not published yet.
    pub(super) fn prepare(&self, parent: *mut Node) {
        // Relaxed: the Release that publishes the node comes after.
        self.parent.store(parent, Relaxed);
    }
}

impl Word {
    #[inline]
    pub(super) fn version(self) -> Version {
        Version(self.0 & VERSION)
    }

    #[inline]
    pub(super) fn is_present(self) -> bool {
        self.0 & PRESENT != 0
    }

    #[inline]
    pub(super) fn is_unlinked(self) -> bool {
        self.0 & UNLINKED != 0
    }

    /// Tells whether a traversal may not enter the node now.
    #[inline]
    pub(super) fn is_closed(self) -> bool {
        self.0 & (SHRINKING | UNLINKED) != 0
    }

    /// Tells whether an operation is at work on the node.
    pub(super) fn is_locked(self) -> bool {
        self.0 & (LOCKED | SHRINKING) != 0
    }

    pub(super) fn height(self) -> u64 {
        self.0 >> HEIGHT_SHIFT & MAX_HEIGHT
    }

    fn with_height(self, height: u64) -> Self {
        Self(self.0 & !(MAX_HEIGHT << HEIGHT_SHIFT) | height.min(MAX_HEIGHT) << HEIGHT_SHIFT)
    }
}

impl Version {
    /// Of the holder, always.
    pub(super) const FIRST: Self = Self(0);
}

impl Clone for Ref<'_> {
    fn clone(&self) -> Self {
        *self
    }
}

impl Copy for Ref<'_> {}

impl PartialEq for Ref<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.pointer == other.pointer
    }
}

impl Deref for Ref<'_> {
    type Target = Node;

    #[inline]
    fn deref(&self) -> &Node {
        // SAFETY: a `Ref` is made only by `Ref::holder`, of a node that is borrowed for 'g, and by `Ref::of`, whose
        // callers promise that the guard keeps the node allocated for 'g.
        unsafe { self.pointer.as_ref() }
    }
}

impl<'g> Ref<'g> {
    /// Refers to the holder.
    pub(super) fn holder(holder: &'g Node) -> Self {
        Self { pointer: NonNull::from(holder), guard: PhantomData }
    }

    /// Refers to the node that a link leads to; `None` if it is null.
    ///
    /// # Safety
    /// `pointer` was read from a link or parent link of the holder or of a `Ref<'g>`. (Links then lead to nodes whose
    /// fields were written before they were published, and which were in the tree at some moment since the guard of 'g
    /// was obtained: see *Reclamation* in [`super`].)
    #[inline]
    unsafe fn of(pointer: *mut Node) -> Link<'g> {
        Some(Self { pointer: NonNull::new(pointer)?, guard: PhantomData })
    }

    /// Returns the address, to link or to retire the node. Not to be called on the holder.
    pub(super) fn as_ptr(self) -> *mut Node {
        self.pointer.as_ptr()
    }

    /// Loads the link for `key`, which is not the node's own key (or the node is the holder); see [`pick`].
    #[inline]
    pub(super) fn next(self, key: u64, guard: &'g impl Guard) -> Link<'g> {
        let pointer = pick(key >= self.key, self.links.each_ref().map(|link| guard.load(link)));
        // SAFETY: read from a link of a `Ref<'g>`; whoever stores into a link does so with Release.
        unsafe { Self::of(pointer) }
    }

    /// Returns the child on that side, by a load that is not meant for traversals.
    pub(super) fn child(self, side: usize) -> Link<'g> {
        // Acquire: pairs with the Release in `Locked::set_child`.
        let pointer = self.links[side].load(Acquire);
        // SAFETY: read from a link of a `Ref<'g>`.
        unsafe { Self::of(pointer) }
    }

    /// Returns the parent at this moment; `None` if that is the holder.
    pub(super) fn parent(self, guard: &'g impl Guard) -> Link<'g> {
        let pointer = guard.load(&self.parent);
        // SAFETY: read from the parent link of a `Ref<'g>`; whoever stores into one does so with Release.
        unsafe { Self::of(pointer) }
    }

    /// Tells whether `parent` leads to the parent. Stable while that is locked (I2).
    pub(super) fn has_parent(self, parent: *mut Node) -> bool {
        // Relaxed: the pointer is compared and not followed; the lock orders it.
        self.parent.load(Relaxed) == parent
    }

    /// Sets the parent link. The caller holds the locks that I2 asks for.
    pub(super) fn set_parent(self, parent: *mut Node) {
        // Release: pairs with the Acquire in `parent`, so that whoever follows the link sees the parent's key.
        self.parent.store(parent, Release);
    }

    /// Waits for the lock of the node.
    #[inline]
    pub(super) fn lock(self) -> Locked<'g> {
        let mut patience = Patience::new();
        loop {
            let word = self.word.load(Relaxed);
            let is_free = word & LOCKED == 0;
            // Acquire: the holder before is done with the node; pairs with the Release in `Locked::drop`.
            if is_free && self.word.compare_exchange_weak(word, word | LOCKED, Acquire, Relaxed).is_ok() {
                return Locked { node: self };
            }
            patience.wait();
        }
    }
}

/// A node that the calling thread holds until this is dropped. Only the holder writes the word, so it needs no
/// read-modify-write for it.
pub(super) struct Locked<'g> {
    node: Ref<'g>,
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        self.store(self.word().0 & !LOCKED);
    }
}

impl<'g> Locked<'g> {
    pub(super) fn node(&self) -> Ref<'g> {
        self.node
    }

    #[inline]
    pub(super) fn word(&self) -> Word {
        // Relaxed: nobody else writes it.
        Word(self.node.word.load(Relaxed))
    }

    #[inline]
    pub(super) fn child(&self, side: usize) -> Link<'g> {
        self.node.child(side)
    }

    /// Stores the word with Release: whoever sees it sees what this thread changed before (links above all); pairs with
    /// the Acquire in [`Node::word`] and [`Ref::lock`].
    #[inline]
    fn store(&self, word: u64) {
        self.node.word.store(word, Release);
    }

    /// Sets a link with Release: publishes the child; and whoever sees the link sees that the node had begun to shrink.
    /// Pairs with the Acquire of [`Ref::load`] and [`Ref::child`].
    pub(super) fn set_child(&self, side: usize, child: *mut Node) {
        self.node.links[side].store(child, Release);
    }

    /// Links a new node in the place of nothing.
    ///
    /// An exchange rather than a store, because this is where an insertion takes effect, and [`crate::reclaim::Local`]
    /// counts on updates being read-modify-writes. Release as in [`Self::set_child`].
    pub(super) fn link_new(&self, side: usize, child: *mut Node) {
        self.node.links[side].swap(child, Release);
    }

    /// Makes the key present or absent, where an update takes effect: an exchange, as in [`Self::link_new`].
    pub(super) fn set_present(&self, is_present: bool) {
        let word = self.word().0 & !PRESENT;
        self.node.word.swap(if is_present { word | PRESENT } else { word }, Release);
    }

    /// Makes the key of a routing node present, with that value.
    pub(super) fn revive(&self, value: u64) {
        // Relaxed: the Release of the presence comes after.
        self.node.value.store(value, Relaxed);
        self.set_present(true);
    }

    pub(super) fn set_height(&self, height: u64) {
        self.store(self.word().with_height(height).0);
    }

    /// To be called before a link changes such that keys leave the range under this node.
    pub(super) fn begin_to_shrink(&self) {
        self.store(self.word().0 | SHRINKING);
    }

    /// Ends what [`Self::begin_to_shrink`] began, and sets the height.
    pub(super) fn end_to_shrink(&self, height: u64) {
        let word = self.word().with_height(height).0;
        self.store((word & !SHRINKING).wrapping_add(ONE_SHRINKING));
    }

    /// To be called after the last link to the node has gone, once. It is an exchange, as in [`Self::link_new`].
    pub(super) fn set_unlinked(&self) {
        self.node.word.swap(self.word().0 & !PRESENT | UNLINKED, Release);
    }
}
