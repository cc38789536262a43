//! Internal binary search tree whose traversals are read sections of RCU.
//!
//! Source: Arbel and Attiya, Concurrent Updates with RCU: Search Tree as an Example, PODC 2014 (contains, get, insert,
//! delete, validate, incrementTag). Traversals take no account of updates. Updates lock the nodes that a traversal has
//! found, and validate that they are still what it found them to be. A node with two children is removed by putting a
//! copy of its successor in its place; the successor itself goes when every traversal that may be on its way to it is
//! over, for which the updater waits while it holds its locks.
//! Progress: `contains` is wait-free. Updates block: they lock nodes from the top down, and `remove` of a node with two
//! children waits for traversals. All waiting spins and then yields.
//! Deviations: no sentinel nodes with keys: one holder above the topmost node takes their place, so no key value is
//! spent. Mark, lock and one tag for both links share a word; the paper has a tag for each link. A tag that changes more
//! often only makes an update begin anew.
//! Speed: a step loads both children beside the key and picks one by a conditional move ([`pick`](super::pick)): 28 %
//! more searches with 100 keys than by an index.
//! Reclamation: the paper defers it to RCU. Here RCU only orders the steps of a removal, and the thread that unlinked a
//! node retires it to the scheme, after all of its locks are released. Every node that an operation visits was linked at
//! some moment since its guard was obtained. By induction: the links of a linked node lead to linked ones, since a node
//! is unlinked by changing the last link to it. An unlinked node was unlinked after the guard was obtained, and its
//! links have not changed since (I4), so they lead to nodes that were linked then.
//! Invariants, with *linked* for reachable from the holder:
//! I1 The keys of the left subtree are less than the node's key, those of the right one are greater; but while the copy
//! of a successor waits for traversals, the successor itself stays the least of its right subtree.
//! I2 A node changes only under its lock.
//! I3 Outside of locked sections, each linked node has one link to it.
//! I4 A node is marked under its lock, before that is released by the thread that unlinks it. From then on only its lock
//! changes. It is unlinked and retired once, by that thread.
//! I5 The tag of a node changes whenever one of its links becomes null; when this ends the move of a successor, then not
//! before every traversal has ended that had begun when the copy came.

mod alone;
mod node;
mod rcu;

use self::{
    node::{Link, Locked, Node, Ref, Version},
    rcu::{Rcu, Reader},
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
        name: "citrus14",
        title: "RCU internal BST",
        source: "Arbel and Attiya, Concurrent Updates with RCU: Search Tree as an Example, PODC 2014",
        progress: "contains wait-free; updates block, and may wait for all traversals of the moment",
        semantics: Semantics { adt: Adt::OrderedDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::Deferred,
        memory: Memory::Nodes,
        search: Search::Logarithmic,
        deviations: &[
            "no sentinel keys: a holder above the topmost node takes their place",
            "mark, lock and one tag for both links share a word; nodes are 40 bytes",
            "nodes are retired to the scheme asked for; RCU, which belongs to the instance, only orders removals",
        ],
        invariants: &[
            "I1 left keys < node's key < right keys, but for a successor whose copy waits for traversals",
            "I2 a node changes only under its lock",
            "I3 each node has one link to it",
            "I4 an unlinked node is marked and does not change; it is retired once, by the thread that unlinked it",
            "I5 a node whose link becomes null has another tag ever after",
        ],
        parameters: &[],
    },
    drivers: drivers!(Citrus14),
};

/// The tree. On lines of its own, because every operation reads the holder.
#[repr(align(128))]
pub struct Citrus14<R: Reclaimer> {
    /// The parent of the topmost node.
    holder: Node,
    reclaimer: R,
    rcu: Rcu,
}

/// What a traversal found.
enum Place<'g> {
    /// The node of the key, and its parent.
    Node(Ref<'g>, Ref<'g>),
    /// A null link of this node, which had this version after that was seen.
    Under(Ref<'g>, Version),
}

impl<R: Reclaimer> Citrus14<R> {
    /// Walks to the node of `key`, or to where it would be, in one read section.
    ///
    /// The version is read inside the section, so that the end of a successor's move, if it takes the range of keys under
    /// the null link away, comes with a later tag (I5).
    fn get<'g>(&'g self, key: u64, guard: &'g impl Guard, reader: &mut Reader<'_>) -> Place<'g> {
        let _section = reader.read();
        let mut parent = Ref::holder(&self.holder);
        while let Some(node) = parent.next(key, guard) {
            if node.key == key {
                return Place::Node(node, parent);
            }
            parent = node;
        }
        Place::Under(parent, parent.version())
    }

    fn contains(&self, key: u64, guard: &impl Guard, reader: &mut Reader<'_>) -> bool {
        matches!(self.get(key, guard, reader), Place::Node(..))
    }

    fn insert(&self, key: u64, value: u64, guard: &impl Guard, reader: &mut Reader<'_>) -> bool {
        let mut spare = None;
        loop {
            let Place::Under(parent, version) = self.get(key, guard, reader) else { return false };
            let leaf = spare.take().unwrap_or_else(|| Unpublished::new(Node::leaf(key, value)));
            let side = parent.side(key);
            let locked = parent.lock();
            let is_valid = !version.is_marked() && parent.version() == version;
            if is_valid && parent.child(side, guard).is_none() {
                locked.set_child(side, leaf.as_ptr());
                leaf.publish();
                return true;
            }
            spare = Some(leaf);
        }
    }

    fn remove(&self, key: u64, guard: &impl Guard, reader: &mut Reader<'_>) -> bool {
        loop {
            let Place::Node(node, parent) = self.get(key, guard, reader) else { return false };
            let side = parent.side(key);
            let (locked_parent, locked) = (parent.lock(), node.lock());
            if !is_child(parent, side, node, guard) {
                continue;
            }
            let children = [node.child(0, guard), node.child(1, guard)];
            if let [Some(left), Some(right)] = children {
                let place = (locked_parent, side);
                if self.replace(place, locked, [left, right], guard, reader) {
                    return true;
                }
                continue;
            }
            let [left, right] = children;
            locked.mark();
            locked_parent.set_child(side, address(left.or(right)));
            drop((locked, locked_parent));
            // SAFETY: unlinked just now by the link of its parent, once (I4), as it is marked from now on; nodes come from
            // `Unpublished`, which allocates them.
            unsafe { guard.retire(node.as_ptr()) };
            return true;
        }
    }

    /// Removes `node`, the child under `place`, by the copy of its successor. False if that could not be locked as it was
    /// found; then nothing has changed.
    ///
    /// *No traversal misses the successor's key:* those that pass the place before the copy comes find the successor,
    /// which stays until they have ended; those that pass it later find the copy.
    ///
    /// *No insertion goes astray:* keys between the node's and the successor's belong to the left of the copy once it is
    /// there. A traversal that passed the place before and seeks one ends at the null link of the successor, which is
    /// marked before its lock is released; or at a link of a node above it on the same path that was null then, which has
    /// another tag when it is null again (I5).
    fn replace<'g>(
        &self,
        place: (Locked<'g>, usize),
        node: Locked<'g>,
        children: [Ref<'g>; 2],
        guard: &'g impl Guard,
        reader: &mut Reader<'_>,
    ) -> bool {
        let (parent, side) = place;
        let (mut above, mut successor) = (node.node(), children[1]);
        while let Some(next) = successor.child(0, guard) {
            (above, successor) = (successor, next);
        }
        let is_near = above == node.node();
        let locked_above = (!is_near).then(|| above.lock());
        let locked_successor = successor.lock();
        let is_valid = is_child(above, usize::from(is_near), successor, guard) && successor.child(0, guard).is_none();
        if !is_valid {
            return false;
        }
        let copy = Unpublished::new(Node::of(successor, children));
        node.mark();
        let copy = parent.set_locked_child(side, copy);
        reader.synchronize();
        locked_successor.mark();
        let splice = address(successor.child(1, guard));
        match &locked_above {
            Some(above) => above.set_child(0, splice),
            None => copy.set_child(1, splice),
        }
        let removed = [node.node(), successor];
        drop((locked_above, locked_successor, copy, node, parent));
        for node in removed {
            // SAFETY: as in `remove`: the link of the parent was the last to the one, and that of the node above it, or
            // of the copy, was the last to the other.
            unsafe { guard.retire(node.as_ptr()) };
        }
        true
    }
}

/// Tells whether two nodes that the calling thread holds are linked, and the one is the other's child on that side.
fn is_child<'g>(parent: Ref<'g>, side: usize, child: Ref<'g>, guard: &'g impl Guard) -> bool {
    !parent.version().is_marked() && !child.version().is_marked() && parent.child(side, guard) == Some(child)
}

fn address(link: Link<'_>) -> *mut Node {
    link.map_or(std::ptr::null_mut(), Ref::as_ptr)
}

impl<R: Reclaimer> ConcurrentSet for Citrus14<R> {
    type Handle<'s> = Handle<'s, R>;

    fn new(parameters: &Parameters) -> Self {
        Self { holder: Node::holder(), reclaimer: R::with(parameters), rcu: Rcu::new() }
    }

    fn handle(&self) -> Handle<'_, R> {
        Handle { tree: self, local: self.reclaimer.register(), reader: self.rcu.register() }
    }

    fn audit(&mut self) -> Audit {
        // SAFETY: `&mut self` excludes every handle.
        alone::audit(Ref::holder(&self.holder), &unsafe { Alone::new() })
    }

    fn unreclaimed(&self) -> Option<u64> {
        Some(self.reclaimer.unreclaimed())
    }
}

impl<R: Reclaimer> Drop for Citrus14<R> {
    /// Frees what is linked; what was unlinked is the reclaimer's, and disjoint (I4).
    fn drop(&mut self) {
        // SAFETY: `&mut self` excludes every handle.
        alone::free(Ref::holder(&self.holder), &unsafe { Alone::new() });
    }
}

/// A thread's access.
pub struct Handle<'s, R: Reclaimer> {
    tree: &'s Citrus14<R>,
    local: R::Local<'s>,
    reader: Reader<'s>,
}

impl<R: Reclaimer> SetHandle for Handle<'_, R> {
    fn insert(&mut self, key: u64, value: u64) -> bool {
        self.tree.insert(key, value, &self.local.pin(), &mut self.reader)
    }

    fn remove(&mut self, key: u64) -> bool {
        self.tree.remove(key, &self.local.pin(), &mut self.reader)
    }

    fn contains(&mut self, key: u64) -> bool {
        self.tree.contains(key, &self.local.pin(), &mut self.reader)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        mem,
        sync::atomic::{AtomicBool, Ordering::SeqCst},
        thread,
    };

    use super::*;
    use crate::reclaim::NoReclamation;

    fn set_of(keys: &[u64]) -> Citrus14<NoReclamation> {
        let set = Citrus14::<NoReclamation>::new(&Parameters::new());
        let mut handle = set.handle();
        assert!(keys.iter().all(|&key| handle.insert(key, key)));
        drop(handle);
        set
    }

    /// Removes 5, and checks what is left and that `n_retired` nodes were retired.
    fn check_removal(keys: &[u64], n_retired: u64) {
        let mut set = set_of(keys);
        let mut handle = set.handle();
        assert!(handle.remove(5) && !handle.contains(5) && !handle.remove(5));
        assert!(keys.iter().all(|&key| handle.contains(key) == (key != 5)));
        assert_eq!(set.unreclaimed(), Some(n_retired), "of {keys:?}");
        drop(handle);
        let key_sum = keys.iter().sum::<u64>() - 5;
        assert_eq!(set.audit(), Audit { size: keys.len() as u64 - 1, key_sum, violations: Vec::new() });
    }

    #[test]
    fn removal_depends_on_the_children() {
        check_removal(&[5], 1);
        check_removal(&[5, 3], 1);
        check_removal(&[5, 8, 9], 1);
        check_removal(&[2, 5, 3, 8], 2);
        check_removal(&[5, 3, 8, 9], 2);
        check_removal(&[5, 3, 9, 7, 8], 2);
        check_removal(&[5, 3, 9, 8, 7, 6], 2);
    }

    /// Finds the place of 6, lets another thread's operations pass, and tells whether the place may still be used.
    fn is_valid_after(keys: &[u64], operations: impl FnOnce(&mut Handle<'_, NoReclamation>)) -> bool {
        let set = set_of(keys);
        let (mut stalled, mut other) = (set.handle(), set.handle());
        let guard = stalled.local.pin();
        let Place::Under(parent, version) = set.get(6, &guard, &mut stalled.reader) else { panic!("6 is absent") };
        operations(&mut other);
        parent.version() == version && parent.child(parent.side(6), &guard).is_none()
    }

    #[test]
    fn a_place_is_not_used_when_it_is_another_range() {
        assert!(is_valid_after(&[5, 3, 8], |other| assert!(other.insert(9, 9) && other.remove(3))));
        // The place is under the successor.
        assert!(!is_valid_after(&[5, 3, 8, 7], |other| assert!(other.remove(5))));
        assert!(!is_valid_after(&[5, 3, 7], |other| assert!(other.remove(5))));
        // It is where a successor came and went.
        assert!(!is_valid_after(&[5, 3, 8], |other| assert!(other.insert(7, 7) && other.remove(5))));
        // It was taken and given back.
        assert!(!is_valid_after(&[5, 3, 8], |other| assert!(other.insert(7, 7) && other.remove(7))));
    }

    #[test]
    fn a_successor_stays_for_the_traversals_of_the_moment() {
        let set = set_of(&[5, 3, 8, 7]);
        let (mut handle, mut onlooker) = (set.handle(), set.handle());
        let guard = handle.local.pin();
        let section = handle.reader.read();
        let topmost = || Ref::holder(&set.holder).child(1, &guard).expect("the tree is not empty");
        let old = topmost();
        let is_removed = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                assert!(set.handle().remove(5));
                is_removed.store(true, SeqCst);
            });
            while topmost() == old {
                thread::yield_now();
            }
            // Time enough for a removal that does not wait.
            (0..100).for_each(|_| thread::yield_now());
            assert_eq!(topmost().key, 7, "the copy has come");
            let above = old.child(1, &guard).expect("unlinked nodes keep their links");
            assert!(above.child(0, &guard).is_some_and(|successor| successor.key == 7), "the successor has stayed");
            assert!(onlooker.contains(7) && !onlooker.contains(5) && !is_removed.load(SeqCst));
            drop(section);
        });
        assert!(onlooker.contains(7) && onlooker.remove(7) && !onlooker.contains(7));
        assert_eq!(set.unreclaimed(), Some(4), "two nodes, each with the successor that took its place");
    }

    #[test]
    fn the_audit_sees_a_lock_and_a_mark() {
        type Break = fn(Ref<'_>);
        let breaks: [(&str, Break); 2] =
            [("I2", |topmost| mem::forget(topmost.lock())), ("I4", |topmost| topmost.lock().mark())];
        for (invariant, break_it) in breaks {
            let mut set = set_of(&[5, 3]);
            assert_eq!(set.audit(), Audit { size: 2, key_sum: 8, violations: Vec::new() });
            // SAFETY: no handle is left, and nothing is retired.
            let guard = unsafe { Alone::new() };
            break_it(Ref::holder(&set.holder).child(1, &guard).expect("the tree is not empty"));
            let audit = set.audit();
            assert!(audit.violations.iter().any(|words| words.starts_with(invariant)), "{invariant}: {audit:?}");
        }
    }
}
