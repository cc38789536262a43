//! The skip list of the crate crossbeam-skiplist, with a collector of its own.
//!
//! Source: crate crossbeam-skiplist 0.1.3, `base::SkipList`; after Fraser, Practical Lock-Freedom, 2004, chapter 4.
//! Progress: lock-free; look-ups help to unlink marked nodes and may restart.
//! Deviations: `remove` looks the entry up and removes that, because the crate's own `remove` can return one entry to
//! two threads. All `insert`s share one word of random state for the height of towers, and the crate counts its entries
//! in one shared word; both are the crate's.
//! Reclamation: the crate defers to crossbeam-epoch and counts references besides; it does not tell what it freed.
//! Under `none` a participant stays pinned as long as the process lives, so that nothing is ever freed, and threads pin
//! themselves once instead of once per operation; the crate still queues what it would free, which leaks too.
//! Invariants: I1 keys strictly increase in iteration order. I2 the length that the crate keeps is the number of keys.

use std::{cell::Cell, marker::PhantomData, mem, ptr, sync::Arc};

use crossbeam_epoch::{Collector, Guard, LocalHandle};
use crossbeam_skiplist::base::SkipList;

use crate::{
    families::set::{ConcurrentSet, Parameters, SetHandle},
    harness::SetDriver,
    protocol::{Audit, Reclamation},
    reclaim::{
        Epoch, NoReclamation,
        count::{Slot, Slots},
    },
    structures::{Adt, Info, Insert, Memory, Reclaims, Search, Semantics, Structure, walk::Walk},
};

/// Registry entry.
pub static STRUCTURE: Structure = Structure {
    info: Info {
        name: "crossbeam-skiplist",
        title: "crossbeam skip list",
        source: "crate crossbeam-skiplist 0.1.3, base::SkipList; after Fraser, Practical Lock-Freedom, 2004",
        progress: "lock-free",
        semantics: Semantics { adt: Adt::OrderedDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::Deferred,
        memory: Memory::Own,
        search: Search::Logarithmic,
        deviations: &[
            "remove goes through the entry: the crate's own remove can return one entry to two threads",
            "under none the crate still queues removed nodes, and a participant that stays pinned keeps them",
        ],
        invariants: &["I1 keys strictly increase in iteration order", "I2 the crate's length is its number of keys"],
        parameters: &[],
    },
    drivers: &[
        (Reclamation::None, &SetDriver::<CrossbeamSkiplist<NoReclamation>>::NEW),
        (Reclamation::Epoch, &SetDriver::<CrossbeamSkiplist<Epoch>>::NEW),
    ],
};

/// How a scheme is played on the crate, which knows only its own guards.
pub trait Pinning: Send + Sync + 'static {
    /// Whether removed nodes are never freed.
    const LEAKS: bool;
    /// What a thread keeps between operations.
    type Local;

    /// Registers the calling thread.
    fn register(collector: &Collector) -> Self::Local;

    /// Runs one operation under a guard.
    fn pinned<T>(local: &Self::Local, operation: impl FnOnce(&Guard) -> T) -> T;
}

impl Pinning for Epoch {
    const LEAKS: bool = false;
    type Local = LocalHandle;

    fn register(collector: &Collector) -> LocalHandle {
        collector.register()
    }

    fn pinned<T>(local: &LocalHandle, operation: impl FnOnce(&Guard) -> T) -> T {
        operation(&local.pin())
    }
}

impl Pinning for NoReclamation {
    const LEAKS: bool = true;
    type Local = Guard;

    fn register(collector: &Collector) -> Guard {
        // The guard keeps the participant, and the participant the collector, so the handle is not needed.
        collector.register().pin()
    }

    fn pinned<T>(local: &Guard, operation: impl FnOnce(&Guard) -> T) -> T {
        operation(local)
    }
}

/// The crate's list.
pub struct CrossbeamSkiplist<P> {
    // Declared before `collector`, hence dropped before; what was unlinked is the collector's, and not in the list.
    list: SkipList<u64, u64>,
    collector: Collector,
    /// Counts removed nodes where the scheme leaks.
    slots: Slots,
    pinning: PhantomData<P>,
}

impl<P: Pinning> ConcurrentSet for CrossbeamSkiplist<P> {
    type Handle<'s> = Handle<'s, P>;

    fn new(_parameters: &Parameters) -> Self {
        let collector = Collector::new();
        if P::LEAKS {
            // What is retired from now on is freed after two advances of the epoch, and a pinned participant allows one.
            mem::forget(collector.register().pin());
        }
        Self { list: SkipList::new(collector.clone()), collector, slots: Slots::new(), pinning: PhantomData }
    }

    fn handle(&self) -> Handle<'_, P> {
        Handle { set: self, local: P::register(&self.collector), slot: self.slots.take() }
    }

    fn audit(&mut self) -> Audit {
        let guard = self.collector.register().pin();
        let mut walk = Walk::new();
        for entry in self.list.iter(&guard) {
            walk.key(*entry.key(), "I1");
        }
        walk.expect_size(self.list.len(), "I2");
        walk.finish()
    }

    /// `None` where the crate frees, because it does not tell what.
    fn unreclaimed(&self) -> Option<u64> {
        P::LEAKS.then(|| self.slots.unreclaimed())
    }
}

/// A thread's access.
pub struct Handle<'s, P: Pinning> {
    set: &'s CrossbeamSkiplist<P>,
    local: P::Local,
    slot: Arc<Slot>,
}

impl<P: Pinning> SetHandle for Handle<'_, P> {
    fn insert(&mut self, key: u64, value: u64) -> bool {
        P::pinned(&self.local, |guard| insert(&self.set.list, key, value, guard))
    }

    fn remove(&mut self, key: u64) -> bool {
        // `get` saw the entry unmarked, so the key was present; if another thread marks it first, then the key was
        // absent right after that, still within this operation.
        let removed =
            P::pinned(&self.local, |guard| self.set.list.get(&key, guard).is_some_and(|entry| entry.remove()));
        if P::LEAKS && removed {
            self.slot.count_retired();
        }
        removed
    }

    fn contains(&mut self, key: u64) -> bool {
        P::pinned(&self.local, |guard| self.set.list.contains_key(&key, guard))
    }
}

/// Inserts if absent, and tells truly whether this call inserted.
///
/// The crate returns an entry and does not say whose. But it returns an entry of another call in one place: right after
/// it asked `replace` about that entry's value, and was refused. It returns the entry of this call only after linking
/// it, and never asks about the value in it. Both nodes are allocated while the guard lives, so their values have
/// unlike addresses. Hence the entry is another's if and only if its value is the one that was asked about last.
fn insert(list: &SkipList<u64, u64>, key: u64, value: u64, guard: &Guard) -> bool {
    let asked = Cell::new(ptr::null());
    let keep = |value: &u64| {
        asked.set(ptr::from_ref(value));
        false
    };
    let entry = list.compare_insert(key, value, keep, guard);
    let inserted = !ptr::eq(entry.value(), asked.get());
    // The entry counts as a reference to the node; without this the node would never be freed.
    entry.release(guard);
    inserted
}
