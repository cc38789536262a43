//! Control: now and then two threads are both told that they removed the same key.
//!
//! Must be caught by the checksum (and by the linearizability checker): removals that answer true outnumber the keys that
//! went. Nothing else should. One thread alone never meets it, so a sequential test passes; the structure underneath is
//! sound; and a thread writes nothing that others read but once in a while, so none is slowed down.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread::{self, ThreadId},
};

use super::{
    dose::{self, Nth},
    faulty::{Fault, FaultThread, Faulty},
};
use crate::{
    families::set::{Parameters, SetHandle},
    harness::SetDriver,
    protocol::Reclamation,
    reclaim::{Epoch, NoReclamation},
    structures::{
        Info, ParameterInfo, Structure,
        nm14::{self, Nm14},
    },
};

const ONE_IN: ParameterInfo = dose::one_in(
    10_000,
    "Of so many removals of one thread that answer true, one is told to another thread as well, if that asks for the same \
     key while it is absent.",
);

/// Registry entry.
pub static CONTROL: Structure = Structure {
    info: Info {
        name: "control-double-remove",
        title: "control: key removed twice",
        source: "none: nm14 with a planted fault",
        deviations: &["one removal in `one_in` is told to two threads"],
        parameters: &[ONE_IN],
        ..nm14::STRUCTURE.info
    },
    drivers: &[
        (Reclamation::None, &SetDriver::<Faulty<DoubleRemove, Nm14<NoReclamation>>>::NEW),
        (Reclamation::Epoch, &SetDriver::<Faulty<DoubleRemove, Nm14<Epoch>>>::NEW),
    ],
};

/// Removals that wait for a second thread at a time, at most: with many, one of them is soon asked for again, however
/// large the range of keys.
const N_ECHOES: usize = 64;

/// The fault.
pub struct DoubleRemove {
    one_in: u64,
    echoes: [Echo; N_ECHOES],
}

/// A removal that will be told again.
#[derive(Default)]
struct Echo {
    /// A hint that spares the lock: the key below, or an earlier one.
    key: AtomicU64,
    removal: Mutex<Option<Removal>>,
}

struct Removal {
    key: u64,
    by: ThreadId,
}

impl DoubleRemove {
    fn echo(&self, key: u64) -> &Echo {
        &self.echoes[key as usize % N_ECHOES]
    }
}

impl Echo {
    /// Keeps a removal to be told again, unless one waits already.
    fn keep(&self, removal: Removal) {
        let mut kept = self.removal.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_none() {
            // Relaxed: whoever misses the hint misses only this occasion.
            self.key.store(removal.key, Relaxed);
            *kept = Some(removal);
        }
    }

    /// Takes the removal of that key by another thread than `asker`.
    fn take(&self, key: u64, asker: ThreadId) -> bool {
        if self.key.load(Relaxed) != key {
            return false;
        }
        let mut kept = self.removal.lock().unwrap_or_else(PoisonError::into_inner);
        kept.take_if(|removal| removal.key == key && removal.by != asker).is_some()
    }
}

impl Fault for DoubleRemove {
    type Thread<'f> = Thread<'f>;

    fn new(parameters: &Parameters) -> Self {
        Self { one_in: dose::read(parameters, &ONE_IN), echoes: std::array::from_fn(|_| Echo::default()) }
    }

    fn thread(&self) -> Thread<'_> {
        Thread { fault: self, id: thread::current().id(), nth: Nth::new(self.one_in) }
    }
}

/// Counts the removals that answered true.
pub struct Thread<'f> {
    fault: &'f DoubleRemove,
    id: ThreadId,
    nth: Nth,
}

impl FaultThread for Thread<'_> {
    #[inline]
    fn remove(&mut self, base: &mut impl SetHandle, key: u64) -> bool {
        if !base.remove(key) {
            return self.fault.echo(key).take(key, self.id);
        }
        if self.nth.count() {
            self.fault.echo(key).keep(Removal { key, by: self.id });
        }
        true
    }
}
