//! What `rare` asks of a worker, and what the worker answers.
//!
//! One request on standard input, one reply on descriptor [`REPLY_FD`]. A trial succeeded when the reply is complete
//! and its digest holds; the exit code proves nothing.
//!
//! Units: durations in nanoseconds, memory in bytes, shares in basis points (1/10,000). Integers that may exceed 2^53
//! (seeds, key sums) travel as decimal strings, so that no reader of the records folds two of them together.

pub mod frame;
mod harness;
mod watch;

use std::{collections::BTreeMap, fmt, mem::discriminant};

use serde::{Deserialize, Serialize};

pub use self::{
    harness::{Fault, GeneratorKind, Harness, Padding, TimeCheck},
    watch::{AllocationPhase, Block, Count, Counter, ThreadLayout, Watch},
};
use crate::{nodes::Nodes, reclaim::DEFAULT_BATCH};

/// Version of the request and of the reply. A worker refuses another version.
pub const FORMAT: u32 = 3;

/// Descriptor on which the worker writes its one reply.
pub const REPLY_FD: i32 = 3;

/// Environment variable that chooses the allocator: it must be known before the first allocation, so it cannot be in
/// the request. The request repeats it, and the worker refuses a contradiction.
pub const ALLOCATOR_VARIABLE: &str = "RARE_ALLOCATOR";

/// One trial, with every symbol of the plan resolved on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Protocol version, [`FORMAT`].
    pub format: u32,
    /// Registry name of the structure, such as `nm14`.
    pub structure: String,
    /// The structure's own parameters by name; absent ones take the structure's defaults.
    pub structure_parameters: BTreeMap<String, u64>,
    /// How removed nodes are given back.
    pub reclamation: Reclamation,
    /// Which allocator must serve this process.
    pub allocator: AllocatorRequest,
    /// One entry per thread: the CPU it must pin itself to, or `None` to float.
    pub cpus: Vec<Option<u32>>,
    /// Keys are drawn from `0..key_range`; at least 1.
    pub key_range: u64,
    /// Shares of the operations, adding up to 10,000.
    pub mix: Mix,
    /// Keys in the interval of each range query, at least 1; there exactly if the mix has a share of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_keys: Option<u64>,
    /// How keys are drawn.
    pub distribution: Distribution,
    /// Exact number of distinct keys in the structure when the window opens; at most `key_range`.
    pub prefill_keys: u64,
    /// What ends the window.
    pub length: Length,
    /// Seed of the trial; the streams of threads and phases are derived from it.
    #[serde(with = "decimal")]
    pub seed: u64,
    /// Nice level that must be in effect.
    pub nice: i32,
    /// How the memory of nodes is managed; absent in records of earlier versions, which knew no other way.
    #[serde(default)]
    pub nodes: Nodes,
    /// How the harness measures; absent in records of earlier versions, which knew no other way than the default.
    #[serde(default)]
    pub harness: Harness,
    /// What watches the trial besides the harness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<Watch>,
}

/// Which allocator the request expects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllocatorRequest {
    /// `system`, `jemalloc`, `mimalloc` or `snmalloc`; a preload runs under `system`.
    pub name: String,
    /// A shared library that must have replaced the system allocator.
    pub preload: Option<Preload>,
}

/// A preloaded allocator library, named by what it contains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preload {
    /// Absolute path, resolved of links.
    pub path: String,
    /// SHA-256 of the file, 64 hexadecimal digits.
    pub sha256: String,
}

/// How removed nodes are given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reclamation {
    /// Never: every removed node leaks until the process ends. A bound on speed, not a usable structure.
    None,
    /// Epoch-based, by crossbeam-epoch, with a collector of the structure's own.
    Epoch,
    /// Hyaline, by seize, with a collector of the structure's own.
    Hyaline {
        /// Objects that a thread retires before it hands them over; see [`crate::reclaim::BATCHES`].
        batch: u32,
    },
    /// Epoch-based; each retirement frees what can be freed.
    Eager,
    /// Hazard pointers, with a domain of the structure's own.
    Hazard,
}

impl Reclamation {
    /// Hyaline with the batch that holds when none is named.
    pub const HYALINE: Self = Self::Hyaline { batch: DEFAULT_BATCH };

    /// Every scheme with its defaults, in the order in which reports list them.
    pub const ALL: &'static [Self] = &[Self::None, Self::Epoch, Self::HYALINE, Self::Eager, Self::Hazard];

    /// Returns the word of the spec, without parameters.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Epoch => "epoch",
            Self::Hyaline { .. } => "hyaline",
            Self::Eager => "eager",
            Self::Hazard => "hazard",
        }
    }

    /// Tells whether both are the same scheme, whatever its parameters.
    pub fn is_of_scheme(self, other: Self) -> bool {
        discriminant(&self) == discriminant(&other)
    }
}

impl fmt::Display for Reclamation {
    /// Writes the word of the spec, and the parameters where there are any.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hyaline { batch } => write!(f, "hyaline (batch {batch})"),
            plain => f.write_str(plain.name()),
        }
    }
}

/// Shares of the operations in basis points; they add up to 10,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// Share of `insert`.
    pub insert: u32,
    /// Share of `remove`.
    pub remove: u32,
    /// Share of `contains`.
    pub contains: u32,
    /// Share of `range`. Left out where there is none, so that what was written before there were range queries still
    /// reads, and is written, the same.
    #[serde(default, skip_serializing_if = "is_default")]
    pub range: u32,
}

impl Mix {
    /// The whole, in basis points.
    pub const WHOLE: u32 = 10_000;

    /// Tells whether the shares add up to the whole.
    pub fn is_whole(self) -> bool {
        let Self { insert, remove, contains, range } = self;
        let sum = [insert, remove, contains, range].into_iter().map(u64::from).sum::<u64>();
        sum == u64::from(Self::WHOLE)
    }
}

/// How keys are drawn from the key range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Each key equally likely.
    Uniform,
    /// Zipf with the exponent in millionths (990,000 is 0.99); ranks are scattered over the keys by a fixed bijection.
    Zipf(u32),
}

/// What ends the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Length {
    /// A stop flag set after this many nanoseconds.
    Nanos(u64),
    /// Exactly this many operations per thread, with every allocation counted: an accounting trial. Its throughput is
    /// never summarised.
    Accounting {
        /// Operations of each thread.
        operations: u64,
    },
    /// Exactly this many operations per thread, and the structure is dropped at the end: for trials under a tool that
    /// slows everything down. Its throughput is never summarised.
    Operations {
        /// Operations of each thread.
        operations: u64,
    },
}

/// Everything a worker measured and proved in one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// Protocol version, [`FORMAT`].
    pub format: u32,
    /// SHA-256 of the request's bytes, so that no reply is taken for another's.
    pub request_sha256: String,
    /// Which allocator really served the process.
    pub allocator: AllocatorProof,
    /// Nice level read back from the kernel.
    pub nice: i32,
    /// The prefill, as it really ended.
    pub prefill: Prefill,
    /// One entry per thread, in thread order.
    pub threads: Vec<ThreadReply>,
    /// Total operations at moments of the window, in time order, from the opening on; about every 100 ms.
    pub samples: Vec<Sample>,
    /// The structure's own walk after the prefill, before the window.
    pub audit_before: Audit,
    /// The structure's own walk after the window.
    pub audit_after: Audit,
    /// Memory of the process and of its parts.
    pub memory: Memory,
    /// Allocation balance, in accounting trials.
    pub accounting: Option<Accounting>,
    /// The first allocations of each thread, in trials that list them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Vec<ThreadLayout>>,
    /// Counted events, in trials that count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<Vec<Counter>>,
    /// Wall time of the phases outside the window.
    pub phases: Phases,
}

/// The allocator that served the worker, and how that is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllocatorProof {
    /// `system`, `jemalloc`, `mimalloc`, `snmalloc`.
    pub name: String,
    /// Version as the allocator itself tells it, or why it cannot.
    pub version: String,
    /// The preloaded library as mapped in this process, with the digest of its content.
    pub preload: Option<Preload>,
    /// How the proof was made, in words, such as `mallctl version; address of a fresh block lies in a jemalloc arena`.
    pub evidence: String,
}

/// How the prefill ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefill {
    /// Keys that were asked for.
    pub target: u64,
    /// Keys inserted by each thread, in thread order.
    pub per_thread: Vec<u64>,
    /// Wrapping sum of the inserted keys.
    #[serde(with = "decimal")]
    pub key_sum: u64,
    /// Wall time.
    pub wall_ns: u64,
}

/// What one thread did in the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadReply {
    /// CPU it was asked to pin itself to.
    pub cpu_asked: Option<u32>,
    /// CPUs the kernel allows it, read back after pinning, ascending.
    pub cpus_allowed: Vec<u32>,
    /// CPU it ran on when the window opened.
    pub cpu_at_start: u32,
    /// CPU it ran on when it stopped.
    pub cpu_at_end: u32,
    /// Own stamp when it began its first operation: CLOCK_MONOTONIC nanoseconds since the barrier's opening stamp;
    /// never negative.
    pub start_ns: u64,
    /// Own stamp after its last operation, same origin; after `start_ns`.
    pub stop_ns: u64,
    /// Operations by kind.
    pub operations: Operations,
    /// Wrapping sum of the keys it inserted effectively.
    #[serde(with = "decimal")]
    pub inserted_sum: u64,
    /// Wrapping sum of the keys it removed effectively.
    #[serde(with = "decimal")]
    pub removed_sum: u64,
    /// User CPU time within the window.
    pub user_ns: u64,
    /// System CPU time within the window.
    pub system_ns: u64,
    /// Voluntary context switches within the window.
    pub voluntary_switches: u64,
    /// Involuntary context switches within the window.
    pub involuntary_switches: u64,
    /// Migrations between CPUs within the window, or why the kernel does not tell.
    pub migrations: Result<u64, String>,
    /// Minor page faults within the window.
    pub minor_faults: u64,
    /// Major page faults within the window.
    pub major_faults: u64,
}

/// Operations of one thread. `effective` counts those that returned true, and range queries that found a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operations {
    /// `insert` calls.
    pub insert: Tally,
    /// `remove` calls.
    pub remove: Tally,
    /// `contains` calls.
    pub contains: Tally,
    /// `range` calls: each is one operation, however many keys it finds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub range: Tally,
    /// Keys that the range queries found, each query's counted anew.
    #[serde(default, skip_serializing_if = "is_default")]
    pub range_keys: u64,
}

impl Operations {
    /// Returns all attempted operations.
    pub fn attempted(&self) -> u64 {
        self.insert.attempted + self.remove.attempted + self.contains.attempted + self.range.attempted
    }
}

/// Attempts of one kind and how many of them took effect or found something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// Calls.
    pub attempted: u64,
    /// Calls that returned true, or found a key.
    pub effective: u64,
}

/// Total operations of all threads at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Nanoseconds since the window's origin (the one of [`ThreadReply::start_ns`]).
    pub at_ns: u64,
    /// Operations completed by then.
    pub operations: u64,
}

/// What a structure found by walking itself, alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// Keys present.
    pub size: u64,
    /// Wrapping sum of the keys present.
    #[serde(with = "decimal")]
    pub key_sum: u64,
    /// Broken invariants in words, each naming its number; empty when all hold.
    pub violations: Vec<String>,
}

/// Memory in bytes. Everything but `unreclaimed_objects` comes from `/proc/self`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Resident set before the structure was made: the harness's own share.
    pub harness_bytes: u64,
    /// Resident set after the prefill.
    pub prefilled_bytes: u64,
    /// Resident set when the window closed.
    pub end_bytes: u64,
    /// Peak resident set of the process (VmHWM).
    pub peak_bytes: u64,
    /// Anonymous huge pages when the window closed, or why unreadable.
    pub huge_page_bytes: Result<u64, String>,
    /// Objects removed and not yet given back when the window closed; `None` where the scheme cannot tell.
    pub unreclaimed_objects: Option<u64>,
}

/// Counted allocations of an accounting trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accounting {
    /// Live blocks and bytes of the structure after the prefill.
    pub prefilled: Balance,
    /// Allocations within the window.
    pub allocations: u64,
    /// Bytes asked for within the window.
    pub allocated_bytes: u64,
    /// Blocks freed within the window.
    pub frees: u64,
    /// What is still allocated of the structure after it was dropped; all zero when nothing leaks.
    pub after_drop: Balance,
}

/// Blocks and bytes that are allocated and not freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Balance {
    /// Blocks.
    pub blocks: i64,
    /// Bytes.
    pub bytes: i64,
}

/// Wall time of the phases around the window, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phases {
    /// From `main` to the first thread's start: reading the request, proving the allocator.
    pub start_ns: u64,
    /// Audits before and after.
    pub audit_ns: u64,
    /// Dropping the structure; zero when it was not dropped (timed trials exit without).
    pub drop_ns: u64,
}

/// Tells whether a field that older readers do not know can be left out.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Writes integers as decimal strings, for those that may exceed 2^53.
pub mod decimal {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Writes `number` as a decimal string.
    pub fn serialize<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(number)
    }

    /// Reads a decimal string.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|_| D::Error::custom(format!("`{text}` is not a decimal number below 2^64")))
    }
}
