//! Repairing what splits and removals do to the balance.
//!
//! A *violation* is a tagged node, which makes the path through it longer than others, or a node with fewer than
//! [`MIN_SIZE`] children or keys that is not the root. Whoever makes one walks the path of its key from the top, repairs
//! the first violation found, and again, until a walk finds none ([`Abtree17::settle`]). No violation is left behind:
//! a repair, by whichever thread, makes new ones only on the path of that thread's key, which then walks again; and a
//! walk finds every violation that stays on its path from its begin to its end, since ranges never change (I2): the last
//! node visited above the violation has an edge, current or frozen during the walk, to another such node or to it.
//!
//! Because the first violation is repaired, nothing above it is in the way: its parent is untagged and not too small,
//! which never changes in a node. Every repair is one SCX on the edge to the parent, whose nodes are the parent's parent,
//! the parent, and its children that go, as far as they are internal; leaves cannot change, nor be unlinked while their
//! parent is frozen. All threads freeze parents before children and left before right, so that one of them gets ahead.

use super::{
    Abtree17,
    node::{Drafts, Internal, Leaf, Link, Node, Word},
    scx::{Seen, llx},
};
use crate::{
    reclaim::{Guard, Reclaimer},
    structures::fan::{Fan, MAX_SIZE, MIN_SIZE},
};

/// An edge that was followed.
#[derive(Clone, Copy)]
pub(super) struct Step<'g> {
    /// The node that the edge belongs to.
    pub(super) holder: &'g Internal,
    pub(super) side: usize,
    pub(super) link: Link<'g>,
}

/// A node that breaks the rules of balance, and its parent, which does not.
struct Violation<'g> {
    parent: Step<'g>,
    node: Step<'g>,
}

/// What takes the place of two siblings.
enum Replacement {
    /// One node with all that they had.
    Joined(Word),
    /// Two nodes that have about half of it each, and the first key of the right one's range.
    Redivided(Word, u64, Word),
}

impl<R: Reclaimer> Abtree17<R> {
    /// Repairs violations on the path of `key` until a walk finds none.
    pub(super) fn settle(&self, key: u64, guard: &impl Guard) {
        while let Some(violation) = self.find_violation(key, guard) {
            match violation.node.link.node() {
                Node::Internal(node) if node.is_tagged() => self.repair_tag(&violation, node, guard),
                _ => self.repair_size(&violation, guard),
            };
        }
    }

    /// Returns the topmost violation on the path of `key`.
    fn find_violation<'g>(&'g self, key: u64, guard: &'g impl Guard) -> Option<Violation<'g>> {
        let mut parent = step(&self.entry, 0, guard);
        loop {
            let Node::Internal(holder) = parent.link.node() else { return None };
            let node = step(holder, holder.side(key), guard);
            let is_violation = match node.link.node() {
                Node::Leaf(leaf) => leaf.keys().len() < MIN_SIZE,
                Node::Internal(internal) => internal.is_tagged() || internal.n_children() < MIN_SIZE,
            };
            if is_violation {
                return Some(Violation { parent, node });
            }
            parent = node;
        }
    }

    /// Moves the two children of a tagged node into its parent; which is split, under a tagged node, if it is full. `None`
    /// if another thread has changed something; nothing has changed then.
    fn repair_tag<'g>(&self, violation: &Violation<'g>, tagged: &'g Internal, guard: &'g impl Guard) -> Option<()> {
        let Violation { parent, node } = violation;
        let grandparent = see_edge(parent, guard)?;
        let (seen_parent, mut fan) = llx(node.holder, guard, |node| node.fan(guard))?;
        if fan.child(node.side) != node.link.word {
            return None;
        }
        let (seen_tagged, fork) = llx(tagged, guard, |node| node.fan(guard))?;
        fan.absorb(node.side, &fork);
        let mut drafts = Drafts::new();
        let new = if fan.n_children() <= MAX_SIZE {
            drafts.internal(&fan, 0..fan.n_children())
        } else {
            let halves = drafts.halves(&fan);
            drafts.fork(halves, !self.is_entry(parent.holder))
        };
        if !self.records.scx(&[grandparent, seen_parent, seen_tagged], parent.side, (parent.link.word, new), guard) {
            return None;
        }
        drafts.publish();
        for unlinked in [parent, node] {
            // SAFETY: this thread's record has just unlinked the two, and had frozen them (I4).
            unsafe { unlinked.link.word.retire(guard) };
        }
        Some(())
    }

    /// Joins a node that is too small with a sibling, or moves keys or children from the sibling to it. `None` if another
    /// thread has changed something; nothing has changed then.
    fn repair_size<'g>(&self, violation: &Violation<'g>, guard: &'g impl Guard) -> Option<()> {
        let Violation { parent, node } = violation;
        // The parent is not too small, or it is the root, which has two children (I6).
        let sibling = step(node.holder, if node.side == 0 { 1 } else { node.side - 1 }, guard);
        if let Node::Internal(internal) = sibling.link.node()
            && internal.is_tagged()
        {
            return self.repair_tag(&Violation { parent: *parent, node: sibling }, internal, guard);
        }
        let (left, right) = if node.side == 0 { (node, &sibling) } else { (&sibling, node) };
        let grandparent = see_edge(parent, guard)?;
        let (seen_parent, mut fan) = llx(node.holder, guard, |node| node.fan(guard))?;
        if fan.child(left.side) != left.link.word || fan.child(right.side) != right.link.word {
            return None;
        }
        let mut seen = [grandparent, seen_parent, seen_parent, seen_parent];
        let mut drafts = Drafts::new();
        let (replacement, n_seen) = match (left.link.node(), right.link.node()) {
            (Node::Leaf(left), Node::Leaf(right)) => {
                let mut entries = [(0, 0); MAX_SIZE + 1];
                let n_entries = left.keys().len() + right.keys().len();
                for (slot, entry) in entries.iter_mut().zip(left.entries().chain(right.entries())) {
                    *slot = entry;
                }
                (Replacement::of_leaves(&entries[..n_entries], &mut drafts), 2)
            }
            (Node::Internal(left_node), Node::Internal(right_node)) => {
                let (seen_left, mut children) = llx(left_node, guard, |node| node.fan(guard))?;
                let (seen_right, others) = llx(right_node, guard, |node| node.fan(guard))?;
                children.append(fan.key(left.side), &others);
                (seen[2], seen[3]) = (seen_left, seen_right);
                (Replacement::of_internals(&children, &mut drafts), 4)
            }
            _ => unreachable!("untagged siblings are at the same distance from the leaves (I5)"),
        };
        let new = match replacement {
            // A root of one child is none: the child takes its place.
            Replacement::Joined(joined) if self.is_entry(parent.holder) && fan.n_children() == 2 => joined,
            Replacement::Joined(joined) => {
                fan.join(left.side, joined);
                drafts.internal(&fan, 0..fan.n_children())
            }
            Replacement::Redivided(new_left, key, new_right) => {
                fan.redivide(left.side, new_left, key, new_right);
                drafts.internal(&fan, 0..fan.n_children())
            }
        };
        if !self.records.scx(&seen[..n_seen], parent.side, (parent.link.word, new), guard) {
            return None;
        }
        drafts.publish();
        for unlinked in [parent, left, right] {
            // SAFETY: this thread's record has just unlinked the three, and had frozen them, or, if they are leaves, the
            // parent, which has the only edges to them (I4).
            unsafe { unlinked.link.word.retire(guard) };
        }
        Some(())
    }
}

/// Follows an edge.
#[inline]
pub(super) fn step<'g>(holder: &'g Internal, side: usize, guard: &'g impl Guard) -> Step<'g> {
    Step { holder, side, link: holder.child(side, guard) }
}

/// Sees the holder of an edge that still leads where it led; else `None`.
pub(super) fn see_edge<'g>(step: &Step<'g>, guard: &'g impl Guard) -> Option<Seen<'g>> {
    let (seen, now) = llx(step.holder, guard, |node| node.child(step.side, guard).word)?;
    (now == step.link.word).then_some(seen)
}

impl Replacement {
    /// Drafts it for two leaves with these entries, which are in the order of their keys.
    fn of_leaves(entries: &[(u64, u64)], drafts: &mut Drafts) -> Self {
        if entries.len() < 2 * MIN_SIZE {
            return Self::Joined(drafts.leaf(Leaf::new(entries)));
        }
        let (left, key, right) = drafts.half_leaves(entries);
        Self::Redivided(left, key, right)
    }

    /// Drafts it for two internal nodes with these children.
    fn of_internals(children: &Fan<Word>, drafts: &mut Drafts) -> Self {
        if children.n_children() < 2 * MIN_SIZE {
            return Self::Joined(drafts.internal(children, 0..children.n_children()));
        }
        let (left, key, right) = drafts.halves(children);
        Self::Redivided(left, key, right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        families::set::{ConcurrentSet, Parameters, SetHandle},
        protocol::Audit,
        reclaim::{
            Local, NoReclamation,
            interleave::{Operation, explore},
        },
    };

    /// Eleven leaves under a full root, of which the first is filled up: the next insertion below 200 splits the leaf and
    /// the root.
    const FULL: usize = 0;
    /// As many keys under two internal nodes, of which nearly all were removed again: removals join nodes on both levels.
    const THIN: usize = 1;

    /// A set of the keys 10, 20 and 30 in a tree that holds others, so that few operations change its shape. In the thin
    /// one, they are in the set if they are not in the tree: it begins with all three in the tree.
    struct Shaped<const SHAPE: usize> {
        tree: Abtree17<NoReclamation>,
        others: Audit,
    }

    impl<const SHAPE: usize> ConcurrentSet for Shaped<SHAPE> {
        type Handle<'s> = <Abtree17<NoReclamation> as ConcurrentSet>::Handle<'s>;

        fn new(parameters: &Parameters) -> Self {
            let mut tree = Abtree17::new(parameters);
            let mut handle = tree.handle();
            if SHAPE == FULL {
                assert!((1..=66).all(|key| handle.insert(key * 100, 0)));
                assert!((601..=605).all(|key| handle.insert(key, 0)));
            } else {
                assert!((1..=72).all(|key| handle.insert(key, 0)));
                let kept = [7, 10, 20, 21, 30, 29, 43, 44, 67, 68];
                assert!((1..=72).filter(|key| !kept.contains(key)).all(|key| handle.remove(key)));
            }
            drop(handle);
            let others = tree.audit();
            Self { tree, others }
        }

        fn handle(&self) -> Self::Handle<'_> {
            self.tree.handle()
        }

        fn audit(&mut self) -> Audit {
            let all = self.tree.audit();
            let (more, less) = if SHAPE == FULL { (&all, &self.others) } else { (&self.others, &all) };
            Audit {
                size: more.size.wrapping_sub(less.size),
                key_sum: more.key_sum.wrapping_sub(less.key_sum),
                violations: all.violations,
            }
        }

        fn unreclaimed(&self) -> Option<u64> {
            self.tree.unreclaimed()
        }
    }

    impl<const SHAPE: usize> Shaped<SHAPE> {
        /// Returns the numbers of children on the leftmost path.
        fn sizes(&self) -> Vec<usize> {
            let mut handle = self.tree.handle();
            let guard = handle.local.pin();
            let mut sizes = Vec::new();
            let mut link = self.tree.entry.child(0, &guard);
            while let Node::Internal(node) = link.node() {
                sizes.push(node.n_children());
                link = node.child(0, &guard);
            }
            sizes
        }
    }

    #[test]
    fn every_interleaving_of_operations_that_split_is_explained() {
        explore::<Shaped<FULL>>(|set, operation, guard| match operation {
            Operation::Insert(key) => set.tree.insert(key, !key, guard),
            Operation::Remove(key) => set.tree.remove(key, guard),
            Operation::Contains(key) => set.tree.contains(key, guard),
        });
    }

    #[test]
    fn every_interleaving_of_operations_that_join_is_explained() {
        explore::<Shaped<THIN>>(|set, operation, guard| match operation {
            Operation::Insert(key) => set.tree.remove(key, guard),
            Operation::Remove(key) => set.tree.insert(key, !key, guard),
            Operation::Contains(key) => !set.tree.contains(key, guard),
        });
    }

    #[test]
    fn a_split_of_a_full_root_adds_a_level_and_joins_take_it_away() {
        let set = Shaped::<FULL>::new(&Parameters::new());
        assert_eq!(set.sizes(), [11]);
        assert!(set.handle().insert(10, 10));
        assert_eq!(set.sizes(), [2, 6]);
        let set = Shaped::<THIN>::new(&Parameters::new());
        assert_eq!(set.sizes(), [2, 3]);
        let mut handle = set.handle();
        let after = [10, 20, 30].map(|key| handle.remove(key).then(|| set.sizes()));
        assert_eq!(after, [Some(vec![2, 2]), Some(vec![2, 2]), Some(vec![3])]);
    }
}
