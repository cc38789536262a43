//! Executes the trials that a run still lacks, in the order of the plan.
//!
//! A trial counts when its record is durable; only then is the next one begun. Everything that this machine cannot
//! honour is found before the first trial.

use std::{io, time::Duration};

use rare_workloads::protocol::Request;

use super::{Host, Interrupt, ResolveError, Tools, Worker, attempt, descendants, progress::Progress, resolve};
use crate::{
    plan::{BlockKind, Plan, TrialId},
    record::{FailureClass, Trial},
    store::{Journal, RunFolder, StoreError},
    units::Nanos,
};

/// What is to be executed, and how.
pub struct Job<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The worker, proven to belong to this build.
    pub worker: &'a Worker,
    /// What the plan's symbols mean here.
    pub host: &'a Host,
    /// The tools under which some trials run.
    pub tools: &'a Tools,
    /// Where artifacts go.
    pub run: &'a RunFolder,
    /// Tries again the trials whose last attempt failed; otherwise they count as done.
    pub retry_failed: bool,
    /// The run stops before a block that would make all its trials take longer than this.
    pub budget: Option<Nanos>,
    /// Time-out of every trial instead of the computed one.
    pub time_out: Option<Duration>,
}

/// Is told what happens, as it happens.
pub trait Observer {
    /// A trial begins. `position` is its place in the plan, from 0.
    fn started(&mut self, trial: TrialId, position: u32);

    /// The record of a trial is durable.
    fn finished(&mut self, record: &Trial);
}

/// What [`execute`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Trials executed now.
    pub n_executed: usize,
    /// Trials that were recorded before and were left as they are.
    pub n_skipped: usize,
    /// Failed trials among the executed.
    pub n_failed: usize,
    /// Trials of the plan that still have no record.
    pub n_missing: usize,
    /// Why it stopped.
    pub stop: Stop,
}

/// Why [`execute`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Nothing is missing.
    Complete,
    /// By this signal, 2 or 15. The trial that it hit is not recorded.
    Interrupted(i32),
    /// The next block would exceed the budget.
    Budget,
    /// Every trial fails in the same way.
    Hopeless(FailureClass),
}

/// Why a run could not be executed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// This machine cannot honour the plan; nothing was run.
    #[error("this machine cannot honour the plan")]
    Resolve(Vec<ResolveError>),
    /// A record could not be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system refused what is needed to watch a worker.
    #[error("cannot watch the worker of trial `{trial}`")]
    Watch {
        /// Whose.
        trial: TrialId,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The system refused to hand over orphaned processes.
    #[error("cannot become the reaper of orphaned processes")]
    Adopt(#[source] io::Error),
}

/// Executes the missing trials of a run, of which `recorded` is what its journal holds.
///
/// The caller holds the machine's lock and the plan's. Must stay on one thread: workers die with the thread that started
/// them. While it runs, no other thread of this process may start processes: they would be taken for the worker's.
///
/// # Errors
/// [`RunError`]; what was recorded before stays.
pub fn execute(
    job: &Job<'_>,
    journal: &mut Journal,
    recorded: &[Trial],
    interrupt: &Interrupt,
    observer: &mut dyn Observer,
) -> Result<Summary, RunError> {
    let templates = templates(job.plan, job.host).map_err(RunError::Resolve)?;
    descendants::adopt_orphans().map_err(RunError::Adopt)?;
    let summary = Summary { n_executed: 0, n_skipped: 0, n_failed: 0, n_missing: 0, stop: Stop::Complete };
    let progress = Progress::new(recorded);
    let mut execution = Execution { job, journal, interrupt, observer, templates, progress, summary };
    if let Some(stop) = execution.blocks()? {
        execution.summary.stop = stop;
    }
    let Execution { mut summary, progress, .. } = execution;
    summary.n_missing = job.plan.trials().filter(|&trial| progress.attempts(trial) == 0).count();
    Ok(summary)
}

/// Tells whether this version and this machine can honour every cell of a plan, without running anything.
///
/// # Errors
/// Everything that they cannot, each once.
pub fn check(plan: &Plan, host: &Host) -> Result<(), Vec<ResolveError>> {
    let mut errors = resolve::check_structures(plan);
    errors.extend(templates(plan, host).err().unwrap_or_default());
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Returns how many trials of a plan are still to be executed, of which `recorded` is what the journal holds.
pub fn missing(plan: &Plan, recorded: &[Trial], retry_failed: bool) -> usize {
    let progress = Progress::new(recorded);
    plan.trials().filter(|&trial| progress.is_missing(trial, retry_failed)).count()
}

/// Resolves every cell, or returns everything that this machine cannot honour, each mistake once.
fn templates(plan: &Plan, host: &Host) -> Result<Vec<Request>, Vec<ResolveError>> {
    let mut templates = Vec::with_capacity(plan.cells.len() + plan.probes.len());
    let mut errors: Vec<ResolveError> = resolve::check_permissions(plan);
    for cell in plan.all_cells() {
        match resolve::template(cell, host) {
            Ok(template) => templates.push(template),
            Err(error) if errors.iter().any(|known| known.to_string() == error.to_string()) => {}
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(templates) } else { Err(errors) }
}

/// An execution under way.
struct Execution<'a> {
    job: &'a Job<'a>,
    journal: &'a mut Journal,
    interrupt: &'a Interrupt,
    observer: &'a mut dyn Observer,
    /// By cell, those of the plan first and then those of its probes; without seed.
    templates: Vec<Request>,
    progress: Progress,
    summary: Summary,
}

impl Execution<'_> {
    /// Executes what is missing. Returns why it stopped before the end, if it did.
    fn blocks(&mut self) -> Result<Option<Stop>, RunError> {
        let plan = self.job.plan;
        let mut positions = 0..;
        for block in &plan.blocks {
            let trials = block.order.iter().map(|&cell| TrialId { kind: block.kind, cell, trial_idx: block.trial_idx });
            // The trials come first: `zip` draws from its left side even when the right one is used up.
            let missing: Vec<(TrialId, u32)> = trials
                .zip(&mut positions)
                .filter(|&(trial, _)| self.progress.is_missing(trial, self.job.retry_failed))
                .collect();
            self.summary.n_skipped += block.order.len() - missing.len();
            if missing.is_empty() {
                continue;
            }
            let expected = missing.iter().map(|&(trial, _)| self.progress.expected_wall(plan, trial)).sum::<u64>();
            let total = self.progress.wall_ns().saturating_add(expected);
            if self.job.budget.is_some_and(|budget| total > budget.0) {
                return Ok(Some(Stop::Budget));
            }
            for (trial, position) in missing {
                if let Some(stop) = self.trial(trial, position)? {
                    return Ok(Some(stop));
                }
            }
        }
        Ok(None)
    }

    /// Executes and records one trial. Returns why it must be the last, if it must.
    fn trial(&mut self, trial: TrialId, position: u32) -> Result<Option<Stop>, RunError> {
        if let Some(signal) = self.interrupt.signal() {
            return Ok(Some(Stop::Interrupted(signal)));
        }
        self.observer.started(trial, position);
        let done = attempt::run(self.job, self.request(trial), trial, self.interrupt)
            .map_err(|source| RunError::Watch { trial, source })?;
        let Some(done) = done else {
            return Ok(self.interrupt.signal().map(Stop::Interrupted));
        };
        let record = Trial {
            trial,
            position,
            attempt: self.progress.attempts(trial),
            started: done.started,
            wall: done.wall,
            request: done.request,
            outcome: done.outcome,
            interference: done.interference,
            watched: done.watched,
        };
        if let Some(output) = done.output {
            self.job.run.write_artifact(&format!("{trial}-{}.txt", record.attempt), output.as_bytes())?;
        }
        self.journal.append(&record)?;
        self.progress.add(&record);
        self.summary.n_executed += 1;
        self.summary.n_failed += usize::from(record.outcome.has_failed());
        self.observer.finished(&record);
        Ok(self.progress.hopeless().map(Stop::Hopeless))
    }

    fn request(&self, trial: TrialId) -> Request {
        let n_before = if trial.kind == BlockKind::Probe { self.job.plan.cells.len() } else { 0 };
        let template = &self.templates[n_before + trial.cell as usize];
        resolve::fill(template.clone(), self.job.plan, trial)
    }
}
