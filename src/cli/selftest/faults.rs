//! The faults that `rare selftest` plants, each with the check that must catch it.
//!
//! A fault is a spec like any other, so whoever doubts a row can run it.

/// A planted fault.
pub(super) struct Planted {
    /// What is wrong, for the table.
    pub fault: &'static str,
    /// Name of the check that must catch it.
    pub check: &'static str,
    /// How it is planted.
    pub by: Planting,
    /// CPUs without which the fault does nothing.
    pub min_cpus: usize,
}

/// How a fault is planted.
#[derive(Clone, Copy)]
pub(super) enum Planting {
    /// By lines of a spec, which come after [`HEAD`] and override none of it.
    Spec(&'static str),
    /// By lines of a spec, while as many threads as there are CPUs do nothing but spin.
    Busy(&'static str),
    /// By preloading a file that is no library.
    DeadPreload,
}

/// How the spec of every fault begins.
pub(super) const HEAD: &str = "rare: 1\nname: selftest\nquestion: Is the planted fault caught?\n";

/// The setting of faults that need nothing else.
macro_rules! plain {
    ($structures:literal, $rest:literal) => {
        concat!(
            "structures: ",
            $structures,
            "\nthreads: 2\nkey_ranges: 1000\nmixes: {insert: 50, remove: 50}\n",
            "trials: {count: 1, length: 100ms}\n",
            $rest
        )
    };
}

const fn planted(fault: &'static str, check: &'static str, min_cpus: usize, by: Planting) -> Planted {
    Planted { fault, check, by, min_cpus }
}

use Planting::{Busy, DeadPreload, Spec};

/// Every fault, in the order of the table.
pub(super) static ALL: &[Planted] = &[
    planted(
        "an insert in a thousand is lost",
        "checksum",
        1,
        Spec(plain!("[{use: control-lost-update, one_in: 1000}]", "")),
    ),
    planted(
        "a remove in a hundred is told to two threads",
        "checksum",
        2,
        Spec(plain!("[{use: control-double-remove, one_in: 100}]", "")),
    ),
    planted(
        "keys appear that nobody inserted",
        "checksum",
        1,
        Spec(plain!("[{use: control-size-drift, one_in: 1000}]", "")),
    ),
    planted(
        "the prefill draws with replacement",
        "prefill",
        1,
        Spec(plain!("[nm14]", "harness: {fault: prefill-with-replacement}\n")),
    ),
    planted(
        "threads are pinned to each other's CPUs",
        "pinning",
        2,
        Spec(plain!("[nm14]", "pinning: compact\nharness: {fault: rotated-pins}\n")),
    ),
    planted("a thread starts late", "duration", 1, Spec(plain!("[nm14]", "harness: {fault: late-thread}\n"))),
    planted(
        "threads run on, and their stamps say that they stopped",
        "duration",
        1,
        Spec(plain!("[nm14]", "harness: {fault: nominal-time}\n")),
    ),
    planted("a preload that is no library", "allocator", 1, DeadPreload),
    planted("one thread gets nearly all operations", "fairness", 2, Spec(plain!("[control-unfair]", ""))),
    planted("one thread starves where all want the same keys", "contention", 2, Spec(plain!("[control-unfair]", ""))),
    planted(
        "every operation writes to a line that threads share",
        "read-only",
        2,
        Spec(concat!(
            "structures: [nm14, control-false-sharing]\nthreads: 2\nkey_ranges: 100\n",
            "mixes: {insert: 50, remove: 50}\ntrials: {count: 1, length: 100ms}\n"
        )),
    ),
    planted(
        "a search in nothing writes to a shared line",
        "empty",
        2,
        Spec(plain!("[nm14, control-false-sharing]", "")),
    ),
    planted(
        "the counters of the harness share a line",
        "false-sharing",
        2,
        Spec(plain!("[nm14]", "harness: {padding: 0}\n")),
    ),
    planted(
        "the harness reads the clock after every operation",
        "harness-overhead",
        1,
        Spec(plain!("[nm14]", "harness: {time_check: every-op}\n")),
    ),
    planted(
        "keys of one parity only",
        "generator",
        1,
        Spec(plain!("[nm14]", "harness: {generator: fnv1a-alternating}\n")),
    ),
    planted("descriptors lie between nodes", "layout", 1, Spec(plain!("[control-interleaved]", ""))),
    planted("nodes are padded field by field", "layout", 1, Spec(plain!("[control-bad-padding]", ""))),
    planted("removed nodes are not freed, now and then", "leaks", 1, Spec(plain!("[control-leak]", ""))),
    planted(
        "a node is read after it was freed",
        "leaks",
        1,
        Spec(plain!("[{use: control-use-after-free, one_in: 100}]", "")),
    ),
    planted(
        "a scheme is claimed, and nothing is ever freed",
        "reclamation",
        1,
        Spec(plain!("[control-never-frees]", "")),
    ),
    planted("operations get slower while a trial lasts", "trial-length", 1, Spec(plain!("[control-decay]", ""))),
    planted("another program takes the CPUs", "interference", 1, Busy(plain!("[nm14]", ""))),
    planted(
        "a structure that never frees is compared with one that does",
        "apples",
        1,
        Spec(plain!("[nm14, {use: bcco10, reclamation: none}]", "")),
    ),
];

/// A spec without a fault: two sound trees, every check.
pub(super) const CLEAN: &str = concat!(
    "structures: [nm14, bcco10]\nthreads: all\nkey_ranges: 100k\nmixes: {insert: 25, remove: 25, contains: 50}\n",
    "trials: {count: 5, length: 100ms}\nsanity_checks: all\n"
);
