//! The B+ tree of the crate scc.
//!
//! Source: crate scc 3.8.8, `TreeIndex`: a B+ tree whose leaves hold up to 15 entries that are never overwritten.
//! Progress: look-ups take no lock; updates wait while a node on their way is split or merged.
//! Deviations: none.
//! Reclamation: an entry that was removed stays in its leaf until the leaf is replaced. Leaves and nodes go to the
//! epochs of crate sdd, which all maps of the process share, whatever scheme is asked for. The crate does not tell what
//! it freed. Dropping the tree frees all that it retired.
//! Invariants: I1 keys strictly increase in iteration order.

use scc::{Guard, TreeIndex};

use crate::{
    families::set::{ConcurrentSet, Parameters, SetHandle},
    protocol::{Audit, Reclamation},
    structures::{Adt, Info, Insert, Memory, Reclaims, Search, Semantics, Structure, sdd::SccDriver, walk::Walk},
};

/// Registry entry.
pub static STRUCTURE: Structure = Structure {
    info: Info {
        name: "scc-tree",
        title: "scc B+ tree",
        source: "crate scc 3.8.8, TreeIndex",
        progress: "look-ups take no lock; updates wait for splits and merges",
        semantics: Semantics { adt: Adt::OrderedDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::Own,
        memory: Memory::Own,
        search: Search::Logarithmic,
        deviations: &[
            "nodes and leaves go to the epochs of crate sdd, whatever scheme is asked for",
            "records of threads lie in arenas that crate sdd keeps for the process (8 KiB for 64 threads)",
        ],
        invariants: &["I1 keys strictly increase in iteration order"],
        parameters: &[],
    },
    drivers: &[(Reclamation::None, &SccDriver::<SccTree>::NEW), (Reclamation::Epoch, &SccDriver::<SccTree>::NEW)],
};

/// A `scc::TreeIndex`.
pub struct SccTree(TreeIndex<u64, u64>);

impl ConcurrentSet for SccTree {
    type Handle<'s> = Handle<'s>;

    fn new(_parameters: &Parameters) -> Self {
        Self(TreeIndex::new())
    }

    fn handle(&self) -> Handle<'_> {
        Handle(&self.0)
    }

    fn audit(&mut self) -> Audit {
        let mut walk = Walk::new();
        for (&key, _) in self.0.iter(&Guard::new()) {
            walk.key(key, "I1");
        }
        walk.finish()
    }

    /// `None`: the crate does not tell.
    fn unreclaimed(&self) -> Option<u64> {
        None
    }
}

/// A thread's access; the crate keeps its state of a thread in thread-local storage.
pub struct Handle<'s>(&'s TreeIndex<u64, u64>);

impl SetHandle for Handle<'_> {
    fn insert(&mut self, key: u64, value: u64) -> bool {
        self.0.insert_sync(key, value).is_ok()
    }

    fn remove(&mut self, key: u64) -> bool {
        self.0.remove_sync(&key)
    }

    fn contains(&mut self, key: u64) -> bool {
        self.0.contains(&key)
    }
}
