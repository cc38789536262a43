//! The family `set`: a set of `u64` keys with insert-if-absent.
//!
//! Conservation law: size and key sum of the structure's own walk equal those of the prefill plus the effective
//! inserts minus the effective removes. It is checked in every trial.

use std::collections::BTreeMap;

use crate::protocol::Audit;

/// The structure's own parameters by name, as in the request.
pub type Parameters = BTreeMap<String, u64>;

/// A concurrent set of all `u64` keys (structures with sentinels must not spend key values on them).
pub trait ConcurrentSet: Send + Sync + Sized + 'static {
    /// A thread's access to the set; hides the reclamation scheme.
    type Handle<'s>: SetHandle
    where
        Self: 's;

    /// Makes an empty set. `parameters` were validated against the structure's registry entry.
    fn new(parameters: &Parameters) -> Self;

    /// Registers the calling thread.
    fn handle(&self) -> Self::Handle<'_>;

    /// Walks the set alone (exclusively) and checks each invariant that the walk can see.
    fn audit(&mut self) -> Audit;

    /// Returns the objects removed and not yet given back, or `None` where the scheme cannot tell.
    fn unreclaimed(&self) -> Option<u64>;
}

/// One thread's operations. Values are stored beside keys so that nodes have a realistic size.
pub trait SetHandle {
    /// Inserts `key` if absent; true if it was absent.
    fn insert(&mut self, key: u64, value: u64) -> bool;

    /// Removes `key`; true if it was present and this call removed it.
    fn remove(&mut self, key: u64) -> bool;

    /// Tells whether `key` is present.
    fn contains(&mut self, key: u64) -> bool;
}
