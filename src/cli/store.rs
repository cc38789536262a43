//! `rare list`, `rare show`, `rare verify`: what the store holds and whether it is whole.

use std::path::Path;

use serde_json::{Value, json};

use super::{
    arguments::{HashArguments, VerifyArguments},
    console::Console,
    exit::{Exit, Failure, full},
    failures::store_failure,
    standing::{self, Standing},
};
use crate::{
    plan::{self, Plan},
    store::{PlanFolder, Store, lock::Holder},
};

/// Lists the plans of the store.
pub(super) fn list(console: &Console, reports: &Path) -> Result<Exit, Failure> {
    let plans = Listed::all(reports)?;
    console.line(format_args!("plans in {}", reports.display()));
    if plans.is_empty() {
        console.line("  none yet; `rare make SPEC` makes one");
    }
    let width = plans.iter().map(|plan| plan.folder.name().len()).max().unwrap_or(0);
    for Listed { folder, standing, is_damaged } in &plans {
        let damaged = if *is_damaged { "damaged: " } else { "" };
        console.line(format_args!("  {}  {:width$}  {damaged}{standing}", folder.short(), folder.name()));
    }
    let exit = Listed::exit(&plans);
    if exit != Exit::Valid {
        console.line("  = help: `rare verify` tells what is damaged");
    }
    Ok(exit)
}

/// Returns the plans of the store for tools, and whether all of them can be read.
pub(super) fn listed(reports: &Path) -> Result<(Value, Exit), Failure> {
    let plans = Listed::all(reports)?;
    let value = |Listed { folder, standing, is_damaged }: &Listed| {
        let path = folder.path().display().to_string();
        json!({"plan": folder.short(), "name": folder.name(), "path": path, "standing": standing, "damaged": is_damaged})
    };
    Ok((plans.iter().map(value).collect(), Listed::exit(&plans)))
}

/// A plan of the store as listings show it.
struct Listed {
    folder: PlanFolder,
    /// The number of its runs and how the newest stands, or why that cannot be told.
    standing: String,
    is_damaged: bool,
}

impl Listed {
    fn all(reports: &Path) -> Result<Vec<Self>, Failure> {
        let plans = Store::open(reports).and_then(|store| store.plans()).map_err(store_failure)?;
        let listed = plans.into_iter().map(|folder| {
            let (standing, is_damaged) = summary(&folder).unwrap_or_else(|failure| (failure.what, true));
            Self { folder, standing, is_damaged }
        });
        Ok(listed.collect())
    }

    fn exit(plans: &[Self]) -> Exit {
        if plans.iter().any(|plan| plan.is_damaged) { Exit::Store } else { Exit::Valid }
    }
}

/// The number of runs of a plan and how the newest stands; whether it is damaged.
fn summary(folder: &PlanFolder) -> Result<(String, bool), Failure> {
    let runs = folder.runs().map_err(store_failure)?;
    let n_runs = if runs.len() == 1 { "1 run".to_owned() } else { format!("{} runs", runs.len()) };
    let Some(newest) = runs.last() else { return Ok((n_runs, false)) };
    let Standing { begun, holds, is_damaged } = Standing::of(&plan_of(folder)?, newest);
    let newest = if runs.len() == 1 { "" } else { "newest " };
    Ok((format!("{n_runs}, {newest}{begun}: {holds}"), is_damaged))
}

fn plan_of(folder: &PlanFolder) -> Result<Plan, Failure> {
    let bytes = folder.plan().map_err(store_failure)?;
    Plan::from_canonical(&bytes).map_err(|error| {
        let path = folder.path().join("plan.json");
        Failure::new(Exit::Store, format!("cannot use `{}`: {}", path.display(), full(&error)))
            .help("`rare verify` tells what is damaged")
    })
}

/// Shows one plan with its runs.
pub(super) fn show(console: &Console, arguments: &HashArguments) -> Result<Exit, Failure> {
    let store = Store::open(&arguments.store.reports).map_err(store_failure)?;
    let folder = store.find(&arguments.hash).map_err(store_failure)?;
    let plan = plan_of(&folder)?;
    let n_cpus = super::n_cpus();
    console.line(plan::listing(&plan, n_cpus));
    console.line(format_args!("\nname    {}", folder.name()));
    console.line(format_args!("hash    {}", plan.hash()));
    let runs = folder.runs().map_err(store_failure)?;
    console.line(if runs.is_empty() { "runs    none yet" } else { "runs" });
    let mut exit = Exit::Valid;
    for (run, here) in runs.iter().zip(standing::here(&folder, &plan)?) {
        let Standing { begun, holds, is_damaged } = Standing::of(&plan, run);
        let damaged = if is_damaged { "damaged: " } else { "" };
        console.line(format_args!("  {}\n    {begun}: {damaged}{holds}\n    {here}", run.id()));
        exit = exit.max(if is_damaged { Exit::Store } else { Exit::Valid });
    }
    let report = folder.path().join("report.html");
    if report.is_file() {
        console.line(format_args!("report  {}", report.display()));
    } else {
        console.line("report  none yet");
    }
    Ok(exit)
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
            exit = exit.max(repair(console, folder)?);
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

/// Repairs what can be repaired; what cannot is said and does not keep the rest from it.
fn repair(console: &Console, folder: &PlanFolder) -> Result<Exit, Failure> {
    let holder = Holder::this_process("rare verify --repair", folder.short(), &super::now());
    let _lock = folder.lock(&holder).map_err(store_failure)?;
    let mut exit = Exit::Valid;
    for run in folder.runs().map_err(store_failure)? {
        let repaired = match run.repair() {
            Ok(repaired) => repaired,
            Err(error) => {
                let failure = store_failure(error);
                console.failure(&failure);
                exit = exit.max(failure.exit);
                continue;
            }
        };
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
    Ok(exit)
}
