//! The hash map of the crate papaya, with its defaults.
//!
//! Source: crate papaya 0.2.5, `HashMap`: open addressing over pointers to entries, with incremental resizing.
//! Progress: look-ups take no lock; updates take none either, except that they may wait for another thread while the
//! table grows: for the allocation of the next table, and for an entry that is being copied.
//! Deviations: keys are hashed by SipHash under random keys, the crate's default, so that the layout differs from trial
//! to trial.
//! Reclamation: entries and tables go to a collector that the map owns (crate seize: batches after Nikolaev and
//! Ravindran, Snapshot-Free, Transparent, and Robust Memory Reclamation for Lock-Free Data Structures, PLDI 2021),
//! whatever scheme is asked for. That is `hyaline`, which the map therefore honours, with its batch; `none` and `epoch`
//! are taken for the batch that holds by default. Each operation pins, as the crate's documentation shows first; the cost of ordering
//! lies with the thread that retires (`membarrier`). The collector does not tell what it freed. Dropping the map frees
//! everything; numbers for threads are handed out by the process and reused.
//! Invariants: I1 the length that the crate keeps is the number of keys in the iteration.

use papaya::HashMap;

use crate::{
    families::set::{ConcurrentSet, Parameters, SetHandle},
    harness::SetDriver,
    protocol::{Audit, Reclamation},
    reclaim::hyaline::collector,
    structures::{Adt, Info, Insert, Memory, Reclaims, Search, Semantics, Structure, walk::Walk},
};

/// Registry entry.
pub static STRUCTURE: Structure = Structure {
    info: Info {
        name: "papaya",
        title: "papaya",
        source: "crate papaya 0.2.5, HashMap",
        progress: "look-ups take no lock; updates may wait while the table grows",
        semantics: Semantics { adt: Adt::HashDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::Own,
        memory: Memory::Own,
        search: Search::Constant,
        deviations: &[
            "the crate hashes by SipHash with random keys, so that the layout differs from trial to trial",
            "removed entries go to the batches of crate seize, which is hyaline, under none and epoch too",
        ],
        invariants: &["I1 the crate's length is its number of keys"],
        parameters: &[],
    },
    drivers: &[
        (Reclamation::None, &SetDriver::<Papaya>::NEW),
        (Reclamation::Epoch, &SetDriver::<Papaya>::NEW),
        (Reclamation::HYALINE, &SetDriver::<Papaya>::NEW),
    ],
};

/// A `papaya::HashMap`.
pub struct Papaya(HashMap<u64, u64>);

impl ConcurrentSet for Papaya {
    type Handle<'s> = Handle<'s>;

    fn new(parameters: &Parameters) -> Self {
        Self(HashMap::builder().collector(collector(parameters)).build())
    }

    fn handle(&self) -> Handle<'_> {
        Handle(&self.0)
    }

    fn audit(&mut self) -> Audit {
        let mut walk = Walk::new();
        for &key in self.0.pin().keys() {
            walk.unordered_key(key);
        }
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
        self.0.pin().try_insert(key, value).is_ok()
    }

    fn remove(&mut self, key: u64) -> bool {
        self.0.pin().remove(&key).is_some()
    }

    fn contains(&mut self, key: u64) -> bool {
        self.0.pin().contains_key(&key)
    }
}
