//! One stretch of measuring: opens the run, runs what it lacks, and says why it stopped.

use super::{
    console::Console,
    exit::{Exit, Failure},
    failures::{run_failure, store_failure},
    measure::{Choices, Subject, snapshot},
    progress::{Progress, words},
};
use crate::{
    record::{Environment, Snapshot},
    run::{self, Host, Identity, Interrupt, Job, Stop, Summary, Tools, Worker},
    store::{PlanFolder, RunFolder},
};

/// One stretch of measuring under the machine's lock.
pub(super) struct Session<'a> {
    /// Where progress goes.
    pub console: &'a Console,
    /// What is measured.
    pub subject: &'a Subject<'a>,
    /// How.
    pub choices: &'a Choices<'a>,
    /// Folder of the plan, locked by the caller.
    pub folder: &'a PlanFolder,
    /// The program that runs trials.
    pub worker: &'a Worker,
    /// What the plan's symbols mean here.
    pub host: &'a Host,
    /// What must be the same for trials to stand in one run.
    pub identity: Identity,
}

impl Session<'_> {
    /// Runs what is missing; the environment is recorded before and after.
    pub(super) fn run(&self, before: Snapshot) -> Result<(RunFolder, Summary), Failure> {
        let host = before.value("os.hostname").unwrap_or("unknown").to_owned();
        let stamp = file_stamp(&before.taken);
        let begun = run::begin(self.folder, self.subject.hash, &self.identity, self.choices.fresh, (&stamp, &host));
        let mut begun = begun.map_err(store_failure)?;
        if let Some(torn) = &begun.contents.torn {
            self.console.alert(format_args!(
                "{}: dropped a torn last line of {} bytes; its trial runs again",
                begun.run.journal_path().display(),
                torn.bytes
            ));
        }
        // A run that is continued keeps what it was begun under.
        let recorded = begun.run.environment().map_err(store_failure)?;
        let mut environment = recorded.unwrap_or_else(|| Environment {
            format: 1,
            plan: self.subject.hash.to_string(),
            before,
            after: None,
        });
        environment.after = None;
        begun.run.write_environment(&environment).map_err(store_failure)?;
        let tools = Tools::default();
        let job = Job {
            plan: self.subject.plan,
            worker: self.worker,
            host: self.host,
            tools: &tools,
            run: &begun.run,
            retry_failed: self.choices.retry_failed,
            budget: self.subject.budget,
            time_out: None,
        };
        let interrupt = Interrupt::on_signals()
            .map_err(|error| Failure::new(Exit::Cannot, format!("cannot watch for signals: {error}")))?;
        let Subject { plan, mix_names, .. } = self.subject;
        let mut progress = Progress::new(self.console, plan, mix_names, &begun.contents.trials);
        let summary = run::execute(&job, &mut begun.journal, &begun.contents.trials, &interrupt, &mut progress);
        progress.end();
        let summary = summary.map_err(run_failure)?;
        environment.after = Some(snapshot(self.worker, self.choices.reports));
        begun.run.write_environment(&environment).map_err(store_failure)?;
        self.ended(&summary);
        Ok((begun.run, summary))
    }

    fn ended(&self, summary: &Summary) {
        match summary.stop {
            Stop::Complete => {}
            Stop::Interrupted(_) => self.console.alert(format_args!(
                "interrupted: {} trials are recorded, {} are missing; `{}` goes on with them",
                summary.n_skipped + summary.n_executed,
                summary.n_missing,
                self.choices.go_on
            )),
            Stop::Budget => self.console.alert(format_args!(
                "stopped at the budget: {} trials are missing; each finished block holds every cell once",
                summary.n_missing
            )),
            Stop::Hopeless(class) => self.console.alert(format_args!(
                "stopped: every trial fails ({}); {} trials are missing",
                words(class),
                summary.n_missing
            )),
        }
    }
}

/// Turns `2026-01-02T03:04:05.678Z` into `20260102T030405Z`.
fn file_stamp(taken: &str) -> String {
    let seconds = taken.split('.').next().unwrap_or(taken).trim_end_matches('Z');
    let digits: String = seconds.chars().filter(|letter| letter.is_ascii_alphanumeric()).collect();
    format!("{digits}Z")
}
