//! The record of one trial, as `trials.jsonl` holds it.

use rare_workloads::protocol::{Reply, Request};
use serde::{Deserialize, Serialize};

use super::Watched;
use crate::{plan::TrialId, units::Nanos};

/// One executed trial. Times are UTC, durations nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// Which trial of the plan.
    pub trial: TrialId,
    /// Position in this run's order of execution, from 0 (planned position, the same for each attempt).
    pub position: u32,
    /// How many times this trial had been tried before in this run: 0 unless failed trials were retried.
    pub attempt: u32,
    /// When the worker was started, RFC 3339 with milliseconds.
    pub started: String,
    /// From the start of the worker's process to its end.
    pub wall: Nanos,
    /// What was sent: every symbol of the plan as this machine resolved it.
    pub request: Request,
    /// What came of it.
    pub outcome: Outcome,
    /// What else happened on the machine meanwhile.
    pub interference: Interference,
    /// What the tool saw, of a trial that ran under one and has a reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<Box<Watched>>,
}

/// What came of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A complete reply whose digest holds. Whether it proves a valid trial is judged from it, not recorded.
    Replied(Box<Reply>),
    /// No usable reply.
    Failed {
        /// Kind of failure.
        class: FailureClass,
        /// What happened, in words: signal names, byte counts, what was missing.
        detail: String,
        /// The worker's standard error, capped.
        stderr: String,
    },
}

impl Outcome {
    /// Tells whether it says that something is wrong with the trial. One that was not begun for want of its tool says
    /// nothing.
    pub fn has_failed(&self) -> bool {
        matches!(self, Self::Failed { class, .. } if !class.is_the_tools())
    }
}

impl FailureClass {
    /// Tells whether the tool under which the trial was to run is what failed.
    pub fn is_the_tools(self) -> bool {
        matches!(self, Self::NoTool | Self::ToolFailed)
    }
}

/// Why a trial has no usable reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureClass {
    /// The worker could not be started.
    Start,
    /// It refused the request and said why.
    Refused,
    /// It ended without a reply.
    NoReply,
    /// Its reply is incomplete, garbled, repeated, or belongs to another request.
    BadReply,
    /// It was killed by a signal.
    Signal,
    /// It ran out of memory.
    OutOfMemory,
    /// It did not end in time and was killed with all it had started.
    TimedOut,
    /// It replied, but processes that it had started outlived it.
    LeftProcesses,
    /// The tool under which it was to run is not there, or may not be used here.
    NoTool,
    /// The tool under which it ran gave nothing that can be used.
    ToolFailed,
}

/// What else happened on the machine during a trial; `None` where the kernel does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interference {
    /// CPU time of all CPUs that went neither to the worker nor to idling, in nanoseconds.
    pub other_cpu_ns: Option<u64>,
    /// Time the hypervisor gave to others, all CPUs, in nanoseconds.
    pub steal_ns: Option<u64>,
    /// Pages swapped in or out.
    pub swapped_pages: Option<u64>,
    /// Throttling events, all CPUs.
    pub throttled: Option<u64>,
    /// CPU time of the CPUs to which threads were pinned that went neither to the worker nor to idling, in nanoseconds. Too
    /// small by what the worker did elsewhere. `None` where threads float, as in what follows, and in records of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned_other_cpu_ns: Option<u64>,
    /// Interrupts of devices on the CPUs to which threads were pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_interrupts: Option<u64>,
    /// Other interrupts there: timers, and calls of one CPU by another, most of which a trial causes itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_interrupts: Option<u64>,
    /// Lowest clock rate of these CPUs before the worker was started, in kHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_khz: Option<u64>,
    /// Lowest clock rate of these CPUs when it had ended, in kHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_khz: Option<u64>,
}
