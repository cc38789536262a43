//! Lock-free sorted linked list whose removed nodes are marked in their own link.
//!
//! Source: Harris, A Pragmatic Implementation of Non-Blocking Linked-Lists, DISC 2001 (search, insert, delete);
//! `contains` from Heller et al., A Lazy Concurrent List-Based Set Algorithm, OPODIS 2005, as put on Harris's list by
//! Herlihy and Shavit, The Art of Multiprocessor Programming, 2008, section 9.8.
//! Progress: `insert` and `remove` are lock-free. `contains` is wait-free: it writes nothing, never restarts, and keys
//! increase at every step (I1), also through unlinked nodes, so its steps are bounded by the number of keys below.
//! Deviations: no sentinel nodes: the head is a link and the tail is null, so no key value is spent. `search` reads the
//! mark of the right node once, while it walks; the paper reads it again at the end, which decides nothing that the
//! exchanges that follow do not decide. A `remove` that finds the node marked by another reports absence at once.
//! Speed: marks are cleared behind a branch, so that a step waits for one load and nothing else: 38 % more searches with
//! 100 keys.
//! Reclamation: the paper frees by epochs of its own. Here the thread whose exchange unlinked a run of marked nodes
//! retires them all. Walking on through unlinked nodes is safe because schemes protect whole operations (see
//! [`Link::node`]); it would not be under hazard pointers.
//! Invariants, with *in the list* for reachable from the head:
//! I1 Keys strictly increase along links, whether the nodes are in the list or not.
//! I2 A marked link never changes again.
//! I3 A node is unlinked only while marked, once, and retired once, by the thread whose exchange unlinked it. So an
//! unmarked node that was ever in the list is in the list.
//! I4 When no operation runs, no marked node is in the list.

mod link;

use self::link::{Link, Next, Node, Word};
use super::unpublished::Unpublished;
use crate::{
    families::set::{ConcurrentSet, Parameters, SetHandle},
    harness::SetDriver,
    protocol::{Audit, Reclamation},
    reclaim::{Alone, Epoch, Guard, Local, NoReclamation, Reclaimer},
    structures::{Adt, Info, Insert, Reclaims, Semantics, Structure, walk::Walk},
};

/// Registry entry.
pub static STRUCTURE: Structure = Structure {
    info: Info {
        name: "harris01",
        title: "lock-free list",
        source: "Harris, A Pragmatic Implementation of Non-Blocking Linked-Lists, DISC 2001; wait-free contains as in \
                 Heller et al., OPODIS 2005, and Herlihy and Shavit 2008, section 9.8",
        progress: "insert and remove lock-free, contains wait-free",
        semantics: Semantics { adt: Adt::OrderedDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::Deferred,
        deviations: &[
            "no sentinel nodes, so no key value is spent",
            "search reads the mark of the right node once; the paper reads it again at the end",
            "remove reports absence when another thread marks the node first; the paper searches again",
        ],
        invariants: &[
            "I1 keys strictly increase along links",
            "I2 a marked link never changes",
            "I3 a node is unlinked only while marked, and retired once, by the thread that unlinked it",
            "I4 at rest no marked node is in the list",
        ],
        parameters: &[],
    },
    drivers: &[
        (Reclamation::None, &SetDriver::<Harris01<NoReclamation>>::NEW),
        (Reclamation::Epoch, &SetDriver::<Harris01<Epoch>>::NEW),
    ],
};

/// The list. On lines of its own, because every operation reads the head.
#[repr(align(128))]
pub struct Harris01<R: Reclaimer> {
    head: Next,
    reclaimer: R,
}

/// Where a key belongs: between two neighbours.
struct Place<'g> {
    /// The link of the last unmarked node with a smaller key, or the head.
    left: &'g Next,
    /// What `left` held: the first node with a key that is not smaller, unmarked when it was visited; or null.
    right: Link<'g>,
}

impl<'g> Place<'g> {
    /// Returns the right node if it has that key.
    fn found(&self, key: u64) -> Option<&'g Node> {
        self.right.node().filter(|node| node.key == key)
    }
}

impl<R: Reclaimer> Harris01<R> {
    /// Finds the place of `key`, and unlinks the marked nodes that lie in it.
    fn search<'g>(&'g self, key: u64, guard: &'g impl Guard) -> Place<'g> {
        loop {
            let mut place = Place { left: &self.head, right: self.head.load(guard) };
            let mut link = place.right;
            while let Some(node) = link.node() {
                let next = node.next.load(guard);
                if !next.word.is_marked() {
                    if node.key >= key {
                        break;
                    }
                    place = Place { left: &node.next, right: next };
                }
                link = next.unmarked();
            }
            // `link` is where the place ends; the nodes from `place.right` up to it, if any, are marked.
            if place.right.word == link.word {
                return place;
            }
            if place.left.exchange(place.right.word, link.word) {
                // SAFETY: the exchange has just succeeded, and every node between was read marked under this guard.
                unsafe { retire_run(place.right, link.word, guard) };
                return Place { right: link, ..place };
            }
        }
    }

    fn insert(&self, key: u64, value: u64, guard: &impl Guard) -> bool {
        let mut place = self.search(key, guard);
        if place.found(key).is_some() {
            return false;
        }
        let new = Unpublished::new(Node::new(key, value));
        loop {
            let word = Word::to_node(new.as_ptr());
            new.get().next.prepare(place.right.word);
            if place.left.exchange(place.right.word, word) {
                new.publish();
                return true;
            }
            place = self.search(key, guard);
            if place.found(key).is_some() {
                return false;
            }
        }
    }

    /// Marks the node, which decides who removes it, and has it unlinked.
    fn remove(&self, key: u64, guard: &impl Guard) -> bool {
        let place = self.search(key, guard);
        let Some(node) = place.found(key) else { return false };
        let mut next = node.next.load(guard).word;
        loop {
            // The search saw it unmarked, so another thread has removed it during this operation.
            if next.is_marked() {
                return false;
            }
            if node.next.exchange(next, next.marked()) {
                break;
            }
            // Loaded anew, with Acquire, because the next node is about to be published under another link.
            next = node.next.load(guard).word;
        }
        if place.left.exchange(place.right.word, next) {
            // SAFETY: `left` was unmarked, so in the list (I3), and led to the node until this exchange unlinked it.
            unsafe { place.right.word.retire(guard) };
        } else {
            // Unlinks the node unless others have: it would lie between the neighbours that this search returns.
            self.search(key, guard);
        }
        true
    }

    fn contains(&self, key: u64, guard: &impl Guard) -> bool {
        let mut link = self.head.load(guard);
        while let Some(node) = link.node() {
            let next = node.next.load(guard);
            if node.key >= key {
                return node.key == key && !next.word.is_marked();
            }
            link = next.unmarked();
        }
        false
    }
}

/// Retires the nodes from `first` up to `end`, which one exchange unlinked.
///
/// They were in the list until then: the left link was unmarked, so it was in the list (I3), and led to `first`. They are
/// the same nodes as were visited before the exchange, because the link of each is marked (I2). None is in the list
/// afterwards: exchanges lead only to new nodes and to nodes that were in the list until the exchange, and each node had
/// one link to it from the list (I1). So each node is in the share of exactly one thread.
///
/// # Safety
/// The calling thread has exchanged a link from `first` to `end`, all nodes between were seen marked under `guard`, and
/// this is the only call for it.
unsafe fn retire_run<'g>(first: Link<'g>, end: Word, guard: &'g impl Guard) {
    let mut link = first;
    while link.word != end {
        let node = link.node().expect("a run of marked nodes ends where its search saw it end (I2)");
        let next = node.next.load(guard).unmarked();
        // SAFETY: unlinked by this thread's exchange, see above.
        unsafe { link.word.retire(guard) };
        link = next;
    }
}

impl<R: Reclaimer> ConcurrentSet for Harris01<R> {
    type Handle<'s> = Handle<'s, R>;

    fn new(_parameters: &Parameters) -> Self {
        Self { head: Next::new(Word::NULL), reclaimer: R::new() }
    }

    fn handle(&self) -> Handle<'_, R> {
        Handle { list: self, local: self.reclaimer.register() }
    }

    fn audit(&mut self) -> Audit {
        // SAFETY: `&mut self` excludes every handle.
        let guard = unsafe { Alone::new() };
        let mut walk = Walk::new();
        let mut link = self.head.load(&guard);
        while let Some(node) = link.node() {
            let next = node.next.load(&guard);
            if next.word.is_marked() {
                walk.violation(format!("I4: the node of key {} is marked at rest", node.key));
            } else {
                walk.key(node.key, "I1");
            }
            link = next.unmarked();
        }
        walk.finish()
    }

    fn unreclaimed(&self) -> Option<u64> {
        Some(self.reclaimer.unreclaimed())
    }
}

impl<R: Reclaimer> Drop for Harris01<R> {
    /// Frees what is in the list; what was unlinked is the reclaimer's, and disjoint (I3).
    fn drop(&mut self) {
        // SAFETY: `&mut self` excludes every handle.
        let guard = unsafe { Alone::new() };
        let mut link = self.head.load(&guard);
        while let Some(node) = link.node() {
            let next = node.next.load(&guard).unmarked();
            // SAFETY: the list is being dropped by a thread that is alone; `next` was read before, and nothing leads
            // back (I1).
            unsafe { link.word.retire(&guard) };
            link = next;
        }
    }
}

/// A thread's access.
pub struct Handle<'s, R: Reclaimer> {
    list: &'s Harris01<R>,
    local: R::Local<'s>,
}

impl<R: Reclaimer> SetHandle for Handle<'_, R> {
    fn insert(&mut self, key: u64, value: u64) -> bool {
        self.list.insert(key, value, &self.local.pin())
    }

    fn remove(&mut self, key: u64) -> bool {
        self.list.remove(key, &self.local.pin())
    }

    fn contains(&mut self, key: u64) -> bool {
        self.list.contains(key, &self.local.pin())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reclaim::interleave::{Operation, explore};

    #[test]
    fn every_interleaving_of_few_operations_is_explained() {
        explore::<Harris01<NoReclamation>>(|set, operation, guard| match operation {
            Operation::Insert(key) => set.insert(key, !key, guard),
            Operation::Remove(key) => set.remove(key, guard),
            Operation::Contains(key) => set.contains(key, guard),
        });
    }

    #[test]
    fn a_marked_node_is_absent_and_the_next_search_unlinks_it() {
        let mut set = Harris01::<NoReclamation>::new(&Parameters::new());
        let mut handle = set.handle();
        assert!([5, 6, 7].into_iter().all(|key| handle.insert(key, key)));
        // A removal that stalls between its two exchanges.
        let guard = handle.local.pin();
        let node = set.search(6, &guard).found(6).expect("it was inserted");
        let next = node.next.load(&guard).word;
        assert!(node.next.exchange(next, next.marked()));
        assert!(!handle.contains(6) && handle.contains(5) && handle.contains(7));
        assert!(!handle.remove(6));
        assert_eq!(set.unreclaimed(), Some(1), "the failed removal unlinked the node on its way");
        assert!(handle.insert(6, 6) && handle.contains(6));
        drop(handle);
        assert_eq!(set.audit(), Audit { size: 3, key_sum: 18, violations: Vec::new() });
    }

    #[test]
    fn the_audit_sees_a_marked_node() {
        let mut set = Harris01::<NoReclamation>::new(&Parameters::new());
        let mut handle = set.handle();
        assert!(handle.insert(5, 5));
        let guard = handle.local.pin();
        let node = set.search(5, &guard).found(5).expect("it was inserted");
        assert!(node.next.exchange(Word::NULL, Word::NULL.marked()));
        drop(handle);
        let violations = vec!["I4: the node of key 5 is marked at rest".to_owned()];
        assert_eq!(set.audit(), Audit { size: 0, key_sum: 0, violations });
    }
}
