//! `rare make` and `rare run`: from a spec to its records, and to its report.

use super::{
    arguments::MakeArguments,
    console::Console,
    exit::{Exit, Failure},
    experiment::Experiment,
    measure::{self, Choices, Measured, Subject},
    report,
};
use crate::run::Stop;

/// Checks, plans, runs what is missing, and writes the report.
pub(super) fn make(console: &Console, arguments: &MakeArguments) -> Result<Exit, Failure> {
    let measured = measured(console, arguments, "make")?;
    if let Some(exit) = interrupted(&measured) {
        return Ok(exit);
    }
    let written = report::write(&measured.folder, &measured.run, arguments.templates.templates.as_deref())?;
    console.line(counts(&measured));
    written.print(console, &measured.folder, &measured.run);
    Ok(written.exit)
}

/// Checks, plans and runs what is missing.
pub(super) fn run(console: &Console, arguments: &MakeArguments) -> Result<Exit, Failure> {
    let measured = measured(console, arguments, "run")?;
    if let Some(exit) = interrupted(&measured) {
        return Ok(exit);
    }
    measured.folder.seal().map_err(measure::store_failure)?;
    console.line(counts(&measured));
    console.line(format_args!("plan    {}", measured.folder.short()));
    console.line(format_args!("run     {}", measured.run.path().display()));
    console.line(format_args!("report  rare report {}", measured.folder.short()));
    Ok(if measured.summary.n_failed > 0 { Exit::TrialsFailed } else { Exit::Valid })
}

fn measured(console: &Console, arguments: &MakeArguments, verb: &str) -> Result<Measured, Failure> {
    let experiment = Experiment::load(console, &arguments.spec, arguments.quick)?;
    let quick = if arguments.quick { " --quick" } else { "" };
    let command = format!("rare {verb}{quick} {}", arguments.spec.display());
    let subject = Subject {
        name: &experiment.spec.name,
        plan: &experiment.plan,
        hash: experiment.hash,
        spec_text: Some(&experiment.source.text),
        budget: experiment.spec.budget,
    };
    let choices = Choices {
        reports: &arguments.store.reports,
        fresh: arguments.fresh,
        retry_failed: arguments.retry_failed,
        command: &command,
    };
    measure::measure(console, &subject, &choices)
}

/// Returns the exit code of a run that a signal ended.
pub(super) fn interrupted(measured: &Measured) -> Option<Exit> {
    match measured.summary.stop {
        Stop::Interrupted(libc::SIGTERM) => Some(Exit::Terminated),
        Stop::Interrupted(_) => Some(Exit::Interrupted),
        Stop::Complete | Stop::Budget | Stop::Hopeless(_) => None,
    }
}

/// Says in one line what was run.
pub(super) fn counts(measured: &Measured) -> String {
    let summary = &measured.summary;
    let ran = match summary.n_executed {
        0 => format!("no trial to run: all {} are recorded", summary.n_skipped),
        n => format!("ran {n} trials, {} were recorded before", summary.n_skipped),
    };
    match (summary.n_failed, summary.n_missing) {
        (0, 0) => ran,
        (failed, 0) => format!("{ran}; {failed} failed"),
        (failed, missing) => format!("{ran}; {failed} failed, {missing} are missing"),
    }
}
