//! Control: slows down as a trial grows, because operations leave debris that every later one of their thread walks.
//!
//! Must be caught by the checks for drift within a trial (`trial-length`): the throughput of a window falls from one
//! sample to the next, as with marked nodes that nobody unlinks. Nothing else should: the structure underneath is sound,
//! the debris is freed when its thread leaves, and all threads have theirs.

use std::hint::black_box;

use super::{
    chain::Chain,
    dose::{self, Nth},
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

const ONE_IN: ParameterInfo = dose::one_in(
    10_000,
    "Of so many operations of one thread one leaves debris. By default an operation of 100 ns takes twice as long after \
     some half a million.",
);

/// Registry entry.
pub static CONTROL: Structure = Structure {
    info: Info {
        name: "control-decay",
        title: "control: decays",
        source: "none: nm14 with a planted fault",
        deviations: &["one operation in `one_in` leaves debris that every later one of its thread walks"],
        parameters: &[ONE_IN],
        ..nm14::STRUCTURE.info
    },
    drivers: &[
        (Reclamation::None, &SetDriver::<Faulty<Decay, Nm14<NoReclamation>>>::NEW),
        (Reclamation::Epoch, &SetDriver::<Faulty<Decay, Nm14<Epoch>>>::NEW),
    ],
};

/// The fault.
pub struct Decay {
    one_in: u64,
}

impl Fault for Decay {
    type Thread<'f> = Thread;

    fn new(parameters: &Parameters) -> Self {
        Self { one_in: dose::read(parameters, &ONE_IN) }
    }

    fn thread(&self) -> Thread {
        Thread { debris: Chain::new(), nth: Nth::new(self.one_in) }
    }
}

/// The debris of one thread.
pub struct Thread {
    debris: Chain<u64>,
    nth: Nth,
}

impl FaultThread for Thread {
    #[inline]
    fn before(&mut self) {
        if self.nth.count() {
            self.debris.push(self.debris.len());
        }
        black_box(self.debris.iter().fold(0_u64, |sum, piece| sum.wrapping_add(*piece)));
    }
}
