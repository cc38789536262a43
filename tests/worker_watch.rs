//! The real `rare-worker` under what watches it: valgrind, the counters of the kernel, the listing of blocks, perf.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

mod skip;
mod worker_support;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    process::Command,
    sync::PoisonError,
};

use rare_workloads::protocol::{ALLOCATOR_VARIABLE, Count, Length, Mix, Request, ThreadReply, Watch};
use worker_support::{ONE_TRIAL, WORKER, request, run, run_command};

const CONTAINS: Mix = Mix { insert: 0, remove: 0, contains: 10_000, range: 0 };

/// Instructions that callgrind counts in the windows of a trial, and its whole output.
fn callgrind(request: &Request) -> (u64, String) {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("callgrind.out");
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--tool=callgrind", "--collect-atstart=no", "--fair-sched=yes"]);
    command.arg(format!("--callgrind-out-file={}", output.display())).arg(WORKER);
    run_command(command, &serde_json::to_vec(request).unwrap(), &[(ALLOCATOR_VARIABLE, "system")]).reply();
    let text = fs::read_to_string(&output).unwrap();
    let total = text.lines().find_map(|line| line.strip_prefix("totals: ")).expect("it tells its totals");
    (total.trim().parse().unwrap(), text)
}

fn watched_by_valgrind(structure: &str, n_threads: usize, operations: u64) -> Request {
    let length = Length::Operations { operations };
    let cpus = vec![None; n_threads];
    let watch = Some(Watch::Valgrind);
    // One key alone: in a tree of many, the depth of what is drawn would move the mean of a thousand operations.
    let one_key = Request { key_range: 1, prefill_keys: 1, mix: CONTAINS, ..request("system") };
    Request { structure: structure.to_owned(), cpus, length, watch, ..one_key }
}

/// The window alone is counted, of each thread: twice the operations or twice the threads are twice the instructions.
#[test]
fn callgrind_counts_the_windows_only() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return skip::skip("valgrind is not installed, so callgrind is not run");
    }
    // Enough that what the first operation does once, such as 4,000 instructions of a collection of garbage, is little.
    for (structure, least, most) in [("noop", 20.0, 100.0), ("nm14", 50.0, 200.0)] {
        let per_operation = |n_threads: usize, operations: u64| {
            let (instructions, text) = callgrind(&watched_by_valgrind(structure, n_threads, operations));
            assert!(text.contains("window::run"), "{text}");
            for outside in ["::audit", "::fill", "::conduct", "::answer"] {
                assert!(!text.contains(outside), "{structure}: {outside} is counted");
            }
            instructions as f64 / (operations * n_threads as u64) as f64
        };
        let single = per_operation(1, 10_000);
        assert!((least..most).contains(&single), "{structure}: {single} instructions per operation");
        for (n_threads, operations) in [(1, 20_000), (2, 10_000), (3, 20_000)] {
            let other = per_operation(n_threads, operations);
            let difference = (other / single - 1.0).abs();
            // Threads of a structure that reclaims meet when they collect garbage.
            let limit = if n_threads == 1 || structure == "noop" { 0.01 } else { 0.05 };
            assert!(difference < limit, "{structure}: {single}, {n_threads} threads of {operations}: {other}");
        }
    }
}

/// Memcheck does not know the requests of callgrind, and says nothing of them.
#[test]
fn memcheck_ignores_what_callgrind_is_asked() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return skip::skip("valgrind is not installed, so memcheck is not run");
    }
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--fair-sched=yes", "--leak-check=full", "--error-exitcode=99"]);
    command.arg(concat!("--suppressions=", env!("CARGO_MANIFEST_DIR"), "/workloads/valgrind.supp")).arg(WORKER);
    let request = watched_by_valgrind("nm14", 2, 1_000);
    let ended = run_command(command, &serde_json::to_vec(&request).unwrap(), &[(ALLOCATOR_VARIABLE, "system")]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    ended.reply();
}

#[test]
fn valgrind_that_is_not_there_is_missed() {
    let refusal = run(&watched_by_valgrind("noop", 1, 1_000)).refusal();
    assert!(refusal.contains("does not run under valgrind"), "{refusal}");
}

/// The kernel's own events are counted of each window, and agree with what each thread saw.
#[test]
fn counters_count_the_windows_only() {
    let asked = Request { watch: Some(Watch::Counters), ..request("system") };
    let reply = run(&asked).reply();
    let counters = reply.counters.clone().unwrap();
    let counted = |name: &str| match counters.iter().find(|counter| counter.event == name).map(|counter| &counter.count)
    {
        Some(Count::Counted(count)) => *count,
        other => panic!("{name}: {other:?}"),
    };
    let sum = |of: fn(&ThreadReply) -> u64| reply.threads.iter().map(of).sum::<u64>();
    // The stamps of the threads lie a little outside of what is counted.
    let switches = sum(|thread| thread.voluntary_switches + thread.involuntary_switches);
    assert!(
        (switches.saturating_sub(4)..=switches + 4).contains(&counted("context-switches")),
        "{counters:?} {reply:?}"
    );
    let busy_ns = sum(|thread| thread.user_ns + thread.system_ns);
    let clock_ns = counted("task-clock");
    assert!(clock_ns > busy_ns / 2 && clock_ns < busy_ns + 20_000_000, "{clock_ns} {busy_ns}");
    let faults = sum(|thread| thread.minor_faults + thread.major_faults);
    assert!(counted("page-faults") <= faults + 4, "{counters:?} {faults}");
    assert!(run(&request("system")).reply().counters.is_none());
}

/// Whoever may not count the kernel's part is told so, or gets the rest under a name that says so.
#[test]
fn counters_that_are_forbidden_name_the_setting() {
    const SETTING: &str = "/proc/sys/kernel/perf_event_paranoid";
    let level: i32 = fs::read_to_string(SETTING).map_or(0, |level| level.trim().parse().unwrap());
    // SAFETY: takes nothing and changes nothing.
    if level < 2 || unsafe { libc::geteuid() } != 0 {
        return skip::skip("nobody is forbidden to count the kernel's part here");
    }
    // Nobody in particular must be able to execute it.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let worker = folder.path().join("rare-worker");
    {
        // While another thread starts a process, that one holds the copy open for writing, and nobody can execute it.
        let _alone = ONE_TRIAL.lock().unwrap_or_else(PoisonError::into_inner);
        fs::copy(WORKER, &worker).unwrap();
    }
    let mut command = Command::new(&worker);
    command.uid(65_534);
    let asked = Request { watch: Some(Watch::Counters), ..request("system") };
    let reply = run_command(command, &serde_json::to_vec(&asked).unwrap(), &[(ALLOCATOR_VARIABLE, "system")]).reply();
    let counters: BTreeMap<_, _> =
        reply.counters.unwrap().into_iter().map(|counter| (counter.event, counter.count)).collect();
    let busy_ns: u64 = reply.threads.iter().map(|thread| thread.user_ns + thread.system_ns).sum();
    if level == 2 {
        assert!(matches!(counters["task-clock"], Count::Counted(clock_ns) if clock_ns > busy_ns / 2), "{counters:?}");
        assert!(matches!(counters["page-faults:u"], Count::Counted(_)), "{counters:?}");
    } else {
        assert!(counters.values().all(|count| !matches!(count, Count::Counted(_))), "{counters:?}");
    }
    for event in ["context-switches", "cpu-migrations"] {
        let Count::Denied(reason) = &counters[event] else { panic!("{event}: {counters:?}") };
        assert!(reason.contains(&format!("{SETTING} is {level}")), "{reason}");
    }
}
