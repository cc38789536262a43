//! Histories of set operations: what each thread asked, what it was told, and when.
//!
//! Owns the stamps and their order; [`linearize`] judges. Nothing of this is part of the measured process.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod linearize;

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering::SeqCst, fence},
    time::Instant,
};

use rare_workloads::families::set::SetHandle;

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Insert,
    Remove,
    Contains,
}

/// One completed operation.
///
/// It took effect at some instant from `invoked` to `responded`, both included. Hence one operation precedes another
/// if and only if it responded strictly before the other was invoked: operations that share a stamp overlap.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub thread: u32,
    pub kind: Kind,
    pub key: u64,
    pub answer: bool,
    /// Nanoseconds since the clock's origin, as is `responded`.
    pub invoked: u64,
    pub responded: u64,
}

impl Operation {
    /// Tells whether the answer implies that the key was present when the operation took effect, or absent.
    pub fn needs_present(&self) -> bool {
        match self.kind {
            Kind::Insert => !self.answer,
            Kind::Remove | Kind::Contains => self.answer,
        }
    }

    /// Tells whether the answer implies that the operation inserted or removed the key.
    pub fn is_effective(&self) -> bool {
        self.answer && self.kind != Kind::Contains
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { thread, kind, key, answer, invoked, responded } = self;
        write!(f, "[{invoked}, {responded}] thread {thread}: {kind:?}({key}) = {answer}")
    }
}

/// The clock that all threads of one history read: `CLOCK_MONOTONIC` behind `Instant`, which never runs backwards, on
/// no CPU.
#[derive(Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    pub fn start() -> Self {
        Self(Instant::now())
    }

    fn now(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).expect("no test runs for centuries")
    }
}

/// Records the operations of one thread.
pub struct Recorder {
    clock: Clock,
    thread: u32,
    /// Written with each invocation, and never read: see [`Recorder::run`].
    invoked: AtomicU64,
    pub operations: Vec<Operation>,
}

impl Recorder {
    pub fn new(clock: Clock, thread: u32, capacity: usize) -> Self {
        Self { clock, thread, invoked: AtomicU64::new(0), operations: Vec::with_capacity(capacity) }
    }

    /// Applies an operation between two stamps.
    ///
    /// The stamps must enclose what the operation does to memory, or a correct set would be accused: a processor may
    /// load early what follows a read of the clock, and make stores visible after the next. The swap needs the stamp,
    /// and nothing that follows a sequentially consistent read-modify-write is performed before it; the fence makes the
    /// operation's stores visible before the clock is read again.
    pub fn run(&mut self, handle: &mut dyn SetHandle, kind: Kind, key: u64) {
        let invoked = self.clock.now();
        self.invoked.swap(invoked, SeqCst);
        let answer = match kind {
            Kind::Insert => handle.insert(key, !key),
            Kind::Remove => handle.remove(key),
            Kind::Contains => handle.contains(key),
        };
        fence(SeqCst);
        let responded = self.clock.now();
        self.operations.push(Operation { thread: self.thread, kind, key, answer, invoked, responded });
    }
}
