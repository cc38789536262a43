//! What valgrind and perf saw of a trial.
//!
//! Data only, bounded: lists are cut to the heaviest entries, and beside each list stands how many entries there were.
//! All lists are in an order that depends on the data alone.

use serde::{Deserialize, Serialize};

/// What the tool under which a trial ran saw of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Watched {
    /// Valgrind's memcheck.
    Memcheck(Memcheck),
    /// Valgrind's callgrind.
    Simulated(Simulated),
    /// `perf record`.
    Profile(Profile),
}

/// What memcheck saw of a process that it watched to the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memcheck {
    /// Version of valgrind, where its output tells it, such as `3.19.0`.
    pub version: Option<String>,
    /// Version of the format of its output.
    pub protocol: u32,
    /// Blocks to which no pointer is left.
    pub definite: Blocks,
    /// Blocks to which only lost blocks point.
    pub indirect: Blocks,
    /// Blocks to which only pointers into their middle are left.
    pub possible: Blocks,
    /// Blocks that are still reachable at the end.
    pub reachable: Blocks,
    /// How often anything but a leak was seen: invalid accesses and frees, decisions on uninitialised memory.
    pub n_errors: u64,
    /// The distinct findings, leaks among them: errors first, then leaks by severity, each in memcheck's order.
    pub findings: Vec<Finding>,
    /// Distinct findings in all; more than are listed where the list was cut.
    pub n_findings: u64,
    /// Which suppressions were used.
    pub suppressed: Vec<Suppressed>,
}

/// Blocks of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blocks {
    /// Bytes in them.
    pub bytes: u64,
    /// How many.
    pub blocks: u64,
}

/// One distinct finding of memcheck.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// What kind it is.
    pub class: FindingClass,
    /// Memcheck's own word, such as `InvalidRead`.
    pub kind: String,
    /// Memcheck's own sentence.
    pub what: String,
    /// How often it was seen; `None` where memcheck does not tell, as of leaks.
    pub times: Option<u64>,
    /// What was lost, of leaks; without what is lost only indirectly.
    pub lost: Option<Blocks>,
    /// Where: the innermost frames that are the user's, innermost first.
    pub frames: Vec<Frame>,
    /// What else is known: what the address belongs to, where the block was allocated and freed.
    pub related: Vec<Related>,
}

/// Kind of a finding, most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingClass {
    /// Memory was read, written or executed that is not the program's.
    InvalidAccess,
    /// What was freed is not a block, or is another kind of block.
    InvalidFree,
    /// A decision, or the kernel, depends on memory that was never written.
    Uninitialised,
    /// Anything else.
    Other,
    /// Blocks to which no pointer is left.
    DefiniteLeak,
    /// Blocks to which only lost blocks point.
    IndirectLeak,
    /// Blocks to which only pointers into their middle are left.
    PossibleLeak,
    /// Blocks that are still reachable at the end.
    Reachable,
}

/// More about a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Related {
    /// Memcheck's own sentence, such as ``Address 0x4a5f0 is 0 bytes inside a block of size 32 free'd``.
    pub what: String,
    /// Where, as in [`Finding::frames`].
    pub frames: Vec<Frame>,
}

/// One frame of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frame {
    /// Function, demangled, without the hash of its crate.
    pub function: Option<String>,
    /// Source file with its folder.
    pub file: Option<String>,
    /// Line in it, from 1.
    pub line: Option<u32>,
    /// Program or library.
    pub object: Option<String>,
}

/// A suppression and how often it was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suppressed {
    /// Its name.
    pub name: String,
    /// How often.
    pub times: u64,
}

/// What callgrind counted: instructions, and what its simulated caches and branch predictor made of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Simulated {
    /// Version of valgrind, where the output tells it.
    pub version: Option<String>,
    /// The simulated caches in callgrind's words, such as `I1 cache: 32768 B, 64 B, 8-way associative`.
    pub caches: Vec<String>,
    /// Names of the events, such as `Ir`, `Dr`, `D1mr`; all costs are in this order.
    pub events: Vec<String>,
    /// Costs of all that was collected.
    pub totals: Vec<u64>,
    /// Costs of each function itself without what it calls, the most instructions first.
    pub functions: Vec<FunctionCost>,
    /// Functions with any cost; more than are listed where the list was cut.
    pub n_functions: u64,
}

impl Simulated {
    /// Returns the total of an event; `None` where it was not simulated.
    pub fn total(&self, event: &str) -> Option<u64> {
        let at = self.events.iter().position(|name| name == event)?;
        self.totals.get(at).copied()
    }
}

/// Costs of one function itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionCost {
    /// Name, demangled, without the hash of its crate.
    pub function: String,
    /// In the order of [`Simulated::events`].
    pub costs: Vec<u64>,
    /// Its source lines, those inlined into it among them, the most instructions first; only the hottest.
    pub lines: Vec<LineCost>,
}

/// Costs of one source line within a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineCost {
    /// Source file with its folder.
    pub file: String,
    /// Line in it, from 1.
    pub line: u32,
    /// In the order of [`Simulated::events`].
    pub costs: Vec<u64>,
}

/// Where samples of a running process fell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The event that was really recorded, as the data names it, such as `cycles:P` or `cpu-clock`.
    pub event: String,
    /// How many samples.
    pub samples: u64,
    /// Sum of what the samples stand for: nanoseconds of `cpu-clock`, cycles of `cycles`.
    pub weight: u64,
    /// Samples that were lost, as far as the data tells.
    pub lost: u64,
    /// Threads that samples were taken of.
    pub threads: u32,
    /// Symbols by the samples whose innermost frame they are, heaviest first.
    pub symbols: Vec<HotSymbol>,
    /// Symbols with any such sample; more than are listed where the list was cut.
    pub n_symbols: u64,
    /// Names of the frames of `stacks`.
    pub names: Vec<String>,
    /// Distinct stacks, heaviest first.
    pub stacks: Vec<Stack>,
    /// Distinct stacks in all; more than are listed where the list was cut.
    pub n_stacks: u64,
}

/// A symbol in which samples fell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HotSymbol {
    /// Name, demangled, without the hash of its crate.
    pub symbol: String,
    /// Samples in it.
    pub samples: u64,
    /// What they stand for, as in [`Profile::weight`].
    pub weight: u64,
    /// Its hottest lines, heaviest first.
    pub lines: Vec<HotLine>,
}

/// A source line in which samples fell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HotLine {
    /// Source file as the profiler tells it.
    pub file: String,
    /// Line in it, from 1.
    pub line: u32,
    /// Samples on it.
    pub samples: u64,
    /// What they stand for, as in [`Profile::weight`].
    pub weight: u64,
}

/// A distinct stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stack {
    /// Positions in [`Profile::names`], outermost frame first.
    pub frames: Vec<u32>,
    /// What its samples stand for, as in [`Profile::weight`].
    pub weight: u64,
}
