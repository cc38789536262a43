//! Nodes of the tree, and their locks.
//!
//! Here is where pointers are followed. A [`Ref`] is made only of the holder, or of a link that was read from a node that
//! was obtained so under the same guard; that is the fact (L) on which the comments below rest.

use std::{
    marker::PhantomData,
    ops::Deref,
    ptr::{self, NonNull},
};

use crate::sync::atomic::{
    AtomicPtr, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::{
    reclaim::Guard,
    structures::{patience::Patience, pick::pick, unpublished::Unpublished},
};

/// A thread holds the node.
const LOCKED: u64 = 1;
/// The node has left the tree, or is about to under the locks of those who let it go.
const MARKED: u64 = 2;
/// One more link of the node has become null.
const ONE_TAG: u64 = 4;

/// A key, and what is under it: smaller keys on side 0.
#[repr(C)]
pub(super) struct Node {
    pub(super) key: u64,
    links: [AtomicPtr<Node>; 2],
    word: AtomicU64,
    /// Never changes.
    value: u64,
}

/// The mark and the tag of a node at one moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Version(u64);

/// A node that was linked at some moment since the guard that lives for `'g` was obtained.
pub(super) struct Ref<'g> {
    pointer: NonNull<Node>,
    guard: PhantomData<&'g Node>,
}

/// What a link leads to.
pub(super) type Link<'g> = Option<Ref<'g>>;

impl Node {
    /// Makes the node above the topmost: every key belongs on its side 1.
    pub(super) fn holder() -> Self {
        Self::leaf(0, 0)
    }

    /// Makes a node without children.
    pub(super) fn leaf(key: u64, value: u64) -> Self {
        let null = || AtomicPtr::new(ptr::null_mut());
        Self { key, links: [null(), null()], word: AtomicU64::new(0), value }
    }

    /// Makes a node of the key of one and the children of another, locked.
    pub(super) fn of(successor: Ref<'_>, children: [Ref<'_>; 2]) -> Self {
        let links = children.map(|child| AtomicPtr::new(child.as_ptr()));
        Self { key: successor.key, links, word: AtomicU64::new(LOCKED), value: successor.value }
    }

    /// Returns the side of `key`, which is not the node's own key (or the node is the holder).
    ///
    /// An index rather than a branch: half of these branches would be mispredicted.
    #[inline]
    pub(super) fn side(&self, key: u64) -> usize {
        usize::from(key >= self.key)
    }

    /// Reads mark and tag.
    #[inline]
    pub(super) fn version(&self) -> Version {
        // Relaxed: what decides is the comparison with the version under the lock. That a version read inside a read
        // section is none from after the grace period is the barrier in `Reader::synchronize`.
        Version(self.word.load(Relaxed) & !LOCKED)
    }

    pub(super) fn is_locked(&self) -> bool {
        self.word.load(Relaxed) & LOCKED != 0
    }
}

impl Version {
    pub(super) fn is_marked(self) -> bool {
        self.0 & MARKED != 0
    }
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
    /// `pointer` was read with Acquire from a link of the holder or of a `Ref<'g>`. (Links then lead to nodes whose fields
    /// were written before they were published, and which were linked at some moment since the guard of 'g was obtained:
    /// see *Reclamation* in [`super`].)
    #[inline]
    unsafe fn of(pointer: *mut Node) -> Link<'g> {
        Some(Self { pointer: NonNull::new(pointer)?, guard: PhantomData })
    }

    /// Returns the address, to link or to retire the node. Not to be called on the holder.
    pub(super) fn as_ptr(self) -> *mut Node {
        self.pointer.as_ptr()
    }

    /// Loads the child on the side of `key`, which is not the node's own key (or the node is the holder); see [`pick`].
    #[inline]
    pub(super) fn next(self, key: u64, guard: &'g impl Guard) -> Link<'g> {
        let pointer = pick(key >= self.key, self.links.each_ref().map(|link| guard.load(link)));
        // SAFETY: as in `child`.
        unsafe { Self::of(pointer) }
    }

    /// Loads the child on that side.
    #[inline]
    pub(super) fn child(self, side: usize, guard: &'g impl Guard) -> Link<'g> {
        let pointer = guard.load(&self.links[side]);
        // SAFETY: read from a link of a `Ref<'g>`, with Acquire; pairs with the Release in `Locked::set_child`.
        unsafe { Self::of(pointer) }
    }

    /// Waits for the lock of the node.
    #[inline]
    pub(super) fn lock(self) -> Locked<'g> {
        let mut patience = Patience::new();
        loop {
            let word = self.word.load(Relaxed);
            let is_free = word & LOCKED == 0;
            // Acquire: the holder before is done with the node; pairs with the Release in `Locked::store`.
            if is_free && self.word.compare_exchange_weak(word, word | LOCKED, Acquire, Relaxed).is_ok() {
                return Locked { node: self };
            }
            patience.wait();
        }
    }
}

/// A node that the calling thread holds until this is dropped. Only the holder writes to the node.
pub(super) struct Locked<'g> {
    node: Ref<'g>,
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        self.store(self.word() & !LOCKED);
    }
}

impl<'g> Locked<'g> {
    pub(super) fn node(&self) -> Ref<'g> {
        self.node
    }

    fn word(&self) -> u64 {
        // Relaxed: nobody else writes it.
        self.node.word.load(Relaxed)
    }

    /// Stores the word with Release: the next to hold the lock sees what this thread changed; pairs with the Acquire in
    /// [`Ref::lock`].
    fn store(&self, word: u64) {
        self.node.word.store(word, Release);
    }

    /// Marks the node: it is no longer to be changed by those who come to hold it.
    pub(super) fn mark(&self) {
        self.store(self.word() | MARKED);
    }

    /// Changes a link, and tags the node if the link becomes null.
    ///
    /// An exchange rather than a store, because this is where updates take effect, and [`crate::reclaim::Local`] counts on
    /// updates being read-modify-writes. Release: publishes the child; pairs with the Acquire in [`Ref::child`].
    pub(super) fn set_child(&self, side: usize, child: *mut Node) {
        if child.is_null() {
            self.store(self.word().wrapping_add(ONE_TAG));
        }
        self.node.links[side].swap(child, Release);
    }

    /// Puts a node that was made locked ([`Node::of`]) under a link, and returns it.
    pub(super) fn set_locked_child(&self, side: usize, child: Unpublished<Node>) -> Locked<'g> {
        let pointer = child.as_ptr();
        self.set_child(side, pointer);
        child.publish();
        // SAFETY: what the link of a `Ref<'g>` leads to: it was written just now, and cannot have changed since, under
        // this thread's lock.
        let node = unsafe { Ref::of(pointer) };
        Locked { node: node.expect("the node was allocated") }
    }
}
