//! The sanity checks: each is one file and one line in [`ALL`].
//!
//! A check states its rule in numbers, where the rule comes from and what to do when it fires; its verdict names the
//! trials it rests on. Missing data is `unknown` with what is missing, never a pass.

use super::evidence::{Evidence, Replied};
use crate::{
    plan::{Ground, Probe, TrialId},
    stats::{Fault, Law},
};

mod aa;
mod allocator;
mod apples;
mod checksum;
mod contention;
mod duration;
mod empty;
mod fairness;
mod false_sharing;
mod generator;
mod harness_overhead;
mod identity;
mod interference;
mod key_range;
pub mod layout;
mod leaks;
mod pinning;
mod prefill;
mod read_only;
mod reclamation;
mod trial_length;
mod variance;

/// Every check that is built, in the order in which reports list them.
pub static ALL: &[&dyn Check] = &[
    &checksum::Checksum,
    &prefill::Prefill,
    &pinning::Pinning,
    &duration::Duration,
    &allocator::Allocator,
    &fairness::Fairness,
    &identity::Identity,
    &empty::Empty,
    &read_only::ReadOnly,
    &layout::Layout,
    &trial_length::TrialLength,
    &key_range::KeyRange,
    &leaks::Leaks,
    &contention::Contention,
    &reclamation::Reclaiming,
    &variance::Variance,
    &harness_overhead::HarnessOverhead,
    &generator::Generator,
    &interference::Disturbance,
    &false_sharing::FalseSharing,
    &apples::Apples,
    &aa::AgainstItself,
];

/// A sanity check.
pub trait Check: Sync {
    /// Returns what the check states of itself.
    fn info(&self) -> &'static Info;

    /// Returns the trials that it needs beside the cells of the plan.
    fn probes(&self, _ground: &Ground<'_>) -> Vec<Probe> {
        Vec::new()
    }

    /// Judges a run.
    fn judge(&self, evidence: &Evidence) -> Verdict;
}

/// What a check states of itself. Reports print every field.
#[derive(Debug, PartialEq, Eq)]
pub struct Info {
    /// Name in specs.
    pub name: &'static str,
    /// Short title.
    pub title: &'static str,
    /// What must hold.
    pub rule: &'static str,
    /// The bounds of the rule, with their units.
    pub threshold: &'static str,
    /// Where the rule comes from.
    pub source: &'static str,
    /// Why a report without it may mislead.
    pub reason: &'static str,
    /// What to do when it fires.
    pub remedy: &'static str,
}

/// How a check ended, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// The rule holds in every trial.
    Pass,
    /// What is needed to judge is missing.
    Unknown,
    /// The rule holds, with something a reader should know.
    Warn,
    /// The rule is broken.
    Fail,
}

impl Grade {
    /// Returns the word of reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Unknown => "unknown",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Which check.
    pub info: &'static Info,
    /// How it ended.
    pub grade: Grade,
    /// What was found, in one sentence; for `unknown`, what is missing.
    pub summary: String,
    /// For what the rule does not simply hold; trials in the order of the records.
    pub rows: Vec<Row>,
    /// What the verdict was judged from, where that is more than the trials of the cells.
    pub exhibits: Vec<Exhibit>,
}

/// A table of what a check looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exhibit {
    /// What it shows.
    pub title: String,
    /// Heads of the columns, each with its unit where it has one.
    pub columns: Vec<(String, Option<&'static str>)>,
    /// Cells, as many in each row as there are columns.
    pub rows: Vec<Vec<String>>,
    /// How to read it, in whole sentences.
    pub note: String,
}

/// One thing that a verdict rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it is said of.
    pub subject: Subject,
    /// What was found there.
    pub finding: String,
    /// How bad it is.
    pub grade: Grade,
}

/// What a finding is said of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// One trial.
    Record {
        /// Index of the record.
        record_idx: usize,
        /// The trial.
        trial: TrialId,
    },
    /// A cell of the plan, whether or not it has trials.
    Cell(u32),
    /// The whole run.
    Run,
}

impl Subject {
    /// The trial of a reply.
    fn of(replied: &Replied) -> Self {
        Self::Record { record_idx: replied.record_idx, trial: replied.trial.trial }
    }
}

/// Returns the trials that the check of a name needs beside the cells of a plan: none for a name that is not known.
pub(super) fn probes(name: &str, ground: &Ground<'_>) -> Vec<Probe> {
    let check = ALL.iter().find(|check| check.info().name == name);
    check.map_or_else(Vec::new, |check| check.probes(ground))
}

/// Runs every check that the plan asks for. What makes a trial count for nothing does so whether or not a check is asked
/// to say it.
pub fn judge(evidence: &Evidence) -> Vec<Verdict> {
    let asked = |check: &&&dyn Check| evidence.plan.checks.iter().any(|name| name == check.info().name);
    ALL.iter().filter(asked).map(|check| check.judge(evidence)).collect()
}

impl Verdict {
    /// A verdict that rests on the trials of the cells alone.
    fn new(info: &'static Info, grade: Grade, summary: impl Into<String>, rows: Vec<Row>) -> Self {
        Self { info, grade, summary: summary.into(), rows, exhibits: Vec::new() }
    }

    /// Judges each trial with a reply by `findings`, which returns what does not simply hold; `held` says what holds
    /// of so many trials when nothing was found.
    fn over_trials(
        info: &'static Info,
        evidence: &Evidence,
        findings: impl Fn(&Replied) -> Vec<(Grade, String)>,
        held: impl FnOnce(usize) -> String,
    ) -> Self {
        let (mut rows, mut n_judged) = (Vec::new(), 0);
        for replied in evidence.replied() {
            n_judged += 1;
            rows.extend(findings(&replied).into_iter().map(|(grade, finding)| Row {
                subject: Subject::of(&replied),
                finding,
                grade,
            }));
        }
        if n_judged == 0 {
            return Self {
                info,
                grade: Grade::Unknown,
                summary: "no trial has a reply".to_owned(),
                rows,
                exhibits: Vec::new(),
            };
        }
        let grade = rows.iter().map(|row| row.grade).max().unwrap_or(Grade::Pass);
        let summary = if rows.is_empty() {
            held(n_judged)
        } else {
            let n_trials = rows.chunk_by(|a, b| a.subject == b.subject).count();
            format!("{n_trials} of {n_judged} trials: {}", worst(&rows).finding)
        };
        Self::new(info, grade, summary, rows)
    }
}

/// The first of the worst rows.
fn worst(rows: &[Row]) -> &Row {
    let worst = rows.iter().map(|row| row.grade).max();
    rows.iter().find(|row| Some(row.grade) == worst).expect("only called with rows")
}

/// The faults of one law as failures.
fn failures(evidence: &Evidence, replied: &Replied, law: Law) -> Vec<(Grade, String)> {
    let of_law = |fault: &&Fault| fault.law == law;
    let faults = &evidence.summary.trials[replied.record_idx].faults;
    faults.iter().filter(of_law).map(|fault| (Grade::Fail, fault.detail.clone())).collect()
}
