//! The checker of histories against a brute-force one, against stateright's, against histories made by hand, and in speed.

mod common;
mod history;

use std::{collections::BTreeSet, time::Instant};

use common::{Random, seed};
use history::{
    Kind::{self, Contains, Insert, Remove},
    Operation,
    linearize::check,
};
use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};

/// Searches for an order of all operations, on all keys at once, that agrees with every answer and with real time.
/// Shares nothing with the checker: neither splits by key nor looks ahead.
fn has_an_order(operations: &[Operation], set: &mut BTreeSet<u64>) -> bool {
    let precedes_nothing_left =
        |operation: &Operation| operations.iter().all(|other| other.responded >= operation.invoked);
    if operations.is_empty() {
        return true;
    }
    for idx in 0..operations.len() {
        let operation = operations[idx];
        let before = set.clone();
        let answer = match operation.kind {
            Insert => set.insert(operation.key),
            Remove => set.remove(&operation.key),
            Contains => set.contains(&operation.key),
        };
        if answer == operation.answer && precedes_nothing_left(&operation) {
            let mut rest = operations.to_vec();
            rest.remove(idx);
            if has_an_order(&rest, set) {
                return true;
            }
        }
        *set = before;
    }
    false
}

/// Makes a linearizable history: sequential operations, each stretched around its instant. Threads are of no account
/// to the checker, so an operation may overlap any other.
fn linearizable_history(random: &mut Random, n_operations: u64, n_keys: u64, max_stretch: u64) -> Vec<Operation> {
    let mut set = BTreeSet::new();
    let mut operations = Vec::new();
    for idx in 0..n_operations {
        let (kind, key) = ([Insert, Remove, Contains][random.below(3) as usize], random.below(n_keys));
        let answer = match kind {
            Insert => set.insert(key),
            Remove => set.remove(&key),
            Contains => set.contains(&key),
        };
        // Few stamps, so that equal ones are common.
        let instant = 2 * idx + max_stretch;
        let (invoked, responded) = (instant - random.below(max_stretch + 1), instant + random.below(max_stretch + 1));
        operations.push(Operation { thread: 0, kind, key, answer, invoked, responded });
    }
    operations
}

#[test]
fn agrees_with_brute_force() {
    const N_HISTORIES: u64 = 30_000;
    agrees_with(|operations| has_an_order(operations, &mut BTreeSet::new()), N_HISTORIES);
}

#[test]
fn agrees_with_stateright() {
    agrees_with(is_consistent, 5_000);
}

/// A set as stateright's tester knows it.
#[derive(Clone, Default)]
struct Reference(BTreeSet<u64>);

impl SequentialSpec for Reference {
    type Op = (Kind, u64);
    type Ret = bool;

    fn invoke(&mut self, &(kind, key): &(Kind, u64)) -> bool {
        match kind {
            Insert => self.0.insert(key),
            Remove => self.0.remove(&key),
            Contains => self.0.contains(&key),
        }
    }
}

/// Judges by stateright's tester. It takes events in their order; those of one stamp overlap, so invocations come first.
fn is_consistent(operations: &[Operation]) -> bool {
    let invocations = operations.iter().enumerate().map(|(idx, operation)| (operation.invoked, false, idx));
    let returns = operations.iter().enumerate().map(|(idx, operation)| (operation.responded, true, idx));
    let mut events: Vec<_> = invocations.chain(returns).collect();
    events.sort_unstable();
    let mut tester = LinearizabilityTester::new(Reference::default());
    for (_, is_return, idx) in events {
        let Operation { kind, key, answer, .. } = operations[idx];
        // Each operation on a thread of its own, since any two may overlap.
        let taken = if is_return { tester.on_return(idx, answer) } else { tester.on_invoke(idx, (kind, key)) };
        taken.expect("each operation is invoked once, and returns once after that");
    }
    tester.is_consistent()
}

/// Compares the checker with another judge over small histories, of which some have wrong answers.
fn agrees_with(judge: impl Fn(&[Operation]) -> bool, n_histories: u64) {
    let mut random = Random::of(20, 0);
    let (mut n_linearizable, mut n_not) = (0, 0);
    for history_idx in 0..n_histories {
        let (n_operations, n_keys) = (2 + random.below(7), 1 + random.below(3));
        let max_stretch = 1 + random.below(8);
        let mut operations = linearizable_history(&mut random, n_operations, n_keys, max_stretch);
        let n_wrong = history_idx % 3;
        for _ in 0..n_wrong {
            let culprit = random.below(n_operations) as usize;
            operations[culprit].answer ^= true;
        }
        let due = judge(&operations);
        assert!(due || n_wrong > 0, "the judge accuses a linearizable history: {operations:#?}");
        let verdict = check(&operations);
        assert_eq!(verdict.is_ok(), due, "seed {}: {verdict:?} of {operations:#?}", seed());
        *(if due { &mut n_linearizable } else { &mut n_not }) += 1;
    }
    // Else the histories would be too easy in one direction.
    assert!(n_linearizable > n_histories / 3 && n_not > n_histories / 10, "{n_linearizable} against {n_not}");
    println!("{n_linearizable} linearizable histories, {n_not} others");
}

/// An operation as kind, answer, and stamps.
type Row = (Kind, bool, u64, u64);

/// Judges operations on one key.
fn is_linearizable(rows: &[Row]) -> bool {
    let operation =
        |&(kind, answer, invoked, responded): &Row| Operation { thread: 0, kind, key: 7, answer, invoked, responded };
    check(&rows.iter().map(operation).collect::<Vec<_>>()).is_ok()
}

#[test]
fn judges_histories_made_by_hand() {
    // Known by their stamps alone: (history, whether it is linearizable).
    let cases: &[(&[Row], bool)] = &[
        (&[], true),
        (&[(Contains, false, 0, 1)], true),
        (&[(Contains, true, 0, 1)], false),
        (&[(Remove, true, 0, 1)], false),
        (&[(Insert, false, 0, 1)], false),
        // Two removes of one insert, overlapping or not.
        (&[(Insert, true, 0, 1), (Remove, true, 2, 5), (Remove, true, 3, 6)], false),
        (&[(Insert, true, 0, 1), (Remove, true, 2, 5), (Remove, false, 3, 6)], true),
        (&[(Insert, true, 0, 4), (Insert, true, 0, 4)], false),
        // A lost insert.
        (&[(Insert, true, 0, 1), (Contains, false, 2, 3)], false),
        (&[(Insert, true, 0, 1), (Insert, true, 2, 3)], false),
        // Equal stamps overlap, neighbouring ones do not.
        (&[(Insert, true, 0, 5), (Contains, false, 5, 6)], true),
        (&[(Insert, true, 0, 5), (Contains, false, 6, 6)], false),
        (&[(Insert, true, 5, 5), (Remove, true, 5, 5), (Contains, true, 5, 5), (Contains, false, 5, 5)], true),
        // One look-up has seen the insert, a later one has not.
        (&[(Insert, true, 0, 9), (Contains, true, 1, 2), (Contains, false, 3, 4)], false),
        (&[(Insert, true, 0, 9), (Contains, false, 1, 2), (Contains, true, 3, 4)], true),
        // A stale look-up, and one that was invoked in time.
        (&[(Insert, true, 0, 1), (Remove, true, 2, 3), (Contains, true, 4, 5)], false),
        (&[(Insert, true, 0, 1), (Remove, true, 2, 3), (Contains, true, 3, 5)], true),
        // The insert that responds first must go first, or the second remove finds no place.
        (&[(Insert, true, 0, 9), (Insert, true, 0, 3), (Remove, true, 1, 2), (Remove, true, 4, 9)], true),
        (&[(Insert, true, 0, 9), (Insert, true, 0, 3), (Remove, true, 1, 2), (Contains, false, 10, 11)], false),
    ];
    for (operations, due) in cases {
        assert_eq!(is_linearizable(operations), *due, "{operations:?}");
    }
}

#[test]
fn tells_what_it_accuses() {
    let of = |thread, kind, answer, invoked, responded| Operation { thread, kind, key: 7, answer, invoked, responded };
    let operations = [of(0, Insert, true, 0, 1), of(1, Remove, true, 2, 5), of(2, Remove, true, 3, 6)];
    let words = check(&operations).expect_err("the key was removed twice").to_string();
    assert_eq!(
        words,
        "not linearizable: [3, 6] thread 2: Remove(7) = true\n\
         although the key can only be absent then; operations on the key before that:\n  \
         [0, 1] thread 0: Insert(7) = true\n  \
         [2, 5] thread 1: Remove(7) = true\n"
    );
}

#[test]
fn accepts_operations_that_last_for_the_whole_history() {
    // Threads that are preempted within an operation while others go on: the reason why there is no window.
    let mut random = Random::of(21, 0);
    let mut operations = linearizable_history(&mut random, 200_000, 2, 3);
    let end = operations.iter().map(|operation| operation.responded).max().unwrap();
    let n_ordinary = operations.len();
    for key in 0..2 {
        for (kind, answer) in [(Insert, false), (Remove, false), (Contains, true), (Contains, false)] {
            operations.push(Operation { thread: 1, kind, key, answer, invoked: 0, responded: end + 1 });
        }
    }
    assert!(check(&operations).is_ok());
    // An insert and a remove that took effect at the very end, in that order: the key is absent before and after.
    let ordinary_keys = &operations[..n_ordinary];
    let is_present = |key| {
        let last = ordinary_keys.iter().rev().find(|operation| operation.key == key).unwrap();
        last.needs_present() != last.is_effective()
    };
    let key = (0..2).find(|&key| !is_present(key)).unwrap_or(2);
    for (kind, responded) in [(Insert, end + 2), (Remove, end + 3)] {
        operations.push(Operation { thread: 2, kind, key, answer: true, invoked: 0, responded });
    }
    assert!(check(&operations).is_ok());
    operations.push(Operation { thread: 2, kind: Contains, key, answer: true, invoked: end + 4, responded: end + 5 });
    assert!(check(&operations).is_err());
}

#[test]
fn judges_a_million_operations_at_once() {
    const N_OPERATIONS: u64 = 1_000_000;
    let mut random = Random::of(22, 0);
    // Each operation overlaps about 20 others on one of four keys.
    let mut operations = linearizable_history(&mut random, N_OPERATIONS, 4, 20);
    let start = Instant::now();
    assert!(check(&operations).is_ok());
    println!("a million operations: {:?}", start.elapsed());
    // One wrong answer among them, of an operation that overlaps none.
    let last = operations.iter().map(|operation| operation.responded).max().unwrap();
    let lie = |kind, answer| Operation { thread: 1, kind, key: 9, answer, invoked: last + 1, responded: last + 2 };
    operations.insert(500_000, lie(Contains, true));
    assert!(check(&operations).is_err());
    operations[500_000] = lie(Contains, false);
    assert!(check(&operations).is_ok());
}
