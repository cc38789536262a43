//! What the threads of a trial share besides the structure: the gates between phases, the start line, the stop flag, the
//! progress of each. Whoever fails abandons the trial, and nobody waits for the failed.
//!
//! Everything written in the window lies on its own line of 128 bytes, since neighbouring lines of 64 are fetched in
//! pairs; unless a request asks for the mistake of packing it.

use std::{ops::Deref, sync::PoisonError, thread};

#[cfg(all(test, feature = "schedules"))]
mod models;

#[cfg(all(test, feature = "schedules"))]
use self::models::clock;
#[cfg(not(all(test, feature = "schedules")))]
use super::clock;
use crate::{
    protocol::Padding,
    sync::crew::{
        Condvar, Mutex, MutexGuard,
        atomic::{
            AtomicBool, AtomicU32, AtomicU64,
            Ordering::{AcqRel, Acquire, Relaxed, Release},
        },
        hint, yield_now,
    },
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

/// What is written in the window: the stop flag, and the operations that each thread completed.
///
/// The first slot is the flag's, the next ones the threads' in their order. How far apart they lie is chosen once; who works
/// with one holds a reference to it.
#[derive(Debug)]
struct Board {
    lines: Box<[Line<[Slot; SLOTS_PER_LINE]>]>,
    /// Slots from one that is used to the next.
    stride: usize,
}

/// The flag or the progress of one thread; the other half lies idle.
#[derive(Debug, Default)]
struct Slot {
    progress: AtomicU64,
    stop: AtomicBool,
}

/// Eight slots of 16 bytes fill a line: packed, four threads share each line of 64 bytes, and three one with the flag.
const SLOTS_PER_LINE: usize = 8;

impl Board {
    fn new(n_threads: u32, padding: Padding) -> Self {
        let stride = match padding {
            Padding::Lines => SLOTS_PER_LINE,
            Padding::None => 1,
        };
        let n_lines = ((n_threads as usize + 1) * stride).div_ceil(SLOTS_PER_LINE);
        Self { lines: (0..n_lines).map(|_| Line::default()).collect(), stride }
    }

    fn slot(&self, slot_idx: usize) -> &Slot {
        let place = slot_idx * self.stride;
        &self.lines[place / SLOTS_PER_LINE][place % SLOTS_PER_LINE]
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
    board: Board,
}

const NEVER: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, Default)]
struct GateState {
    n_arrived: u32,
    open: bool,
}

impl Crew {
    pub fn new(n_threads: u32, padding: Padding) -> Self {
        Self {
            n_threads,
            gates: Mutex::default(),
            changed: Condvar::new(),
            n_at_start: Line::default(),
            opened_ns: Line::default(),
            abandoned: AtomicBool::new(false),
            board: Board::new(n_threads, padding),
        }
    }

    /// Returns the flag that ends the window.
    pub fn stop(&self) -> &AtomicBool {
        &self.board.slot(0).stop
    }

    /// Returns the operations that a thread completed; written by it alone.
    pub fn progress(&self, thread_idx: u32) -> &AtomicU64 {
        &self.board.slot(thread_idx as usize + 1).progress
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
        (0..self.n_threads).map(|thread_idx| self.progress(thread_idx).load(Relaxed)).sum()
    }

    /// Gives the trial up and wakes whoever waits.
    pub fn abandon(&self) {
        self.abandoned.store(true, Release);
        self.opened_ns.store(NEVER, Release);
        self.stop().store(true, Relaxed);
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

#[cfg(all(test, not(feature = "schedules")))]
mod tests {
    use super::*;

    /// Where the flag and the progress of three threads lie, in bytes from the flag's slot.
    fn places(padding: Padding) -> [usize; 4] {
        let crew = Crew::new(3, padding);
        let flag = std::ptr::from_ref(crew.stop()).addr();
        let progress = [0, 1, 2].map(|thread_idx| std::ptr::from_ref(crew.progress(thread_idx)).addr());
        let line = flag & !127;
        [flag - line, progress[0] - line, progress[1] - line, progress[2] - line]
    }

    #[test]
    fn padded_each_has_its_own_pair_of_lines_and_packed_all_share_one() {
        assert_eq!(places(Padding::Lines).map(|place| place / 128), [0, 1, 2, 3]);
        assert_eq!(places(Padding::None).map(|place| place / 64), [0; 4]);
    }

    #[test]
    fn packed_or_not_everyone_has_a_place_of_its_own() {
        for padding in [Padding::Lines, Padding::None] {
            let crew = Crew::new(20, padding);
            (0..20).for_each(|thread_idx| crew.progress(thread_idx).store(1 << thread_idx, Relaxed));
            assert_eq!(crew.completed(), (1 << 20) - 1, "{padding:?}");
            assert!(!crew.stop().load(Relaxed));
        }
    }
}
