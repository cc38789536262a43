//! Helped, stalled and half-linked towers, made by hand.

use super::*;
use crate::reclaim::{
    NoReclamation,
    interleave::{Operation, explore},
};

type Leaking = Hlls07<NoReclamation>;

fn with_max_level(max_level: u64) -> Leaking {
    Leaking::new(&Parameters::from([(tower::MAX_LEVEL.name.to_owned(), max_level)]))
}

fn audit_of(size: u64, key_sum: u64) -> Audit {
    Audit { size, key_sum, violations: Vec::new() }
}

fn node_of<'g>(set: &'g Leaking, key: u64, guard: &'g impl Guard) -> NodeRef<'g> {
    right_of(set.find(key, 1, guard).step(0)).filter(|node| node.key() == key).expect("it was inserted")
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
fn a_node_is_absent_until_it_is_linked_to_all_levels() {
    let mut set = with_max_level(2);
    let mut local = set.reclaimer.register();
    let guard = local.pin();
    set.levels.note(2);
    let path = set.find(6, 2, &guard);
    let locks = Locks::take(&path, 2, |_| true).expect("nobody else is there");
    let node = NewNode::new(6, 0, 2, State::new()).publish(&guard);
    // An insertion that stalls after the lowest level.
    set.head.node().next(0).store(Link::to(node));
    assert!(!set.contains(6, &guard) && !set.remove(6, &guard));
    std::thread::scope(|scope| {
        let late = scope.spawn(|| set.handle().insert(6, 6));
        set.head.node().next(1).store(Link::to(node));
        assert!(!set.contains(6, &guard), "it is in all levels, but nobody was told");
        node.state().set_linked();
        assert!(!late.join().unwrap(), "the other insertion waits, and finds the key present");
    });
    drop(locks);
    assert!(set.contains(6, &guard));
    drop(local);
    assert_eq!(set.audit(), audit_of(1, 6));
}

#[test]
fn a_marked_node_is_absent_and_keeps_its_key_from_others_until_it_is_unlinked() {
    let mut set = with_max_level(3);
    let mut local = set.reclaimer.register();
    let guard = local.pin();
    assert!([5, 6, 7].into_iter().all(|key| set.insert(key, key, 3, &guard)));
    let node = node_of(&set, 6, &guard);
    assert!(node.state().mark() && !node.state().mark());
    assert!(!set.contains(6, &guard) && set.contains(5, &guard) && set.contains(7, &guard));
    assert!(!set.remove(6, &guard));
    let path = set.find(7, 3, &guard);
    assert!(Locks::take(&path, 1, |_| true).is_none(), "nothing is linked after a marked node");
    std::thread::scope(|scope| {
        let late = scope.spawn(|| set.handle().insert(6, 6));
        let path = set.find(6, 3, &guard);
        assert!(unlink(node, &path, |place| place.right == Link::to(node)));
        assert!(late.join().unwrap(), "the insertion waits until the node is out of its way");
    });
    // SAFETY: unlinked just now, by this thread.
    unsafe { node.retire(&guard) };
    drop(local);
    assert_eq!(set.audit(), audit_of(3, 18));
}

#[test]
fn a_path_that_is_out_of_date_is_refused_and_leaves_no_lock() {
    let mut set = with_max_level(2);
    let mut local = set.reclaimer.register();
    let guard = local.pin();
    assert!([2, 8].into_iter().all(|key| set.insert(key, key, 2, &guard)));
    let path = set.find(5, 2, &guard);
    assert!(set.insert(6, 6, 1, &guard));
    assert!(Locks::take(&path, 2, |_| true).is_none(), "the lowest level has changed");
    let path = set.find(5, 2, &guard);
    assert!(set.remove(8, &guard));
    assert!(Locks::take(&path, 1, |_| true).is_some(), "the lowest level has not changed");
    assert!(Locks::take(&path, 2, |_| true).is_none(), "the upper level has changed");
    drop(local);
    assert_eq!(set.audit(), audit_of(2, 8));
}

#[test]
fn the_audit_sees_what_is_not_at_rest() {
    let mut set = with_max_level(2);
    let mut local = set.reclaimer.register();
    let guard = local.pin();
    assert!([5, 6, 7].into_iter().all(|key| set.insert(key, key, 2, &guard)));
    node_of(&set, 5, &guard).state().lock();
    assert!(node_of(&set, 6, &guard).state().mark());
    let last = node_of(&set, 7, &guard);
    node_of(&set, 6, &guard).next(1).store(Link::NULL);
    assert_eq!(last.height(), 2);
    drop(local);
    let violations = [
        "I5: the node of key 5 is not settled at rest",
        "I5: the node of key 6 is not settled at rest",
        "I5: level 1 passes key 7 by",
    ];
    assert_eq!(set.audit(), Audit { size: 1, key_sum: 7, violations: violations.map(str::to_owned).to_vec() });
}

#[test]
fn max_level_bounds_the_height_of_every_node() {
    for max_level in [1, 2, 16] {
        let mut set = with_max_level(max_level);
        let mut handle = set.handle();
        assert!((0..5000).all(|key| handle.insert(key, key)));
        let guard = handle.local.pin();
        let n_levels =
            (0..tower::TALLEST).filter(|&level| set.head.node().next(level).load(&guard) != Link::NULL).count();
        // 5000 nodes, one in four on each next level: some reach the sixth but for a chance below 1 in 100, and the
        // heights are the same in each run.
        let expected = if max_level == 16 { 6..=12 } else { max_level as usize..=max_level as usize };
        assert!(expected.contains(&n_levels), "{n_levels} levels of {max_level}");
        drop(handle);
        assert_eq!(set.audit(), audit_of(5000, 5000 * 4999 / 2));
    }
}
