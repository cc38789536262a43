//! One lock-free sorted list without a reclaimer of its own, so that a hash table can have many under one.
//!
//! Source, invariants and deviations are those of [`super`].

use super::link::{Link, Next, Node, Word};
use crate::{
    reclaim::{Alone, AnyGuard},
    structures::{unpublished::Unpublished, walk::Walk},
};

/// A list: one word. All guards given to one list belong to one reclaimer.
pub(crate) struct List {
    head: Next,
}

/// Where a key belongs: between two neighbours. To be used until the next search under the same guard, and no longer: that
/// uses the slots again which protect these nodes.
pub(super) struct Place<'g> {
    /// The link of the last node with a smaller key, or the head; unmarked when it was validated.
    prev: &'g Next,
    /// What `prev` held: the first node with a key that is not smaller, or null.
    curr: Link<'g>,
    /// What that node's link held, unmarked, if it has the key; else `None`.
    found: Option<(&'g Node, Link<'g>)>,
}

impl List {
    /// Makes an empty list.
    pub(crate) const fn new() -> Self {
        Self { head: Next::new(Word::NULL) }
    }

    /// Finds the place of `key`, and unlinks the marked nodes that it meets one by one (the paper's Find).
    ///
    /// Each step is validated before anything that was read from the current node is used: the link that led to the node
    /// must still lead to it, unmarked. Then the node of `prev` was in the list at that moment (I3), and so was the current
    /// one. That makes the next one safe under schemes that protect single nodes, where three are in use at a time, each
    /// with a slot: that of `prev`, the current and the next one. For the current node was in the list when it was
    /// validated as the next one, or its link was the head's, and it is now; nothing comes back that was unlinked, so it
    /// was in the list in between too, when its link was read again after the next node had been announced. At that
    /// moment the next node was in the list, hence not retired (I3): (H) of `reclaim::any`.
    pub(super) fn find<'g>(&'g self, key: u64, guard: &'g impl AnyGuard) -> Place<'g> {
        'search: loop {
            let mut prev = &self.head;
            let [mut of_prev, mut of_curr, mut of_next] = [0, 1, 2];
            let mut curr = prev.load(guard, of_curr);
            while let Some(node) = curr.node() {
                let next = node.next.load(guard, of_next);
                let node_key = node.key;
                if !prev.still_holds(curr.word) {
                    continue 'search;
                }
                if next.word.is_marked() {
                    let after = next.unmarked();
                    if !prev.exchange(curr.word, after.word) {
                        continue 'search;
                    }
                    // SAFETY: `prev` was unmarked, so in the list (I3), and the only link from there to the node until
                    // this exchange, which was its unlinking.
                    unsafe { curr.word.retire(guard) };
                    curr = after;
                    [of_curr, of_next] = [of_next, of_curr];
                    continue;
                }
                if node_key >= key {
                    return Place { prev, curr, found: (node_key == key).then_some((node, next)) };
                }
                prev = &node.next;
                curr = next;
                [of_prev, of_curr, of_next] = [of_curr, of_next, of_prev];
            }
            return Place { prev, curr, found: None };
        }
    }

    pub(crate) fn contains(&self, key: u64, guard: &impl AnyGuard) -> bool {
        self.find(key, guard).found.is_some()
    }

    pub(crate) fn insert(&self, key: u64, value: u64, guard: &impl AnyGuard) -> bool {
        let mut place = self.find(key, guard);
        if place.found.is_some() {
            return false;
        }
        let new = Unpublished::new(Node::new(key, value));
        loop {
            new.get().next.prepare(place.curr.word);
            if place.prev.exchange(place.curr.word, Word::to_node(new.as_ptr())) {
                new.publish();
                return true;
            }
            place = self.find(key, guard);
            if place.found.is_some() {
                return false;
            }
        }
    }

    /// Marks the node, which decides who removes it, and has it unlinked.
    pub(crate) fn remove(&self, key: u64, guard: &impl AnyGuard) -> bool {
        loop {
            let place = self.find(key, guard);
            let Some((node, next)) = place.found else { return false };
            if !node.next.exchange(next.word, next.word.marked()) {
                continue;
            }
            if place.prev.exchange(place.curr.word, next.word) {
                // SAFETY: `prev` was unmarked, so in the list (I3), and led to the node until this exchange.
                unsafe { place.curr.word.retire(guard) };
            } else {
                // Unlinks the node unless others have: it would lie before the place that this finds.
                self.find(key, guard);
            }
            return true;
        }
    }

    /// Walks the list and checks I1 and I4. `check` sees each key that is in the set.
    pub(crate) fn audit(&mut self, walk: &mut Walk, check: impl Fn(&mut Walk, u64)) {
        // SAFETY: `&mut self` excludes every other access.
        let guard = unsafe { Alone::new() };
        walk.next_list();
        let mut link = self.head.load(&guard, 0);
        if link.word.is_marked() {
            walk.violation("I4: the head is marked at rest".to_owned());
        }
        while let Some(node) = link.node() {
            link = node.next.load(&guard, 0);
            if link.word.is_marked() {
                walk.violation(format!("I4: the node of key {} is marked at rest", node.key));
            } else {
                walk.key(node.key, "I1");
                check(walk, node.key);
            }
        }
    }
}

impl Drop for List {
    /// Frees what is in the list; what was unlinked is the reclaimer's, and disjoint (I3).
    fn drop(&mut self) {
        // SAFETY: `&mut self` excludes every other access.
        let guard = unsafe { Alone::new() };
        let mut link = self.head.load(&guard, 0);
        while let Some(node) = link.node() {
            let next = node.next.load(&guard, 0);
            // SAFETY: the list is being dropped by a thread that is alone; `next` was read before, and nothing leads
            // back (I1).
            unsafe { link.word.retire(&guard) };
            link = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol::Audit,
        reclaim::{
            AnyLocal, AnyReclaimer, NoReclamation,
            interleave::{Announcing, Graveyard},
        },
    };

    fn audit(list: &mut List) -> Audit {
        let mut walk = Walk::new();
        list.audit(&mut walk, |_, _| {});
        walk.finish()
    }

    /// Runs `test` on a list of the keys 5 to 8, in which removals of `stalled` have marked their node and done no more,
    /// and returns the list and how many nodes were retired.
    fn with_stalled_removals(stalled: &[u64], test: impl FnOnce(&List, &dyn Fn(u64) -> bool)) -> (List, u64) {
        let (list, reclaimer) = (List::new(), NoReclamation::new());
        let mut local = reclaimer.register();
        let guard = local.pin();
        for key in 5..=8 {
            assert!(list.insert(key, key, &guard));
        }
        for &key in stalled {
            let (node, next) = list.find(key, &guard).found.expect("it was inserted");
            assert!(node.next.exchange(next.word, next.word.marked()));
        }
        test(&list, &|key| list.remove(key, &guard));
        drop(local);
        (list, reclaimer.unreclaimed())
    }

    #[test]
    fn a_search_unlinks_the_marked_nodes_that_it_meets_one_by_one() {
        let (mut list, n_retired) = with_stalled_removals(&[6, 7], |_, remove| {
            assert!(!remove(6), "the stalled removal owns it, and its place is before 7");
        });
        assert_eq!(n_retired, 2, "the nodes of 6 and 7 lie before the place of 6, which is at 8");
        assert_eq!(audit(&mut list), Audit { size: 2, key_sum: 13, violations: Vec::new() });

        let (mut list, n_retired) = with_stalled_removals(&[5, 7], |_, remove| assert!(remove(6)));
        assert_eq!(n_retired, 2, "5 lies before 6, 7 does not");
        let violations = vec!["I4: the node of key 7 is marked at rest".to_owned()];
        assert_eq!(audit(&mut list), Audit { size: 1, key_sum: 8, violations });
    }

    #[test]
    fn the_nodes_of_a_place_stay_while_they_are_announced() {
        // At each distance from the head, because slots take turns.
        for key in 6..=12 {
            let (list, graveyard) = (List::new(), Graveyard::default());
            let guard = Announcing::alone(&graveyard);
            assert!((5..=13).all(|key| list.insert(key, key, &guard)));
            let place = list.find(key, &guard);
            let (node, next) = place.found.expect("it was inserted");
            assert!((5..=13).all(|key| list.remove(key, &Announcing::alone(&graveyard))));
            // Loads panic where the node is gone.
            assert!(place.prev.load(&guard, 3).word.is_marked());
            assert!(node.next.load(&guard, 3).word.is_marked());
            assert!(next.node().expect("one more was there").next.load(&guard, 3).word.is_marked());
        }
    }

    /// Removals have marked three neighbours and stalled. A search that meets them is itself stalled after each of its
    /// loads, while another unlinks them, and frees those that the first has not announced.
    #[test]
    fn nodes_that_are_unlinked_under_a_search_are_left() {
        let mut n_let_in = 0;
        for n_loads in 1.. {
            let (list, graveyard) = (List::new(), Graveyard::default());
            let alone = Announcing::alone(&graveyard);
            assert!((5..=9).all(|key| list.insert(key, key, &alone)));
            for key in [8, 7, 6] {
                let (node, next) = list.find(key, &alone).found.expect("it was inserted");
                assert!(node.next.exchange(next.word, next.word.marked()));
            }
            drop(alone);
            let guard = Announcing::with(&graveyard, n_loads, || {
                assert!(list.contains(9, &Announcing::alone(&graveyard)));
            });
            assert!(list.contains(9, &guard));
            if !guard.is_spent() {
                break;
            }
            n_let_in += 1;
        }
        assert!(n_let_in >= 6, "five nodes and the head have links: {n_let_in}");
    }

    #[test]
    fn an_insertion_after_a_marked_node_fails_and_searches_again() {
        let (list, reclaimer) = (List::new(), NoReclamation::new());
        let mut local = reclaimer.register();
        let guard = local.pin();
        assert!(list.insert(5, 5, &guard));
        let place = list.find(6, &guard);
        let (node, next) = list.find(5, &guard).found.expect("it was inserted");
        assert!(node.next.exchange(next.word, next.word.marked()));
        assert!(!place.prev.still_holds(place.curr.word), "the mark shows in the link");
        assert!(!place.prev.exchange(place.curr.word, Word::NULL));
        assert!(!list.contains(5, &guard) && list.insert(6, 6, &guard) && list.contains(6, &guard));
        assert_eq!(reclaimer.unreclaimed(), 1);
    }
}
