//! A sound structure and a fault: what is not the fault's is the structure's.

use crate::{
    families::set::{ConcurrentSet, Parameters, SetHandle},
    protocol::Audit,
};

/// The part of a fault that all threads share.
pub trait Fault: Send + Sync + Sized + 'static {
    /// The part of one thread.
    type Thread<'f>: FaultThread;

    /// Makes it for one instance.
    fn new(parameters: &Parameters) -> Self;

    /// Registers the calling thread.
    fn thread(&self) -> Self::Thread<'_>;
}

/// What a fault does to the operations of one thread. `base` is the thread's access to the sound structure.
pub trait FaultThread {
    /// Comes before each operation.
    #[inline]
    fn before(&mut self) {}

    /// Stands for the insertion.
    #[inline]
    fn insert(&mut self, base: &mut impl SetHandle, key: u64, value: u64) -> bool {
        base.insert(key, value)
    }

    /// Stands for the removal.
    #[inline]
    fn remove(&mut self, base: &mut impl SetHandle, key: u64) -> bool {
        base.remove(key)
    }
}

/// The structure `B` with the fault `F`.
pub struct Faulty<F, B> {
    fault: F,
    base: B,
}

impl<F: Fault, B: ConcurrentSet> ConcurrentSet for Faulty<F, B> {
    type Handle<'s> = Handle<F::Thread<'s>, B::Handle<'s>>;

    fn new(parameters: &Parameters) -> Self {
        // The parameters are the fault's: the structure takes its defaults.
        Self { fault: F::new(parameters), base: B::new(&Parameters::new()) }
    }

    fn handle(&self) -> Self::Handle<'_> {
        Handle { fault: self.fault.thread(), base: self.base.handle() }
    }

    fn audit(&mut self) -> Audit {
        self.base.audit()
    }

    fn unreclaimed(&self) -> Option<u64> {
        self.base.unreclaimed()
    }
}

/// A thread's access.
pub struct Handle<F, B> {
    fault: F,
    base: B,
}

impl<F: FaultThread, B: SetHandle> SetHandle for Handle<F, B> {
    #[inline]
    fn insert(&mut self, key: u64, value: u64) -> bool {
        self.fault.before();
        self.fault.insert(&mut self.base, key, value)
    }

    #[inline]
    fn remove(&mut self, key: u64) -> bool {
        self.fault.before();
        self.fault.remove(&mut self.base, key)
    }

    #[inline]
    fn contains(&mut self, key: u64) -> bool {
        self.fault.before();
        self.base.contains(key)
    }
}
