//! The values that a parameter of a cell can take, and the parameters themselves.
//!
//! Pure. A cell is one [`Value`] per [`Parameter`]; the typed accessors of [`crate::plan::Cell`] unpack them.

use std::{collections::BTreeMap, fmt};

use rare_workloads::protocol::{Distribution, Mix, Reclamation};

use crate::units::{self, BasisPoints, Bytes, Nanos};

/// Anything that may differ between cells. The order is that of cells' columns and of the crossing: the first varies
/// slowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "each is documented in the field table")]
pub enum Parameter {
    Structure,
    Allocator,
    Reclamation,
    Pinning,
    Threads,
    KeyRange,
    Mix,
    Distribution,
    Prefill,
    RangeQuery,
    TrialLength,
    HugePages,
    Aslr,
    EnvironmentPadding,
    Priority,
    ObjectPool,
    NodePadding,
    TimeCheck,
    HarnessPadding,
    Generator,
    HarnessFault,
}

impl Parameter {
    /// Number of parameters.
    pub const COUNT: usize = Self::ALL.len();

    /// Every parameter, in order.
    pub const ALL: [Self; 21] = [
        Self::Structure,
        Self::Allocator,
        Self::Reclamation,
        Self::Pinning,
        Self::Threads,
        Self::KeyRange,
        Self::Mix,
        Self::Distribution,
        Self::Prefill,
        Self::RangeQuery,
        Self::TrialLength,
        Self::HugePages,
        Self::Aslr,
        Self::EnvironmentPadding,
        Self::Priority,
        Self::ObjectPool,
        Self::NodePadding,
        Self::TimeCheck,
        Self::HarnessPadding,
        Self::Generator,
        Self::HarnessFault,
    ];

    /// Returns the name of the parameter in plans, records and reports: one word for one value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Structure => "structure",
            Self::Allocator => "allocator",
            Self::Reclamation => "reclamation",
            Self::Pinning => "pinning",
            Self::Threads => "threads",
            Self::KeyRange => "key_range",
            Self::Mix => "mix",
            Self::Distribution => "distribution",
            Self::Prefill => "prefill",
            Self::RangeQuery => "range_query",
            Self::TrialLength => "trial_length",
            Self::HugePages => "huge_pages",
            Self::Aslr => "aslr",
            Self::EnvironmentPadding => "environment_padding",
            Self::Priority => "priority",
            Self::ObjectPool => "object_pool",
            Self::NodePadding => "node_padding",
            Self::TimeCheck => "harness_time_check",
            Self::HarnessPadding => "harness_padding",
            Self::Generator => "harness_generator",
            Self::HarnessFault => "harness_fault",
        }
    }

    /// Returns the path of the key in a spec, such as `key_ranges` or `harness.padding`.
    pub fn key(self) -> &'static str {
        match self {
            Self::Structure => "structures",
            Self::Allocator => "allocators",
            Self::KeyRange => "key_ranges",
            Self::Mix => "mixes",
            Self::TrialLength => "trials.length",
            Self::NodePadding => "nodes.padding",
            Self::TimeCheck => "harness.time_check",
            Self::HarnessPadding => "harness.padding",
            Self::Generator => "harness.generator",
            Self::HarnessFault => "harness.fault",
            same => same.name(),
        }
    }
}

/// One value of one parameter, in base units.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// Of [`Parameter::Structure`].
    Structure(StructureUse),
    /// Of [`Parameter::Allocator`].
    Allocator(Allocator),
    /// Of [`Parameter::Reclamation`].
    Reclamation(Reclamation),
    /// Of [`Parameter::Pinning`].
    Pinning(Pinning),
    /// Of [`Parameter::Threads`].
    Threads(Threads),
    /// A plain number: keys, bytes of padding.
    Count(u64),
    /// Of [`Parameter::Mix`].
    Mix(Mix),
    /// Of [`Parameter::Distribution`].
    Distribution(Distribution),
    /// Of [`Parameter::Prefill`].
    Prefill(Prefill),
    /// Of [`Parameter::RangeQuery`].
    RangeQuery(RangeQuery),
    /// Of [`Parameter::TrialLength`].
    Duration(Nanos),
    /// A size in bytes.
    Bytes(Bytes),
    /// Of [`Parameter::Priority`].
    Nice(i8),
    /// One word of a closed list: `huge_pages`, `aslr`, `object_pool`, `harness.time_check`, `harness.generator`,
    /// `harness.fault`.
    Word(&'static str),
}

/// A structure as a spec uses it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StructureUse {
    /// Registry name.
    pub name: String,
    /// Label in reports and claims; the registry name when the spec gives none. Unique in a spec.
    pub label: String,
    /// The structure's own parameters, every default made explicit.
    pub parameters: BTreeMap<String, u64>,
}

/// Where memory comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Allocator {
    /// Linked into the worker: `system`, `jemalloc`, `mimalloc`, `snmalloc`.
    Linked(&'static str),
    /// A shared library at this path, over `system`.
    Preload(String),
}

impl Allocator {
    /// Names of the linked allocators.
    pub const LINKED: &'static [&'static str] = &["system", "jemalloc", "mimalloc", "snmalloc"];
}

/// Which CPUs the threads pin themselves to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pinning {
    /// Threads float.
    None,
    /// Fill one socket's cores, then their SMT siblings, then the next socket.
    Compact,
    /// Spread over sockets and cores first, siblings last.
    Scatter,
    /// Exactly these CPUs, thread by thread; at least as many as threads.
    Cpus(Vec<u32>),
}

/// How many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Threads {
    /// This many, at least 1.
    Count(u32),
    /// As many as CPUs are allowed on the machine.
    All,
}

/// How full the structure is when the window opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Prefill {
    /// A share of the key range, rounded down.
    Share(BasisPoints),
    /// This many keys.
    Keys(u64),
}

/// What the share `range` of a mix asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RangeQuery {
    /// Nothing: there is no such share.
    None,
    /// An interval of this many keys, at least 1; a mix without such a share ignores it.
    Keys(u64),
}

impl Prefill {
    /// Returns the exact number of keys for a key range.
    pub fn keys(self, key_range: u64) -> u64 {
        match self {
            Self::Share(share) => {
                let keys = u128::from(key_range) * u128::from(share.0) / 10_000;
                u64::try_from(keys).expect("a share of at most the whole fits where the whole does")
            }
            Self::Keys(keys) => keys,
        }
    }
}

impl fmt::Display for Value {
    /// Writes the value as reports and progress show it, close to how a spec writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Structure(structure) => f.write_str(&structure.label),
            Self::Allocator(Allocator::Linked(name)) => f.write_str(name),
            Self::Allocator(Allocator::Preload(path)) => write!(f, "preload {path}"),
            Self::Reclamation(scheme) => write!(f, "{scheme}"),
            Self::Pinning(Pinning::None) => f.write_str("none"),
            Self::Pinning(Pinning::Compact) => f.write_str("compact"),
            Self::Pinning(Pinning::Scatter) => f.write_str("scatter"),
            Self::Pinning(Pinning::Cpus(cpus)) => {
                let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
                write!(f, "cpus {}", cpus.join(","))
            }
            Self::Threads(Threads::Count(threads)) => write!(f, "{threads}"),
            Self::Threads(Threads::All) => f.write_str("all"),
            Self::Count(number) => f.write_str(&units::count(*number)),
            Self::Mix(Mix { insert, remove, contains, range }) => {
                write!(
                    f,
                    "{} insert, {} remove, {} contains",
                    BasisPoints(*insert),
                    BasisPoints(*remove),
                    BasisPoints(*contains)
                )?;
                if *range > 0 { write!(f, ", {} range", BasisPoints(*range)) } else { Ok(()) }
            }
            Self::Distribution(Distribution::Uniform) => f.write_str("uniform"),
            Self::Distribution(Distribution::Zipf(millionths)) => write!(f, "zipf {}", decimal(*millionths)),
            Self::Prefill(Prefill::Share(share)) => write!(f, "{share}"),
            Self::Prefill(Prefill::Keys(keys)) => write!(f, "{} keys", units::count(*keys)),
            Self::RangeQuery(RangeQuery::None) => f.write_str("none"),
            Self::RangeQuery(RangeQuery::Keys(keys)) => write!(f, "{} keys", units::count(*keys)),
            Self::Duration(duration) => write!(f, "{duration}"),
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::Nice(level) => write!(f, "{level}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

/// Millionths as a decimal without superfluous digits: 990,000 is `0.99`.
pub fn decimal(millionths: u32) -> String {
    let text = format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
