//! Walks of the tree by a thread that is alone: the audit, and freeing it all.

use super::{
    internal::{Internal, Link, Node},
    leaf::{Entries, Leaf},
};
use crate::{
    protocol::Audit,
    reclaim::Alone,
    structures::{
        fan::{MIN_SIZE, Visit},
        walk::Walk,
    },
};

/// Walks the keys in order and checks I1 to I3, what can be seen of I5, and I6 to I8.
pub(super) fn audit(entry: &Internal, guard: &Alone) -> Audit {
    let mut walk = Walk::new();
    if entry.is_disturbed() {
        walk.violation("I8: the entry is locked or marked at rest".to_owned());
    }
    let mut leaf_depth = None;
    let mut stack = vec![Visit::root(entry.child(0, guard))];
    while let Some(visit) = stack.pop() {
        match visit.link.node() {
            Node::Internal(node) => {
                audit_internal(node, &visit, &mut walk);
                let children = visit.children(node.keys(), node.is_tagged(), |side| node.child(side, guard));
                stack.extend(children.rev());
            }
            Node::Leaf(leaf) => {
                if *leaf_depth.get_or_insert(visit.depth) != visit.depth {
                    walk.violation(format!("I6: {visit} is below {} untagged nodes, unlike others", visit.depth));
                }
                audit_leaf(leaf, &visit, &mut walk);
            }
        }
    }
    walk.finish()
}

fn audit_internal(node: &Internal, visit: &Visit<Link<'_>>, walk: &mut Walk) {
    if node.is_disturbed() {
        walk.violation(format!("I5, I8: {visit} is locked or marked"));
    }
    if node.is_tagged() {
        walk.violation(format!("I8: {visit} is tagged at rest"));
    }
    if node.n_children() < MIN_SIZE {
        let invariant = if visit.is_root { "I7" } else { "I8" };
        walk.violation(format!("{invariant}: {visit} has {} children", node.n_children()));
    }
    visit.expect_routes(node.keys(), walk);
}

fn audit_leaf(leaf: &Leaf, visit: &Visit<Link<'_>>, walk: &mut Walk) {
    let state = leaf.look(0).state;
    if state.is_marked() {
        walk.violation(format!("I5: {visit} is marked and in the tree"));
    }
    let Some(lock) = leaf.try_lock(state) else {
        walk.violation(format!("I8: {visit} is locked at rest"));
        return;
    };
    if lock.len() < MIN_SIZE && !visit.is_root {
        walk.violation(format!("I8: {visit} has {} keys", lock.len()));
    }
    let mut entries = Entries::new();
    lock.copy_to(&mut entries);
    for &(key, _) in entries.sorted() {
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
