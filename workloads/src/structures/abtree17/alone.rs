//! Walks of the tree by a thread that is alone: the audit, and freeing it all.

use super::{
    node::{Internal, Leaf, Link, Node},
    scx,
};
use crate::{
    protocol::Audit,
    reclaim::Alone,
    structures::{
        fan::{MIN_SIZE, Visit},
        walk::Walk,
    },
};

/// Walks the keys in order and checks I1 to I3, and I5 to I7.
pub(super) fn audit(entry: &Internal, guard: &Alone) -> Audit {
    let mut walk = Walk::new();
    if !scx::is_idle(entry, guard) {
        walk.violation("I7: the entry is frozen at rest".to_owned());
    }
    let mut leaf_depth = None;
    let mut stack = vec![Visit::root(entry.child(0, guard))];
    while let Some(visit) = stack.pop() {
        match visit.link.node() {
            Node::Internal(node) => {
                audit_internal(node, &visit, guard, &mut walk);
                let children = visit.children(node.keys(), node.is_tagged(), |side| node.child(side, guard));
                stack.extend(children.rev());
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

fn audit_internal(node: &Internal, visit: &Visit<Link<'_>>, guard: &Alone, walk: &mut Walk) {
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
    visit.expect_routes(node.keys(), walk);
}

fn audit_leaf(leaf: &Leaf, visit: &Visit<Link<'_>>, walk: &mut Walk) {
    if leaf.keys().len() < MIN_SIZE && !visit.is_root {
        walk.violation(format!("I7: {visit} has {} keys", leaf.keys().len()));
    }
    for &key in leaf.keys() {
        visit.expect_in_range(key, walk);
        walk.key(key, "I3");
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
