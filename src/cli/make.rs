//! `rare make` and `rare run`: from a spec to its records, and to its report.

use super::{
    arguments::{MakeArguments, ReportingArguments},
    command,
    console::Console,
    exit::{Exit, Failure},
    experiment::Experiment,
    failures::store_failure,
    measure::{self, Choices, Measured, Subject},
    report,
};
use crate::run::{Stop, Summary};

/// Checks, plans, runs what is missing, and writes the report.
pub(super) fn make(console: &Console, arguments: &MakeArguments) -> Result<Exit, Failure> {
    let measured = measured(console, arguments, "make")?;
    finish(console, &measured, &arguments.reporting)
}

/// Checks, plans and runs what is missing.
pub(super) fn run(console: &Console, arguments: &MakeArguments) -> Result<Exit, Failure> {
    let measured = measured(console, arguments, "run")?;
    if let Some(exit) = interrupted(&measured) {
        return Ok(exit);
    }
    measured.folder.seal().map_err(store_failure)?;
    console.line(counts(&measured.summary));
    console.line(format_args!("plan    {}", measured.folder.short()));
    console.line(format_args!("run     {}", measured.run.path().display()));
    let reference = command::reference(&arguments.reporting.store.reports, &measured.folder);
    let report = command::of_plan("report", &reference, &arguments.reporting);
    console.line(format_args!("report  {report}"));
    Ok(if measured.summary.n_failed > 0 { Exit::TrialsFailed } else { Exit::Valid })
}

fn measured(console: &Console, arguments: &MakeArguments, verb: &str) -> Result<Measured, Failure> {
    report::check_templates(&arguments.reporting)?;
    let experiment = Experiment::load(console, &arguments.spec, arguments.quick)?;
    let command = command::make(verb, arguments);
    let subject = Subject {
        name: &experiment.spec.name,
        plan: &experiment.plan,
        hash: experiment.hash,
        spec_text: Some(&experiment.source.text),
        budget: experiment.spec.budget,
        mix_names: &experiment.spec.mix_names,
    };
    let choices = Choices {
        reports: &arguments.reporting.store.reports,
        fresh: arguments.fresh,
        retry_failed: arguments.retry_failed,
        command: &command,
        go_on: &command,
    };
    measure::measure(console, &subject, &choices)
}

/// Writes the report of what was measured and says where everything is.
pub(super) fn finish(console: &Console, measured: &Measured, reporting: &ReportingArguments) -> Result<Exit, Failure> {
    if let Some(exit) = interrupted(measured) {
        return Ok(exit);
    }
    console.line(counts(&measured.summary));
    let written = report::write(&measured.folder, &measured.run, reporting).map_err(|failure| {
        let report = command::of_plan("report", measured.folder.short(), reporting);
        // A template whose fault shows only now did not keep the trials from running.
        let exit = if failure.exit == Exit::Wrong { Exit::Store } else { failure.exit };
        Failure { exit, ..failure }.help(format!("the trials are recorded; `{report}` writes the report"))
    })?;
    written.print(console, &measured.folder, &measured.run, reporting);
    Ok(written.exit)
}

/// Returns the exit code of a run that a signal ended.
fn interrupted(measured: &Measured) -> Option<Exit> {
    match measured.summary.stop {
        Stop::Interrupted(libc::SIGTERM) => Some(Exit::Terminated),
        Stop::Interrupted(_) => Some(Exit::Interrupted),
        Stop::Complete | Stop::Budget | Stop::Hopeless(_) => None,
    }
}

/// Says in one line what was run.
fn counts(summary: &Summary) -> String {
    let ran = match (summary.n_executed, summary.n_skipped) {
        (0, n_before) => format!("no trial to run: all {n_before} are recorded"),
        (n, 0) => format!("ran {}", trials(n)),
        (n, n_before) => format!("ran {}, {n_before} were recorded before", trials(n)),
    };
    match (summary.n_failed, summary.n_missing) {
        (0, 0) => ran,
        (n_failed, 0) => format!("{ran}; {n_failed} failed"),
        (n_failed, n_missing) => format!("{ran}; {n_failed} failed, {n_missing} missing"),
    }
}

/// Writes a number of trials.
pub(super) fn trials(number: usize) -> String {
    format!("{number} trial{}", if number == 1 { "" } else { "s" })
}
