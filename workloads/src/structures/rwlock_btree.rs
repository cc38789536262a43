//! The B-tree of the standard library under one readers-writer lock: look-ups run side by side.
//!
//! Source: `parking_lot::RwLock` over `std::collections::BTreeMap`.
//! Progress: blocking; the lock is eventually fair.
//! Deviations: threads that wait are parked in a table that parking_lot keeps for the whole process. Two instances
//! share that table, and its memory (about 1 KiB, allocated the first time that any thread waits, and again when many
//! more threads wait) is not the structure's and is never freed.
//! Reclamation: nodes are freed at once under the lock, so every scheme is the same.
//! Invariants: I1 keys strictly increase in iteration order. I2 the length that the map keeps is the number of keys.

use std::collections::{BTreeMap, btree_map::Entry};

use crate::sync::RwLock;
use crate::{
    families::set::{ConcurrentSet, Parameters, RangeAnswer, RangeHandle, SetHandle, last_of_range},
    harness::{RangeSetDriver, under_every_scheme},
    protocol::Audit,
    structures::{Adt, Info, Insert, Memory, Reclaims, Search, Semantics, Structure, walk::Walk},
};

/// Registry entry.
pub static STRUCTURE: Structure = Structure {
    info: Info {
        name: "rwlock-btree",
        title: "B-tree, one readers-writer lock",
        source: "parking_lot::RwLock 0.12 over std::collections::BTreeMap",
        progress: "blocking",
        semantics: Semantics { adt: Adt::OrderedDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::AtOnce,
        memory: Memory::Own,
        search: Search::Logarithmic,
        deviations: &[
            "waiting threads share a table that parking_lot keeps for the process and never frees (about 1 KiB)",
        ],
        invariants: &["I1 keys strictly increase in iteration order", "I2 the map's length is its number of keys"],
        parameters: &[],
    },
    drivers: &under_every_scheme(&RangeSetDriver::<RwlockBtree>::NEW),
};

/// A `BTreeMap` under one `RwLock`.
pub struct RwlockBtree(RwLock<BTreeMap<u64, u64>>);

impl ConcurrentSet for RwlockBtree {
    type Handle<'s> = Handle<'s>;

    fn new(_parameters: &Parameters) -> Self {
        Self(RwLock::new(BTreeMap::new()))
    }

    fn handle(&self) -> Handle<'_> {
        Handle(self)
    }

    fn audit(&mut self) -> Audit {
        let map = self.0.get_mut();
        let mut walk = Walk::new();
        for &key in map.keys() {
            walk.key(key, "I1");
        }
        walk.expect_size(map.len(), "I2");
        walk.finish()
    }

    fn unreclaimed(&self) -> Option<u64> {
        Some(0)
    }
}

/// A thread's access; it has no state of its own.
pub struct Handle<'s>(&'s RwlockBtree);

impl SetHandle for Handle<'_> {
    fn insert(&mut self, key: u64, value: u64) -> bool {
        match self.0.0.write().entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert(value);
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    fn remove(&mut self, key: u64) -> bool {
        self.0.0.write().remove(&key).is_some()
    }

    fn contains(&mut self, key: u64) -> bool {
        self.0.0.read().contains_key(&key)
    }
}

impl RangeHandle for Handle<'_> {
    /// Takes effect while it holds the lock.
    fn range(&mut self, lo: u64, n: u64) -> RangeAnswer {
        let Some(last) = last_of_range(lo, n) else { return RangeAnswer::default() };
        self.0.0.read().range(lo..=last).map(|(&key, _)| key).collect()
    }
}
