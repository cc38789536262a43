//! Hash table of a fixed number of lock-free sorted lists.
//!
//! Source: Michael, High Performance Dynamic Lock-Free Hash Tables and List-Based Sets, SPAA 2002: an array of list
//! heads, and the list of [`super::michael02`] under each.
//! Progress: lock-free, as the list; the table never grows, so operations become slow when keys far outnumber buckets.
//! Deviations: those of the list; the paper leaves the hash function open, here it is the 64-bit finaliser of MurmurHash3
//! (Appleby), scaled to the number of buckets by a multiplication, so that any number will do and none costs a division.
//! Reclamation: as the list; one reclaimer serves all buckets.
//! Invariants: I1 to I4 are those of the list, of each bucket. I5 Each key is in the bucket that its hash chooses; with I1
//! it is there once.

use super::michael02::List;
use crate::{
    families::set::{ConcurrentSet, Parameters, SetHandle},
    harness::drivers,
    protocol::Audit,
    reclaim::{AnyLocal, AnyReclaimer},
    structures::{Adt, Info, Insert, Memory, ParameterInfo, Reclaims, Search, Semantics, Structure, walk::Walk},
};

/// By default a power of two somewhat above the 50,000 keys of a range of 100k that is filled to half, which is 512 KiB
/// of heads. At most 2 GiB of them.
const BUCKETS: ParameterInfo = ParameterInfo {
    name: "buckets",
    default: 1 << 16,
    range: (1, 1 << 28),
    meaning: "lists in the table, 8 bytes each; any number, not only powers of two. It never grows: choose about as many \
              as there will be keys",
};

/// Registry entry.
pub static STRUCTURE: Structure = Structure {
    info: Info {
        name: "michael-hash02",
        title: "lock-free hash table",
        source: "Michael, High Performance Dynamic Lock-Free Hash Tables and List-Based Sets, SPAA 2002",
        progress: "lock-free; contains may restart and helps to unlink",
        semantics: Semantics { adt: Adt::HashDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::Deferred,
        memory: Memory::Nodes,
        search: Search::Chains("buckets"),
        deviations: &[
            "no sentinel nodes, so no key value is spent",
            "links have no tag that counts changes: schemes keep addresses from being used again",
            "the hash, which the paper leaves open, is the 64-bit finaliser of MurmurHash3, scaled by a multiplication",
        ],
        invariants: &[
            "I1 in each list keys strictly increase along links",
            "I2 a marked link never changes",
            "I3 a node is unlinked only while marked, and retired once, by the thread that unlinked it",
            "I4 at rest no marked node is in a list",
            "I5 each key is in the list that its hash chooses",
        ],
        parameters: &[BUCKETS],
    },
    drivers: drivers!(MichaelHash02, Hazard),
};

/// The table.
pub struct MichaelHash02<R: AnyReclaimer> {
    buckets: Box<[List]>,
    reclaimer: R,
}

/// Returns the bucket of `key` among `n_buckets`, at least 1.
///
/// Every bit of the key moves every bit of the hash, and the top ones choose, as in Lemire's bounded draws.
#[inline]
fn bucket_of(key: u64, n_buckets: usize) -> usize {
    let hash = (key ^ key >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    let hash = hash ^ hash >> 33;
    ((u128::from(hash) * n_buckets as u128) >> 64) as usize
}

impl<R: AnyReclaimer> ConcurrentSet for MichaelHash02<R> {
    type Handle<'s> = Handle<'s, R>;

    /// Writes every head, so that the table's pages are there before anything is measured.
    fn new(parameters: &Parameters) -> Self {
        let n_buckets = parameters.get(BUCKETS.name).copied().unwrap_or(BUCKETS.default);
        Self { buckets: (0..n_buckets).map(|_| List::new()).collect(), reclaimer: R::with(parameters) }
    }

    fn handle(&self) -> Handle<'_, R> {
        Handle { buckets: &self.buckets, local: self.reclaimer.register() }
    }

    fn audit(&mut self) -> Audit {
        let n_buckets = self.buckets.len();
        let mut walk = Walk::new();
        for (bucket_idx, bucket) in self.buckets.iter_mut().enumerate() {
            bucket.audit(&mut walk, |walk, key| {
                if bucket_of(key, n_buckets) != bucket_idx {
                    walk.violation(format!("I5: key {key} is in bucket {bucket_idx}"));
                }
            });
        }
        walk.finish()
    }

    fn unreclaimed(&self) -> Option<u64> {
        Some(self.reclaimer.unreclaimed())
    }
}

/// A thread's access.
pub struct Handle<'s, R: AnyReclaimer> {
    buckets: &'s [List],
    local: R::Local<'s>,
}

impl<'s, R: AnyReclaimer> Handle<'s, R> {
    #[inline]
    fn bucket(&self, key: u64) -> &'s List {
        &self.buckets[bucket_of(key, self.buckets.len())]
    }
}

impl<R: AnyReclaimer> SetHandle for Handle<'_, R> {
    fn insert(&mut self, key: u64, value: u64) -> bool {
        self.bucket(key).insert(key, value, &self.local.pin())
    }

    fn remove(&mut self, key: u64) -> bool {
        self.bucket(key).remove(key, &self.local.pin())
    }

    fn contains(&mut self, key: u64) -> bool {
        self.bucket(key).contains(key, &self.local.pin())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::reclaim::{Epoch, Hazard};

    fn with_buckets<R: AnyReclaimer>(n_buckets: u64) -> MichaelHash02<R> {
        MichaelHash02::new(&Parameters::from([("buckets".to_owned(), n_buckets)]))
    }

    #[test]
    fn any_number_of_buckets_holds_all_keys() {
        for n_buckets in [1, 2, 3, 7, 64, 1000] {
            let mut set = with_buckets::<Epoch>(n_buckets);
            let keys: BTreeSet<u64> = (0..500).chain((0..64).map(|bit| u64::MAX << bit)).collect();
            let mut handle = set.handle();
            for &key in &keys {
                assert!(handle.insert(key, !key) && !handle.insert(key, key));
            }
            assert!(keys.iter().all(|&key| handle.contains(key)) && !handle.contains(500));
            assert!((0..250).all(|key| handle.remove(key) && !handle.contains(key)));
            drop(handle);
            let key_sum = keys.iter().filter(|&&key| key >= 250).fold(0, |sum: u64, key| sum.wrapping_add(*key));
            assert_eq!(set.buckets.len() as u64, n_buckets);
            assert_eq!(set.audit(), Audit { size: keys.len() as u64 - 250, key_sum, violations: Vec::new() });
        }
    }

    #[test]
    fn keys_that_lie_close_or_in_strides_spread_evenly() {
        // Chi-square over the buckets has mean n - 1 and variance 2 (n - 1): five deviations is far beyond chance.
        for n_buckets in [64, 100, 1021] {
            for shift in [0, 3, 12, 32, 48] {
                let n_keys = 20 * n_buckets as u64;
                let mut counts = vec![0_u64; n_buckets];
                (0..n_keys).for_each(|key| counts[bucket_of(key << shift, n_buckets)] += 1);
                let chi_square: f64 = counts.iter().map(|&count| (count as f64 - 20.0).powi(2) / 20.0).sum();
                let freedom = (n_buckets - 1) as f64;
                let deviations = (chi_square - freedom) / (2.0 * freedom).sqrt();
                assert!(deviations < 5.0, "{deviations} deviations, {n_buckets} buckets, keys shifted by {shift}");
            }
        }
    }

    #[test]
    fn the_audit_sees_a_key_in_the_wrong_bucket() {
        let mut set = with_buckets::<Epoch>(4);
        let wrong = (bucket_of(9, 4) + 1) % 4;
        let mut local = set.reclaimer.register();
        assert!(set.buckets[wrong].insert(9, 9, &local.pin()));
        drop(local);
        let violations = vec![format!("I5: key 9 is in bucket {wrong}")];
        assert_eq!(set.audit(), Audit { size: 1, key_sum: 9, violations });
    }

    #[test]
    fn threads_that_crowd_few_buckets_conserve_keys() {
        crowd(with_buckets::<Epoch>(2));
        crowd(with_buckets::<Hazard>(2));
    }

    fn crowd<R: AnyReclaimer>(mut set: MichaelHash02<R>) {
        // The registry's tests run with the default table, where few keys share a list.
        let nets: Vec<i64> = std::thread::scope(|scope| {
            let run = |thread: u64| {
                let set = &set;
                move || {
                    let (mut handle, mut random) = (set.handle(), crate::rng::SplitMix64::new(thread));
                    let mut net = 0;
                    for _ in 0..50_000 {
                        let (key, word) = (random.next_u64() >> 60, random.next_u64());
                        net += if word >> 63 == 0 {
                            i64::from(handle.insert(key, key))
                        } else {
                            -i64::from(handle.remove(key))
                        };
                    }
                    net
                }
            };
            let threads: Vec<_> = (0..4).map(|thread| scope.spawn(run(thread))).collect();
            threads.into_iter().map(|thread| thread.join().expect("the thread did not panic")).collect()
        });
        let audit = set.audit();
        assert_eq!((audit.size as i64, audit.violations), (nets.iter().sum(), Vec::new()));
    }
}
