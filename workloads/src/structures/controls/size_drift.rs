//! Control: its size drifts away from what its operations answered, by keys that nobody inserted.
//!
//! Must be caught by the checksum, and by it alone: every answer is right, since the keys that creep in are none that
//! anybody asks for (they count down from the largest one), so neither a model nor the linearizability checker sees
//! anything. The structure underneath is sound and frees what crept in like everything else.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{
    dose::{self, Nth},
    faulty::{Fault, FaultThread, Faulty},
};
use crate::{
    families::set::{Parameters, SetHandle},
    harness::SetDriver,
    protocol::Reclamation,
    reclaim::{Epoch, NoReclamation},
    structures::{
        Info, ParameterInfo, Structure,
        nm14::{self, Nm14},
    },
};

const ONE_IN: ParameterInfo = dose::one_in(
    100_000,
    "After so many insertions of one thread that answer true, a key that nobody inserted stays in the structure.",
);

/// Registry entry.
pub static CONTROL: Structure = Structure {
    info: Info {
        name: "control-size-drift",
        title: "control: size drifts",
        source: "none: nm14 with a planted fault",
        deviations: &["one insertion in `one_in` leaves a second key, which nobody inserted"],
        parameters: &[ONE_IN],
        ..nm14::STRUCTURE.info
    },
    drivers: &[
        (Reclamation::None, &SetDriver::<Faulty<SizeDrift, Nm14<NoReclamation>>>::NEW),
        (Reclamation::Epoch, &SetDriver::<Faulty<SizeDrift, Nm14<Epoch>>>::NEW),
    ],
};

/// The fault.
pub struct SizeDrift {
    one_in: u64,
    n_strays: AtomicU64,
}

impl Fault for SizeDrift {
    type Thread<'f> = Thread<'f>;

    fn new(parameters: &Parameters) -> Self {
        Self { one_in: dose::read(parameters, &ONE_IN), n_strays: AtomicU64::new(0) }
    }

    fn thread(&self) -> Thread<'_> {
        Thread { n_strays: &self.n_strays, nth: Nth::new(self.one_in) }
    }
}

/// Counts the insertions that answered true.
pub struct Thread<'f> {
    n_strays: &'f AtomicU64,
    nth: Nth,
}

impl FaultThread for Thread<'_> {
    #[inline]
    fn insert(&mut self, base: &mut impl SetHandle, key: u64, value: u64) -> bool {
        let inserted = base.insert(key, value);
        if inserted && self.nth.count() {
            // Relaxed: only a source of numbers that differ.
            let stray = u64::MAX - self.n_strays.fetch_add(1, Relaxed);
            base.insert(stray, stray);
        }
        inserted
    }
}
