//! LLX and SCX: reading a node's edges at one moment, and changing one edge if several nodes are still as they were read.
//!
//! Source: Brown, Ellen and Ruppert, Pragmatic Primitives for Non-blocking Data Structures, PODC 2013, as in chapter 3 of
//! Brown's thesis. An SCX freezes its nodes one after another by putting the address of its record into their info words,
//! swings the edge, and is then done; whoever meets a frozen node helps. Here the record is also taken out of the info
//! words again, so that it can be retired; and the SCX of nearly every update, which freezes one node and puts a leaf at
//! one of its edges, has no record: the leaf's address and the edge's position say all.
//!
//! An info word holds a *leaf* and a position, or a *number*, or a *record*, or is *final*: the node was unlinked. It is
//! *idle* with a number, or with a leaf to which the edge leads already; then a change may begin. Each record, once it is
//! done, is replaced in each node that it froze by its own number or by final ([`Record::clean`]).
//! (S1) A record or leaf enters an info word only in the place of the idle word that its owner's LLX read. A record that
//! was aborted, because one of its nodes had moved on, freezes no node after that: nodes are frozen in order, all before
//! that one have held the record already, and that one never will.
//! (S2) So once its owner has cleaned all its nodes, no info word leads to a record, and none ever will.
//! (S3) Edges of a node change only while its info word holds what makes the change. Final words never change.
//! (S4) An idle word that an LLX read does not come back in that node while the LLX's guard lives. No two records have the
//! same number. A leaf is put once; while a word holds it, it is not unlinked, since that freezes its parent; so it was not
//! retired before the guard was obtained, and until the guard is dropped no other leaf has its address. Nor does a leaf
//! that was unlinked come back at an edge, so that a late exchange by a helper fails.
//!
//! The nodes of a record are a holder of the edge to swing, and then all that the swing unlinks, each of which the owner
//! read as a child of an earlier one. That makes them safe to follow, although a node may have been retired before a
//! helper's guard was obtained: see [`Record::advance`].

use std::ptr;

use super::node::{Internal, Leaf, Word};
use crate::{
    nodes,
    reclaim::Guard,
    structures::fan::MAX_SIZE,
    sync::atomic::{
        AtomicPtr, AtomicU8, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed},
    },
};

/// Most nodes of a record: holder, parent, and two siblings.
const MAX_NODES: usize = 4;

/// Nodes are being frozen.
const FREEZING: u8 = 0;
/// All nodes are frozen: the edge will be swung.
const FROZEN: u8 = 1;
/// Done: the edge was swung.
const COMMITTED: u8 = 2;
/// Done: the edge was left alone.
const ABORTED: u8 = 3;

/// The info word of a node.
pub(super) struct Info(AtomicPtr<Record>);

/// What an info word held.
///
/// Null if final. Else the low four bits are the position of an edge, and the rest is the address of a leaf; or they are
/// [`NO_SIDE`], and the rest is the address of a record, or with [`NUMBER`] a number.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp(*mut Record);

/// What a stamp means.
enum Meaning {
    /// The node was unlinked.
    Final,
    /// A change may begin.
    Number,
    /// The edge at this position leads to this leaf, or is to be swung to it.
    Leaf(Word, usize),
    /// A record has frozen the node.
    Record(*mut Record),
}

const SIDE_BITS: usize = 0b1111;
/// No position of an edge.
const NO_SIDE: usize = SIDE_BITS;
/// The bit of numbers, which follow above it.
const NUMBER: usize = 1 << 4;

const _: () = assert!(MAX_SIZE <= NO_SIDE, "positions are told from `NO_SIDE`");
const _: () = assert!(align_of::<Leaf>() > SIDE_BITS, "addresses of leaves leave room for positions");
const _: () = assert!(align_of::<Record>() > NUMBER | SIDE_BITS, "addresses of records leave room for the tags");

/// Makes the records of one tree, and numbers them.
pub(super) struct Records {
    n_made: AtomicUsize,
}

/// A node, and the idle word that it had while its edges were read.
#[derive(Clone, Copy)]
pub(super) struct Seen<'g> {
    node: &'g Internal,
    stamp: Stamp,
}

/// An SCX. All but its state is written before it is published, and never again.
#[repr(align(32))]
pub(super) struct Record {
    state: AtomicU8,
    /// From 1 on; new nodes have 0.
    number: usize,
    n_nodes: u8,
    nodes: [(*const Internal, Stamp); MAX_NODES],
    /// The edge of the first node that is swung, from which child, to which.
    side: usize,
    old: Word,
    new: Word,
}

// SAFETY: it is plain memory; who may follow its pointers is argued where that is done.
unsafe impl Send for Record {}

impl Info {
    /// The word of a new node.
    pub(super) fn idle() -> Self {
        Self(AtomicPtr::new(Stamp::number(0).0))
    }

    fn exchange(&self, old: Stamp, new: Stamp) -> Result<Stamp, Stamp> {
        // AcqRel and Acquire: whoever finds the word sees the record, and what its owner or helper saw: in particular, who
        // reads an edge that a record has swung and then this word sees the record in it or a later word. Pairs with
        // itself, and with the Acquire of the guard's load.
        self.0.compare_exchange(old.0, new.0, AcqRel, Acquire).map(Stamp).map_err(Stamp)
    }
}

impl Stamp {
    const FINAL: Self = Self(ptr::null_mut());

    /// Numbers wrap after 2^59 records of one tree.
    fn number(number: usize) -> Self {
        Self(ptr::without_provenance_mut(number << 5 | NUMBER | NO_SIDE))
    }

    fn of_record(record: *mut Record) -> Self {
        Self(record.map_addr(|address| address | NO_SIDE))
    }

    fn of_leaf(leaf: Word, side: usize) -> Self {
        Self(leaf.leaf().cast::<Record>().map_addr(|address| address | side))
    }

    fn meaning(self) -> Meaning {
        let address = self.0.map_addr(|address| address & !SIDE_BITS);
        match self.0.addr() & SIDE_BITS {
            _ if self == Self::FINAL => Meaning::Final,
            NO_SIDE if self.0.addr() & NUMBER != 0 => Meaning::Number,
            NO_SIDE => Meaning::Record(address),
            side => Meaning::Leaf(Word::of_leaf_at(address.cast()), side),
        }
    }
}

/// Tells whether nothing is under way at a node, nor was it unlinked.
pub(super) fn is_idle(node: &Internal, guard: &impl Guard) -> bool {
    match Stamp(guard.load(&node.info().0)).meaning() {
        Meaning::Number => true,
        Meaning::Leaf(leaf, side) => node.child(side, guard).word == leaf,
        Meaning::Final | Meaning::Record(_) => false,
    }
}

/// Reads something of the edges of a node as they were at one moment; `None` if the node was unlinked.
#[inline]
pub(super) fn llx<'g, T>(
    node: &'g Internal,
    guard: &'g impl Guard,
    read: impl Fn(&'g Internal) -> T,
) -> Option<(Seen<'g>, T)> {
    loop {
        // Acquire, by the guard: pairs with `Info::exchange`.
        let stamp = Stamp(guard.load(&node.info().0));
        match stamp.meaning() {
            Meaning::Final => return None,
            Meaning::Record(record) => {
                // SAFETY: the guard is older than the load of the word that holds the record.
                unsafe { help(record, node) };
                continue;
            }
            Meaning::Leaf(leaf, side) => {
                let old = node.child(side, guard).word;
                if old != leaf {
                    // Acquire: as below. If the word is as it was, then the edge was as its change found it.
                    if node.info().0.load(Acquire) == stamp.0 {
                        node.swing(side, old, leaf);
                    }
                    continue;
                }
            }
            Meaning::Number => {}
        }
        let edges = read(node);
        // The loads of the edges are Acquire and stay before this one; if one saw what a later change had swung, then this
        // sees that change or what came after it (S3), since that was in the word before the swing.
        if node.info().0.load(Acquire) == stamp.0 {
            return Some((Seen { node, stamp }, edges));
        }
    }
}

/// Carries an SCX to its end that another thread has begun, and takes its record out of a node.
///
/// # Safety
/// `record` was in the info word of `node` after the caller's guard was obtained, and the guard protects `node`.
#[cold]
unsafe fn help(address: *mut Record, node: &Internal) {
    // SAFETY: the word held the record after the guard was obtained, so its owner had not retired it then (S2).
    let record = unsafe { &*address };
    // Acquire: pairs with the AcqRel exchanges in `advance`.
    if record.state.load(Acquire) < COMMITTED {
        // SAFETY: the record froze `node` and was not done after the guard was obtained.
        unsafe { record.advance(address) };
    }
    let node_idx = record.nodes().iter().position(|&(other, _)| ptr::eq(other, node));
    record.clean(node_idx.expect("a record is only in the info words of its nodes (S1)"), node, address);
}

/// Swings an edge of a node from `old` to `new`, a new leaf, if the node is still as it was seen: the SCX that freezes this
/// node alone.
///
/// Its being frozen decides that it will be done, so it needs neither a state nor a record. It is done once the edge leads
/// to the leaf, so nothing needs to be taken out of the info word either.
#[inline]
pub(super) fn put_leaf(seen: Seen<'_>, side: usize, (old, new): (Word, Word)) -> bool {
    let is_frozen = seen.node.info().exchange(seen.stamp, Stamp::of_leaf(new, side)).is_ok();
    if is_frozen {
        seen.node.swing(side, old, new);
    }
    is_frozen
}

impl Records {
    /// None were made.
    pub(super) fn new() -> Self {
        Self { n_made: AtomicUsize::new(0) }
    }

    /// Swings an edge of the first node from `old` to `new`, and finalises the other nodes, if all are still as they were
    /// seen.
    ///
    /// Every node but the first was read, by the LLX of an earlier one, as the child of that. `new` leads to a new node.
    pub(super) fn scx(&self, seen: &[Seen<'_>], side: usize, change: (Word, Word), guard: &impl Guard) -> bool {
        let boxed = self.make(seen, side, change);
        // SAFETY: it was just allocated, and is retired at the end of this function.
        let record = unsafe { &*boxed };
        // SAFETY: this thread's guard is as old as the links to the nodes, so all are protected.
        let is_committed = unsafe { record.advance(boxed) };
        for (idx, seen) in seen.iter().enumerate() {
            record.clean(idx, seen.node, boxed);
        }
        // SAFETY: it came from a box, no info word leads to it or ever will (S2), and only its owner retires it.
        unsafe { guard.retire(boxed) };
        is_committed
    }

    /// Allocates a record that has frozen nothing.
    fn make(&self, seen: &[Seen<'_>], side: usize, (old, new): (Word, Word)) -> *mut Record {
        let mut nodes = [(ptr::from_ref(seen[0].node), seen[0].stamp); MAX_NODES];
        for (slot, seen) in nodes.iter_mut().zip(seen) {
            *slot = (seen.node, seen.stamp);
        }
        // Relaxed: numbers only have to be unlike.
        let number = self.n_made.fetch_add(1, Relaxed) + 1;
        let (state, n_nodes) = (AtomicU8::new(FREEZING), seen.len() as u8);
        nodes::allocate(Record { state, number, n_nodes, nodes, side, old, new })
    }
}

impl Record {
    fn nodes(&self) -> &[(*const Internal, Stamp)] {
        &self.nodes[..usize::from(self.n_nodes)]
    }

    /// Carries the SCX to its end, by whichever thread. Returns whether it was committed.
    ///
    /// Why a helper may follow the nodes: the first is protected by the caller's promise, since the record froze it and was
    /// not done, so that no other record could unlink it. When this thread finds that a node holds the record, at that
    /// moment the record's owner has not cleaned the node, so has not retired anything that the swing unlinks; and the
    /// node's edges are, but for that swing, as the owner read them (S3). So the nodes after it that are its children were
    /// not retired at that moment, which is after the guard was obtained.
    ///
    /// # Safety
    /// `address` is the address of this record. The calling thread holds a guard, after the obtaining of which the record
    /// was not done while its first node was frozen by it; or it is the owner, whose guard protects all nodes.
    unsafe fn advance(&self, address: *mut Self) -> bool {
        // Acquire: pairs with the AcqRel exchanges below.
        if self.state.load(Acquire) == FREEZING {
            let is_frozen = self.nodes().iter().all(|&(node, stamp)| {
                // SAFETY: see above: nodes before it hold the record, and one of those is its parent.
                let node = unsafe { &*node };
                let frozen = Stamp::of_record(address);
                node.info().exchange(stamp, frozen).map_or_else(|now| now == frozen, |_| true)
            });
            let state = if is_frozen { FROZEN } else { ABORTED };
            // AcqRel: who sees the record frozen sees all its nodes frozen. It fails if another thread has decided.
            _ = self.state.compare_exchange(FREEZING, state, AcqRel, Acquire);
        }
        // Acquire: pairs with the exchange above.
        let state = self.state.load(Acquire);
        if state == FROZEN {
            // SAFETY: the first node, see above.
            let holder = unsafe { &*self.nodes[0].0 };
            holder.swing(self.side, self.old, self.new);
            // AcqRel: who sees the record committed sees the edge swung.
            _ = self.state.compare_exchange(FROZEN, COMMITTED, AcqRel, Acquire);
        }
        state != ABORTED
    }

    /// Takes the record, which is done, out of a node's info word, if it is there.
    fn clean(&self, idx: usize, node: &Internal, address: *mut Self) {
        // Acquire: pairs with the exchanges in `advance`.
        let is_unlinked = idx > 0 && self.state.load(Acquire) == COMMITTED;
        let new = if is_unlinked { Stamp::FINAL } else { Stamp::number(self.number) };
        // It fails if the record never froze the node, or another thread has cleaned it.
        _ = node.info().exchange(Stamp::of_record(address), new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        families::set::{ConcurrentSet, Parameters, SetHandle},
        protocol::Audit,
        reclaim::{Local, NoReclamation, Reclaimer},
        structures::abtree17::{Abtree17, Seek, see_edge, step},
    };

    /// Makes a tree of the keys 0 to 11 in two leaves.
    fn tree() -> Abtree17<NoReclamation> {
        let set = Abtree17::new(&Parameters::new());
        let mut handle = set.handle();
        assert!((0..12).all(|key| handle.insert(key, key)));
        drop(handle);
        set
    }

    #[test]
    fn whoever_meets_a_stalled_leaf_puts_it() {
        let mut set = tree();
        let mut local = set.reclaimer.register();
        let guard = local.pin();
        let Seek { edge, leaf } = set.seek(3, &guard);
        let seen = see_edge(&edge, &guard).expect("it is in the tree");
        let new = Word::of_leaf(leaf.without(3));
        let frozen = Stamp::of_leaf(new, edge.side);
        assert!(edge.holder.info().exchange(seen.stamp, frozen).is_ok());
        assert!(!is_idle(edge.holder, &guard));
        let mut other = set.handle();
        assert!(other.contains(3), "it is frozen, not removed");
        assert!(!other.remove(11 + 1) && other.contains(3), "who changes nothing helps nobody");
        assert!(other.remove(11), "the other leaf has the same parent");
        assert!(!other.contains(3));
        // What the owner would do if it went on: nothing is left for it.
        edge.holder.swing(edge.side, edge.link.word, new);
        assert!(edge.holder.info().exchange(frozen, seen.stamp).is_err(), "the word has moved on");
        // SAFETY: the leaf put in its place has unlinked it.
        unsafe { edge.link.word.retire(&guard) };
        drop(other);
        assert_eq!(set.audit(), Audit { size: 10, key_sum: 52, violations: Vec::new() });
    }

    #[test]
    fn whoever_meets_a_stalled_record_commits_it() {
        let mut set = tree();
        let mut local = set.reclaimer.register();
        let guard = local.pin();
        let Seek { edge, leaf } = set.seek(3, &guard);
        let seen = see_edge(&edge, &guard).expect("it is in the tree");
        let change = (edge.link.word, Word::of_leaf(leaf.without(3)));
        let record = set.records.make(&[seen], edge.side, change);
        assert!(edge.holder.info().exchange(seen.stamp, Stamp::of_record(record)).is_ok());
        assert!(!is_idle(edge.holder, &guard));
        let mut other = set.handle();
        assert!(other.contains(3) && other.remove(11) && !other.contains(3));
        // SAFETY: no thread has retired the record.
        let record = unsafe { &*record };
        assert_eq!(record.state.load(Relaxed), COMMITTED);
        let number = Stamp::number(record.number);
        assert!(edge.holder.info().exchange(number, seen.stamp).is_err(), "the word has moved on twice");
        // SAFETY: the record has unlinked the leaf.
        unsafe { edge.link.word.retire(&guard) };
        drop(other);
        assert_eq!(set.audit(), Audit { size: 10, key_sum: 52, violations: Vec::new() });
    }

    #[test]
    fn whoever_meets_a_record_that_came_too_late_aborts_it() {
        let mut set = tree();
        let mut local = set.reclaimer.register();
        let guard = local.pin();
        let root = set.seek(3, &guard).edge.holder;
        let entry = step(&set.entry, 0, &guard);
        let seen_entry = see_edge(&entry, &guard).expect("it is never unlinked");
        let (seen_root, ()) = llx(root, &guard, |_| ()).expect("it is in the tree");
        let mut other = set.handle();
        assert!(other.remove(11), "the root is no longer as it was seen");
        let record = set.records.make(&[seen_entry, seen_root], 0, (entry.link.word, entry.link.word));
        assert!(set.entry.info().exchange(seen_entry.stamp, Stamp::of_record(record)).is_ok());
        let seen_again = see_edge(&entry, &guard).expect("it is never unlinked");
        // SAFETY: no thread has retired the record.
        let record = unsafe { &*record };
        assert_eq!(record.state.load(Relaxed), ABORTED);
        assert!(seen_again.stamp == Stamp::number(record.number));
        drop(other);
        assert_eq!(set.audit(), Audit { size: 11, key_sum: 55, violations: Vec::new() });
    }

    #[test]
    fn an_unlinked_node_is_final() {
        let set = tree();
        let mut local = set.reclaimer.register();
        let guard = local.pin();
        let root = set.seek(3, &guard).edge.holder;
        let mut other = set.handle();
        assert!((0..11).all(|key| other.remove(key)), "the leaves were joined, and took the place of the root");
        assert!(llx(root, &guard, |_| ()).is_none());
    }
}
