//! What watches a trial besides the harness, and what it saw from within the process.

use serde::{Deserialize, Serialize};

use super::decimal;

/// What watches a trial besides the harness. Its throughput is never summarised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Watch {
    /// The first allocations of each thread are listed, and no more.
    Layout {
        /// Allocations that are listed of each thread and phase, at least 1.
        allocations: u32,
    },
    /// Events of the processor and the kernel are counted over the window of each thread.
    Counters,
    /// The process runs under a tool of valgrind, which is told when each thread enters and leaves its window.
    Valgrind,
    /// The process runs under `perf record`, which is switched on for the window only.
    Perf {
        /// The fifo on which `perf` takes commands.
        control: String,
        /// The fifo on which it acknowledges them.
        acknowledgement: String,
    },
}

/// Blocks that one thread allocated first, in the order of their allocation, those of the prefill before those of the
/// window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadLayout {
    /// The blocks.
    pub blocks: Vec<Block>,
}

/// One block of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Its address.
    #[serde(with = "decimal")]
    pub address: u64,
    /// Bytes asked for.
    pub size: u64,
    /// Alignment asked for, in bytes.
    pub align: u64,
    /// Bytes that the allocator set aside, where it tells.
    pub usable: Option<u64>,
    /// Type of the node that it holds, without its path; `None` for what a structure allocates in other ways.
    pub kind: Option<String>,
    /// When it was allocated.
    pub phase: AllocationPhase,
}

/// When a block was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AllocationPhase {
    /// While the structure was filled.
    Prefill,
    /// In the window.
    Window,
}

/// One event, counted over the windows of all threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counter {
    /// Name of the event: `cycles`, `instructions`, `l1d-read-misses`, `context-switches`, …
    pub event: String,
    /// What was counted.
    pub count: Count,
}

/// What was counted of an event. Nothing of it is ever zero for want of a counter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Count {
    /// The whole time.
    Counted(u64),
    /// Part of the time, and extrapolated.
    Multiplexed {
        /// The extrapolated count.
        estimate: u64,
        /// Nanoseconds that the counter ran, all threads.
        running_ns: u64,
        /// Nanoseconds that it should have run.
        enabled_ns: u64,
    },
    /// The machine has no such counter, in words.
    Unsupported(String),
    /// This user may not count it, in words.
    Denied(String),
}
