//! The states that a stalled operation leaves behind, made by hand.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
};

use super::*;
use crate::reclaim::{
    NoReclamation,
    interleave::{Operation, explore},
};
use crate::sync::atomic::{AtomicPtr, Ordering};

type Set = Hj12<NoReclamation>;

#[test]
fn every_interleaving_of_few_operations_is_explained() {
    explore::<Set>(|set, operation, guard| match operation {
        Operation::Insert(key) => set.insert(key, !key, guard),
        Operation::Remove(key) => set.remove(key, guard),
        Operation::Contains(key) => set.contains(key, guard),
    });
}

/// Makes a set of these keys, each with its complement as value.
fn set_of(keys: &[u64]) -> Set {
    let set = Set::new(&Parameters::new());
    let mut handle = set.handle();
    assert!(keys.iter().all(|&key| handle.insert(key, !key)));
    drop(handle);
    set
}

fn place_of<'g>(set: &'g Set, key: u64, guard: &'g impl Guard) -> Place<'g> {
    let found = set.find_from_anchor(key, guard);
    assert!(found.is_key, "{key} is present");
    found.place
}

/// Prepares the relocation of the key after `key`: its target, source and record.
fn prepare<'g>(set: &'g Set, key: u64, guard: &'g impl Guard) -> (Place<'g>, Place<'g>, Unpublished<Relocation>) {
    let target = place_of(set, key, guard);
    let source = set.find(key, target.node, guard).expect("nothing else is pending").place;
    let version = |place: Place<'_>| place.stamp.version().expect("a search ends at clean nodes");
    let moved = (version(source), source.node.key(), source.node.value(guard));
    let carrier = target.node.carrier(guard);
    let record = Relocation::new((target.node, version(target), key), moved, carrier);
    (target, source, Unpublished::new(record))
}

/// Flags the source of a relocation.
fn flag<'g>(source: Place<'g>, record: Unpublished<Relocation>, guard: &'g impl Guard) -> (Stamp, &'g Relocation) {
    let flag = source.node.update.exchange(source.stamp, Stamp::relocate(&record), guard);
    record.publish();
    let flag = flag.expect("nothing else is pending");
    let State::Relocate(relocation) = flag.state() else { panic!("the flag of a relocation") };
    (flag.stamp, relocation)
}

/// Checks the keys, that the value of each is its complement, and the number of retired objects.
fn check(mut set: Set, keys: &[u64], n_retired: u64) {
    assert_eq!(set.unreclaimed(), Some(n_retired));
    let mut handle = set.handle();
    let guard = handle.local.pin();
    for &key in keys {
        assert_eq!(place_of(&set, key, &guard).node.value(&guard), !key, "value of {key}");
    }
    drop(handle);
    let audit = Audit { size: keys.len() as u64, key_sum: keys.iter().sum(), violations: Vec::new() };
    assert_eq!(set.audit(), audit);
}

#[test]
fn a_flagged_insertion_takes_effect_when_another_operation_helps() {
    for keys in [&[][..], &[5], &[5, 8]] {
        let set = set_of(keys);
        let n_before = set.unreclaimed().expect("it counts");
        let (mut stalled, mut handle) = (set.handle(), set.handle());
        let guard = stalled.local.pin();
        let found = set.find_from_anchor(6, &guard);
        let node = Unpublished::new(Node::new(6, !6));
        let (old, new) = (found.next, Word::to_node(node.as_ptr()));
        node.publish();
        let version = found.place.stamp.version().expect("a search ends at clean nodes");
        let record = Unpublished::new(Swing { old, new, version });
        let (node, stamp) = (found.place.node, Stamp::swing(&record, found.side));
        record.publish();
        let flag = node.update.exchange(found.place.stamp, stamp, &guard).expect("nothing else is pending");
        let State::Swing(swing) = flag.state() else { panic!("the flag of a swing") };
        assert!(handle.contains(6) && !handle.insert(6, 0), "whoever comes past completes it");
        assert_eq!(set.unreclaimed(), Some(n_before + 1));
        assert!(handle.remove(6));
        let n_after = set.unreclaimed().expect("it counts");
        help_swing(node, flag.stamp, swing, &guard);
        assert!(!handle.contains(6), "a helper that comes late brought a removed node back");
        drop((stalled, handle));
        check(set, keys, n_after);
    }
}

#[test]
fn a_marked_node_is_absent_and_the_next_search_unlinks_it() {
    for keys in [&[6][..], &[6, 7], &[6, 5], &[5, 6], &[8, 6, 7]] {
        let mut set = set_of(keys);
        let n_before = set.unreclaimed().expect("it counts");
        let (mut stalled, mut handle) = (set.handle(), set.handle());
        let guard = stalled.local.pin();
        let place = place_of(&set, 6, &guard);
        assert!(place.node.update.exchange(place.stamp, Stamp::MARK, &guard).is_some());
        drop(stalled);
        let rest: Vec<u64> = keys.iter().copied().filter(|&key| key != 6).collect();
        drop(handle);
        let audit = Audit { size: rest.len() as u64, key_sum: rest.iter().sum(), violations: Vec::new() };
        assert_eq!(set.audit(), audit, "a marked node holds no key");
        handle = set.handle();
        assert!(!handle.contains(6) && !handle.remove(6));
        assert_eq!(set.unreclaimed(), Some(n_before + 2), "the node and the record");
        assert!(handle.insert(6, !6));
        drop(handle);
        check(set, keys, n_before + 3);
    }
}

#[test]
fn a_marked_node_with_two_children_is_seen_by_the_audit() {
    let mut set = set_of(&[5, 3, 8]);
    let mut handle = set.handle();
    let guard = handle.local.pin();
    let place = place_of(&set, 5, &guard);
    assert!(place.node.update.exchange(place.stamp, Stamp::MARK, &guard).is_some());
    drop(handle);
    let audit = set.audit();
    assert!(audit.violations.iter().any(|words| words.starts_with("I6")), "{audit:?}");
}

#[test]
fn values_move_with_their_keys_again_and_again() {
    let set = set_of(&[10, 5, 40, 20, 30, 50]);
    let mut handle = set.handle();
    // 20, then 30, then 40 move to the topmost node; the last time out of a node with a right child.
    assert!([10, 20, 30].into_iter().all(|key| handle.remove(key)));
    let n_before = 6;
    drop(handle);
    // Of each removal a node and a swing; and of the second and third the carrier before.
    check(set, &[5, 40, 50], n_before + 3 * 2 + 2);
}

#[test]
fn a_relocation_is_helped_from_each_of_its_stages() {
    // Helped on the way to the source, which passes the target; to the target alone; and after the target was released.
    for (stage, sought) in [(0, 15), (1, 10), (1, 15), (2, 15), (2, 17)] {
        let set = set_of(&[10, 5, 20, 15, 17, 25]);
        let n_before = set.unreclaimed().expect("it counts");
        let (mut stalled, mut handle) = (set.handle(), set.handle());
        let guard = stalled.local.pin();
        let (target, source, record) = prepare(&set, 10, &guard);
        let (flag, relocation) = flag(source, record, &guard);
        if stage > 0 {
            let clean = target.stamp;
            assert!(target.node.update.exchange(clean, flag, &guard).is_some());
        }
        if stage > 1 {
            assert!(settle(flag, relocation, Some(target.node), &guard));
        }
        assert_eq!(handle.contains(sought), sought != 10);
        assert!(!handle.contains(10) || stage == 0);
        assert!(handle.contains(15) && handle.contains(17));
        assert!(!handle.contains(10), "the search for 15 has completed the relocation");
        assert!(help_relocation(source, flag, relocation, Some(target.node), &guard), "the decision stays");
        drop((stalled, handle));
        check(set, &[5, 15, 17, 20, 25], n_before + 2);
    }
}

#[test]
fn a_relocation_to_a_changed_target_fails_for_all() {
    let set = set_of(&[10, 5, 20, 15]);
    let n_before = set.unreclaimed().expect("it counts");
    let (mut stalled, mut handle) = (set.handle(), set.handle());
    let guard = stalled.local.pin();
    let (target, source, record) = prepare(&set, 10, &guard);
    // Changes an edge of the target.
    assert!(handle.remove(5));
    let (flag, relocation) = flag(source, record, &guard);
    assert!(handle.contains(15) && handle.contains(10));
    assert_eq!(set.unreclaimed(), Some(n_before + 2 + 1), "the record has been retired");
    assert!(!help_relocation(source, flag, relocation, Some(target.node), &guard));
    drop((stalled, handle));
    check(set, &[10, 15, 20], n_before + 2 + 1);
}

#[test]
fn a_relocation_whose_target_is_gone_is_refused_without_touching_it() {
    let set = set_of(&[10, 5, 20, 15]);
    let n_before = set.unreclaimed().expect("it counts");
    let (mut stalled, mut handle) = (set.handle(), set.handle());
    let guard = stalled.local.pin();
    let (_, source, record) = prepare(&set, 10, &guard);
    assert!(handle.remove(5) && handle.remove(10), "with one child each, so that the node itself goes");
    let target = ptr::from_ref(place_of(&set, 15, &guard).parent);
    let (flag, relocation) = flag(source, record, &guard);
    assert_ne!(relocation.target, target);
    // The source is now under the anchor and 20: no right turn leads to it.
    let seen = source.node.update.load(&guard);
    let place = Place { stamp: seen.stamp, ..source };
    let suspect = set.help(place, seen, &set.anchor, None, &guard);
    assert!(suspect == Some(flag), "not at once: the traversal may be older than the flag");
    assert_eq!(relocation.decision(), Decision::Pending);
    assert!(handle.contains(15) && handle.contains(20));
    assert_eq!(relocation.decision(), Decision::Failure);
    drop((stalled, handle));
    check(set, &[15, 20], n_before + 4 + 1);
}

#[test]
fn a_carrier_outlives_its_target_while_the_source_is_flagged() {
    let set = set_of(&[10, 5, 20, 15]);
    let n_before = set.unreclaimed().expect("it counts");
    let (mut stalled, mut handle) = (set.handle(), set.handle());
    let guard = stalled.local.pin();
    let (target, source, record) = prepare(&set, 10, &guard);
    let (flag, relocation) = flag(source, record, &guard);
    assert!(settle(flag, relocation, Some(target.node), &guard));
    // The target holds 15 now. With the left child gone it is removed itself, with the carrier.
    assert!(handle.remove(5) && handle.remove(15));
    assert_eq!(set.unreclaimed(), Some(n_before + 4), "two nodes and two swings; the source still has the record");
    assert!(!handle.contains(15) && handle.contains(20));
    assert_eq!(set.unreclaimed(), Some(n_before + 4 + 3), "the source, its swing, and the record");
    assert!(help_relocation(source, flag, relocation, None, &guard), "the decision stays");
    drop((stalled, handle));
    check(set, &[20], n_before + 4 + 3);
}

#[test]
fn the_audit_sees_a_flag() {
    let mut set = set_of(&[10, 5, 20]);
    let mut stalled = set.handle();
    let guard = stalled.local.pin();
    let (_, source, record) = prepare(&set, 10, &guard);
    flag(source, record, &guard);
    drop(stalled);
    assert_eq!(set.audit().violations, ["I7: the node of key 20 is flagged at rest"]);
}

/// A guard that lets another operation in after a number of loads, and leaks as [`NoReclamation`] does.
struct Interrupted<'t> {
    loads_left: Cell<usize>,
    interloper: RefCell<Option<Box<dyn FnOnce() + 't>>>,
}

impl Guard for Interrupted<'_> {
    fn load<T>(&self, source: &AtomicPtr<T>) -> *mut T {
        let loaded = source.load(Ordering::Acquire);
        self.loads_left.set(self.loads_left.get().wrapping_sub(1));
        if self.loads_left.get() == 0
            && let Some(interloper) = self.interloper.take()
        {
            interloper();
        }
        loaded
    }

    unsafe fn retire<T: Send>(&self, _object: *mut T) {}
}

fn apply(set: &Set, operation: Operation, guard: &impl Guard) -> bool {
    match operation {
        Operation::Insert(key) => set.insert(key, !key, guard),
        Operation::Remove(key) => set.remove(key, guard),
        Operation::Contains(key) => set.contains(key, guard),
    }
}

fn apply_to_model(keys: &mut BTreeSet<u64>, operation: Operation) -> bool {
    match operation {
        Operation::Insert(key) => keys.insert(key),
        Operation::Remove(key) => keys.remove(&key),
        Operation::Contains(key) => keys.contains(&key),
    }
}

#[test]
fn keys_that_move_up_are_not_missed() {
    // The topmost node has two children, unlike in trees of sorted keys, so that its removal relocates 20 to it.
    const KEYS: [u64; 6] = [10, 5, 40, 20, 30, 50];
    let of = |key| [Operation::Insert(key), Operation::Remove(key), Operation::Contains(key)];
    let all: Vec<Operation> = [5, 10, 15, 20, 40].into_iter().flat_map(of).collect();
    for (&outer, &inner) in all.iter().flat_map(|outer| all.iter().map(move |inner| (outer, inner))) {
        for n_loads in 1.. {
            let mut set = set_of(&KEYS);
            let answer = Cell::new(None);
            let mut other = set.handle();
            let act = || answer.set(Some(apply(&set, inner, &other.local.pin())));
            let guard = Interrupted { loads_left: Cell::new(n_loads), interloper: RefCell::new(Some(Box::new(act))) };
            let outer_answer = apply(&set, outer, &guard);
            drop(guard);
            let Some(inner_answer) = answer.get() else { break };
            drop(other);
            let audit = set.audit();
            let is_explained = [false, true].into_iter().any(|is_inner_first| {
                let mut keys = BTreeSet::from(KEYS);
                let (outer_due, inner_due) = if is_inner_first {
                    let inner_due = apply_to_model(&mut keys, inner);
                    (apply_to_model(&mut keys, outer), inner_due)
                } else {
                    (apply_to_model(&mut keys, outer), apply_to_model(&mut keys, inner))
                };
                (outer_due, inner_due) == (outer_answer, inner_answer)
                    && audit == Audit { size: keys.len() as u64, key_sum: keys.iter().sum(), violations: Vec::new() }
            });
            assert!(is_explained, "{outer:?} {outer_answer}, {inner:?} {inner_answer} after {n_loads}: {audit:?}");
        }
    }
}
