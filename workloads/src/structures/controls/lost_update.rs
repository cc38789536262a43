//! Control: now and then an insertion answers true and keeps nothing.
//!
//! Must be caught by the checksum (and by whatever compares answers with a model): the walk finds fewer keys than the
//! insertions claim. Nothing else should: the structure underneath is sound, so its invariants hold, it leaks nothing,
//! and an insertion that is left out once in a million costs no thread any time.

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
    1_000_000,
    "Of so many insertions of one thread that answer true, one keeps nothing. As rare as a race that a test must run long \
     to meet.",
);

/// Registry entry.
pub static CONTROL: Structure = Structure {
    info: Info {
        name: "control-lost-update",
        title: "control: lost update",
        source: "none: nm14 with a planted fault",
        deviations: &["one insertion in `one_in` answers true and keeps nothing"],
        parameters: &[ONE_IN],
        ..nm14::STRUCTURE.info
    },
    drivers: &[
        (Reclamation::None, &SetDriver::<Faulty<LostUpdate, Nm14<NoReclamation>>>::NEW),
        (Reclamation::Epoch, &SetDriver::<Faulty<LostUpdate, Nm14<Epoch>>>::NEW),
    ],
};

/// The fault.
pub struct LostUpdate {
    one_in: u64,
}

impl Fault for LostUpdate {
    type Thread<'f> = Thread;

    fn new(parameters: &Parameters) -> Self {
        Self { one_in: dose::read(parameters, &ONE_IN) }
    }

    fn thread(&self) -> Thread {
        Thread(Nth::new(self.one_in))
    }
}

/// Counts the insertions that answered true.
pub struct Thread(Nth);

impl FaultThread for Thread {
    #[inline]
    fn insert(&mut self, base: &mut impl SetHandle, key: u64, value: u64) -> bool {
        // The key must be absent, or true would be wrong already, and not for what is lost.
        let inserted = (self.0.is_next() && !base.contains(key)) || base.insert(key, value);
        if inserted {
            self.0.count();
        }
        inserted
    }
}
