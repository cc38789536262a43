//! The audit and the drop of a skip list, by a thread that has it to itself.

use super::{Levels, Link, NodeRef, TALLEST};
use crate::{protocol::Audit, reclaim::Alone, structures::walk::Walk};

/// Names of the invariants that the walk can see, for its complaints.
pub(in super::super) struct Names {
    /// Keys strictly increase along links.
    pub(in super::super) order: &'static str,
    /// Each level has exactly the nodes that are taller than it, in the order of the lowest.
    pub(in super::super) levels: &'static str,
    /// At rest no node is being inserted or removed.
    pub(in super::super) rest: &'static str,
}

/// Walks all levels at once along the lowest: the next node must be the next on each of its levels too.
///
/// `is_settled` tells of a node whether it is neither being inserted nor removed.
///
/// # Safety
/// The calling thread has the list to itself, and `head` is its head.
pub(in super::super) unsafe fn audit<S>(
    head: NodeRef<'_, S>,
    levels: &Levels,
    guard: &Alone,
    names: &Names,
    is_settled: impl Fn(NodeRef<'_, S>) -> bool,
) -> Audit {
    let mut walk = Walk::new();
    let mut ahead: [Link<'_, S>; TALLEST] = std::array::from_fn(|level| head.next(level).load(guard));
    // SAFETY: the caller is alone, so what is in the list stays allocated; links of the head are never marked.
    while let Some(node) = unsafe { ahead[0].unmarked().node() } {
        let key = node.key();
        if is_settled(node) {
            walk.key(key, names.order);
        } else {
            walk.violation(format!("{}: the node of key {key} is not settled at rest", names.rest));
        }
        if node.height() > levels.max() || node.height() > levels.in_use() {
            walk.violation(format!("{}: key {key} has height {}", names.levels, node.height()));
        }
        for (level, link) in ahead.iter_mut().enumerate().take(node.height()) {
            if link.unmarked() != Link::to(node) {
                walk.violation(format!("{}: level {level} passes key {key} by", names.levels));
            }
            *link = node.next(level).load(guard);
            if link.is_marked() {
                walk.violation(format!("{}: key {key} is marked on level {level} at rest", names.rest));
            }
        }
    }
    for (level, link) in ahead.iter().enumerate() {
        if link.unmarked() != Link::NULL {
            walk.violation(format!("{}: level {level} leads to a node that is not on the lowest", names.levels));
        }
    }
    walk.finish()
}

/// Frees every node of the list, by its lowest level.
///
/// # Safety
/// The calling thread has the list to itself and never uses it again; what is in it was not retired.
pub(in super::super) unsafe fn free<S: Send>(head: NodeRef<'_, S>, guard: &Alone) {
    let mut link = head.next(0).load(guard);
    // SAFETY: the caller is alone; the node is in the list, so nobody has retired it, and the loop has not come by.
    while let Some(node) = unsafe { link.unmarked().node() } {
        link = node.next(0).load(guard);
        // SAFETY: the list is given up, and the next link was read before; by the caller's promise nobody else frees it.
        unsafe { node.retire(guard) };
    }
}
