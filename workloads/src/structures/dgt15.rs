//! External binary search tree with two versioned try-locks in each internal node, one for each edge.
//!
//! Source: David, Guerraoui and Trigonakis, Asynchronized Concurrency: The Secret to Scaling Concurrent Search Data
//! Structures, ASPLOS 2015, the tree BST-TK. Keys are in the leaves; an internal node routes. An update walks down
//! without writing and notes the lock versions that it passes. An insertion then takes the lock of one edge, a removal
//! that of the edge to the parent and both of the parent, each only if its version is still the one that was noted.
//! Progress: `insert` and `remove` block: they walk again while another thread holds a lock that they need, and give
//! their core away after some tries. Updates that find nothing to do take no lock. `contains` is wait-free: it writes
//! nothing, reads no lock, and its bounds on the keys below narrow at every step (I2), also through unlinked nodes.
//! Deviations: no sentinel nodes and no infinite keys: the root is an internal node whose side 0 is EMPTY, the only leaf,
//! or the topmost internal node. Versions have 16 bits, as in the authors' code, and a thread can be preempted for as
//! long as they take to wrap; so the edge is compared as well, once its lock is held. Neither an edge nor its node can be
//! mistaken (I3, and a guard keeps addresses from being used again), so this alone would do, and the versions are what
//! lets an update fail before it has locked anything. An edge says whether it leads to a leaf, so that a traversal learns
//! it without touching the node.
//! Speed: a step loads both children beside the key and picks one by a conditional move ([`pick`](super::pick)): 36 %
//! more searches with 100 keys than by an index. A walk keeps its steps in registers: 3 % more updates.
//! Reclamation: the thread that unlinked a leaf and its parent retires them.
//! Invariants, with *in the tree* for reachable from the root:
//! I1 Every edge of an internal node leads to a node; only the root has EMPTY edges, side 1 always.
//! I2 The keys of the left subtree are less than the node's key, those of the right one are not.
//! I3 An edge is changed only by the holder of its lock. Both locks of an internal node that is unlinked were taken
//! before and are never given back, so both its edges are frozen.
//! I4 Each internal node and leaf is unlinked once, and retired once, by the thread that unlinked it.
//! I5 When no operation runs, no lock in the tree is held.

mod alone;
mod locks;
mod node;

use self::{
    locks::{Held, Seen},
    node::{Internal, Leaf, Link, Word},
};
use super::{patience::Patience, unpublished::Unpublished};
use crate::{
    families::set::{ConcurrentSet, Parameters, SetHandle},
    harness::drivers,
    protocol::Audit,
    reclaim::{Alone, Guard, Local, Reclaimer},
    structures::{Adt, Info, Insert, Memory, Reclaims, Search, Semantics, Structure},
};

/// Registry entry.
pub static STRUCTURE: Structure = Structure {
    info: Info {
        name: "dgt15",
        title: "ticket-lock external BST",
        source: "David, Guerraoui and Trigonakis, Asynchronized Concurrency: The Secret to Scaling Concurrent Search \
                 Data Structures, ASPLOS 2015 (BST-TK)",
        progress: "insert and remove block on locks of one or two nodes; contains wait-free",
        semantics: Semantics { adt: Adt::OrderedDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::Deferred,
        memory: Memory::Nodes,
        search: Search::Logarithmic,
        deviations: &[
            "no sentinel leaves: an edge of the root takes their place, so no key value is spent",
            "an edge says whether it leads to a leaf; leaves are 16 bytes, internal nodes 32",
            "under its lock an edge is compared too, because versions of 16 bits wrap",
            "locks are given back by an atomic addition; the authors' code increments a field of 16 bits",
            "an update that fails again and again yields its core",
        ],
        invariants: &[
            "I1 only the root has empty edges",
            "I2 left keys < node's key <= right keys",
            "I3 an edge is changed only under its lock; an unlinked node stays locked",
            "I4 each node is unlinked and retired once, by one thread",
            "I5 at rest no lock in the tree is held",
        ],
        parameters: &[],
    },
    drivers: drivers!(Dgt15),
};

/// The tree. On lines of its own, because every operation reads the root.
#[repr(align(128))]
pub struct Dgt15<R: Reclaimer> {
    root: Internal,
    reclaimer: R,
}

/// One step of a walk down.
#[derive(Clone, Copy)]
struct Step<'g> {
    node: &'g Internal,
    /// Where the path goes on.
    side: usize,
    /// The locks of the node, read before its edge.
    seen: Seen,
    /// What the edge held.
    child: Link<'g>,
}

impl<'g> Step<'g> {
    /// The step from the root, where the path begins on side 0.
    fn first(root: &'g Internal, guard: &'g impl Guard) -> Self {
        let seen = root.locks.see();
        Self { node: root, side: 0, seen, child: root.edge(0).load(guard) }
    }

    /// The step from an internal node on the path of `key`.
    #[inline]
    fn take(node: &'g Internal, key: u64, guard: &'g impl Guard) -> Self {
        let seen = node.locks.see();
        Self { node, side: node.side(key), seen, child: node.next(key, guard) }
    }

    /// Takes the lock of the edge if that still is as this step found it.
    fn try_lock(&self) -> Option<Held<'g>> {
        let held = self.node.locks.try_lock(self.side, self.seen)?;
        if self.is_current() {
            return Some(held);
        }
        held.revert();
        None
    }

    /// Takes both locks of the node if the edge still is as this step found it.
    fn try_lock_both(&self) -> bool {
        if !self.node.locks.try_lock_both(self.seen) {
            return false;
        }
        let is_current = self.is_current();
        if !is_current {
            self.node.locks.revert_both(self.seen);
        }
        is_current
    }

    /// Tells, under the lock of the edge, whether it holds what it held.
    fn is_current(&self) -> bool {
        self.node.edge(self.side).read_locked() == self.child.word
    }
}

/// The end of a walk down.
struct Place<'g> {
    /// The step to the parent; `None` if the parent is the root.
    above: Option<Step<'g>>,
    /// The step from the parent to the leaf, or to EMPTY.
    last: Step<'g>,
}

impl<R: Reclaimer> Dgt15<R> {
    /// Walks to the leaf where `key` belongs, and notes the locks on the way.
    ///
    /// Every node visited was in the tree, on the path of `key`, at some moment since the guard was obtained. By
    /// induction: the root is. If the edge of a visited node is read while that is in the tree, then its child is too.
    /// Else the edge has been frozen since before the node was unlinked (I3), which was after the guard was obtained,
    /// and the child was in the tree until then. So no visited node was retired before the guard was obtained, and the
    /// guard protects it.
    fn seek<'g>(&'g self, key: u64, guard: &'g impl Guard) -> Place<'g> {
        let (mut above, mut last) = (None, Step::first(&self.root, guard));
        // In variables of their own: a record that is returned would be written to memory at every step.
        while let Some(node) = last.child.internal() {
            (above, last) = (Some(last), Step::take(node, key, guard));
        }
        Place { above, last }
    }

    /// A removal takes effect when the leaf is unlinked, so locks need not be read.
    fn contains(&self, key: u64, guard: &impl Guard) -> bool {
        let mut link = self.root.edge(0).load(guard);
        while let Some(node) = link.internal() {
            link = node.next(key, guard);
        }
        link.holds(key)
    }

    /// Puts a leaf in the place of EMPTY, or a fork of two leaves in the place of one.
    fn insert(&self, key: u64, value: u64, guard: &impl Guard) -> bool {
        let mut place = self.seek(key, guard);
        if place.last.child.holds(key) {
            return false;
        }
        let leaf = Unpublished::new(Leaf { key, value });
        let mut patience = Patience::new();
        while !hang(&place.last, key, &leaf) {
            patience.wait();
            place = self.seek(key, guard);
            if place.last.child.holds(key) {
                return false;
            }
        }
        leaf.publish();
        true
    }

    fn remove(&self, key: u64, guard: &impl Guard) -> bool {
        let mut patience = Patience::new();
        loop {
            let place = self.seek(key, guard);
            if !place.last.child.holds(key) {
                return false;
            }
            if unlink(&place, guard) {
                return true;
            }
            patience.wait();
        }
    }
}

/// Tries to hang a leaf of `key`, which was not there, on the edge of `last`. False if that has changed or is locked.
///
/// Under the lock, the node is in the tree (I3), and its edge is on the path of `key`: the keys that lead to an edge only
/// become more, when what is above it is unlinked.
fn hang(last: &Step<'_>, key: u64, leaf: &Unpublished<Leaf>) -> bool {
    if !last.seen.is_free(last.side) {
        return false;
    }
    let new_leaf = Word::to_leaf(leaf.as_ptr());
    let other = last.child.leaf();
    let fork = other.map(|other| Unpublished::new(Internal::fork((other.key, last.child.word), (key, new_leaf))));
    let Some(held) = last.try_lock() else { return false };
    let new = fork.as_ref().map_or(new_leaf, |fork| Word::to_internal(fork.as_ptr()));
    last.node.edge(last.side).set(new);
    held.release();
    if let Some(fork) = fork {
        fork.publish();
    }
    true
}

/// Tries to unlink the leaf of `place` and its parent. False if an edge has changed or a lock is held.
///
/// Under the locks, the node above is in the tree and leads to the parent, which leads to the leaf. Both locks of the
/// parent keep its other edge as it is read; the subtree there moves up whole. What is unlinked is thus the parent and
/// the leaf, and neither is ever linked again: edges are set to new nodes, and to nodes that were in the tree until then.
fn unlink(place: &Place<'_>, guard: &impl Guard) -> bool {
    let Place { above, last } = place;
    let Some(above) = above else {
        // The only leaf.
        let Some(held) = last.try_lock() else { return false };
        last.node.edge(last.side).set(Word::EMPTY);
        held.release();
        // SAFETY: the root's edge was the only one to the leaf; setting it was the leaf's unlinking (I4).
        unsafe { last.child.word.retire(guard) };
        return true;
    };
    // Before the lock above is taken in vain.
    if !last.seen.are_both_free() {
        return false;
    }
    let Some(held) = above.try_lock() else { return false };
    if !last.try_lock_both() {
        held.revert();
        return false;
    }
    let kept = last.node.edge(1 - last.side).read_locked();
    above.node.edge(above.side).set(kept);
    held.release();
    // SAFETY: the leaf, which the store above has unlinked (I4).
    unsafe { last.child.word.retire(guard) };
    // SAFETY: its parent, likewise; its locks are never given back (I3).
    unsafe { above.child.word.retire(guard) };
    true
}

impl<R: Reclaimer> ConcurrentSet for Dgt15<R> {
    type Handle<'s> = Handle<'s, R>;

    fn new(parameters: &Parameters) -> Self {
        Self { root: Internal::root(), reclaimer: R::with(parameters) }
    }

    fn handle(&self) -> Handle<'_, R> {
        Handle { tree: self, local: self.reclaimer.register() }
    }

    fn audit(&mut self) -> Audit {
        // SAFETY: `&mut self` excludes every handle.
        alone::audit(&self.root, &unsafe { Alone::new() })
    }

    fn unreclaimed(&self) -> Option<u64> {
        Some(self.reclaimer.unreclaimed())
    }
}

impl<R: Reclaimer> Drop for Dgt15<R> {
    /// Frees what is in the tree; what was unlinked is the reclaimer's, and disjoint (I4).
    fn drop(&mut self) {
        // SAFETY: `&mut self` excludes every handle.
        alone::free(&self.root, &unsafe { Alone::new() });
    }
}

/// A thread's access.
pub struct Handle<'s, R: Reclaimer> {
    tree: &'s Dgt15<R>,
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
    use super::*;
    use crate::reclaim::{
        NoReclamation,
        interleave::{Operation, explore},
    };

    #[test]
    fn every_interleaving_of_few_operations_is_explained() {
        explore::<Dgt15<NoReclamation>>(|set, operation, guard| match operation {
            Operation::Insert(key) => set.insert(key, !key, guard),
            Operation::Remove(key) => set.remove(key, guard),
            Operation::Contains(key) => set.contains(key, guard),
        });
    }

    fn with_keys(keys: &[u64]) -> Dgt15<NoReclamation> {
        let set = Dgt15::<NoReclamation>::new(&Parameters::new());
        let mut handle = set.handle();
        assert!(keys.iter().all(|&key| handle.insert(key, key)));
        drop(handle);
        set
    }

    /// Tries to insert `key` where `last` is, and frees what the attempt did not need.
    fn tries_to_hang(last: &Step<'_>, key: u64) -> bool {
        let leaf = Unpublished::new(Leaf { key, value: key });
        let done = hang(last, key, &leaf);
        if done {
            leaf.publish();
        }
        done
    }

    #[test]
    fn a_held_lock_stops_updates_of_its_edge_and_no_other() {
        let mut set = with_keys(&[5, 6]);
        let mut local = set.reclaimer.register();
        let guard = local.pin();
        // An insertion beside 6 that has stalled with its lock held.
        let place = set.seek(7, &guard);
        let held = place.last.try_lock().expect("nobody holds it");
        assert!(set.contains(6, &guard) && !set.contains(7, &guard), "contains asks no lock");
        assert!(!set.insert(6, 6, &guard), "an update that finds nothing to do asks no lock");
        assert!(!set.remove(7, &guard), "nor does this one");
        assert!(!tries_to_hang(&set.seek(8, &guard).last, 8));
        assert!(!tries_to_hang(&place.last, 7), "with the versions from before the lock was taken");
        assert!(!unlink(&set.seek(6, &guard), &guard));
        assert!(!unlink(&set.seek(5, &guard), &guard), "the removal of 5 moves the locked edge");
        assert!(tries_to_hang(&set.seek(4, &guard).last, 4), "the other edge is free");
        assert!(unlink(&set.seek(4, &guard), &guard), "and so is what hangs on it");
        held.release();
        assert!(unlink(&set.seek(6, &guard), &guard) && unlink(&set.seek(5, &guard), &guard));
        drop(local);
        assert_eq!(set.audit(), Audit::default());
        assert_eq!(set.unreclaimed(), Some(5), "three leaves and the two forks above them");
    }

    #[test]
    fn a_removal_that_gets_only_one_lock_gives_it_back() {
        let mut set = with_keys(&[5, 6]);
        let mut local = set.reclaimer.register();
        let guard = local.pin();
        let place = set.seek(6, &guard);
        // The edge to 5 changes and changes back, after the removal of 6 has walked past it.
        assert!(set.insert(4, 4, &guard) && set.remove(4, &guard));
        assert!(!unlink(&place, &guard));
        assert!(set.root.locks.see().is_free(0));
        assert!(unlink(&set.seek(6, &guard), &guard));
        drop(local);
        assert_eq!(set.audit(), Audit { size: 1, key_sum: 5, violations: Vec::new() });
    }

    #[test]
    fn a_version_that_came_round_is_not_mistaken() {
        let set = with_keys(&[5]);
        let mut local = set.reclaimer.register();
        let guard = local.pin();
        let stale = set.seek(6, &guard);
        // All 2^16 versions of the root's edge: 2^15 times out and in, the last time without 5.
        for _ in 0..1 << 14 {
            assert!(set.remove(5, &guard) && set.insert(5, 5, &guard));
            assert!(set.remove(5, &guard) && set.insert(5, 5, &guard));
        }
        let versions_agree = set.root.locks.try_lock(0, stale.last.seen).map(Held::revert).is_some();
        assert!(versions_agree, "else this test proves nothing");
        assert!(!tries_to_hang(&stale.last, 6), "the leaf of the step is not the leaf in the tree");
        assert!(!unlink(&stale, &guard));
        assert!(unlink(&set.seek(5, &guard), &guard));
    }

    #[test]
    fn what_hangs_on_an_unlinked_node_cannot_be_changed() {
        let mut set = with_keys(&[5, 6]);
        let mut local = set.reclaimer.register();
        let guard = local.pin();
        let (to_five, to_six) = (set.seek(5, &guard), set.seek(6, &guard));
        assert!(unlink(&to_six, &guard));
        assert!(!tries_to_hang(&to_five.last, 4), "its parent is unlinked");
        assert!(!tries_to_hang(&to_six.last, 7));
        assert!(!unlink(&to_five, &guard) && !unlink(&to_six, &guard));
        assert!(set.insert(4, 4, &guard) && set.contains(4, &guard) && set.contains(5, &guard));
        drop(local);
        assert_eq!(set.audit(), Audit { size: 2, key_sum: 9, violations: Vec::new() });
    }

    #[test]
    fn the_audit_sees_a_held_lock() {
        let mut set = with_keys(&[5, 6]);
        let mut local = set.reclaimer.register();
        let guard = local.pin();
        let _never_released = set.seek(6, &guard).last.try_lock().expect("nobody holds it");
        drop(local);
        let violations = vec!["I5: internal node 6 is locked at rest".to_owned()];
        assert_eq!(set.audit(), Audit { size: 2, key_sum: 11, violations });
    }
}
