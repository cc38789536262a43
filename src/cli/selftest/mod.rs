//! `rare selftest`: plants each fault that a check exists for, and tells whether it was caught; then runs a spec without
//! a fault, and tells who cried wolf.
//!
//! Everything goes the way of `rare make`, with the real worker; only the reports go to a folder that does not last.

mod faults;

use std::{
    collections::BTreeMap,
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

use self::faults::{ALL, CLEAN, HEAD, Planted, Planting};
use super::{
    arguments::SelftestArguments,
    console::Console,
    exit::{Exit, Failure},
    experiment::Experiment,
    failures::store_failure,
    measure::{self, Choices, Subject},
    n_cpus, report,
};
use crate::{
    diag::Source,
    run::Stop,
    store::scratch::Scratch,
    verdict::{self, Grade, Verdict},
};

/// Plants the faults and runs the clean spec.
///
/// # Errors
/// When the machine cannot run even a sound trial.
pub(super) fn selftest(console: &Console, arguments: &SelftestArguments) -> Result<Exit, Failure> {
    let scratch = Scratch::new().map_err(store_failure)?;
    let bench = Bench { console: &Console::new(true), reports: &scratch.path("reports") };
    let mut exit = Exit::Valid;
    let chosen = |planted: &&Planted| arguments.only.as_deref().is_none_or(|check| check == planted.check);
    let planted: Vec<&Planted> = ALL.iter().filter(chosen).collect();
    if planted.is_empty() {
        let check = arguments.only.as_deref().unwrap_or_default();
        return Err(Failure::new(Exit::Wrong, format!("no fault is planted for a check `{check}`"))
            .help("`rare list checks` names the checks; `rare selftest` plants every fault"));
    }
    console.line(format_args!("{:8}  {:16}  planted fault", "", "check"));
    for fault in &planted {
        let outcome = bench.plant_until_caught(fault)?;
        if matches!(outcome, Outcome::Missed(_)) {
            exit = Exit::CheckFailed;
        }
        console.line(format_args!("{:8}  {:16}  {}: {}", outcome.word(), fault.check, fault.fault, outcome.figures()));
    }
    if arguments.only.is_none() && arguments.clean > 0 {
        let wolves = bench.clean(console, arguments.clean)?;
        exit = exit.max(wolves);
    }
    Ok(exit)
}

/// What became of a planted fault.
enum Outcome {
    /// The check caught it; its finding.
    Caught(String),
    /// The check did not; what it said.
    Missed(String),
    /// It cannot be planted here.
    NotHere(String),
}

impl Outcome {
    fn word(&self) -> &'static str {
        match self {
            Self::Caught(_) => "caught",
            Self::Missed(_) => "MISSED",
            Self::NotHere(_) => "not here",
        }
    }

    fn figures(&self) -> &str {
        match self {
            Self::Caught(text) | Self::Missed(text) | Self::NotHere(text) => text,
        }
    }
}

/// Where specs are run.
struct Bench<'b> {
    console: &'b Console,
    reports: &'b Path,
}

/// What shows in times alone may be hidden by the noise of a busy machine: a fault that is missed is planted again.
const ATTEMPTS: u32 = 3;

impl Bench<'_> {
    fn plant_until_caught(&self, planted: &Planted) -> Result<Outcome, Failure> {
        let mut outcome = self.plant(planted)?;
        for _ in 1..ATTEMPTS {
            if !matches!(outcome, Outcome::Missed(_)) {
                break;
            }
            outcome = self.plant(planted)?;
        }
        Ok(outcome)
    }

    fn plant(&self, planted: &Planted) -> Result<Outcome, Failure> {
        if (n_cpus() as usize) < planted.min_cpus {
            return Ok(Outcome::NotHere(format!("it takes {} CPUs", planted.min_cpus)));
        }
        let checked = |rest: &str| format!("{HEAD}{rest}sanity_checks: [{}]\n", planted.check);
        let verdicts = match planted.by {
            Planting::Spec(rest) => self.verdicts(&checked(rest))?,
            Planting::Busy(rest) => while_busy(|| self.verdicts(&checked(rest)))?,
            Planting::DeadPreload => return self.dead_preload(&checked("structures: [nm14]\nthreads: 1\n")),
        };
        let verdict = verdicts.iter().find(|verdict| verdict.info.name == planted.check);
        Ok(match verdict {
            Some(verdict) if verdict.grade >= Grade::Warn => {
                Outcome::Caught(format!("{}, {}", verdict.grade.name(), verdict.summary))
            }
            // What was not looked at for want of a tool was not missed.
            Some(verdict) if verdict.grade == Grade::Unknown => Outcome::NotHere(verdict.summary.clone()),
            Some(verdict) => Outcome::Missed(verdict.summary.clone()),
            None => Outcome::Missed("the check did not run".to_owned()),
        })
    }

    /// A file that is no library must be refused, or else the trial must say that it was not loaded.
    fn dead_preload(&self, spec: &str) -> Result<Outcome, Failure> {
        let scratch = Scratch::new().map_err(store_failure)?;
        scratch.write("dead.so", b"no library").map_err(store_failure)?;
        let spec = format!("{spec}allocators: {{preload: {}}}\n", scratch.path("dead.so").display());
        Ok(match self.verdicts(&spec) {
            Err(failure) if failure.exit == Exit::Cannot => Outcome::Caught(format!("refused, {}", failure.what)),
            Err(failure) => return Err(failure),
            Ok(verdicts) => match verdicts.iter().find(|verdict| verdict.grade == Grade::Fail) {
                Some(verdict) => Outcome::Caught(verdict.summary.clone()),
                None => Outcome::Missed("it ran as if nothing were wrong".to_owned()),
            },
        })
    }

    /// Makes a spec and judges what came of it.
    fn verdicts(&self, text: &str) -> Result<Vec<Verdict>, Failure> {
        let source = Source { name: "selftest".to_owned(), text: text.to_owned() };
        let experiment = Experiment::compile(self.console, source, false)?;
        let subject = Subject {
            name: &experiment.spec.name,
            plan: &experiment.plan,
            hash: experiment.hash,
            spec_text: Some(text),
            budget: None,
            mix_names: &experiment.spec.mix_names,
        };
        let choices = Choices {
            reports: self.reports,
            fresh: true,
            retry_failed: false,
            command: "rare selftest",
            go_on: "rare selftest",
        };
        let measured = measure::measure(self.console, &subject, &choices)?;
        if let Stop::Interrupted(_) = measured.summary.stop {
            return Err(Failure::new(Exit::Interrupted, "interrupted".to_owned()));
        }
        report::examine(&measured.folder, &measured.run, verdict::judge)
    }

    /// Runs the clean spec so many times, each with another seed, and counts what its checks say that is not so.
    fn clean(&self, console: &Console, n_runs: u32) -> Result<Exit, Failure> {
        let (mut n_verdicts, mut alarms) = (0_usize, BTreeMap::<(&str, &str), (usize, String)>::new());
        for seed in 1..=n_runs {
            for verdict in self.verdicts(&format!("{HEAD}{CLEAN}seed: {seed}\n"))? {
                n_verdicts += 1;
                if verdict.grade >= Grade::Warn {
                    let alarm = alarms.entry((verdict.grade.name(), verdict.info.name));
                    alarm.or_insert((0, verdict.summary)).0 += 1;
                }
            }
        }
        let n_of = |grade: Grade| -> usize {
            alarms.iter().filter(|((name, _), _)| *name == grade.name()).map(|(_, (n, _))| n).sum()
        };
        let (n_fails, n_warnings) = (n_of(Grade::Fail), n_of(Grade::Warn));
        console.line(format_args!(
            "without a fault: {n_runs} runs, {n_verdicts} verdicts, of which {n_fails} fail and {n_warnings} warn"
        ));
        for ((grade, check), (n, summary)) in &alarms {
            console.line(format_args!("{grade:8}  {check:16}  {n} times, first: {summary}"));
        }
        Ok(if n_fails > 0 { Exit::CheckFailed } else { Exit::Valid })
    }
}

/// Does something while every CPU is taken by a thread that spins.
fn while_busy<T>(act: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..n_cpus() {
            // Relaxed: nothing is read because of it.
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let _stop = Stopped(&done);
        act()
    })
}

/// Ends the spinning, also when the act panics.
struct Stopped<'d>(&'d AtomicBool);

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}
