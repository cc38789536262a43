//! Control: each operation, look-ups too, writes a counter of the thread's own on a line that all threads share.
//!
//! Must be caught by the checks for false sharing (and, since look-ups alone do not scale, by `read-only` and `empty`).
//! Nothing else should: no thread reads another's counter, so every answer is that of the sound structure; all threads
//! suffer alike, so it is fair; nothing is allocated.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

use super::faulty::{Fault, FaultThread, Faulty};
use crate::{
    families::set::Parameters,
    harness::SetDriver,
    protocol::Reclamation,
    reclaim::{Epoch, NoReclamation},
    structures::{
        Info, Structure,
        nm14::{self, Nm14},
    },
};

/// Registry entry.
pub static CONTROL: Structure = Structure {
    info: Info {
        name: "control-false-sharing",
        title: "control: false sharing",
        source: "none: nm14 with a planted fault",
        deviations: &["each operation writes a counter of its thread on a cache line that all threads share"],
        ..nm14::STRUCTURE.info
    },
    drivers: &[
        (Reclamation::None, &SetDriver::<Faulty<FalseSharing, Nm14<NoReclamation>>>::NEW),
        (Reclamation::Epoch, &SetDriver::<Faulty<FalseSharing, Nm14<Epoch>>>::NEW),
    ],
};

/// Bytes of a cache line, on which as many threads have their counters.
const LINE_BYTES: usize = 64;

/// The fault: one line of counters.
#[repr(align(64))]
pub struct FalseSharing {
    counters: [AtomicU8; LINE_BYTES],
    registered: Registered,
}

/// How many threads were registered; on a line of its own, since only registration may write it.
#[repr(align(128))]
struct Registered(AtomicUsize);

impl Fault for FalseSharing {
    type Thread<'f> = Thread<'f>;

    fn new(_parameters: &Parameters) -> Self {
        Self { counters: [const { AtomicU8::new(0) }; LINE_BYTES], registered: Registered(AtomicUsize::new(0)) }
    }

    fn thread(&self) -> Thread<'_> {
        // Relaxed: only a source of numbers that differ.
        let counter_idx = self.registered.0.fetch_add(1, Relaxed) % LINE_BYTES;
        Thread { counter: &self.counters[counter_idx] }
    }
}

/// A thread's counter. Above 64 threads some share theirs, and lose counts that nobody reads.
pub struct Thread<'f> {
    counter: &'f AtomicU8,
}

impl FaultThread for Thread<'_> {
    #[inline]
    fn before(&mut self) {
        // Relaxed, and no read-modify-write: what costs is the line, which the store must own.
        self.counter.store(self.counter.load(Relaxed).wrapping_add(1), Relaxed);
    }
}
