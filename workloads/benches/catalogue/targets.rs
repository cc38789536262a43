//! What the best public implementation of each algorithm reaches, as a ratio to the crate crossbeam-skiplist in the same
//! cell.
//!
//! Measured apart, each with its own harness: the structures of SetBench (with its clock read per operation repaired), of
//! ASCYLIB and of synchrobench, those of smr-benchmark under epochs, and crates; the best version of each algorithm.
//! Fresh processes, pinned threads, prefilled to half, jemalloc, 3 s a trial, medians of one to five, on a guest with 2
//! cores of a Xeon (48 KiB L1d, 2 MiB L2). Differences under 10 % are noise there, and another processor weighs caches
//! and locked instructions otherwise, so a ratio that is missed by little elsewhere says little.

/// Printed above the tables.
pub(super) const NOTE: &str = "Targets: the best public implementation's ratio to crossbeam-skiplist in the same cell \
    (SetBench, ASCYLIB, synchrobench, smr-benchmark, crates), measured apart on a 2-core guest of a Xeon; lists in Mops/s \
    there. `aim` is 1.15 times that for the structures that are to beat it.";

/// A cell: key range, mix, threads.
type Cell = (u64, &'static str, u32);

/// The cells of [`RATIOS`], in the order of its columns.
const CELLS: [Cell; 10] = [
    (100, "0/0/100", 2),
    (100, "50/50/0", 1),
    (100, "50/50/0", 2),
    (100_000, "0/0/100", 1),
    (100_000, "0/0/100", 2),
    (100_000, "10/10/80", 2),
    (100_000, "50/50/0", 1),
    (100_000, "50/50/0", 2),
    (10_000_000, "0/0/100", 2),
    (10_000_000, "50/50/0", 2),
];

/// Not measured.
const NONE: f64 = f64::NAN;

/// Ratios by structure.
#[rustfmt::skip]
const RATIOS: &[(&str, [f64; 10])] = &[
    ("nm14",         [0.98, 1.82, 2.33, 0.84, 0.87, 0.97, 0.99, 1.35,  1.01,  0.96]),
    ("efrb10",       [0.73, 1.26, 1.77, 0.73, 0.76, 0.87, 0.94, 1.24,  0.76,  0.87]),
    ("bcco10",       [0.98, 1.47, 1.59, 1.01, 0.99, 1.06, 1.08, 1.33,  1.15,  0.95]),
    ("citrus14",     [0.46, 1.52, 1.19, 0.95, 0.74, NONE, 0.80, 0.90,  NONE,  NONE]),
    ("dgt15",        [1.30, 2.04, 2.48, 0.83, 0.92, 1.24, 0.95, 1.36,  0.86,  0.87]),
    ("abtree17",     [0.80, 1.29, 0.86, 1.63, 1.61, 1.43, 1.64, 1.64,  2.91,  2.60]),
    ("occ-abtree22", [0.62, 1.04, 1.60, 1.28, 1.31, 1.28, 1.34, 1.74,  2.06,  2.11]),
    ("fraser03",     [1.07, 1.08, 1.34, 0.81, 0.84, 0.88, 0.99, 1.14,  0.69,  0.65]),
    ("scc-tree",     [0.85, 0.71, 0.98, 0.93, 0.96, 0.82, 0.68, 1.05,  NONE,  NONE]),
    ("mutex-btree",  [0.18, 2.14, 1.73, 2.05, 0.61, 0.68, 2.55, 1.01,  1.34,  1.32]),
    ("rwlock-btree", [0.34, 2.11, 2.24, 2.08, 1.39, NONE, 2.59, 0.96,  NONE,  NONE]),
    ("dashmap",      [0.73, 3.52, 2.28, 6.54, 2.88, 2.90, 7.64, 3.52, 11.56,  8.50]),
    ("papaya",       [1.33, 1.96, 1.06, 5.63, 5.57, 2.41, 3.97, 1.37, 10.26,  3.81]),
    ("scc-hash",     [0.34, 2.64, 2.70, 5.13, 3.12, 3.68, 6.41, 5.35, 13.17, 12.99]),
];

/// Lists, in millions of operations per second: there was no base in the longer cells.
const RATES: &[(&str, Cell, f64)] = &[
    ("harris01", (100, "50/50/0", 1), 11.25),
    ("lazy05", (100, "50/50/0", 1), 13.24),
    ("harris01", (100, "50/50/0", 2), 8.96),
    ("lazy05", (100, "50/50/0", 2), 9.87),
    ("harris01", (1_000, "0/0/100", 2), 4.08),
    ("lazy05", (1_000, "0/0/100", 2), 4.87),
    ("harris01", (1_000, "50/50/0", 2), 3.04),
    ("lazy05", (1_000, "50/50/0", 2), 3.53),
];

/// These are to be faster than the best by [`LEAD`].
const LEADERS: [&str; 5] = ["nm14", "bcco10", "dgt15", "abtree17", "occ-abtree22"];
const LEAD: f64 = 1.15;

/// What a structure is to reach in a cell.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// So many times the base.
    Ratio(f64),
    /// So many millions of operations per second.
    Rate(f64),
}

impl Target {
    /// Judges a median beside that of the base in the same cell.
    pub(super) fn judge(self, structure: &str, median: f64, base: Option<f64>) -> String {
        let (best, reached, unit) = match self {
            Self::Ratio(best) => match base {
                Some(base) => (best, median / base / best, "x"),
                None => return format!("{best:6.2}x not judged, without the base"),
            },
            Self::Rate(best) => (best, median / best, " M"),
        };
        let word = if reached < 1.0 {
            "missed"
        } else if LEADERS.contains(&structure) && reached >= LEAD {
            "aim reached"
        } else {
            "reached"
        };
        format!("{best:6.2}{unit} {word} ({:.0} %)", reached * 100.0)
    }
}

/// Returns what the structure is to reach with that key range, mix and number of threads, if anything is known.
pub(super) fn of(structure: &str, n_keys: u64, mix: &str, n_threads: u32) -> Option<Target> {
    let cell = (n_keys, mix, n_threads);
    let rate = RATES.iter().find(|&&(name, at, _)| name == structure && at == cell);
    if let Some(&(_, _, rate)) = rate {
        return Some(Target::Rate(rate));
    }
    let column = CELLS.iter().position(|&at| at == cell)?;
    let (_, row) = RATIOS.iter().find(|&&(name, _)| name == structure)?;
    Some(row[column]).filter(|ratio| !ratio.is_nan()).map(Target::Ratio)
}
