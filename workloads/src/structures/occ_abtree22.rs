//! Relaxed (a,b)-tree with optimistic reads, locks on single nodes and unsorted leaves; with or without elimination.
//!
//! Source: Srivastava and Brown, Elimination (a,b)-trees with fast, durable updates, PPoPP 2022: the OCC-ABtree, and its
//! Elim-ABtree with `elimination: 1`; the shape and its repairs are those of Larsen and Fagerberg's relaxed (a,b)-trees,
//! a = 2 and b = 11. Keys are in the leaves, in no order; an internal node routes, and only its edges ever change. An
//! update changes one leaf in place; a full leaf is replaced by a tagged node over two halves, and what that or a removal
//! does to the balance is repaired afterwards, see [`rebalance`].
//! Elimination: an update that had to wait, and finds that the last update of the leaf took place meanwhile and was of
//! its own key, answers false without the lock: it takes effect right before that update if it is of the other kind, right
//! after if of the same.
//! Progress: updates lock, so they block. `contains` takes no lock, waits for none, and reads a leaf again only if an
//! update of it took place meanwhile: lock-free.
//! Deviations: version, lock, mark and a map of used slots share one word of the leaf (see [`leaf`]): so no key means "no
//! key", a removal is one exchange without a lock, `contains` does not wait while the version is odd, and the publishing
//! record of elimination is in the leaf already, in place of a key, a value and a version of its own. Locks are a bit
//! each, spun on and then yielded; the paper uses MCS locks. Violations are found from the top of a key's path; the paper
//! searches for the node that has one, and repairs its parent first by recursion. Durability is left out.
//! Speed, in throughput gained at 100,000 keys: a child is selected by one chain of moves, not by a sum that is compiled to
//! vector instructions (searches, one thread: +80 %). Two threads on two cores are as fast with elimination as without, from
//! 2 keys to 100,000, uniform or Zipf: they seldom wait for each other on the same key.
//! Reclamation: epochs in the paper too. The thread that unlinked nodes retires them.
//! Invariants, with *in the tree* for reachable from the entry, and *size* for the number of children or keys:
//! I1 An internal node has 1 to b children, none null, and between them keys that strictly increase, none the largest key.
//! Its size, its keys and its tag never change.
//! I2 The keys below an edge are not less than the key left of it, and less than the key right of it. So the range of a
//! node in the tree, which is what the keys on its path leave, never changes.
//! I3 A leaf has 0 to b keys, all unlike, in the slots that its state calls used.
//! I4 Edges are changed, and slots written, under the lock of their node; a leaf's state changes only from unlocked, or
//! by the holder. Nothing in a marked node ever changes.
//! I5 A node is unlinked once, by a thread that holds its lock and those of all nodes with an edge to it, which marks it
//! before it unlocks, and retires it once. So an unmarked node that was ever in the tree is in the tree.
//! I6 All leaves are below the same number of untagged nodes.
//! I7 The root is not tagged; if internal, it has two children or more. No other node becomes the root.
//! I8 When no operation runs, no node in the tree is locked or tagged, and none but the root is smaller than a.

mod alone;
mod internal;
mod leaf;
mod rebalance;
mod wait;

use self::{
    internal::{Internal, Link, Node, Word},
    leaf::{Leaf, Look},
    wait::Wait,
};
use crate::{
    families::set::{ConcurrentSet, Parameters, SetHandle},
    harness::drivers,
    protocol::Audit,
    reclaim::{Alone, Guard, Local, Reclaimer},
    structures::{Adt, Info, Insert, Memory, ParameterInfo, Reclaims, Search, Semantics, Structure, fan::MIN_SIZE},
};

/// Registry entry.
pub static STRUCTURE: Structure = Structure {
    info: Info {
        name: "occ-abtree22",
        title: "OCC (a,b)-tree",
        source: "Srivastava and Brown, Elimination (a,b)-trees with fast, durable updates, PPoPP 2022",
        progress: "insert and remove blocking; contains lock-free, waits for no lock",
        semantics: Semantics { adt: Adt::OrderedDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::Deferred,
        memory: Memory::Nodes,
        search: Search::Logarithmic,
        deviations: &[
            "version, lock, mark and a map of used slots share one word of the leaf, so no key value is spent",
            "a removal is one exchange without a lock; contains does not wait while a leaf is locked",
            "the last update is published in the leaf's word and slots, not in a record beside them",
            "locks are one bit, spun on and then yielded; the paper uses MCS locks",
            "violations of balance are found from the top of a key's path; the paper searches for the node",
            "not durable",
        ],
        invariants: &[
            "I1 an internal node has 1 to b children between increasing keys below the largest key; only its edges ever change",
            "I2 keys below an edge lie between the keys beside it",
            "I3 a leaf has 0 to b unlike keys, in the slots that its state calls used",
            "I4 only the holder of a lock changes edges and slots; a marked node never changes",
            "I5 each node is unlinked, marked and retired once, by one thread, under the locks that lead to it",
            "I6 all leaves are below the same number of untagged nodes",
            "I7 the root is untagged, and if internal has at least two children",
            "I8 at rest no node is locked or tagged, and none but the root is smaller than a",
        ],
        parameters: &[ParameterInfo {
            name: "elimination",
            default: 0,
            range: (0, 1),
            meaning: "with 1, an update that waits may answer by another of its key that took place meanwhile (Elim-ABtree)",
        }],
    },
    drivers: drivers!(OccAbtree22),
};

/// The tree. On lines of its own, because every operation reads the entry.
#[repr(align(128))]
pub struct OccAbtree22<R: Reclaimer> {
    /// Has one child, the root. Never marked.
    entry: Internal,
    eliminates: bool,
    reclaimer: R,
}

/// What a traversal found.
struct Seek<'g> {
    /// The node whose edge leads to the leaf, and which edge.
    parent: (&'g Internal, usize),
    link: Link<'g>,
    leaf: &'g Leaf,
}

/// What an update does to the leaf where its key belongs.
enum Attempt {
    /// The answer of the operation.
    Done(bool),
    /// Another thread was faster: look at the leaf again.
    Again,
    /// The leaf is no longer in the tree: walk anew.
    Gone,
}

impl<R: Reclaimer> OccAbtree22<R> {
    /// Walks to the leaf where `key` belongs.
    ///
    /// Every node visited was in the tree, with `key` in its range, at some moment since the guard was obtained. By
    /// induction: the root was. If the edge of a visited node is read while that is in the tree, then its child is too.
    /// Else the node has been unlinked since, after the guard was obtained; its edges have not changed after (I4, I5), and
    /// the child was in the tree until then. So no visited node was retired before the guard was obtained, and the guard
    /// protects it.
    ///
    /// Hence what a look at the leaf finds was true of the set at some moment since: when it looked, if the leaf was in
    /// the tree; else when the leaf was unlinked, since it has not changed after that.
    #[inline]
    fn seek<'g>(&'g self, key: u64, guard: &'g impl Guard) -> Seek<'g> {
        let mut parent = (&self.entry, 0);
        loop {
            let link = parent.0.child(parent.1, guard);
            match link.node() {
                Node::Leaf(leaf) => return Seek { parent, link, leaf },
                Node::Internal(node) => parent = (node, node.side(key)),
            }
        }
    }

    fn contains(&self, key: u64, guard: &impl Guard) -> bool {
        self.seek(key, guard).leaf.look(key).slot().is_some()
    }

    fn insert(&self, key: u64, value: u64, guard: &impl Guard) -> bool {
        self.update(key, guard, |seek, look| {
            if look.slot().is_some() {
                return Attempt::Done(false);
            }
            if look.state.is_marked() {
                return Attempt::Gone;
            }
            let Some(lock) = seek.leaf.try_lock(look.state) else { return Attempt::Again };
            if !lock.is_full() {
                lock.fill(key, value);
                return Attempt::Done(true);
            }
            let is_split = self.split_leaf(seek.parent, (lock, seek.link), (key, value), guard);
            if is_split { Attempt::Done(true) } else { Attempt::Gone }
        })
    }

    fn remove(&self, key: u64, guard: &impl Guard) -> bool {
        self.update(key, guard, |seek, look| {
            let Some(slot) = look.slot() else { return Attempt::Done(false) };
            if look.state.is_marked() {
                return Attempt::Gone;
            }
            if !seek.leaf.try_clear(look.state, slot) {
                return Attempt::Again;
            }
            // A leaf that was too small before is the care of the thread that made it so.
            if look.state.len() == MIN_SIZE {
                self.settle(key, guard);
            }
            Attempt::Done(true)
        })
    }

    /// Attempts an update until it is done. Attempts are made on what a look has found.
    #[inline]
    fn update<'g>(&'g self, key: u64, guard: &'g impl Guard, attempt: impl Fn(&Seek<'g>, &Look) -> Attempt) -> bool {
        let mut wait = Wait::new();
        loop {
            let seek = self.seek(key, guard);
            let mut look = seek.leaf.look(key);
            let first = look.state;
            loop {
                match attempt(&seek, &look) {
                    Attempt::Done(answer) => return answer,
                    Attempt::Gone => break,
                    Attempt::Again => {}
                }
                wait.pause();
                look = seek.leaf.look(key);
                if self.eliminates && look.was_updated_since(first) {
                    return false;
                }
            }
        }
    }
}

impl<R: Reclaimer> ConcurrentSet for OccAbtree22<R> {
    type Handle<'s> = Handle<'s, R>;

    fn new(parameters: &Parameters) -> Self {
        let eliminates = parameters.get("elimination").is_some_and(|&choice| choice == 1);
        Self { entry: Internal::over(Word::of_leaf(Leaf::new(&[]))), eliminates, reclaimer: R::with(parameters) }
    }

    fn handle(&self) -> Handle<'_, R> {
        Handle { tree: self, local: self.reclaimer.register() }
    }

    fn audit(&mut self) -> Audit {
        // SAFETY: `&mut self` excludes every handle.
        alone::audit(&self.entry, &unsafe { Alone::new() })
    }

    fn unreclaimed(&self) -> Option<u64> {
        Some(self.reclaimer.unreclaimed())
    }
}

impl<R: Reclaimer> Drop for OccAbtree22<R> {
    /// Frees what is in the tree; what was unlinked is the reclaimer's, and disjoint (I5).
    fn drop(&mut self) {
        // SAFETY: `&mut self` excludes every handle.
        alone::free(&self.entry, &unsafe { Alone::new() });
    }
}

/// A thread's access.
pub struct Handle<'s, R: Reclaimer> {
    tree: &'s OccAbtree22<R>,
    local: R::Local<'s>,
}

impl<R: Reclaimer> SetHandle for Handle<'_, R> {
    fn insert(&mut self, key: u64, value: u64) -> bool {
        self.tree.insert(key, value, &self.local.pin())
    }

    fn remove(&mut self, key: u64) -> bool {
        self.tree.remove(key, &self.local.pin())
    }

    fn contains(&mut self, key: u64) -> bool {
        self.tree.contains(key, &self.local.pin())
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, mem, sync::Barrier, thread};

    use super::*;
    use crate::reclaim::NoReclamation;

    fn tree_of(keys: impl IntoIterator<Item = u64>, elimination: u64) -> OccAbtree22<NoReclamation> {
        let set = OccAbtree22::<NoReclamation>::new(&Parameters::from([("elimination".to_owned(), elimination)]));
        let mut handle = set.handle();
        for key in keys {
            assert!(handle.insert(key, !key));
        }
        drop(handle);
        set
    }

    /// Returns how many attempts an update of key 5 makes, and its answer, if `meddle` comes between the first two.
    fn attempts_around(elimination: u64, meddle: fn(&mut Handle<'_, NoReclamation>)) -> (u32, bool) {
        let set = tree_of([3, 5], elimination);
        let (mut handle, n_attempts) = (set.handle(), Cell::new(0));
        let answer = set.update(5, &handle.local.pin(), |_, _| {
            n_attempts.set(n_attempts.get() + 1);
            if n_attempts.get() > 1 {
                return Attempt::Done(true);
            }
            meddle(&mut set.handle());
            Attempt::Again
        });
        (n_attempts.get(), answer)
    }

    #[test]
    fn only_a_later_update_of_the_same_key_eliminates() {
        assert_eq!(attempts_around(1, |other| assert!(other.remove(5))), (1, false));
        assert_eq!(attempts_around(1, |other| assert!(other.remove(5) && other.insert(5, 5))), (1, false));
        assert_eq!(attempts_around(0, |other| assert!(other.remove(5))), (2, true), "elimination is off");
        assert_eq!(attempts_around(1, |_| ()), (2, true), "the insertion of 5 was before");
        assert_eq!(attempts_around(1, |other| assert!(other.remove(3))), (2, true), "another key");
        assert_eq!(attempts_around(1, |other| assert!(!other.insert(5, 5))), (2, true), "nothing was updated");
        // The slot that 5 leaves is filled with 4, so that 5 is nowhere.
        assert_eq!(attempts_around(1, |other| assert!(other.remove(5) && other.insert(4, 4))), (2, true));
        // Splits the leaf: the update walks to another, and what was last done there is not after its first look.
        let split = |other: &mut Handle<'_, _>| assert!((10..20).all(|key| other.insert(key, key)));
        assert_eq!(attempts_around(1, split), (2, true));
    }

    #[test]
    fn elimination_conserves_keys() {
        const N_THREADS: u64 = 4;
        let mut set = tree_of([], 1);
        let barrier = Barrier::new(N_THREADS as usize);
        let run = |thread: u64| {
            let mut handle = set.handle();
            let mut net = [0_i64; 3];
            barrier.wait();
            for step in 0..100_000_u64 {
                let word = (step * N_THREADS + thread).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
                let key = word % 3;
                net[key as usize] += match word >> 8 & 1 {
                    0 => i64::from(handle.insert(key, key)),
                    _ => -i64::from(handle.remove(key)),
                };
            }
            net
        };
        let nets: Vec<[i64; 3]> = thread::scope(|scope| {
            let run = &run;
            let threads: Vec<_> = (0..N_THREADS).map(|thread| scope.spawn(move || run(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let total: Vec<i64> = (0..3).map(|key| nets.iter().map(|net| net[key]).sum()).collect();
        assert!(total.iter().all(|net| [0, 1].contains(net)), "{total:?}");
        let (size, key_sum) = (total.iter().sum::<i64>() as u64, (total[1] + 2 * total[2]) as u64);
        assert_eq!(set.audit(), Audit { size, key_sum, violations: Vec::new() });
    }

    #[test]
    fn contains_waits_for_no_lock() {
        let set = tree_of(0..100, 0);
        let mut handle = set.handle();
        let guard = handle.local.pin();
        let seek = set.seek(50, &guard);
        let locks = (seek.leaf.lock(), seek.parent.0.lock(), set.entry.lock());
        let mut other = set.handle();
        assert!(other.contains(50) && !other.contains(100));
        assert!(!other.insert(50, 50) && !other.remove(1000), "updates that change nothing do not wait either");
        drop(locks);
        assert!(other.remove(50));
    }

    #[test]
    fn the_audit_sees_what_is_wrong() {
        let mut set = tree_of(0..12, 0);
        assert_eq!(set.audit(), Audit { size: 12, key_sum: 66, violations: Vec::new() });
        let (mut handle, mut other) = (set.handle(), set.handle());
        let guard = handle.local.pin();
        let seek = set.seek(0, &guard);
        // Removals that stall before they settle, of all keys of the leaf but one.
        for key in 0..5 {
            let look = seek.leaf.look(key);
            assert!(seek.leaf.try_clear(look.state, look.slot().expect("it was inserted")));
        }
        mem::forget((seek.leaf.lock(), set.entry.lock()));
        assert!(other.contains(5) && !other.contains(4));
        drop((handle, other));
        let violations = set.audit().violations;
        assert_eq!(
            violations,
            [
                "I8: the entry is locked or marked at rest",
                "I8: the node of keys from 0 on at depth 1 is locked at rest"
            ]
        );
    }

    #[test]
    fn the_audit_sees_a_small_leaf_a_tag_and_a_misplaced_key() {
        let leaf = |keys: &[u64]| Word::of_leaf(Leaf::new(&keys.iter().map(|&key| (key, key)).collect::<Vec<_>>()));
        let mut set = tree_of([], 0);
        let fork = Internal::fork(leaf(&[1]), 5, leaf(&[6, 6, 4]), true);
        // The empty root leaf that it replaces is freed by hand.
        let empty = mem::replace(&mut set.entry, Internal::over(Word::of_internal(fork)));
        // SAFETY: no other thread knows this tree, and the entry that led to the leaf is gone after the next line.
        alone::free(&empty, &unsafe { Alone::new() });
        let audit = set.audit();
        let begins = |start: &str| audit.violations.iter().filter(|words| words.starts_with(start)).count();
        assert_eq!((begins("I8"), begins("I2"), begins("I3")), (2, 1, 1), "{audit:?}");
        assert_eq!((audit.size, audit.key_sum), (4, 17));
    }
}
