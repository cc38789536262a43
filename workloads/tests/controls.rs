//! Each control is caught by the checks that must catch it and by no other: every suite is run on every control, and what
//! it finds is compared with the table in `common/controls.rs`. Histories and valgrind have suites of their own.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

mod common;

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use common::{
    Random, Subject,
    controls::{EXPECTED, Expected, Suite},
};
use rare_workloads::{
    alloc::Dispatch,
    harness::{Measurements, pin::AllowedCpus},
    nodes::Nodes,
    protocol::{
        Accounting, AllocatorRequest, Distribution, FORMAT, Harness, Length, Mix, Reclamation, Request, ThreadReply,
    },
    structures::{
        self, CONTROLS,
        controls::{bad_padding, forest, interleaved, leak},
    },
};

#[global_allocator]
static ALLOCATOR: Dispatch = Dispatch;

/// Operations of each thread where all are counted.
const N_OPERATIONS: u64 = 40_000;

/// Runs a trial of updates on 1000 keys; one at a time, since some count what the process allocates.
fn trial(subject: &Subject, dose: &[(&str, u64)], n_threads: usize, length: Length) -> Measurements {
    static ONE_TRIAL: Mutex<()> = Mutex::new(());
    let _alone = ONE_TRIAL.lock().unwrap_or_else(PoisonError::into_inner);
    let allowed = AllowedCpus::of_this_thread().unwrap().numbers();
    let request = Request {
        format: FORMAT,
        structure: subject.info.name.to_owned(),
        structure_parameters: subject.parameters(dose),
        reclamation: subject.reclamation,
        allocator: AllocatorRequest { name: "system".to_owned(), preload: None },
        cpus: (0..n_threads).map(|thread_idx| allowed.get(thread_idx).copied()).collect(),
        key_range: 1_000,
        mix: Mix { insert: 5_000, remove: 5_000, contains: 0, range: 0 },
        distribution: Distribution::Uniform,
        prefill_keys: 500,
        length,
        seed: common::seed(),
        nice: 0,
        nodes: Nodes::PLAIN,
        harness: Harness::default(),
        watch: None,
        range_keys: None,
    };
    subject.driver.trial(&request).unwrap()
}

fn account(subject: &Subject, dose: &[(&str, u64)], n_threads: usize) -> Measurements {
    trial(subject, dose, n_threads, Length::Accounting { operations: N_OPERATIONS })
}

fn n_removed(measured: &Measurements) -> u64 {
    measured.threads.iter().map(|thread| thread.operations.remove.effective).sum()
}

fn accounting(measured: &Measurements) -> &Accounting {
    measured.accounting.as_ref().expect("it was an accounting trial")
}

/// Compares what a suite finds in each control with what it must find.
fn judge(suite: Suite, finds: impl Fn(&Expected) -> bool) {
    let mut wrong = Vec::new();
    for expected in EXPECTED {
        let caught = finds(expected);
        if caught != expected.must_be_caught_by(suite) {
            let how = if caught { "is caught by it" } else { "slips through" };
            wrong.push(format!("{} {how}, {:?}", expected.subject().name(), expected.dose));
        }
    }
    assert!(wrong.is_empty(), "{suite:?}:\n{}", wrong.join("\n"));
}

#[test]
fn every_control_is_expected_and_apart_from_the_catalogue() {
    let expected: Vec<&str> = EXPECTED.iter().map(|expected| expected.control.info.name).collect();
    let registered: Vec<&str> = CONTROLS.iter().map(|control| control.info.name).collect();
    assert_eq!(expected, registered);
    assert_eq!(registered.iter().collect::<BTreeSet<_>>().len(), registered.len(), "a name is used twice");
    for control in CONTROLS {
        let info = &control.info;
        assert!(info.name.starts_with("control-"), "{}", info.name);
        assert!(!info.deviations.is_empty(), "{} does not say what its fault is", info.name);
        assert!(std::ptr::eq(structures::find(info.name).unwrap(), *control));
        assert!(!structures::ALL.iter().any(|structure| structure.info.name == info.name), "{}", info.name);
    }
}

#[test]
fn the_model_catches_wrong_answers_of_one_thread() {
    judge(Suite::Model, |expected| {
        let set = expected.subject().make_with(expected.dose);
        let (mut handle, mut model) = (set.handle(), BTreeSet::new());
        let mut random = Random::of(1, 0);
        (0..N_OPERATIONS).any(|_| {
            let key = random.below(64);
            match random.below(3) {
                0 => handle.insert(key, key) != model.insert(key),
                1 => handle.remove(key) != model.remove(&key),
                _ => handle.contains(key) != model.contains(&key),
            }
        })
    });
}

/// Tells whether a trial breaks the conservation law.
fn loses_or_gains(measured: &Measurements) -> bool {
    let operations = || measured.threads.iter().map(|thread| thread.operations);
    let inserted: u64 = operations().map(|operations| operations.insert.effective).sum();
    let removed: u64 = operations().map(|operations| operations.remove.effective).sum();
    let sum = measured.threads.iter().fold(measured.audit_before.key_sum, |sum, thread| {
        sum.wrapping_add(thread.inserted_sum).wrapping_sub(thread.removed_sum)
    });
    let size = measured.audit_before.size.wrapping_add(inserted).wrapping_sub(removed);
    assert_eq!(measured.audit_after.violations, Vec::<String>::new(), "the structure underneath is sound");
    (size, sum) != (measured.audit_after.size, measured.audit_after.key_sum)
}

#[test]
fn the_checksum_catches_lost_doubled_and_made_up_keys() {
    judge(Suite::Checksum, |expected| loses_or_gains(&account(&expected.subject(), expected.dose, 2)));
}

/// As users get them: two seconds of updates are enough for one fault in a million.
#[test]
fn the_checksum_catches_default_doses_in_a_trial_of_millions() {
    for expected in EXPECTED.iter().filter(|expected| expected.must_be_caught_by(Suite::Checksum)) {
        let subject = expected.subject();
        let measured = trial(&subject, &[], 2, Length::Accounting { operations: 6_000_000 });
        assert!(loses_or_gains(&measured), "{}", subject.name());
    }
}

#[test]
fn accounting_catches_what_is_left_after_the_drop() {
    judge(Suite::Accounting, |expected| {
        let left = accounting(&account(&expected.subject(), expected.dose, 2)).after_drop;
        left.blocks != 0 || left.bytes != 0
    });
}

#[test]
fn accounting_tells_leaks_to_the_byte() {
    let leaking = Subject::of(&leak::CONTROL).last().unwrap();
    for one_in in [1, 7, 1_000] {
        let measured = account(&leaking, &[("one_in", one_in)], 2);
        let left = accounting(&measured).after_drop;
        let n_leaks: u64 = measured.threads.iter().map(|thread| thread.operations.remove.effective / one_in).sum();
        assert!(n_leaks > 10);
        assert_eq!((left.blocks, left.bytes), (n_leaks as i64, n_leaks as i64 * leak::LEAK_BYTES as i64));
    }
}

#[test]
fn accounting_tells_what_is_never_freed_to_the_object() {
    let expected = EXPECTED.iter().find(|expected| expected.must_be_caught_by(Suite::Reclamation)).unwrap();
    let measured = account(&expected.subject(), &[], 2);
    let unreclaimed = measured.memory.unreclaimed_objects.unwrap();
    assert_eq!(accounting(&measured).after_drop.blocks, unreclaimed as i64);
    // Each removal unlinks a leaf and an inner node.
    assert_eq!(unreclaimed, 2 * n_removed(&measured));
}

#[test]
fn unreclaimed_objects_catch_what_is_never_freed() {
    // One thread: with more, one that is preempted within an operation may hold everything back.
    judge(Suite::Reclamation, |expected| {
        let measured = account(&expected.subject(), expected.dose, 1);
        measured.memory.unreclaimed_objects.unwrap() > n_removed(&measured)
    });
}

#[test]
fn allocated_bytes_catch_a_bad_layout() {
    let bytes_per_insert = |subject: &Subject, dose: &[(&str, u64)]| {
        let measured = account(subject, dose, 1);
        accounting(&measured).allocated_bytes as f64 / measured.threads[0].operations.insert.effective as f64
    };
    judge(Suite::Layout, |expected| {
        let (control, base) =
            (bytes_per_insert(&expected.subject(), expected.dose), bytes_per_insert(&expected.base(), &[]));
        control > 1.5 * base
    });
}

#[test]
fn layouts_are_as_bad_as_they_say() {
    let of =
        |structure| account(&Subject::of(structure).find(|it| it.reclamation == Reclamation::Epoch).unwrap(), &[], 1);
    let padded = of(&bad_padding::CONTROL);
    let (inserts, memory) = (padded.threads[0].operations.insert, accounting(&padded));
    assert_eq!(memory.allocated_bytes, inserts.effective * bad_padding::NODE_BYTES as u64);
    let packed = of(&forest::SOUND);
    let more = memory.prefilled.bytes - accounting(&packed).prefilled.bytes;
    assert_eq!(more, 500 * (bad_padding::NODE_BYTES - leak::LEAK_BYTES) as i64, "of 500 keys");
    let (mixed, sound) = (of(&interleaved::CONTROL), of(&structures::bcco10::STRUCTURE));
    let inserts = mixed.threads[0].operations.insert;
    assert_eq!(inserts, sound.threads[0].operations.insert, "one thread, one seed: the same operations");
    let more = accounting(&mixed).allocated_bytes - accounting(&sound).allocated_bytes;
    assert_eq!(more, inserts.attempted * interleaved::DESCRIPTOR_BYTES as u64);
}

#[test]
fn shares_of_operations_catch_what_is_unfair() {
    // Per CPU time, so that other work on this machine is not taken for unfairness of the structure.
    let rate =
        |thread: &ThreadReply| thread.operations.attempted() as f64 / (thread.user_ns + thread.system_ns).max(1) as f64;
    judge(Suite::Fairness, |expected| {
        let measured = trial(&expected.subject(), expected.dose, 2, Length::Nanos(200_000_000));
        let rates: Vec<f64> = measured.threads.iter().map(rate).collect();
        println!("{}: {rates:?}", expected.control.info.name);
        rates[0].min(rates[1]) < 0.2 * rates[0].max(rates[1])
    });
}
