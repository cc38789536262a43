//! Estimates err a little on the side of too much.

use rare::{
    plan::Plan,
    record::{Interference, Outcome, Trial},
    spec::value::{Parameter, Value},
    units::{Bytes, Nanos},
};
use rare_workloads::nodes::Nodes;
use rare_workloads::protocol::{
    AllocatorProof, AllocatorRequest, Audit, Distribution, FORMAT, Length, Memory, Mix, Operations, Phases, Prefill,
    Reclamation, Reply, Request, Sample, Tally, ThreadReply,
};

use crate::specs;

/// A record with numbers as long as real ones.
fn record(n_threads: usize, n_samples: usize) -> Trial {
    let tally = Tally { attempted: 12_345_678, effective: 6_123_456 };
    let audit = Audit { size: 50_123, key_sum: 2_504_123_456, violations: Vec::new() };
    let thread = ThreadReply {
        cpu_asked: Some(12),
        cpus_allowed: vec![12],
        cpu_at_start: 12,
        cpu_at_end: 12,
        start_ns: 12_345,
        stop_ns: 3_000_123_456,
        operations: Operations { insert: tally, remove: tally, contains: tally, ..Operations::default() },
        inserted_sum: 123_456_789_012_345,
        removed_sum: 123_456_789_012_345,
        user_ns: 2_990_123_456,
        system_ns: 1_234_567,
        voluntary_switches: 12,
        involuntary_switches: 123,
        migrations: Ok(0),
        minor_faults: 1_234,
        major_faults: 0,
    };
    let reply = Reply {
        format: FORMAT,
        request_sha256: "0".repeat(64),
        allocator: AllocatorProof {
            name: "jemalloc".to_owned(),
            version: "5.3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c".to_owned(),
            preload: None,
            evidence: "mallctl version; address of a fresh block lies in a jemalloc arena".to_owned(),
        },
        nice: 0,
        prefill: Prefill {
            target: 50_000,
            per_thread: vec![12_345; n_threads],
            key_sum: 2_504_123_456,
            wall_ns: 12_345_678,
        },
        threads: vec![thread; n_threads],
        samples: vec![Sample { at_ns: 1_200_012_345, operations: 123_456_789 }; n_samples],
        audit_before: audit.clone(),
        audit_after: audit,
        memory: Memory {
            harness_bytes: 4_123_456,
            prefilled_bytes: 8_123_456,
            end_bytes: 9_123_456,
            peak_bytes: 9_123_456,
            huge_page_bytes: Ok(2_097_152),
            unreclaimed_objects: Some(1_234),
        },
        accounting: None,
        layout: None,
        counters: None,
        phases: Phases { start_ns: 1_234_567, audit_ns: 1_234_567, drop_ns: 0 },
    };
    let request = Request {
        format: FORMAT,
        structure: "crossbeam-skiplist".to_owned(),
        structure_parameters: Default::default(),
        reclamation: Reclamation::Epoch,
        allocator: AllocatorRequest { name: "jemalloc".to_owned(), preload: None },
        cpus: vec![Some(12); n_threads],
        key_range: 100_000,
        mix: Mix { insert: 5_000, remove: 5_000, contains: 0, range: 0 },
        range_keys: None,
        distribution: Distribution::Uniform,
        prefill_keys: 50_000,
        length: Length::Nanos(3_000_000_000),
        seed: u64::MAX,
        nice: 0,
        nodes: Nodes::PLAIN,
        harness: rare_workloads::protocol::Harness::default(),
        watch: None,
    };
    Trial {
        trial: "measure-12-3".parse().unwrap(),
        position: 123,
        attempt: 0,
        started: "2026-01-01T00:00:00.000Z".to_owned(),
        wall: Nanos(3_012_345_678),
        request,
        outcome: Outcome::Replied(Box::new(reply)),
        interference: Interference {
            other_cpu_ns: Some(123_456_789),
            steal_ns: Some(0),
            swapped_pages: Some(0),
            throttled: Some(0),
            ..Interference::default()
        },
        watched: None,
    }
}

#[test]
fn disk_is_at_most_twice_that_of_real_records() {
    for (threads, seconds) in [(1, 1), (4, 3), (64, 10), (192, 1), (1, 60)] {
        let spec = specs::with_axes([
            (Parameter::Threads, vec![specs::threads(threads)]),
            (Parameter::TrialLength, vec![Value::Duration(Nanos(seconds * 1_000_000_000))]),
        ]);
        let Bytes(estimated) = Plan::compile(&spec, rare::verdict::probes).unwrap().estimate(1).disk;
        let real = serde_json::to_vec(&record(threads as usize, seconds as usize * 10 + 1)).unwrap().len() as u64;
        assert!(
            (real..=2 * real).contains(&estimated),
            "{threads} threads, {seconds} s: estimated {estimated} bytes, a record has {real}"
        );
    }
}

#[test]
fn time_is_windows_and_overhead_and_prefill() {
    let mut spec = specs::base();
    spec.n_trials = 10;
    let Nanos(wall) = Plan::compile(&spec, rare::verdict::probes).unwrap().estimate(1).wall;
    // 10 trials of 3 s, 10 ms each around them, 50,000 keys of 500 ns.
    assert_eq!(wall, 10 * (3_000_000_000 + 10_000_000 + 50_000 * 500));
}

#[test]
fn skewed_keys_of_a_large_range_are_drawn_beforehand() {
    let estimate = |distribution, key_range| {
        let spec = specs::with_axes([
            (Parameter::Distribution, vec![Value::Distribution(distribution)]),
            (Parameter::KeyRange, vec![Value::Count(key_range)]),
        ]);
        Plan::compile(&spec, rare::verdict::probes).unwrap().estimate(1)
    };
    let (uniform, skewed) = (Distribution::Uniform, Distribution::Zipf(990_000));
    assert_eq!(estimate(uniform, 100_000), estimate(skewed, 100_000));
    assert!(estimate(skewed, 100_001).memory.0 >= estimate(uniform, 100_001).memory.0 + (8 << 20));
    assert!(estimate(skewed, 100_001).wall > estimate(uniform, 100_001).wall);
}

#[test]
fn all_threads_are_those_of_the_machine() {
    let spec = specs::with_axes([(Parameter::Threads, vec![Value::Threads(rare::spec::value::Threads::All)])]);
    let plan = Plan::compile(&spec, rare::verdict::probes).unwrap();
    assert!(plan.estimate(64).memory > plan.estimate(1).memory);
    assert!(plan.estimate(64).disk > plan.estimate(1).disk);
    assert!(plan.estimate(64).wall < plan.estimate(1).wall, "more threads fill faster");
}

#[test]
fn leaking_takes_memory_by_the_second() {
    let memory = |reclamation, seconds: u64| {
        let spec = specs::with_axes([
            (Parameter::Reclamation, vec![Value::Reclamation(reclamation)]),
            (Parameter::TrialLength, vec![Value::Duration(Nanos(seconds * 1_000_000_000))]),
        ]);
        Plan::compile(&spec, rare::verdict::probes).unwrap().estimate(1).memory
    };
    assert_eq!(memory(Reclamation::Epoch, 1), memory(Reclamation::Epoch, 10));
    let leaked_in_a_second = memory(Reclamation::None, 2).0 - memory(Reclamation::None, 1).0;
    assert!((100 << 20..2 << 30).contains(&leaked_in_a_second), "{leaked_in_a_second} bytes a second");
}

#[test]
fn absurd_plans_do_not_overflow() {
    let spec = specs::with_axes([
        (Parameter::KeyRange, vec![Value::Count(u64::MAX)]),
        (Parameter::TrialLength, vec![Value::Duration(Nanos(u64::MAX))]),
        (Parameter::Threads, vec![specs::threads(u32::MAX)]),
        (Parameter::Reclamation, vec![Value::Reclamation(Reclamation::None)]),
    ]);
    let estimate = Plan::compile(&spec, rare::verdict::probes).unwrap().estimate(u32::MAX);
    assert_eq!(estimate.wall, Nanos(u64::MAX));
}
