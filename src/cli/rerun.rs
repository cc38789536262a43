//! `rare rerun`: measures a plan again, from nothing but its hash or a published file, and compares the environments.

use std::{fs, path::Path};

use super::{
    arguments::RerunArguments,
    command,
    console::Console,
    exit::{Exit, Failure, full},
    failures::store_failure,
    make,
    measure::{self, Choices, Subject},
    report,
};
use crate::{
    plan::Plan,
    record::{
        Environment, Reading,
        environment::{Difference, Stability},
    },
    report as published,
    run::Stop,
    spec::Spec,
    store::{PlanFolder, RunFolder, Store, StoreError},
};

/// Measures a plan again: in a new run, or with `--resume` in the one that was interrupted.
pub(super) fn rerun(console: &Console, arguments: &RerunArguments) -> Result<Exit, Failure> {
    let reporting = &arguments.reporting;
    report::check_templates(reporting)?;
    let store = Store::open(&reporting.store.reports).map_err(store_failure)?;
    let found = Found::locate(&store, &arguments.plan)?;
    let (plan, hash) = (&found.plan, found.plan.hash());
    let subject = Subject {
        name: &found.name,
        plan,
        hash,
        spec_text: found.spec.as_ref().map(|(text, _)| text.as_str()),
        budget: None,
        mix_names: found.spec.as_ref().map_or(&[], |(_, spec)| &spec.mix_names),
    };
    let command = command::of_plan("rerun", &arguments.plan, reporting);
    let reference = format!("{}/{}", found.name, hash.short());
    let go_on = command::of_plan("rerun --resume", &reference, reporting);
    let choices = Choices {
        reports: &reporting.store.reports,
        fresh: !arguments.resume,
        retry_failed: false,
        command: &command,
        go_on: &go_on,
    };
    let measured = measure::measure(console, &subject, &choices)?;
    let exit = make::finish(console, &measured, reporting)?;
    if matches!(measured.summary.stop, Stop::Interrupted(_)) {
        return Ok(exit);
    }
    let now = measured.run.environment().map_err(store_failure)?;
    let before = found.environment.or_else(|| newest_environment(&measured.folder, Some(&measured.run)));
    match (before, now) {
        (Some((run, before)), Some(now)) => compare(console, &run, &before, &now),
        _ => console.line("environment: no earlier run of this plan here to compare with"),
    }
    Ok(exit)
}

/// A plan to run again and what is known of it.
struct Found {
    name: String,
    plan: Plan,
    /// The spec that makes this very plan, as text and compiled.
    spec: Option<(String, Spec)>,
    /// What a file tells of the run that it came from: what to call that, and its environment.
    environment: Option<(String, Environment)>,
}

/// What a plan is called of which nothing but its bytes is known.
const NAMELESS: &str = "rerun";

impl Found {
    /// Finds the plan in a file, in a plan's folder, or by its hash in the store.
    fn locate(store: &Store, given: &str) -> Result<Self, Failure> {
        let path = Path::new(given);
        if path.is_file() {
            return Self::in_file(store, path);
        }
        if path.join("plan.json").is_file() {
            return Self::in_file(store, &path.join("plan.json"));
        }
        let folder = store.find(given).map_err(|error| match error {
            StoreError::NotAPrefix { .. } => {
                Failure::new(Exit::Wrong, format!("`{given}` is neither a file nor the hash of a plan"))
                    .help("`rare list` shows every plan; a plan.json or a report.html will do too")
            }
            other => store_failure(other),
        })?;
        let plan = Plan::from_canonical(&folder.plan().map_err(store_failure)?)
            .map_err(|error| Failure::from_error(Exit::Store, &error).help("`rare verify` tells what is damaged"))?;
        let text = folder.spec().map_err(store_failure)?;
        Ok(Self { name: folder.name().to_owned(), spec: compiled(&plan, text), plan, environment: None })
    }

    fn in_file(store: &Store, path: &Path) -> Result<Self, Failure> {
        let cannot = |why: &dyn std::fmt::Display| {
            Failure::new(Exit::Wrong, format!("cannot rerun `{}`: {why}", path.display()))
                .help("nothing ran; name a plan.json or a report.html as rare wrote it, or the hash of a plan")
        };
        let bytes = fs::read(path).map_err(|error| cannot(&error))?;
        let (plan_bytes, spec_text, environment) = if bytes.first() == Some(&b'{') {
            (bytes, fs::read_to_string(path.with_file_name("spec.yaml")).ok(), environment_beside(path))
        } else {
            let text = String::from_utf8(bytes).map_err(|_| cannot(&"it is neither a plan.json nor a report.html"))?;
            let is_spec = path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
            let plan = published::embedded_plan(&text).ok_or_else(|| match is_spec {
                true => cannot(&"it is no plan").help(format!("`rare make {}` runs a spec", path.display())),
                false => cannot(&"it embeds no plan"),
            })?;
            let environment = published::embedded_environment(&text);
            (
                plan,
                published::embedded_spec(&text),
                environment.map(|it| ("the run that the page shows".to_owned(), it)),
            )
        };
        let plan = Plan::from_canonical(&plan_bytes).map_err(|error| cannot(&full(&error)))?;
        let spec = compiled(&plan, spec_text);
        let here = || store.find(&plan.hash().to_string()).map(|folder| folder.name().to_owned());
        let name = match &spec {
            Some((_, spec)) => spec.name.clone(),
            None => here().unwrap_or_else(|_| NAMELESS.to_owned()),
        };
        Ok(Self { name, spec, plan, environment })
    }
}

/// Keeps a spec only if it makes this very plan: what lies beside a plan or in a page may be another one's.
fn compiled(plan: &Plan, text: Option<String>) -> Option<(String, Spec)> {
    let text = text?;
    let spec = report::compile_to(plan, &text)?;
    Some((text, spec))
}

/// Returns the environment of the newest run that has one, except for one run; and what to call that run.
fn newest_environment(folder: &PlanFolder, except: Option<&RunFolder>) -> Option<(String, Environment)> {
    let runs = folder.runs().ok()?;
    runs.into_iter().rev().filter(|run| Some(run) != except).find_map(|run| {
        let environment = run.environment().ok()??;
        Some((format!("run {}", run.id()), environment))
    })
}

/// Returns the same for the store in which a plan.json lies, if it lies in one: `reports/<name>/<plan>/plan.json`.
fn environment_beside(path: &Path) -> Option<(String, Environment)> {
    let path = path.canonicalize().ok()?;
    let folder = path.parent()?;
    let short = folder.file_name()?.to_str()?;
    let name = folder.parent()?.file_name()?.to_str()?;
    let store = Store::open(folder.parent()?.parent()?).ok()?;
    newest_environment(&store.find(&format!("{name}/{short}")).ok()?, None)
}

/// Prints in what two runs' environments differ: what means another machine or build first.
fn compare(console: &Console, run: &str, before: &Environment, now: &Environment) {
    let differences = Environment::differences(&before.before, &now.before);
    let of = |stability| differences.iter().filter(move |difference| difference.stability == stability);
    let n_volatile = of(Stability::Volatile).count();
    let lasting: Vec<_> = of(Stability::Fixed).chain(of(Stability::Setting)).collect();
    if lasting.is_empty() {
        console.line(format_args!(
            "environment: same machine, build and settings as {run} ({n_volatile} readings differ that change by themselves)"
        ));
        return;
    }
    console.line(format_args!("environment: {} parameters differ from {run}", lasting.len()));
    for difference in lasting {
        console.line(format_args!("  {}", described(difference)));
    }
    console.line(format_args!("  and {n_volatile} readings that change by themselves"));
}

/// Writes a difference on one line: the parameter, what it was, what it is.
pub(super) fn described(difference: &Difference) -> String {
    let reading = |reading: &Option<Reading>| match reading {
        Some(Reading::Value(value)) => format!("{value} {}", difference.unit).trim_end().to_owned(),
        Some(Reading::Unreadable(why)) => format!("unreadable ({why})"),
        None => "not recorded".to_owned(),
    };
    format!("{}: {} -> {}", difference.key, reading(&difference.before), reading(&difference.after))
}
