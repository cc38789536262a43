//! The sharded hash map of the crate dashmap, with its defaults.
//!
//! Source: crate dashmap 6.2.1, `DashMap`: an array of hash tables (hashbrown), each under a reader-writer lock.
//! Progress: blocking, look-ups included. Threads that wait spin, and then sleep in the one table of parked threads that
//! parking_lot keeps for the process.
//! Deviations: four shards per CPU that the process may use when it makes its first map, rounded up to a power of two.
//! Keys are hashed by SipHash under random keys, so that the layout differs from trial to trial. Both are the crate's
//! defaults.
//! Reclamation: entries lie in the tables, and a table that was outgrown is freed at once under the lock of its shard,
//! so every scheme is the same.
//! Invariants: I1 the lengths of the shards add up to the number of keys in the iteration.

use dashmap::{DashMap, Entry};

use crate::{
    families::set::{ConcurrentSet, Parameters, SetHandle},
    harness::{SetDriver, under_every_scheme},
    protocol::Audit,
    structures::{Adt, Info, Insert, Memory, Reclaims, Search, Semantics, Structure, walk::Walk},
};

/// Registry entry.
pub static STRUCTURE: Structure = Structure {
    info: Info {
        name: "dashmap",
        title: "DashMap",
        source: "crate dashmap 6.2.1, DashMap",
        progress: "blocking",
        semantics: Semantics { adt: Adt::HashDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::AtOnce,
        memory: Memory::Own,
        search: Search::Constant,
        deviations: &[
            "four shards per CPU allowed at the first use, rounded up to a power of two",
            "waiting threads share a table that parking_lot keeps for the process and never frees (about 1 KiB)",
            "the crate hashes by SipHash with random keys, so that the layout differs from trial to trial",
        ],
        invariants: &["I1 the lengths of the shards add up to the number of keys"],
        parameters: &[],
    },
    drivers: &under_every_scheme(&SetDriver::<Dash>::NEW),
};

/// A `DashMap`.
pub struct Dash(DashMap<u64, u64>);

impl ConcurrentSet for Dash {
    type Handle<'s> = Handle<'s>;

    fn new(_parameters: &Parameters) -> Self {
        Self(DashMap::new())
    }

    fn handle(&self) -> Handle<'_> {
        Handle(&self.0)
    }

    fn audit(&mut self) -> Audit {
        let mut walk = Walk::new();
        for entry in &self.0 {
            walk.unordered_key(*entry.key());
        }
        walk.expect_size(self.0.len(), "I1");
        walk.finish()
    }

    fn unreclaimed(&self) -> Option<u64> {
        Some(0)
    }
}

/// A thread's access; it has no state of its own.
pub struct Handle<'s>(&'s DashMap<u64, u64>);

impl SetHandle for Handle<'_> {
    fn insert(&mut self, key: u64, value: u64) -> bool {
        match self.0.entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert(value);
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    fn remove(&mut self, key: u64) -> bool {
        self.0.remove(&key).is_some()
    }

    fn contains(&mut self, key: u64) -> bool {
        self.0.contains_key(&key)
    }
}
