//! Nodes of the list, and what their links hold.
//!
//! Here is where pointers are followed. A [`Link`] is loaded only from the head, or from a node that was obtained from a
//! link under the same guard; that is the fact (L) on which the comments below rest.
//!
//! A link is also the lock and the mark of the node that holds it. Every write to a link but that of [`Next::set`] is a
//! read-modify-write, and so prolongs the release sequence of what it finds: whoever loads an address with Acquire,
//! whatever bits stand beside it, synchronises with the thread that put the address there.

use std::{marker::PhantomData, ptr};

use crate::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::{reclaim::Guard, structures::patience::Patience};

/// The node that holds the link is removed.
const MARK: usize = 1;
/// A thread is about to change the link.
const LOCK: usize = 2;

/// A link: a [`Word`] that only the thread that locked it changes.
pub(super) struct Next(AtomicPtr<Node>);

/// A node that holds a key.
#[repr(align(8))]
pub(super) struct Node {
    pub(super) key: u64,
    #[expect(dead_code, reason = "stored so that nodes have the size of a dictionary's")]
    value: u64,
    pub(super) next: Next,
}

const _: () = assert!(align_of::<Node>() > (MARK | LOCK));

/// An address with MARK and LOCK in its low bits. It cannot be followed: nothing says that the node still exists.
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

    /// Loads the link with Acquire: pairs with the Release of [`Self::publish`] and [`Self::set`].
    #[inline]
    pub(super) fn load<'g>(&'g self, guard: &'g impl Guard) -> Link<'g> {
        Link { word: Word(guard.load(&self.0)), guard: PhantomData }
    }

    /// Sets the link of a node that is not published yet.
    pub(super) fn prepare(&self, word: Word) {
        // Relaxed: the Release of `publish` comes after.
        self.0.store(word.0, Relaxed);
    }

    /// Locks the link if it leads where `word` does and is neither locked nor marked.
    ///
    /// Acquire: pairs with the Release of [`Self::publish`] and [`Self::set`], with which the last holder gave the lock
    /// back. Relaxed on failure: what was read is not used.
    pub(super) fn try_lock(&self, word: Word) -> bool {
        let free = word.clean();
        self.0.compare_exchange(free.0, free.with(LOCK).0, Acquire, Relaxed).is_ok()
    }

    /// Makes the link, which this thread has locked, lead to a new node, and gives the lock back.
    ///
    /// Release: pairs with the Acquire in [`Self::load`] and [`Self::try_lock`]. An exchange rather than a store, because
    /// an insertion takes effect here, and `Local::pin` relies on that being a read-modify-write.
    pub(super) fn publish(&self, new: Word) {
        self.0.swap(new.0, Release);
    }

    /// Makes the link, which this thread has locked, lead to a node that is in the list, and gives the lock back.
    ///
    /// Release: hands on what this thread saw of the node; pairs with the Acquire in [`Self::load`] and
    /// [`Self::try_lock`].
    pub(super) fn set(&self, word: Word) {
        self.0.store(word.0, Release);
    }

    /// Waits until nobody has the lock of this link, and marks it in the same moment. Returns what it held.
    ///
    /// The caller has locked the link to the node that holds this one, so that nobody else can mark it.
    ///
    /// Acquire: pairs with the Release of the thread that put the address here, so that [`Self::set`] can hand it on.
    /// Relaxed on failure: what was read is only compared.
    pub(super) fn mark(&self) -> Word {
        let mut patience = Patience::new();
        let mut word = Word(self.0.load(Relaxed));
        loop {
            if word.has(LOCK) {
                patience.wait();
                word = Word(self.0.load(Relaxed));
                continue;
            }
            match self.0.compare_exchange(word.0, word.with(MARK).0, Acquire, Relaxed) {
                Ok(_) => return word,
                Err(now) => word = Word(now),
            }
        }
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

    fn has(self, bit: usize) -> bool {
        self.0.addr() & bit != 0
    }

    fn with(self, bit: usize) -> Self {
        Self(self.0.map_addr(|address| address | bit))
    }

    #[inline]
    pub(super) fn is_marked(self) -> bool {
        self.has(MARK)
    }

    pub(super) fn is_locked(self) -> bool {
        self.has(LOCK)
    }

    /// The same without mark and lock.
    #[inline]
    pub(super) fn clean(self) -> Self {
        Self(self.0.map_addr(|address| address & !(MARK | LOCK)))
    }

    /// Hands the node to `guard`.
    ///
    /// # Safety
    /// This is not null; the node was unlinked by the calling thread (I3), which calls this once for it.
    pub(super) unsafe fn retire(self, guard: &impl Guard) {
        // SAFETY: nodes come from `Unpublished`, which allocates them; the rest is the caller's promise, and that the link
        // of an unlinked node never changes is I2 and I3.
        unsafe { guard.retire(self.clean().0) };
    }
}

impl<'g> Link<'g> {
    /// Returns the node; `None` at the end of the list.
    ///
    /// Every node visited was in the list at some moment since the guard was obtained. By induction: what the head
    /// leads to is. If the link of a visited node is read while that is in the list, then the next node is too. Else
    /// the node was unlinked after the guard was obtained, its link has not changed since it was marked before that (I2,
    /// I3), and the next node was in the list until then. So no visited node was retired before the guard was obtained.
    #[inline]
    pub(super) fn node(self) -> Option<&'g Node> {
        // SAFETY: a link is null or leads to a node, whose fields were written before it was published. By (L) and the
        // argument above, the guard keeps it allocated for 'g.
        unsafe { self.word.clean().0.as_ref() }
    }
}

// SAFETY: a node is plain memory without a bond to a thread; `Next` is an atomic.
unsafe impl Send for Node {}
