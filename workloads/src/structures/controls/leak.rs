//! Control: now and then a removed node is not freed.
//!
//! Must be caught by the leak checks, to the byte: memcheck's definite leaks, and the balance of accounting after the
//! drop. Nothing else should: the structure says that nothing is unreclaimed, and a node that nobody frees is in nobody's
//! way.

use std::mem;

use super::{
    dose,
    forest::{self, End, FirstWord, Forest, Node, Packed},
};
use crate::{
    harness::SetDriver,
    protocol::Reclamation,
    structures::{Info, ParameterInfo, Structure},
};

const ONE_IN: ParameterInfo = dose::one_in(
    10,
    "Of so many removed nodes, counted by each thread, one is not freed. Low enough for the few removals of an accounting \
     trial.",
);

/// Registry entry.
pub static CONTROL: Structure = Structure {
    info: Info {
        name: "control-leak",
        title: "control: leaks",
        source: "none: search trees under locks with a planted fault",
        deviations: &["one removed node in `one_in`, of 32 bytes, is not freed"],
        parameters: &[ONE_IN],
        ..forest::SOUND.info
    },
    drivers: &[
        (Reclamation::None, &SetDriver::<Forest<Packed, Leaked>>::NEW),
        (Reclamation::Epoch, &SetDriver::<Forest<Packed, Leaked>>::NEW),
    ],
};

/// Bytes of each leak: one block, without pointers into others.
pub const LEAK_BYTES: usize = size_of::<Node<Packed>>();

const _: () = assert!(LEAK_BYTES == 32);

/// The fault.
pub struct Leaked;

impl End for Leaked {
    const ONE_IN: ParameterInfo = ONE_IN;

    fn end<N: FirstWord>(node: Box<N>) {
        mem::forget(node);
    }
}
