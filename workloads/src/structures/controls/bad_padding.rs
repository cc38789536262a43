//! Control: every field of a node is on a pair of cache lines of its own.
//!
//! Must be caught by the layout check: a node of four words takes 512 bytes, and a visit, which needs the key and one
//! link, touches two pairs of lines where one line would do. Nothing else should: padding changes no answer, leaks
//! nothing and shares nothing.

use super::forest::{self, Forest, Freed, Node, Padding};
use crate::{
    harness::SetDriver,
    protocol::Reclamation,
    structures::{Info, Structure},
};

/// Registry entry.
pub static CONTROL: Structure = Structure {
    info: Info {
        name: "control-bad-padding",
        title: "control: nodes padded badly",
        source: "none: search trees under locks with a planted fault",
        deviations: &["every field of a node is on 128 bytes of its own"],
        ..forest::SOUND.info
    },
    drivers: &[
        (Reclamation::None, &SetDriver::<Forest<Lines, Freed>>::NEW),
        (Reclamation::Epoch, &SetDriver::<Forest<Lines, Freed>>::NEW),
    ],
};

/// Nothing, aligned to the pair of lines that are fetched together.
#[derive(Default)]
#[repr(align(128))]
pub struct Lines;

impl Padding for Lines {}

/// Size of a node.
pub const NODE_BYTES: usize = size_of::<Node<Lines>>();

const _: () = assert!(NODE_BYTES == 512 && size_of::<Node<forest::Packed>>() == 32);
