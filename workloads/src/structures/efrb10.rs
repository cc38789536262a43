//! Lock-free external binary search tree whose updates flag nodes with records that others can finish.
//!
//! Source: Ellen, Fatourou, Ruppert and van Breugel, Non-blocking Binary Search Trees, PODC 2010 (Search, Insert, Delete,
//! HelpInsert, HelpDelete, HelpMarked, CAS-Child). Keys are in the leaves; an internal node routes, and has an update
//! word. An insertion *flags* the parent of the leaf that it replaces by a fork. A removal flags the grandparent, *marks*
//! the parent, and swings the grandparent's edge to the leaf's sibling. Flags and marks lead to a record, from which
//! whoever is in the way completes the operation.
//! Progress: lock-free; `contains` writes nothing and never restarts.
//! Deviations: no sentinel leaves and no infinite keys. The tree hangs on one edge of an anchor, which is the parent of
//! the topmost node, is flagged like any other, and never marked. The only leaf has no parent to mark: it is replaced by
//! nothing as an insertion replaces a leaf. A clean update word holds a version; the paper's keeps the last record, so
//! that garbage collection makes it unlike all before. Nothing repeats here either (I4), and records die at once.
//! Speed: a step loads both children beside the key and picks one by a conditional move ([`pick`](super::pick)): 33 %
//! more searches with 100 keys than by an index.
//! Reclamation: the paper relies on garbage collection. Here the thread that takes a flag away retires its record, and
//! the nodes that the record's swing cut off, see [`splice`].
//! Invariants, with *in the tree* for reachable from the anchor:
//! I1 Edges change only in a node that is flagged, by the swing of its record. A flag becomes a clean word, and only
//! after that swing, or, of a removal, after it is certain that its parent will never be marked. Only clean becomes a
//! mark. So a flagged node in the tree stays there.
//! I2 The keys of the left subtree are less than the node's key, those of the right one are not.
//! I3 A mark stays. So the edges of a marked node are frozen; nodes are unlinked marked (or are leaves).
//! I4 A word that an edge no longer holds never comes back to it: a leaf under a fork is a copy, subtrees only rise, and
//! emptiness has a version. The versions of an update word increase.
//! I5 A record, and what its swing unlinked, is retired once, by the thread that changed its flag to a clean word, which
//! comes after the unlinking.
//! I6 Only the edge of the anchor may be empty.
//! I7 When no operation runs, no node in the tree is flagged or marked.

mod alone;
mod node;
mod update;

use self::{
    node::{Internal, Leaf, Link, Word},
    update::{Removal, Seen, Stamp, State, Swing},
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
        name: "efrb10",
        title: "lock-free external BST with records",
        source: "Ellen, Fatourou, Ruppert and van Breugel, Non-blocking Binary Search Trees, PODC 2010",
        progress: "lock-free; contains never writes nor restarts",
        semantics: Semantics { adt: Adt::OrderedDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::Deferred,
        memory: Memory::Nodes,
        search: Search::Logarithmic,
        deviations: &[
            "no sentinel leaves: one anchor takes their place, so no key value is spent and paths are shorter",
            "the only leaf is removed by one swing, since it has no parent to mark",
            "a clean update word holds a version; the paper's leads to the last record",
            "records and removed nodes are retired by the thread that ended the operation; the paper relies on garbage \
             collection",
        ],
        invariants: &[
            "I1 edges change only under a flag, which goes after its swing or its failure",
            "I2 left keys < node's key <= right keys",
            "I3 a mark stays and freezes the edges",
            "I4 neither edges nor update words ever hold a word again",
            "I5 each record and unlinked node is retired once, by the thread that took the flag away",
            "I6 only the anchor's edge may be empty",
            "I7 at rest no node in the tree is flagged or marked",
        ],
        parameters: &[],
    },
    drivers: drivers!(Efrb10),
};

/// The tree. On lines of its own, because every operation reads the anchor.
#[repr(align(128))]
pub struct Efrb10<R: Reclaimer> {
    anchor: Internal,
    reclaimer: R,
}

/// What a traversal found: the paper's search result. Each update word was read before an edge of the same node.
struct Seek<'g> {
    /// The parent's parent, and its update word; `None` if the parent is the anchor.
    grandparent: Option<(&'g Internal, Seen<'g>)>,
    /// The node that the leaf hangs on.
    parent: &'g Internal,
    /// The same as the grandparent's edge held it; not used if there is none.
    parent_word: Word,
    /// The parent's update word.
    seen: Seen<'g>,
    /// Side of the parent on which the key belongs.
    side: usize,
    /// What the parent's edge held: a leaf, or nothing.
    leaf: Link<'g>,
}

impl<R: Reclaimer> Efrb10<R> {
    /// Walks to the leaf where `key` belongs (Search).
    ///
    /// Every node visited was in the tree, on the path of `key`, at some moment since the guard was obtained. By
    /// induction: the anchor is. If the edge of a visited node is read while that is in the tree, then its child is too.
    /// Else the edge has been frozen since the node was unlinked (I3), after the guard was obtained, and the child was in
    /// the tree until then. So no visited node was retired before the guard was obtained, and the guard protects it.
    fn seek<'g>(&'g self, key: u64, guard: &'g impl Guard) -> Seek<'g> {
        let (mut parent, mut seen) = (&self.anchor, self.anchor.update.load(guard));
        let mut leaf = self.anchor.edge(0).load(guard);
        let (mut grandparent, mut parent_word, mut side) = (None, leaf.word, 0);
        // In variables of their own: a record that is returned would be written to memory at every step.
        while let Some(node) = leaf.internal() {
            grandparent = Some((parent, seen));
            (parent, parent_word, seen, side) = (node, leaf.word, node.update.load(guard), node.side(key));
            leaf = node.next(key, guard);
        }
        Seek { grandparent, parent, parent_word, seen, side, leaf }
    }

    /// Flags and marks are ignored: updates take effect when an edge is swung.
    fn contains(&self, key: u64, guard: &impl Guard) -> bool {
        let mut link = self.anchor.edge(0).load(guard);
        while let Some(node) = link.internal() {
            link = node.next(key, guard);
        }
        link.holds(key)
    }

    fn insert(&self, key: u64, value: u64, guard: &impl Guard) -> bool {
        let mut seek = self.seek(key, guard);
        if seek.leaf.holds(key) {
            return false;
        }
        let leaf = Unpublished::new(Leaf { key, value });
        while !self.grow(&seek, &leaf, guard) {
            seek = self.seek(key, guard);
            if seek.leaf.holds(key) {
                return false;
            }
        }
        leaf.publish();
        true
    }

    /// Puts the new leaf in the place of nothing, or a fork of it and a copy in the place of another leaf (Insert). False
    /// if another operation was in the way, which this call helped.
    fn grow(&self, seek: &Seek<'_>, leaf: &Unpublished<Leaf>, guard: &impl Guard) -> bool {
        let new_leaf = Word::to_leaf(leaf.as_ptr());
        let Some(other) = seek.leaf.leaf() else { return self.swing(seek, |_| new_leaf, guard) };
        if seek.seen.stamp.version().is_none() {
            self.help(seek.parent, seek.seen, guard);
            return false;
        }
        // Were the other leaf itself put under the fork, it could come back to this edge, against I4.
        let copy = Unpublished::new(*other);
        let fork = Internal::fork((other.key, Word::to_leaf(copy.as_ptr())), (leaf.get().key, new_leaf));
        let fork = Unpublished::new(fork);
        let done = self.swing(seek, |_| Word::to_internal(fork.as_ptr()), guard);
        if done {
            copy.publish();
            fork.publish();
        }
        done
    }

    /// Flags the parent, and swings its edge from what the seek found to what `new` makes of the version that follows.
    /// False if another operation was in the way, which this call helped.
    fn swing(&self, seek: &Seek<'_>, new: impl FnOnce(u64) -> Word, guard: &impl Guard) -> bool {
        let parent = seek.parent;
        let Some(version) = seek.seen.stamp.version() else {
            self.help(parent, seek.seen, guard);
            return false;
        };
        let record = Unpublished::new(Swing { old: seek.leaf.word, new: new(version + 1), version });
        let Some(flag) = parent.update.exchange(seek.seen.stamp, Stamp::swing(&record, seek.side), guard) else {
            self.help(parent, parent.update.load(guard), guard);
            return false;
        };
        record.publish();
        self.help(parent, flag, guard);
        true
    }

    /// Flags the grandparent, and has the leaf and its parent unlinked (Delete).
    fn remove(&self, key: u64, guard: &impl Guard) -> bool {
        loop {
            let seek = self.seek(key, guard);
            if !seek.leaf.holds(key) {
                return false;
            }
            let done = match seek.grandparent {
                Some((grandparent, seen)) => self.prune(&seek, grandparent, seen, guard),
                None => self.swing(&seek, Word::empty, guard),
            };
            if done {
                return true;
            }
        }
    }

    /// Removes the leaf of the seek, and its parent. False if another operation was in the way, which this call helped.
    fn prune(&self, seek: &Seek<'_>, grandparent: &Internal, seen: Seen<'_>, guard: &impl Guard) -> bool {
        let Some(version) = seen.stamp.version() else {
            self.help(grandparent, seen, guard);
            return false;
        };
        if seek.seen.stamp.version().is_none() {
            self.help(seek.parent, seek.seen, guard);
            return false;
        }
        let record =
            Unpublished::new(Removal { grandparent, parent: seek.parent_word, parent_stamp: seek.seen.stamp, version });
        let flag = Stamp::remove(&record, seek.side);
        let Some(flag) = grandparent.update.exchange(seen.stamp, flag, guard) else {
            self.help(grandparent, grandparent.update.load(guard), guard);
            return false;
        };
        record.publish();
        let State::Remove(removal) = flag.state() else { unreachable!("the flag was made by `Stamp::remove`") };
        self.mark(flag.stamp, removal, guard)
    }

    /// Completes what the update word of a node was seen to ask for (Help).
    fn help(&self, node: &Internal, seen: Seen<'_>, guard: &impl Guard) {
        match seen.state() {
            State::Clean => {}
            State::Swing(swing) => {
                node.edge(seen.stamp.side()).swing(swing.old, swing.new);
                if node.update.exchange(seen.stamp, Stamp::clean(swing.version + 1), guard).is_some() {
                    // SAFETY: this thread took the flag away, after the swing, which unlinked the old leaf (I5).
                    unsafe { swing.old.retire(guard) };
                    // SAFETY: likewise, the record.
                    unsafe { seen.stamp.retire(guard) };
                }
            }
            State::Remove(removal) => _ = self.mark(seen.stamp, removal, guard),
            State::Marked(removal) => splice(seen.stamp, removal, guard),
        }
    }

    /// Marks the parent under a removal that has flagged the grandparent, and completes it; or, if the parent has changed
    /// since the leaf was found, takes the flag away and returns false (HelpDelete).
    ///
    /// All helpers decide alike: the parent was clean with the version of the record. If that is found gone, it never
    /// comes back (I4), so either the mark of this record is there and stays (I3), or it will never be.
    fn mark(&self, stamp: Stamp, removal: &Removal, guard: &impl Guard) -> bool {
        let parent = removal.parent();
        let mark = stamp.marked();
        if parent.update.exchange(removal.parent_stamp, mark, guard).is_none() {
            let now = parent.update.load(guard);
            if now.stamp != mark {
                self.help(parent, now, guard);
                self.give_up(stamp, removal, guard);
                return false;
            }
        }
        splice(mark, removal, guard);
        true
    }

    /// Takes the flag of a removal away whose parent will never be marked.
    fn give_up(&self, flag: Stamp, removal: &Removal, guard: &impl Guard) {
        let clean = Stamp::clean(removal.version + 1);
        if removal.grandparent().update.exchange(flag, clean, guard).is_some() {
            // SAFETY: this thread took the flag away; nothing was unlinked (I5).
            unsafe { flag.retire(guard) };
        }
    }
}

/// Swings the grandparent's edge past a marked parent, and takes the flag away (HelpMarked). `stamp` is flag or mark.
///
/// *Retiring waits for the flag to go.* A node that is cut off could be retired at once, but not its address given
/// back: a thread that comes to the flagged node later, and finds the record, would still compare with that address,
/// which by then could be that of a new node in the same edge. Who finds the record under the flag has obtained its guard
/// before the flag goes, so what is retired afterwards keeps its address until that guard is dropped (I4). The same
/// holds for the old leaf of a [`Swing`].
fn splice(stamp: Stamp, removal: &Removal, guard: &impl Guard) {
    let (grandparent, parent) = (removal.grandparent(), removal.parent());
    // Both edges of the parent are frozen (I3).
    let kept = parent.edge(1 - stamp.side()).load(guard).word;
    // If neither edge leads to the parent any more, then the swing was made, and this one fails.
    let parent_side = usize::from(grandparent.edge(1).load(guard).word == removal.parent);
    grandparent.edge(parent_side).swing(removal.parent, kept);
    let flag = stamp.flagged();
    if grandparent.update.exchange(flag, Stamp::clean(removal.version + 1), guard).is_some() {
        let leaf = parent.edge(stamp.side()).load(guard).word;
        // SAFETY: this thread took the flag away, after the swing, which unlinked the leaf and its parent (I5).
        unsafe { leaf.retire(guard) };
        // SAFETY: likewise, the parent.
        unsafe { removal.parent.retire(guard) };
        // SAFETY: likewise, the record.
        unsafe { flag.retire(guard) };
    }
}

impl<R: Reclaimer> ConcurrentSet for Efrb10<R> {
    type Handle<'s> = Handle<'s, R>;

    fn new(parameters: &Parameters) -> Self {
        Self { anchor: Internal::anchor(), reclaimer: R::with(parameters) }
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

impl<R: Reclaimer> Drop for Efrb10<R> {
    /// Frees what is in the tree; what was unlinked is the reclaimer's, and disjoint (I5). No record is left (I7).
    fn drop(&mut self) {
        // SAFETY: `&mut self` excludes every handle.
        alone::free(&self.anchor, &unsafe { Alone::new() });
    }
}

/// A thread's access.
pub struct Handle<'s, R: Reclaimer> {
    tree: &'s Efrb10<R>,
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
