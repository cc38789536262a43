//! Lock-free relaxed (a,b)-tree by LLX and SCX.
//!
//! Source: Brown, Techniques for Constructing Efficient Lock-free Data Structures, PhD thesis, Toronto 2017, chapter 8; the
//! primitives are those of Brown, Ellen and Ruppert, PODC 2013, see [`mod@scx`]. The shape is that of Larsen and Fagerberg's
//! relaxed (a,b)-trees, a = 2 and b = 11. Keys are in the leaves, which never change: an update puts another leaf in the
//! place of one, or a tagged node over two halves. What that does to the balance is repaired afterwards, see [`repair`].
//! Progress: lock-free; `contains` writes nothing and never restarts.
//! Deviations: an SCX that only puts a leaf in the place of another has no record, see [`mod@scx`]. A record is taken out
//! of its nodes again once it is done, and an unlinked node is known by the final word left in place of it; the source
//! leaves records where they are, and has a mark beside them. Leaves are frozen by their parent, and have no info word of
//! their own. Violations of balance are found from the top of a key's path; the source searches for the node. No sentinel
//! but the entry, so that no key value is spent.
//! Speed, in throughput gained at 100,000 keys: a child is selected by one chain of moves, not by a sum that is compiled to
//! vector instructions (searches, one thread: +80 %); an update that fits its leaf allocates and retires no record, and
//! makes two exchanges instead of five, and its leaf is copied without unforeseeable branches (updates, two threads: +31 %).
//! Reclamation: epochs in the source too. The thread that unlinked nodes retires them, and its record if it has one.
//! Invariants, with *in the tree* for reachable from the entry, and *size* for the number of children or keys:
//! I1 An internal node has 1 to b children, none null, and between them keys that strictly increase, none the largest key.
//! Only its info word and its edges ever change.
//! I2 The keys below an edge are not less than the key left of it, and less than the key right of it. So the range of a
//! node in the tree, which is what the keys on its path leave, never changes.
//! I3 A leaf has 0 to b keys, which increase, and never changes.
//! I4 A node is unlinked once, by a record or leaf that has frozen it, or its parent if it is a leaf; and retired once, by
//! the thread that made that. Edges of an unlinked node never change.
//! I5 All leaves are below the same number of untagged nodes.
//! I6 The root is not tagged; if internal, it has two children or more. No other node becomes the root.
//! I7 When no operation runs, all info words in the tree are idle, no node is tagged, and none but the root is smaller than
//! a.

mod alone;
mod node;
mod repair;
mod scx;

use self::{
    node::{Drafts, Internal, Leaf, Node, Word},
    repair::{Step, see_edge, step},
    scx::Records,
};
use crate::{
    families::set::{ConcurrentSet, Parameters, SetHandle},
    harness::drivers,
    protocol::Audit,
    reclaim::{Alone, Guard, Local, Reclaimer},
    structures::{
        Adt, Info, Insert, Memory, Reclaims, Search, Semantics, Structure,
        fan::{MAX_SIZE, MIN_SIZE},
    },
};

/// Registry entry.
pub static STRUCTURE: Structure = Structure {
    info: Info {
        name: "abtree17",
        title: "lock-free (a,b)-tree",
        source: "Brown, Techniques for Constructing Efficient Lock-free Data Structures, PhD thesis, Toronto 2017",
        progress: "lock-free; contains never writes nor restarts",
        semantics: Semantics { adt: Adt::OrderedDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::Deferred,
        memory: Memory::Nodes,
        search: Search::Logarithmic,
        deviations: &[
            "an SCX that puts a leaf in the place of another has no record: the new leaf stands for it",
            "an SCX record is taken out of its nodes once it is done, and then retired",
            "an unlinked node is known by a final info word; the source has a mark beside the record",
            "leaves have no info word: their parent's freezes them",
            "violations of balance are found from the top of a key's path; the source searches for the node",
        ],
        invariants: &[
            "I1 an internal node has 1 to b children between increasing keys below the largest key; only info word and edges change",
            "I2 keys below an edge lie between the keys beside it",
            "I3 a leaf has 0 to b increasing keys, and never changes",
            "I4 each node is unlinked and retired once; its edges never change after",
            "I5 all leaves are below the same number of untagged nodes",
            "I6 the root is untagged, and if internal has at least two children",
            "I7 at rest info words are idle, no node is tagged, and none but the root is smaller than a",
        ],
        parameters: &[],
    },
    drivers: drivers!(Abtree17),
};

/// The tree. On lines of its own, because every operation reads the entry.
#[repr(align(128))]
pub struct Abtree17<R: Reclaimer> {
    /// Has one child, the root. Never unlinked.
    entry: Internal,
    records: Records,
    reclaimer: R,
}

/// What a traversal found.
struct Seek<'g> {
    /// Leads to the leaf.
    edge: Step<'g>,
    leaf: &'g Leaf,
}

impl<R: Reclaimer> Abtree17<R> {
    /// Walks to the leaf where `key` belongs.
    ///
    /// Every node visited was in the tree, with `key` in its range, at some moment since the guard was obtained. By
    /// induction: the root was. If the edge of a visited node is read while that is in the tree, then its child is too.
    /// Else the node has been unlinked since, after the guard was obtained; its edges have not changed after (I4), and the
    /// child was in the tree until then. So no visited node was retired before the guard was obtained, and the guard
    /// protects it. What the leaf holds was true of the set at that moment, since leaves never change.
    #[inline]
    fn seek<'g>(&'g self, key: u64, guard: &'g impl Guard) -> Seek<'g> {
        let mut edge = step(&self.entry, 0, guard);
        loop {
            match edge.link.node() {
                Node::Leaf(leaf) => return Seek { edge, leaf },
                Node::Internal(node) => edge = step(node, node.side(key), guard),
            }
        }
    }

    fn contains(&self, key: u64, guard: &impl Guard) -> bool {
        self.seek(key, guard).leaf.holds(key)
    }

    fn insert(&self, key: u64, value: u64, guard: &impl Guard) -> bool {
        loop {
            let Seek { edge, leaf } = self.seek(key, guard);
            if leaf.holds(key) {
                return false;
            }
            if !leaf.is_full() {
                if replace_leaf(&edge, || leaf.with(key, value), guard) {
                    return true;
                }
            } else if self.split_leaf(&edge, leaf, (key, value), guard) {
                self.settle(key, guard);
                return true;
            }
        }
    }

    fn remove(&self, key: u64, guard: &impl Guard) -> bool {
        loop {
            let Seek { edge, leaf } = self.seek(key, guard);
            if !leaf.holds(key) {
                return false;
            }
            if replace_leaf(&edge, || leaf.without(key), guard) {
                // A leaf that was too small before is the care of the thread that made it so.
                if leaf.keys().len() == MIN_SIZE {
                    self.settle(key, guard);
                }
                return true;
            }
        }
    }

    /// Puts a tagged node over two halves, one of which has the new entry, in the place of a full leaf, unless something
    /// has changed since that was found.
    #[cold]
    fn split_leaf(&self, edge: &Step<'_>, leaf: &Leaf, (key, value): (u64, u64), guard: &impl Guard) -> bool {
        let Some(parent) = see_edge(edge, guard) else { return false };
        let mut entries = [(key, value); MAX_SIZE + 1];
        let n_below = leaf.keys().iter().filter(|&&other| other < key).count();
        for (idx, entry) in leaf.entries().enumerate() {
            entries[idx + usize::from(idx >= n_below)] = entry;
        }
        let mut drafts = Drafts::new();
        let halves = drafts.half_leaves(&entries);
        let fork = drafts.fork(halves, !self.is_entry(edge.holder));
        let is_done = self.records.scx(&[parent], edge.side, (edge.link.word, fork), guard);
        if is_done {
            drafts.publish();
            // SAFETY: this thread's record has just unlinked the leaf, which had one edge to it, frozen by the record (I4).
            unsafe { edge.link.word.retire(guard) };
        }
        is_done
    }

    fn is_entry(&self, node: &Internal) -> bool {
        std::ptr::eq(node, &raw const self.entry)
    }
}

/// Puts another leaf in the place of one, unless something has changed since that was found.
#[inline]
fn replace_leaf(edge: &Step<'_>, draft: impl Fn() -> Leaf, guard: &impl Guard) -> bool {
    let Some(parent) = see_edge(edge, guard) else { return false };
    let mut drafts = Drafts::new();
    let new = drafts.leaf(draft());
    let is_done = scx::put_leaf(parent, edge.side, (edge.link.word, new));
    if is_done {
        drafts.publish();
        // SAFETY: this thread has just unlinked the leaf, which had one edge to it, frozen by the new leaf (I4).
        unsafe { edge.link.word.retire(guard) };
    }
    is_done
}

impl<R: Reclaimer> ConcurrentSet for Abtree17<R> {
    type Handle<'s> = Handle<'s, R>;

    fn new(parameters: &Parameters) -> Self {
        let entry = Internal::over(Word::of_leaf(Leaf::new(&[])));
        Self { entry, records: Records::new(), reclaimer: R::with(parameters) }
    }

    fn handle(&self) -> Handle<'_, R> {
        Handle { tree: self, local: self.reclaimer.register() }
    }

    fn audit(&mut self) -> Audit {
        // SAFETY: `&mut self` excludes every handle.
        alone::audit(&self.entry, &unsafe { Alone::new() })
    }

    fn unreclaimed(&self) -> Option<u64> {
        Some(self.reclaimer.unreclaimed())
    }
}

impl<R: Reclaimer> Drop for Abtree17<R> {
    /// Frees what is in the tree; what was unlinked is the reclaimer's, and disjoint (I4).
    fn drop(&mut self) {
        // SAFETY: `&mut self` excludes every handle.
        alone::free(&self.entry, &unsafe { Alone::new() });
    }
}

/// A thread's access.
pub struct Handle<'s, R: Reclaimer> {
    tree: &'s Abtree17<R>,
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
