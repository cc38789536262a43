//! Partially external, relaxed-balance AVL tree with optimistic traversals.
//!
//! Source: Bronson, Casper, Chafi and Olukotun, A Practical Concurrent Binary Search Tree, PPoPP 2010 (get, put, remove,
//! nodeCondition, fixHeightAndRebalance and the rotations). Updates lock the few nodes that they change. Traversals
//! lock nothing: each node has a version that changes when the range of keys under it *shrinks*, by a rotation that
//! moves it down, or by unlinking; a step to a child is valid if the version is still the one with which the node was
//! entered. A key with two children is removed by making its node a *routing* node, which is unlinked when it has
//! lost a child.
//! Progress: blocking. Updates lock nodes from parent to child; traversals wait while a node that they come to is being
//! rotated down. All waiting spins and then yields.
//! Deviations: see [`STRUCTURE`]; each is argued where it is made.
//! Speed: a step loads both children beside the key and picks one by a conditional move ([`pick`](super::pick)): 16 %
//! more searches with 100 keys than by an index.
//! Reclamation: the paper relies on garbage collection. Here the thread that unlinked a node retires it. Every node
//! that an operation visits was linked at some moment since its guard was obtained. By induction: what the links and the
//! parent link of a linked node lead to is linked, since a node is declared unlinked only after all links to it have
//! changed, under locks without which there are no new ones (I2, I5). An unlinked node was unlinked after the guard was
//! obtained, and its links and parent link have not changed since (I4), so they lead to nodes that were linked then.
//! Invariants, with *linked* for published and not yet unlinked:
//! I1 The keys of the left subtree are less than the node's key, those of the right one are greater.
//! I2 Word, links and value of a node change only under its lock; the parent link under those of the parent it leads to
//! and of the one it is to lead to.
//! I3 While keys leave the range under a linked node, its word says SHRINKING, and its version differs ever after.
//! I4 A node is unlinked once, by the thread that then retires it. From then on it is absent and only its lock changes.
//! I5 Outside of locked sections, each linked node has one link to it from a linked node or the holder, to which its
//! parent link leads.
//! I6 When no operation runs, every height is right, siblings differ by at most one in height, and every routing node has
//! two children.

mod alone;
mod balance;
mod node;

use self::{
    balance::Balancer,
    node::{Node, Ref, Version},
};
use super::unpublished::Unpublished;
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
        name: "bcco10",
        title: "optimistic AVL tree",
        source: "Bronson, Casper, Chafi and Olukotun, A Practical Concurrent Binary Search Tree, PPoPP 2010",
        progress: "blocking; traversals lock nothing, but wait while a node on their path is rotated down",
        semantics: Semantics { adt: Adt::OrderedDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::Deferred,
        memory: Memory::Nodes,
        search: Search::Logarithmic,
        deviations: &[
            "version, height, presence and lock share one word, so that a node is 48 bytes and unlocking is a store",
            "growing is not recorded: in the paper no traversal looks at it",
            "a traversal whose step is invalid begins anew at the root; the paper goes back one level at a time",
            "a node with the key sought is taken without validating the step to it",
            "every node that an operation leaves unsound is repaired, so that the tree at rest is strictly balanced; in \
             the paper some rotations leave a node to nobody",
        ],
        invariants: &[
            "I1 left keys < node's key < right keys",
            "I2 a node changes only under its lock, its parent link under those of both parents",
            "I3 a node whose range of keys shrinks says so, and has another version ever after",
            "I4 each node is unlinked and retired once, by one thread, and does not change after",
            "I5 each node has one link to it, from the node that its parent link leads to",
            "I6 at rest heights are right, siblings differ by at most one, routing nodes have two children",
        ],
        parameters: &[],
    },
    drivers: drivers!(Bcco10),
};

/// The tree. On lines of its own, because every operation reads the holder.
#[repr(align(128))]
pub struct Bcco10<R: Reclaimer> {
    /// The parent of the topmost node.
    holder: Node,
    reclaimer: R,
}

/// What a traversal found.
enum Place<'g> {
    /// The node of the key, linked at some moment since the guard was obtained.
    Node(Ref<'g>),
    /// Nothing: the key was in the range under this node, at this version, and the link for it was null.
    Under(Ref<'g>, Version),
}

impl<R: Reclaimer> Bcco10<R> {
    /// Walks to the node of `key`, or to where it would be.
    ///
    /// *A step from a node to its child is valid* if the child's link is found unchanged after the child's version was
    /// read, and then the version with which the node was entered. While the key is in the range under the node, as it
    /// was when that version was read, it is in that of the child, which began with that link: so it is when the child's
    /// version is read (I3, and I4 for an unlinked child).
    fn search<'g>(&'g self, key: u64, guard: &'g impl Guard) -> Place<'g> {
        'root: loop {
            let mut node = Ref::holder(&self.holder);
            let mut version = Version::FIRST;
            loop {
                let link = node.next(key, guard);
                let Some(child) = link else {
                    if node.word().version() == version {
                        return Place::Under(node, version);
                    }
                    continue 'root;
                };
                if child.key == key {
                    return Place::Node(child);
                }
                let word = child.word();
                let is_valid = !word.is_closed() && node.next(key, guard) == link && node.word().version() == version;
                if is_valid {
                    (node, version) = (child, word.version());
                } else if !may_read_again(node, version, child) {
                    continue 'root;
                }
            }
        }
    }

    /// The node that was found need not be linked any more. If it is present, then it is linked now. If it is absent and
    /// linked, the key is absent now, since no other linked node has it (I1). If it is unlinked, then it was absent when
    /// it was unlinked (I4), which was after the guard was obtained.
    fn contains(&self, key: u64, guard: &impl Guard) -> bool {
        match self.search(key, guard) {
            Place::Node(node) => node.word().is_present(),
            Place::Under(..) => false,
        }
    }

    fn insert(&self, key: u64, value: u64, guard: &impl Guard) -> bool {
        let balancer = self.balancer(guard);
        let mut spare = None;
        loop {
            match self.search(key, guard) {
                Place::Under(node, version) => {
                    let leaf = spare.take().unwrap_or_else(|| Unpublished::new(Node::leaf(key, value)));
                    let side = node.side(key);
                    let locked = node.lock();
                    if locked.word().version() != version || locked.child(side).is_some() {
                        spare = Some(leaf);
                        continue;
                    }
                    leaf.get().prepare(balancer.address(node));
                    locked.link_new(side, leaf.as_ptr());
                    leaf.publish();
                    balancer.repair(locked);
                    return true;
                }
                Place::Node(node) => {
                    // As in `contains`.
                    if node.word().is_present() {
                        return false;
                    }
                    let locked = node.lock();
                    if locked.word().is_present() {
                        return false;
                    }
                    if !locked.word().is_unlinked() {
                        locked.revive(value);
                        return true;
                    }
                }
            }
        }
    }

    /// Finds the node of the key, which stays the one to remove as long as it is present; that it is absent says as much
    /// as in `contains`.
    fn remove(&self, key: u64, guard: &impl Guard) -> bool {
        let Place::Node(node) = self.search(key, guard) else { return false };
        let balancer = self.balancer(guard);
        if !node.word().is_present() {
            return false;
        }
        if has_two_children(node) {
            let locked = node.lock();
            if !locked.word().is_present() {
                return false;
            }
            if has_two_children(node) {
                locked.set_present(false);
                return true;
            }
        }
        let parent = balancer.lock_parent(node);
        let locked = node.lock();
        if !locked.word().is_present() {
            return false;
        }
        if has_two_children(node) {
            locked.set_present(false);
            return true;
        }
        balancer.unlink(&parent, &locked);
        drop(locked);
        balancer.repair(parent);
        // SAFETY: unlinked just now.
        unsafe { balancer.retire(node) };
        true
    }

    fn balancer<'g, G: Guard>(&'g self, guard: &'g G) -> Balancer<'g, G> {
        Balancer { holder: Ref::holder(&self.holder), guard }
    }
}

/// Deals with a step from `node` to `child` that was not valid. True if the link may be read again, false if keys have
/// left the range under the node.
#[cold]
fn may_read_again(node: Ref<'_>, version: Version, child: Ref<'_>) -> bool {
    child.wait_while_shrinking();
    node.word().version() == version
}

/// Stable under the lock of the node.
fn has_two_children(node: Ref<'_>) -> bool {
    node.child(0).is_some() && node.child(1).is_some()
}

impl<R: Reclaimer> ConcurrentSet for Bcco10<R> {
    type Handle<'s> = Handle<'s, R>;

    fn new(parameters: &Parameters) -> Self {
        Self { holder: Node::holder(), reclaimer: R::with(parameters) }
    }

    fn handle(&self) -> Handle<'_, R> {
        Handle { tree: self, local: self.reclaimer.register() }
    }

    fn audit(&mut self) -> Audit {
        // SAFETY: `&mut self` excludes every handle.
        alone::audit(Ref::holder(&self.holder), &unsafe { Alone::new() })
    }

    fn unreclaimed(&self) -> Option<u64> {
        Some(self.reclaimer.unreclaimed())
    }
}

impl<R: Reclaimer> Drop for Bcco10<R> {
    /// Frees what is linked; what was unlinked is the reclaimer's, and disjoint (I4).
    fn drop(&mut self) {
        // SAFETY: `&mut self` excludes every handle.
        alone::free(Ref::holder(&self.holder), &unsafe { Alone::new() });
    }
}

/// A thread's access.
pub struct Handle<'s, R: Reclaimer> {
    tree: &'s Bcco10<R>,
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
    use std::{
        mem,
        sync::atomic::{AtomicBool, Ordering::SeqCst},
        thread,
    };

    use super::*;
    use crate::reclaim::NoReclamation;
    use crate::{
        reclaim::interleave::{Operation, explore},
        rng::SplitMix64,
    };

    #[test]
    fn every_interleaving_of_few_operations_is_explained() {
        explore::<Bcco10<NoReclamation>>(|set, operation, guard| match operation {
            Operation::Insert(key) => set.insert(key, !key, guard),
            Operation::Remove(key) => set.remove(key, guard),
            Operation::Contains(key) => set.contains(key, guard),
        });
    }

    fn set_of(keys: &[u64]) -> Bcco10<NoReclamation> {
        let set = Bcco10::<NoReclamation>::new(&Parameters::new());
        let mut handle = set.handle();
        assert!(keys.iter().all(|&key| handle.insert(key, key)));
        drop(handle);
        set
    }

    fn node_of<'g>(set: &'g Bcco10<NoReclamation>, key: u64, guard: &'g impl Guard) -> Ref<'g> {
        let Place::Node(node) = set.search(key, guard) else { panic!("key {key} has no node") };
        node
    }

    #[test]
    fn every_update_leaves_a_balanced_tree() {
        for n_keys in [4, 12, 60] {
            let mut set = set_of(&[]);
            let mut random = SplitMix64::new(n_keys);
            for _ in 0..10_000 {
                let (key, is_insert) = (random.next_u64() % n_keys, random.next_u64().is_multiple_of(2));
                let mut handle = set.handle();
                _ = if is_insert { handle.insert(key, key) } else { handle.remove(key) };
                drop(handle);
                assert_eq!(set.audit().violations, Vec::<String>::new(), "after {key}, {is_insert}, of {n_keys} keys");
            }
        }
    }

    #[test]
    fn a_routing_node_is_absent_can_be_revived_and_goes_with_its_child() {
        let mut set = set_of(&[5, 3, 8]);
        let mut handle = set.handle();
        assert!(handle.remove(5) && !handle.contains(5) && !handle.remove(5));
        assert_eq!(set.unreclaimed(), Some(0), "it routes to 3 and 8");
        assert!(handle.insert(5, 5) && handle.contains(5) && !handle.insert(5, 5));
        assert!(handle.remove(5) && handle.remove(8));
        assert_eq!(set.unreclaimed(), Some(2), "the node of 8, and then the one that routed to it");
        assert!(handle.contains(3) && !handle.contains(5) && !handle.contains(8));
        drop(handle);
        assert_eq!(set.audit(), Audit { size: 1, key_sum: 3, violations: Vec::new() });
    }

    #[test]
    fn a_place_is_not_used_after_its_range_has_shrunk() {
        let set = set_of(&[5, 6]);
        let (mut stalled, mut other) = (set.handle(), set.handle());
        let guard = stalled.local.pin();
        let Place::Under(node, version) = set.search(4, &guard) else { panic!("4 is absent") };
        assert!(node.key == 5 && node.word().version() == version);
        // Moves the node of 5 down, under that of 6.
        assert!(other.insert(7, 7));
        assert!(node.word().version() != version);
        let Place::Under(_, version) = set.search(4, &guard) else { panic!("4 is absent") };
        assert!(other.remove(5));
        assert!(node.word().version() != version && node.word().is_unlinked());
    }

    #[test]
    fn a_traversal_waits_for_the_end_of_a_rotation() {
        let set = set_of(&[5, 3, 8]);
        let mut handle = set.handle();
        let guard = handle.local.pin();
        let top = node_of(&set, 5, &guard).lock();
        top.begin_to_shrink();
        let (has_begun, may_end) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let traversal = scope.spawn(|| {
                let mut handle = set.handle();
                has_begun.store(true, SeqCst);
                handle.contains(8) && may_end.load(SeqCst)
            });
            while !has_begun.load(SeqCst) {
                thread::yield_now();
            }
            // Time enough for a traversal that does not wait.
            (0..100).for_each(|_| thread::yield_now());
            may_end.store(true, SeqCst);
            top.end_to_shrink(2);
            assert!(traversal.join().expect("the thread did not panic"), "it waited, and found the key");
        });
    }

    #[test]
    fn the_audit_sees_each_broken_invariant() {
        type Break = fn(&Bcco10<NoReclamation>, &Alone);
        let breaks: [(&str, Break); 5] = [
            ("I2", |set, guard| mem::forget(node_of(set, 3, guard).lock())),
            ("I4", |set, guard| node_of(set, 3, guard).lock().set_unlinked()),
            ("I5", |set, guard| node_of(set, 3, guard).set_parent(std::ptr::null_mut())),
            ("I6", |set, guard| node_of(set, 3, guard).lock().set_present(false)),
            ("I6", |set, guard| node_of(set, 3, guard).lock().set_height(2)),
        ];
        for (invariant, break_it) in breaks {
            let mut set = set_of(&[5, 3, 8]);
            assert_eq!(set.audit(), Audit { size: 3, key_sum: 16, violations: Vec::new() });
            // SAFETY: no handle is left, and nothing is retired.
            break_it(&set, &unsafe { Alone::new() });
            let audit = set.audit();
            assert!(audit.violations.iter().any(|words| words.starts_with(invariant)), "{invariant}: {audit:?}");
        }
    }
}
