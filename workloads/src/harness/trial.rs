//! Conducts one trial: starts the threads, makes the structure, and measures between the phases.

use std::{
    any::Any,
    mem,
    sync::{PoisonError, RwLock},
    thread::{self, Scope, ScopedJoinHandle},
};

use super::{
    clock,
    crew::{Crew, Gate},
    fault, kernel,
    member::{self, Failure, Report, Stage},
    memory,
    pin::{self, AllowedCpus},
    repertoire::Repertoire,
};
use crate::{
    alloc::{Counts, Dispatch},
    families::set::ConcurrentSet,
    keys::KeyPlan,
    nodes,
    protocol::{Accounting, Audit, Counter, Length, Memory, Prefill, Request, Sample, ThreadLayout, ThreadReply},
    watch::{self, Switch},
};

/// Time between two samples of the throughput.
const SAMPLE_NS: u64 = 100_000_000;

/// What a trial measured; the worker adds what it proved of the process.
#[derive(Debug)]
pub struct Measurements {
    /// How the prefill ended.
    pub prefill: Prefill,
    /// One entry per thread, in thread order.
    pub threads: Vec<ThreadReply>,
    /// Total operations at moments of the window.
    pub samples: Vec<Sample>,
    /// The structure's own walk before the window.
    pub audit_before: Audit,
    /// The structure's own walk after the window.
    pub audit_after: Audit,
    /// Memory of the process and of its parts.
    pub memory: Memory,
    /// Allocation balance, in accounting trials.
    pub accounting: Option<Accounting>,
    /// The first allocations of each thread, in trials that list them.
    pub layout: Option<Vec<ThreadLayout>>,
    /// Counted events, in trials that count them.
    pub counters: Option<Vec<Counter>>,
    /// CLOCK_MONOTONIC when the first thread was started, in nanoseconds.
    pub threads_started_ns: u64,
    /// Wall time of both audits, in nanoseconds.
    pub audit_ns: u64,
    /// Wall time of dropping the structure, in nanoseconds; 0 if it was not dropped.
    pub drop_ns: u64,
    /// The structure of a timed trial, whole: taking a large one apart takes longer than the trial, so the worker leaves it
    /// to the end of the process.
    pub structure: Option<Box<dyn Any + Send>>,
}

/// Runs one trial of the structure `S`, asking of it what `P` has.
///
/// # Errors
/// In words: what could not be done as the request asks, or the message of a panic in a thread.
pub(crate) fn run<S: ConcurrentSet, P: Repertoire<S>>(request: &Request) -> Result<Measurements, String> {
    let accounting = matches!(request.length, Length::Accounting { .. });
    if accounting {
        Dispatch::start_counting()?;
    }
    watch::begin(request.watch.as_ref())?;
    let n_threads = u32::try_from(request.cpus.len()).map_err(|_| "too many threads".to_owned())?;
    if n_threads == 0 {
        return Err("a trial needs at least one thread".to_owned());
    }
    if request.mix.range > 0 && !P::HAS_RANGES {
        return Err(format!("`{}` has no range query", request.structure));
    }
    let stage = Stage::<S> {
        request,
        crew: Crew::new(n_threads, request.harness.padding),
        key_plan: KeyPlan::of(request)?,
        set: RwLock::new(None),
    };
    let (conducted, reports) = thread::scope(|scope| {
        let _watch = stage.crew.watch();
        let (threads, started) = start_threads::<S, P>(scope, &stage);
        let conducted = started.map_err(Failure::from).and_then(|started_ns| conduct(&stage, started_ns));
        if conducted.is_err() {
            stage.crew.abandon();
        }
        (conducted, threads.into_iter().map(join).collect::<Vec<_>>())
    });
    let (conducted, reports) = root_cause(conducted, reports)?;
    let set = stage.set.into_inner().unwrap_or_else(PoisonError::into_inner).ok_or("the structure was not made")?;
    Ok(finish(set, conducted, reports, request))
}

/// What the conducting thread saw up to the end of the window.
struct Conducted {
    threads_started_ns: u64,
    prefill_wall_ns: u64,
    samples: Vec<Sample>,
    audit_before: Audit,
    audit_ns: u64,
    memory: Memory,
    /// Allocations of making the structure.
    made_counts: Counts,
    /// Allocations of the audit before the window, less what the audit's own text holds.
    audit_counts: Counts,
}

/// A thread that was started.
type Member<'scope> = ScopedJoinHandle<'scope, Result<Report, Failure>>;

/// Starts each thread on its CPU: it inherits the pin of this one, so that nothing of it is ever elsewhere. Returns the
/// threads started even when a later one could not be, and when the first one was.
fn start_threads<'scope, 'env, S: ConcurrentSet, P: Repertoire<S>>(
    scope: &'scope Scope<'scope, 'env>,
    stage: &'env Stage<'_, S>,
) -> (Vec<Member<'scope>>, Result<u64, String>) {
    let started_ns = clock::now_ns();
    let mut threads = Vec::with_capacity(stage.request.cpus.len());
    let mut start_all = || {
        let allowed = AllowedCpus::of_this_thread()?;
        for thread_idx in 0..stage.request.cpus.len() as u32 {
            fault::pin(stage.request, thread_idx).map_or_else(|| allowed.restore(), pin::pin_to)?;
            let thread = thread::Builder::new()
                .spawn_scoped(scope, move || member::run::<S, P>(stage, thread_idx))
                .map_err(|error| format!("cannot start thread {thread_idx}: {error}"))?;
            threads.push(thread);
        }
        allowed.restore()
    };
    let outcome = start_all();
    (threads, outcome.map(|()| started_ns))
}

/// Leads the threads through the phases.
fn conduct<S: ConcurrentSet>(stage: &Stage<'_, S>, threads_started_ns: u64) -> Result<Conducted, Failure> {
    let Stage { request, crew, set, .. } = stage;
    kernel::prefer_prompt_waking();
    // Before the window, so that the sampler allocates nothing in it.
    let mut samples = Vec::with_capacity(n_samples_max(fault::window_ns(request)));
    let mut switch = Switch::open(request.watch.as_ref())?;
    crew.all_arrived(Gate::Ready)?;
    let harness = memory::resident()?;
    let (made_counts, made) = Counts::during(|| S::new(&request.structure_parameters));
    *set.write().unwrap_or_else(PoisonError::into_inner) = Some(made);

    let fill_ns = clock::now_ns();
    crew.open(Gate::Ready);
    crew.all_arrived(Gate::Filled)?;
    let prefill_wall_ns = clock::now_ns() - fill_ns;
    let prefilled = memory::resident()?;
    let audit_ns = clock::now_ns();
    let (mut audit_counts, audit_before) = {
        let mut set = set.write().unwrap_or_else(PoisonError::into_inner);
        let set = set.as_mut().expect("made above");
        Counts::during(|| set.audit())
    };
    exclude_text(&mut audit_counts, &audit_before);
    let audit_ns = clock::now_ns() - audit_ns;

    switch.turn_on()?;
    crew.open(Gate::Filled);
    watch_window(crew, fault::window_ns(request), &mut samples)?;
    crew.all_arrived(Gate::Closed)?;
    switch.turn_off()?;
    if !is_timed(request.length) {
        samples.push(sample(crew, crew.opened_ns()?));
    }
    // In this order: reading the files of the kernel may allocate.
    let unreclaimed_objects = member::with_set(stage, |set| Ok(set.unreclaimed()))?;
    let peak_bytes = memory::peak_bytes()?;
    let end = memory::resident()?;
    // The kernel raises the peak only now and then; it was at least what was seen.
    let peak_bytes = [prefilled.bytes, end.bytes].into_iter().fold(peak_bytes, u64::max);
    let memory = Memory {
        harness_bytes: harness.bytes,
        prefilled_bytes: prefilled.bytes,
        end_bytes: end.bytes,
        peak_bytes,
        huge_page_bytes: end.huge_page_bytes,
        unreclaimed_objects,
    };
    crew.open(Gate::Closed);
    Ok(Conducted {
        threads_started_ns,
        prefill_wall_ns,
        samples,
        audit_before,
        audit_ns,
        memory,
        made_counts,
        audit_counts,
    })
}

/// Samples the throughput and sets the stop flag when the window has lasted as long as asked, from the opening stamp on.
fn watch_window(crew: &Crew, length_ns: Option<u64>, samples: &mut Vec<Sample>) -> Result<(), Failure> {
    let opened_ns = crew.opened_ns()?;
    samples.push(Sample { at_ns: 0, operations: 0 });
    let Some(length_ns) = length_ns else { return Ok(()) };
    let end_ns = opened_ns.saturating_add(length_ns);
    let mut next_ns = opened_ns + SAMPLE_NS;
    while next_ns < end_ns && !crew.is_abandoned() {
        clock::sleep_until(next_ns);
        samples.push(sample(crew, opened_ns));
        next_ns += SAMPLE_NS;
    }
    if !crew.is_abandoned() {
        clock::sleep_until(end_ns);
    }
    // Relaxed: the threads read nothing because of it.
    crew.stop().store(true, std::sync::atomic::Ordering::Relaxed);
    samples.push(sample(crew, opened_ns));
    Ok(())
}

/// Tells whether the window is a time, and not a number of operations.
fn is_timed(length: Length) -> bool {
    matches!(length, Length::Nanos(_))
}

fn sample(crew: &Crew, opened_ns: u64) -> Sample {
    let operations = crew.completed();
    Sample { at_ns: clock::now_ns() - opened_ns, operations }
}

/// The opening, one each [`SAMPLE_NS`], and the end.
fn n_samples_max(length_ns: Option<u64>) -> usize {
    length_ns.map_or(0, |length_ns| usize::try_from(length_ns / SAMPLE_NS).unwrap_or(0)) + 2
}

/// Turns a panic of a thread into its message.
fn join(thread: Member<'_>) -> Result<Report, Failure> {
    thread.join().unwrap_or_else(|panic| Err(Failure::Reason(format!("a thread panicked: {}", panic_message(&*panic)))))
}

/// Returns the message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}

/// Returns everything, or the first reason that is not the giving up of another.
fn root_cause(
    conducted: Result<Conducted, Failure>,
    reports: Vec<Result<Report, Failure>>,
) -> Result<(Conducted, Vec<Report>), String> {
    let mut kept = Vec::with_capacity(reports.len());
    let mut abandoned = false;
    for report in reports {
        match report {
            Ok(report) => kept.push(report),
            Err(Failure::Reason(reason)) => return Err(reason),
            Err(Failure::Abandoned) => abandoned = true,
        }
    }
    match conducted {
        Ok(conducted) if !abandoned => Ok((conducted, kept)),
        Err(Failure::Reason(reason)) => Err(reason),
        _ => Err("the trial was abandoned for a reason that no thread tells".to_owned()),
    }
}

/// Walks the structure once more, drops it if the window was a number of operations, and puts everything together.
fn finish<S: ConcurrentSet>(mut set: S, conducted: Conducted, reports: Vec<Report>, request: &Request) -> Measurements {
    let audit_ns = clock::now_ns();
    let (mut audit_counts, audit_after) = Counts::during(|| set.audit());
    let audit_ns = conducted.audit_ns + clock::now_ns() - audit_ns;
    exclude_text(&mut audit_counts, &audit_after);

    let (accounting, drop_ns, structure) = if is_timed(request.length) {
        (None, 0, Some(Box::new(set) as Box<dyn Any + Send>))
    } else {
        let drop_ns = clock::now_ns();
        let (mut counts, ()) = Counts::during(|| {
            drop(set);
            nodes::flush_this_thread();
        });
        let drop_ns = clock::now_ns() - drop_ns;
        for part in [conducted.made_counts, conducted.audit_counts, audit_counts] {
            counts += part;
        }
        let is_counted = matches!(request.length, Length::Accounting { .. });
        (is_counted.then(|| balance_of(conducted.made_counts, counts, &reports)), drop_ns, None)
    };
    let prefill = Prefill {
        target: request.prefill_keys,
        per_thread: reports.iter().map(|report| report.filled.n_keys).collect(),
        key_sum: reports.iter().fold(0, |sum, report| sum.wrapping_add(report.filled.key_sum)),
        wall_ns: conducted.prefill_wall_ns,
    };
    let (threads, seen) = reports.into_iter().map(|report| (report.thread, report.seen)).unzip();
    let sight = watch::together(seen);
    Measurements {
        prefill,
        threads,
        samples: conducted.samples,
        audit_before: conducted.audit_before,
        audit_after,
        memory: conducted.memory,
        accounting,
        layout: sight.layout,
        counters: sight.counters,
        threads_started_ns: conducted.threads_started_ns,
        audit_ns,
        drop_ns,
        structure,
    }
}

/// Adds the threads' counts to those of the conducting one: only the sums are balances.
fn balance_of(made: Counts, conducting: Counts, reports: &[Report]) -> Accounting {
    let (mut prefilled, mut window, mut whole) = (made, Counts::NONE, conducting);
    for report in reports {
        prefilled += report.filled.counts;
        window += report.window_counts;
        whole += report.counts;
    }
    Accounting {
        prefilled: prefilled.balance(),
        allocations: window.allocations,
        allocated_bytes: window.allocated_bytes,
        frees: window.frees,
        after_drop: whole.balance(),
    }
}

/// Takes the text that an audit returns, which outlives the structure, out of the structure's balance.
fn exclude_text(counts: &mut Counts, audit: &Audit) {
    let violations = &audit.violations;
    let table_bytes = violations.capacity() * mem::size_of::<String>();
    let blocks = violations.iter().map(String::capacity).chain([table_bytes]).filter(|&bytes| bytes > 0);
    for bytes in blocks {
        counts.frees += 1;
        counts.freed_bytes += bytes as u64;
    }
}
