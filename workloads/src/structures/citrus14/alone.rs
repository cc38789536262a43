//! Walks of the tree by a thread that is alone: the audit, and freeing it all.

use super::node::Ref;
use crate::{
    protocol::Audit,
    reclaim::{Alone, Guard},
    structures::walk::Walk,
};

/// Walks the keys in order and checks I1, and I2 and I4 at rest.
pub(super) fn audit(holder: Ref<'_>, guard: &Alone) -> Audit {
    let mut walk = Walk::new();
    if holder.is_locked() {
        walk.violation("I2: the holder is locked at rest".to_owned());
    }
    // Nodes whose left subtree is being walked.
    let mut stack = Vec::new();
    let mut link = holder.child(1, guard);
    loop {
        while let Some(node) = link {
            stack.push(node);
            link = node.child(0, guard);
        }
        let Some(node) = stack.pop() else { return walk.finish() };
        walk.key(node.key, "I1");
        if node.is_locked() {
            walk.violation(format!("I2: the node of key {} is locked at rest", node.key));
        }
        if node.version().is_marked() {
            walk.violation(format!("I4: the node of key {} is in the tree, and marked", node.key));
        }
        link = node.child(1, guard);
    }
}

/// Frees every node in the tree.
pub(super) fn free(holder: Ref<'_>, guard: &Alone) {
    let mut stack: Vec<Ref<'_>> = holder.child(1, guard).into_iter().collect();
    while let Some(node) = stack.pop() {
        stack.extend([node.child(0, guard), node.child(1, guard)].into_iter().flatten());
        // SAFETY: the tree is being dropped by a thread that is alone, so no node is ever reached again; each has one
        // link to it (I3), so this comes once to each.
        unsafe { guard.retire(node.as_ptr()) };
    }
}
