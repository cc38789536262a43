//! What of a plan is recorded in a run: attempts, failures, time.

use std::collections::BTreeMap;

use crate::{
    plan::{BlockKind, Plan, TrialId},
    record::{FailureClass, Outcome, Trial},
};

/// So many failures of one class, without a single success in the run, and the rest would fail too: the cause is the
/// machine or the worker, not the cell.
const HOPELESS_FAILURES: u32 = 10;

/// Recorded trials of a run.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Attempts of a trial, and whether the last one failed.
    attempts: BTreeMap<TrialId, (u32, bool)>,
    /// Wall time of the last trial of a cell and kind, in nanoseconds.
    walls: BTreeMap<(BlockKind, u32), u64>,
    /// Of all trials, in nanoseconds.
    wall_ns: u64,
    /// Whether any trial has succeeded.
    succeeded: bool,
    /// Class of the last failures, and how many there are in this session.
    failing: Option<(FailureClass, u32)>,
}

impl Progress {
    /// Starts from what the journal holds. Failures of earlier sessions do not make this one hopeless: their cause may
    /// be gone.
    pub(super) fn new(recorded: &[Trial]) -> Self {
        let mut progress = Self::default();
        recorded.iter().for_each(|record| progress.add(record));
        progress.failing = None;
        progress
    }

    /// Adds a record.
    pub(super) fn add(&mut self, record: &Trial) {
        let class = match &record.outcome {
            Outcome::Replied(_) => None,
            Outcome::Failed { class, .. } => Some(*class),
        };
        self.attempts.insert(record.trial, (record.attempt + 1, class.is_some()));
        self.walls.insert((record.trial.kind, record.trial.cell), record.wall.0);
        self.wall_ns = self.wall_ns.saturating_add(record.wall.0);
        self.succeeded |= class.is_none();
        self.failing = match (class, self.failing) {
            (Some(class), Some((last, n))) if class == last => Some((class, n + 1)),
            (Some(class), _) => Some((class, 1)),
            (None, _) => None,
        };
    }

    /// Returns how often a trial was tried.
    pub(super) fn attempts(&self, trial: TrialId) -> u32 {
        self.attempts.get(&trial).map_or(0, |&(attempts, _)| attempts)
    }

    /// Tells whether a trial is still to be executed.
    pub(super) fn is_missing(&self, trial: TrialId, retry_failed: bool) -> bool {
        self.attempts.get(&trial).is_none_or(|&(_, failed)| failed && retry_failed)
    }

    /// Returns the wall time of all recorded trials, in nanoseconds.
    pub(super) fn wall_ns(&self) -> u64 {
        self.wall_ns
    }

    /// Returns how long a trial will take, in nanoseconds: as long as the last one of its cell, or as planned.
    pub(super) fn expected_wall(&self, plan: &Plan, trial: TrialId) -> u64 {
        let timed = match trial.kind {
            BlockKind::Measure => true,
            // Nothing is planned of their time; the first one tells.
            BlockKind::Account => false,
            BlockKind::Probe => plan.probe_of(trial).is_some_and(|probe| probe.mode.operations().is_none()),
        };
        let planned = plan.cell_of(trial).filter(|_| timed).map_or(0, |cell| cell.trial_length().0);
        self.walls.get(&(trial.kind, trial.cell)).copied().unwrap_or(planned)
    }

    /// Returns the class in which every trial fails, if it is no use to go on.
    pub(super) fn hopeless(&self) -> Option<FailureClass> {
        self.failing.filter(|&(_, n)| n >= HOPELESS_FAILURES && !self.succeeded).map(|(class, _)| class)
    }
}
