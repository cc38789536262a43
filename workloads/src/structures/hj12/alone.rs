//! Walks of the tree by a thread that is alone: the audit, and freeing it all.
//!
//! Both keep their own stack: a tree that grew from sorted keys is as deep as it has keys.

use super::{
    node::{Link, Node},
    operation::Stamp,
};
use crate::{protocol::Audit, reclaim::Alone, structures::walk::Walk};

/// What is left to visit.
enum Visit<'g> {
    /// A subtree, whose keys are above `low` and below `high`; `None` where unbounded.
    Subtree { link: Link<'g>, low: Option<u64>, high: Option<u64> },
    /// A key, after its left subtree.
    Key(u64),
}

/// Walks the keys in order and checks I2, I6 and I7. Marked nodes hold no key: they only wait to be unlinked.
pub(super) fn audit(anchor: &Node, guard: &Alone) -> Audit {
    let mut walk = Walk::new();
    if !anchor.update.load(guard).stamp.is_clean() {
        walk.violation("I7: the anchor is flagged at rest".to_owned());
    }
    let mut stack = vec![Visit::Subtree { link: anchor.edge(1).load(guard), low: None, high: None }];
    while let Some(visit) = stack.pop() {
        let (link, low, high) = match visit {
            Visit::Key(key) => {
                walk.key(key, "I2");
                continue;
            }
            Visit::Subtree { link, low, high } => (link, low, high),
        };
        let Some(node) = link.node() else { continue };
        let (key, [left, right]) = (node.key(), [0, 1].map(|side| node.edge(side).load(guard)));
        let stamp = node.update.load(guard).stamp;
        if stamp == Stamp::MARK {
            if !left.word.is_empty() && !right.word.is_empty() {
                walk.violation(format!("I6: the marked node of key {key} has two children"));
            }
            stack.extend([right, left].map(|link| Visit::Subtree { link, low, high }));
            continue;
        }
        if !stamp.is_clean() {
            walk.violation(format!("I7: the node of key {key} is flagged at rest"));
        }
        if low.is_some_and(|low| key <= low) || high.is_some_and(|high| key >= high) {
            walk.violation(format!("I2: key {key} is not between {low:?} and {high:?}"));
        }
        stack.push(Visit::Subtree { link: right, low: Some(key), high });
        stack.push(Visit::Key(key));
        stack.push(Visit::Subtree { link: left, low, high: Some(key) });
    }
    walk.finish()
}

/// Frees every node in the tree, and the carriers that they hold.
pub(super) fn free(anchor: &Node, guard: &Alone) {
    let mut stack = vec![anchor.edge(1).load(guard)];
    while let Some(link) = stack.pop() {
        if let Some(node) = link.node() {
            stack.extend([node.edge(1).load(guard), node.edge(0).load(guard)]);
        }
        // SAFETY: the tree is being dropped by a thread that is alone, so no node is ever reached again; a tree has one
        // edge to each node, so this comes once to each.
        unsafe { link.word.retire(guard) };
    }
}
