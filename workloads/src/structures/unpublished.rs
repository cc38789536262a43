//! A node that no other thread can see yet.

use std::mem;

use crate::nodes;

/// A node that was allocated and not published: freed when dropped, so that no path of an insertion leaks it.
pub(crate) struct Unpublished<T>(*mut T);

impl<T> Unpublished<T> {
    /// Allocates a node.
    pub(crate) fn new(node: T) -> Self {
        Self(nodes::allocate(node))
    }

    /// Returns the address under which the node may be published. Publishing must be followed by [`Self::publish`].
    pub(crate) fn as_ptr(&self) -> *mut T {
        self.0
    }

    /// Returns the node.
    pub(crate) fn get(&self) -> &T {
        // SAFETY: `new` allocated it, only `publish` and `drop` give it up, and both take the last access to it.
        unsafe { &*self.0 }
    }

    /// Gives the node up: it belongs to the structure now.
    pub(crate) fn publish(self) {
        mem::forget(self);
    }
}

impl<T> Drop for Unpublished<T> {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `allocate` in `new`; a published node never comes here (`publish`).
        unsafe { nodes::free(self.0) };
    }
}
