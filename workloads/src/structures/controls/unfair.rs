//! Control: one thread gets most of the operations, the others wait before each of theirs.
//!
//! Must be caught by the fairness check. Nothing else should: the structure underneath is sound, the waiting threads do
//! go on, and the throughput of the favourite alone is nothing out of the ordinary. One thread alone is the favourite.

use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use super::{
    dose,
    faulty::{Fault, FaultThread, Faulty},
};
use crate::{
    families::set::Parameters,
    harness::SetDriver,
    protocol::Reclamation,
    reclaim::{Epoch, NoReclamation},
    structures::{
        Info, ParameterInfo, Structure,
        nm14::{self, Nm14},
    },
};

const PAUSES: ParameterInfo = ParameterInfo {
    name: "pauses",
    default: 1000,
    range: (1, 1_000_000),
    meaning: "Pause instructions that a thread waits before each operation, unless it is the favourite. One takes 5 to 50 \
              ns, so by default ten times as long as an operation at least.",
};

/// Registry entry.
pub static CONTROL: Structure = Structure {
    info: Info {
        name: "control-unfair",
        title: "control: unfair",
        source: "none: nm14 with a planted fault",
        deviations: &["all threads but one wait before each operation"],
        parameters: &[PAUSES],
        ..nm14::STRUCTURE.info
    },
    drivers: &[
        (Reclamation::None, &SetDriver::<Faulty<Unfair, Nm14<NoReclamation>>>::NEW),
        (Reclamation::Epoch, &SetDriver::<Faulty<Unfair, Nm14<Epoch>>>::NEW),
    ],
};

/// The fault.
pub struct Unfair {
    has_favourite: AtomicBool,
    pauses: u64,
}

impl Fault for Unfair {
    type Thread<'f> = Thread<'f>;

    fn new(parameters: &Parameters) -> Self {
        Self { has_favourite: AtomicBool::new(false), pauses: dose::read(parameters, &PAUSES) }
    }

    /// The first of the registered threads is the favourite, until it leaves.
    fn thread(&self) -> Thread<'_> {
        // Relaxed: whoever swaps first decides; nothing else is passed on by it.
        let is_favourite = !self.has_favourite.swap(true, Relaxed);
        Thread { fault: self, is_favourite }
    }
}

/// A thread, favourite or not.
pub struct Thread<'f> {
    fault: &'f Unfair,
    is_favourite: bool,
}

impl FaultThread for Thread<'_> {
    #[inline]
    fn before(&mut self) {
        if !self.is_favourite {
            (0..self.fault.pauses).for_each(|_| spin_loop());
        }
    }
}

impl Drop for Thread<'_> {
    fn drop(&mut self) {
        if self.is_favourite {
            self.fault.has_favourite.store(false, Relaxed);
        }
    }
}
