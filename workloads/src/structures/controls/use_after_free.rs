//! Control: now and then a node is read after it was freed.
//!
//! Must be caught by memcheck (an invalid read) and by AddressSanitizer. Nothing else should: what is read is thrown
//! away, so every answer is right, and every node is freed once.
//!
//! The one control that is not memory safe. It reads one word, and never writes. The block is not expected to be unmapped
//! between two instructions, but an allocator may do so, and then the trial ends by a signal, which is caught as well.

use std::{hint::black_box, ptr};

use super::{
    dose,
    forest::{self, End, FirstWord, Forest, Packed},
};
use crate::{
    harness::SetDriver,
    protocol::Reclamation,
    structures::{Info, ParameterInfo, Structure},
};

const ONE_IN: ParameterInfo = dose::one_in(
    100,
    "Of so many removed nodes, counted by each thread, one is read after it was freed. Low enough for a run under \
     memcheck, which is short.",
);

/// Registry entry.
pub static CONTROL: Structure = Structure {
    info: Info {
        name: "control-use-after-free",
        title: "control: reads freed memory",
        source: "none: search trees under locks with a planted fault",
        deviations: &["one removed node in `one_in` is read after it was freed"],
        parameters: &[ONE_IN],
        ..forest::SOUND.info
    },
    drivers: &[
        (Reclamation::None, &SetDriver::<Forest<Packed, ReadAfter>>::NEW),
        (Reclamation::Epoch, &SetDriver::<Forest<Packed, ReadAfter>>::NEW),
    ],
};

/// The fault.
pub struct ReadAfter;

impl End for ReadAfter {
    const ONE_IN: ParameterInfo = ONE_IN;

    fn end<N: FirstWord>(node: Box<N>) {
        // Through `black_box`, so that the compiler knows nothing of where the address came from.
        let word = black_box(ptr::from_ref(&*node).cast::<u64>());
        drop(node);
        // SAFETY: none, this is the fault. `word` was aligned and allocated until the line above; the read is volatile so
        // that it happens, and its result is not used.
        black_box(unsafe { word.read_volatile() });
    }
}
