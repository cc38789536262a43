//! One attempt at one trial: start, watch, classify.

use std::{
    io,
    path::Path,
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
    tool::{NoTool, Tool},
};
use crate::{
    host::interference::Counters,
    plan::{Mode, TrialId},
    record::{FailureClass, Interference, Outcome, Watched},
    units::Nanos,
};

/// Valgrind's tools slow threads down some thirty times, of which the time-out's own allowance covers a part.
const TOOL_SLOWNESS: u32 = 5;

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
    /// What the tool saw.
    pub(super) watched: Option<Box<Watched>>,
    /// What the worker printed and the record does not hold.
    pub(super) output: Option<String>,
}

/// Runs one trial. `None` when it was interrupted.
///
/// # Errors
/// When the system refuses what is needed to watch a process; the worker is then killed.
pub(super) fn run(
    job: &Job<'_>,
    mut request: Request,
    trial: TrialId,
    interrupt: &Interrupt,
) -> io::Result<Option<Attempt>> {
    let mode = job.plan.probe_of(trial).map_or(Mode::Timed, |probe| probe.mode);
    let tool = match Tool::prepare(job.tools, mode, &mut request) {
        Ok(tool) => tool,
        Err(NoTool(why)) => return Ok(Some(not_begun(request, why))),
    };
    let bytes = serde_json::to_vec(&request).expect("a request is plain data");
    let cell = job.plan.cell_of(trial).expect("only trials of the plan are run");
    let surroundings = resolve::surroundings(cell);
    let slowness = if tool.is_some() { TOOL_SLOWNESS } else { 1 };
    let time_out = job.time_out.unwrap_or_else(|| resolve::time_out(&request)).saturating_mul(slowness);
    let others = Others::now();
    let started = format!("{:.3}", Timestamp::now());
    let pinned: Vec<u32> = request.cpus.iter().copied().flatten().collect();
    let counters = Counters::read(&pinned);
    let begin = Instant::now();
    let prefix = tool.as_ref().map_or(&[][..], |tool| &tool.prefix);
    let (outcome, output, cpu) = match launch::start(prefix, &job.worker.path, &request, &bytes, surroundings) {
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
    let interference = interference(&Counters::read(&pinned), &counters, cpu);
    let (outcome, watched) = match tool {
        None => (outcome, None),
        Some(tool) => seen(&tool, &job.worker.path, outcome),
    };
    Ok(Some(Attempt { started, wall, request, outcome, interference, watched, output }))
}

/// Joins what the tool saw to a reply. Without either, it is the tool that failed: what kills a worker under a tool, or
/// makes it too slow, need not do so without.
fn seen(tool: &Tool<'_>, worker: &Path, outcome: Outcome) -> (Outcome, Option<Box<Watched>>) {
    let failed = |why: String, stderr: String| {
        let detail = format!("{}: {why}", tool.name());
        (Outcome::Failed { class: FailureClass::ToolFailed, detail, stderr }, None)
    };
    match outcome {
        Outcome::Replied(reply) => match tool.read(worker) {
            Ok(watched) => (Outcome::Replied(reply), Some(Box::new(watched))),
            Err(why) => failed(why, String::new()),
        },
        Outcome::Failed { detail, stderr, .. } => match tool.read(worker) {
            // The tool knows better why it ended.
            Err(why) => failed(format!("{detail}; {why}"), stderr),
            Ok(_) => failed(detail, stderr),
        },
    }
}

/// A trial whose tool is not there.
fn not_begun(request: Request, why: String) -> Attempt {
    Attempt {
        started: format!("{:.3}", Timestamp::now()),
        wall: Nanos(0),
        request,
        outcome: Outcome::Failed { class: FailureClass::NoTool, detail: why, stderr: String::new() },
        interference: Interference::default(),
        watched: None,
        output: None,
    }
}

/// Returns what else happened from `before` to `now`, while the worker took `worker_cpu`.
fn interference(now: &Counters, before: &Counters, worker_cpu: Option<Duration>) -> Interference {
    match worker_cpu {
        Some(cpu) => now.since(before, nanos(cpu)),
        // Without the worker's share the rest is not known either.
        None => Interference { other_cpu_ns: None, pinned_other_cpu_ns: None, ..now.since(before, Nanos(0)) },
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
