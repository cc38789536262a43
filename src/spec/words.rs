//! The closed lists of words: checks, instruments, and every value that is one of a few.
//!
//! Words of later versions are known, so that a spec which uses one is told so instead of being asked whether it meant
//! another.

/// A word of a closed list.
#[derive(Debug, PartialEq, Eq)]
pub struct Word {
    /// As a spec writes it.
    pub name: &'static str,
    /// Whether this version can do it.
    pub built: bool,
    /// What it means, without a final period.
    pub meaning: &'static str,
}

const fn built(name: &'static str, meaning: &'static str) -> Word {
    Word { name, built: true, meaning }
}

const fn planned(name: &'static str, meaning: &'static str) -> Word {
    Word { name, built: false, meaning }
}

/// Abstract data types.
pub static FAMILIES: &[Word] = &[built("set", "a set of 64-bit keys with insert-if-absent")];

/// Allocators linked into the worker.
pub static ALLOCATORS: &[Word] = &[
    built("system", "the C library's"),
    built("jemalloc", "jemalloc, linked into the worker"),
    built("mimalloc", "mimalloc, linked into the worker"),
    built("snmalloc", "snmalloc, linked into the worker"),
];

/// Reclamation schemes.
pub static RECLAMATION: &[Word] = &[
    built("none", "removed nodes leak until the process ends; a bound on speed, not a usable structure"),
    built("epoch", "epoch-based, with a collector of the structure's own"),
    built(
        "hyaline",
        "batches of removed nodes that count their readers; 32 nodes unless `{hyaline: {batch: …}}` says else",
    ),
    built("eager", "epoch-based, and each removal frees what can be freed, for little memory at a higher price"),
    built("hazard", "hazard pointers, for structures that can validate each step; few nodes are ever left"),
];

/// Pinning policies, besides an explicit list.
pub static PINNING: &[Word] = &[
    built("none", "threads float"),
    built("compact", "fill the cores of one socket, then their SMT siblings, then the next socket"),
    built("scatter", "spread over sockets and cores first, SMT siblings last"),
];

/// Key distributions, besides Zipf.
pub static DISTRIBUTIONS: &[Word] = &[built("uniform", "each key is equally likely")];

/// Named fills.
pub static PREFILLS: &[Word] = &[
    built("none", "the structure starts empty"),
    built("half", "half of the key range"),
    built("full", "the whole key range"),
];

/// Range queries, besides a size.
pub static RANGE_QUERIES: &[Word] = &[built("none", "no operation is a range query")];

/// Transparent huge pages.
pub static HUGE_PAGES: &[Word] =
    &[built("system", "as the machine is set; the setting is recorded"), built("never", "switched off for the worker")];

/// Address space layout randomisation.
pub static ASLR: &[Word] = &[
    built("on", "each worker has another layout, so that its luck averages out"),
    built("off", "every worker has the same layout, with the same luck each time"),
];

/// Pools of nodes.
pub static OBJECT_POOLS: &[Word] = &[
    built("none", "nodes come from the allocator"),
    built("per-thread", "each thread keeps the nodes that it frees for its own later inserts"),
];

/// Bytes of padding around a node.
pub static NODE_PADDINGS: &[Word] = &[
    built("0", "as the structure lays its nodes out"),
    built("64", "a node fills whole cache lines"),
    built("128", "a node fills pairs of cache lines, as the prefetcher loads them"),
];

/// How a thread learns that the window is over.
pub static TIME_CHECKS: &[Word] = &[
    built("flag", "it reads a stop flag, which another thread sets"),
    built("every-op", "it reads the clock after each operation"),
    built("every-10", "it reads the clock after each 10 operations"),
    built("every-100", "it reads the clock after each 100 operations"),
    built("every-1000", "it reads the clock after each 1000 operations"),
];

/// Bytes between the per-thread counters of the harness.
pub static HARNESS_PADDINGS: &[Word] = &[
    built("128", "no two threads write to one pair of cache lines"),
    built("0", "the counters of several threads, and the stop flag, share a line: the mistake of many harnesses"),
];

/// Random generators of keys and operations.
pub static GENERATORS: &[Word] = &[
    built("xoshiro256++", "one stream a thread; key and operation from independent bits"),
    built(
        "fnv1a-alternating",
        "one in use whose lowest bit alternates: a thread sees keys of one parity; uniform only",
    ),
];

/// Faults of the harness that can be planted.
pub static HARNESS_FAULTS: &[Word] = &[
    built("none", "the harness is sound"),
    built("prefill-with-replacement", "the prefill draws its keys and does not look at what was there"),
    built("rotated-pins", "each thread runs on the CPU that was asked for another"),
    built("late-thread", "the last thread begins when a third of the window is over"),
    built("nominal-time", "the threads run on for a fifth of the window and say that they stopped in time"),
];

/// Orders of the trials within a block.
pub static ORDERS: &[Word] = &[
    built("random", "a seeded permutation, another for each block"),
    built("listed", "as listed, in each block: drift of the machine then falls on the same cells"),
];

/// Comparisons of unlike things.
pub static ALLOWANCES: &[Word] = &[built("semantics", "structures whose operations mean different things")];

/// Instruments, in registry order.
pub static INSTRUMENTS: &[Word] = &[
    built("accounting", "counts allocations in trials of its own: bytes per key, leaks"),
    built("counters", "counts and simulates what the processor does for an operation, in trials of its own"),
    built("profile", "samples call stacks in trials of its own"),
];

/// Counters that a comparison may predict to move, each with the simulated events that it is the sum of.
pub static PREDICTED: &[Word] = &[
    built("instructions", "instructions of an operation"),
    built("l1-misses", "misses of the first-level data cache of an operation"),
    built("llc-misses", "misses of the last-level cache of an operation"),
    built("branch-misses", "mispredicted branches of an operation"),
];

/// Sanity checks, in registry order.
pub static CHECKS: &[Word] = &[
    built("checksum", "size and key sum agree with what the threads did"),
    built("prefill", "the structure held exactly the keys asked for when the window opened"),
    built("pinning", "each thread ran on the CPU asked for, as the kernel tells"),
    built("duration", "each thread measured for as long as asked"),
    built("allocator", "the allocator asked for really served the process"),
    built("fairness", "no thread did far more than another"),
    built("identity", "each record is of a planned trial and asked for what the plan says"),
    planned(
        "empty",
        "lookups in empty structures scale with the threads, and no structure takes far more time or instructions than \
         another or than one that stores nothing",
    ),
    planned("read-only", "lookups in filled structures scale with the threads"),
    built("layout", "nodes lie together, and those of two threads share no cache line"),
    planned("trial-length", "trials 20 times as long have the same throughput, and it is flat within a trial"),
    planned("key-range", "the ranking of the structures is the same at 100, 100k and 10M keys"),
    built("leaks", "nothing is leaked and no freed memory is read, as memcheck and the balance of allocations tell"),
    planned(
        "contention",
        "with updates only, on no more keys than threads, every trial ends, its sums hold and no thread starves",
    ),
    planned(
        "reclamation",
        "efficient, eager and no reclamation differ by a bounded cost in throughput, unreclaimed objects and memory",
    ),
    built("variance", "the trials of a cell agree, fall into one group, and do not change with their order"),
    planned(
        "harness-overhead",
        "the harness takes little of the fastest cell's time, and reading the clock less often makes it no faster",
    ),
    built(
        "generator",
        "the streams of keys and operations of this plan are sound, when they are drawn again and examined",
    ),
    built("interference", "no other process, hypervisor, device, swapping or throttling took the CPUs of a trial"),
    planned("false-sharing", "threads do not write to cache lines of the harness that others use"),
    built("apples", "compared cells differ in their structure only, and the same share of their updates takes effect"),
    planned(
        "aa",
        "the same cell under two labels is not told apart; the difference is the least that a claim must exceed",
    ),
];

/// Returns the names in a list that this version can do, in order.
pub fn built_names(words: &'static [Word]) -> impl Iterator<Item = &'static str> {
    words.iter().filter(|word| word.built).map(|word| word.name)
}

/// Returns the word of that name.
pub fn find(words: &'static [Word], name: &str) -> Option<&'static Word> {
    words.iter().find(|word| word.name == name)
}

/// Writes names for a message: `a`, `b` and `c`.
pub(crate) fn enumerate<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    listed(names, "and")
}

/// Writes names for a question: `a`, `b` or `c`.
pub(crate) fn alternatives<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    listed(names, "or")
}

fn listed<'n>(names: impl IntoIterator<Item = &'n str>, last_joined_by: &str) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => "none".to_owned(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} {last_joined_by} {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use rare_workloads::protocol::Reclamation;

    use super::*;
    use crate::spec::value::Allocator;

    #[test]
    fn lists_agree_with_what_the_worker_knows() {
        assert!(built_names(RECLAMATION).eq(Reclamation::ALL.iter().map(|scheme| scheme.name())));
        assert!(built_names(ALLOCATORS).eq(Allocator::LINKED.iter().copied()));
    }
}
