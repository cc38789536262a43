//! What the threads of a trial share besides the structure: the gates between phases, the start line, the stop flag, the
//! progress of each. Whoever fails abandons the trial, and nobody waits for the failed.
//!
//! Everything written in the window lies on its own line of 128 bytes, since neighbouring lines of 64 are fetched in
//! pairs.

use std::{ops::Deref, sync::PoisonError, thread};

#[cfg(all(test, feature = "schedules"))]
mod models;

#[cfg(all(test, feature = "schedules"))]
use self::models::clock;
#[cfg(not(all(test, feature = "schedules")))]
use super::clock;
use crate::sync::crew::{
    Condvar, Mutex, MutexGuard,
    atomic::{
        AtomicBool, AtomicU32, AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
    hint, yield_now,
};

/// A value alone on its cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Line<T>(T);

impl<T> Deref for Line<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A phase boundary at which each thread arrives and waits until it is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gate {
    /// Pinned and prepared; opened once the structure is made.
    Ready,
    /// Its share is inserted; opened once the structure was walked.
    Filled,
    /// It has stopped; opened once memory was measured.
    Closed,
}

/// The trial was given up by another thread, which says why.
#[derive(Debug)]
pub(crate) struct Abandoned;

/// The meeting points of one trial.
#[derive(Debug)]
pub(crate) struct Crew {
    n_threads: u32,
    gates: Mutex<[GateState; 3]>,
    changed: Condvar,
    /// Threads at the start line.
    n_at_start: Line<AtomicU32>,
    /// When the start line opened; 0 while it is closed, [`NEVER`] if it never will.
    opened_ns: Line<AtomicU64>,
    abandoned: AtomicBool,
    /// Ends the window.
    pub stop: Line<AtomicBool>,
    /// Operations completed by each thread; written by it alone.
    pub progress: Box<[Line<AtomicU64>]>,
}

const NEVER: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, Default)]
struct GateState {
    n_arrived: u32,
    open: bool,
}

impl Crew {
    pub fn new(n_threads: u32) -> Self {
        Self {
            n_threads,
            gates: Mutex::default(),
            changed: Condvar::new(),
            n_at_start: Line::default(),
            opened_ns: Line::default(),
            abandoned: AtomicBool::new(false),
            stop: Line::default(),
            progress: (0..n_threads).map(|_| Line::default()).collect(),
        }
    }

    /// Arrives at a gate and blocks until it is opened.
    pub fn pass(&self, gate: Gate) -> Result<(), Abandoned> {
        let mut gates = self.lock();
        gates[gate as usize].n_arrived += 1;
        self.changed.notify_all();
        while !gates[gate as usize].open {
            if self.is_abandoned() {
                return Err(Abandoned);
            }
            gates = self.changed.wait(gates).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    /// Blocks until every thread has arrived at a gate.
    pub fn all_arrived(&self, gate: Gate) -> Result<(), Abandoned> {
        let mut gates = self.lock();
        while gates[gate as usize].n_arrived < self.n_threads {
            if self.is_abandoned() {
                return Err(Abandoned);
            }
            gates = self.changed.wait(gates).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    /// Opens a gate for all threads.
    pub fn open(&self, gate: Gate) {
        self.lock()[gate as usize].open = true;
        self.changed.notify_all();
    }

    /// Waits at the start line until all threads are there; the last one opens it. Returns the opening stamp.
    ///
    /// Threads spin here, for waking from sleep would spread their starts over some 100 us. After a while they yield: with
    /// more threads than CPUs the missing ones need a CPU to arrive.
    pub fn start(&self) -> Result<u64, Abandoned> {
        /// About 10 us of spinning.
        const SPINS: u32 = 1_000;
        // AcqRel: the last to arrive has seen what the others did before.
        if self.n_at_start.fetch_add(1, AcqRel) + 1 == self.n_threads && !self.is_abandoned() {
            // Release: pairs with the Acquire below and in `opened_ns`.
            self.opened_ns.store(clock::now_ns(), Release);
        }
        for n_spins in 0_u32.. {
            match self.opened_ns.load(Acquire) {
                0 if n_spins < SPINS => hint::spin_loop(),
                0 => yield_now(),
                NEVER => break,
                opened_ns => return Ok(opened_ns),
            }
        }
        Err(Abandoned)
    }

    /// Waits until the start line opens, without spinning, and returns the stamp.
    pub fn opened_ns(&self) -> Result<u64, Abandoned> {
        /// Below the shortest window by far, and long enough to leave the CPU to the threads.
        const PAUSE_NS: u64 = 50_000;
        loop {
            match self.opened_ns.load(Acquire) {
                0 => clock::sleep_until(clock::now_ns() + PAUSE_NS),
                NEVER => return Err(Abandoned),
                opened_ns => return Ok(opened_ns),
            }
        }
    }

    /// Returns the operations that all threads have completed by now.
    pub fn completed(&self) -> u64 {
        // Relaxed: a sample, of counters that only grow.
        self.progress.iter().map(|completed| completed.load(Relaxed)).sum()
    }

    /// Gives the trial up and wakes whoever waits.
    pub fn abandon(&self) {
        self.abandoned.store(true, Release);
        self.opened_ns.store(NEVER, Release);
        self.stop.store(true, Relaxed);
        // Under the lock, so that nobody misses it between looking and waiting.
        let _gates = self.lock();
        self.changed.notify_all();
    }

    pub fn is_abandoned(&self) -> bool {
        self.abandoned.load(Acquire)
    }

    /// Returns a guard that abandons the trial when it is dropped by a panic.
    pub fn watch(&self) -> Watch<'_> {
        Watch(self)
    }

    /// A thread that panics elsewhere may poison the lock; the state is consistent at every step.
    fn lock(&self) -> MutexGuard<'_, [GateState; 3]> {
        self.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Crew::watch`].
pub(crate) struct Watch<'c>(&'c Crew);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.abandon();
        }
    }
}
