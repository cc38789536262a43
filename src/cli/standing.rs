//! Where the runs of a plan stand: how much of it they hold, and whether `make` would go on with them here.

use std::collections::BTreeMap;

use super::{
    exit::{Failure, full},
    failures::store_failure,
    make::trials,
    measure,
};
use crate::{
    plan::Plan,
    record::{Environment, Trial},
    run::{self, Worker},
    store::{PlanFolder, RunFolder},
};

/// What one run holds of its plan.
pub(super) struct Standing {
    /// When it began, RFC 3339 to the minute, and on which host.
    pub begun: String,
    /// How much of the plan it holds.
    pub holds: String,
    /// Whether its files cannot be read.
    pub is_damaged: bool,
}

impl Standing {
    /// Reads a run.
    pub(super) fn of(plan: &Plan, run: &RunFolder) -> Self {
        let environment = run.environment();
        let begun = match &environment {
            Ok(Some(environment)) => begun(environment),
            Ok(None) | Err(_) => "no environment record".to_owned(),
        };
        match (run.read(), environment) {
            (Ok(contents), Ok(_)) => {
                let n_missing = run::missing(plan, &contents.trials, false);
                let n_failed = failed(plan, &contents.trials);
                let n_done = trials(plan.n_trials() - n_missing);
                let mut holds = match n_missing {
                    0 => format!("complete, {n_done}"),
                    n_missing => format!("{n_done}, {n_missing} missing"),
                };
                if n_failed > 0 {
                    holds.push_str(&format!(", {n_failed} failed"));
                }
                Self { begun, holds, is_damaged: false }
            }
            (Err(error), _) | (_, Err(error)) => Self { begun, holds: full(&error), is_damaged: true },
        }
    }
}

/// Returns how many trials of the plan failed at their last attempt.
fn failed(plan: &Plan, records: &[Trial]) -> usize {
    let last: BTreeMap<_, _> = records.iter().map(|record| (record.trial, &record.outcome)).collect();
    plan.trials().filter(|trial| last.get(trial).is_some_and(|outcome| outcome.has_failed())).count()
}

fn begun(environment: &Environment) -> String {
    let taken = environment.before.taken.get(..16).unwrap_or(&environment.before.taken).replace('T', " ");
    let host = environment.before.value("os.hostname").unwrap_or("an unknown host");
    format!("{taken} UTC on {host}")
}

/// What `make` would do with each run of a plan on this machine, in the order of the runs.
pub(super) fn here(folder: &PlanFolder, plan: &Plan) -> Result<Vec<String>, Failure> {
    let runs = folder.runs().map_err(store_failure)?;
    let same = |text: &str| vec![text.to_owned(); runs.len()];
    // The worker is not built for this: to look at a store must not take minutes.
    let Some(worker) = Worker::present() else {
        return Ok(same("`make` here: cannot tell, the worker of this build is not there"));
    };
    let now = measure::snapshot(&worker, folder.path());
    let choice = match run::choose(folder, &measure::identity(&worker, &now), false) {
        Ok(choice) => choice,
        Err(_) => return Ok(same("`make` here: stops, since a journal of this plan is damaged")),
    };
    let described = |run: &RunFolder| match choice.stale.iter().find(|(stale, _)| stale == run) {
        Some((_, why)) => format!("`make` here: not continued, {}", measure::reason(run, why, &now)),
        None if run.read().is_ok_and(|contents| run::missing(plan, &contents.trials, false) > 0) => {
            "`make` here: goes on with it".to_owned()
        }
        None => "`make` here: has nothing to run".to_owned(),
    };
    Ok(runs.iter().map(described).collect())
}
