//! What makes a trial invalid: a broken law, after which its number says nothing about its cell.
//!
//! An invalid trial is shown with its faults and never summarised. Timing is not a law here: a trial that was disturbed
//! has a true throughput over the time that was measured, and leaving it out would choose trials by their result. The
//! check `duration` reports it.

use std::collections::BTreeSet;

use rare_workloads::{
    protocol::{Audit, Length, Operations, Reply, Request, ThreadReply},
    structures::{self, Adt},
};

use super::throughput;
use crate::{
    plan::{BlockKind, Cell, Mode, Plan},
    record::{Outcome, Trial},
    spec::value::{Allocator, Threads},
};

/// A law that a reply must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Law {
    /// What was asked is what the plan says.
    Request,
    /// Conservation of keys: size and key sum.
    Checksum,
    /// The structure was filled exactly.
    Prefill,
    /// Each thread ran where it was asked to.
    Pinning,
    /// The allocator asked for served the process.
    Allocator,
    /// A throughput can be computed, from stamps that the kernel does not contradict.
    Window,
}

impl Law {
    /// Returns the word used in reports; that of the check that judges the law, where there is one.
    pub fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Checksum => "checksum",
            Self::Prefill => "prefill",
            Self::Pinning => "pinning",
            Self::Allocator => "allocator",
            Self::Window => "window",
        }
    }
}

/// A broken law.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which law.
    pub law: Law,
    /// What was found and what was due.
    pub detail: String,
}

/// Returns every fault of a trial of `plan` with a reply, in the order of [`Law`]; empty for one without.
pub fn faults(trial: &Trial, plan: &Plan) -> Vec<Fault> {
    let (Outcome::Replied(reply), Some(cell)) = (&trial.outcome, plan.cell_of(trial.trial)) else { return Vec::new() };
    let request = &trial.request;
    let laws = [
        (Law::Request, request_faults(trial, plan, cell)),
        (Law::Checksum, checksum_faults(request, reply)),
        (Law::Prefill, prefill_faults(request, reply)),
        (Law::Pinning, pinning_faults(request, reply)),
        (Law::Allocator, allocator_faults(request, reply)),
        (Law::Window, window_faults(reply)),
    ];
    laws.into_iter().flat_map(|(law, details)| details.into_iter().map(move |detail| Fault { law, detail })).collect()
}

/// Tells whether a structure stores nothing: then no key is conserved, and it bounds the harness instead of competing.
pub fn stores_nothing(structure: &str) -> bool {
    structures::find(structure).is_some_and(|structure| structure.info.semantics.adt == Adt::Nothing)
}

fn request_faults(trial: &Trial, plan: &Plan, cell: Cell) -> Vec<String> {
    let request = &trial.request;
    let mut differs = Differences::default();
    differs.unless_equal("structure", &request.structure, &cell.structure().name);
    differs.unless_equal("structure parameters", &request.structure_parameters, &cell.structure().parameters);
    differs.unless_equal("reclamation", &request.reclamation, &cell.reclamation());
    match cell.allocator() {
        Allocator::Linked(name) => differs.unless_equal("allocator", &request.allocator.name.as_str(), name),
        Allocator::Preload(_) => differs.unless_equal("preload", &request.allocator.preload.is_some(), &true),
    }
    if let Threads::Count(threads) = cell.threads() {
        differs.unless_equal("threads", &request.cpus.len(), &(threads as usize));
    }
    differs.unless_equal("key range", &request.key_range, &cell.key_range());
    differs.unless_equal("mix", &request.mix, &cell.mix());
    differs.unless_equal("size of range queries", &request.range_keys, &cell.range_keys());
    differs.unless_equal("distribution", &request.distribution, &cell.distribution());
    if !stores_nothing(&request.structure) {
        differs.unless_equal("prefill", &request.prefill_keys, &cell.prefill().keys(cell.key_range()));
    }
    differs.unless_equal("nice level", &request.nice, &i32::from(cell.priority()));
    differs.unless_equal("nodes", &request.nodes, &cell.nodes());
    differs.unless_equal("harness", &Some(request.harness), &cell.harness().ok());
    let mode = plan.probe_of(trial.trial).map(|probe| probe.mode);
    match (trial.trial.kind, mode.and_then(Mode::operations), request.length) {
        (BlockKind::Account, _, Length::Accounting { .. }) => {}
        (BlockKind::Probe, Some(planned), Length::Operations { operations }) if mode != Some(Mode::Account) => {
            differs.unless_equal("operations", &operations, &planned);
        }
        (BlockKind::Probe, Some(planned), Length::Accounting { operations }) if mode == Some(Mode::Account) => {
            differs.unless_equal("operations", &operations, &planned);
        }
        (BlockKind::Measure | BlockKind::Probe, None, Length::Nanos(asked)) => {
            differs.unless_equal("trial length", &asked, &cell.trial_length().0);
        }
        (kind, _, length) => differs.0.push(format!("{length:?} was asked of a trial of kind {}", kind.name())),
    }
    differs.0
}

/// Collects what differs between a request and its cell.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn unless_equal<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, asked: &T, planned: &T) {
        if asked != planned {
            self.0.push(format!("{what} {asked:?} was asked of the worker, {planned:?} is planned"));
        }
    }
}

fn checksum_faults(request: &Request, reply: &Reply) -> Vec<String> {
    let mut details = Vec::new();
    for (when, audit) in [("before", &reply.audit_before), ("after", &reply.audit_after)] {
        details.extend(audit.violations.iter().map(|violation| format!("{when} the window: {violation}")));
    }
    for (thread_idx, thread) in reply.threads.iter().enumerate() {
        let operations = &thread.operations;
        for (kind, tally) in [
            ("insert", operations.insert),
            ("remove", operations.remove),
            ("contains", operations.contains),
            ("range", operations.range),
        ] {
            if tally.effective > tally.attempted {
                details.push(format!(
                    "thread {thread_idx}: {} effective of {} attempted {kind}",
                    tally.effective, tally.attempted
                ));
            }
        }
    }
    details.extend(range_faults(request, reply));
    if stores_nothing(&request.structure) {
        return details;
    }
    compare_audit(
        &mut details,
        "before the window",
        &reply.audit_before,
        i128::from(request.prefill_keys),
        reply.prefill.key_sum,
    );
    let gained: i128 = reply
        .threads
        .iter()
        .map(|thread| i128::from(thread.operations.insert.effective) - i128::from(thread.operations.remove.effective))
        .sum();
    let sum = reply.threads.iter().fold(reply.audit_before.key_sum, |sum, thread| {
        sum.wrapping_add(thread.inserted_sum).wrapping_sub(thread.removed_sum)
    });
    let size = i128::from(reply.audit_before.size) + gained;
    compare_audit(&mut details, "after the window", &reply.audit_after, size, sum);
    details
}

/// A range query that finds something finds a key, and none finds more keys than it asks for.
fn range_faults(request: &Request, reply: &Reply) -> Vec<String> {
    let most = request.range_keys.unwrap_or(0).min(request.key_range);
    let fault = |(thread_idx, thread): (usize, &ThreadReply)| {
        let Operations { range, range_keys, .. } = thread.operations;
        let fits = u128::from(range_keys) <= u128::from(range.effective) * u128::from(most);
        (range_keys < range.effective || !fits).then(|| {
            format!("thread {thread_idx}: {range_keys} keys in {} range queries of at most {most}", range.effective)
        })
    };
    reply.threads.iter().enumerate().filter_map(fault).collect()
}

fn compare_audit(details: &mut Vec<String>, when: &str, audit: &Audit, size: i128, key_sum: u64) {
    if i128::from(audit.size) != size {
        details.push(format!("{when}: the walk finds {} keys, the operations leave {size}", audit.size));
    }
    if audit.key_sum != key_sum {
        details.push(format!("{when}: the walk's key sum is {}, the operations leave {key_sum}", audit.key_sum));
    }
}

fn prefill_faults(request: &Request, reply: &Reply) -> Vec<String> {
    if stores_nothing(&request.structure) {
        return Vec::new();
    }
    let prefill = &reply.prefill;
    let mut details = Vec::new();
    if prefill.target != request.prefill_keys {
        details.push(format!("{} keys were the worker's target, {} were asked", prefill.target, request.prefill_keys));
    }
    let inserted: u128 = prefill.per_thread.iter().map(|&keys| u128::from(keys)).sum();
    if inserted != u128::from(request.prefill_keys) {
        details.push(format!("{inserted} keys were inserted, {} were asked", request.prefill_keys));
    }
    // What the threads say that they inserted need not be there.
    if reply.audit_before.size != request.prefill_keys {
        details.push(format!("the walk finds {} keys, {} were asked", reply.audit_before.size, request.prefill_keys));
    }
    if prefill.per_thread.len() != request.cpus.len() {
        details.push(format!("{} threads filled, {} were asked", prefill.per_thread.len(), request.cpus.len()));
    }
    details
}

fn pinning_faults(request: &Request, reply: &Reply) -> Vec<String> {
    let mut details = Vec::new();
    if reply.threads.len() != request.cpus.len() {
        details.push(format!("{} threads ran, {} were asked", reply.threads.len(), request.cpus.len()));
    }
    let mut taken = BTreeSet::new();
    for (thread_idx, (thread, &asked)) in reply.threads.iter().zip(&request.cpus).enumerate() {
        let Some(cpu) = asked else { continue };
        if thread.cpus_allowed != [cpu] {
            details.push(format!(
                "thread {thread_idx}: the kernel allows CPUs {:?}, CPU {cpu} was asked",
                thread.cpus_allowed
            ));
        }
        for (when, seen) in [("start", thread.cpu_at_start), ("end", thread.cpu_at_end)] {
            if seen != cpu {
                details.push(format!("thread {thread_idx}: on CPU {seen} at the {when}, CPU {cpu} was asked"));
            }
        }
        if !taken.insert(cpu) {
            details.push(format!("thread {thread_idx}: shares CPU {cpu} with another thread"));
        }
    }
    details
}

fn allocator_faults(request: &Request, reply: &Reply) -> Vec<String> {
    let (asked, proof) = (&request.allocator, &reply.allocator);
    let mut details = Vec::new();
    if proof.name != asked.name {
        details.push(format!("`{}` served the process, `{}` was asked", proof.name, asked.name));
    }
    match (&asked.preload, &proof.preload) {
        (None, None) => {}
        (Some(asked), None) => details.push(format!("`{}` was to be preloaded and is not mapped", asked.path)),
        (None, Some(mapped)) => details.push(format!("`{}` is preloaded and was not asked for", mapped.path)),
        (Some(asked), Some(mapped)) if asked.sha256 != mapped.sha256 => details.push(format!(
            "the preloaded `{}` has the digest {}, {} was asked",
            mapped.path, mapped.sha256, asked.sha256
        )),
        (Some(_), Some(_)) => {}
    }
    details
}

/// The kernel brings the CPU time of a thread up to date once a tick, so what it tells may fall short by one: 10 ms where
/// the kernel ticks slowest, at 100 Hz. A reading before the window that falls short adds as much to the window.
const TICK_NS: u64 = 10_000_000;

/// No thread can have used more CPU time than passed between its stamps: one that has ran on for longer than it says.
fn window_faults(reply: &Reply) -> Vec<String> {
    if throughput::throughput(reply).is_none() {
        return vec!["no throughput: there is no thread, or one that stopped no later than it started".to_owned()];
    }
    let fault = |(thread_idx, thread): (usize, &ThreadReply)| {
        let used_ns = thread.user_ns.saturating_add(thread.system_ns);
        let measured_ns = thread.stop_ns - thread.start_ns;
        (used_ns > measured_ns.saturating_add(TICK_NS)).then(|| {
            let milliseconds = |nanos: u64| nanos as f64 / 1e6;
            format!(
                "thread {thread_idx}: {:.1} ms of CPU time within {:.1} ms by its own stamps",
                milliseconds(used_ns),
                milliseconds(measured_ns)
            )
        })
    };
    reply.threads.iter().enumerate().filter_map(fault).collect()
}
