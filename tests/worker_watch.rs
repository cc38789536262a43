//! The real `rare-worker` under what watches it: valgrind, the counters of the kernel, the listing of blocks, perf.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

mod skip;
mod worker_support;

use std::{
    collections::BTreeMap,
    ffi::CString,
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::Command,
    sync::PoisonError,
};

use rare_workloads::{
    nodes::{Nodes, Pool},
    protocol::{
        ALLOCATOR_VARIABLE, AllocationPhase, Block, Count, Counter, Length, Mix, Preload, Reply, Request, ThreadLayout,
        ThreadReply, Watch, frame,
    },
};
use worker_support::{ONE_TRIAL, WORKER, request, run, run_command, run_with};

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

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
    command.arg(concat!("--suppressions=", env!("CARGO_MANIFEST_DIR"), "/src/tools/valgrind.supp")).arg(WORKER);
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
    // `None` where this user may not count it.
    let counted = |name: &str| {
        let is_it = |counter: &&Counter| counter.event.trim_end_matches(":u") == name;
        match counters.iter().find(is_it).map(|counter| &counter.count) {
            Some(Count::Counted(count)) => Some(*count),
            Some(Count::Denied(reason)) if reason.contains(PARANOID) => None,
            other => panic!("{name}: {other:?}"),
        }
    };
    let sum = |of: fn(&ThreadReply) -> u64| reply.threads.iter().map(of).sum::<u64>();
    // The stamps of the threads lie a little outside of what is counted.
    let switches = sum(|thread| thread.voluntary_switches + thread.involuntary_switches);
    if let Some(count) = counted("context-switches") {
        assert!((switches.saturating_sub(4)..=switches + 4).contains(&count), "{count} {switches}");
    }
    let busy_ns = sum(|thread| thread.user_ns + thread.system_ns);
    if let Some(clock_ns) = counted("task-clock") {
        assert!(clock_ns > busy_ns / 2 && clock_ns < busy_ns + 20_000_000, "{clock_ns} {busy_ns}");
    }
    let faults = sum(|thread| thread.minor_faults + thread.major_faults);
    assert!(counted("page-faults").is_none_or(|count| count <= faults + 4), "{counters:?} {faults}");
    assert!(run(&request("system")).reply().counters.is_none());
}

/// Whoever may not count the kernel's part is told so, or gets the rest under a name that says so.
#[test]
fn counters_that_are_forbidden_name_the_setting() {
    let level: i32 = fs::read_to_string(PARANOID).map_or(0, |level| level.trim().parse().unwrap());
    if level < 2 {
        // Nobody is forbidden anything here.
        return;
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
    // SAFETY: takes nothing and changes nothing.
    if unsafe { libc::geteuid() } == 0 {
        command.uid(65_534);
    }
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
        assert!(reason.contains(&format!("{PARANOID} is {level}")), "{reason}");
    }
}

/// One thread that lists the first blocks of both its phases.
fn listed(allocations: u32, allocator: &str) -> Request {
    Request {
        structure: "nm14".to_owned(),
        cpus: vec![None],
        mix: Mix { insert: 5_000, remove: 5_000, contains: 0, range: 0 },
        length: Length::Operations { operations: 2_000 },
        watch: Some(Watch::Layout { allocations }),
        ..request(allocator)
    }
}

fn blocks(reply: &Reply, phase: AllocationPhase) -> Vec<&Block> {
    let threads = reply.layout.as_ref().expect("it was asked for");
    threads.iter().flat_map(|thread| &thread.blocks).filter(|block| block.phase == phase).collect()
}

/// Whichever allocator serves: the first blocks of each thread and phase, where they are and how large.
#[test]
fn the_first_blocks_are_listed_of_each_allocator() {
    let check = |reply: &Reply, n_threads: usize| {
        assert_eq!(reply.layout.as_ref().unwrap().len(), n_threads);
        for phase in [AllocationPhase::Prefill, AllocationPhase::Window] {
            let blocks = blocks(reply, phase);
            assert_eq!(blocks.len(), n_threads * 40, "{:?}", reply.allocator);
            for block in &blocks {
                assert!(block.size > 0 && block.address.is_multiple_of(block.align), "{block:?}");
                assert!(block.usable.expect("each of them tells") >= block.size, "{block:?} {:?}", reply.allocator);
                assert!(block.kind.as_ref().is_none_or(|kind| !kind.contains("::") && !kind.is_empty()), "{block:?}");
            }
            let n_nodes = blocks.iter().filter(|block| block.kind.is_some()).count();
            assert!(n_nodes > n_threads * 30, "{blocks:?}");
        }
        // One thread alone frees nothing while it fills the structure, so no two blocks share a byte; of several, one that
        // loses a race frees the node that it could not insert.
        let mut prefilled = blocks(reply, AllocationPhase::Prefill);
        prefilled.sort_by_key(|block| block.address);
        let are_apart = |pair: &[&Block]| pair[0].address + pair[0].usable.unwrap() <= pair[1].address;
        assert!(n_threads > 1 || prefilled.windows(2).all(are_apart), "{prefilled:?}");
    };
    for allocator in ["system", "jemalloc", "mimalloc", "snmalloc"] {
        for n_threads in [1, 2] {
            check(&run(&Request { cpus: vec![None; n_threads], ..listed(40, allocator) }).reply(), n_threads);
        }
    }
    let preload = Path::new("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2");
    if !preload.exists() {
        return skip::skip("libjemalloc.so.2 is not installed, so no preload is listed");
    }
    let path = fs::canonicalize(preload).unwrap().to_string_lossy().into_owned();
    let sha256 = frame::sha256_hex(&fs::read(preload).unwrap());
    let mut asked = Request { cpus: vec![None, None], ..listed(40, "system") };
    asked.allocator.preload = Some(Preload { path: path.clone(), sha256 });
    check(&run_with(&asked, &[(ALLOCATOR_VARIABLE, "system"), ("LD_PRELOAD", &path)]).reply(), 2);
}

/// A node that is padded is listed as padded, and one that a pool hands out again is no new block.
#[test]
fn blocks_are_listed_as_nodes_are_managed() {
    let of_nodes = |nodes: Nodes| {
        let reply = run(&Request { nodes, key_range: 16, prefill_keys: 8, ..listed(50_000, "system") }).reply();
        let of = |phase| blocks(&reply, phase).into_iter().filter(|block| block.kind.is_some()).cloned().collect();
        let (prefill, window): (Vec<Block>, Vec<Block>) = (of(AllocationPhase::Prefill), of(AllocationPhase::Window));
        (prefill, window, reply.threads[0].operations.insert.effective)
    };
    let (plain, window, n_inserted) = of_nodes(Nodes::PLAIN);
    assert!(plain.len() >= 8 && plain.iter().all(|block| block.size < 64), "{plain:?}");
    assert!(n_inserted > 300 && window.len() as u64 >= n_inserted, "{} of {n_inserted}", window.len());
    let (padded, ..) = of_nodes(Nodes { padding_bytes: 64, pool: Pool::None });
    assert_eq!(padded.len(), plain.len());
    assert!(padded.iter().all(|block| (block.size, block.align, block.address % 64) == (64, 64, 0)), "{padded:?}");
    let (prefill, window, n_inserted) = of_nodes(Nodes { padding_bytes: 0, pool: Pool::PerThread });
    assert_eq!(prefill.len(), plain.len());
    assert!(n_inserted > 300 && (window.len() as u64) < n_inserted, "{} of {n_inserted}", window.len());
}

#[test]
fn what_is_no_node_is_listed_without_a_kind() {
    let reply = run(&Request { structure: "mutex-btree".to_owned(), ..listed(10, "system") }).reply();
    let prefilled = blocks(&reply, AllocationPhase::Prefill);
    assert!(prefilled.len() == 10 && prefilled.iter().all(|block| block.kind.is_none()), "{prefilled:?}");
    // A structure that allocates nothing leaves an empty list, and a trial that lists nothing leaves none.
    let reply = run(&Request { structure: "noop".to_owned(), prefill_keys: 0, ..listed(10, "system") }).reply();
    assert_eq!(reply.layout, Some(vec![ThreadLayout::default()]));
    assert_eq!(run(&Request { watch: None, ..listed(10, "system") }).reply().layout, None);
    for (allocations, expected) in [(0, "no allocation"), (u32::MAX, "more than 100000 allocations")] {
        let refusal = run(&listed(allocations, "system")).refusal();
        assert!(refusal.contains(expected), "{refusal}");
    }
}

fn make_fifo(path: &Path) -> String {
    let text = path.to_str().unwrap().to_owned();
    let name = CString::new(text.clone()).unwrap();
    // SAFETY: the name ends with a null byte and lives for the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0, "{text}");
    text
}

/// Has perf record a trial, and returns the stack of each sample.
fn perf_record(request: Request, folder: &Path) -> Vec<String> {
    let (control, acknowledgement) = (make_fifo(&folder.join("control")), make_fifo(&folder.join("acknowledgement")));
    let data = folder.join("perf.data");
    let mut command = Command::new("perf");
    command.args(["record", "--quiet", "-e", "cpu-clock", "-F", "999", "-D", "-1", "--call-graph", "fp"]);
    command.arg(format!("--control=fifo:{control},{acknowledgement}"));
    command.arg("-o").arg(&data).args(["--", WORKER]);
    let request = Request { watch: Some(Watch::Perf { control, acknowledgement }), ..request };
    run_command(command, &serde_json::to_vec(&request).unwrap(), &[(ALLOCATOR_VARIABLE, "system")]).reply();
    let script = Command::new("perf").args(["script", "-F", "ip,sym", "-i"]).arg(&data).output().unwrap();
    let text = String::from_utf8_lossy(&script.stdout).into_owned();
    text.split("\n\n").filter(|stack| !stack.trim().is_empty()).map(str::to_owned).collect()
}

/// Filling and walking this structure takes longer than its window, and no sample lies there.
#[test]
fn perf_samples_the_windows_only() {
    if Command::new("perf").arg("--version").output().is_err() {
        return skip::skip("perf is not installed, so nothing is recorded");
    }
    let folder = tempfile::tempdir().unwrap();
    let large =
        Request { structure: "nm14".to_owned(), key_range: 1_000_000, prefill_keys: 500_000, ..request("system") };
    let length = Length::Nanos(300_000_000);
    let stacks = perf_record(Request { length, mix: CONTAINS, ..large }, folder.path());
    let has = |stack: &str, names: &[&str]| names.iter().any(|name| stack.contains(name));
    let n_inside = stacks.iter().filter(|stack| has(stack, &["window::run", "6window3run"])).count();
    let outside: Vec<_> = stacks.iter().filter(|stack| !has(stack, &["window::run", "6window3run"])).collect();
    assert!(n_inside > 50, "{n_inside} samples: {stacks:?}");
    // The threads wake after it is on, and fall asleep before it is off.
    assert!(outside.len() * 20 <= stacks.len(), "{} of {}: {outside:?}", outside.len(), stacks.len());
    assert!(!stacks.iter().any(|stack| has(stack, &["audit", "member::fill", "6member4fill"])), "{outside:?}");
}

#[test]
fn perf_that_is_not_there_is_missed() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = make_fifo(&folder.path().join("control"));
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let [file, absent] = [file, folder.path().join("absent")].map(|path| path.to_str().unwrap().to_owned());
    for (control, acknowledgement, expected) in [
        (&absent, &fifo, "absent of perf: No such file"),
        (&file, &fifo, "is to be a fifo of perf, is none"),
        (&fifo, &fifo, "control of perf: nobody reads from it"),
    ] {
        let watch = Watch::Perf { control: control.clone(), acknowledgement: acknowledgement.clone() };
        let refusal = run(&Request { watch: Some(watch), ..request("system") }).refusal();
        assert!(refusal.contains(expected), "{refusal}");
    }
    assert_eq!(fs::read(&file).unwrap(), b"");
}
