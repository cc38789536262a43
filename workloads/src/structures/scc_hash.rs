//! The hash map of the crate scc, with its defaults.
//!
//! Source: crate scc 3.8.8, `HashMap`: one array of buckets of 32 entries, each under a reader-writer lock, with
//! incremental resizing.
//! Progress: blocking, look-ups included. The locks serve threads in the order in which they came: more threads than
//! CPUs on one bucket can fall into a convoy that is a thousand times slower than without.
//! Deviations: keys are hashed by SipHash under random keys, the crate's default, so that the layout differs from trial
//! to trial.
//! Reclamation: entries lie in the buckets. Arrays that were outgrown, or shrunk from, go to the epochs of crate sdd,
//! which all maps of the process share, whatever scheme is asked for. The crate does not tell what it freed. Dropping
//! the map advances the epochs until everything is freed, provided that no other thread is inside an operation.
//! Invariants: I1 the lengths of the buckets add up to the number of keys in the iteration.

use scc::HashMap;

use crate::{
    families::set::{ConcurrentSet, Parameters, SetHandle},
    protocol::{Audit, Reclamation},
    structures::{Adt, Info, Insert, Memory, Reclaims, Search, Semantics, Structure, sdd::SccDriver, walk::Walk},
};

/// Registry entry.
pub static STRUCTURE: Structure = Structure {
    info: Info {
        name: "scc-hash",
        title: "scc hash map",
        source: "crate scc 3.8.8, HashMap",
        progress: "blocking",
        semantics: Semantics { adt: Adt::HashDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::Own,
        memory: Memory::Own,
        search: Search::Constant,
        deviations: &[
            "the crate hashes by SipHash with random keys, so that the layout differs from trial to trial",
            "outgrown tables go to the epochs of crate sdd, whatever scheme is asked for",
            "records of threads lie in arenas that crate sdd keeps for the process (8 KiB for 64 threads)",
        ],
        invariants: &["I1 the lengths of the buckets add up to the number of keys"],
        parameters: &[],
    },
    drivers: &[(Reclamation::None, &SccDriver::<SccHash>::NEW), (Reclamation::Epoch, &SccDriver::<SccHash>::NEW)],
};

/// A `scc::HashMap`.
pub struct SccHash(HashMap<u64, u64>);

impl ConcurrentSet for SccHash {
    type Handle<'s> = Handle<'s>;

    fn new(_parameters: &Parameters) -> Self {
        Self(HashMap::new())
    }

    fn handle(&self) -> Handle<'_> {
        Handle(&self.0)
    }

    fn audit(&mut self) -> Audit {
        let mut walk = Walk::new();
        self.0.iter_sync(|&key, _| {
            walk.unordered_key(key);
            true
        });
        walk.expect_size(self.0.len(), "I1");
        walk.finish()
    }

    /// `None`: the crate does not tell.
    fn unreclaimed(&self) -> Option<u64> {
        None
    }
}

/// A thread's access; the crate keeps its state of a thread in thread-local storage.
pub struct Handle<'s>(&'s HashMap<u64, u64>);

impl SetHandle for Handle<'_> {
    fn insert(&mut self, key: u64, value: u64) -> bool {
        self.0.insert_sync(key, value).is_ok()
    }

    fn remove(&mut self, key: u64) -> bool {
        self.0.remove_sync(&key).is_some()
    }

    fn contains(&mut self, key: u64) -> bool {
        self.0.contains_sync(&key)
    }
}
