//! One thread of a trial: pins itself, inserts its share, runs the window, and reports.

use std::sync::{PoisonError, RwLock};

use super::{
    clock,
    crew::{Abandoned, Crew, Gate},
    fault,
    kernel::{Migrations, Usage},
    pin::{self, AllowedCpus},
    repertoire::Repertoire,
    window::{self, Ask, Countdown, Done, Flag, Generator, Ranges},
};
use crate::{
    alloc::Counts,
    families::set::{ConcurrentSet, SetHandle},
    keys::{KeyPlan, KeySource, PrefillShare, ThreadKeys},
    nodes,
    protocol::{Length, Request, ThreadReply, TimeCheck},
    watch::{Seen, Watcher},
};

/// What all threads of a trial share.
pub(crate) struct Stage<'r, S> {
    pub request: &'r Request,
    pub crew: Crew,
    pub key_plan: KeyPlan,
    /// Read by the threads within a phase, written between phases: the walk of the structure needs it alone. `None` until
    /// every thread is ready, so that memory before it is the harness's.
    pub set: RwLock<Option<S>>,
}

/// What one thread hands in.
pub(crate) struct Report {
    pub filled: Filled,
    pub thread: ThreadReply,
    /// Its allocations in the window.
    pub window_counts: Counts,
    /// All its allocations of the structure, the window's among them.
    pub counts: Counts,
    /// What its watcher saw.
    pub seen: Seen,
}

/// The share of the prefill that one thread inserted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Filled {
    pub n_keys: u64,
    pub key_sum: u64,
    pub counts: Counts,
}

/// Why a thread handed in nothing.
pub(crate) enum Failure {
    /// Another one failed first.
    Abandoned,
    /// In words.
    Reason(String),
}

impl From<Abandoned> for Failure {
    fn from(_: Abandoned) -> Self {
        Self::Abandoned
    }
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self::Reason(reason)
    }
}

/// Which thread of the trial it is, where it runs, and what watches it.
pub(crate) struct Place<'w> {
    pub thread_idx: u32,
    pin: Pin,
    watcher: &'w mut Watcher,
}

/// What the window of one thread allocated and did.
pub(crate) type Measured = (Counts, ThreadReply);

/// Where the thread may run: as asked, and as the kernel says.
struct Pin {
    cpu_asked: Option<u32>,
    cpus_allowed: Vec<u32>,
}

impl Pin {
    fn new(request: &Request, thread_idx: u32) -> Result<Self, Failure> {
        fault::pin(request, thread_idx).map_or(Ok(()), pin::pin_to)?;
        let cpu_asked = request.cpus[thread_idx as usize];
        Ok(Self { cpu_asked, cpus_allowed: AllowedCpus::of_this_thread()?.numbers() })
    }
}

/// The body of one thread; a failure or a panic abandons the trial for all.
pub(crate) fn run<S: ConcurrentSet, P: Repertoire<S>>(
    stage: &Stage<'_, S>,
    thread_idx: u32,
) -> Result<Report, Failure> {
    let _watch = stage.crew.watch();
    let report = phases::<S, P>(stage, thread_idx);
    if report.is_err() {
        stage.crew.abandon();
    }
    report
}

fn phases<S: ConcurrentSet, P: Repertoire<S>>(stage: &Stage<'_, S>, thread_idx: u32) -> Result<Report, Failure> {
    let request = stage.request;
    // First of all, so that no memory comes from another node. The thread was started on that CPU already.
    let pin = Pin::new(request, thread_idx)?;
    let mut watcher = Watcher::of_this_thread(request.watch.as_ref());
    let keys = stage.key_plan.thread(request.seed, thread_idx);
    warm_parking_lot();

    stage.crew.pass(Gate::Ready)?;
    let filled = with_set(stage, |set| Ok(fill(set, request, thread_idx, &mut watcher)))?;
    stage.crew.pass(Gate::Filled)?;
    let (thread, mut counts, window_counts) = with_set(stage, |set| {
        let (mut counts, mut handle) = Counts::during(|| set.handle());
        let place = Place { thread_idx, pin, watcher: &mut watcher };
        let outcome = match keys {
            ThreadKeys::Uniform(keys) => P::measure(stage, &mut handle, keys, place),
            ThreadKeys::Alias(keys) => P::measure(stage, &mut handle, keys, place),
            ThreadKeys::Stream(keys) => P::measure(stage, &mut handle, keys, place),
            ThreadKeys::Remainder(keys) => P::measure(stage, &mut handle, keys, place),
        };
        let (window_counts, thread) = outcome?;
        // Handles live on until memory was measured: what they hold back is part of it.
        stage.crew.pass(Gate::Closed)?;
        counts += window_counts;
        counts += Counts::during(|| drop(handle)).0;
        counts += Counts::during(nodes::flush_this_thread).0;
        Ok((thread, counts, window_counts))
    })?;
    counts += filled.counts;
    Ok(Report { filled, thread, window_counts, counts, seen: watcher.seen() })
}

/// Lends the structure for one phase.
pub(crate) fn with_set<S, T>(
    stage: &Stage<'_, S>,
    action: impl FnOnce(&S) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let set = stage.set.read().unwrap_or_else(PoisonError::into_inner);
    // Nothing is there only if making the structure panicked.
    action(set.as_ref().ok_or(Failure::Abandoned)?)
}

/// Inserts this thread's share of the prefill.
fn fill<S: ConcurrentSet>(set: &S, request: &Request, thread_idx: u32, watcher: &mut Watcher) -> Filled {
    let share = PrefillShare { n_threads: request.cpus.len() as u64, thread_idx: u64::from(thread_idx) };
    if fault::draws_with_replacement(request) {
        return insert_all(set, share.draws(request.key_range, request.prefill_keys, request.seed), true, watcher);
    }
    insert_all(set, share.keys(request.key_range, request.prefill_keys, request.seed), false, watcher)
}

/// Inserts keys and counts them; `blindly` those too that were there already.
fn insert_all<S: ConcurrentSet>(
    set: &S,
    keys: impl Iterator<Item = u64>,
    blindly: bool,
    watcher: &mut Watcher,
) -> Filled {
    let prefill = || {
        let mut handle = set.handle();
        let mut filled = Filled::default();
        for key in keys {
            if handle.insert(key, key) || blindly {
                filled.n_keys += 1;
                filled.key_sum = filled.key_sum.wrapping_add(key);
            }
        }
        filled
    };
    let (counts, mut filled) = Counts::during(|| watcher.during_prefill(prefill));
    filled.counts = counts;
    filled
}

/// Returns what ends the window of a thread, unless the stop flag does.
fn countdown(request: &Request, opened_ns: u64) -> Option<Countdown> {
    match (request.length, request.harness.time_check) {
        (Length::Accounting { operations } | Length::Operations { operations }, _) => Some(Countdown::once(operations)),
        (Length::Nanos(_), TimeCheck::Flag) => None,
        (Length::Nanos(_), TimeCheck::Every(batch)) => {
            let window_ns = fault::window_ns(request).unwrap_or(0);
            Some(Countdown::until(opened_ns.saturating_add(window_ns), batch.into()))
        }
    }
}

impl<S> Stage<'_, S> {
    /// Waits at the start line and runs the window between two stamps of everything.
    pub(crate) fn measure<H: SetHandle, K: KeySource, R: Ranges<Query: Ask<H>>>(
        &self,
        handle: &mut H,
        generator: Generator<K, R>,
        place: Place<'_>,
    ) -> Result<Measured, Failure> {
        let Place { thread_idx, pin, watcher } = place;
        let progress = self.crew.progress(thread_idx);
        let migrations = Migrations::of_this_thread();

        let opened_ns = self.crew.start()?;
        if let Some(lateness_ns) = fault::lateness_ns(self.request, thread_idx) {
            clock::sleep_until(opened_ns + lateness_ns);
        }
        let migrations_before = migrations.count();
        let usage_before = Usage::of_this_thread();
        let cpu_at_start = pin::current_cpu();
        let start_ns = clock::now_ns();
        let window = || match countdown(self.request, opened_ns) {
            None => window::run(handle, generator, Flag(self.crew.stop()), progress),
            Some(countdown) => window::run(handle, generator, countdown, progress),
        };
        let (counts, done) = Counts::during(|| watcher.during_window(window));
        let stop_ns = clock::now_ns();
        let cpu_at_end = pin::current_cpu();
        let usage = Usage::of_this_thread().since(usage_before);
        let migrations = migrations.count().and_then(|after| Ok(after - migrations_before?));

        let stop_ns = fault::stop_stamp_ns(self.request, start_ns, stop_ns);
        let Done { operations, inserted_sum, removed_sum } = done;
        let thread = ThreadReply {
            cpu_asked: pin.cpu_asked,
            cpus_allowed: pin.cpus_allowed,
            cpu_at_start,
            cpu_at_end,
            start_ns: start_ns - opened_ns,
            // The clock may stand still for a window of no operations; a stop is after its start all the same.
            stop_ns: stop_ns.max(start_ns + 1) - opened_ns,
            operations,
            inserted_sum,
            removed_sum,
            user_ns: usage.user_ns,
            system_ns: usage.system_ns,
            voluntary_switches: usage.voluntary_switches,
            involuntary_switches: usage.involuntary_switches,
            migrations,
            minor_faults: usage.minor_faults,
            major_faults: usage.major_faults,
        };
        Ok((counts, thread))
    }
}

/// Lets parking_lot make its process-wide table of waiting threads now: it is made when a thread first waits, grows with
/// the threads, and is never freed, so it would be counted as a leak of whichever structure waits first.
fn warm_parking_lot() {
    let mutex = parking_lot::Mutex::new(());
    parking_lot::Condvar::new().wait_for(&mut mutex.lock(), std::time::Duration::ZERO);
}
