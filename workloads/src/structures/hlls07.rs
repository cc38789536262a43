//! Skip list with a lock in every node, taken only to validate and change what was found without locks.
//!
//! Source: Herlihy, Lev, Luchangco and Shavit, A Simple Optimistic Skiplist Algorithm, SIROCCO 2007.
//! Progress: `insert` and `remove` lock the nodes before the place on each level, in descending order of keys, hence
//! without deadlock; a thread that waits for a lock spins, then yields. `contains` is wait-free: it writes nothing, never
//! restarts, and keys increase along every level (I1).
//! Deviations: `insert` and `remove` look for the key on the lowest level; the paper asks on which level a search met the
//! node first, which says no more than the validation. A removed node's own lock is released once it is marked, since
//! its links cannot change from then on (I2). No sentinel keys: the head is not a node with a key, and the end is null.
//! The height of a node is drawn by the handle that inserts it, with a chance of 1/4 for each further level.
//! Reclamation: the paper relies on garbage collection. Here the remover, who has unlinked the node from all levels under
//! the locks of its neighbours, retires it.
//! Invariants, with *in level i* for reachable from the head by links of level i:
//! I1 Keys strictly increase along the links of a level, whether the nodes are in it or not.
//! I2 The links of a node in the list change only under its lock and while it is not marked; it is marked under its lock.
//! I3 A node is linked from the lowest level up and unlinked from the top down, each once, while all nodes before it are
//! locked. So a node that is in a level is in all levels below too, and one that is not marked stays in its levels.
//! I4 Only a node that is linked to all levels (*linked*) is marked, and only a marked one is unlinked.
//! I5 When no operation runs, no node in any level is locked, marked or not linked.
//! I6 A node is unlinked and retired once, by the thread that marked it.

mod state;

use self::state::{State, Wait};
use super::tower::{self, Head, Heights, Levels, Link, NewNode, Step};
use crate::{
    families::set::{ConcurrentSet, Parameters, SetHandle},
    harness::drivers,
    protocol::Audit,
    reclaim::{Alone, Guard, Local, Reclaimer},
    structures::{Adt, Info, Insert, Memory, Reclaims, Search, Semantics, Structure},
};

/// Registry entry.
pub static STRUCTURE: Structure = Structure {
    info: Info {
        name: "hlls07",
        title: "optimistic skip list",
        source: "Herlihy, Lev, Luchangco and Shavit, A Simple Optimistic Skiplist Algorithm, SIROCCO 2007",
        progress: "insert and remove lock, contains wait-free",
        semantics: Semantics { adt: Adt::OrderedDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::Deferred,
        memory: Memory::Nodes,
        search: Search::Levels("max_level"),
        deviations: &[
            "updates look for the key on the lowest level; the paper asks on which level it was met first",
            "a removed node's own lock is released once it is marked; the paper holds it until the node is unlinked",
            "no sentinel keys",
            "heights are drawn per handle from fixed seeds, with a chance of 1/4 for each further level",
            "the remover retires; the paper relies on garbage collection",
        ],
        invariants: &[
            "I1 keys strictly increase along the links of each level",
            "I2 links change only under their node's lock and while it is not marked",
            "I3 a node is linked upwards and unlinked downwards, once, while all nodes before it are locked",
            "I4 only a node linked to all levels is marked, and only a marked one is unlinked",
            "I5 at rest no node in the list is locked, marked or not linked, and each is in all levels below its height",
            "I6 a node is unlinked and retired once, by the thread that marked it",
        ],
        parameters: &[tower::MAX_LEVEL],
    },
    drivers: drivers!(Hlls07),
};

type NodeRef<'g> = tower::NodeRef<'g, State>;
type Path<'g> = tower::Path<'g, State>;

/// The list. On lines of its own, because every operation reads the head.
#[repr(align(128))]
pub struct Hlls07<R: Reclaimer> {
    head: Head<State>,
    levels: Levels,
    reclaimer: R,
}

impl<R: Reclaimer> Hlls07<R> {
    /// Finds the place of `key` on every level from `at_least - 1` or higher down.
    ///
    /// (V) *Every node visited on a level was in it at some moment since the guard was obtained; so it was not retired
    /// before that* (I6), *and the guard keeps it.* By induction: what the head leads to is. Let a visited node's link be
    /// read. If the node is in the level at that moment, then the next is too. Else it was unlinked since the guard was
    /// obtained, its link has not changed since (I2, I4), and the next node was in the level until then. Where the path
    /// goes down from a node, that was at the same moment in the levels below (I3).
    #[inline]
    fn find<'g>(&'g self, key: u64, at_least: usize, guard: &'g impl Guard) -> Path<'g> {
        let mut left = self.head.node();
        let n_levels = self.levels.in_use().max(at_least);
        let mut path = Path::new(left, n_levels);
        for level in (0..n_levels).rev() {
            let mut right = left.next(level).load(guard);
            // SAFETY: links of this list are never marked, and (V).
            while let Some(node) = unsafe { right.node() } {
                if node.key() >= key {
                    break;
                }
                (left, right) = (node, node.next(level).load(guard));
            }
            path.set(level, left, right);
        }
        path
    }

    fn insert(&self, key: u64, value: u64, height: usize, guard: &impl Guard) -> bool {
        self.levels.note(height);
        let mut wait = Wait::new();
        let mut new = None;
        loop {
            let path = self.find(key, height, guard);
            if let Some(node) = right_of(path.step(0)).filter(|node| node.key() == key) {
                if !node.state().is_marked() {
                    // It is not present before, and it is at that moment: it cannot be marked earlier (I4).
                    node.state().wait_until_linked();
                    return false;
                }
                // Its remover has yet to unlink it.
                wait.pause();
                continue;
            }
            let new: &NewNode<State> = new.get_or_insert_with(|| NewNode::new(key, value, height, State::new()));
            let Some(locks) = Locks::take(&path, height, |place| right_of(place).is_none_or(is_unmarked)) else {
                // A neighbour's remover may have yet to unlink it.
                wait.pause();
                continue;
            };
            link(new.node(), &path);
            drop(locks);
            break;
        }
        new.expect("the loop ends after the node was linked").publish(guard);
        true
    }

    /// Marks the node, which decides who removes it, and unlinks it.
    fn remove(&self, key: u64, guard: &impl Guard) -> bool {
        let mut path = self.find(key, 1, guard);
        let Some(node) = right_of(path.step(0)).filter(|node| node.key() == key) else { return false };
        if !node.state().is_present() || !node.state().mark() {
            return false;
        }
        let is_before = |place: Step<'_, State>| place.right == Link::to(node);
        let mut wait = Wait::new();
        loop {
            if node.height() <= path.n_levels() {
                if unlink(node, &path, is_before) {
                    break;
                }
                // A neighbour's remover may have yet to unlink it.
                wait.pause();
            }
            path = self.find(key, node.height(), guard);
        }
        // SAFETY: `unlink` has taken it out of all levels, which is done once (I6). Nodes that were unlinked while they
        // led to it keep doing so (I2), as the contract asks; nobody links it again: an insertion would have to find it
        // after a neighbour under that neighbour's lock.
        unsafe { node.retire(guard) };
        true
    }

    fn contains(&self, key: u64, guard: &impl Guard) -> bool {
        let mut left = self.head.node();
        for level in (0..self.levels.in_use()).rev() {
            let mut link = left.next(level).load(guard);
            // SAFETY: links of this list are never marked, and (V) of `find`.
            while let Some(node) = unsafe { link.node() } {
                let node_key = node.key();
                if node_key >= key {
                    if node_key == key {
                        return node.state().is_present();
                    }
                    break;
                }
                (left, link) = (node, node.next(level).load(guard));
            }
        }
        false
    }
}

/// Returns the node on the right of a step of a path.
fn right_of<'g>(place: Step<'g, State>) -> Option<NodeRef<'g>> {
    // SAFETY: `find` puts links of visited nodes on the right, or null; for visited nodes see (V) there.
    unsafe { place.right.node() }
}

fn is_unmarked(node: NodeRef<'_>) -> bool {
    !node.state().is_marked()
}

/// The locks of the nodes on the left of a path, on the levels below a height; released when dropped.
struct Locks<'p, 'g> {
    path: &'p Path<'g>,
    height: usize,
}

impl<'p, 'g> Locks<'p, 'g> {
    /// Takes the locks, from the lowest level up: in descending order of keys, the head last. Gives up when a place is no
    /// longer as the path has it, or not as the caller needs it.
    ///
    /// If it succeeds, then each node on the left is in its level (it was when it was visited or later, and it is not
    /// marked, I3, I4), and leads to the node on the right, until the locks are released.
    fn take(path: &'p Path<'g>, height: usize, is_suitable: impl Fn(Step<'g, State>) -> bool) -> Option<Self> {
        let mut locks = Self { path, height: 0 };
        for level in 0..height {
            let place = path.step(level);
            if locks.is_first(level) {
                place.left.state().lock();
            }
            locks.height = level + 1;
            let is_as_found = !place.left.state().is_marked() && place.left.next(level).locked() == place.right;
            if !is_as_found || !is_suitable(place) {
                return None;
            }
        }
        Some(locks)
    }

    /// Tells whether the node on the left is not that of the level below: levels that have a node in common are adjacent.
    fn is_first(&self, level: usize) -> bool {
        level == 0 || self.path.step(level - 1).left != self.path.step(level).left
    }
}

impl Drop for Locks<'_, '_> {
    fn drop(&mut self) {
        for level in (0..self.height).rev().filter(|&level| self.is_first(level)) {
            self.path.step(level).left.state().unlock();
        }
    }
}

/// Links a new node to its levels, upwards. The nodes on the left are locked.
fn link(node: NodeRef<'_>, path: &Path<'_>) {
    for level in 0..node.height() {
        node.next(level).prepare(path.step(level).right);
    }
    for level in 0..node.height() {
        path.step(level).left.next(level).store(Link::to(node));
    }
    node.state().set_linked();
}

/// Unlinks the node, which the caller has marked, from its levels, downwards. False if the path is out of date.
fn unlink<'g>(node: NodeRef<'g>, path: &Path<'g>, is_before: impl Fn(Step<'g, State>) -> bool) -> bool {
    let Some(_locks) = Locks::take(path, node.height(), is_before) else { return false };
    for level in (0..node.height()).rev() {
        // The links of a marked node do not change (I2).
        path.step(level).left.next(level).store(node.next(level).locked());
    }
    true
}

impl<R: Reclaimer> ConcurrentSet for Hlls07<R> {
    type Handle<'s> = Handle<'s, R>;

    fn new(parameters: &Parameters) -> Self {
        Self { head: Head::new(State::new()), levels: Levels::new(parameters), reclaimer: R::with(parameters) }
    }

    fn handle(&self) -> Handle<'_, R> {
        Handle { list: self, heights: self.levels.heights(), local: self.reclaimer.register() }
    }

    fn audit(&mut self) -> Audit {
        // SAFETY: `&mut self` excludes every handle.
        let guard = unsafe { Alone::new() };
        let names = tower::Names { order: "I1", levels: "I5", rest: "I5" };
        let is_settled = |node: NodeRef<'_>| node.state().is_present() && !node.state().is_locked();
        // SAFETY: likewise.
        unsafe { tower::audit(self.head.node(), &self.levels, &guard, &names, is_settled) }
    }

    fn unreclaimed(&self) -> Option<u64> {
        Some(self.reclaimer.unreclaimed())
    }
}

impl<R: Reclaimer> Drop for Hlls07<R> {
    /// Frees what is in the lowest level; what was retired is the reclaimer's, and disjoint (I6).
    fn drop(&mut self) {
        // SAFETY: `&mut self` excludes every handle.
        let guard = unsafe { Alone::new() };
        // SAFETY: likewise, and the list is being dropped. No operation runs, so every removed node was retired.
        unsafe { tower::free(self.head.node(), &guard) };
    }
}

/// A thread's access.
pub struct Handle<'s, R: Reclaimer> {
    list: &'s Hlls07<R>,
    heights: Heights,
    local: R::Local<'s>,
}

impl<R: Reclaimer> SetHandle for Handle<'_, R> {
    fn insert(&mut self, key: u64, value: u64) -> bool {
        self.list.insert(key, value, self.heights.draw(), &self.local.pin())
    }

    fn remove(&mut self, key: u64) -> bool {
        self.list.remove(key, &self.local.pin())
    }

    fn contains(&mut self, key: u64) -> bool {
        self.list.contains(key, &self.local.pin())
    }
}

#[cfg(test)]
mod tests;
