//! Writes reports from what the store holds; measures nothing.

use super::{
    arguments::{ReportArguments, ReportingArguments},
    command,
    console::Console,
    exit::{Exit, Failure},
    failures::store_failure,
};
use crate::{
    diag::Source,
    plan::Plan,
    record::{Environment, Trial},
    report, spec, stats,
    store::{PlanFolder, RunFolder, Store, lock::Holder},
    verdict::{self, Decision, Evidence, Grade},
};

/// `rare report`: writes the report of a plan's newest run again.
pub(super) fn report(console: &Console, arguments: &ReportArguments) -> Result<Exit, Failure> {
    check_templates(&arguments.reporting)?;
    let store = Store::open(&arguments.reporting.store.reports).map_err(store_failure)?;
    let folder = store.find(&arguments.hash).map_err(store_failure)?;
    let holder = Holder::this_process("rare report", folder.short(), &super::now());
    let _lock = folder.lock(&holder).map_err(store_failure)?;
    let run = newest(&folder)?;
    let written = write(&folder, &run, &arguments.reporting)?;
    written.print(console, &folder, &run, &arguments.reporting);
    Ok(written.exit)
}

/// Refuses a folder of templates that cannot be used, before anything is measured or written.
pub(super) fn check_templates(reporting: &ReportingArguments) -> Result<(), Failure> {
    let Some(folder) = &reporting.templates else { return Ok(()) };
    report::check_templates(folder).map_err(|error| {
        Failure::from_error(Exit::Wrong, &error).help("nothing ran; without `--templates` the built-in ones are used")
    })
}

/// Returns the newest run that has an environment record and a trial.
fn newest(folder: &PlanFolder) -> Result<RunFolder, Failure> {
    let runs = folder.runs().map_err(store_failure)?;
    for run in runs.into_iter().rev() {
        let begun = run.environment().map_err(store_failure)?.is_some();
        if begun && !run.read().map_err(store_failure)?.trials.is_empty() {
            return Ok(run);
        }
    }
    Err(Failure::new(Exit::Wrong, format!("plan {} has no run with a trial", folder.short()))
        .help("`rare make` or `rare rerun` measures one"))
}

/// Everything that a report is made of.
struct Material {
    plan_bytes: Vec<u8>,
    plan: Plan,
    spec: Option<(String, spec::Spec)>,
    trials: Vec<Trial>,
    environment: Environment,
    record_bytes: u64,
}

impl Material {
    /// Reads it from the store.
    fn read(folder: &PlanFolder, run: &RunFolder) -> Result<Self, Failure> {
        let plan_bytes = folder.plan().map_err(store_failure)?;
        let plan = Plan::from_canonical(&plan_bytes).map_err(|error| Failure::from_error(Exit::Store, &error))?;
        let spec = match folder.spec().map_err(store_failure)? {
            Some(text) => compile_to(&plan, &text).map(|spec| (text, spec)),
            None => None,
        };
        let contents = run.read().map_err(store_failure)?;
        let environment = run
            .environment()
            .map_err(store_failure)?
            .ok_or_else(|| Failure::new(Exit::Store, format!("run {} has no environment record", run.id())))?;
        let record_bytes = run.journal_bytes().map_err(store_failure)?;
        Ok(Self { plan_bytes, plan, spec, trials: contents.trials, environment, record_bytes })
    }
}

/// Compiles the text of a spec, with or without its quick block, to the spec of this very plan; `None` when it makes
/// another plan.
pub(super) fn compile_to(plan: &Plan, text: &str) -> Option<spec::Spec> {
    let source = Source { name: "spec.yaml".to_owned(), text: text.to_owned() };
    [false, true].into_iter().find_map(|quick| {
        let compiled = spec::compile(&source, quick).ok()?.spec;
        (Plan::compile(&compiled, verdict::probes).ok()?.hash() == plan.hash()).then_some(compiled)
    })
}

/// A written report.
pub(super) struct Written {
    /// What the data say about the exit code.
    pub exit: Exit,
    /// The answer in a sentence, and the verdicts.
    summary: Vec<String>,
}

impl Written {
    /// Prints the answer, then where everything is, a labelled line each.
    pub(super) fn print(
        &self,
        console: &Console,
        folder: &PlanFolder,
        run: &RunFolder,
        reporting: &ReportingArguments,
    ) {
        for line in &self.summary {
            console.line(line);
        }
        let reference = command::reference(&reporting.store.reports, folder);
        let again = command::of_plan("rerun", &reference, reporting);
        console.line(format_args!("plan    {}", folder.short()));
        console.line(format_args!("run     {}", run.path().display()));
        for name in ["report.html", "report.md"] {
            console.line(format_args!("report  {}", folder.path().join(name).display()));
        }
        console.line(format_args!("again   {again}"));
    }
}

/// Looks at the evidence of one run. The caller holds the folder's lock.
pub(super) fn examine<T>(
    folder: &PlanFolder,
    run: &RunFolder,
    look: impl FnOnce(&Evidence<'_>) -> T,
) -> Result<T, Failure> {
    let material = Material::read(folder, run)?;
    let summary = stats::summarise(&material.plan, &material.trials);
    let evidence = Evidence {
        name: folder.name(),
        run_name: run.id(),
        quick: material.spec.as_ref().is_some_and(|(_, spec)| spec.quick),
        spec_text: material.spec.as_ref().map(|(text, _)| text.as_str()),
        spec: material.spec.as_ref().map(|(_, spec)| spec),
        plan: &material.plan,
        plan_bytes: &material.plan_bytes,
        hash: material.plan.hash(),
        trials: &material.trials,
        environment: &material.environment,
        summary: &summary,
        record_bytes: Some(material.record_bytes),
    };
    Ok(look(&evidence))
}

/// Renders and writes the report of one run. The caller holds the folder's lock.
pub(super) fn write(folder: &PlanFolder, run: &RunFolder, reporting: &ReportingArguments) -> Result<Written, Failure> {
    examine(folder, run, |evidence| write_of(evidence, folder, reporting))?
}

fn write_of(evidence: &Evidence<'_>, folder: &PlanFolder, reporting: &ReportingArguments) -> Result<Written, Failure> {
    let rendered = report::render(evidence, reporting.templates.as_deref())
        .map_err(|error| Failure::from_error(Exit::Wrong, &error))?;
    let files = [("report.md", &rendered.markdown), ("report.html", &rendered.html), ("data.csv", &rendered.csv)];
    folder.unseal().map_err(store_failure)?;
    for (name, text) in files {
        folder.write(name, text.as_bytes()).map_err(store_failure)?;
    }
    for (name, svg) in &rendered.figures {
        folder.write(&format!("figures/{name}"), svg.as_bytes()).map_err(store_failure)?;
    }
    folder.seal().map_err(store_failure)?;
    Ok(judge(evidence))
}

/// Reads the exit code and the lines for the terminal from the evidence.
fn judge(evidence: &Evidence<'_>) -> Written {
    let mut summary = vec![report::answer(evidence)];
    let mut exit = Exit::Valid;
    let n_failed = evidence.summary.n_standing(stats::Standing::Failed);
    if n_failed > 0 {
        exit = Exit::TrialsFailed;
        summary.push(format!("{n_failed} trials failed; the report lists them"));
    }
    for verdict in verdict::judge(evidence) {
        if verdict.grade == Grade::Fail {
            exit = exit.max(Exit::CheckFailed);
            summary.push(format!("check {} failed: {}", verdict.info.name, verdict.summary));
        }
    }
    for claim in verdict::claims::decide(evidence) {
        if claim.decision == Decision::Fails {
            exit = exit.max(Exit::CheckFailed);
        }
        summary.push(format!("claim `{}`: {}", claim.claim.text, claim.decision.name()));
    }
    Written { exit, summary }
}
