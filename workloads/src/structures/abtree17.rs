//! Lock-free relaxed (a,b)-tree by LLX and SCX.
//!
//! Source: Brown, Techniques for Constructing Efficient Lock-free Data Structures, PhD thesis, Toronto 2017, chapter 8; the
//! primitives are those of Brown, Ellen and Ruppert, PODC 2013, see [`mod@scx`]. The shape is that of Larsen and Fagerberg's
//! relaxed (a,b)-trees, a = 2 and b = 11. Keys are in the leaves, which never change: an update puts another leaf in the
//! place of one, or a tagged node over two halves. What that does to the balance is repaired afterwards, see [`repair`].
//! Progress: lock-free; `contains` writes nothing and never restarts.
//! Deviations: an SCX record is taken out of its nodes again once it is done, and an unlinked node is known by the final
//! word left in place of it; the source leaves records where they are, and has a mark beside them. Leaves are frozen by
//! their parent, and have no info word of their own. Violations of balance are found from the top of a key's path; the
//! source searches for the node. No sentinel but the entry, so that no key value is spent.
//! Reclamation: epochs in the source too. The owner of the record that unlinked nodes retires them, and the record.
//! Invariants, with *in the tree* for reachable from the entry, and *size* for the number of children or keys:
//! I1 An internal node has 1 to b children, none null, and between them keys that strictly increase, none the largest key.
//! Only its info word and its edges ever change.
//! I2 The keys below an edge are not less than the key left of it, and less than the key right of it. So the range of a
//! node in the tree, which is what the keys on its path leave, never changes.
//! I3 A leaf has 0 to b keys, which increase, and never changes.
//! I4 A node is unlinked once, by a record that has frozen it, or its parent if it is a leaf; and retired once, by the owner
//! of that record. Edges of an unlinked node never change.
//! I5 All leaves are below the same number of untagged nodes.
//! I6 The root is not tagged; if internal, it has two children or more. No other node becomes the root.
//! I7 When no operation runs, all info words in the tree are idle, no node is tagged, and none but the root is smaller than
//! a.

mod alone;
mod node;
mod repair;
mod scx;

use self::{
    node::{Drafts, Internal, Leaf, Link, Node, Word},
    scx::{llx, scx},
};
use crate::{
    families::set::{ConcurrentSet, Parameters, SetHandle},
    harness::SetDriver,
    protocol::{Audit, Reclamation},
    reclaim::{Alone, Epoch, Guard, Local, NoReclamation, Reclaimer},
    structures::{
        Adt, Info, Insert, Reclaims, Semantics, Structure,
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
        deviations: &[
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
    drivers: &[
        (Reclamation::None, &SetDriver::<Abtree17<NoReclamation>>::NEW),
        (Reclamation::Epoch, &SetDriver::<Abtree17<Epoch>>::NEW),
    ],
};

/// The tree. On lines of its own, because every operation reads the entry.
#[repr(align(128))]
pub struct Abtree17<R: Reclaimer> {
    /// Has one child, the root. Never unlinked.
    entry: Internal,
    reclaimer: R,
}

/// What a traversal found.
struct Seek<'g> {
    /// The node whose edge leads to the leaf, and which edge.
    parent: &'g Internal,
    side: usize,
    link: Link<'g>,
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
        let (mut parent, mut side) = (&self.entry, 0);
        loop {
            let link = parent.child(side, guard);
            match link.node() {
                Node::Leaf(leaf) => return Seek { parent, side, link, leaf },
                Node::Internal(node) => (parent, side) = (node, node.side(key)),
            }
        }
    }

    fn contains(&self, key: u64, guard: &impl Guard) -> bool {
        self.seek(key, guard).leaf.holds(key)
    }

    fn insert(&self, key: u64, value: u64, guard: &impl Guard) -> bool {
        loop {
            let seek = self.seek(key, guard);
            if seek.leaf.holds(key) {
                return false;
            }
            let mut entries = [(key, value); MAX_SIZE + 1];
            let n_below = seek.leaf.keys().iter().filter(|&&other| other < key).count();
            for (idx, entry) in seek.leaf.entries().enumerate() {
                entries[idx + usize::from(idx >= n_below)] = entry;
            }
            let entries = &entries[..=seek.leaf.keys().len()];
            let is_split = entries.len() > MAX_SIZE;
            let draft = |drafts: &mut Drafts| {
                if !is_split {
                    return drafts.leaf(entries);
                }
                let halves = drafts.half_leaves(entries);
                drafts.fork(halves, !self.is_entry(seek.parent))
            };
            if self.replace_leaf(&seek, draft, guard) {
                if is_split {
                    self.settle(key, guard);
                }
                return true;
            }
        }
    }

    fn remove(&self, key: u64, guard: &impl Guard) -> bool {
        loop {
            let seek = self.seek(key, guard);
            if !seek.leaf.holds(key) {
                return false;
            }
            let mut entries = [(0, 0); MAX_SIZE];
            for (slot, entry) in entries.iter_mut().zip(seek.leaf.entries().filter(|entry| entry.0 != key)) {
                *slot = entry;
            }
            let n_left = seek.leaf.keys().len() - 1;
            if self.replace_leaf(&seek, |drafts| drafts.leaf(&entries[..n_left]), guard) {
                if n_left < MIN_SIZE {
                    self.settle(key, guard);
                }
                return true;
            }
        }
    }

    /// Puts another node in the place of a leaf, unless something has changed since that was found.
    fn replace_leaf(&self, seek: &Seek<'_>, draft: impl Fn(&mut Drafts) -> Word, guard: &impl Guard) -> bool {
        let Some((parent, now)) = llx(seek.parent, guard, |node| node.child(seek.side, guard).word) else {
            return false;
        };
        if now != seek.link.word {
            return false;
        }
        let mut drafts = Drafts::new();
        let new = draft(&mut drafts);
        let is_done = scx(&[parent], seek.side, (now, new), guard);
        if is_done {
            drafts.publish();
            // SAFETY: this thread's record has just unlinked the leaf, which had one edge to it, frozen by the record (I4).
            unsafe { now.retire(guard) };
        }
        is_done
    }

    fn is_entry(&self, node: &Internal) -> bool {
        std::ptr::eq(node, &raw const self.entry)
    }
}

impl<R: Reclaimer> ConcurrentSet for Abtree17<R> {
    type Handle<'s> = Handle<'s, R>;

    fn new(_parameters: &Parameters) -> Self {
        Self { entry: Internal::over(Word::of_leaf(Leaf::new(&[]))), reclaimer: R::new() }
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
