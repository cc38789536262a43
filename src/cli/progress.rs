//! Progress of a run: one line that redraws itself on a terminal, a plain line now and then elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::console::Console;
use crate::{
    plan::{BlockKind, Plan, TrialId},
    record::{Outcome, Trial},
    run::Observer,
    spec::value::Parameter,
    stats,
};

/// Plain lines come this often: a log of an hour stays readable.
const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// Shows the trials as they pass.
pub(super) struct Progress<'a> {
    console: &'a Console,
    plan: &'a Plan,
    varied: Vec<Parameter>,
    bar: ProgressBar,
    /// Expected wall time by trial kind is nearly the same, so the time left is that of the trials so far.
    since: Instant,
    last_plain: Instant,
    n_done: usize,
    n_before: usize,
    last_result: String,
}

impl<'a> Progress<'a> {
    /// Begins with what is already recorded.
    pub(super) fn new(console: &'a Console, plan: &'a Plan, recorded: &[Trial]) -> Self {
        let n_before = recorded.iter().map(|trial| trial.trial).collect::<std::collections::BTreeSet<_>>().len();
        let bar = if console.interactive {
            let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {prefix} left  {wide_msg}")
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
            varied: plan.varied(),
            bar,
            since: now,
            last_plain: now,
            n_done: 0,
            n_before,
            last_result: String::new(),
        }
    }

    /// Removes the redrawn line.
    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }

    /// Returns the time left, assuming that the trials to come take as long as those so far.
    fn left(&self) -> Option<Duration> {
        let n_left = self.plan.n_trials().saturating_sub(self.n_before + self.n_done);
        let each = self.since.elapsed().checked_div(u32::try_from(self.n_done).ok()?)?;
        each.checked_mul(u32::try_from(n_left).ok()?)
    }

    /// Names a cell by what distinguishes it from the others.
    fn cell(&self, trial: TrialId) -> String {
        let cell = self.plan.cell(trial.cell);
        let values: Vec<String> = match self.varied.as_slice() {
            [] => vec![cell.value(Parameter::Structure).to_string()],
            varied => varied.iter().map(|&parameter| named(parameter, &cell.value(parameter).to_string())).collect(),
        };
        values.join(", ")
    }
}

/// A bare number or word says little without its parameter; a structure or an allocator names itself.
fn named(parameter: Parameter, value: &str) -> String {
    match parameter {
        Parameter::Structure | Parameter::Allocator | Parameter::Mix => value.to_owned(),
        other => format!("{} {value}", other.name()),
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

impl Observer for Progress<'_> {
    fn started(&mut self, trial: TrialId, _position: u32) {
        if self.console.interactive {
            self.bar.set_prefix(self.left().map_or_else(|| "?".to_owned(), rough));
            self.bar.set_message(format!("{}{}", self.cell(trial), self.last_result));
        }
    }

    fn finished(&mut self, record: &Trial) {
        self.n_done += 1;
        self.bar.inc(1);
        self.last_result = match &record.outcome {
            Outcome::Replied(reply) => match stats::throughput::throughput(reply) {
                Some(rate) if record.trial.kind == BlockKind::Measure => format!("   last {:.2} Mops/s", rate / 1e6),
                _ => String::new(),
            },
            Outcome::Failed { class, .. } => format!("   last failed: {class:?}"),
        };
        if let Outcome::Failed { class, detail, .. } = &record.outcome {
            let line = format!("trial {} ({}) failed, {class:?}: {detail}", record.trial, self.cell(record.trial));
            self.bar.suspend(|| self.console.alert(line));
        }
        if !self.console.interactive && self.last_plain.elapsed() >= PLAIN_EVERY {
            self.last_plain = Instant::now();
            let left = self.left().map_or_else(|| "?".to_owned(), rough);
            let (at, of) = (self.n_before + self.n_done, self.plan.n_trials());
            self.console.note(format_args!(
                "{at}/{of} trials, {left} left; {}{}",
                self.cell(record.trial),
                self.last_result
            ));
        }
    }
}
