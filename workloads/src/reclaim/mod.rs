//! Reclamation schemes: how a structure gives back nodes that other threads may still read.
//!
//! A scheme is a type parameter of a structure (`Nm14<R: Reclaimer>`): one source file a structure, whatever the
//! schemes. A scheme must not know any structure. A thread registers once ([`Reclaimer::register`]), obtains a guard
//! for each operation ([`Local::pin`]), loads links through it ([`Guard::load`]), and hands over what it unlinked
//! ([`Guard::retire`]).
//!
//! A [`Reclaimer`] protects *whole operations*: all that a guard can reach stays allocated. Optimistic traversals,
//! which walk through nodes that were unlinked under them, are sound only under such schemes (epochs, Hyaline, and
//! those two with eager freeing). Hazard pointers protect single nodes; they come as a weaker trait whose guards take a
//! slot with each load, and of which every `Reclaimer` is an instance. A structure is then bound by the weaker trait
//! only if it validates each step, so that an unsound pairing does not compile.

mod alone;
pub(crate) mod count;
mod epoch;
#[cfg(test)]
pub(crate) mod interleave;
mod none;

use crate::sync::atomic::AtomicPtr;

pub use self::{alone::Alone, epoch::Epoch, none::NoReclamation};

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

    /// Makes an instance without threads.
    fn new() -> Self;

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

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    };

    use super::*;
    use crate::nodes;

    /// Counts its drops.
    struct Counted(Arc<AtomicUsize>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    /// Retires `n` objects on each of two threads, and returns the drops seen then and after the scheme's own drop,
    /// and what it said was unreclaimed.
    fn retire_on_two_threads<R: Reclaimer>(n: usize) -> (usize, usize, u64) {
        let drops = Arc::new(AtomicUsize::new(0));
        let reclaimer = R::new();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut local = reclaimer.register();
                    for _ in 0..n {
                        let object = nodes::allocate(Counted(Arc::clone(&drops)));
                        let guard = local.pin();
                        // SAFETY: the object was made above and nothing else ever pointed to it.
                        unsafe { guard.retire(object) };
                    }
                });
            }
        });
        let before = drops.load(Relaxed);
        let unreclaimed = reclaimer.unreclaimed();
        drop(reclaimer);
        (before, drops.load(Relaxed), unreclaimed)
    }

    #[test]
    fn epoch_frees_each_object_once_and_counts_the_rest() {
        let (before, after, unreclaimed) = retire_on_two_threads::<Epoch>(10_000);
        assert_eq!(after, 20_000);
        assert_eq!(unreclaimed, 20_000 - before as u64);
        assert!(before > 0, "nothing was freed while threads ran");
    }

    #[test]
    fn none_frees_nothing() {
        assert_eq!(retire_on_two_threads::<NoReclamation>(100), (0, 0, 200));
    }

    #[test]
    fn epoch_keeps_what_an_older_guard_may_read() {
        let drops = Arc::new(AtomicUsize::new(0));
        let reclaimer = Epoch::new();
        let mut reader = reclaimer.register();
        let guard = reader.pin();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut local = reclaimer.register();
                for _ in 0..10_000 {
                    let object = nodes::allocate(Counted(Arc::clone(&drops)));
                    // SAFETY: the object was made above and nothing else ever pointed to it.
                    unsafe { local.pin().retire(object) };
                }
            });
        });
        assert_eq!(drops.load(Relaxed), 0);
        assert_eq!(reclaimer.unreclaimed(), 10_000);
        drop(guard);
        drop(reader);
        drop(reclaimer);
        assert_eq!(drops.load(Relaxed), 10_000);
    }

    #[test]
    fn a_slot_serves_the_next_thread() {
        let reclaimer = Epoch::new();
        for _ in 0..100 {
            let mut local = reclaimer.register();
            // SAFETY: the object is made here and nothing else ever points to it.
            unsafe { local.pin().retire(nodes::allocate(1_u64)) };
        }
        assert_eq!(reclaimer.n_slots(), 1);
    }
}
