//! Splitting full leaves, and repairing what that and removals leave behind.
//!
//! A *violation* is a tagged node, which makes the path through it longer than others, or a node with fewer than
//! [`MIN_SIZE`] children or keys that is not the root. Whoever makes one walks the path of its key from the top, repairs
//! the first violation found, and again, until a walk finds none ([`OccAbtree22::settle`]). No violation is left behind:
//! a repair, by whichever thread, makes new ones only on the path of that thread's key, which then walks again; and a
//! walk finds every violation that stays on its path from its begin to its end, since ranges never change (I2): the last
//! node visited above the violation has an edge, current or frozen during the walk, to another such node or to it.
//!
//! Because the first violation is repaired, nothing above it is in the way: its parent is untagged and not too small,
//! which never changes in a node, so that the source's recursion upwards is not needed.
//!
//! Locks are taken children before parents, left before right. No deadlock: order the nodes, dead ones too, by the upper
//! end of their range, then by the number of untagged nodes from there to a leaf, then untagged before tagged, then
//! younger before older (of two tagged nodes alike in all that, the lower one came later, as the replacement of a child).
//! All this is fixed when a node is made, and every thread locks in this order.

use super::{
    OccAbtree22,
    internal::{Internal, InternalLock, Link, Node, Word},
    leaf::{Entries, Leaf, LeafLock},
};
use crate::{
    reclaim::{Guard, Reclaimer},
    structures::fan::{Fan, MAX_SIZE, MIN_SIZE},
};

/// An edge that was followed.
#[derive(Clone, Copy)]
struct Step<'g> {
    /// The node that the edge belongs to.
    holder: &'g Internal,
    side: usize,
    link: Link<'g>,
}

/// A node that breaks the rules of balance, and its parent, which does not.
struct Violation<'g> {
    parent: Step<'g>,
    node: Step<'g>,
}

/// A leaf or an internal node locked by this thread.
enum Lock<'g> {
    Leaf(LeafLock<'g>),
    Internal(InternalLock<'g>),
}

/// What takes the place of two siblings.
enum Replacement {
    /// One node with all that they had.
    Joined(Word),
    /// Two nodes that have about half of it each, and the first key of the right one's range.
    Redivided(Word, u64, Word),
}

impl<R: Reclaimer> OccAbtree22<R> {
    /// Replaces a full leaf by a tagged node over two halves, one of which has the new key. Returns whether the parent
    /// was still in the tree; if not, nothing has changed.
    pub(super) fn split_leaf(
        &self,
        parent: (&Internal, usize),
        (lock, link): (LeafLock<'_>, Link<'_>),
        (key, value): (u64, u64),
        guard: &impl Guard,
    ) -> bool {
        let (parent, side) = parent;
        let Some(parent_lock) = parent.lock() else { return false };
        debug_assert!(parent_lock.leads_to(side, link), "the leaf is locked and unmarked, so its edge is as it was");
        let mut entries = Entries::new();
        lock.copy_to(&mut entries);
        entries.push(key, value);
        let fork = fork_of_leaves(entries.sorted(), !self.is_entry(parent));
        parent_lock.set(side, Word::of_internal(fork));
        lock.mark();
        drop(parent_lock);
        // SAFETY: this thread has just unlinked and marked the leaf, under the locks of it and its parent (I5).
        unsafe { link.word.retire(guard) };
        self.settle(key, guard);
        true
    }

    /// Repairs violations on the path of `key` until a walk finds none.
    pub(super) fn settle(&self, key: u64, guard: &impl Guard) {
        while let Some(violation) = self.find_violation(key, guard) {
            match violation.node.link.node() {
                Node::Internal(node) if node.is_tagged() => self.repair_tag(&violation, node, guard),
                _ => self.repair_size(&violation, guard),
            }
        }
    }

    /// Returns the topmost violation on the path of `key`.
    fn find_violation<'g>(&'g self, key: u64, guard: &'g impl Guard) -> Option<Violation<'g>> {
        let mut parent = step(&self.entry, 0, guard);
        loop {
            let Node::Internal(holder) = parent.link.node() else { return None };
            let node = step(holder, holder.side(key), guard);
            let is_violation = match node.link.node() {
                Node::Leaf(leaf) => leaf.len() < MIN_SIZE,
                Node::Internal(internal) => internal.is_tagged() || internal.n_children() < MIN_SIZE,
            };
            if is_violation {
                return Some(Violation { parent, node });
            }
            parent = node;
        }
    }

    /// Moves the two children of a tagged node into its parent; which is split, under a tagged node, if it is full. Does
    /// nothing if another thread has changed something.
    fn repair_tag<'g>(&self, violation: &Violation<'g>, tagged: &'g Internal, guard: &impl Guard) {
        let Violation { parent, node } = violation;
        let Some(tagged_lock) = tagged.lock() else { return };
        let Some(parent_lock) = node.holder.lock() else { return };
        let Some(grandparent_lock) = parent.holder.lock() else { return };
        let mut fan = parent_lock.fan();
        fan.absorb(node.side, &tagged_lock.fan());
        let new = if fan.n_children() <= MAX_SIZE {
            Internal::of(&fan, 0..fan.n_children())
        } else {
            let (left, key, right) = halves(&fan);
            Internal::fork(left, key, right, !self.is_entry(parent.holder))
        };
        grandparent_lock.set(parent.side, Word::of_internal(new));
        tagged_lock.mark();
        parent_lock.mark();
        drop(grandparent_lock);
        for unlinked in [node, parent] {
            // SAFETY: this thread has just unlinked and marked the two, under the locks of all whose edges lead to them
            // (I5).
            unsafe { unlinked.link.word.retire(guard) };
        }
    }

    /// Joins a node that is too small with a sibling, or moves keys or children from the sibling to it. Does nothing if
    /// another thread has changed something.
    fn repair_size<'g>(&'g self, violation: &Violation<'g>, guard: &'g impl Guard) {
        let Violation { parent, node } = violation;
        // The parent is not too small, or it is the root, which has two children (I7).
        let sibling = step(node.holder, if node.side == 0 { 1 } else { node.side - 1 }, guard);
        if let Node::Internal(internal) = sibling.link.node()
            && internal.is_tagged()
        {
            let violation = Violation { parent: *parent, node: sibling };
            return self.repair_tag(&violation, internal, guard);
        }
        let (left, right) = if node.side == 0 { (node, &sibling) } else { (&sibling, node) };
        let Some(left_lock) = Lock::of(left.link.node()) else { return };
        let Some(right_lock) = Lock::of(right.link.node()) else { return };
        if left_lock.size() >= MIN_SIZE && right_lock.size() >= MIN_SIZE {
            return;
        }
        let Some(parent_lock) = node.holder.lock() else { return };
        let Some(grandparent_lock) = parent.holder.lock() else { return };
        let mut fan = parent_lock.fan();
        let new = match Replacement::of(&left_lock, fan.key(left.side), &right_lock) {
            // A root of one child is none: the child takes its place.
            Replacement::Joined(joined) if self.is_entry(parent.holder) && fan.n_children() == 2 => joined,
            Replacement::Joined(joined) => {
                fan.join(left.side, joined);
                Word::of_internal(Internal::of(&fan, 0..fan.n_children()))
            }
            Replacement::Redivided(new_left, key, new_right) => {
                fan.redivide(left.side, new_left, key, new_right);
                Word::of_internal(Internal::of(&fan, 0..fan.n_children()))
            }
        };
        grandparent_lock.set(parent.side, new);
        left_lock.mark();
        right_lock.mark();
        parent_lock.mark();
        drop(grandparent_lock);
        for unlinked in [left, right, parent] {
            // SAFETY: this thread has just unlinked and marked the three, under the locks of all whose edges lead to
            // them (I5).
            unsafe { unlinked.link.word.retire(guard) };
        }
    }

    fn is_entry(&self, node: &Internal) -> bool {
        std::ptr::eq(node, &raw const self.entry)
    }
}

/// Follows an edge.
fn step<'g>(holder: &'g Internal, side: usize, guard: &'g impl Guard) -> Step<'g> {
    Step { holder, side, link: holder.child(side, guard) }
}

/// Makes a node over two leaves that share the entries, which are sorted and at least two.
fn fork_of_leaves(entries: &[(u64, u64)], is_tagged: bool) -> Internal {
    let (left, right) = entries.split_at(entries.len() / 2);
    Internal::fork(Word::of_leaf(Leaf::new(left)), right[0].0, Word::of_leaf(Leaf::new(right)), is_tagged)
}

/// Makes two nodes that share the children, and returns the key between them.
fn halves(fan: &Fan<Word>) -> (Word, u64, Word) {
    let middle = fan.n_children() / 2;
    let (left, right) = (Internal::of(fan, 0..middle), Internal::of(fan, middle..fan.n_children()));
    (Word::of_internal(left), fan.key(middle - 1), Word::of_internal(right))
}

impl<'g> Lock<'g> {
    /// Waits for the lock; `None` if the node is marked.
    fn of(node: Node<'g>) -> Option<Self> {
        match node {
            Node::Leaf(leaf) => leaf.lock().map(Self::Leaf),
            Node::Internal(internal) => internal.lock().map(Self::Internal),
        }
    }

    /// Returns the number of keys of a leaf, of children of an internal node.
    fn size(&self) -> usize {
        match self {
            Self::Leaf(lock) => lock.len(),
            Self::Internal(lock) => lock.n_children(),
        }
    }

    /// Marks the node, which this thread has unlinked, and unlocks it.
    fn mark(self) {
        match self {
            Self::Leaf(lock) => lock.mark(),
            Self::Internal(lock) => lock.mark(),
        }
    }
}

impl Replacement {
    /// Makes it for two locked siblings with `key` between them.
    fn of(left: &Lock<'_>, key: u64, right: &Lock<'_>) -> Self {
        let is_joined = left.size() + right.size() < 2 * MIN_SIZE;
        match (left, right) {
            (Lock::Leaf(left), Lock::Leaf(right)) => {
                let mut entries = Entries::new();
                left.copy_to(&mut entries);
                right.copy_to(&mut entries);
                if is_joined {
                    return Self::Joined(Word::of_leaf(Leaf::new(entries.sorted())));
                }
                let entries = entries.sorted();
                let (left, right) = entries.split_at(entries.len() / 2);
                Self::Redivided(Word::of_leaf(Leaf::new(left)), right[0].0, Word::of_leaf(Leaf::new(right)))
            }
            (Lock::Internal(left), Lock::Internal(right)) => {
                let mut fan = left.fan();
                fan.append(key, &right.fan());
                if is_joined {
                    return Self::Joined(Word::of_internal(Internal::of(&fan, 0..fan.n_children())));
                }
                let (left, key, right) = halves(&fan);
                Self::Redivided(left, key, right)
            }
            _ => unreachable!("untagged siblings are at the same distance from the leaves (I6)"),
        }
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

    /// Eleven leaves of six keys under a full root, of which the first is filled up: the next insertion below 200 splits
    /// the leaf and the root.
    const FULL: usize = 0;
    /// As many keys under two internal nodes, of which nearly all were removed again: removals join nodes on both levels.
    const THIN: usize = 1;

    /// A set of the keys 10, 20 and 30 in a tree that holds others, so that few operations change its shape. In the thin
    /// one, they are in the set if they are not in the tree: it begins with all three in the tree.
    struct Shaped<const SHAPE: usize> {
        tree: OccAbtree22<NoReclamation>,
        others: Audit,
    }

    impl<const SHAPE: usize> ConcurrentSet for Shaped<SHAPE> {
        type Handle<'s> = <OccAbtree22<NoReclamation> as ConcurrentSet>::Handle<'s>;

        fn new(parameters: &Parameters) -> Self {
            let mut tree = OccAbtree22::new(parameters);
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
