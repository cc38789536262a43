//! What a plan will take: wall time, disk and memory.
//!
//! Rough by nature: it is there to choose between minutes and days, and to refuse what cannot fit. Each constant errs
//! on the side of too much. Must not read the machine: whoever knows it passes its CPUs.

use rare_workloads::{
    keys::{ALIAS_KEYS_MAX, STREAM_KEYS},
    protocol::{Distribution, Mix, Reclamation},
    structures::{self, Reclaims},
};

use super::{
    model::{BlockKind, Cell, Plan},
    probe::{Mode, Probe},
};
use crate::units::{Bytes, Nanos};

/// What a plan is expected to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Wall time of all trials, one after another.
    pub wall: Nanos,
    /// Size of the records.
    pub disk: Bytes,
    /// Memory of the largest trial.
    pub memory: Bytes,
}

/// Process start, proofs, fsync and record of a trial: the overhead that a run may have in the median.
const TRIAL_OVERHEAD: Nanos = Nanos(10_000_000);

/// Insert of one key in a tree of millions, where each level is a cache miss, by one thread. Audits and keys that are
/// drawn twice are within it.
const PREFILL_KEY: Nanos = Nanos(500);

/// Draw of one key of a stream that a thread prepares where keys are skewed over a large range.
const STREAM_KEY: Nanos = Nanos(100);

/// Operations of each thread in an accounting trial. Fixed, so that its counts can be compared between machines, and
/// few, because nothing is timed: enough for some hundred allocations even at 1 % of updates.
pub const ACCOUNTING_OPERATIONS: u64 = 20_000;

/// An accounting trial runs [`ACCOUNTING_OPERATIONS`] under the counting hook, not for a time. Range queries come on top.
const ACCOUNTING_WINDOW: Nanos = Nanos(200_000_000);

/// A range query reads one key, next to the one before.
const RANGE_KEY: Nanos = Nanos(10);

/// A record without its threads and samples: request, proofs, audits and digest.
const RECORD: Bytes = Bytes(3_000);

/// What a record holds of one thread.
const RECORD_THREAD: Bytes = Bytes(900);

/// One sample of the throughput in a record.
const RECORD_SAMPLE: Bytes = Bytes(50);

/// Samples are taken this often.
const SAMPLE_INTERVAL: Nanos = Nanos(100_000_000);

/// The worker before the structure is made, allocator and code included.
const WORKER: Bytes = Bytes(16 << 20);

/// Stack, allocator cache and counters of one thread.
const THREAD: Bytes = Bytes(2 << 20);

/// One key: a leaf and an inner node of 48 bytes each, as an external tree has, with the allocator's rounding.
const KEY: Bytes = Bytes(128);

/// Removes that one thread can complete in a second in a structure that fits in its cache, if it does nothing else.
const REMOVES_PER_SECOND: u64 = 10_000_000;

impl Plan {
    /// Estimates what the plan takes on a machine that allows `n_cpus` CPUs, at least 1: that is what the thread count
    /// `all` becomes.
    pub fn estimate(&self, n_cpus: u32) -> Estimate {
        let mut total = Totals::default();
        let costs: Vec<Cost> = (0..self.n_cells()).map(|cell_idx| Cost::of(self.cell(cell_idx), n_cpus)).collect();
        for block in &self.blocks {
            match block.kind {
                BlockKind::Measure => costs.iter().for_each(|cost| total.add(cost, cost.window)),
                BlockKind::Account => costs.iter().for_each(|cost| total.add(cost, cost.accounting_window)),
                BlockKind::Probe => {}
            }
        }
        for probe in &self.probes {
            let cost = Cost::of_probe(probe, n_cpus);
            (0..probe.n_trials).for_each(|_| total.add(&cost, cost.window));
        }
        Estimate { wall: Nanos(clamp(total.wall)), disk: Bytes(clamp(total.disk)), memory: Bytes(clamp(total.memory)) }
    }
}

/// Sums that cannot overflow.
#[derive(Default)]
struct Totals {
    wall: u128,
    disk: u128,
    memory: u128,
}

impl Totals {
    fn add(&mut self, cost: &Cost, window: u128) {
        self.wall += window + cost.around;
        self.disk += cost.record;
        self.memory = self.memory.max(cost.memory);
    }
}

/// What one trial of a cell takes: nanoseconds and bytes.
struct Cost {
    window: u128,
    accounting_window: u128,
    /// Wall time besides the window.
    around: u128,
    record: u128,
    memory: u128,
}

impl Cost {
    fn of(cell: Cell<'_>, n_cpus: u32) -> Self {
        let threads = u128::from(cell.threads().on(n_cpus));
        // Threads beyond the CPUs do not make the prefill faster.
        let in_parallel = threads.min(n_cpus.into()).max(1);
        let prefill_keys = u128::from(cell.prefill().keys(cell.key_range()));
        let window = u128::from(cell.trial_length().0);
        let stream_keys = stream_keys(cell);
        let n_samples = window / u128::from(SAMPLE_INTERVAL.0) + 1;
        let range = range_nanos(cell);
        let share = u128::from(cell.mix().range);
        let accounted_ranges = u128::from(ACCOUNTING_OPERATIONS) * share / u128::from(Mix::WHOLE);
        Self {
            window,
            accounting_window: u128::from(ACCOUNTING_WINDOW.0) + accounted_ranges * range * threads,
            // The window ends with the last query.
            around: u128::from(TRIAL_OVERHEAD.0)
                + range
                + prefill_keys * u128::from(PREFILL_KEY.0) / in_parallel
                + stream_keys * u128::from(STREAM_KEY.0) * threads / in_parallel,
            record: u128::from(RECORD.0)
                + threads * u128::from(RECORD_THREAD.0)
                + n_samples * u128::from(RECORD_SAMPLE.0),
            memory: u128::from(WORKER.0)
                + threads * (u128::from(THREAD.0) + stream_keys * size_of::<u64>() as u128)
                + most_keys(cell) * u128::from(KEY.0)
                + in_parallel * leaked_by_thread(cell),
        }
    }
}

impl Cost {
    /// A tool takes time to begin and to end, and slows the prefill down; where a trial ends after some operations, they
    /// are done by then.
    fn of_probe(probe: &Probe, n_cpus: u32) -> Self {
        let cost = Self::of(probe.cell(), n_cpus);
        let (begin_and_end, slowness) = match probe.mode {
            Mode::Timed | Mode::Account | Mode::Layout | Mode::Counters => (Nanos(0), 1),
            Mode::Sample => (Nanos(1_500_000_000), 1),
            Mode::Memcheck => (Nanos(1_000_000_000), 15),
            Mode::Simulate => (Nanos(1_000_000_000), 30),
        };
        let window = match probe.mode {
            Mode::Account => cost.accounting_window,
            mode if mode.operations().is_some() => 0,
            _ => cost.window,
        };
        Self { window, around: cost.around * slowness + u128::from(begin_and_end.0), ..cost }
    }
}

/// Keys that each thread draws beforehand.
fn stream_keys(cell: Cell<'_>) -> u128 {
    match cell.distribution() {
        Distribution::Zipf(_) if cell.key_range() > ALIAS_KEYS_MAX => STREAM_KEYS as u128,
        Distribution::Zipf(_) | Distribution::Uniform => 0,
    }
}

/// Time of one range query that finds every key it asks for.
fn range_nanos(cell: Cell<'_>) -> u128 {
    let keys = cell.range_keys().unwrap_or(0).min(cell.key_range());
    u128::from(keys) * u128::from(RANGE_KEY.0)
}

/// Keys that the structure may come to hold: the whole range where anything is inserted.
fn most_keys(cell: Cell<'_>) -> u128 {
    let keys = if cell.mix().insert > 0 { cell.key_range() } else { cell.prefill().keys(cell.key_range()) };
    keys.into()
}

/// Bytes of removed nodes that one busy thread leaves behind in the window where nothing is ever reclaimed. A key can
/// be removed only once for each insert, and about half of the attempts meet a key that is there.
fn leaked_by_thread(cell: Cell<'_>) -> u128 {
    let reclaims = structures::find(&cell.structure().name).map(|structure| structure.info.reclaims);
    if cell.reclamation() != Reclamation::None
        || matches!(reclaims, Some(Reclaims::AtOnce | Reclaims::Own | Reclaims::Nothing))
    {
        return 0;
    }
    let share = u128::from(cell.mix().insert.min(cell.mix().remove));
    let removes = u128::from(cell.trial_length().0) * u128::from(REMOVES_PER_SECOND) / 1_000_000_000;
    removes * share / u128::from(Mix::WHOLE) / 2 * u128::from(KEY.0)
}

fn clamp(total: u128) -> u64 {
    u64::try_from(total).unwrap_or(u64::MAX)
}

/// Writes a duration with two digits or so, such as `about 3.2 h`.
pub fn rough_duration(duration: Nanos) -> String {
    const UNITS: [(u64, &str); 5] = [
        (86_400_000_000_000, "d"),
        (3_600_000_000_000, "h"),
        (60_000_000_000, "min"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
    ];
    rough(duration.0, &UNITS)
}

/// Writes a size with two digits or so, such as `about 1.5 GiB`.
pub fn rough_size(size: Bytes) -> String {
    const UNITS: [(u64, &str); 5] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")];
    rough(size.0, &UNITS)
}

/// Writes `amount` in the largest of `units` (size and name, descending) that it fills, with one decimal below ten.
fn rough(amount: u64, units: &[(u64, &str)]) -> String {
    let smallest = units.last().expect("there is at least one unit");
    let (size, unit) = units.iter().find(|(size, _)| amount >= *size).unwrap_or(smallest);
    let tenths = (u128::from(amount) * 10 + u128::from(size / 2)) / u128::from(*size);
    match (tenths / 10, tenths % 10) {
        (whole @ 0..10, tenth @ 1..) => format!("about {whole}.{tenth} {unit}"),
        (whole, _) => format!("about {whole} {unit}"),
    }
}
