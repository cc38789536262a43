//! Walks of the tree by a thread that is alone: the audit, and freeing it all.
//!
//! Both keep their own stack: a tree that grew from sorted keys is as deep as it has keys.

use super::node::{Internal, Link};
use crate::{protocol::Audit, reclaim::Alone, structures::walk::Walk};

/// A subtree to visit, and the keys it may hold: from `low` on, below `high`; `None` where unbounded.
struct Visit<'g> {
    link: Link<'g>,
    low: u64,
    high: Option<u64>,
}

/// Walks the keys in order and checks I1, I2 and I5.
pub(super) fn audit(root: &Internal, guard: &Alone) -> Audit {
    let mut walk = Walk::new();
    if !root.locks.see().are_both_free() {
        walk.violation("I5: the root is locked at rest".to_owned());
    }
    if root.edge(1).load(guard).leaf().is_some() || root.edge(1).load(guard).internal().is_some() {
        walk.violation("I1: the root has a node on side 1".to_owned());
    }
    let top = root.edge(0).load(guard);
    let mut stack = vec![Visit { link: top, low: 0, high: None }];
    while let Some(Visit { link, low, high }) = stack.pop() {
        let in_bounds = |key: u64| low <= key && high.is_none_or(|high| key < high);
        if let Some(node) = link.internal() {
            if !in_bounds(node.key) {
                walk.violation(format!("I2: internal node {} is not within {low} to {high:?}", node.key));
            }
            if !node.locks.see().are_both_free() {
                walk.violation(format!("I5: internal node {} is locked at rest", node.key));
            }
            stack.push(Visit { link: node.edge(1).load(guard), low: node.key, high });
            stack.push(Visit { link: node.edge(0).load(guard), low, high: Some(node.key) });
        } else if let Some(leaf) = link.leaf() {
            if !in_bounds(leaf.key) {
                walk.violation(format!("I2: leaf {} is not within {low} to {high:?}", leaf.key));
            }
            walk.key(leaf.key, "I2");
        } else if link.word != top.word {
            walk.violation("I1: an internal node has an empty edge".to_owned());
        }
    }
    walk.finish()
}

/// Frees every node in the tree.
pub(super) fn free(root: &Internal, guard: &Alone) {
    let mut stack = vec![root.edge(0).load(guard)];
    while let Some(link) = stack.pop() {
        if let Some(node) = link.internal() {
            stack.extend([node.edge(1).load(guard), node.edge(0).load(guard)]);
        } else if link.leaf().is_none() {
            continue;
        }
        // SAFETY: the tree is being dropped by a thread that is alone, so no node is ever reached again; an external
        // tree has one edge to each node, so this comes once to each.
        unsafe { link.word.retire(guard) };
    }
}
