//! Links between nodes of a skip list.

use std::{
    fmt,
    marker::PhantomData,
    ptr::{self, NonNull},
};

use super::{Node, NodeRef};
use crate::{
    reclaim::{AnyGuard, Guard},
    sync::atomic::{
        AtomicPtr,
        Ordering::{Relaxed, Release, SeqCst},
    },
};

/// The node that holds the link is removed. Only lock-free lists use it.
const MARK: usize = 1;

/// The link of a node on one level.
pub(in super::super) struct Next<S>(AtomicPtr<Node<S>>);

/// What a link held when it was loaded under a guard that lives for `'g`: an address with MARK in its low bit.
pub(in super::super) struct Link<'g, S> {
    address: *mut Node<S>,
    guard: PhantomData<&'g Node<S>>,
}

impl<S> Next<S> {
    pub(super) const fn null() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Loads the link with Acquire: pairs with the Release of [`Self::exchange`] and [`Self::store`].
    #[inline]
    pub(in super::super) fn load<'g>(&self, guard: &'g impl Guard) -> Link<'g, S> {
        Link { address: guard.load(&self.0), guard: PhantomData }
    }

    /// Loads the link as [`Self::load`] does, and has a slot of the guard protect the node that it leads to.
    #[inline]
    pub(in super::super) fn protect<'g>(&self, guard: &'g impl AnyGuard, slot: usize) -> Link<'g, S> {
        Link { address: guard.protect(&self.0, slot), guard: PhantomData }
    }

    /// Loads the link as [`Self::load`] does, to be compared or exchanged: nothing is protected.
    #[inline]
    pub(in super::super) fn look<'g>(&self, guard: &'g impl AnyGuard) -> Link<'g, S> {
        Link { address: guard.look(&self.0), guard: PhantomData }
    }

    /// Tells whether the link still holds `link`. SeqCst, as protection by announcements needs it (see `reclaim::any`).
    #[inline]
    pub(in super::super) fn still_holds(&self, link: Link<'_, S>) -> bool {
        self.0.load(SeqCst) == link.address
    }

    /// Sets the link of a node that is not published yet.
    #[inline]
    pub(in super::super) fn prepare(&self, link: Link<'_, S>) {
        // Relaxed: the Release that publishes the node comes after.
        self.0.store(link.address, Relaxed);
    }

    /// Loads the link under the lock that its writers need, or when it has none any more: to be compared or copied.
    ///
    /// Relaxed: the lock, or what told that there are no writers, came with Acquire.
    #[inline]
    pub(in super::super) fn locked<'g>(&self) -> Link<'g, S> {
        Link { address: self.0.load(Relaxed), guard: PhantomData }
    }

    /// Sets the link; the caller holds the lock that its other writers need.
    ///
    /// Release: publishes the node that it leads to; pairs with the Acquire in [`Self::load`].
    #[inline]
    pub(in super::super) fn store(&self, link: Link<'_, S>) {
        self.0.store(link.address, Release);
    }

    /// Changes `old` to `new`; false if the link holds something else.
    ///
    /// Release: publishes the node under `new`; pairs with the Acquire in [`Self::load`]. Relaxed on failure: what was
    /// read is not used.
    #[inline]
    pub(in super::super) fn exchange(&self, old: Link<'_, S>, new: Link<'_, S>) -> bool {
        self.0.compare_exchange(old.address, new.address, Release, Relaxed).is_ok()
    }
}

impl<S> Clone for Link<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Link<'_, S> {}

impl<S> PartialEq for Link<'_, S> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl<S> fmt::Debug for Link<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl<'g, S> Link<'g, S> {
    /// The end of a level.
    pub(in super::super) const NULL: Self = Self { address: ptr::null_mut(), guard: PhantomData };

    #[inline]
    pub(in super::super) fn to(node: NodeRef<'g, S>) -> Self {
        Self { address: node.node.as_ptr(), guard: PhantomData }
    }

    #[inline]
    pub(in super::super) fn is_marked(self) -> bool {
        self.address.addr() & MARK != 0
    }

    /// The same with the mark.
    #[inline]
    pub(in super::super) fn marked(self) -> Self {
        Self { address: self.address.map_addr(|address| address | MARK), ..self }
    }

    /// The same without the mark.
    ///
    /// By a branch, which is guessed right since marks are rare: clearing the bit would be waited for at every node.
    #[inline]
    pub(in super::super) fn unmarked(self) -> Self {
        if self.is_marked() { self.cleared() } else { self }
    }

    #[cold]
    #[inline(never)]
    fn cleared(self) -> Self {
        Self { address: self.address.map_addr(|address| address & !MARK), ..self }
    }

    /// Has a slot of the guard protect the node that a lower slot protects; see [`AnyGuard::keep`].
    #[inline]
    pub(in super::super) fn keep(self, guard: &'g impl AnyGuard, slot: usize) {
        guard.keep(self.address, slot);
    }

    /// Returns the node; `None` at the end of the level.
    ///
    /// # Safety
    /// The link is not marked, and it is null or leads to a node that stays allocated for `'g`.
    #[inline]
    pub(in super::super) unsafe fn node(self) -> Option<NodeRef<'g, S>> {
        NonNull::new(self.address).map(|node| NodeRef { node, life: PhantomData })
    }
}
