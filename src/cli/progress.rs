//! Progress of a run: one line that redraws itself on a terminal, a plain line now and then elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rare_workloads::protocol::Mix;

use super::console::Console;
use crate::{
    plan::{BlockKind, Mode, Plan, TrialId},
    record::{FailureClass, Outcome, Trial},
    run::Observer,
    spec::value::{Parameter, Value},
    stats,
};

/// Plain lines come this often: a log of an hour stays readable.
const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// Shows the trials as they pass.
pub(super) struct Progress<'a> {
    console: &'a Console,
    plan: &'a Plan,
    mix_names: &'a [(Mix, String)],
    varied: Vec<Parameter>,
    bar: ProgressBar,
    /// Expected wall time by trial kind is nearly the same, so the time left is that of the trials so far.
    since: Instant,
    last_plain: Instant,
    n_done: usize,
    n_before: usize,
    /// Result of the last trial, in words; `None` before the first and after a counted one.
    last_result: Option<String>,
}

impl<'a> Progress<'a> {
    /// Begins with what is already recorded.
    pub(super) fn new(
        console: &'a Console,
        plan: &'a Plan,
        mix_names: &'a [(Mix, String)],
        recorded: &[Trial],
    ) -> Self {
        let n_before = recorded.iter().map(|trial| trial.trial).collect::<std::collections::BTreeSet<_>>().len();
        let bar = if console.interactive {
            let style = ProgressStyle::with_template("{bar:16} {pos}/{len} {prefix}  {wide_msg}")
                .expect("the template is constant");
            ProgressBar::with_draw_target(Some(plan.n_trials() as u64), ProgressDrawTarget::stderr()).with_style(style)
        } else {
            ProgressBar::hidden()
        };
        bar.set_position(n_before as u64);
        if !console.interactive {
            console.note(format_args!("running {} of {} trials", plan.n_trials() - n_before, plan.n_trials()));
        }
        let now = Instant::now();
        Self {
            console,
            plan,
            mix_names,
            varied: plan.varied(),
            bar,
            since: now,
            last_plain: now,
            n_done: 0,
            n_before,
            last_result: None,
        }
    }

    /// Removes the redrawn line.
    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }

    /// Says what time is left, assuming that the trials to come take as long as those so far.
    fn left(&self) -> String {
        let n_left = self.plan.n_trials().saturating_sub(self.n_before + self.n_done);
        let n_done = u32::try_from(self.n_done).ok();
        let each = n_done.and_then(|n_done| self.since.elapsed().checked_div(n_done));
        let left = each.zip(u32::try_from(n_left).ok()).and_then(|(each, n_left)| each.checked_mul(n_left));
        left.map_or_else(|| "time left unknown".to_owned(), |left| format!("{} left", rough(left)))
    }

    /// Names a cell by what distinguishes it from the others.
    fn cell(&self, trial: TrialId) -> String {
        let cell = self.plan.cell_of(trial).expect("only trials of the plan are run");
        if let Some(probe) = self.plan.probe_of(trial) {
            let structure = cell.value(Parameter::Structure);
            return format!("{structure} for `{}`", probe.purpose);
        }
        let values: Vec<String> = match self.varied.as_slice() {
            [] => vec![cell.value(Parameter::Structure).to_string()],
            varied => varied.iter().map(|&parameter| self.value(parameter, cell.value(parameter))).collect(),
        };
        values.join(", ")
    }

    fn is_timed(&self, trial: TrialId) -> bool {
        match trial.kind {
            BlockKind::Measure => true,
            BlockKind::Account => false,
            BlockKind::Probe => self.plan.probe_of(trial).is_some_and(|probe| probe.mode == Mode::Timed),
        }
    }

    /// A bare number or word says little without its parameter; a structure, an allocator or a mix names itself.
    fn value(&self, parameter: Parameter, value: &Value) -> String {
        let named = self.mix_names.iter().find(|(mix, _)| *value == Value::Mix(*mix));
        match (parameter, named) {
            (_, Some((_, name))) => name.clone(),
            (Parameter::Structure | Parameter::Allocator | Parameter::Mix, None) => value.to_string(),
            (other, None) => format!("{} {value}", other.name()),
        }
    }
}

/// Seconds below two minutes, minutes below two hours: nobody waits for the second of an hour.
fn rough(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h", seconds.div_ceil(3_600)),
    }
}

/// Names a kind of failure.
pub(super) fn words(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Start => "not started",
        FailureClass::Refused => "refused",
        FailureClass::NoReply => "no reply",
        FailureClass::BadReply => "bad reply",
        FailureClass::Signal => "killed",
        FailureClass::OutOfMemory => "out of memory",
        FailureClass::TimedOut => "timed out",
        FailureClass::LeftProcesses => "left processes",
        FailureClass::NoTool => "no tool",
        FailureClass::ToolFailed => "tool failed",
    }
}

/// Writes a throughput, in operations per second, with three digits or more.
fn per_second(rate: f64) -> String {
    match rate {
        1e7.. => format!("{:.1} Mops/s", rate / 1e6),
        1e6.. => format!("{:.2} Mops/s", rate / 1e6),
        1e4.. => format!("{:.1} kops/s", rate / 1e3),
        _ => format!("{rate:.0} ops/s"),
    }
}

impl Observer for Progress<'_> {
    fn started(&mut self, trial: TrialId, _position: u32) {
        if self.console.interactive {
            self.bar.set_prefix(self.left());
            // The result comes first: it is short, and the cell is cut where the line ends.
            let last = self.last_result.as_ref().map_or_else(String::new, |result| format!("last {result}, "));
            self.bar.set_message(format!("{last}now {}", self.cell(trial)));
        }
    }

    fn finished(&mut self, record: &Trial) {
        self.n_done += 1;
        self.bar.inc(1);
        self.last_result = match &record.outcome {
            Outcome::Replied(_) if !self.is_timed(record.trial) => None,
            Outcome::Replied(reply) => stats::throughput::throughput(reply).map(per_second),
            Outcome::Failed { .. } => Some("failed".to_owned()),
        };
        if let Outcome::Failed { class, detail, .. } = &record.outcome {
            let (trial, cell, class) = (record.trial, self.cell(record.trial), words(*class));
            let line = format!("trial {trial} ({cell}) failed, {class}: {detail}");
            self.bar.suspend(|| self.console.alert(line));
        }
        if !self.console.interactive && self.last_plain.elapsed() >= PLAIN_EVERY {
            self.last_plain = Instant::now();
            let (at, of) = (self.n_before + self.n_done, self.plan.n_trials());
            let result = self.last_result.as_ref().map_or_else(String::new, |result| format!(": {result}"));
            let cell = self.cell(record.trial);
            self.console.note(format_args!("{at}/{of} trials, {}; last {cell}{result}", self.left()));
        }
    }
}
