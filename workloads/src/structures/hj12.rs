//! Lock-free internal binary search tree: a removed key with two children is replaced by its successor.
//!
//! Source: Howley and Jones, A Non-Blocking Internal Binary Search Tree, SPAA 2012 (find, add, remove, helpChildCAS,
//! helpMarked, helpRelocate). Every node holds a key, and an update word (the paper's op) that is clean, or leads to the
//! record of a pending operation, or is a mark. An insertion flags the node under which it hangs a new one. A removal
//! marks a node that has at most one child, and has its parent's edge swung past it; otherwise the next larger key, the
//! *source*, is *relocated* to the node of the removed key, the *target*: both are flagged, the target takes key and
//! value over, and the source is marked.
//! Progress: lock-free; `contains` helps and restarts, but allocates only to unlink a marked node.
//! Deviations: no sentinel key: the root is an anchor without key, and the tree hangs on its right edge. A clean word
//! and an empty edge hold a version instead of the last record and the last node, which garbage collection kept unlike
//! all before; nothing repeats here either (I4). Values move with keys: the paper has none. They are too wide to be
//! exchanged without ABA, so the target keeps the record, which holds the value, as its *carrier*.
//! Speed: a step loads both children beside the key and picks one by a conditional move ([`pick`](super::pick)): 24 %
//! more searches with 100 keys than by an index.
//! Reclamation: the paper leaks. Here the thread that takes the flag of a swing away retires its record and the node it
//! unlinked; a relocation has two holders. Its target may be removed and given back while the source is still flagged,
//! so helpers touch it only if they came past it, see [`Hj12::help`].
//! Invariants, with *in the tree* for reachable from the anchor:
//! I1 Edges change only in a node that is flagged with a swing, and only so; key and carrier only in the target of a
//! relocation that is decided and has flagged it. A flag becomes clean, or of a source a mark, and only after that.
//! I2 The keys of the left subtree are less than the node's key, those of the right one greater; marked nodes hold no
//! key. The keys that a node holds one after another increase.
//! I3 A mark stays. So a marked node is frozen. Only marked nodes are unlinked, so an unmarked node is in the tree.
//! I4 A word that an edge no longer holds never comes back to it: subtrees only rise, and emptiness has a version. The
//! versions of an update word increase.
//! I5 The record of a swing, and the node that it unlinked, are retired once, by the thread that took the flag away. A
//! relocation is held by its source as long as that is flagged, and by its target as long as that has it as carrier; the
//! last to let go retires it. The target is flagged only before the source's flag goes.
//! I6 A marked node has at most one child.
//! I7 When no operation runs, no node in the tree is flagged. Marked nodes may remain until an operation comes past.

mod alone;
mod node;
mod operation;

use std::ptr;

use self::{
    node::{Link, Node, Word},
    operation::{Decision, Relocation, Seen, Stamp, State, Swing},
};
use super::unpublished::Unpublished;
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
        name: "hj12",
        title: "lock-free internal BST",
        source: "Howley and Jones, A Non-Blocking Internal Binary Search Tree, SPAA 2012",
        progress: "lock-free; contains helps and may restart",
        semantics: Semantics { adt: Adt::OrderedDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::Deferred,
        memory: Memory::Nodes,
        search: Search::Logarithmic,
        deviations: &[
            "no sentinel key: an anchor without key takes the place of the root",
            "clean update words and empty edges hold versions; the paper's hold the last record and the last node",
            "values move with their keys; the paper stores none",
            "a helper that did not come past the target of a relocation searches once more before it helps, because the \
             target may have been given back",
            "records and removed nodes are retired; the paper leaks them",
        ],
        invariants: &[
            "I1 nodes change only under a flag, as its record says",
            "I2 left keys < node's key < right keys; the keys of a node increase",
            "I3 a mark stays and freezes the node; unmarked nodes are in the tree",
            "I4 neither edges nor update words ever hold a word again",
            "I5 each record and unlinked node is retired once, when nothing leads to it",
            "I6 a marked node has at most one child",
            "I7 at rest no node in the tree is flagged",
        ],
        parameters: &[],
    },
    drivers: drivers!(Hj12),
};

/// The tree. On lines of its own, because every operation reads the anchor.
#[repr(align(128))]
pub struct Hj12<R: Reclaimer> {
    anchor: Node,
    reclaimer: R,
}

/// A node that a traversal has come to.
#[derive(Clone, Copy)]
struct Place<'g> {
    /// Its parent, and a clean stamp of that, read before the edge to the node.
    parent: &'g Node,
    parent_stamp: Stamp,
    node: &'g Node,
    /// The node as the parent's edge held it. Not used of the node where the traversal began.
    word: Word,
    /// A clean stamp of the node, unless the traversal helps there.
    stamp: Stamp,
}

/// Where a traversal ended.
struct Found<'g> {
    place: Place<'g>,
    /// Whether the node holds the key.
    is_key: bool,
    /// If not: the side on which the key belongs, and what the edge there held, which is nothing.
    side: usize,
    next: Word,
}

impl<R: Reclaimer> Hj12<R> {
    /// Walks from `start`, which is the anchor or a node with that key, to the key in its right subtree or to the place
    /// where it belongs. `None` if `start` has changed so that the caller must search again.
    ///
    /// Every node visited was in the tree at some moment since the guard was obtained. By induction: the start was. If
    /// the edge of a visited node is read while that is in the tree, then its child is too. Else the edge has been frozen
    /// since the node was unlinked (I3), after the guard was obtained, and the child was in the tree until then. So no
    /// visited node was retired before the guard was obtained, and the guard protects it.
    ///
    /// Keys move up while it walks. A key that is not found could have moved from below a right turn to above it, and
    /// then the node of the last right turn has changed: its old key was the greatest below.
    fn find<'g>(&'g self, key: u64, start: &'g Node, guard: &'g impl Guard) -> Option<Found<'g>> {
        let mut suspect = None;
        'restart: loop {
            let seen = start.update.load(guard);
            if !seen.stamp.is_clean() {
                if !ptr::eq(start, &self.anchor) {
                    return None;
                }
                // The anchor is never marked nor relocated.
                if let State::Swing(swing) = seen.state() {
                    help_swing(start, seen.stamp, swing, guard);
                }
                continue;
            }
            let mut next: Link<'g> = start.edge(1).load(guard);
            let stamp = seen.stamp;
            let mut place = Place { parent: start, parent_stamp: stamp, node: start, word: next.word, stamp };
            let (mut turn, mut side, mut is_key) = (place, 1, false);
            while let Some(node) = next.node() {
                let seen = node.update.load(guard);
                place =
                    Place { parent: place.node, parent_stamp: place.stamp, node, word: next.word, stamp: seen.stamp };
                if !seen.stamp.is_clean() {
                    suspect = self.help(place, seen, turn.node, suspect, guard);
                    continue 'restart;
                }
                let node_key = node.key();
                if key == node_key {
                    is_key = true;
                    break;
                }
                side = usize::from(key > node_key);
                if side == 1 {
                    turn = place;
                }
                next = node.next(key > node_key, guard);
            }
            let has_moved = !is_key && turn.node.update.load(guard).stamp != turn.stamp;
            if !has_moved && place.node.update.load(guard).stamp == place.stamp {
                return Some(Found { place, is_key, side, next: next.word });
            }
        }
    }

    /// Walks from the anchor, which always leads somewhere.
    fn find_from_anchor<'g>(&'g self, key: u64, guard: &'g impl Guard) -> Found<'g> {
        self.find(key, &self.anchor, guard).expect("a search from the anchor helps until it ends")
    }

    fn contains(&self, key: u64, guard: &impl Guard) -> bool {
        self.find_from_anchor(key, guard).is_key
    }

    /// Hangs a new node on an empty edge (add).
    fn insert(&self, key: u64, value: u64, guard: &impl Guard) -> bool {
        let mut found = self.find_from_anchor(key, guard);
        if found.is_key {
            return false;
        }
        let new = Unpublished::new(Node::new(key, value));
        while !swing(found.place.node, found.place.stamp, found.side, found.next, Word::to_node(new.as_ptr()), guard) {
            found = self.find_from_anchor(key, guard);
            if found.is_key {
                return false;
            }
        }
        new.publish();
        true
    }

    /// Marks the node if it has at most one child, or else moves the next larger key to it (remove).
    fn remove(&self, key: u64, guard: &impl Guard) -> bool {
        loop {
            let Found { place, is_key, .. } = self.find_from_anchor(key, guard);
            if !is_key {
                return false;
            }
            // If the exchange that follows succeeds, then these were its children until then.
            if [0, 1].iter().all(|&side| !place.node.edge(side).load(guard).word.is_empty()) {
                if self.relocate(key, place, guard) {
                    return true;
                }
            } else if place.node.update.exchange(place.stamp, Stamp::MARK, guard).is_some() {
                unlink(place, guard);
                return true;
            }
        }
    }

    /// Moves the next larger key to the node of `key`. False if another operation was in the way.
    fn relocate(&self, key: u64, target: Place<'_>, guard: &impl Guard) -> bool {
        let Some(Found { place: source, .. }) = self.find(key, target.node, guard) else { return false };
        let (Some(target_version), Some(source_version)) = (target.stamp.version(), source.stamp.version()) else {
            unreachable!("a search ends at clean nodes");
        };
        let moved = (source_version, source.node.key(), source.node.value(guard));
        let old_carrier = target.node.carrier(guard);
        // Unless the target has changed: it has a right child, so the source is another node, and holds the next key.
        if target.node.update.load(guard).stamp != target.stamp {
            return false;
        }
        let record = Unpublished::new(Relocation::new((target.node, target_version, key), moved, old_carrier));
        let Some(flag) = source.node.update.exchange(source.stamp, Stamp::relocate(&record), guard) else {
            return false;
        };
        record.publish();
        let State::Relocate(relocation) = flag.state() else {
            unreachable!("the flag was made by `Stamp::relocate`");
        };
        help_relocation(source, flag.stamp, relocation, Some(target.node), guard)
    }

    /// Completes what is pending at a node, or returns the flag that must be seen once more before that is possible.
    ///
    /// *The target of a relocation* must not be touched by a helper that found the source, unless its own guard
    /// protects it. The target may have been removed before that guard was obtained; while the source is flagged, the
    /// thread that flagged it keeps the target allocated, but that thread may end its operation at any moment. (So
    /// addresses can be compared: a node at the target's address that this guard protects is the target.) If `turn`,
    /// where the traversal last went right, is the target, then it is protected.
    ///
    /// If it is not, then the target can no longer be flagged: after the same flag was found at the end of a traversal
    /// that began when the source was flagged already (`suspect`). While the source is flagged, and the target has the
    /// version of the record or its flag, the source is the leftmost node of the target's right subtree: nothing can be
    /// inserted between, and no key moves to a node between. No node gains descendants but new ones, so such a traversal,
    /// which ends at the source, comes past the target, finds it flagged and helps there, or goes right there and only
    /// left afterwards. So the target had changed: it was flagged and the flag is gone, and then the relocation was
    /// decided and made; or it never will be flagged.
    fn help<'g>(
        &'g self,
        place: Place<'g>,
        seen: Seen<'g>,
        turn: &'g Node,
        suspect: Option<Stamp>,
        guard: &'g impl Guard,
    ) -> Option<Stamp> {
        match seen.state() {
            State::Clean => {}
            State::Swing(swing) => help_swing(place.node, seen.stamp, swing, guard),
            State::Marked => unlink(place, guard),
            State::Relocate(relocation) if ptr::eq(relocation.target, place.node) => {
                settle(seen.stamp, relocation, Some(place.node), guard);
            }
            State::Relocate(relocation) => {
                let target = ptr::eq(relocation.target, turn).then_some(turn);
                if target.is_none() && suspect != Some(seen.stamp) {
                    return Some(seen.stamp);
                }
                help_relocation(place, seen.stamp, relocation, target, guard);
            }
        }
        None
    }
}

/// Flags a node that has that clean stamp, and swings one of its edges. False if the node has changed.
fn swing(node: &Node, stamp: Stamp, side: usize, old: Word, new: Word, guard: &impl Guard) -> bool {
    let version = stamp.version().expect("a search ends at clean nodes");
    let record = Unpublished::new(Swing { old, new, version });
    let Some(flag) = node.update.exchange(stamp, Stamp::swing(&record, side), guard) else { return false };
    record.publish();
    let State::Swing(swing) = flag.state() else { unreachable!("the flag was made by `Stamp::swing`") };
    help_swing(node, flag.stamp, swing, guard);
    true
}

/// Swings an edge of a flagged node, and takes the flag away (helpChildCAS).
///
/// The node that is cut off is retired after the flag is gone: a thread that comes to the flagged node later, and finds
/// the record, still compares with its address, which must not be that of a new node. Who finds the record under the flag
/// has obtained its guard before the flag goes (I4).
fn help_swing(node: &Node, flag: Stamp, swing: &Swing, guard: &impl Guard) {
    node.edge(flag.side()).swing(swing.old, swing.new);
    if node.update.exchange(flag, Stamp::clean(swing.version + 1), guard).is_some() {
        // SAFETY: this thread took the flag away, after the swing, which unlinked the old node if there was one (I5).
        unsafe { swing.old.retire(guard) };
        // SAFETY: likewise, the record.
        unsafe { flag.retire_swing(guard) };
    }
}

/// Swings the parent's edge past a marked node, unless the parent has changed (helpMarked).
fn unlink(place: Place<'_>, guard: &impl Guard) {
    let Place { parent, parent_stamp, node, word, .. } = place;
    let Some(version) = parent_stamp.version() else { return };
    // If the parent still has that version, then one of its edges leads to the node.
    let side = usize::from(parent.edge(1).load(guard).word == word);
    let children = [0, 1].map(|side| node.edge(side).load(guard).word);
    let child = children.into_iter().find(|child| !child.is_empty());
    swing(parent, parent_stamp, side, word, child.unwrap_or(Word::empty(version + 1)), guard);
}

/// Decides a relocation, and if it takes place makes the target take it over; true if it does (helpRelocate, first
/// part). Without `target`, that is known to be impossible or done, see [`Hj12::help`].
fn settle(flag: Stamp, relocation: &Relocation, target: Option<&Node>, guard: &impl Guard) -> bool {
    let clean = Stamp::clean(relocation.target_version);
    let mut decision = relocation.decision();
    if decision == Decision::Pending {
        // If the target is neither clean with that version nor flagged, then it never will be (I4), or has been; and the
        // decision was made before the flag went.
        let is_flagged = target.is_some_and(|target| {
            target.update.exchange(clean, flag, guard).is_some() || target.update.load(guard).stamp == flag
        });
        decision = relocation.decide(if is_flagged { Decision::Success } else { Decision::Failure });
    }
    let is_success = decision == Decision::Success;
    if let Some(target) = target.filter(|_| is_success) {
        target.receive(relocation, flag.relocation());
        // Fails if another thread took the flag away.
        let _ = target.update.exchange(flag, Stamp::clean(relocation.target_version + 1), guard);
    }
    is_success
}

/// Completes a relocation from its source; true if it took place (helpRelocate).
fn help_relocation(
    source: Place<'_>,
    flag: Stamp,
    relocation: &Relocation,
    target: Option<&Node>,
    guard: &impl Guard,
) -> bool {
    let is_success = settle(flag, relocation, target, guard);
    let next = if is_success { Stamp::MARK } else { Stamp::clean(relocation.source_version + 1) };
    if source.node.update.exchange(flag, next, guard).is_some() {
        if is_success {
            // SAFETY: this thread changed the source's flag, after the target took the record as its carrier (I1).
            unsafe { relocation.old_carrier.let_go(guard) };
            // SAFETY: likewise, the hold of the source.
            unsafe { flag.relocation().let_go(guard) };
        } else {
            // SAFETY: this thread changed the source's flag, and the target will never be flagged nor take the record.
            unsafe { flag.relocation().retire(guard) };
        }
    }
    if is_success {
        let is_under_target = ptr::eq(relocation.target, source.parent);
        let after = Stamp::clean(relocation.target_version + 1);
        let parent_stamp = if is_under_target { after } else { source.parent_stamp };
        unlink(Place { parent_stamp, ..source }, guard);
    }
    is_success
}

impl<R: Reclaimer> ConcurrentSet for Hj12<R> {
    type Handle<'s> = Handle<'s, R>;

    fn new(parameters: &Parameters) -> Self {
        Self { anchor: Node::new(0, 0), reclaimer: R::with(parameters) }
    }

    fn handle(&self) -> Handle<'_, R> {
        Handle { tree: self, local: self.reclaimer.register() }
    }

    fn audit(&mut self) -> Audit {
        // SAFETY: `&mut self` excludes every handle.
        alone::audit(&self.anchor, &unsafe { Alone::new() })
    }

    fn unreclaimed(&self) -> Option<u64> {
        Some(self.reclaimer.unreclaimed())
    }
}

impl<R: Reclaimer> Drop for Hj12<R> {
    /// Frees what is in the tree; what was unlinked is the reclaimer's, and disjoint (I5). No flag is left (I7).
    fn drop(&mut self) {
        // SAFETY: `&mut self` excludes every handle.
        alone::free(&self.anchor, &unsafe { Alone::new() });
    }
}

/// A thread's access.
pub struct Handle<'s, R: Reclaimer> {
    tree: &'s Hj12<R>,
    local: R::Local<'s>,
}

impl<R: Reclaimer> SetHandle for Handle<'_, R> {
    fn insert(&mut self, key: u64, value: u64) -> bool {
        self.tree.insert(key, value, &self.local.pin())
    }

    fn remove(&mut self, key: u64) -> bool {
        self.tree.remove(key, &self.local.pin())
    }

    fn contains(&mut self, key: u64) -> bool {
        self.tree.contains(key, &self.local.pin())
    }
}

#[cfg(test)]
mod tests;
