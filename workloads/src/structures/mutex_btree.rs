//! The B-tree of the standard library under one mutex: the baseline that every concurrent set must beat.
//!
//! Source: `std::sync::Mutex` over `std::collections::BTreeMap`. The mutex of the standard library was chosen over
//! parking_lot's because a waiting thread sleeps on the futex in the mutex itself: two instances share no table of
//! parked threads, and waiting allocates nothing.
//! Progress: blocking; the lock is not fair.
//! Deviations: none.
//! Reclamation: nodes are freed at once under the lock, so every scheme is the same.
//! Invariants: I1 keys strictly increase in iteration order. I2 the length that the map keeps is the number of keys.

use std::collections::{BTreeMap, btree_map::Entry};

use crate::sync::{Mutex, MutexGuard};
use crate::{
    families::set::{ConcurrentSet, Parameters, RangeAnswer, RangeHandle, SetHandle, last_of_range},
    harness::{RangeSetDriver, under_every_scheme},
    protocol::Audit,
    structures::{Adt, Info, Insert, Memory, Reclaims, Search, Semantics, Structure, walk::Walk},
};

/// Registry entry.
pub static STRUCTURE: Structure = Structure {
    info: Info {
        name: "mutex-btree",
        title: "B-tree, one mutex",
        source: "std::sync::Mutex over std::collections::BTreeMap",
        progress: "blocking",
        semantics: Semantics { adt: Adt::OrderedDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::AtOnce,
        memory: Memory::Own,
        search: Search::Logarithmic,
        deviations: &[],
        invariants: &["I1 keys strictly increase in iteration order", "I2 the map's length is its number of keys"],
        parameters: &[],
    },
    drivers: &under_every_scheme(&RangeSetDriver::<MutexBtree>::NEW),
};

/// A `BTreeMap` under one `Mutex`.
pub struct MutexBtree(Mutex<BTreeMap<u64, u64>>);

impl MutexBtree {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.0.lock().expect("no operation panics while it holds the lock")
    }
}

impl ConcurrentSet for MutexBtree {
    type Handle<'s> = Handle<'s>;

    fn new(_parameters: &Parameters) -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    fn handle(&self) -> Handle<'_> {
        Handle(self)
    }

    fn audit(&mut self) -> Audit {
        let map = self.lock();
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
pub struct Handle<'s>(&'s MutexBtree);

impl SetHandle for Handle<'_> {
    fn insert(&mut self, key: u64, value: u64) -> bool {
        match self.0.lock().entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert(value);
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    fn remove(&mut self, key: u64) -> bool {
        self.0.lock().remove(&key).is_some()
    }

    fn contains(&mut self, key: u64) -> bool {
        self.0.lock().contains_key(&key)
    }
}

impl RangeHandle for Handle<'_> {
    /// Takes effect while it holds the lock.
    fn range(&mut self, lo: u64, n: u64) -> RangeAnswer {
        let Some(last) = last_of_range(lo, n) else { return RangeAnswer::default() };
        self.0.lock().range(lo..=last).map(|(&key, _)| key).collect()
    }
}
