//! Check `duration`: every thread measured as long as the plan says, all at the same time.

use rare_workloads::protocol::{Length, Reply};

use super::{Check, Grade, Info, Replied, Verdict, failures};
use crate::{stats::Law, verdict::Evidence};

/// A thread that measured 1 % longer or shorter than asked is reported.
const WARN_SHARE: f64 = 0.01;

/// In short trials the scheduler alone moves a start or a stop by a few milliseconds: two to three slices of a CPU that
/// something else wants too. Differences up to this are its doing and not the harness's.
const WARN_FLOOR_NS: f64 = 10e6;

/// From ten times the warning on, the trial's length on the label is not the one that was measured.
const FAIL_FACTOR: f64 = 10.0;

static INFO: Info = Info {
    name: "duration",
    title: "Duration and overlap",
    rule: "each thread's own stamps span the length asked for, threads start together, their windows overlap, and neither \
           the kernel's CPU time nor the sampler knows of work after a stop",
    threshold: "1 % of the length (10 ms in trials under 1 s) warns for a thread's length, the start skew, the time \
                without overlap and samples after a stop; ten times that fails; CPU time more than 10 ms (a tick of the \
                slowest kernel) above the measured time fails, and excludes the trial",
    source: "Hoefler and Belli, SC'15, rule 10; harnesses that divide by the nominal time",
    reason: "operations of threads that do not run at the same time are no concurrent throughput",
    remedy: "lengthen the trial, leave a CPU to the system, stop other load; throughput is over the measured time, so \
             the trial stays in",
};

/// See [`INFO`].
pub(super) struct Duration;

impl Check for Duration {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let findings = |replied: &Replied| {
            let mut findings = failures(evidence, replied, Law::Window);
            if let (true, Length::Nanos(asked)) = (findings.is_empty(), replied.trial.request.length) {
                findings.extend(timing(asked, replied.reply));
            }
            findings
        };
        let held = |n_judged| format!("within the threshold in all {n_judged} trials");
        Verdict::over_trials(&INFO, evidence, findings, held)
    }
}

/// How far the threads' windows are from one window of the length asked for, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Timing {
    /// Largest difference between a thread's measured time and the length asked for.
    pub length_off_ns: f64,
    /// Latest start minus earliest start.
    pub start_skew_ns: f64,
    /// Time from first start to last stop in which not all threads ran their loop.
    pub without_overlap_ns: f64,
    /// Time from the first stop to the last sample; 0 if the sampler ended before. It ends the window, so it ends with it.
    pub sampled_on_ns: f64,
}

impl Timing {
    /// Computes the timing of a reply; `None` without threads.
    pub(crate) fn new(asked_ns: u64, reply: &Reply) -> Option<Self> {
        let starts = || reply.threads.iter().map(|thread| thread.start_ns as f64);
        let stops = || reply.threads.iter().map(|thread| thread.stop_ns as f64);
        let (first_start, last_start) = (starts().reduce(f64::min)?, starts().reduce(f64::max)?);
        let (first_stop, last_stop) = (stops().reduce(f64::min)?, stops().reduce(f64::max)?);
        let length_off = |(start, stop): (f64, f64)| (stop - start - asked_ns as f64).abs();
        let overlap = (first_stop - last_start).max(0.0);
        Some(Self {
            length_off_ns: starts().zip(stops()).map(length_off).fold(0.0, f64::max),
            start_skew_ns: last_start - first_start,
            without_overlap_ns: last_stop - first_start - overlap,
            sampled_on_ns: reply.samples.last().map_or(0.0, |sample| (sample.at_ns as f64 - first_stop).max(0.0)),
        })
    }
}

fn timing(asked_ns: u64, reply: &Reply) -> Vec<(Grade, String)> {
    let Some(timing) = Timing::new(asked_ns, reply) else { return Vec::new() };
    let allowance = (WARN_SHARE * asked_ns as f64).max(WARN_FLOOR_NS);
    let judged = |(what, found): (&str, f64)| {
        let grade = if found > FAIL_FACTOR * allowance { Grade::Fail } else { Grade::Warn };
        let text = format!("{what} {} ms, {} ms is allowed", milliseconds(found), milliseconds(allowance));
        (found > allowance).then_some((grade, text))
    };
    [
        ("a thread's measured time differs from the length asked for by", timing.length_off_ns),
        ("threads start apart by", timing.start_skew_ns),
        ("time without overlap of all threads:", timing.without_overlap_ns),
        ("the window was sampled after a thread's own stop for another", timing.sampled_on_ns),
    ]
    .into_iter()
    .filter_map(judged)
    .collect()
}

/// Nanoseconds as milliseconds with one digit.
fn milliseconds(nanos: f64) -> String {
    format!("{:.1}", nanos / 1e6)
}
