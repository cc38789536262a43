//! Lock-free skip list: a lock-free list on every level, where removed nodes are marked in their own links.
//!
//! Source: Fraser, Practical Lock-Freedom, PhD thesis, Cambridge 2004, chapter 4, the skip list from compare-and-swap.
//! Progress: `insert` and `remove` are lock-free. `contains` is wait-free: it writes nothing, never restarts, and keys
//! increase along every level (I1). Under hazard pointers it is the search of the updates, and lock-free as they are.
//! Deviations: the mark on the lowest level decides who removes a node; in the thesis it is the exchange of the value
//! for null, since there `insert` replaces. Nodes to the right of a path are not asked for marks unless they have its
//! key, since the exchanges that follow do not depend on it. The head is not a node with a key, and the end is null.
//! The height of a node is drawn by the handle that inserts it, with a chance of 1/4 for each further level.
//! Speed: marks are cleared behind a branch, so that a step waits for one load and nothing else: 7 % more searches with
//! 100 keys.
//! Reclamation: see [`Fraser03::finish`]. As in the thesis, the inserter and the remover of a node meet in it, and the
//! later one takes it out of all levels and retires it. A node of one level has no levels to link, so its remover does.
//! Searches validate each step past a marked node, so that hazard pointers will do; see [`Fraser03::search`].
//! Invariants, with *in level i* for reachable from the head by links of level i:
//! I1 Keys strictly increase along the links of a level, whether the nodes are in it or not.
//! I2 A marked link never changes again. A node that is marked on a level is marked on all levels above: it is marked
//! from the top, and on the lowest level once, by its remover.
//! I3 Only its inserter links a node, from the lowest level up, once on each. A node is unlinked from a level only while
//! marked there. So an unmarked link of level i belongs to a node that is in level i, if it ever was, and then it is
//! in all levels below too.
//! I4 When no operation runs, no node in any level is marked, and a node is in all levels below its height.
//! I5 A node is retired once, by the later of its inserter and its remover, and is in no level from then on.

use super::tower::{self, Head, Heights, Levels, Link, NewNode, Path};
use crate::sync::atomic::{AtomicBool, Ordering::AcqRel};
use crate::{
    families::set::{ConcurrentSet, Parameters, SetHandle},
    harness::drivers,
    protocol::Audit,
    reclaim::{Alone, AnyGuard, AnyLocal, AnyReclaimer, hazard::N_SLOTS},
    structures::{Adt, Info, Insert, Memory, Reclaims, Search, Semantics, Structure},
};

/// Registry entry.
pub static STRUCTURE: Structure = Structure {
    info: Info {
        name: "fraser03",
        title: "lock-free skip list",
        source: "Fraser, Practical Lock-Freedom, PhD thesis, Cambridge 2004, chapter 4",
        progress: "insert and remove lock-free, contains wait-free, under hazard pointers lock-free",
        semantics: Semantics { adt: Adt::OrderedDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::Deferred,
        memory: Memory::Nodes,
        search: Search::Levels("max_level"),
        deviations: &[
            "the mark on the lowest level decides who removes; in the thesis the exchange of the value for null does",
            "nodes right of a path are asked for marks only if they have its key",
            "no sentinel keys",
            "heights are drawn per handle from fixed seeds, with a chance of 1/4 for each further level",
        ],
        invariants: &[
            "I1 keys strictly increase along the links of each level",
            "I2 marked links never change; a node is marked from its top level down",
            "I3 only the inserter links a node, upwards; it is unlinked from a level only while marked there",
            "I4 at rest no node is marked, and each is in all levels below its height",
            "I5 a node is retired once, by the later of its inserter and its remover, when it is in no level",
        ],
        parameters: &[tower::MAX_LEVEL],
    },
    drivers: drivers!(Fraser03, Hazard),
};

/// Whether one of the two that use a node, its inserter and its remover, has finished with it.
pub(super) struct OneFinished(AtomicBool);

type NodeRef<'g> = tower::NodeRef<'g, OneFinished>;

/// The list. On lines of its own, because every operation reads the head.
#[repr(align(128))]
pub struct Fraser03<R: AnyReclaimer> {
    head: Head<OneFinished>,
    levels: Levels,
    reclaimer: R,
}

impl OneFinished {
    /// The state of a new node. The inserter of a node of one level is finished when the node is published.
    fn of_height(height: usize) -> Self {
        Self(AtomicBool::new(height == 1))
    }

    /// Notes that the caller, the inserter or the remover, has finished. True if the other has.
    ///
    /// AcqRel: what the earlier one did to the links is visible to the later one.
    fn finish(&self) -> bool {
        self.0.swap(true, AcqRel)
    }
}

impl<R: AnyReclaimer> Fraser03<R> {
    /// Finds the place of `key` on every level from `at_least - 1` or higher down, and unlinks the marked nodes in it.
    ///
    /// On each level, at some moment during the call, `left` was in the level and led to `right`, whose key is not less
    /// than `key`; and if it is the same, then `right` was not marked. So a node of that key that is marked on all its
    /// levels, and that nobody links any more, is in none of these levels afterwards (I1, I3).
    ///
    /// (V) *Every node visited on a level was in it at some moment since the guard was obtained; so it was not retired
    /// before that* (I5), *and the guard keeps it.* By induction: what the head leads to is. Let a visited node's link be
    /// read. If the node is in the level at that moment, then the next is too. Else it was unlinked since the guard was
    /// obtained, its link has not changed since (I2, I3), and the next node was in the level until then. The path goes
    /// down only from the head or from a node whose link was read unmarked: at that moment the node was in all levels
    /// below (I3). To go down from a marked node would be wrong: its inserter may link it to a level after it was unlinked
    /// from those below.
    ///
    /// Guards that protect single nodes keep a visited node by (H) of `reclaim::any`: *it was in the level, hence not
    /// retired* (I5), *when the link that leads to it was read again after it had been announced.* If that link was
    /// unmarked then, its holder, which had been in the level before, was in the level (I3), and so was the node. If it
    /// was marked, then `left` is asked afterwards whether it still leads to `right`, unmarked: it is in the level at
    /// that moment (I3), and all links from `right` to the marked one are frozen (I2), so the holder is in the level too.
    /// It was when it was visited, and nothing comes back that was unlinked, so it was in between, and so was the node.
    /// Slots hold `left`, `right`, `end` and the next node during a step, and the path afterwards, which is to be used
    /// until the next search under the same guard, and no longer.
    fn search<'g>(&'g self, key: u64, at_least: usize, guard: &'g impl AnyGuard) -> Path<'g, OneFinished> {
        loop {
            if let Some(path) = self.try_search(key, at_least, guard) {
                return path;
            }
        }
    }

    /// See [`Self::search`]; `None` if another thread's update was in the way.
    #[inline]
    fn try_search<'g, G: AnyGuard>(&'g self, key: u64, at_least: usize, guard: &'g G) -> Option<Path<'g, OneFinished>> {
        let head = self.head.node();
        let n_levels = self.levels.in_use().max(at_least);
        let mut path = Path::new(head, n_levels);
        let mut left = head;
        // While `right` is `end`, one slot protects both, and that of `right` is free.
        let [mut of_left, mut of_right, mut of_end, mut of_next] = [0, 1, 2, 3];
        for level in (0..n_levels).rev() {
            let mut right = left.next(level).protect(guard, of_end);
            if right.is_marked() {
                return None;
            }
            let mut end = right;
            // SAFETY: `end` is unmarked, and (V).
            while let Some(node) = unsafe { end.node() } {
                let node_key = node.key();
                if node_key > key {
                    break;
                }
                let next = node.next(level).protect(guard, of_next);
                if next.is_marked() {
                    if !G::PROTECTS_ALL && !left.next(level).still_holds(right) {
                        return None;
                    }
                    if end == right {
                        [of_right, of_end] = [of_end, of_right];
                    }
                    end = next.unmarked();
                    [of_end, of_next] = [of_next, of_end];
                    continue;
                }
                if node_key == key {
                    break;
                }
                (left, right, end) = (node, next, next);
                [of_left, of_end, of_next] = [of_end, of_next, of_left];
            }
            // The nodes from `right` up to `end`, if any, are marked. They were in the level until the exchange, since
            // `left` was (I3) and their links are frozen (I2), so nothing returns that was unlinked before.
            if right != end && !left.next(level).exchange(right, end) {
                return None;
            }
            Link::to(left).keep(guard, kept(level));
            end.keep(guard, kept(level) + 1);
            path.set(level, left, end);
        }
        Some(path)
    }

    fn insert(&self, key: u64, value: u64, height: usize, guard: &impl AnyGuard) -> bool {
        self.levels.note(height);
        let mut path = self.search(key, height, guard);
        if found(&path, 0, key).is_some() {
            return false;
        }
        let new = NewNode::new(key, value, height, OneFinished::of_height(height));
        loop {
            let node = new.node();
            for level in 0..height {
                node.next(level).prepare(path.step(level).right);
            }
            let place = path.step(0);
            if place.left.next(0).exchange(place.right, Link::to(node)) {
                break;
            }
            path = self.search(key, height, guard);
            if found(&path, 0, key).is_some() {
                return false;
            }
        }
        let node = new.publish(guard);
        if height > 1 {
            self.raise(node, path, guard);
            self.finish(node, None, guard);
        }
        true
    }

    /// Links the new node to the levels above the lowest, unless it is removed meanwhile.
    ///
    /// `path` is that by which it was linked to the lowest. The node stays allocated, because this thread has yet to finish.
    ///
    /// A link of the node holds what the path has on its right, or
    /// is marked, when the node is linked; it may be marked in between, and then the node is linked to the level in vain.
    ///
    /// The path may have met an older node of the same key on an upper level, which was removed before the path came to
    /// the lowest. The new node must not come before it (I1): a search for the older one would end at the new one, and
    /// not unlink it. Another search takes it out of the level. It cannot end at a younger node: that entered after this
    /// node was marked on all levels, which is looked at first.
    fn raise<'g>(&'g self, node: NodeRef<'g>, mut path: Path<'g, OneFinished>, guard: &'g impl AnyGuard) {
        for level in 1..node.height() {
            loop {
                let next = node.next(level).look(guard);
                if next.is_marked() {
                    return;
                }
                let place = path.step(level);
                if found(&path, level, node.key()).is_none() {
                    if next != place.right && !node.next(level).exchange(next, place.right) {
                        return;
                    }
                    if place.left.next(level).exchange(place.right, Link::to(node)) {
                        break;
                    }
                }
                path = self.search(node.key(), node.height(), guard);
            }
        }
    }

    /// Marks the node, which decides who removes it, and has it unlinked.
    fn remove(&self, key: u64, guard: &impl AnyGuard) -> bool {
        let path = self.search(key, 1, guard);
        let Some(node) = found(&path, 0, key) else { return false };
        let is_removed = (0..node.height()).rev().all(|level| mark(node, level, guard) || level > 0);
        if is_removed {
            self.finish(node, Some(&path), guard);
        }
        is_removed
    }

    /// Ends the use of a node by its inserter or its remover; the later one unlinks it from all levels and retires it.
    ///
    /// Each calls this once, after its last exchange of a link of or to this node: the inserter after it has linked what
    /// it will link, the remover, of whom there is one (I2), after it has marked all levels. So the later one finds a node
    /// that is marked on all levels and that nobody links any more: other exchanges lead to it only from a node, or past
    /// a run of marked nodes, that took the place of a link to it in the level. When it has been unlinked from a level,
    /// it is out for good; when from all, it can be retired, and nobody else does (I5).
    ///
    /// `path` is a path that ended at the node, if there is one: it saves the search if nothing has changed.
    fn finish<'g>(&'g self, node: NodeRef<'g>, path: Option<&Path<'g, OneFinished>>, guard: &'g impl AnyGuard) {
        // No exchange where the answer is known: the inserter was finished before anybody saw the node.
        if node.height() > 1 && !node.state().finish() {
            return;
        }
        if !path.is_some_and(|path| unlink(node, path, guard)) {
            self.search(node.key(), node.height(), guard);
        }
        // SAFETY: it is in no level, and stays so, see above. It may be reached from nodes that were unlinked from a
        // level while they led to it: their links do not change (I2, I3), as the contract asks.
        unsafe { node.retire(guard) };
    }

    fn contains<G: AnyGuard>(&self, key: u64, guard: &G) -> bool {
        if !G::PROTECTS_ALL {
            return found(&self.search(key, 1, guard), 0, key).is_some();
        }
        let mut left = self.head.node();
        for level in (0..self.levels.in_use()).rev() {
            let mut link = left.next(level).look(guard).unmarked();
            // SAFETY: `link` is unmarked, and (V); `left` may be marked by now, but on an upper level it was not.
            while let Some(node) = unsafe { link.node() } {
                let node_key = node.key();
                if node_key > key {
                    break;
                }
                let next = node.next(level).look(guard);
                if node_key == key {
                    if !next.is_marked() {
                        // In the lowest level, and unmarked there (I2, I3).
                        return true;
                    }
                    break;
                }
                if !next.is_marked() {
                    left = node;
                }
                link = next.unmarked();
            }
        }
        false
    }
}

/// Slots of a step; those of the path come after them.
const N_OF_STEP: usize = 4;

const _: () = assert!(kept(tower::TALLEST) <= N_SLOTS);

/// Returns the slot of the node left of the path on a level; that of the right one is the next.
const fn kept(level: usize) -> usize {
    N_OF_STEP + 2 * level
}

/// Returns the node of that key at the end of the path on a level.
fn found<'g>(path: &Path<'g, OneFinished>, level: usize, key: u64) -> Option<NodeRef<'g>> {
    // SAFETY: searches put unmarked links of nodes that they visited, or null, to the right of their path, and slots keep
    // those until the next search.
    unsafe { path.step(level).right.node() }.filter(|node| node.key() == key)
}

/// Marks the node on a level. True if this call did it.
fn mark(node: NodeRef<'_>, level: usize, guard: &impl AnyGuard) -> bool {
    loop {
        let next = node.next(level).look(guard);
        if next.is_marked() {
            return false;
        }
        if node.next(level).exchange(next, next.marked()) {
            return true;
        }
    }
}

/// Unlinks a node that is marked on all levels, and that nobody links any more, along a path that ended at it. False if
/// it is not known to be out of all levels.
fn unlink<'g>(node: NodeRef<'g>, path: &Path<'g, OneFinished>, guard: &'g impl AnyGuard) -> bool {
    node.height() <= path.n_levels()
        && (0..node.height()).rev().all(|level| {
            let place = path.step(level);
            let next = node.next(level).look(guard).unmarked();
            // If it succeeds, then `left` was unmarked, so in the level (I3), and so was the node until this exchange.
            place.right == Link::to(node) && place.left.next(level).exchange(place.right, next)
        })
}

impl<R: AnyReclaimer> ConcurrentSet for Fraser03<R> {
    type Handle<'s> = Handle<'s, R>;

    fn new(parameters: &Parameters) -> Self {
        let head = Head::new(OneFinished::of_height(tower::TALLEST));
        Self { head, levels: Levels::new(parameters), reclaimer: R::with(parameters) }
    }

    fn handle(&self) -> Handle<'_, R> {
        Handle { list: self, heights: self.levels.heights(), local: self.reclaimer.register() }
    }

    fn audit(&mut self) -> Audit {
        // SAFETY: `&mut self` excludes every handle.
        let guard = unsafe { Alone::new() };
        let names = tower::Names { order: "I1", levels: "I4", rest: "I4" };
        let is_settled = |node: NodeRef<'_>| !node.next(0).load(&guard).is_marked();
        // SAFETY: likewise.
        unsafe { tower::audit(self.head.node(), &self.levels, &guard, &names, is_settled) }
    }

    fn unreclaimed(&self) -> Option<u64> {
        Some(self.reclaimer.unreclaimed())
    }
}

impl<R: AnyReclaimer> Drop for Fraser03<R> {
    /// Frees what is in the lowest level; what was retired is the reclaimer's, and disjoint (I5).
    fn drop(&mut self) {
        // SAFETY: `&mut self` excludes every handle.
        let guard = unsafe { Alone::new() };
        // SAFETY: likewise, and the list is being dropped. No operation runs, so every removed node was retired.
        unsafe { tower::free(self.head.node(), &guard) };
    }
}

/// A thread's access.
pub struct Handle<'s, R: AnyReclaimer> {
    list: &'s Fraser03<R>,
    heights: Heights,
    local: R::Local<'s>,
}

impl<R: AnyReclaimer> SetHandle for Handle<'_, R> {
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
