//! The real `rare-worker` as a process: a request in, a frame out, for each allocator; and everything that it refuses.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

mod worker_support;

use std::{
    collections::BTreeMap,
    fs::File,
    path::Path,
    process::{Command, Output, Stdio},
    time::Duration,
};

use rare_workloads::{
    identity::{Identity, SOURCE_SHA256},
    protocol::{
        ALLOCATOR_VARIABLE, AllocatorRequest, Balance, Length, Mix, Preload, Reclamation, Request,
        frame::{self, FrameError},
    },
};
use worker_support::{WORKER, request, run, run_bytes, run_command, run_with};

#[test]
fn every_allocator_serves_and_proves_it() {
    for (allocator, version) in
        [("system", "glibc 2."), ("jemalloc", "jemalloc 5."), ("mimalloc", "mimalloc "), ("snmalloc", "snmalloc-rs 0.")]
    {
        let request = request(allocator);
        let reply = run(&request).reply();
        assert_eq!(reply.request_sha256, frame::sha256_hex(&serde_json::to_vec(&request).unwrap()));
        assert_eq!(reply.allocator.name, allocator);
        assert!(reply.allocator.version.starts_with(version), "{:?}", reply.allocator);
        assert!(reply.allocator.preload.is_none() && !reply.allocator.evidence.is_empty());
        assert_eq!((reply.prefill.per_thread.as_slice(), reply.audit_before.size), ([250, 250].as_slice(), 500));
        assert!(reply.threads.iter().all(|thread| thread.operations.attempted() > 1_000), "{:?}", reply.threads);
        assert_eq!(reply.audit_after.violations, [""; 0]);
        assert!(reply.accounting.is_none());
    }
}

#[test]
fn every_allocator_can_be_counted_alike() {
    let accounting = |allocator: &str| {
        let length = Length::Accounting { operations: 5_000 };
        run(&Request { length, cpus: vec![None], ..request(allocator) }).reply().accounting.unwrap()
    };
    let system = accounting("system");
    assert_eq!(system.after_drop, Balance::default());
    assert!(system.allocations > 0 && system.prefilled.blocks > 0, "{system:?}");
    for allocator in ["jemalloc", "mimalloc", "snmalloc"] {
        assert_eq!(accounting(allocator), system, "{allocator}");
    }
}

/// The goal is 5 ms besides the window, 8 ms is the limit; other work on the machine may disturb some of the trials.
#[test]
fn a_short_trial_costs_little_besides_its_window() {
    let walls: Vec<Duration> = (0..15).map(|_| run(&request("system")).wall).collect();
    assert!(walls.iter().any(|&wall| wall < Duration::from_millis(108)), "{walls:?}");
    assert!(walls.iter().all(|&wall| wall >= Duration::from_millis(100)), "{walls:?}");
}

/// Memcheck sees every error and every lost block of the process, and finds a leak where there is one.
#[test]
fn runs_under_valgrind() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("not tested: valgrind is not installed");
        return;
    }
    let check = |request: &Request, expected: i32| {
        let mut command = Command::new("valgrind");
        command.args(["--quiet", "--fair-sched=yes", "--leak-check=full", "--errors-for-leak-kinds=definite,possible"]);
        let suppressions = concat!("--suppressions=", env!("CARGO_MANIFEST_DIR"), "/src/tools/valgrind.supp");
        command.args([suppressions, "--error-exitcode=99", WORKER]);
        let ended = run_command(command, &serde_json::to_vec(request).unwrap(), &[(ALLOCATOR_VARIABLE, "system")]);
        assert_eq!(ended.code, Some(expected), "{}", ended.stderr);
        ended.reply();
    };
    check(&request("system"), 0);
    // A timed trial leaves its structure whole, and memcheck does not follow the tagged pointers of this one: leaks are
    // sought in trials of a number of operations, which drop it.
    for length in [Length::Accounting { operations: 1_000 }, Length::Operations { operations: 1_000 }] {
        let dropped = Request { structure: "nm14".to_owned(), length, ..request("system") };
        check(&dropped, 0);
        check(&Request { reclamation: Reclamation::None, ..dropped }, 99);
    }
}

#[test]
fn another_allocator_than_asked_for_is_refused() {
    let refusal = run_with(&request("jemalloc"), &[(ALLOCATOR_VARIABLE, "mimalloc")]).refusal();
    assert!(refusal.contains("expects the allocator `jemalloc`, but `mimalloc` serves"), "{refusal}");
    let refusal = run_with(&request("jemalloc"), &[]).refusal();
    assert!(refusal.contains("but `system` serves"), "{refusal}");
}

#[test]
fn an_unknown_allocator_ends_the_process_with_a_message() {
    let ended = run_with(&request("system"), &[(ALLOCATOR_VARIABLE, "jemaloc")]);
    assert!(matches!(ended.frame, Err(FrameError::Empty)), "{:?}", ended.frame);
    assert!(ended.stderr.contains("RARE_ALLOCATOR names no linked allocator: `jemaloc`"), "{}", ended.stderr);
}

/// The smallest allocator that can stand in for the C library's: it hands out memory and never takes it back.
const BUMP_ALLOCATOR: &str = r#"
#include <stddef.h>
#include <stdatomic.h>
#include <string.h>
#include <errno.h>
#include <sys/mman.h>
static _Atomic(size_t) used;
static _Atomic(char *) arena;
static const size_t arena_bytes = (size_t)64 << 30;
static char *base(void) {
    char *current = atomic_load(&arena);
    if (current) return current;
    char *fresh = mmap(0, arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *none = 0;
    if (!atomic_compare_exchange_strong(&arena, &none, fresh)) { munmap(fresh, arena_bytes); return none; }
    return fresh;
}
static void *take(size_t alignment, size_t bytes) {
    if (alignment < 16) alignment = 16;
    size_t whole = bytes + alignment + sizeof(size_t);
    char *start = base() + atomic_fetch_add(&used, whole) + sizeof(size_t);
    char *block = (char *)(((size_t)start + alignment - 1) & ~(alignment - 1));
    memcpy(block - sizeof(size_t), &bytes, sizeof(size_t));
    return block;
}
size_t malloc_usable_size(void *block) {
    size_t bytes = 0;
    if (block) memcpy(&bytes, (char *)block - sizeof(size_t), sizeof(size_t));
    return bytes;
}
void *malloc(size_t bytes) { return take(16, bytes); }
void free(void *block) { (void)block; }
void *calloc(size_t count, size_t bytes) { return take(16, count * bytes); }
void *realloc(void *block, size_t bytes) {
    void *moved = take(16, bytes);
    size_t old = malloc_usable_size(block);
    if (block) memcpy(moved, block, old < bytes ? old : bytes);
    return moved;
}
void *aligned_alloc(size_t alignment, size_t bytes) { return take(alignment, bytes); }
void *memalign(size_t alignment, size_t bytes) { return take(alignment, bytes); }
int posix_memalign(void **block, size_t alignment, size_t bytes) { *block = take(alignment, bytes); return 0; }
"#;

fn build_preload(folder: &Path) -> Preload {
    let (source, library) = (folder.join("bump.c"), folder.join("libbump.so"));
    std::fs::write(&source, BUMP_ALLOCATOR).unwrap();
    let compiler = Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-fno-builtin", "-o"])
        .args([&library, &source])
        .status()
        .expect("a C compiler, which the linked allocators need too");
    assert!(compiler.success());
    let path = library.canonicalize().unwrap();
    let sha256 = frame::sha256_hex(&std::fs::read(&path).unwrap());
    Preload { path: path.to_str().unwrap().to_owned(), sha256 }
}

#[test]
fn a_preload_is_proven_by_what_is_mapped() {
    let folder = tempfile::tempdir().unwrap();
    let preload = build_preload(folder.path());
    let asked = |preload: &Preload| {
        let allocator = AllocatorRequest { name: "system".to_owned(), preload: Some(preload.clone()) };
        Request { allocator, ..request("system") }
    };
    let environment = [(ALLOCATOR_VARIABLE, "system"), ("LD_PRELOAD", preload.path.as_str())];

    let reply = run_with(&asked(&preload), &environment).reply();
    assert_eq!(reply.allocator.preload.as_ref(), Some(&preload));
    assert!(reply.allocator.version.contains("not told"), "{:?}", reply.allocator);
    // It never takes memory back: updates of a second must show.
    assert!(reply.memory.end_bytes > reply.memory.prefilled_bytes + 100_000, "{:?}", reply.memory);

    let refuses = |request: &Request, environment: &[(&str, &str)], expected: &str| {
        let refusal = run_with(request, environment).refusal();
        assert!(refusal.contains(expected), "`{refusal}` lacks `{expected}`");
    };
    let garbled = Preload { sha256: "0".repeat(64), ..preload.clone() };
    refuses(&asked(&garbled), &environment, "the request expects 0000");
    let elsewhere = Preload { path: "/lib/libelsewhere.so".to_owned(), ..preload.clone() };
    refuses(&asked(&elsewhere), &environment, "not to the preload /lib/libelsewhere.so");
    refuses(&asked(&preload), &[], "malloc belongs to");
    // The loader only warns of a missing library and goes on with the C library's allocator.
    refuses(&asked(&preload), &[("LD_PRELOAD", "/nowhere/libbump.so")], "malloc belongs to");
    refuses(&request("system"), &environment, "a preload that was not asked for");
    let allocator = AllocatorRequest { name: "jemalloc".to_owned(), preload: Some(preload.clone()) };
    let under_jemalloc = Request { allocator, ..request("jemalloc") };
    refuses(&under_jemalloc, &[(ALLOCATOR_VARIABLE, "jemalloc")], "a preload replaces `system`");
}

#[test]
fn requests_that_cannot_be_honoured_are_refused_in_words() {
    let sound = || Request { length: Length::Nanos(1_000_000), ..request("system") };
    let mix = Mix { insert: 5_000, remove: 5_000, contains: 1, range: 0 };
    let parameters = BTreeMap::from([("no-such-parameter".to_owned(), 1)]);
    let ranges = |structure: &str, range_keys| {
        let mix = Mix { insert: 0, remove: 0, contains: 0, range: 10_000 };
        Request { structure: structure.to_owned(), mix, range_keys, ..sound() }
    };
    let cases = [
        (Request { structure: "btree".to_owned(), ..sound() }, "no structure `btree`"),
        (Request { structure_parameters: parameters, ..sound() }, "no parameter `no-such-parameter`"),
        (Request { cpus: vec![], ..sound() }, "there are no threads"),
        (Request { cpus: vec![Some(1_000)], ..sound() }, "refuses to pin to CPU 1000"),
        (Request { cpus: vec![Some(u32::MAX)], ..sound() }, "cannot pin to CPU 4294967295"),
        (Request { key_range: 0, prefill_keys: 0, ..sound() }, "the key range is empty"),
        (Request { prefill_keys: 1_001, ..sound() }, "prefill is larger"),
        (Request { mix, ..sound() }, "do not add up"),
        (ranges("nm14", Some(10)), "`nm14` has no range query"),
        (ranges("mutex-btree", None), "the range queries have no size"),
        (ranges("mutex-btree", Some(0)), "the range queries ask for no key"),
        (Request { range_keys: Some(10), ..sound() }, "no operation has the size of range queries"),
        (Request { length: Length::Nanos(0), ..sound() }, "no length"),
        (Request { length: Length::Accounting { operations: 0 }, ..sound() }, "no length"),
        (Request { length: Length::Operations { operations: 0 }, ..sound() }, "no length"),
        (Request { nice: 5, ..sound() }, "the nice level is 0, the request expects 5"),
    ];
    for (request, expected) in cases {
        let refusal = run(&request).refusal();
        assert!(refusal.contains(expected), "`{refusal}` lacks `{expected}`");
    }
}

#[test]
fn garbled_requests_are_refused() {
    let sound = serde_json::to_string(&request("system")).unwrap();
    let cases = [
        (String::new(), "not one"),
        ("{".to_owned(), "not one"),
        ("[]".to_owned(), "tells no format"),
        (sound.replace("\"format\":3", "\"format\":4"), "request format 4, this worker reads 3"),
        (sound.replace("\"nice\":0", "\"nice\":0,\"turbo\":true"), "turbo"),
        (sound.replace("\"key_range\":1000", "\"key_range\":1e3"), "not one"),
        (format!("{sound}{}", " ".repeat(1 << 20)), "longer than 1048576 bytes"),
    ];
    for (bytes, expected) in cases {
        let refusal = run_bytes(bytes.as_bytes(), &[]).refusal();
        assert!(refusal.contains(expected), "`{refusal}` lacks `{expected}`");
    }
}

#[test]
fn the_identity_is_that_of_the_library() {
    let output = Command::new(WORKER).arg("--identity").output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 1);
    let identity: Identity = serde_json::from_str(&text).unwrap();
    assert_eq!(identity, Identity::here());
    assert_eq!(identity.source_sha256, SOURCE_SHA256);
}

#[test]
fn a_person_is_told_what_the_program_is() {
    let check = |output: Output, expected: &str| {
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    };
    let worker = || {
        let mut command = Command::new(WORKER);
        command.stdin(Stdio::from(File::open("/dev/null").unwrap()));
        command
    };
    // Descriptor 3 is not open.
    check(worker().output().unwrap(), "runs one trial for `rare`");
    check(worker().arg("--help").output().unwrap(), "takes no arguments");
}
