//! Control: each insertion allocates a descriptor before its node, and gives it back much later.
//!
//! Must be caught by the layout check: nodes and descriptors alternate in memory (node, descriptor, node, descriptor),
//! so that half of each line and page that a search touches is of no use to it. Nothing else should: the structure
//! underneath is sound, descriptors are freed when their thread leaves, and all threads have them.

use super::{
    chain::Chain,
    dose,
    faulty::{Fault, FaultThread, Faulty},
};
use crate::{
    families::set::{Parameters, SetHandle},
    harness::SetDriver,
    protocol::Reclamation,
    reclaim::{Epoch, NoReclamation},
    structures::{
        Info, ParameterInfo, Structure,
        bcco10::{self, Bcco10},
    },
};

const HELD: ParameterInfo = ParameterInfo {
    name: "held",
    default: 1 << 20,
    range: (1, 1 << 30),
    meaning: "Number of descriptors that a thread holds before it gives all of them back. As large as a prefill, since \
              the nodes that come after would fill the gaps.",
};

/// Registry entry.
pub static CONTROL: Structure = Structure {
    info: Info {
        name: "control-interleaved",
        title: "control: nodes interleaved",
        source: "none: bcco10 with a planted fault",
        deviations: &["each insertion allocates a descriptor before its node, and gives it back when many are held"],
        parameters: &[HELD],
        ..bcco10::STRUCTURE.info
    },
    drivers: &[
        (Reclamation::None, &SetDriver::<Faulty<Interleaved, Bcco10<NoReclamation>>>::NEW),
        (Reclamation::Epoch, &SetDriver::<Faulty<Interleaved, Bcco10<Epoch>>>::NEW),
    ],
};

/// Size of a descriptor: that of a node of bcco10, so that allocators that keep sizes apart mix the two as well.
pub const DESCRIPTOR_BYTES: usize = Chain::<Descriptor>::BLOCK_BYTES;

const _: () = assert!(DESCRIPTOR_BYTES == 48);

/// What an algorithm would note of an insertion that others may help with, next to the link to the one before.
type Descriptor = [u64; 5];

/// The fault.
pub struct Interleaved {
    held: u64,
}

impl Fault for Interleaved {
    type Thread<'f> = Thread;

    fn new(parameters: &Parameters) -> Self {
        Self { held: dose::read(parameters, &HELD) }
    }

    fn thread(&self) -> Thread {
        Thread { descriptors: Chain::new(), held: self.held }
    }
}

/// The descriptors of one thread, which go when it leaves.
pub struct Thread {
    descriptors: Chain<Descriptor>,
    held: u64,
}

impl FaultThread for Thread {
    fn insert(&mut self, base: &mut impl SetHandle, key: u64, value: u64) -> bool {
        self.descriptors.push([key, value, 0, 0, 0]);
        let inserted = base.insert(key, value);
        if !inserted {
            self.descriptors.pop();
        } else if self.descriptors.len() >= self.held {
            self.descriptors.clear();
        }
        inserted
    }
}
