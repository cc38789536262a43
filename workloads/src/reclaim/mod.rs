//! Reclamation schemes: how a structure gives back nodes that other threads may still read.
//!
//! A scheme is a type parameter of a structure (`Nm14<R: Reclaimer>`): one source file a structure, whatever the
//! schemes. A scheme must not know any structure. A thread registers once ([`Reclaimer::register`]), obtains a guard
//! for each operation ([`Local::pin`]), loads links through it ([`Guard::load`]), and hands over what it unlinked
//! ([`Guard::retire`]).
//!
//! A [`Reclaimer`] protects *whole operations*: all that a guard can reach stays allocated. Optimistic traversals,
//! which walk through nodes that were unlinked under them, are sound only under such schemes: [`Epoch`], [`Eager`],
//! [`Hyaline`], and [`NoReclamation`]. [`Hazard`] pointers protect single nodes. It is an [`AnyReclaimer`], whose guards
//! take a slot with each load, and of which every `Reclaimer` is an instance. A structure is bound by that weaker trait
//! only if it validates each step, so that an unsound pairing does not compile:
//!
//! ```
//! use rare_workloads::{reclaim::{Epoch, Hazard}, structures::{michael02::Michael02, nm14::Nm14}};
//! fn are_sound(_: Michael02<Hazard>, _: Michael02<Epoch>, _: Nm14<Epoch>) {}
//! ```
//!
//! ```compile_fail,E0277
//! use rare_workloads::{reclaim::Hazard, structures::nm14::Nm14};
//! fn would_read_freed_nodes(_: Nm14<Hazard>) {}
//! ```

mod alone;
mod any;
pub(crate) mod count;
mod epoch;
pub(crate) mod hazard;
pub(crate) mod hyaline;
#[cfg(test)]
pub(crate) mod interleave;
mod none;
mod order;
#[cfg(test)]
mod tests;

use crate::sync::atomic::AtomicPtr;

pub use self::{
    alone::Alone,
    any::{AnyGuard, AnyLocal, AnyReclaimer},
    epoch::{Eager, Epoch, Epochs},
    hazard::Hazard,
    hyaline::{BATCHES, DEFAULT_BATCH, Hyaline},
    none::NoReclamation,
};
use crate::families::set::Parameters;

/// A reclamation scheme that protects whole operations. One instance belongs to one structure and shares nothing with
/// others.
///
/// Dropping it gives back every object that was retired to it, unless the scheme leaks by design ([`NoReclamation`]).
///
/// # Safety
/// The implementation must keep an object that was retired under the contract of [`Guard::retire`] allocated until
/// every guard that was obtained before the call is dropped. What a thread did before it retired the object must
/// happen before the object is freed. It must free an object at most once, on any thread.
pub unsafe trait Reclaimer: Send + Sync + Sized + 'static {
    /// A registered thread.
    type Local<'r>: Local
    where
        Self: 'r;

    /// Makes an instance without threads, with the parameters of the scheme that are among those of the structure.
    fn with(parameters: &Parameters) -> Self;

    /// Makes an instance without threads, with the defaults of its parameters.
    fn new() -> Self {
        Self::with(&Parameters::new())
    }

    /// Registers the calling thread. May allocate and lock; not meant for the measured loop.
    fn register(&self) -> Self::Local<'_>;

    /// Returns how many objects were retired and not freed yet. Exact when no thread is inside an operation; else a
    /// snapshot that is never negative.
    fn unreclaimed(&self) -> u64;
}

/// One thread's registration with a scheme.
pub trait Local {
    /// Protection of one operation.
    type Guard<'l>: Guard
    where
        Self: 'l;

    /// Begins an operation. The borrow allows one guard at a time, so that a scheme needs no count of them.
    ///
    /// Updates that this thread made before are ordered before the loads that it makes under the guard, as by a
    /// sequentially consistent fence. Structures rely on it: without it, two threads that each insert a key and then
    /// look for the other's could both miss it, although every link is written with Release and read with Acquire.
    ///
    /// The structure's part: an update takes effect by a read-modify-write, or executes one later.
    fn pin(&mut self) -> Self::Guard<'_>;
}

/// Protection of one operation; it ends when the guard is dropped.
pub trait Guard {
    /// Loads a link, tag bits included, with Acquire: what was written before the link was published is visible.
    ///
    /// If the link was read from the structure's root, or from a node that was loaded under this guard, then the node
    /// that it leads to stays allocated until the guard is dropped, provided that the structure retires nodes only
    /// under the contract of [`Guard::retire`].
    fn load<T>(&self, source: &AtomicPtr<T>) -> *mut T;

    /// Hands over an object that was unlinked, to be freed when no guard can reach it.
    ///
    /// # Safety
    /// - `object` came from `nodes::allocate` (any tag bits cleared), and this is its only retirement.
    /// - It is unreachable from the structure's root, and stays so. It may still be reached from other unlinked nodes,
    ///   provided those were unlinked no earlier than the guard that walks them was obtained; which holds if the links
    ///   of an unlinked node never change.
    /// - Nobody frees it otherwise.
    unsafe fn retire<T: Send>(&self, object: *mut T);
}
