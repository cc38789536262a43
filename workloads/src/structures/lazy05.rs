//! Sorted linked list that marks a node before it unlinks it, so that look-ups need no lock.
//!
//! Source: Heller, Herlihy, Luchangco, Moir, Scherer and Shavit, A Lazy Concurrent List-Based Set Algorithm, OPODIS 2005
//! (add, remove, contains, and validate, which asks that two neighbours are unmarked and still neighbours).
//! Progress: `insert` and `remove` block, and give their core away when a lock stays held; a removal that waits holds one
//! lock and waits for that of a larger key, so no circle forms. `contains` is wait-free: it writes nothing, never
//! restarts, and keys increase at every step (I1), also through unlinked nodes.
//! Deviations: no sentinel nodes: the head is a link and the tail is null, so no key value is spent. The lock and the mark
//! of a node are two bits of its link, so that one exchange takes the lock of the left node and validates: it fails
//! unless that node is unmarked and its link leads to the right node. A right node that is marked cannot pass, because it
//! is unlinked under the lock under which it was marked. An insertion locks the left node only, because the right one
//! cannot be removed without that lock. A removal waits for the right node's lock and sets its mark in one exchange.
//! Updates that find nothing to do take no lock, as `contains`. A failed validation is a failed exchange, so a thread
//! searches again instead of waiting for a lock that it would find to be of no use.
//! Reclamation: the paper relies on garbage collection. Here the thread that unlinked a node retires it.
//! Invariants, with *in the list* for reachable from the head:
//! I1 Keys strictly increase along links, whether the nodes are in the list or not.
//! I2 A link is changed only by the thread that locked it. A marked link never changes again.
//! I3 A node is unlinked only while marked, under the lock of the link to it, under which it was marked too; and retired
//! once, by the thread that did so. So an unmarked node that was ever in the list is in the list.
//! I4 When no operation runs, no link in the list is marked or locked.

mod link;

use self::link::{Link, Next, Node, Word};
use super::{patience::Patience, unpublished::Unpublished};
use crate::{
    families::set::{ConcurrentSet, Parameters, SetHandle},
    harness::drivers,
    protocol::Audit,
    reclaim::{Alone, Guard, Local, Reclaimer},
    structures::{Adt, Info, Insert, Memory, Reclaims, Search, Semantics, Structure, walk::Walk},
};

/// Registry entry.
pub static STRUCTURE: Structure = Structure {
    info: Info {
        name: "lazy05",
        title: "lazy list",
        source: "Heller, Herlihy, Luchangco, Moir, Scherer and Shavit, A Lazy Concurrent List-Based Set Algorithm, \
                 OPODIS 2005",
        progress: "insert and remove block on locks of one or two nodes; contains wait-free",
        semantics: Semantics { adt: Adt::OrderedDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::Deferred,
        memory: Memory::Nodes,
        search: Search::Linear,
        deviations: &[
            "no sentinel nodes, so no key value is spent",
            "lock and mark are two bits of a node's link: one exchange takes the lock and validates",
            "insert locks the left node only; remove locks the right one and marks it in one exchange",
            "updates that find nothing to do take no lock",
            "a thread that meets a lock searches again instead of waiting for it; one that fails often yields its core",
        ],
        invariants: &[
            "I1 keys strictly increase along links",
            "I2 a link is changed only under its lock; a marked link never changes",
            "I3 a node is unlinked only while marked, and retired once, by the thread that unlinked it",
            "I4 at rest no link in the list is marked or locked",
        ],
        parameters: &[],
    },
    drivers: drivers!(Lazy05),
};

/// The list. On lines of its own, because every operation reads the head.
#[repr(align(128))]
pub struct Lazy05<R: Reclaimer> {
    head: Next,
    reclaimer: R,
}

/// Where a key belongs: between two neighbours.
struct Place<'g> {
    /// The link of the last node with a smaller key, or the head.
    left: &'g Next,
    /// What `left` held: the first node with a key that is not smaller, or null.
    right: Link<'g>,
}

impl<'g> Place<'g> {
    /// Returns the right node if it has that key.
    fn found(&self, key: u64) -> Option<&'g Node> {
        self.right.node().filter(|node| node.key == key)
    }
}

impl<R: Reclaimer> Lazy05<R> {
    /// Finds the place of `key` without a look at marks or locks.
    fn search<'g>(&'g self, key: u64, guard: &'g impl Guard) -> Place<'g> {
        let mut place = Place { left: &self.head, right: self.head.load(guard) };
        while let Some(node) = place.right.node() {
            if node.key >= key {
                break;
            }
            place = Place { left: &node.next, right: node.next.load(guard) };
        }
        place
    }

    fn insert(&self, key: u64, value: u64, guard: &impl Guard) -> bool {
        let mut new = None;
        let mut patience = Patience::new();
        loop {
            let place = self.search(key, guard);
            match place.found(key) {
                Some(node) if !node.next.load(guard).word.is_marked() => return false,
                // A removal has not unlinked it yet, or has just done so.
                Some(_) => {}
                None => {
                    let new_node = new.get_or_insert_with(|| Unpublished::new(Node::new(key, value)));
                    if link(&place, new_node) {
                        new.take().expect("it was made above").publish();
                        return true;
                    }
                }
            }
            patience.wait();
        }
    }

    fn remove(&self, key: u64, guard: &impl Guard) -> bool {
        let mut patience = Patience::new();
        loop {
            let place = self.search(key, guard);
            let Some(node) = place.found(key) else { return false };
            if node.next.load(guard).word.is_marked() {
                return false;
            }
            if unlink(&place, node, guard) {
                return true;
            }
            patience.wait();
        }
    }

    fn contains(&self, key: u64, guard: &impl Guard) -> bool {
        let place = self.search(key, guard);
        place.found(key).is_some_and(|node| !node.next.load(guard).word.is_marked())
    }
}

/// Tries to link a node in `place`. False if the neighbours have changed or the left one is locked.
fn link(place: &Place<'_>, new: &Unpublished<Node>) -> bool {
    let right = place.right.word.clean();
    new.get().next.prepare(right);
    let is_locked = place.left.try_lock(right);
    if is_locked {
        place.left.publish(Word::to_node(new.as_ptr()));
    }
    is_locked
}

/// Tries to mark and unlink `node`, the right node of `place`. False as in [`link()`].
///
/// The left node is in the list, because its link was unmarked when it was locked (I3), and no link to it can change
/// its mark before it is given back. So `node` was in the list until the store below, had no other link to it from there
/// (I1), and nothing links it again: links are set only to new nodes and to nodes that were in the list until then.
fn unlink(place: &Place<'_>, node: &Node, guard: &impl Guard) -> bool {
    if !place.left.try_lock(place.right.word) {
        return false;
    }
    place.left.set(node.next.mark());
    // SAFETY: unlinked by this thread just now, see above.
    unsafe { place.right.word.retire(guard) };
    true
}

impl<R: Reclaimer> ConcurrentSet for Lazy05<R> {
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
        let mut link = self.head.load(&guard);
        if link.word != link.word.clean() {
            walk.violation("I4: the head is marked or locked at rest".to_owned());
        }
        while let Some(node) = link.node() {
            link = node.next.load(&guard);
            if link.word.is_locked() {
                walk.violation(format!("I4: the node of key {} is locked at rest", node.key));
            }
            if link.word.is_marked() {
                walk.violation(format!("I4: the node of key {} is marked at rest", node.key));
            } else {
                walk.key(node.key, "I1");
            }
        }
        walk.finish()
    }

    fn unreclaimed(&self) -> Option<u64> {
        Some(self.reclaimer.unreclaimed())
    }
}

impl<R: Reclaimer> Drop for Lazy05<R> {
    /// Frees what is in the list; what was unlinked is the reclaimer's, and disjoint (I3).
    fn drop(&mut self) {
        // SAFETY: `&mut self` excludes every handle.
        let guard = unsafe { Alone::new() };
        let mut link = self.head.load(&guard);
        while let Some(node) = link.node() {
            let next = node.next.load(&guard);
            // SAFETY: the list is being dropped by a thread that is alone; `next` was read before, and nothing leads
            // back (I1).
            unsafe { link.word.retire(&guard) };
            link = next;
        }
    }
}

/// A thread's access.
pub struct Handle<'s, R: Reclaimer> {
    list: &'s Lazy05<R>,
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
    use crate::reclaim::{
        NoReclamation,
        interleave::{Operation, explore},
    };

    #[test]
    fn every_interleaving_of_few_operations_is_explained() {
        explore::<Lazy05<NoReclamation>>(|set, operation, guard| match operation {
            Operation::Insert(key) => set.insert(key, !key, guard),
            Operation::Remove(key) => set.remove(key, guard),
            Operation::Contains(key) => set.contains(key, guard),
        });
    }

    fn with_keys(keys: &[u64]) -> Lazy05<NoReclamation> {
        let set = Lazy05::<NoReclamation>::new(&Parameters::new());
        let mut handle = set.handle();
        assert!(keys.iter().all(|&key| handle.insert(key, key)));
        drop(handle);
        set
    }

    /// Tries to link a node of `key` in `place`, and frees the node if that fails.
    fn tries_to_link(place: &Place<'_>, key: u64) -> bool {
        let new = Unpublished::new(Node::new(key, key));
        let done = link(place, &new);
        if done {
            new.publish();
        }
        done
    }

    #[test]
    fn a_removal_that_stalls_after_its_mark_hides_the_key_and_stops_its_neighbours() {
        let mut set = with_keys(&[5, 6, 7]);
        let mut local = set.reclaimer.register();
        let guard = local.pin();
        let (to_six, to_seven) = (set.search(6, &guard), set.search(7, &guard));
        let six = to_six.found(6).expect("it was inserted");
        assert!(to_six.left.try_lock(to_six.right.word));
        let next = six.next.mark();
        assert!(!set.contains(6, &guard) && !set.remove(6, &guard));
        assert!(set.contains(5, &guard) && set.contains(7, &guard), "look-ups walk through it");
        assert!(!tries_to_link(&to_seven, 6), "its left node is marked");
        assert!(!unlink(&to_seven, to_seven.found(7).expect("it was inserted"), &guard));
        assert!(!tries_to_link(&set.search(6, &guard), 6), "its left node is locked");
        to_six.left.set(next);
        assert!(!unlink(&to_seven, to_seven.found(7).expect("it was inserted"), &guard), "still marked");
        assert!(set.remove(7, &guard) && set.insert(6, 6, &guard));
        drop(local);
        assert_eq!(set.audit(), Audit { size: 2, key_sum: 11, violations: Vec::new() });
    }

    #[test]
    fn a_lock_is_taken_only_between_neighbours() {
        let mut set = with_keys(&[5, 7]);
        let mut local = set.reclaimer.register();
        let guard = local.pin();
        let stale = set.search(6, &guard);
        assert!(set.insert(6, 6, &guard));
        assert!(!tries_to_link(&stale, 6), "another node has come between");
        assert!(!unlink(&stale, stale.found(7).expect("it is the right node"), &guard));
        assert!(set.remove(6, &guard));
        assert!(tries_to_link(&stale, 6), "neighbours again");
        drop(local);
        assert_eq!(set.audit(), Audit { size: 3, key_sum: 18, violations: Vec::new() });
    }

    #[test]
    fn a_removal_waits_for_the_lock_of_its_node() {
        let mut set = with_keys(&[5, 7]);
        std::thread::scope(|scope| {
            let mut local = set.reclaimer.register();
            let guard = local.pin();
            let place = set.search(6, &guard);
            assert!(place.left.try_lock(place.right.word));
            let set = &set;
            let removal = scope.spawn(move || set.handle().remove(5));
            // Not before the removal has locked the head, so that it meets the held lock, not the node that follows.
            while !set.head.load(&guard).word.is_locked() {
                std::thread::yield_now();
            }
            assert!(set.contains(5, &guard));
            let new = Unpublished::new(Node::new(6, 6));
            new.get().next.prepare(place.right.word);
            place.left.publish(Word::to_node(new.as_ptr()));
            new.publish();
            assert!(removal.join().expect("the removal did not panic"));
        });
        assert_eq!(set.audit(), Audit { size: 2, key_sum: 13, violations: Vec::new() });
    }

    #[test]
    fn the_audit_sees_a_mark_and_a_lock() {
        let mut set = with_keys(&[5, 6]);
        let mut local = set.reclaimer.register();
        let guard = local.pin();
        set.search(5, &guard).found(5).expect("it was inserted").next.mark();
        let to_end = set.search(7, &guard);
        assert!(to_end.left.try_lock(to_end.right.word));
        drop(local);
        let violations = ["I4: the node of key 5 is marked at rest", "I4: the node of key 6 is locked at rest"];
        assert_eq!(set.audit(), Audit { size: 1, key_sum: 6, violations: violations.map(str::to_owned).to_vec() });
    }
}
