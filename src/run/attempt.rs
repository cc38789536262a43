//! One attempt at one trial: start, watch, classify.

use std::{
    io,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use rare_workloads::protocol::{Request, frame::sha256_hex};

use super::{
    Interrupt, classify,
    descendants::Others,
    execute::Job,
    launch, resolve,
    supervise::{self, Ended, Killed},
};
use crate::{
    host::interference::Counters,
    plan::TrialId,
    record::{FailureClass, Interference, Outcome},
    units::Nanos,
};

/// What an attempt gave.
pub(super) struct Attempt {
    /// RFC 3339 with milliseconds.
    pub(super) started: String,
    /// From the start of the process to its end.
    pub(super) wall: Nanos,
    /// What was sent.
    pub(super) request: Request,
    /// What came of it.
    pub(super) outcome: Outcome,
    /// What else happened.
    pub(super) interference: Interference,
    /// What the worker printed and the record does not hold.
    pub(super) output: Option<String>,
}

/// Runs one trial. `None` when it was interrupted.
///
/// # Errors
/// When the system refuses what is needed to watch a process; the worker is then killed.
pub(super) fn run(
    job: &Job<'_>,
    request: Request,
    trial: TrialId,
    interrupt: &Interrupt,
) -> io::Result<Option<Attempt>> {
    let bytes = serde_json::to_vec(&request).expect("a request is plain data");
    let cell = job.plan.cell_of(trial).expect("only trials of the plan are run");
    let surroundings = resolve::surroundings(cell);
    let time_out = job.time_out.unwrap_or_else(|| resolve::time_out(&request));
    let others = Others::now();
    let started = format!("{:.3}", Timestamp::now());
    let counters = Counters::read();
    let begin = Instant::now();
    let (outcome, output, cpu) = match launch::start(&job.worker.path, &request, &bytes, surroundings) {
        Err(error) => (not_started(&error), None, None),
        Ok(worker) => {
            let ended = supervise::supervise(worker, &others, time_out, interrupt)?;
            if ended.killed == Some(Killed::Interrupted) {
                return Ok(None);
            }
            let outcome = classify::classify(&ended, &sha256_hex(&bytes), time_out);
            let output = output(&ended, &outcome);
            (outcome, output, ended.cpu)
        }
    };
    let wall = nanos(begin.elapsed());
    let interference = interference(&counters, cpu);
    Ok(Some(Attempt { started, wall, request, outcome, interference, output }))
}

/// Returns what else happened since `before`, while the worker took `worker_cpu`.
fn interference(before: &Counters, worker_cpu: Option<Duration>) -> Interference {
    let now = Counters::read();
    match worker_cpu {
        Some(cpu) => now.since(before, nanos(cpu)),
        // Without the worker's share the rest is not known either.
        None => Interference { other_cpu_ns: None, ..now.since(before, Nanos(0)) },
    }
}

fn not_started(error: &io::Error) -> Outcome {
    let detail = format!("the worker could not be started: {error}");
    Outcome::Failed { class: FailureClass::Start, detail, stderr: String::new() }
}

/// Returns what the worker printed, apart from the standard error that a failure's record holds.
fn output(ended: &Ended, outcome: &Outcome) -> Option<String> {
    let stderr_is_recorded = matches!(outcome, Outcome::Failed { .. });
    let mut output = String::new();
    for (name, stream, recorded) in
        [("standard output", &ended.stdout, false), ("standard error", &ended.stderr, stderr_is_recorded)]
    {
        if stream.total > 0 && !recorded {
            output.push_str(&format!("--- {name}\n{}\n", classify::text(stream)));
        }
    }
    (!output.is_empty()).then_some(output)
}

fn nanos(duration: Duration) -> Nanos {
    Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
