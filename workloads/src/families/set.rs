//! The family `set`: a set of `u64` keys with insert-if-absent.
//!
//! Conservation law: size and key sum of the structure's own walk equal those of the prefill plus the effective
//! inserts minus the effective removes. It is checked in every trial.
//!
//! A range query is optional: a structure has one only if it is linearizable, as its other operations are. One that walks
//! while others update, and may see a key twice or miss one that was always there, is none.

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

/// One thread's operations on a set that has a range query.
pub trait RangeHandle: SetHandle {
    /// Returns how many keys of `lo..lo + n` are present, and their sum: all of them as they were at one moment between
    /// the call and the return, so that every update is seen by the whole query or by none of it.
    ///
    /// An interval that reaches beyond the largest key ends with it; one of no keys is empty.
    fn range(&mut self, lo: u64, n: u64) -> RangeAnswer;
}

/// What a range query finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeAnswer {
    /// Keys present in the interval.
    pub count: u64,
    /// Their wrapping sum: the query must have read each of them.
    pub key_sum: u64,
}

impl RangeAnswer {
    /// Adds a key that was found.
    #[inline]
    pub fn add(&mut self, key: u64) {
        self.count += 1;
        self.key_sum = self.key_sum.wrapping_add(key);
    }
}

impl FromIterator<u64> for RangeAnswer {
    fn from_iter<I: IntoIterator<Item = u64>>(keys: I) -> Self {
        let mut answer = Self::default();
        keys.into_iter().for_each(|key| answer.add(key));
        answer
    }
}

/// Returns the last key of `lo..lo + n`, or `None` if there is none: with it the interval can be written although its end
/// may lie beyond the largest key.
#[inline]
pub fn last_of_range(lo: u64, n: u64) -> Option<u64> {
    n.checked_sub(1).map(|n_more| lo.saturating_add(n_more))
}
