//! The atomics, locks and hints by which threads share memory, so that tests can decide what the threads do when.
//!
//! Ordinarily these are the types of the standard library and of parking_lot themselves, under another name. With the
//! feature `schedules` they are those of model checkers, which run outside of a model not at all: shuttle's for
//! structures and reclamation schemes (`tests/schedules.rs`), loom's for what the threads of a trial share
//! ([`crew`], and only in this package's own unit tests). What a checker lacks is supplied here.

#[cfg(not(feature = "schedules"))]
pub(crate) use parking_lot::RwLock;
#[cfg(not(feature = "schedules"))]
pub(crate) use std::{
    hint,
    sync::{Mutex, MutexGuard, atomic},
    thread,
};

#[cfg(feature = "schedules")]
pub(crate) use self::shuttled::{RwLock, atomic};
#[cfg(feature = "schedules")]
pub(crate) use shuttle::{
    hint,
    sync::{Mutex, MutexGuard},
    thread,
};

/// The same for what the threads of a trial share besides the structure.
pub(crate) mod crew {
    #[cfg(all(test, feature = "schedules"))]
    pub(crate) use loom::{
        hint,
        sync::{Condvar, Mutex, MutexGuard, atomic},
        thread::yield_now,
    };
    #[cfg(not(all(test, feature = "schedules")))]
    pub(crate) use std::{
        hint,
        sync::{Condvar, Mutex, MutexGuard, atomic},
        thread::yield_now,
    };
}

/// Shuttle's types where they lack something.
#[cfg(feature = "schedules")]
mod shuttled {
    use std::{
        ops::Deref,
        sync::{LockResult, PoisonError},
    };

    use shuttle::sync::{RwLockReadGuard, RwLockWriteGuard};

    /// A lock whose guards are not wrapped in results, as parking_lot's.
    #[derive(Debug, Default)]
    pub struct RwLock<T>(shuttle::sync::RwLock<T>);

    impl<T> RwLock<T> {
        /// Makes it.
        pub fn new(value: T) -> Self {
            Self(shuttle::sync::RwLock::new(value))
        }

        /// Waits for readers to be allowed.
        pub fn read(&self) -> RwLockReadGuard<'_, T> {
            unpoisoned(self.0.read())
        }

        /// Waits for exclusive access.
        pub fn write(&self) -> RwLockWriteGuard<'_, T> {
            unpoisoned(self.0.write())
        }

        /// Returns the value, to which the caller has exclusive access.
        pub fn get_mut(&mut self) -> &mut T {
            unpoisoned(self.0.get_mut())
        }
    }

    fn unpoisoned<T>(result: LockResult<T>) -> T {
        result.unwrap_or_else(PoisonError::into_inner)
    }

    pub mod atomic {
        pub use shuttle::sync::atomic::{
            AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence, fence,
        };

        /// A pointer with the operations on its bits.
        #[derive(Debug, Default)]
        pub struct AtomicPtr<T>(shuttle::sync::atomic::AtomicPtr<T>);

        impl<T> AtomicPtr<T> {
            /// Makes it.
            pub const fn new(pointer: *mut T) -> Self {
                Self(shuttle::sync::atomic::AtomicPtr::new(pointer))
            }

            /// Sets bits of the address, and returns what it was.
            pub fn fetch_or(&self, bits: usize, order: Ordering) -> *mut T {
                self.0.update(order, Ordering::Relaxed, |pointer| pointer.map_addr(|address| address | bits))
            }
        }

        impl<T> super::Deref for AtomicPtr<T> {
            type Target = shuttle::sync::atomic::AtomicPtr<T>;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl<T> std::ops::DerefMut for AtomicPtr<T> {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.0
            }
        }
    }
}
