//! Lock-free sorted linked list whose removed nodes are marked in their own link.
//!
//! Source: Harris, A Pragmatic Implementation of Non-Blocking Linked-Lists, DISC 2001 (search, insert, delete);
//! `contains` from Heller et al., A Lazy Concurrent List-Based Set Algorithm, OPODIS 2005, as put on Harris's list by
//! Herlihy and Shavit, The Art of Multiprocessor Programming, 2008, section 9.8.
//! Progress: `insert` and `remove` are lock-free. `contains` is wait-free: it writes nothing, never restarts, and keys
//! increase at every step (I1), also through unlinked nodes, so its steps are bounded by the number of keys below. Under hazard pointers it is the
//! search of the updates, and lock-free as they are.
//! Deviations: no sentinel nodes: the head is a link and the tail is null, so no key value is spent. `search` reads the
//! mark of the right node once, while it walks; the paper reads it again at the end, which decides nothing that the
//! exchanges that follow do not decide. A `remove` that finds the node marked by another reports absence at once.
//! Speed: marks are cleared behind a branch, so that a step waits for one load and nothing else: 38 % more searches with
//! 100 keys.
//! Reclamation: the paper frees by epochs of its own. Here the thread whose exchange unlinked a run of marked nodes
//! retires them all. Walking on through unlinked nodes is safe under schemes that protect whole operations (see
//! [`Link::node`]). Michael (SPAA 2002) made another list of this one, which unlinks node by node, because hazard pointers
//! would not protect such a walk; but a run can be validated as a whole, since its links are frozen
//! ([`Harris01::search`]), so that they will do here too.
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
    harness::drivers,
    protocol::Audit,
    reclaim::{Alone, AnyGuard, AnyLocal, AnyReclaimer},
    structures::{Adt, Info, Insert, Memory, Reclaims, Search, Semantics, Structure, walk::Walk},
};

/// Registry entry.
pub static STRUCTURE: Structure = Structure {
    info: Info {
        name: "harris01",
        title: "lock-free list",
        source: "Harris, A Pragmatic Implementation of Non-Blocking Linked-Lists, DISC 2001; wait-free contains as in \
                 Heller et al., OPODIS 2005, and Herlihy and Shavit 2008, section 9.8",
        progress: "insert and remove lock-free, contains wait-free, under hazard pointers lock-free",
        semantics: Semantics { adt: Adt::OrderedDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::Deferred,
        memory: Memory::Nodes,
        search: Search::Linear,
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
    drivers: drivers!(Harris01, Hazard),
};

/// The list. On lines of its own, because every operation reads the head.
#[repr(align(128))]
pub struct Harris01<R: AnyReclaimer> {
    head: Next,
    reclaimer: R,
}

/// Where a key belongs: between two neighbours. To be used until the next search under the same guard, and no longer: that
/// uses the slots again which protect these nodes.
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

impl<R: AnyReclaimer> Harris01<R> {
    /// Finds the place of `key`, and unlinks the marked nodes that lie in it.
    ///
    /// Guards that protect single nodes keep a visited node by (H) of `reclaim::any`: *it was in the list, hence not
    /// retired* (I3), *when the link that leads to it was read again after it had been announced.* If that link was
    /// unmarked then, its holder, which had been in the list before, was in the list (I3), and so was the node. If it was
    /// marked, then the left link is asked afterwards whether it still leads to the right node, unmarked: its holder is in
    /// the list at that moment (I3), and all links from there to the marked one are frozen (I2), so the holder of that is
    /// in the list too. It was when it was visited, and nothing comes back that was unlinked, so it was in between, and so
    /// was the node. Slots hold the nodes of the place, that of `link`, and the next one.
    fn search<'g, G: AnyGuard>(&'g self, key: u64, guard: &'g G) -> Place<'g> {
        'search: loop {
            // While the right node is that of `link`, one slot protects both, and that of the right one is free.
            let [mut of_left, mut of_right, mut of_link, mut of_next] = [0, 1, 2, 3];
            let mut place = Place { left: &self.head, right: self.head.load(guard, of_link) };
            let mut link = place.right;
            while let Some(node) = link.node() {
                let next = node.next.load(guard, of_next);
                if next.word.is_marked() {
                    if !G::PROTECTS_ALL && !place.left.still_holds(place.right.word) {
                        continue 'search;
                    }
                    if link.word == place.right.word {
                        [of_right, of_link] = [of_link, of_right];
                    }
                    link = next.unmarked();
                    [of_link, of_next] = [of_next, of_link];
                    continue;
                }
                if node.key >= key {
                    break;
                }
                place = Place { left: &node.next, right: next };
                link = next;
                [of_left, of_link, of_next] = [of_link, of_next, of_left];
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

    fn insert(&self, key: u64, value: u64, guard: &impl AnyGuard) -> bool {
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
    fn remove(&self, key: u64, guard: &impl AnyGuard) -> bool {
        let place = self.search(key, guard);
        let Some(node) = place.found(key) else { return false };
        let mut next = node.next.look(guard);
        loop {
            // The search saw it unmarked, so another thread has removed it during this operation.
            if next.is_marked() {
                return false;
            }
            if node.next.exchange(next, next.marked()) {
                break;
            }
            // Loaded anew, with Acquire, because the next node is about to be published under another link.
            next = node.next.look(guard);
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

    fn contains<G: AnyGuard>(&self, key: u64, guard: &G) -> bool {
        if !G::PROTECTS_ALL {
            return self.search(key, guard).found(key).is_some();
        }
        let mut link = self.head.load(guard, 0);
        while let Some(node) = link.node() {
            let next = node.next.load(guard, 0);
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
unsafe fn retire_run<'g>(first: Link<'g>, end: Word, guard: &'g impl AnyGuard) {
    let mut link = first;
    while link.word != end {
        let node = link.node().expect("a run of marked nodes ends where its search saw it end (I2)");
        let next = node.next.within_run(guard);
        // SAFETY: unlinked by this thread's exchange, see above.
        unsafe { link.word.retire(guard) };
        link = next;
    }
}

impl<R: AnyReclaimer> ConcurrentSet for Harris01<R> {
    type Handle<'s> = Handle<'s, R>;

    fn new(parameters: &Parameters) -> Self {
        Self { head: Next::new(Word::NULL), reclaimer: R::with(parameters) }
    }

    fn handle(&self) -> Handle<'_, R> {
        Handle { list: self, local: self.reclaimer.register() }
    }

    fn audit(&mut self) -> Audit {
        // SAFETY: `&mut self` excludes every handle.
        let guard = unsafe { Alone::new() };
        let mut walk = Walk::new();
        let mut link = self.head.load(&guard, 0);
        while let Some(node) = link.node() {
            let next = node.next.load(&guard, 0);
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

impl<R: AnyReclaimer> Drop for Harris01<R> {
    /// Frees what is in the list; what was unlinked is the reclaimer's, and disjoint (I3).
    fn drop(&mut self) {
        // SAFETY: `&mut self` excludes every handle.
        let guard = unsafe { Alone::new() };
        let mut link = self.head.load(&guard, 0);
        while let Some(node) = link.node() {
            let next = node.next.load(&guard, 0).unmarked();
            // SAFETY: the list is being dropped by a thread that is alone; `next` was read before, and nothing leads
            // back (I1).
            unsafe { link.word.retire(&guard) };
            link = next;
        }
    }
}

/// A thread's access.
pub struct Handle<'s, R: AnyReclaimer> {
    list: &'s Harris01<R>,
    local: R::Local<'s>,
}

impl<R: AnyReclaimer> SetHandle for Handle<'_, R> {
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
    use crate::reclaim::{
        NoReclamation,
        interleave::{Announcing, Graveyard, Operation, explore, explore_announcing},
    };

    #[test]
    fn every_interleaving_of_few_operations_is_explained() {
        explore::<Harris01<NoReclamation>>(|set, operation, guard| match operation {
            Operation::Insert(key) => set.insert(key, !key, guard),
            Operation::Remove(key) => set.remove(key, guard),
            Operation::Contains(key) => set.contains(key, guard),
        });
    }

    #[test]
    fn no_interleaving_follows_a_link_to_a_node_that_was_not_announced_in_time() {
        explore_announcing::<Harris01<NoReclamation>>(|set, operation, guard| match operation {
            Operation::Insert(key) => set.insert(key, !key, guard),
            Operation::Remove(key) => set.remove(key, guard),
            Operation::Contains(key) => set.contains(key, guard),
        });
    }

    #[test]
    fn the_nodes_of_a_place_stay_while_they_are_announced() {
        // At each distance from the head, because slots take turns.
        for key in 6..=12 {
            let (set, graveyard) = (Harris01::<NoReclamation>::new(&Parameters::new()), Graveyard::default());
            let guard = Announcing::alone(&graveyard);
            assert!((5..=13).all(|key| set.insert(key, key, &guard)));
            let place = set.search(key, &guard);
            assert!((5..=13).all(|key| set.remove(key, &Announcing::alone(&graveyard))));
            // Loads panic where the node is gone.
            assert!(place.left.look(&guard).is_marked());
            assert!(place.found(key).expect("it was there").next.look(&guard).is_marked());
        }
    }

    /// Removals have marked three neighbours and stalled. A search that walks over them is itself stalled after each of
    /// its loads, while another unlinks the run, and frees of it what the first has not announced.
    #[test]
    fn a_run_that_is_unlinked_under_a_search_is_left() {
        let mut n_let_in = 0;
        for n_loads in 1.. {
            let (set, graveyard) = (Harris01::<NoReclamation>::new(&Parameters::new()), Graveyard::default());
            let alone = Announcing::alone(&graveyard);
            assert!((5..=9).all(|key| set.insert(key, key, &alone)));
            for key in [8, 7, 6] {
                let node = set.search(key, &alone).found(key).expect("it was inserted");
                let next = node.next.look(&alone);
                assert!(node.next.exchange(next, next.marked()));
            }
            drop(alone);
            let guard = Announcing::with(&graveyard, n_loads, || {
                assert!(set.contains(9, &Announcing::alone(&graveyard)));
            });
            assert!(set.contains(9, &guard));
            if !guard.is_spent() {
                break;
            }
            n_let_in += 1;
        }
        assert!(n_let_in >= 6, "five nodes and the head have links: {n_let_in}");
    }

    #[test]
    fn a_marked_node_is_absent_and_the_next_search_unlinks_it() {
        let mut set = Harris01::<NoReclamation>::new(&Parameters::new());
        let mut handle = set.handle();
        assert!([5, 6, 7].into_iter().all(|key| handle.insert(key, key)));
        // A removal that stalls between its two exchanges.
        let guard = handle.local.pin();
        let node = set.search(6, &guard).found(6).expect("it was inserted");
        let next = node.next.look(&guard);
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
