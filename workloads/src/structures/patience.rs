//! Waiting for a lock that another thread holds.
//!
//! For locks that live inside nodes, where nothing is left for a thread to sleep on. A critical section is a few stores,
//! so a holder that runs is done within some cache misses. A holder that does not run has been preempted, and on a
//! machine with fewer cores than threads it may be waiting for this very core: then spinning only keeps it away.

use crate::sync::{hint, thread};

/// Rounds of spinning before the first yield. Round `n` pauses `2^n` times, so all of them together pause 63 times:
/// 3 to 4 µs where a pause takes 140 cycles, many times a critical section with its misses.
const N_SPINS: u32 = 6;

/// How long one operation has waited.
pub(crate) struct Patience {
    n_rounds: u32,
}

impl Patience {
    /// Has not waited yet.
    pub(crate) fn new() -> Self {
        Self { n_rounds: 0 }
    }

    /// Waits longer than the last time, and in the end gives the core away.
    #[cold]
    pub(crate) fn wait(&mut self) {
        if self.n_rounds == N_SPINS {
            thread::yield_now();
            return;
        }
        for _ in 0..1_u32 << self.n_rounds {
            hint::spin_loop();
        }
        self.n_rounds += 1;
    }
}
