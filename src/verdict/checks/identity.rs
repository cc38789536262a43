//! Check `identity`: each record is of a planned trial, and asked of the worker what the plan says.

use super::{Check, Grade, Info, Row, Subject, Verdict, failures};
use crate::{
    stats::{Law, Standing},
    verdict::Evidence,
};

static INFO: Info = Info {
    name: "identity",
    title: "Identity of records",
    rule: "each record is of a trial in the plan and its request says what the plan says",
    threshold: "0 parameters off",
    source: "result files that are keyed by position or by an incomplete name put old numbers under new labels",
    reason: "a number under a wrong label is worse than none",
    remedy: "run `rare verify`; do not edit records; the trial is excluded from every number",
};

/// See [`INFO`].
pub(super) struct Identity;

impl Check for Identity {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let held = |n_judged| format!("all {n_judged} trials asked for what the plan says");
        let mut verdict =
            Verdict::over_trials(&INFO, evidence, |replied| failures(evidence, replied, Law::Request), held);
        let foreign: Vec<Row> = foreign_rows(evidence);
        if !foreign.is_empty() {
            verdict.grade = Grade::Fail;
            verdict.summary = format!("{} records are of trials that the plan does not have", foreign.len());
            verdict.rows.extend(foreign);
        }
        verdict
    }
}

fn foreign_rows(evidence: &Evidence) -> Vec<Row> {
    let records = evidence.trials.iter().zip(&evidence.summary.trials).enumerate();
    records
        .filter(|(_, (_, summary))| summary.standing == Standing::Foreign)
        .map(|(record_idx, (trial, _))| Row {
            subject: Subject::Record { record_idx, trial: trial.trial },
            finding: "the plan has no such trial".to_owned(),
            grade: Grade::Fail,
        })
        .collect()
}
