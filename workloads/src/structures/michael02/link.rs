//! Nodes of a list, and what their links hold.
//!
//! Here is where pointers are followed. A [`Link`] is loaded only from the head, or from a node that was obtained from a
//! link under the same guard, and it is followed only after it was validated, and while its slot is not used for another;
//! that is the fact (L) on which the comments below rest, and which [`super::list::List::find`] establishes.

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
#[repr(align(8))]
pub(super) struct Node {
    pub(super) key: u64,
    #[expect(dead_code, reason = "stored so that nodes have the size of a dictionary's")]
    value: u64,
    pub(super) next: Next,
}

const _: () = assert!(align_of::<Node>() > MARK);

/// An address with MARK in its low bit. It cannot be followed: nothing says that the node still exists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(*mut Node);

/// What a link held when it was loaded under a guard that lives for `'g`: it can be followed so long, as (L) says.
#[derive(Clone, Copy)]
pub(super) struct Link<'g> {
    pub(super) word: Word,
    guard: PhantomData<&'g ()>,
}

impl Next {
    pub(super) const fn new(word: Word) -> Self {
        Self(AtomicPtr::new(word.0))
    }

    /// Loads the link with Acquire, which pairs with the Release of [`Self::exchange`], and has a slot of the guard protect
    /// the node that it leads to.
    #[inline]
    pub(super) fn load<'g>(&'g self, guard: &'g impl AnyGuard, slot: usize) -> Link<'g> {
        Link { word: Word(guard.protect(&self.0, slot)), guard: PhantomData }
    }

    /// Tells whether the link still holds `word`.
    ///
    /// SeqCst, as protection by announcements needs it (see `reclaim::any`). It is an Acquire too, which pairs with the
    /// Release of [`Self::exchange`], so that what is read after this is no older than the link.
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
    /// The end of a list.
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

    #[inline]
    fn unmarked(self) -> Self {
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
    /// leads to is. The link of a visited node is read either while that is in the list, and then the next node is too;
    /// or after the node was unlinked, when its link has not changed since before (I2, I3), and the next node was in the
    /// list until then, which was after the guard was obtained. For guards that protect single nodes, see
    /// [`super::list::List::find`].
    #[inline]
    pub(super) fn node(self) -> Option<&'g Node> {
        // SAFETY: a link is null or leads to a node, whose fields were written before it was published. By (L) and the
        // argument above, the guard keeps it allocated as long as it is followed.
        unsafe { self.word.unmarked().0.as_ref() }
    }
}

// SAFETY: a node is plain memory without a bond to a thread; `Next` is an atomic.
unsafe impl Send for Node {}
