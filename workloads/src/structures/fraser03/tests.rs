//! Helped, stalled and half-linked towers, made by hand.

use super::*;
use crate::reclaim::{
    NoReclamation,
    interleave::{Announcing, Graveyard, Operation, explore, explore_announcing},
};

type Leaking = Fraser03<NoReclamation>;

fn with_max_level(max_level: u64) -> Leaking {
    Leaking::new(&Parameters::from([(tower::MAX_LEVEL.name.to_owned(), max_level)]))
}

fn audit_of(size: u64, key_sum: u64) -> Audit {
    Audit { size, key_sum, violations: Vec::new() }
}

/// Links a new node to the lowest level and no further: an insertion that stalls there. Returns its path too.
fn insert_low<'g>(
    set: &'g Leaking,
    key: u64,
    height: usize,
    guard: &'g impl AnyGuard,
) -> (NodeRef<'g>, Path<'g, OneFinished>) {
    set.levels.note(height);
    let path = set.search(key, height, guard);
    let node = NewNode::new(key, 0, height, OneFinished::of_height(height)).publish(guard);
    for level in 0..height {
        node.next(level).prepare(path.step(level).right);
    }
    assert!(path.step(0).left.next(0).exchange(path.step(0).right, Link::to(node)));
    (node, path)
}

#[test]
fn every_interleaving_of_few_operations_is_explained() {
    // Heights 2, 3 and 1 of the keys 10, 20 and 30.
    explore::<Leaking>(|set, operation, guard| match operation {
        Operation::Insert(key) => set.insert(key, !key, 1 + key as usize / 10 % 3, guard),
        Operation::Remove(key) => set.remove(key, guard),
        Operation::Contains(key) => set.contains(key, guard),
    });
}

#[test]
fn no_interleaving_follows_a_link_to_a_node_that_was_not_announced_in_time() {
    explore_announcing::<Leaking>(|set, operation, guard| match operation {
        Operation::Insert(key) => set.insert(key, !key, 1 + key as usize / 10 % 3, guard),
        Operation::Remove(key) => set.remove(key, guard),
        Operation::Contains(key) => set.contains(key, guard),
    });
}

#[test]
fn the_nodes_of_a_path_stay_while_they_are_announced() {
    let (set, graveyard) = (with_max_level(2), Graveyard::default());
    let guard = Announcing::alone(&graveyard);
    for (key, height) in [(5, 2), (6, 1), (7, 1), (8, 1), (9, 1), (10, 2)] {
        assert!(set.insert(key, key, height, &guard));
    }
    let path = set.search(8, 2, &guard);
    assert!((5..=10).all(|key| set.remove(key, &Announcing::alone(&graveyard))));
    for (level, left, right) in [(0, 7, 8), (1, 5, 10)] {
        // Loads panic where the node is gone.
        let node = found(&path, level, right).expect("it was there");
        assert!(node.next(level).look(&guard).is_marked());
        assert!(path.step(level).left.next(level).look(&guard).is_marked());
        assert_eq!(path.step(level).left.key(), left);
    }
}

/// Removals have marked three neighbours and stalled. A search that walks over them is itself stalled after each of its
/// loads, while the removals end, and free what the search has not announced.
#[test]
fn a_run_that_is_unlinked_under_a_search_is_left() {
    let mut n_let_in = 0;
    for n_loads in 1.. {
        let (set, graveyard) = (with_max_level(2), Graveyard::default());
        let alone = Announcing::alone(&graveyard);
        assert!((5..=9).all(|key| set.insert(key, key, 2, &alone)));
        let stalled = [8, 7, 6].map(|key| {
            let node = found(&set.search(key, 1, &alone), 0, key).expect("it was inserted");
            assert!(mark(node, 1, &alone) && mark(node, 0, &alone));
            node
        });
        let guard = Announcing::with(&graveyard, n_loads, || {
            for node in stalled {
                set.finish(node, None, &Announcing::alone(&graveyard));
            }
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
fn every_interleaving_of_few_operations_is_explained_without_upper_levels() {
    explore::<Leaking>(|set, operation, guard| match operation {
        Operation::Insert(key) => set.insert(key, !key, 1, guard),
        Operation::Remove(key) => set.remove(key, guard),
        Operation::Contains(key) => set.contains(key, guard),
    });
}

#[test]
fn a_node_that_is_removed_before_it_is_raised_is_retired_by_its_inserter() {
    let mut set = with_max_level(3);
    let mut local = set.reclaimer.register();
    let guard = local.pin();
    assert!(set.insert(5, 5, 3, &guard));
    let (node, path) = insert_low(&set, 6, 3, &guard);
    assert!(set.contains(6, &guard), "it is present once it is in the lowest level");
    assert!(set.remove(6, &guard));
    assert!(!set.contains(6, &guard) && !set.remove(6, &guard));
    assert_eq!(set.unreclaimed(), Some(0), "the inserter may still link it");
    set.raise(node, path, &guard);
    set.finish(node, None, &guard);
    assert_eq!(set.unreclaimed(), Some(1));
    drop(local);
    assert_eq!(set.audit(), audit_of(1, 5));
}

#[test]
fn a_removed_node_that_is_linked_in_vain_is_unlinked_by_its_inserter() {
    let mut set = with_max_level(2);
    let mut local = set.reclaimer.register();
    let guard = local.pin();
    let (node, path) = insert_low(&set, 6, 2, &guard);
    // The inserter has just seen that the node is not marked.
    assert!(set.remove(6, &guard));
    // A search takes it out of the lowest level.
    assert!(found(&set.search(6, 2, &guard), 0, 6).is_none());
    assert!(path.step(1).left.next(1).exchange(path.step(1).right, Link::to(node)));
    assert_eq!(set.head.node().next(0).look(&guard), Link::NULL);
    assert_eq!(set.head.node().next(1).look(&guard), Link::to(node));
    // Nobody goes down from it to the lowest level, where it is no more.
    assert!(!set.contains(7, &guard) && !set.contains(6, &guard));
    set.finish(node, None, &guard);
    assert_eq!(set.head.node().next(1).look(&guard), Link::NULL);
    assert_eq!(set.unreclaimed(), Some(1));
    drop(local);
    assert_eq!(set.audit(), audit_of(0, 0));
}

#[test]
fn a_node_that_is_removed_after_it_was_raised_is_retired_by_its_remover() {
    let mut set = with_max_level(2);
    let mut local = set.reclaimer.register();
    let guard = local.pin();
    let (node, path) = insert_low(&set, 6, 2, &guard);
    set.raise(node, path, &guard);
    set.finish(node, None, &guard);
    assert_eq!(set.unreclaimed(), Some(0));
    assert!(set.remove(6, &guard));
    assert_eq!(set.unreclaimed(), Some(1));
    drop(local);
    assert_eq!(set.audit(), audit_of(0, 0));
}

/// If the new node came before the old one on the upper level, then the search for the old one would end at the new one:
/// the old one would be retired and still be linked.
#[test]
fn an_older_node_of_the_same_key_is_unlinked_before_the_new_one_is_raised() {
    let mut set = with_max_level(2);
    let mut local = set.reclaimer.register();
    let guard = local.pin();
    assert!(set.insert(6, 6, 2, &guard));
    // An insertion of 6 comes by on the upper level, then the old node is marked and leaves the lowest level only.
    let early = set.search(6, 2, &guard);
    let old = found(&early, 1, 6).expect("it was inserted with two levels");
    assert!(mark(old, 1, &guard) && mark(old, 0, &guard));
    assert!(set.head.node().next(0).exchange(Link::to(old), Link::NULL));
    let mut path = Path::new(set.head.node(), 2);
    path.set(1, early.step(1).left, early.step(1).right);
    // It goes on from there.
    let new = NewNode::new(6, 0, 2, OneFinished::of_height(2)).publish(&guard);
    new.next(1).prepare(path.step(1).right);
    assert!(path.step(0).left.next(0).exchange(Link::NULL, Link::to(new)));
    set.raise(new, path, &guard);
    set.finish(new, None, &guard);
    assert_eq!(set.head.node().next(1).look(&guard), Link::to(new));
    assert_eq!(new.next(1).look(&guard), Link::NULL);
    // The remover of the old one ends, with a path that is out of date.
    set.finish(old, Some(&early), &guard);
    assert_eq!(set.unreclaimed(), Some(1));
    drop(local);
    assert_eq!(set.audit(), audit_of(1, 6));
}

#[test]
fn the_audit_sees_a_marked_node_and_a_missing_level() {
    let mut set = with_max_level(2);
    let mut local = set.reclaimer.register();
    let guard = local.pin();
    insert_low(&set, 5, 2, &guard);
    assert!(set.insert(7, 7, 1, &guard));
    let node = found(&set.search(7, 1, &guard), 0, 7).expect("it was inserted");
    assert!(mark(node, 0, &guard));
    drop(local);
    let violations = [
        "I4: level 1 passes key 5 by",
        "I4: the node of key 7 is not settled at rest",
        "I4: key 7 is marked on level 0 at rest",
    ];
    assert_eq!(set.audit(), Audit { size: 1, key_sum: 5, violations: violations.map(str::to_owned).to_vec() });
}

#[test]
fn max_level_bounds_the_height_of_every_node() {
    for max_level in [1, 2, 16] {
        let mut set = with_max_level(max_level);
        let mut handle = set.handle();
        assert!((0..5000).all(|key| handle.insert(key, key)));
        let guard = handle.local.pin();
        let n_levels =
            (0..tower::TALLEST).filter(|&level| set.head.node().next(level).look(&guard) != Link::NULL).count();
        // 5000 nodes, one in four on each next level: some reach the sixth but for a chance below 1 in 100, and the
        // heights are the same in each run.
        let expected = if max_level == 16 { 6..=12 } else { max_level as usize..=max_level as usize };
        assert!(expected.contains(&n_levels), "{n_levels} levels of {max_level}");
        drop(handle);
        assert_eq!(set.audit(), audit_of(5000, 5000 * 4999 / 2));
    }
}
