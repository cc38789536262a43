//! `data.csv`: one row a record, with all that identifies it and all that was measured, in base units.

use rare_workloads::protocol::{Length, Reply, Tally, ThreadReply};

use crate::{plan::TrialId, record::Outcome, spec::value::Parameter, stats::Standing, verdict::Evidence};

/// Writes the table of all records. Empty fields are not measured; they are never zero.
pub(crate) fn csv(evidence: &Evidence) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write = |row: Vec<String>| writer.write_record(row).expect("rows have equal lengths and go to memory");
    write(header());
    for record_idx in 0..evidence.trials.len() {
        write(row(evidence, record_idx));
    }
    let bytes = writer.into_inner().expect("writing to memory cannot fail");
    String::from_utf8(bytes).expect("every field is a string")
}

/// Returns the word of a standing.
pub(crate) fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Counted => "counted",
        Standing::Instrumented => "instrumented",
        Standing::Excluded => "excluded",
        Standing::Failed => "failed",
        Standing::NotRun => "not run",
        Standing::Superseded => "superseded",
        Standing::Foreign => "foreign",
    }
}

const MEASURES: [&str; 34] = [
    "throughput_ops_per_s",
    "asked_ns",
    "measured_min_ns",
    "measured_max_ns",
    "insert_attempted",
    "insert_effective",
    "remove_attempted",
    "remove_effective",
    "contains_attempted",
    "contains_effective",
    "range_attempted",
    "range_effective",
    "range_keys",
    "prefill_reached",
    "prefill_threads",
    "cpus_asked",
    "cpus_allowed",
    "cpus_at_end",
    "size_after",
    "key_sum_after",
    "allocator_served",
    "allocator_version",
    "user_ns",
    "system_ns",
    "voluntary_switches",
    "involuntary_switches",
    "minor_faults",
    "major_faults",
    "harness_bytes",
    "peak_bytes",
    "unreclaimed_objects",
    "allocations",
    "frees",
    "faults",
];

fn header() -> Vec<String> {
    let identity = ["record", "trial", "kind", "cell", "trial_idx", "attempt", "position", "started", "standing"];
    let parameters = Parameter::ALL.iter().map(|parameter| parameter.name());
    let resolved = ["n_threads", "prefill_keys", "seed", "wall_ns", "failure", "failure_detail"];
    identity.into_iter().chain(parameters).chain(resolved).chain(MEASURES).map(str::to_owned).collect()
}

fn row(evidence: &Evidence, record_idx: usize) -> Vec<String> {
    let (trial, summary) = (&evidence.trials[record_idx], &evidence.summary.trials[record_idx]);
    let TrialId { kind, cell, trial_idx } = trial.trial;
    let mut row = vec![
        record_idx.to_string(),
        trial.trial.to_string(),
        kind.name().to_owned(),
        cell.to_string(),
        trial_idx.to_string(),
        trial.attempt.to_string(),
        trial.position.to_string(),
        trial.started.clone(),
        standing(summary.standing).to_owned(),
    ];
    let planned = evidence.plan.cell_of(trial.trial);
    row.extend(
        Parameter::ALL.map(|parameter| planned.map_or_else(String::new, |cell| cell.value(parameter).to_string())),
    );
    let request = &trial.request;
    row.extend([request.cpus.len().to_string(), request.prefill_keys.to_string()]);
    row.extend([request.seed.to_string(), trial.wall.0.to_string()]);
    match &trial.outcome {
        Outcome::Failed { class, detail, .. } => {
            row.extend([class_name(*class), detail.clone()]);
            row.extend(std::iter::repeat_n(String::new(), MEASURES.len()));
        }
        Outcome::Replied(reply) => {
            row.extend([String::new(), String::new(), option(summary.throughput)]);
            row.push(match request.length {
                Length::Nanos(nanos) => nanos.to_string(),
                Length::Accounting { .. } | Length::Operations { .. } => String::new(),
            });
            row.extend(measures(reply));
            let faults: Vec<String> =
                summary.faults.iter().map(|fault| format!("{}: {}", fault.law.name(), fault.detail)).collect();
            row.push(faults.join("; "));
        }
    }
    row
}

/// Returns the word of a failure class in records and reports.
pub(crate) fn class_name(class: crate::record::FailureClass) -> String {
    match serde_json::to_value(class) {
        Ok(serde_json::Value::String(name)) => name,
        other => unreachable!("a class is written as one word, not as {other:?}"),
    }
}

fn measures(reply: &Reply) -> Vec<String> {
    let threads = &reply.threads;
    let spans = || threads.iter().map(|thread| thread.stop_ns.saturating_sub(thread.start_ns));
    let total = |of: fn(&ThreadReply) -> u64| -> String { threads.iter().map(of).sum::<u64>().to_string() };
    let tally = |of: fn(&rare_workloads::protocol::Operations) -> Tally| {
        let sum = |part: fn(Tally) -> u64| threads.iter().map(|thread| part(of(&thread.operations))).sum::<u64>();
        [sum(|tally| tally.attempted).to_string(), sum(|tally| tally.effective).to_string()]
    };
    let mut row = vec![option(spans().min()), option(spans().max())];
    row.extend(tally(|operations| operations.insert));
    row.extend(tally(|operations| operations.remove));
    row.extend(tally(|operations| operations.contains));
    row.extend(tally(|operations| operations.range));
    row.push(total(|thread| thread.operations.range_keys));
    row.extend([
        reply.prefill.per_thread.iter().sum::<u64>().to_string(),
        reply.prefill.per_thread.iter().filter(|&&keys| keys > 0).count().to_string(),
        by_thread(threads, |thread| thread.cpu_asked.map_or("any".to_owned(), |cpu| cpu.to_string())),
        by_thread(threads, |thread| thread.cpus_allowed.iter().map(u32::to_string).collect::<Vec<String>>().join("+")),
        by_thread(threads, |thread| thread.cpu_at_end.to_string()),
        reply.audit_after.size.to_string(),
        reply.audit_after.key_sum.to_string(),
        reply.allocator.name.clone(),
        reply.allocator.version.clone(),
        total(|thread| thread.user_ns),
        total(|thread| thread.system_ns),
        total(|thread| thread.voluntary_switches),
        total(|thread| thread.involuntary_switches),
        total(|thread| thread.minor_faults),
        total(|thread| thread.major_faults),
        reply.memory.harness_bytes.to_string(),
        reply.memory.peak_bytes.to_string(),
        option(reply.memory.unreclaimed_objects),
        option(reply.accounting.as_ref().map(|accounting| accounting.allocations)),
        option(reply.accounting.as_ref().map(|accounting| accounting.frees)),
    ]);
    row
}

/// Writes one word a thread, in the order of the threads.
fn by_thread(threads: &[ThreadReply], of: impl Fn(&ThreadReply) -> String) -> String {
    threads.iter().map(of).collect::<Vec<String>>().join(" ")
}

fn option<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
