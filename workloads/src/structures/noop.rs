//! The set that does nothing: what the harness itself costs.
//!
//! Source: none; the empty structure of the sanity checks.
//! Progress: wait-free, a few instructions.
//! Deviations: not a set. Updates never take effect, and `contains` answers from the key alone, so that the loop can
//! neither skip drawing the key nor predict the answer from the structure.
//! Reclamation: it allocates nothing, so every scheme is the same.
//! Invariants: I1 no update takes effect, so that the conservation law holds with size 0.

use std::hint::black_box;

use crate::{
    families::set::{ConcurrentSet, Parameters, SetHandle},
    harness::{SetDriver, under_every_scheme},
    protocol::Audit,
    structures::{Adt, Info, Insert, Memory, Reclaims, Search, Semantics, Structure},
};

/// Registry entry.
pub static STRUCTURE: Structure = Structure {
    info: Info {
        name: "noop",
        title: "no structure",
        source: "none: the bound that the harness sets",
        progress: "wait-free",
        semantics: Semantics { adt: Adt::Nothing, insert: Insert::Nothing, key_bits: 64, value_bits: 0 },
        reclaims: Reclaims::Nothing,
        memory: Memory::Nothing,
        search: Search::Constant,
        deviations: &["not a set: updates take no effect and `contains` answers from the key alone"],
        invariants: &["I1 no update takes effect"],
        parameters: &[],
    },
    drivers: &under_every_scheme(&SetDriver::<Noop>::NEW),
};

/// The set that does nothing.
pub struct Noop;

impl ConcurrentSet for Noop {
    type Handle<'s> = Handle;

    fn new(_parameters: &Parameters) -> Self {
        Self
    }

    fn handle(&self) -> Handle {
        Handle
    }

    fn audit(&mut self) -> Audit {
        Audit::default()
    }

    fn unreclaimed(&self) -> Option<u64> {
        Some(0)
    }
}

/// A thread's access to nothing.
pub struct Handle;

impl SetHandle for Handle {
    fn insert(&mut self, key: u64, value: u64) -> bool {
        // A real set uses both, so the loop must have computed both.
        black_box((key, value));
        false
    }

    fn remove(&mut self, key: u64) -> bool {
        black_box(key);
        false
    }

    /// True for odd keys.
    fn contains(&mut self, key: u64) -> bool {
        key & 1 == 1
    }
}
