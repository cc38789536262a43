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
    planned("every-op", "it reads the clock after each operation"),
    planned("every-10", "it reads the clock after 10 operations"),
    planned("every-100", "it reads the clock after 100 operations"),
    planned("every-1000", "it reads the clock after 1000 operations"),
];

/// Bytes between the per-thread counters of the harness.
pub static HARNESS_PADDINGS: &[Word] = &[
    built("128", "no two threads write to one pair of cache lines"),
    planned("0", "the counters of several threads share a line: the mistake of many harnesses"),
];

/// Random generators of keys and operations.
pub static GENERATORS: &[Word] = &[
    built("xoshiro256++", "one stream a thread; key and operation from independent bits"),
    planned("fnv1a-alternating", "a published generator whose keys alternate between odd and even"),
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

/// Sanity checks, in registry order.
pub static CHECKS: &[Word] = &[
    built("checksum", "size and key sum agree with what the threads did"),
    built("prefill", "the structure held exactly the keys asked for when the window opened"),
    built("pinning", "each thread ran on the CPU asked for, as the kernel tells"),
    built("duration", "each thread measured for as long as asked"),
    built("allocator", "the allocator asked for really served the process"),
    built("fairness", "no thread did far more than another"),
    built("identity", "each record is of a planned trial and asked for what the plan says"),
    planned("empty", "operations on an empty structure"),
    planned("read-only", "a mix of lookups only scales"),
    built("layout", "nodes lie together, and apart from those of other threads"),
    built("trial-length", "longer trials are as fast, and as fast at their end as at their start"),
    built("key-range", "no claim that is silent about the key range is contradicted at another size"),
    built("leaks", "nothing is leaked, and nothing is touched that is not the structure's"),
    planned("contention", "throughput falls with contention as it must"),
    built("reclamation", "what is removed is given back while the trial lasts"),
    planned("variance", "trials of a cell agree"),
    planned("harness-overhead", "the harness is cheap beside the structure"),
    planned("generator", "the generator is sound"),
    planned("interference", "nothing else ran on the machine"),
    planned("false-sharing", "threads do not write to shared lines needlessly"),
    planned("apples", "what is compared differs only in what is compared"),
    built("aa", "a cell against itself is not told apart, and what is told apart differs by more"),
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
