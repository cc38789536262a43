//! The states that a stalled operation leaves behind, made by hand.

use super::*;
use crate::reclaim::{
    NoReclamation,
    interleave::{Operation, explore},
};

type Set = Efrb10<NoReclamation>;

#[test]
fn every_interleaving_of_few_operations_is_explained() {
    explore::<Set>(|set, operation, guard| match operation {
        Operation::Insert(key) => set.insert(key, !key, guard),
        Operation::Remove(key) => set.remove(key, guard),
        Operation::Contains(key) => set.contains(key, guard),
    });
}

/// Makes a set of these keys.
fn set_of(keys: &[u64]) -> Set {
    let set = Set::new(&Parameters::new());
    let mut handle = set.handle();
    assert!(keys.iter().all(|&key| handle.insert(key, key)));
    drop(handle);
    set
}

/// Flags for an insertion of `key`, and returns the parent and its flag.
fn flag_insertion<'g>(set: &'g Set, key: u64, guard: &'g impl Guard) -> (&'g Internal, Seen<'g>) {
    let seek = set.seek(key, guard);
    let leaf = Unpublished::new(Leaf { key, value: key });
    let new_leaf = Word::to_leaf(leaf.as_ptr());
    leaf.publish();
    let new = seek.leaf.leaf().map_or(new_leaf, |other| {
        let copy = Unpublished::new(*other);
        let fork = Unpublished::new(Internal::fork((other.key, Word::to_leaf(copy.as_ptr())), (key, new_leaf)));
        copy.publish();
        let word = Word::to_internal(fork.as_ptr());
        fork.publish();
        word
    });
    let version = seek.seen.stamp.version().expect("nothing else is pending");
    let record = Unpublished::new(Swing { old: seek.leaf.word, new, version });
    let flag = seek.parent.update.exchange(seek.seen.stamp, Stamp::swing(&record, seek.side), guard);
    record.publish();
    (seek.parent, flag.expect("nothing else is pending"))
}

/// Flags for the removal of `key`, whose leaf has a grandparent, and returns that and its flag.
fn flag_removal<'g>(set: &'g Set, key: u64, guard: &'g impl Guard) -> (&'g Internal, Seen<'g>) {
    let seek = set.seek(key, guard);
    assert!(seek.leaf.holds(key));
    let (grandparent, seen) = seek.grandparent.expect("there are other leaves");
    let version = seen.stamp.version().expect("nothing else is pending");
    let (parent, parent_stamp) = (seek.parent_word, seek.seen.stamp);
    let record = Unpublished::new(Removal { grandparent, parent, parent_stamp, version });
    let flag = grandparent.update.exchange(seen.stamp, Stamp::remove(&record, seek.side), guard);
    record.publish();
    (grandparent, flag.expect("nothing else is pending"))
}

fn removal(flag: Seen<'_>) -> &Removal {
    let State::Remove(removal) = flag.state() else { panic!("the flag of a removal") };
    removal
}

fn check(mut set: Set, keys: &[u64], n_retired: u64) {
    assert_eq!(set.unreclaimed(), Some(n_retired));
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
        let (parent, flag) = flag_insertion(&set, 6, &guard);
        assert!(!handle.contains(6), "an insertion takes effect at the swing");
        assert!(handle.insert(7, 7), "7 belongs to the same edge, so the insertion of 6 is in its way");
        assert!(handle.contains(6) && handle.contains(7));
        let n_after = set.unreclaimed();
        set.help(parent, flag, &guard);
        assert_eq!(set.unreclaimed(), n_after, "a helper that comes late retires nothing");
        drop((stalled, handle));
        // A record each, and a leaf each that was replaced by its copy.
        let n_retired = n_before + if keys.is_empty() { 3 } else { 4 };
        check(set, &[keys, &[6, 7]].concat(), n_retired);
    }
}

#[test]
fn a_swung_insertion_is_ended_by_the_next_operation_on_its_node() {
    let set = set_of(&[5, 8]);
    let n_before = set.unreclaimed().expect("it counts");
    let (mut stalled, mut handle) = (set.handle(), set.handle());
    let guard = stalled.local.pin();
    let (parent, flag) = flag_insertion(&set, 6, &guard);
    let State::Swing(swing) = flag.state() else { panic!("the flag of an insertion") };
    parent.edge(flag.stamp.side()).swing(swing.old, swing.new);
    assert!(handle.contains(6) && !handle.insert(6, 6));
    assert_eq!(set.unreclaimed(), Some(n_before), "nothing is retired while the flag stays");
    // The parent of 6 is the new fork; its grandparent is the flagged node.
    assert!(handle.remove(6) && !handle.contains(6) && handle.contains(5));
    drop((stalled, handle));
    check(set, &[5, 8], n_before + 2 + 3);
}

#[test]
fn a_late_swing_does_nothing_although_the_edge_leads_to_an_equal_leaf_again() {
    for keys in [&[][..], &[5]] {
        let set = set_of(keys);
        let (mut stalled, mut handle) = (set.handle(), set.handle());
        let guard = stalled.local.pin();
        let (parent, flag) = flag_insertion(&set, 6, &guard);
        set.help(parent, flag, &guard);
        assert!(handle.remove(6));
        let n_after = set.unreclaimed().expect("it counts");
        set.help(parent, flag, &guard);
        assert!(!handle.contains(6), "the helper brought a removed leaf back");
        drop((stalled, handle));
        check(set, keys, n_after);
    }
}

#[test]
fn a_removal_is_helped_from_each_of_its_stages() {
    // From the flag on the grandparent, from the mark on the parent, and after the swing.
    for stage in 0..3 {
        let set = set_of(&[5, 6, 8]);
        let n_before = set.unreclaimed().expect("it counts");
        let (mut stalled, mut handle) = (set.handle(), set.handle());
        let guard = stalled.local.pin();
        let (grandparent, flag) = flag_removal(&set, 6, &guard);
        let removal = removal(flag);
        if stage > 0 {
            let mark = flag.stamp.marked();
            assert!(removal.parent().update.exchange(removal.parent_stamp, mark, &guard).is_some());
        }
        assert!(handle.contains(6), "a removal takes effect at the swing");
        if stage > 1 {
            let kept = removal.parent().edge(1 - flag.stamp.side()).load(&guard).word;
            let side = grandparent.side(6);
            grandparent.edge(side).swing(removal.parent, kept);
            assert!(!handle.contains(6));
        }
        assert!(!handle.remove(6), "the stalled removal owns it");
        assert!(handle.insert(7, 7) && handle.insert(4, 4) && !handle.contains(6));
        let n_after = set.unreclaimed();
        assert!(set.mark(flag.stamp, removal, &guard), "the mark stays, so the removal has succeeded for all");
        splice(flag.stamp.marked(), removal, &guard);
        assert_eq!(set.unreclaimed(), n_after, "helpers that come late retire nothing");
        drop((stalled, handle));
        // Leaf, parent and record; and of each insertion a leaf and a record.
        check(set, &[5, 8, 7, 4], n_before + 3 + 4);
    }
}

#[test]
fn a_removal_whose_parent_has_changed_gives_up_for_all() {
    let set = set_of(&[5, 6, 8]);
    let n_before = set.unreclaimed().expect("it counts");
    let (mut stalled, mut handle) = (set.handle(), set.handle());
    let guard = stalled.local.pin();
    let (_, flag) = flag_removal(&set, 6, &guard);
    // 7 belongs to the edge that leads to 6.
    assert!(handle.insert(7, 7));
    assert_eq!(set.unreclaimed(), Some(n_before + 2));
    assert!(!set.mark(flag.stamp, removal(flag), &guard), "an insertion below came first");
    assert_eq!(set.unreclaimed(), Some(n_before + 3), "the record is retired, and no node");
    assert!(!set.mark(flag.stamp, removal(flag), &guard), "the decision stays");
    assert!(handle.contains(6) && handle.remove(6));
    drop((stalled, handle));
    check(set, &[5, 8, 7], n_before + 3 + 3);
}

#[test]
fn a_flagged_node_is_not_removed_before_its_operation_ends() {
    // The parent of 6 is flagged for an insertion beside it, so the removal of 6 helps that first.
    let set = set_of(&[5, 6, 8]);
    let (mut stalled, mut handle) = (set.handle(), set.handle());
    let guard = stalled.local.pin();
    let (parent, flag) = flag_insertion(&set, 7, &guard);
    assert!(handle.remove(6) && handle.contains(7));
    let n_after = set.unreclaimed().expect("it counts");
    set.help(parent, flag, &guard);
    drop((stalled, handle));
    check(set, &[5, 8, 7], n_after);
}

#[test]
fn the_only_leaf_is_removed_and_its_place_is_never_the_same() {
    let set = set_of(&[]);
    let mut handle = set.handle();
    let guard = handle.local.pin();
    let first = set.anchor.edge(0).load(&guard).word;
    assert!(handle.insert(6, 6) && handle.remove(6) && !handle.contains(6));
    let guard = handle.local.pin();
    assert!(set.anchor.edge(0).load(&guard).word != first);
    assert!(handle.insert(6, 6));
    drop(handle);
    check(set, &[6], 4);
}

#[test]
fn the_audit_sees_flags_and_marks() {
    let mut set = set_of(&[5, 6]);
    let mut stalled = set.handle();
    let guard = stalled.local.pin();
    let (_, flag) = flag_removal(&set, 6, &guard);
    let removal = removal(flag);
    assert!(removal.parent().update.exchange(removal.parent_stamp, flag.stamp.marked(), &guard).is_some());
    drop(stalled);
    let audit = set.audit();
    assert_eq!(audit.violations.len(), 2, "{audit:?}");
    assert!(audit.violations.iter().all(|words| words.starts_with("I7")), "{audit:?}");
}
