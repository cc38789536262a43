//! Lock-free external binary search tree that marks edges instead of nodes.
//!
//! Source: Natarajan and Mittal, Fast Concurrent Lock-Free Binary Search Trees, PPoPP 2014, algorithms 1 to 4 (seek,
//! insert, delete, cleanup). Keys are in the leaves; an internal node routes. A remover *flags* the edge to its leaf
//! (the paper's injection), then *tags* the edge to the leaf's sibling, which freezes the parent, and swings the last
//! untagged edge above the parent to the sibling.
//! Progress: lock-free; `contains` writes nothing and never restarts.
//! Deviations: no sentinel nodes and no infinite keys. The paper's R and S and their three leaves are one edge, the
//! root edge: EMPTY, or to the only leaf, or to the topmost internal node. It belongs to no node, so it is never
//! tagged, and the only leaf is unlinked by swinging the root edge from flagged leaf to EMPTY. An edge says whether it
//! leads to a leaf, so that a traversal learns it without touching the node.
//! Speed: a step loads both children beside the key and picks one by a conditional move ([`pick`](super::pick)): 32 %
//! more searches with 100 keys than by an index. The word of an edge to an internal node is its address, unless tagged,
//! so no bits are cleared on the way: 17 % more. A seek keeps what it found in registers: 7 % more updates.
//! Reclamation: the paper leaks. Here the thread whose swing succeeded retires all that it cut off, see [`Nm14::splice`].
//! Invariants, with *in the tree* for reachable from the root edge:
//! I1 Every edge of an internal node leads to a node; only the root edge may be EMPTY.
//! I2 The keys of the left subtree are less than the node's key, those of the right one are not.
//! I3 A flagged edge leads to a leaf. A tagged edge has a flagged edge beside it (so the root edge has no tag).
//! I4 A flagged or tagged edge of an internal node never changes again, but that a flagged one may be tagged.
//! I5 When no operation runs, no edge in the tree is flagged or tagged.
//! I6 Each internal node and leaf is unlinked once, and retired once, by the thread whose swing unlinked it. Both edges
//! of an unlinked internal node are frozen.

mod alone;
mod edge;

use self::edge::{Edge, Internal, Leaf, Link, Word};
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
        name: "nm14",
        title: "lock-free external BST",
        source: "Natarajan and Mittal, Fast Concurrent Lock-Free Binary Search Trees, PPoPP 2014",
        progress: "lock-free; contains never writes nor restarts",
        semantics: Semantics { adt: Adt::OrderedDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::Deferred,
        memory: Memory::Nodes,
        search: Search::Logarithmic,
        deviations: &[
            "no sentinel nodes: one root edge takes their place, so no key value is spent and paths are two edges shorter",
            "an edge says whether it leads to a leaf; leaves are 16 bytes, internal nodes 24",
            "removed nodes are retired by the thread that unlinked them; the paper leaks them",
        ],
        invariants: &[
            "I1 only the root edge may be empty",
            "I2 left keys < node's key <= right keys",
            "I3 flagged edges lead to leaves; beside a tagged edge is a flagged one",
            "I4 flagged and tagged edges keep their node",
            "I5 at rest no edge in the tree is flagged or tagged",
            "I6 each node is unlinked and retired once, by one thread",
        ],
        parameters: &[],
    },
    drivers: drivers!(Nm14),
};

/// The tree. On lines of its own, because every operation reads the root edge.
#[repr(align(128))]
pub struct Nm14<R: Reclaimer> {
    root: Edge,
    reclaimer: R,
}

/// What a traversal found: the paper's seek record.
struct Seek<'g> {
    /// The last untagged edge that leads to the parent or above it.
    ancestor: &'g Edge,
    /// What `ancestor` held.
    successor: Link<'g>,
    /// The node that `edge` belongs to; `None` for the root edge.
    parent: Option<&'g Internal>,
    /// The edge to the leaf.
    edge: &'g Edge,
    /// What `edge` held: a leaf, or EMPTY.
    leaf: Link<'g>,
}

impl<R: Reclaimer> Nm14<R> {
    /// Walks to the leaf where `key` belongs (algorithm 1).
    ///
    /// Every node visited was in the tree, on the path of `key`, at some moment since the guard was obtained. By
    /// induction: the root edge is. If the edge of a visited node is read while that is in the tree, then its child is
    /// too. Else the edge has been frozen since the node was unlinked (I6), after the guard was obtained, and the child
    /// was in the tree until then. So no visited node was retired before the guard was obtained, and the guard protects
    /// it.
    fn seek<'g>(&'g self, key: u64, guard: &'g impl Guard) -> Seek<'g> {
        let (mut ancestor, mut edge, mut parent) = (&self.root, &self.root, None);
        let mut leaf = self.root.load(guard);
        let mut successor = leaf;
        // In variables of their own: a record that is returned would be written to memory at every step.
        while let Some(node) = leaf.internal() {
            if !leaf.word.is_tagged() {
                (ancestor, successor) = (edge, leaf);
            }
            (parent, edge) = (Some(node), node.edge(node.side(key)));
            leaf = node.next(key, guard);
        }
        Seek { ancestor, successor, parent, edge, leaf }
    }

    /// Flags are ignored: a removal takes effect when the leaf is unlinked.
    fn contains(&self, key: u64, guard: &impl Guard) -> bool {
        let mut link = self.root.load(guard);
        while let Some(node) = link.internal() {
            link = node.next(key, guard);
        }
        link.holds(key)
    }

    /// Puts a leaf in the place of EMPTY, or a fork of two leaves in the place of one (algorithm 2).
    fn insert(&self, key: u64, value: u64, guard: &impl Guard) -> bool {
        let mut seek = self.seek(key, guard);
        if seek.leaf.holds(key) {
            return false;
        }
        let leaf = Unpublished::new(Leaf { key, value });
        let new_leaf = Word::to_leaf(leaf.as_ptr());
        loop {
            // An unlinked node has no clean edge (I6): if this succeeds, then the edge was in the tree.
            let old = seek.leaf.word.clean();
            let fork = seek.leaf.leaf().map(|other| {
                let fork = Internal::fork((other.key, old), (key, new_leaf));
                Unpublished::new(fork)
            });
            let new = fork.as_ref().map_or(new_leaf, |fork| Word::to_internal(fork.as_ptr()));
            match seek.edge.swing(old, new) {
                Ok(()) => {
                    leaf.publish();
                    if let Some(fork) = fork {
                        fork.publish();
                    }
                    return true;
                }
                Err(now) => self.help(key, &seek, now, guard),
            }
            seek = self.seek(key, guard);
            if seek.leaf.holds(key) {
                return false;
            }
        }
    }

    /// Flags the edge to the leaf, which decides who removes it, and has it unlinked (algorithm 3).
    fn remove(&self, key: u64, guard: &impl Guard) -> bool {
        loop {
            let seek = self.seek(key, guard);
            if !seek.leaf.holds(key) {
                return false;
            }
            let leaf = seek.leaf.word.clean();
            match seek.edge.swing(leaf, leaf.flagged()) {
                Ok(()) => {
                    self.finish(key, seek, guard);
                    return true;
                }
                Err(now) => self.help(key, &seek, now, guard),
            }
        }
    }

    /// Unlinks the leaf of `seek`, which this thread has flagged, unless others do.
    ///
    /// While the leaf is in the tree, the edge to it stays flagged (I4, and a swing that moves the leaf moves its flag),
    /// and it ends the path of its key. Its address is not reused while the guard protects it.
    fn finish<'g>(&'g self, key: u64, mut seek: Seek<'g>, guard: &'g impl Guard) {
        let leaf = seek.leaf.word.clean();
        while seek.leaf.word.clean() == leaf && !self.cleanup(key, &seek, guard) {
            seek = self.seek(key, guard);
        }
    }

    /// Helps the removal that kept this thread from changing the edge of `seek`, which held `now` instead.
    fn help(&self, key: u64, seek: &Seek<'_>, now: Word, guard: &impl Guard) {
        // The same leaf, but not a clean edge: it is flagged or tagged.
        if now.clean() == seek.leaf.word.clean() {
            self.cleanup(key, seek, guard);
        }
    }

    /// Unlinks a flagged leaf under the parent of `seek`, and the parent (algorithm 4). True if this call did it.
    ///
    /// The edge of `seek` was seen flagged or tagged, or leads to a leaf that this thread has flagged.
    fn cleanup(&self, key: u64, seek: &Seek<'_>, guard: &impl Guard) -> bool {
        if let Some(parent) = seek.parent {
            return self.splice(key, seek, parent, guard);
        }
        // The only leaf. The root edge is never tagged (I3), so it was flagged.
        let flagged = seek.leaf.word.flagged();
        let done = self.root.swing(flagged, Word::EMPTY).is_ok();
        if done {
            // SAFETY: the swing took the only edge to the leaf that was in the tree: this was its unlinking (I6).
            unsafe { flagged.retire(guard) };
        }
        done
    }

    /// Tags the edge beside a flagged one, and swings the ancestor's edge to what it leads to.
    ///
    /// *One edge of the parent is flagged.* The edge of the seek, if its flag is set. Else it is tagged, so that the
    /// other is flagged (I3): either the caller saw a bit on it, and these stay (I4); or the caller flagged the leaf. In
    /// that case it did so in another edge, so a swing had moved the leaf away from this one, and swings move what is
    /// under tagged edges.
    ///
    /// *A swing that succeeds unlinks exactly this:* the internal nodes on the path of `key` from the successor to the
    /// parent, the leaf beside the path at each, and the parent's leaf that is not kept. The ancestor's edge was clean,
    /// so it was in the tree (I6), hence so was all below it. Each path edge below it, down to the parent, was read
    /// tagged: it is frozen (I4), and beside it is a flagged edge (I3), frozen too, to a leaf. So the subtree of the
    /// successor consisted of this chain, those leaves, and the subtree of the kept edge, which moves up whole.
    ///
    /// *Each node is in the share of one thread (I6):* it is in the tree until one swing and never after, since swings
    /// lead only to new nodes and to nodes that were in the tree until that swing. A leaf that two removals compete
    /// for, because both edges of the parent are flagged, is kept by the one swing that succeeds and falls to another.
    fn splice(&self, key: u64, seek: &Seek<'_>, parent: &Internal, guard: &impl Guard) -> bool {
        let side = parent.side(key);
        let is_flagged = parent.edge(side).load(guard).word.is_flagged();
        let kept_side = if is_flagged { 1 - side } else { side };
        parent.edge(kept_side).tag();
        // Frozen from here on. A flag, if the kept leaf is being removed too, moves with it.
        let kept = parent.edge(kept_side).load(guard).word.untagged();
        let done = seek.ancestor.swing(seek.successor.word, kept).is_ok();
        if done {
            // SAFETY: the swing has just succeeded, and `seek` is of this guard and key.
            unsafe { retire_chain(key, seek.successor, parent, kept_side, guard) };
        }
        done
    }
}

/// Retires what a successful swing cut off, see [`Nm14::splice`].
///
/// # Safety
/// The calling thread has swung an edge from `successor` to the child of `parent` on `kept_side`, where `successor` and
/// `parent` are from a seek of `key` under `guard`; and this is the only call for it.
unsafe fn retire_chain<'g>(key: u64, successor: Link<'g>, parent: &Internal, kept_side: usize, guard: &'g impl Guard) {
    let mut link = successor;
    while let Some(node) = link.internal() {
        let is_parent = std::ptr::eq(node, parent);
        let path_side = if is_parent { kept_side } else { node.side(key) };
        let next = node.edge(path_side).load(guard);
        let beside = node.edge(1 - path_side).load(guard);
        // SAFETY: the leaf beside the path, cut off by this thread's swing, which was its unlinking (I6).
        unsafe { beside.word.retire(guard) };
        // SAFETY: an internal node of the chain, likewise.
        unsafe { link.word.retire(guard) };
        if is_parent {
            return;
        }
        link = next;
    }
    unreachable!("the chain of tagged edges leads to the parent (I4)");
}

impl<R: Reclaimer> ConcurrentSet for Nm14<R> {
    type Handle<'s> = Handle<'s, R>;

    fn new(parameters: &Parameters) -> Self {
        Self { root: Edge::new(Word::EMPTY), reclaimer: R::with(parameters) }
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

impl<R: Reclaimer> Drop for Nm14<R> {
    /// Frees what is in the tree; what was unlinked is the reclaimer's, and disjoint (I6).
    fn drop(&mut self) {
        // SAFETY: `&mut self` excludes every handle.
        alone::free(&self.root, &unsafe { Alone::new() });
    }
}

/// A thread's access.
pub struct Handle<'s, R: Reclaimer> {
    tree: &'s Nm14<R>,
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
        explore::<Nm14<NoReclamation>>(|set, operation, guard| match operation {
            Operation::Insert(key) => set.insert(key, !key, guard),
            Operation::Remove(key) => set.remove(key, guard),
            Operation::Contains(key) => set.contains(key, guard),
        });
    }

    /// Makes a tree of these keys in which the removals of `stalled` have flagged their leaf and done no more.
    fn with_stalled_removals(keys: &[u64], stalled: &[u64]) -> Nm14<NoReclamation> {
        let set = Nm14::<NoReclamation>::new(&Parameters::new());
        let mut handle = set.handle();
        assert!(keys.iter().all(|&key| handle.insert(key, key)));
        let guard = handle.local.pin();
        for &key in stalled {
            let seek = set.seek(key, &guard);
            let leaf = seek.leaf.word.clean();
            assert!(seek.leaf.holds(key) && seek.edge.swing(leaf, leaf.flagged()).is_ok());
        }
        drop(handle);
        set
    }

    #[test]
    fn a_flagged_leaf_is_present_until_another_operation_unlinks_it() {
        for keys in [&[6][..], &[5, 6], &[6, 7], &[5, 6, 7, 8]] {
            let mut set = with_stalled_removals(keys, &[6]);
            let mut handle = set.handle();
            assert!(handle.contains(6), "a removal takes effect when the leaf is unlinked");
            assert!(!handle.remove(6), "the stalled removal owns it");
            assert!(!handle.contains(6));
            let n_retired = if keys.len() == 1 { 1 } else { 2 };
            assert_eq!(set.unreclaimed(), Some(n_retired));
            drop(handle);
            let key_sum = keys.iter().sum::<u64>() - 6;
            assert_eq!(set.audit(), Audit { size: keys.len() as u64 - 1, key_sum, violations: Vec::new() });
        }
    }

    #[test]
    fn sibling_removals_each_unlink_their_own() {
        // Both edges of one parent are flagged: the kept leaf moves up with its flag, and is unlinked from there.
        let mut set = with_stalled_removals(&[5, 6], &[5, 6]);
        let mut handle = set.handle();
        assert!(!handle.remove(5));
        assert!(handle.contains(6) && !handle.contains(5));
        assert!(!handle.remove(6) && !handle.contains(6));
        assert_eq!(set.unreclaimed(), Some(3), "two leaves and their parent");
        drop(handle);
        assert_eq!(set.audit(), Audit::default());
    }

    #[test]
    fn one_swing_unlinks_a_chain_and_retires_all_of_it() {
        // Sorted keys make a spine to the right. Removals of 1 to 3 that have tagged their path but not swung leave
        // three tagged edges in a row, which the removal of 4 cuts off at once.
        let mut set = with_stalled_removals(&[1, 2, 3, 4, 5], &[1, 2, 3]);
        let mut handle = set.handle();
        let guard = handle.local.pin();
        for key in [1, 2, 3] {
            let parent = set.seek(key, &guard).parent.expect("there are other leaves");
            parent.edge(1 - parent.side(key)).tag();
        }
        assert!(handle.remove(4));
        assert_eq!(set.unreclaimed(), Some(8), "four leaves and their parents");
        assert!([1, 2, 3, 4].into_iter().all(|key| !handle.contains(key)) && handle.contains(5));
        drop(handle);
        assert_eq!(set.audit(), Audit { size: 1, key_sum: 5, violations: Vec::new() });
    }

    #[test]
    fn the_audit_sees_a_flag_and_a_tag() {
        let mut set = with_stalled_removals(&[5, 6], &[6]);
        assert_eq!(set.audit().violations.len(), 1);
        let mut handle = set.handle();
        let guard = handle.local.pin();
        set.seek(6, &guard).edge.tag();
        drop(handle);
        let audit = set.audit();
        assert!(audit.violations.iter().any(|words| words.starts_with("I3")), "{audit:?}");
        assert!(audit.violations.iter().any(|words| words.starts_with("I5")), "{audit:?}");
    }
}
