//! `rare rerun`: measures a plan again, from nothing but its hash or a published file, and compares the environments.

use std::{fs, path::Path};

use super::{
    arguments::RerunArguments,
    console::Console,
    exit::{Exit, Failure},
    make,
    measure::{self, Choices, Subject, store_failure},
    report,
};
use crate::{
    plan::Plan,
    record::{
        Environment, Reading,
        environment::{Difference, Stability},
    },
    report as published,
    store::{PlanFolder, Store},
};

/// Measures a plan again in a new run.
pub(super) fn rerun(console: &Console, arguments: &RerunArguments) -> Result<Exit, Failure> {
    let store = Store::open(&arguments.store.reports).map_err(store_failure)?;
    let found = Found::locate(&store, &arguments.plan)?;
    let plan = Plan::from_canonical(&found.plan_bytes).map_err(|error| Failure::from_error(Exit::Wrong, &error))?;
    let subject = Subject {
        name: &found.name,
        plan: &plan,
        hash: plan.hash(),
        spec_text: found.spec_text.as_deref(),
        budget: None,
    };
    let command = format!("rare rerun {}", arguments.plan);
    let choices = Choices { reports: &arguments.store.reports, fresh: true, retry_failed: false, command: &command };
    let earlier = store.find(&plan.hash().to_string()).ok().and_then(|folder| latest_environment(&folder));
    let measured = measure::measure(console, &subject, &choices)?;
    if let Some(exit) = make::interrupted(&measured) {
        return Ok(exit);
    }
    let written = report::write(&measured.folder, &measured.run, arguments.templates.templates.as_deref())?;
    console.line(make::counts(&measured));
    written.print(console, &measured.folder, &measured.run);
    let now = measured.run.environment().map_err(store_failure)?;
    match (earlier, now) {
        (Some((run, before)), Some(now)) => compare(console, &run, &before, &now),
        _ => console.line("environment: no earlier run of this plan here to compare with"),
    }
    Ok(written.exit)
}

/// A plan to run again and what is known of it.
struct Found {
    name: String,
    plan_bytes: Vec<u8>,
    spec_text: Option<String>,
}

impl Found {
    /// Finds the plan by hash in the store, or in a file.
    fn locate(store: &Store, plan: &str) -> Result<Self, Failure> {
        let path = Path::new(plan);
        if path.is_file() { Self::in_file(path) } else { Self::in_store(store, plan) }
    }

    fn in_store(store: &Store, hash: &str) -> Result<Self, Failure> {
        let folder = store.find(hash).map_err(store_failure)?;
        Ok(Self {
            name: folder.name().to_owned(),
            plan_bytes: folder.plan().map_err(store_failure)?,
            spec_text: folder.spec().map_err(store_failure)?,
        })
    }

    fn in_file(path: &Path) -> Result<Self, Failure> {
        let cannot = |why: String| Failure::new(Exit::Wrong, format!("cannot rerun `{}`: {why}", path.display()));
        let bytes = fs::read(path).map_err(|error| cannot(error.to_string()))?;
        if bytes.first() == Some(&b'{') {
            let beside = path.with_file_name("spec.yaml");
            let spec_text = fs::read_to_string(beside).ok();
            let mut found = Self { name: String::new(), plan_bytes: bytes, spec_text };
            found.name = found.name_of_spec()?;
            return Ok(found);
        }
        let text =
            String::from_utf8(bytes).map_err(|_| cannot("it is neither a plan.json nor a report.html".into()))?;
        let plan_bytes = published::embedded_plan(&text)
            .ok_or_else(|| cannot("it embeds no plan; a report.html of rare does".into()))?;
        let mut found = Self { name: String::new(), plan_bytes, spec_text: published::embedded_spec(&text) };
        found.name = found.name_of_spec()?;
        Ok(found)
    }

    /// Returns the name that the spec gives the experiment; without a spec, what a bare plan can be called.
    fn name_of_spec(&self) -> Result<String, Failure> {
        let compiled = self.spec_text.as_ref().and_then(|text| {
            let source = crate::diag::Source { name: "spec.yaml".to_owned(), text: text.clone() };
            crate::spec::compile(&source, false).ok()
        });
        Ok(compiled.map_or_else(|| "rerun".to_owned(), |compiled| compiled.spec.name))
    }
}

/// Returns the environment of the newest run that has one, with the run's name.
fn latest_environment(folder: &PlanFolder) -> Option<(String, Environment)> {
    let runs = folder.runs().ok()?;
    runs.into_iter().rev().find_map(|run| {
        let environment = run.environment().ok()??;
        Some((run.id().to_owned(), environment))
    })
}

/// Prints in what two runs' environments differ: what means another machine or build first.
fn compare(console: &Console, run: &str, before: &Environment, now: &Environment) {
    let differences = Environment::differences(&before.before, &now.before);
    let of = |stability| differences.iter().filter(move |difference| difference.stability == stability);
    let n_volatile = of(Stability::Volatile).count();
    let lasting: Vec<_> = of(Stability::Fixed).chain(of(Stability::Setting)).collect();
    if lasting.is_empty() {
        console.line(format_args!(
            "environment: same machine, build and settings as run {run} ({n_volatile} readings differ that change by themselves)"
        ));
        return;
    }
    console.line(format_args!("environment: {} parameters differ from run {run}", lasting.len()));
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
