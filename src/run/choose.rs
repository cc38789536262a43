//! Which run of a plan is continued, and which are stale.
//!
//! Trials of different workers or machines are never mixed: a run is continued only when both are the same.

use crate::{
    plan::PlanHash,
    store::{Contents, Header, Journal, PlanFolder, RunFolder, StoreError, journal::FORMAT},
};

/// What must be the same for two trials to stand in one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// SHA-256 of the worker's binary.
    pub worker_sha256: String,
    /// What identifies the machine: whatever makes it another one when it changes. Compared for equality only.
    pub machine: String,
}

/// Which run a plan goes on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The newest run by the same worker on the same machine; `None` calls for a new one.
    pub continued: Option<RunFolder>,
    /// The other runs, oldest first, each with the reason why it is not continued.
    pub stale: Vec<(RunFolder, String)>,
}

/// Chooses among the runs of a plan. With `fresh` none is continued.
///
/// # Errors
/// [`StoreError`] when a run's header cannot be read, unless `fresh`: the run could be the one to continue.
pub fn choose(plan: &PlanFolder, identity: &Identity, fresh: bool) -> Result<Choice, StoreError> {
    let mut choice = Choice { continued: None, stale: Vec::new() };
    for run in plan.runs()? {
        let difference = match run.header() {
            Ok(None) => Some("its journal is gone".to_owned()),
            Ok(Some(_)) if fresh => Some("a fresh run was asked for".to_owned()),
            Ok(Some(header)) => difference(&header, identity),
            Err(error) if fresh => Some(error.to_string()),
            Err(error) => return Err(error),
        };
        match difference {
            Some(why) => choice.stale.push((run, why)),
            None => {
                let older = choice.continued.replace(run);
                choice.stale.extend(older.map(|run| (run, "a newer run is continued".to_owned())));
            }
        }
    }
    choice.stale.sort_by(|(left, _), (right, _)| left.id().cmp(right.id()));
    Ok(choice)
}

/// Says why trials of a run must not be mixed with new ones; `None` when they may.
fn difference(header: &Header, identity: &Identity) -> Option<String> {
    if header.worker_sha256 != identity.worker_sha256 {
        let short = header.worker_sha256.get(..12).unwrap_or(&header.worker_sha256);
        return Some(format!("it was measured by another worker ({short})"));
    }
    (header.machine != identity.machine).then(|| format!("it was measured on another machine ({})", header.machine))
}

/// A run that is ready for trials.
#[derive(Debug)]
pub struct Begun {
    /// Its folder.
    pub run: RunFolder,
    /// Its journal, open for appending.
    pub journal: Journal,
    /// What the journal held, and whether a torn line was cut off.
    pub contents: Contents,
    /// The runs that are not continued.
    pub stale: Vec<(RunFolder, String)>,
}

/// Opens the chosen run, or a new one that begins at `utc` (such as `20260102T030405Z`) on `host`, and removes the
/// manifest, which will no longer hold. The caller holds the lock of the plan's folder.
///
/// # Errors
/// As [`choose`] and [`Journal::open`].
pub fn begin(
    plan: &PlanFolder,
    hash: PlanHash,
    identity: &Identity,
    fresh: bool,
    (utc, host): (&str, &str),
) -> Result<Begun, StoreError> {
    let Choice { continued, stale } = choose(plan, identity, fresh)?;
    let header = |run: &str| Header {
        format: FORMAT,
        plan: hash.to_string(),
        run: run.to_owned(),
        worker_sha256: identity.worker_sha256.clone(),
        machine: identity.machine.clone(),
    };
    plan.unseal()?;
    let run = continued.map_or_else(|| plan.create_run(utc, host, header), Ok)?;
    let header = header(run.id());
    let (journal, contents) = run.append(&header)?;
    Ok(Begun { run, journal, contents, stale })
}
