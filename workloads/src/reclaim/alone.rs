//! The guard of a thread that has a structure to itself, for audits and drops.

use super::Guard;
use crate::{
    nodes,
    sync::atomic::{AtomicPtr, Ordering},
};

/// Protects by exclusion: no other thread is there, so what is retired is freed at once.
pub struct Alone(());

impl Alone {
    /// Makes the guard.
    ///
    /// # Safety
    /// While it lives, no other thread has access to the structures that it is used with; and nothing that was retired
    /// to it is reached again.
    pub unsafe fn new() -> Self {
        Self(())
    }
}

impl Guard for Alone {
    fn load<T>(&self, source: &AtomicPtr<T>) -> *mut T {
        // Acquire is not needed, since whatever gave this thread exclusive access ordered it after all others; it
        // keeps the promise of the trait.
        source.load(Ordering::Acquire)
    }

    unsafe fn retire<T: Send>(&self, object: *mut T) {
        // SAFETY: by the contract of `retire` nobody else frees it; by that of `new` nobody reads it any more.
        unsafe { nodes::free(object) };
    }
}
