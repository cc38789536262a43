//! `rare list`, `rare show`, `rare verify`: what the store holds and whether it is whole.

use super::{
    arguments::{HashArguments, StoreArguments, VerifyArguments},
    catalogue,
    console::Console,
    exit::{Exit, Failure},
    measure::store_failure,
};
use crate::{
    plan::{self, Plan},
    record::Outcome,
    store::{PlanFolder, Store, lock::Holder},
};

/// Lists what can be run, and the plans of the store.
pub(super) fn list(console: &Console, arguments: &StoreArguments) -> Result<Exit, Failure> {
    console.line(catalogue::text());
    let plans = Store::open(&arguments.reports).and_then(|store| store.plans()).map_err(store_failure)?;
    console.line(format_args!("plans in {}", arguments.reports.display()));
    if plans.is_empty() {
        console.line("  none yet; `rare make SPEC` makes one");
    }
    let width = plans.iter().map(|plan| plan.name().len()).max().unwrap_or(0);
    for plan in plans {
        let n_runs = plan.runs().map_err(store_failure)?.len();
        let runs = if n_runs == 1 { "1 run".to_owned() } else { format!("{n_runs} runs") };
        console.line(format_args!("  {}  {:width$}  {runs}", plan.short(), plan.name()));
    }
    Ok(Exit::Valid)
}

/// Shows one plan with its runs.
pub(super) fn show(console: &Console, arguments: &HashArguments) -> Result<Exit, Failure> {
    let store = Store::open(&arguments.store.reports).map_err(store_failure)?;
    let folder = store.find(&arguments.hash).map_err(store_failure)?;
    let plan = Plan::from_canonical(&folder.plan().map_err(store_failure)?)
        .map_err(|error| Failure::from_error(Exit::Store, &error))?;
    let n_cpus = super::n_cpus();
    console.write(plan::listing(&plan, n_cpus));
    console.line("runs");
    for run in folder.runs().map_err(store_failure)? {
        let trials = run.read().map(|contents| contents.trials).map_err(store_failure)?;
        let n_failed = trials.iter().filter(|trial| matches!(trial.outcome, Outcome::Failed { .. })).count();
        console.line(format_args!("  {}  {} records, {n_failed} failed", run.id(), trials.len()));
    }
    console.line(format_args!("report  {}", folder.path().join("report.html").display()));
    Ok(Exit::Valid)
}

/// Checks the digests of one plan or of all, and repairs journals on request.
pub(super) fn verify(console: &Console, arguments: &VerifyArguments) -> Result<Exit, Failure> {
    let store = Store::open(&arguments.store.reports).map_err(store_failure)?;
    let plans = match &arguments.hash {
        Some(hash) => vec![store.find(hash).map_err(store_failure)?],
        None => store.plans().map_err(store_failure)?,
    };
    let mut exit = Exit::Valid;
    for folder in &plans {
        if arguments.repair {
            repair(console, folder)?;
        }
        exit = exit.max(examine(console, folder)?);
    }
    if plans.is_empty() {
        console.line(format_args!("nothing to verify in {}", arguments.store.reports.display()));
    }
    Ok(exit)
}

fn examine(console: &Console, folder: &PlanFolder) -> Result<Exit, Failure> {
    let verification = folder.verify().map_err(store_failure)?;
    let plan = format!("{}/{}", folder.name(), folder.short());
    for (file, notice) in &verification.notices {
        console.line(format_args!("{plan}: {file}: {notice}"));
    }
    for (file, fault) in &verification.faults {
        console.line(format_args!("{plan}: damaged: {file}: {fault}"));
    }
    if verification.faults.is_empty() {
        let sealed = if verification.sealed { "" } else { ", without a manifest: a run is unfinished" };
        console.line(format_args!("{plan}: ok, {} files proven{sealed}", verification.n_proven));
        return Ok(Exit::Valid);
    }
    console.line("  = help: `rare verify --repair` keeps the good records of a damaged journal; `rare report` writes a damaged report again");
    Ok(Exit::Store)
}

fn repair(console: &Console, folder: &PlanFolder) -> Result<(), Failure> {
    let holder = Holder::this_process("rare verify --repair", folder.short(), &super::now());
    let _lock = folder.lock(&holder).map_err(store_failure)?;
    for run in folder.runs().map_err(store_failure)? {
        let repaired = run.repair().map_err(store_failure)?;
        let Some(damaged) = repaired.damaged else { continue };
        folder.unseal().map_err(store_failure)?;
        console.line(format_args!(
            "{}: kept {} records, lost {}; the damaged journal is {}",
            run.id(),
            repaired.kept,
            repaired.lost.len(),
            damaged.display()
        ));
        for (record, offset, why) in &repaired.lost {
            console.line(format_args!("  record {record} at byte {offset}: {why}"));
        }
    }
    Ok(())
}
