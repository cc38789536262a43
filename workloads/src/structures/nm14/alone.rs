//! Walks of the tree by a thread that is alone: the audit, and freeing it all.
//!
//! Both keep their own stack: a tree that grew from sorted keys is as deep as it has keys.

use super::edge::{Edge, Link};
use crate::{protocol::Audit, reclaim::Alone, structures::walk::Walk};

/// A subtree to visit, and the keys it may hold: from `low` on, below `high`; `None` where unbounded.
struct Visit<'g> {
    link: Link<'g>,
    low: u64,
    high: Option<u64>,
}

/// Walks the keys in order and checks I1 to I3 and I5.
pub(super) fn audit(root: &Edge, guard: &Alone) -> Audit {
    let mut walk = Walk::new();
    let root = root.load(guard);
    let mut stack = vec![Visit { link: root, low: 0, high: None }];
    while let Some(Visit { link, low, high }) = stack.pop() {
        if link.word.is_flagged() || link.word.is_tagged() {
            walk.violation(format!("I5: an edge to keys from {low} on is flagged or tagged at rest"));
        }
        let in_bounds = |key: u64| low <= key && high.is_none_or(|high| key < high);
        if let Some(node) = link.internal() {
            if link.word.is_flagged() {
                walk.violation(format!("I3: the edge to internal node {} is flagged", node.key));
            }
            if !in_bounds(node.key) {
                walk.violation(format!("I2: internal node {} is not within {low} to {high:?}", node.key));
            }
            let (left, right) = (node.edge(0).load(guard), node.edge(1).load(guard));
            if left.word.is_tagged() && !right.word.is_flagged() || right.word.is_tagged() && !left.word.is_flagged() {
                walk.violation(format!("I3: internal node {} has a tag without a flag beside it", node.key));
            }
            stack.push(Visit { link: right, low: node.key, high });
            stack.push(Visit { link: left, low, high: Some(node.key) });
        } else if let Some(leaf) = link.leaf() {
            if !in_bounds(leaf.key) {
                walk.violation(format!("I2: leaf {} is not within {low} to {high:?}", leaf.key));
            }
            walk.key(leaf.key, "I2");
        } else if link.word != root.word {
            walk.violation("I1: an internal node has an empty edge".to_owned());
        }
    }
    walk.finish()
}

/// Frees every node in the tree.
pub(super) fn free(root: &Edge, guard: &Alone) {
    let mut stack = vec![root.load(guard)];
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
