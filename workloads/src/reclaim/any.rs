//! The weaker level of reclamation: schemes that may protect single nodes only, such as hazard pointers.
//!
//! Every [`Reclaimer`] is an [`AnyReclaimer`], with its locals and guards. A structure that is bound by the traits of this
//! file runs under all schemes, and must therefore prove each of its steps:
//!
//! (H) *[`AnyGuard::protect`] announces the node that a link leads to, and then reads the link again, sequentially
//! consistent. If the node was not yet retired at that second reading, it stays allocated until the slot is used again
//! or the guard is dropped.*
//!
//! What "not yet retired at that moment" rests on may be seen later than the reading itself. It must be a fact about the
//! links read then (the holder of the link was in the structure), and if another link has to be asked for it, then that
//! one is asked with a sequentially consistent load too, because only those are ordered with the announcement: see
//! [`super::hazard`]. Schemes that protect whole operations need none of that, so structures skip it where
//! [`AnyGuard::PROTECTS_ALL`] holds.

use crate::sync::atomic::AtomicPtr;

use super::{Guard, Local, Reclaimer};
use crate::families::set::Parameters;

/// A reclamation scheme, whatever it protects. One instance belongs to one structure and shares nothing with others.
///
/// # Safety
/// An object that was retired under the contract of [`AnyGuard::retire`] is freed at most once, on any thread, and not
/// while it is protected: by (H), or, where [`AnyGuard::PROTECTS_ALL`] holds, by any guard that was obtained before the
/// call. What a thread did before it retired the object happens before the object is freed.
pub unsafe trait AnyReclaimer: Send + Sync + Sized + 'static {
    /// A registered thread.
    type Local<'r>: AnyLocal
    where
        Self: 'r;

    /// See [`Reclaimer::with`].
    fn with(parameters: &Parameters) -> Self;

    /// See [`Reclaimer::new`].
    fn new() -> Self {
        Self::with(&Parameters::new())
    }

    /// See [`Reclaimer::register`].
    fn register(&self) -> Self::Local<'_>;

    /// See [`Reclaimer::unreclaimed`].
    fn unreclaimed(&self) -> u64;
}

/// One thread's registration with any scheme.
pub trait AnyLocal {
    /// Protection within one operation.
    type Guard<'l>: AnyGuard
    where
        Self: 'l;

    /// See [`Local::pin`], whose promise of order this one repeats.
    fn pin(&mut self) -> Self::Guard<'_>;
}

/// Protection within one operation; it ends when the guard is dropped.
pub trait AnyGuard {
    /// Whether all that the guard can reach stays allocated ([`Guard::load`]), so that slots mean nothing.
    const PROTECTS_ALL: bool;

    /// Loads a link, tag bits included, and protects the node that it leads to with that slot, as (H) says. What the
    /// slot protected before is given up.
    ///
    /// Acquire: what was written before the link was published is visible. The low three bits are tags.
    fn protect<T>(&self, source: &AtomicPtr<T>, slot: usize) -> *mut T;

    /// Protects with a further slot what one of a lower number protects now; so that the lower one can be used again.
    fn keep<T>(&self, object: *mut T, slot: usize);

    /// Loads a link with Acquire, to be compared or exchanged. The node that it leads to is not protected by this.
    fn look<T>(&self, source: &AtomicPtr<T>) -> *mut T;

    /// See [`Guard::retire`].
    ///
    /// # Safety
    /// As there. It may still be reached from other unlinked nodes only by steps that fail for want of (H), or under
    /// guards that protect all.
    unsafe fn retire<T: Send>(&self, object: *mut T);
}

// SAFETY: the contract of `Reclaimer` protects more: everything that a guard reaches.
unsafe impl<R: Reclaimer> AnyReclaimer for R {
    type Local<'r> = R::Local<'r>;

    fn with(parameters: &Parameters) -> Self {
        R::with(parameters)
    }

    fn register(&self) -> Self::Local<'_> {
        R::register(self)
    }

    fn unreclaimed(&self) -> u64 {
        R::unreclaimed(self)
    }
}

impl<L: Local> AnyLocal for L {
    type Guard<'l>
        = L::Guard<'l>
    where
        Self: 'l;

    #[inline]
    fn pin(&mut self) -> Self::Guard<'_> {
        L::pin(self)
    }
}

impl<G: Guard> AnyGuard for G {
    const PROTECTS_ALL: bool = true;

    #[inline]
    fn protect<T>(&self, source: &AtomicPtr<T>, _slot: usize) -> *mut T {
        self.load(source)
    }

    #[inline]
    fn keep<T>(&self, _object: *mut T, _slot: usize) {}

    #[inline]
    fn look<T>(&self, source: &AtomicPtr<T>) -> *mut T {
        self.load(source)
    }

    #[inline]
    unsafe fn retire<T: Send>(&self, object: *mut T) {
        // SAFETY: the caller's promises are those of `Guard::retire`.
        unsafe { Guard::retire(self, object) };
    }
}
