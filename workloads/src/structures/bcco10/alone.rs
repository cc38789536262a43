//! Walks of the tree by a thread that is alone: the audit, and freeing it all.

use super::node::{Link, Ref};
use crate::{
    protocol::Audit,
    reclaim::{Alone, Guard},
    structures::walk::Walk,
};

/// Walks the keys in order and checks I1 and I4 to I6, and that no lock is held.
pub(super) fn audit(holder: Ref<'_>, guard: &Alone) -> Audit {
    let mut walk = Walk::new();
    if holder.word().is_locked() {
        walk.violation("I2: the holder is locked at rest".to_owned());
    }
    // Nodes whose left subtree is being walked, with that of which they are children.
    let mut stack = Vec::new();
    let mut keys = Keys::default();
    let (mut parent, mut link) = (None, holder.child(1));
    loop {
        while let Some(node) = link {
            judge(&mut walk, node, parent, guard);
            stack.push(node);
            (parent, link) = (link, node.child(0));
        }
        let Some(node) = stack.pop() else { return walk.finish() };
        keys.next(&mut walk, node);
        (parent, link) = (Some(node), node.child(1));
    }
}

/// The order of all keys, those of routing nodes included.
#[derive(Default)]
struct Keys {
    last: Option<u64>,
}

impl Keys {
    fn next(&mut self, walk: &mut Walk, node: Ref<'_>) {
        if let Some(last) = self.last.filter(|&last| last >= node.key) {
            walk.violation(format!("I1: key {} follows key {last}", node.key));
        }
        self.last = Some(node.key);
        if node.word().is_present() {
            walk.key(node.key, "I1");
        }
    }
}

/// Checks what can be seen at one node.
fn judge<'g>(walk: &mut Walk, node: Ref<'g>, parent: Link<'g>, guard: &'g impl Guard) {
    let (key, word) = (node.key, node.word());
    let children = [node.child(0), node.child(1)];
    if word.is_locked() {
        walk.violation(format!("I2: the node of key {key} is locked at rest"));
    }
    if word.is_unlinked() {
        walk.violation(format!("I4: the node of key {key} is in the tree, and said to be unlinked"));
    }
    if node.parent(guard) != parent {
        walk.violation(format!("I5: the node of key {key} does not lead back to its parent"));
    }
    if !word.is_present() && children.iter().any(Option::is_none) {
        walk.violation(format!("I6: the node of key {key} is absent and has nothing to route"));
    }
    let [left, right] = children.map(|child| child.map_or(0, |child| child.word().height()));
    if word.height() != 1 + left.max(right) || left.abs_diff(right) > 1 {
        let height = word.height();
        walk.violation(format!("I6: the node of key {key} has height {height} above {left} and {right}"));
    }
}

/// Frees every node in the tree.
pub(super) fn free(holder: Ref<'_>, guard: &Alone) {
    let mut stack: Vec<Ref<'_>> = holder.child(1).into_iter().collect();
    while let Some(node) = stack.pop() {
        stack.extend([node.child(0), node.child(1)].into_iter().flatten());
        // SAFETY: the tree is being dropped by a thread that is alone, so no node is ever reached again; each has one
        // parent (I5), so this comes once to each.
        unsafe { guard.retire(node.as_ptr()) };
    }
}
