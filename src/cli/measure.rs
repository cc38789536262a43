//! Runs what is missing of a plan: finds the worker, the folder and its run, and takes the locks.

use std::path::Path;

use rare_workloads::protocol::{Mix, frame};

use super::{
    console::Console,
    exit::{Exit, Failure},
    failures::{cannot, store_failure},
    rerun,
    session::Session,
};
use crate::{
    host::{environment, machine::Machine, topology::Topology},
    plan::{Plan, PlanHash},
    record::{Environment, Snapshot},
    run::{self, Choice, Host, Identity, Stop, Summary, Worker},
    spec,
    store::{
        PlanFolder, RunFolder, Store, StoreError,
        lock::{Holder, Lock},
    },
    units::Nanos,
    verdict::checks,
};

/// What is measured.
pub(super) struct Subject<'a> {
    /// Name of the experiment, the folder under the reports.
    pub name: &'a str,
    /// The plan.
    pub plan: &'a Plan,
    /// Its hash.
    pub hash: PlanHash,
    /// Text of the spec, kept beside the plan; `None` leaves what is there.
    pub spec_text: Option<&'a str>,
    /// The run stops before a block that would exceed this.
    pub budget: Option<Nanos>,
    /// Names that the spec gives to mixes.
    pub mix_names: &'a [(Mix, String)],
}

/// How it is measured.
pub(super) struct Choices<'a> {
    /// Folder of the reports.
    pub reports: &'a Path,
    /// Starts a new run even if one could be continued.
    pub fresh: bool,
    /// Tries failed trials again.
    pub retry_failed: bool,
    /// The command as others see it who find the lock taken.
    pub command: &'a str,
    /// The command that goes on with what an interrupted run lacks.
    pub go_on: &'a str,
}

/// A run after everything possible was done for it.
pub(super) struct Measured {
    /// Folder of the plan; its lock is held as long as this lives.
    pub folder: PlanFolder,
    /// Folder of the run.
    pub run: RunFolder,
    /// What was executed now.
    pub summary: Summary,
    _lock: Lock,
}

/// Measures what is missing.
///
/// # Errors
/// [`Exit::Cannot`] before anything is written when this version or this machine cannot honour the plan;
/// [`Exit::Store`].
pub(super) fn measure(console: &Console, subject: &Subject<'_>, choices: &Choices<'_>) -> Result<Measured, Failure> {
    known(subject.plan)?;
    let worker = Worker::locate(&mut |message| console.alert(message))
        .map_err(|error| Failure::from_error(Exit::Cannot, &error))?;
    let topology = Topology::read(Path::new("/")).map_err(|error| Failure::from_error(Exit::Cannot, &error))?;
    let host = Host::new(subject.plan, topology).map_err(|errors| cannot(&errors))?;
    run::check(subject.plan, &host).map_err(|errors| cannot(&errors))?;

    let before = snapshot(&worker, choices.reports);
    let identity = identity(&worker, &before);
    let holder = Holder::this_process(choices.command, &subject.hash.short(), &before.taken);
    let store = Store::open(choices.reports).map_err(store_failure)?;
    let is_here = store.find(&format!("{}/{}", subject.name, subject.hash)).is_ok();
    let renamed = if is_here || choices.fresh { None } else { renamed(&store, subject, &identity, &holder) };
    // Of a new plan every trial is missing; while another run measures, nothing of it must appear.
    let mut machine = None;
    if !is_here && renamed.is_none() {
        machine = Some(Lock::machine(&holder).map_err(store_failure)?);
    }
    let folder = store.create(subject.name, subject.hash, &subject.plan.canonical()).map_err(store_failure)?;
    let lock = folder.lock(&holder).map_err(store_failure)?;
    if let Some(Renamed { name, run, _lock }) = renamed {
        folder.adopt(&run).map_err(store_failure)?;
        console.note(format_args!("copied run {} of this plan from its other name `{name}`", run.id()));
    }

    let choice = run::choose(&folder, &identity, choices.fresh).map_err(store_failure)?;
    if choice.continued.is_none() && !choices.fresh {
        tell_stale(console, &choice, &before);
    }
    let done = complete(subject.plan, &choice, choices.retry_failed).map_err(store_failure)?;
    if done.is_none() && machine.is_none() {
        machine = Some(Lock::machine(&holder).map_err(store_failure)?);
    }
    keep_spec(&folder, subject.spec_text).map_err(store_failure)?;
    let (run, summary) = match done {
        Some(done) => done,
        None => {
            let session =
                Session { console, subject, choices, folder: &folder, worker: &worker, host: &host, identity };
            session.run(before)?
        }
    };
    drop(machine);
    Ok(Measured { folder, run, summary, _lock: lock })
}

/// Refuses a plan with checks or instruments that this version does not have: its report would pass over them in
/// silence.
fn known(plan: &Plan) -> Result<(), Failure> {
    let has_check = |name: &&String| checks::ALL.iter().any(|check| check.info().name == **name);
    let has_instrument = |name: &&String| spec::words::names(spec::words::INSTRUMENTS).any(|built| built == **name);
    let check = plan.checks.iter().find(|name| !has_check(name)).map(|name| ("sanity check", name));
    let instrument = plan.instruments.iter().find(|name| !has_instrument(name)).map(|name| ("instrument", name));
    check.or(instrument).map_or(Ok(()), |(kind, name)| {
        Err(Failure::new(Exit::Cannot, format!("this version of rare does not have the {kind} `{name}` of the plan"))
            .help("nothing ran; use the version of rare that wrote the plan"))
    })
}

/// A run of the same plan under another name, kept as it is while the lock lives.
struct Renamed {
    name: String,
    run: RunFolder,
    _lock: Lock,
}

/// Finds a run to go on with under another name of the same plan: a name changes no trial, so a new one costs none.
/// What cannot be read or is in use there is left alone.
fn renamed(store: &Store, subject: &Subject<'_>, identity: &Identity, holder: &Holder) -> Option<Renamed> {
    let hash = subject.hash.to_string();
    let same = |folder: &PlanFolder| hash.starts_with(folder.short()) && folder.hash().is_ok_and(|known| known == hash);
    store.plans().ok()?.into_iter().filter(same).find_map(|folder| {
        let lock = folder.lock(holder).ok()?;
        let run = run::choose(&folder, identity, false).ok()?.continued?;
        let has_trials = run.read().is_ok_and(|contents| !contents.trials.is_empty());
        has_trials.then(|| Renamed { name: folder.name().to_owned(), run, _lock: lock })
    })
}

/// Says why the newest run is not continued.
fn tell_stale(console: &Console, choice: &Choice, before: &Snapshot) {
    let Some((newest, why)) = choice.stale.last() else { return };
    let older = match choice.stale.len() - 1 {
        0 => String::new(),
        n => format!(", nor are {n} older ones"),
    };
    console.note(format_args!("run {} is not continued{older}: {}", newest.id(), reason(newest, why, before)));
}

/// Keeps the text of the spec beside its plan; the manifest no longer holds when it changes.
fn keep_spec(folder: &PlanFolder, text: Option<&str>) -> Result<(), StoreError> {
    match text {
        Some(text) if folder.spec()?.as_deref() != Some(text) => {
            folder.unseal()?;
            folder.write("spec.yaml", text.as_bytes())
        }
        _ => Ok(()),
    }
}

/// Returns the run to continue when nothing is missing in it.
fn complete(plan: &Plan, choice: &Choice, retry_failed: bool) -> Result<Option<(RunFolder, Summary)>, StoreError> {
    let Some(run) = &choice.continued else { return Ok(None) };
    let contents = run.read()?;
    let n_missing = run::missing(plan, &contents.trials, retry_failed);
    // Without the environment after the last trial the run was killed behind it.
    let ended = run.environment()?.is_some_and(|environment| environment.after.is_some());
    if n_missing > 0 || contents.torn.is_some() || !ended {
        return Ok(None);
    }
    let n_skipped = plan.n_trials();
    let summary = Summary { n_executed: 0, n_skipped, n_failed: 0, n_missing: 0, stop: Stop::Complete };
    Ok(Some((run.clone(), summary)))
}

pub(super) fn snapshot(worker: &Worker, reports: &Path) -> Snapshot {
    environment::snapshot(&Machine { root: Path::new("/"), worker: Some(&worker.path), reports: Some(reports) })
}

/// Returns what must be equal for trials to stand in one run: the worker, and a digest of the machine's identity, 12
/// hexadecimal digits.
pub(super) fn identity(worker: &Worker, snapshot: &Snapshot) -> Identity {
    let text = serde_json::to_vec(&snapshot.identity()).expect("an identity is plain data");
    let machine = frame::sha256_hex(&text)[..12].to_owned();
    Identity { worker_sha256: worker.sha256.clone(), machine }
}

/// Says in what the environment of a stale run differs where it is known, and otherwise what its header tells.
pub(super) fn reason(stale: &RunFolder, why: &str, now: &Snapshot) -> String {
    let Ok(Some(environment)) = stale.environment() else { return why.to_owned() };
    let differences = Environment::stale(&environment.before, now);
    match differences.as_slice() {
        [] => why.to_owned(),
        [only] => rerun::described(only),
        [first, rest @ ..] => format!("{}, and {} more differences", rerun::described(first), rest.len()),
    }
}
