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

/// Walks the keys in order and checks I2, I6 and I7.
pub(super) fn audit(anchor: &Internal, guard: &Alone) -> Audit {
    let mut walk = Walk::new();
    if anchor.update.load(guard).stamp.version().is_none() {
        walk.violation("I7: the anchor is flagged or marked at rest".to_owned());
    }
    let root = anchor.edge(0).load(guard);
    let mut stack = vec![Visit { link: root, low: 0, high: None }];
    while let Some(Visit { link, low, high }) = stack.pop() {
        let in_bounds = |key: u64| low <= key && high.is_none_or(|high| key < high);
        if let Some(node) = link.internal() {
            if !in_bounds(node.key) {
                walk.violation(format!("I2: internal node {} is not within {low} to {high:?}", node.key));
            }
            if node.update.load(guard).stamp.version().is_none() {
                walk.violation(format!("I7: internal node {} is flagged or marked at rest", node.key));
            }
            stack.push(Visit { link: node.edge(1).load(guard), low: node.key, high });
            stack.push(Visit { link: node.edge(0).load(guard), low, high: Some(node.key) });
        } else if let Some(leaf) = link.leaf() {
            if !in_bounds(leaf.key) {
                walk.violation(format!("I2: leaf {} is not within {low} to {high:?}", leaf.key));
            }
            walk.key(leaf.key, "I2");
        } else if link.word != root.word {
            walk.violation("I6: an internal node has an empty edge".to_owned());
        }
    }
    walk.finish()
}

/// Frees every node in the tree.
pub(super) fn free(anchor: &Internal, guard: &Alone) {
    let mut stack = vec![anchor.edge(0).load(guard)];
    while let Some(link) = stack.pop() {
        if let Some(node) = link.internal() {
            stack.extend([node.edge(1).load(guard), node.edge(0).load(guard)]);
        }
        // SAFETY: the tree is being dropped by a thread that is alone, so no node is ever reached again; an external
        // tree has one edge to each node, so this comes once to each.
        unsafe { link.word.retire(guard) };
    }
}
