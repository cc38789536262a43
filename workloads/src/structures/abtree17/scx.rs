//! LLX and SCX: reading a node's edges at one moment, and changing one edge if several nodes are still as they were read.
//!
//! Source: Brown, Ellen and Ruppert, Pragmatic Primitives for Non-blocking Data Structures, PODC 2013, as in chapter 3 of
//! Brown's thesis. An SCX freezes its nodes one after another by putting the address of its record into their info words,
//! swings the edge, and is then done; whoever meets a frozen node helps. Here the record is also taken out of the info
//! words again, so that it can be retired:
//!
//! An info word is *idle* with a number that never comes back, or holds a record, or is *final*: the node was unlinked.
//! Each record, once it is done, is replaced in each node that it froze by the next idle number or by final ([`Record::clean`]).
//! (S1) A record enters an info word only in the place of the idle word that its owner's LLX read. A record that was
//! aborted, because one of its nodes had moved on, freezes no node after that: nodes are frozen in order, all before that
//! one have held the record already, and that one never will.
//! (S2) So once its owner has cleaned all its nodes, no info word leads to a record, and none ever will.
//! (S3) Edges of a node change only while it is frozen, by the record that froze it. Final words never change.
//!
//! The nodes of a record are a holder of the edge to swing, and then all that the swing unlinks, each of which the owner
//! read as a child of an earlier one. That makes them safe to follow, although a node may have been retired before a
//! helper's guard was obtained: see [`Record::advance`].

use std::ptr;

use super::node::{Internal, Word};
use crate::{
    nodes,
    reclaim::Guard,
    sync::atomic::{
        AtomicPtr, AtomicU8,
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

/// What an info word held: an odd number if idle, null if final, else the address of a record.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp(*mut Record);

/// A node, and the idle word that it had while its edges were read.
#[derive(Clone, Copy)]
pub(super) struct Seen<'g> {
    node: &'g Internal,
    stamp: Stamp,
}

/// An SCX. All but its state is written before it is published, and never again.
pub(super) struct Record {
    state: AtomicU8,
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
        Self(AtomicPtr::new(Stamp::idle(0).0))
    }

    /// Tells whether the word is idle.
    pub(super) fn is_idle(&self) -> bool {
        // Relaxed: asked by a thread that is alone.
        Stamp(self.0.load(Relaxed)).is_idle()
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

    fn idle(number: usize) -> Self {
        Self(ptr::without_provenance_mut(number << 1 | 1))
    }

    fn is_idle(self) -> bool {
        self.0.addr() & 1 == 1
    }

    /// The idle word after this one. It wraps after 2^63 changes of one node.
    fn next(self) -> Self {
        Self::idle((self.0.addr() >> 1) + 1)
    }
}

/// Reads something of the edges of a node as they were at one moment; `None` if the node was unlinked.
pub(super) fn llx<'g, T>(
    node: &'g Internal,
    guard: &'g impl Guard,
    read: impl Fn(&'g Internal) -> T,
) -> Option<(Seen<'g>, T)> {
    loop {
        // Acquire, by the guard: pairs with `Info::exchange`.
        let stamp = Stamp(guard.load(&node.info().0));
        if stamp == Stamp::FINAL {
            return None;
        }
        if stamp.is_idle() {
            let edges = read(node);
            // The loads of the edges are Acquire and stay before this one; if one saw what a record had swung, then this
            // sees that record or what came after it (S3), since that was in the word before the swing.
            if node.info().0.load(Acquire) == stamp.0 {
                return Some((Seen { node, stamp }, edges));
            }
            continue;
        }
        // SAFETY: the word held the record after the guard was obtained, so its owner had not retired it then (S2).
        let record = unsafe { &*stamp.0 };
        // Acquire: pairs with the AcqRel exchanges in `advance`.
        if record.state.load(Acquire) < COMMITTED {
            // SAFETY: the record froze `node` and was not done after the guard was obtained.
            unsafe { record.advance(stamp.0) };
        }
        let node_idx = record.nodes().iter().position(|&(other, _)| ptr::eq(other, node));
        record.clean(node_idx.expect("a record is only in the info words of its nodes (S1)"), node, stamp.0);
    }
}

/// Swings an edge of the first node from `old` to `new`, and finalises the other nodes, if all are still as they were seen.
///
/// Every node but the first was read, by the LLX of an earlier one, as the child of that. `new` leads to a new node.
pub(super) fn scx(seen: &[Seen<'_>], side: usize, (old, new): (Word, Word), guard: &impl Guard) -> bool {
    let address = Record::allocate(seen, side, (old, new));
    // SAFETY: it was just allocated, and is retired at the end of this function.
    let record = unsafe { &*address };
    // SAFETY: this thread's guard is as old as the links to the nodes, so all are protected.
    let is_committed = unsafe { record.advance(address) };
    for (idx, seen) in seen.iter().enumerate() {
        record.clean(idx, seen.node, address);
    }
    // SAFETY: it came from `Record::allocate`, no info word leads to it or ever will (S2), and only its owner retires it.
    unsafe { guard.retire(address) };
    is_committed
}

impl Record {
    /// Allocates a record that has frozen nothing.
    fn allocate(seen: &[Seen<'_>], side: usize, (old, new): (Word, Word)) -> *mut Self {
        let mut nodes = [(ptr::from_ref(seen[0].node), seen[0].stamp); MAX_NODES];
        for (slot, seen) in nodes.iter_mut().zip(seen) {
            *slot = (seen.node, seen.stamp);
        }
        let n_nodes = seen.len() as u8;
        nodes::allocate(Self { state: AtomicU8::new(FREEZING), n_nodes, nodes, side, old, new })
    }

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
                node.info().exchange(stamp, Stamp(address)).map_or_else(|now| now == Stamp(address), |_| true)
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
        let new = if is_unlinked { Stamp::FINAL } else { self.nodes[idx].1.next() };
        // It fails if the record never froze the node, or another thread has cleaned it.
        _ = node.info().exchange(Stamp(address), new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        families::set::{ConcurrentSet, Parameters, SetHandle},
        protocol::Audit,
        reclaim::{Local, NoReclamation, Reclaimer},
        structures::abtree17::{Abtree17, node::Leaf},
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
    fn whoever_meets_a_stalled_record_commits_it() {
        let mut set = tree();
        let mut local = set.reclaimer.register();
        let guard = local.pin();
        let seek = set.seek(3, &guard);
        let (seen, old) =
            llx(seek.parent, &guard, |node| node.child(seek.side, &guard).word).expect("it is in the tree");
        let new = Word::of_leaf(Leaf::new(&[(0, 0), (1, 1), (2, 2), (4, 4), (5, 5)]));
        let record = Record::allocate(&[seen], seek.side, (old, new));
        assert!(seek.parent.info().exchange(seen.stamp, Stamp(record)).is_ok());
        let mut other = set.handle();
        assert!(other.contains(3), "it is frozen, not removed");
        assert!(!other.remove(11 + 1) && other.contains(3), "who changes nothing helps nobody");
        assert!(other.remove(11), "the other leaf has the same parent");
        assert!(!other.contains(3));
        // What the owner would do if it went on: nothing is left for it.
        // SAFETY: no thread has retired the record.
        let state = unsafe { &*record }.state.load(Relaxed);
        assert_eq!(state, COMMITTED);
        // SAFETY: likewise, and this is the last use.
        unsafe { nodes::free(record) };
        assert!(seek.parent.info().exchange(seen.stamp.next(), seen.stamp).is_err(), "the word has moved on twice");
        // SAFETY: the record has unlinked the leaf.
        unsafe { old.retire(&guard) };
        drop(other);
        assert_eq!(set.audit(), Audit { size: 10, key_sum: 52, violations: Vec::new() });
    }

    #[test]
    fn whoever_meets_a_record_that_came_too_late_aborts_it() {
        let mut set = tree();
        let mut local = set.reclaimer.register();
        let guard = local.pin();
        let root = set.seek(3, &guard).parent;
        let (seen_entry, old) =
            llx(&set.entry, &guard, |node| node.child(0, &guard).word).expect("it is never unlinked");
        let (seen_root, ()) = llx(root, &guard, |_| ()).expect("it is in the tree");
        let mut other = set.handle();
        assert!(other.remove(11), "the root is no longer as it was seen");
        let record = Record::allocate(&[seen_entry, seen_root], 0, (old, old));
        assert!(set.entry.info().exchange(seen_entry.stamp, Stamp(record)).is_ok());
        let (seen_again, now) =
            llx(&set.entry, &guard, |node| node.child(0, &guard).word).expect("it is never unlinked");
        // SAFETY: no thread has retired the record.
        let state = unsafe { &*record }.state.load(Relaxed);
        assert_eq!(state, ABORTED);
        // SAFETY: likewise, and this is the last use.
        unsafe { nodes::free(record) };
        assert!(now == old && seen_again.stamp == seen_entry.stamp.next());
        drop(other);
        assert_eq!(set.audit(), Audit { size: 11, key_sum: 55, violations: Vec::new() });
    }

    #[test]
    fn an_unlinked_node_is_final() {
        let set = tree();
        let mut local = set.reclaimer.register();
        let guard = local.pin();
        let root = set.seek(3, &guard).parent;
        let mut other = set.handle();
        assert!((0..11).all(|key| other.remove(key)), "the leaves were joined, and took the place of the root");
        assert!(llx(root, &guard, |_| ()).is_none());
    }
}
