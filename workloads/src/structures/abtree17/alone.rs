//! Walks of the tree by a thread that is alone: the audit, and freeing it all.

use super::{
    node::{Internal, Leaf, Link, Node},
    scx,
};
use crate::{
    protocol::Audit,
    reclaim::Alone,
    structures::{fan::MIN_SIZE, walk::Walk},
};

/// A subtree to visit.
#[derive(Clone, Copy)]
struct Visit<'g> {
    link: Link<'g>,
    /// The keys it may hold: from `low` on, below `high`; `None` where unbounded.
    low: u64,
    high: Option<u64>,
    /// Untagged nodes above it.
    depth: usize,
    is_root: bool,
}

/// Walks the keys in order and checks I1 to I3, and I5 to I7.
pub(super) fn audit(entry: &Internal, guard: &Alone) -> Audit {
    let mut walk = Walk::new();
    if !scx::is_idle(entry, guard) {
        walk.violation("I7: the entry is frozen at rest".to_owned());
    }
    let mut leaf_depth = None;
    let mut stack = vec![Visit { link: entry.child(0, guard), low: 0, high: None, depth: 0, is_root: true }];
    while let Some(visit) = stack.pop() {
        match visit.link.node() {
            Node::Internal(node) => {
                audit_internal(node, &visit, guard, &mut walk);
                stack.extend(children(node, &visit, guard).rev());
            }
            Node::Leaf(leaf) => {
                if *leaf_depth.get_or_insert(visit.depth) != visit.depth {
                    walk.violation(format!("I5: {visit} is below {} untagged nodes, unlike others", visit.depth));
                }
                audit_leaf(leaf, &visit, &mut walk);
            }
        }
    }
    walk.finish()
}

fn audit_internal(node: &Internal, visit: &Visit<'_>, guard: &Alone, walk: &mut Walk) {
    if !scx::is_idle(node, guard) {
        walk.violation(format!("I7: {visit} is frozen or final"));
    }
    if node.is_tagged() {
        walk.violation(format!("I7: {visit} is tagged at rest"));
    }
    if node.n_children() < MIN_SIZE {
        let invariant = if visit.is_root { "I6" } else { "I7" };
        walk.violation(format!("{invariant}: {visit} has {} children", node.n_children()));
    }
    if !node.keys().is_sorted_by(|one, next| one < next) {
        walk.violation(format!("I1: the keys of {visit} do not increase"));
    }
    if node.keys().last() == Some(&u64::MAX) {
        walk.violation(format!("I1: the largest key is one of those between the children of {visit}"));
    }
    for &key in node.keys() {
        expect_in_range(key, visit, walk);
    }
}

fn audit_leaf(leaf: &Leaf, visit: &Visit<'_>, walk: &mut Walk) {
    if leaf.keys().len() < MIN_SIZE && !visit.is_root {
        walk.violation(format!("I7: {visit} has {} keys", leaf.keys().len()));
    }
    for &key in leaf.keys() {
        expect_in_range(key, visit, walk);
        walk.key(key, "I3");
    }
}

fn expect_in_range(key: u64, visit: &Visit<'_>, walk: &mut Walk) {
    if key < visit.low || visit.high.is_some_and(|high| key >= high) {
        walk.violation(format!("I2: {visit} holds key {key}, and may not from {:?} on", visit.high));
    }
}

/// Returns the visits of the children from left to right.
fn children<'g>(node: &'g Internal, visit: &Visit<'g>, guard: &'g Alone) -> impl DoubleEndedIterator<Item = Visit<'g>> {
    let Visit { low, high, depth, .. } = *visit;
    let keys = node.keys();
    (0..node.n_children()).map(move |side| Visit {
        link: node.child(side, guard),
        low: if side == 0 { low } else { keys[side - 1] },
        high: keys.get(side).copied().or(high),
        depth: depth + usize::from(!node.is_tagged()),
        is_root: false,
    })
}

impl std::fmt::Display for Visit<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "the node of keys from {} on at depth {}", self.low, self.depth)
    }
}

/// Frees every node in the tree.
pub(super) fn free(entry: &Internal, guard: &Alone) {
    let mut stack = vec![entry.child(0, guard)];
    while let Some(link) = stack.pop() {
        if let Node::Internal(node) = link.node() {
            stack.extend((0..node.n_children()).map(|side| node.child(side, guard)));
        }
        // SAFETY: the tree is being dropped by a thread that is alone, so no node is ever reached again; each node has
        // one edge to it, so this comes once to each.
        unsafe { link.word.retire(guard) };
    }
}
