//! The closed lists of words: checks, instruments, and every value that is one of a few.
//!

/// A word of a closed list.
#[derive(Debug, PartialEq, Eq)]
pub struct Word {
    /// As a spec writes it.
    pub name: &'static str,
    /// What it means, without a final period.
    pub meaning: &'static str,
}

const fn word(name: &'static str, meaning: &'static str) -> Word {
    Word { name, meaning }
}

/// Abstract data types.
pub static FAMILIES: &[Word] = &[word("set", "a set of 64-bit keys with insert-if-absent")];

/// Allocators linked into the worker.
pub static ALLOCATORS: &[Word] = &[
    word("system", "the C library's"),
    word("jemalloc", "jemalloc, linked into the worker"),
    word("mimalloc", "mimalloc, linked into the worker"),
    word("snmalloc", "snmalloc, linked into the worker"),
];

/// Reclamation schemes.
pub static RECLAMATION: &[Word] = &[
    word("none", "removed nodes leak until the process ends; a bound on speed, not a usable structure"),
    word("epoch", "epoch-based, with a collector of the structure's own"),
    word(
        "hyaline",
        "batches of removed nodes that count their readers; 32 nodes unless `{hyaline: {batch: …}}` says else",
    ),
    word("eager", "epoch-based, and each removal frees what can be freed, for little memory at a higher price"),
    word("hazard", "hazard pointers, for structures that can validate each step; few nodes are ever left"),
];

/// Pinning policies, besides an explicit list.
pub static PINNING: &[Word] = &[
    word("none", "threads float"),
    word("compact", "fill the cores of one socket, then their SMT siblings, then the next socket"),
    word("scatter", "spread over sockets and cores first, SMT siblings last"),
];

/// Key distributions, besides Zipf.
pub static DISTRIBUTIONS: &[Word] = &[word("uniform", "each key is equally likely")];

/// Named fills.
pub static PREFILLS: &[Word] = &[
    word("none", "the structure starts empty"),
    word("half", "half of the key range"),
    word("full", "the whole key range"),
];

/// Range queries, besides a size.
pub static RANGE_QUERIES: &[Word] = &[word("none", "no operation is a range query")];

/// Transparent huge pages.
pub static HUGE_PAGES: &[Word] =
    &[word("system", "as the machine is set; the setting is recorded"), word("never", "switched off for the worker")];

/// Address space layout randomisation.
pub static ASLR: &[Word] = &[
    word("on", "each worker has another layout, so that its luck averages out"),
    word("off", "every worker has the same layout, with the same luck each time"),
];

/// Pools of nodes.
pub static OBJECT_POOLS: &[Word] = &[
    word("none", "nodes come from the allocator"),
    word("per-thread", "each thread keeps the nodes that it frees for its own later inserts"),
];

/// Bytes of padding around a node.
pub static NODE_PADDINGS: &[Word] = &[
    word("0", "as the structure lays its nodes out"),
    word("64", "a node fills whole cache lines"),
    word("128", "a node fills pairs of cache lines, as the prefetcher loads them"),
];

/// How a thread learns that the window is over.
pub static TIME_CHECKS: &[Word] = &[
    word("flag", "it reads a stop flag, which another thread sets"),
    word("every-op", "it reads the clock after each operation"),
    word("every-10", "it reads the clock after each 10 operations"),
    word("every-100", "it reads the clock after each 100 operations"),
    word("every-1000", "it reads the clock after each 1000 operations"),
];

/// Bytes between the per-thread counters of the harness.
pub static HARNESS_PADDINGS: &[Word] = &[
    word("128", "no two threads write to one pair of cache lines"),
    word("0", "the counters of several threads, and the stop flag, share a line: the mistake of many harnesses"),
];

/// Random generators of keys and operations.
pub static GENERATORS: &[Word] = &[
    word("xoshiro256++", "one stream a thread; key and operation from independent bits"),
    word("fnv1a-alternating", "one in use whose lowest bit alternates: a thread sees keys of one parity; uniform only"),
];

/// Faults of the harness that can be planted.
pub static HARNESS_FAULTS: &[Word] = &[
    word("none", "the harness is sound"),
    word("prefill-with-replacement", "the prefill draws its keys and does not look at what was there"),
    word("rotated-pins", "each thread runs on the CPU that was asked for another"),
    word("late-thread", "the last thread begins when a third of the window is over"),
    word("nominal-time", "the threads run on for a fifth of the window and say that they stopped in time"),
];

/// Orders of the trials within a block.
pub static ORDERS: &[Word] = &[
    word("random", "a seeded permutation, another for each block"),
    word("listed", "as listed, in each block: drift of the machine then falls on the same cells"),
];

/// Comparisons of unlike things.
pub static ALLOWANCES: &[Word] = &[word("semantics", "structures whose operations mean different things")];

/// Instruments, in registry order.
pub static INSTRUMENTS: &[Word] = &[
    word("accounting", "counts allocations in trials of its own: bytes per key, leaks"),
    word("counters", "counts and simulates what the processor does for an operation, in trials of its own"),
    word("profile", "samples call stacks in trials of its own"),
];

/// Counters that a comparison may predict to move, each with the simulated events that it is the sum of.
pub static PREDICTED: &[Word] = &[
    word("instructions", "instructions of an operation"),
    word("l1-misses", "misses of the first-level data cache of an operation"),
    word("llc-misses", "misses of the last-level cache of an operation"),
    word("branch-misses", "mispredicted branches of an operation"),
];

/// Sanity checks, in registry order.
pub static CHECKS: &[Word] = &[
    word("checksum", "size and key sum agree with what the threads did"),
    word("prefill", "the structure held exactly the keys asked for when the window opened"),
    word("pinning", "each thread ran on the CPU asked for, as the kernel tells"),
    word("duration", "each thread measured for as long as asked"),
    word("allocator", "the allocator asked for really served the process"),
    word("fairness", "no thread did far more than another"),
    word("identity", "each record is of a planned trial and asked for what the plan says"),
    word(
        "empty",
        "lookups in empty structures scale with the threads as in one that stores nothing; a structure that takes far \
         longer than the others is named",
    ),
    word("read-only", "lookups in filled structures scale with the threads"),
    word("layout", "nodes lie together, and those of two threads share no cache line"),
    word("trial-length", "longer trials are as fast, and as fast at their end as at their start"),
    word("key-range", "no claim that is silent about the key range is contradicted at another size"),
    word("leaks", "nothing is leaked and no freed memory is read, as memcheck and the balance of allocations tell"),
    word(
        "contention",
        "with updates only, on no more keys than threads, every trial ends, its sums hold and no thread starves",
    ),
    word("reclamation", "what is removed is given back while the trial lasts"),
    word("variance", "the trials of a cell agree, fall into one group, and do not change with their order"),
    word("harness-overhead", "the harness takes little of the fastest cell's time, and no setting of it adds to that"),
    word(
        "generator",
        "the streams of keys and operations of this plan are sound, when they are drawn again and examined",
    ),
    word("interference", "no other process, hypervisor, device, swapping or throttling took the CPUs of a trial"),
    word("false-sharing", "threads do not write to cache lines of the harness that others use"),
    word("apples", "compared cells differ in their structure only, and the same share of their updates takes effect"),
    word("aa", "a cell against itself is not told apart, and what is told apart differs by more"),
];

/// Returns the names in a list, in order.
pub fn names(words: &'static [Word]) -> impl Iterator<Item = &'static str> {
    words.iter().map(|word| word.name)
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
        assert!(names(RECLAMATION).eq(Reclamation::ALL.iter().map(|scheme| scheme.name())));
        assert!(names(ALLOCATORS).eq(Allocator::LINKED.iter().copied()));
    }
}
