//! Nodes of the list, and what their links hold.
//!
//! Here is where pointers are followed. A [`Link`] is loaded only from the head, or from a node that was obtained from a
//! link under the same guard, and it is followed only while a slot that protects its node is not used for another; that
//! is the fact (L) on which the comments below rest, and which `Harris01::search` establishes.

use std::{marker::PhantomData, ptr};

use crate::{
    reclaim::AnyGuard,
    sync::atomic::{
        AtomicPtr,
        Ordering::{Relaxed, Release, SeqCst},
    },
};

/// The node that holds the link is removed.
const MARK: usize = 1;

/// A link: a [`Word`] that threads compete for.
pub(super) struct Next(AtomicPtr<Node>);

/// A node that holds a key.
pub(super) struct Node {
    pub(super) key: u64,
    #[expect(dead_code, reason = "stored so that nodes have the size of a dictionary's")]
    value: u64,
    pub(super) next: Next,
}

/// An address with MARK in its low bit. It cannot be followed: nothing says that the node still exists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(*mut Node);

/// What a link held when it was loaded under a guard that lives for `'g`: it can be followed so long.
#[derive(Clone, Copy)]
pub(super) struct Link<'g> {
    pub(super) word: Word,
    guard: PhantomData<&'g ()>,
}

impl Next {
    pub(super) fn new(word: Word) -> Self {
        Self(AtomicPtr::new(word.0))
    }

    /// Loads the link with Acquire, which pairs with the Release of [`Self::exchange`], and has a slot of the guard protect
    /// the node that it leads to.
    #[inline]
    pub(super) fn load<'g>(&'g self, guard: &'g impl AnyGuard, slot: usize) -> Link<'g> {
        Link { word: Word(guard.protect(&self.0, slot)), guard: PhantomData }
    }

    /// Loads the link with Acquire, to be compared or exchanged: nothing is protected.
    #[inline]
    pub(super) fn look(&self, guard: &impl AnyGuard) -> Word {
        Word(guard.look(&self.0))
    }

    /// Returns the frozen link of a node that the calling thread has unlinked, of a run of which it will retire the next
    /// node too: until then that node needs no protection.
    pub(super) fn within_run<'g>(&'g self, guard: &'g impl AnyGuard) -> Link<'g> {
        Link { word: self.look(guard).unmarked(), guard: PhantomData }
    }

    /// Tells whether the link still holds `word`. SeqCst, as protection by announcements needs it (see `reclaim::any`).
    #[inline]
    pub(super) fn still_holds(&self, word: Word) -> bool {
        self.0.load(SeqCst) == word.0
    }

    /// Sets the link of a node that is not published yet.
    pub(super) fn prepare(&self, word: Word) {
        // Relaxed: the Release of the exchange that publishes the node comes after.
        self.0.store(word.0, Relaxed);
    }

    /// Changes `old` to `new`; false if the link holds something else.
    ///
    /// Release: publishes the node under `new`; pairs with the Acquire in [`Self::load`]. Relaxed on failure: what was
    /// read is not used.
    pub(super) fn exchange(&self, old: Word, new: Word) -> bool {
        self.0.compare_exchange(old.0, new.0, Release, Relaxed).is_ok()
    }
}

impl Node {
    pub(super) fn new(key: u64, value: u64) -> Self {
        Self { key, value, next: Next::new(Word::NULL) }
    }
}

impl Word {
    /// The end of the list.
    pub(super) const NULL: Self = Self(ptr::null_mut());

    pub(super) fn to_node(node: *mut Node) -> Self {
        Self(node)
    }

    #[inline]
    pub(super) fn is_marked(self) -> bool {
        self.0.addr() & MARK != 0
    }

    /// The same with the mark.
    pub(super) fn marked(self) -> Self {
        Self(self.0.map_addr(|address| address | MARK))
    }

    /// The same without the mark.
    ///
    /// By a branch, which is guessed right since marks are rare: clearing the bit would be waited for at every node.
    #[inline]
    fn unmarked(self) -> Self {
        if self.is_marked() { self.cleared() } else { self }
    }

    #[cold]
    #[inline(never)]
    fn cleared(self) -> Self {
        Self(self.0.map_addr(|address| address & !MARK))
    }

    /// Hands the node to `guard`.
    ///
    /// # Safety
    /// This is not null; the node was unlinked by the calling thread (I3), which calls this once for it.
    pub(super) unsafe fn retire(self, guard: &impl AnyGuard) {
        // SAFETY: nodes come from `Unpublished`, which allocates them; the rest is the caller's promise, and that the link
        // of an unlinked node never changes is I2 and I3.
        unsafe { guard.retire(self.unmarked().0) };
    }
}

impl<'g> Link<'g> {
    /// The same without the mark.
    #[inline]
    pub(super) fn unmarked(self) -> Self {
        Self { word: self.word.unmarked(), ..self }
    }

    /// Returns the node; `None` at the end of the list.
    ///
    /// Every node visited was in the list at some moment since the guard was obtained. By induction: what the head
    /// leads to is. If the link of a visited node is read while that is in the list, then the next node is too. Else
    /// the node was unlinked after the guard was obtained, its link has not changed since (I2, I3), and the next node
    /// was in the list until then. So no visited node was retired before the guard was obtained. For guards that protect
    /// single nodes, see `Harris01::search`.
    #[inline]
    pub(super) fn node(self) -> Option<&'g Node> {
        // SAFETY: a link is null or leads to a node, whose fields were written before it was published. By (L) and the
        // argument above, the guard keeps it allocated as long as it is followed.
        unsafe { self.word.unmarked().0.as_ref() }
    }
}
