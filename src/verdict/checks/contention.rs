//! Check `contention`: with no more keys than threads and nothing but updates, every trial ends, every key is accounted
//! for, and no thread starves.
//!
//! How the threads share the work here is mostly luck: whoever holds a cache line keeps it for a while. With two threads
//! on two keys in 60 ms trials, the slower one of 21 structures without fault did between 6 % and all of the mean of both,
//! and in the fairest of seven trials of a structure at least 65 %; that of `control-unfair` never did more than 1 %. So a
//! thread starves if it does so in every trial.

use std::collections::BTreeSet;

use super::{Check, Exhibit, Grade, Info, Row, Subject, Verdict};
use crate::{
    plan::{
        Ground, Mode, Probe,
        probe::{Change, Setting},
    },
    record::{FailureClass, Outcome, Trial},
    spec::value::{Parameter, Prefill, Threads, Value},
    units::BasisPoints,
    verdict::{
        Evidence,
        evidence::{Probed, Replied},
        number::{NONE, counted, mops, percent},
        probing::{self, columns},
    },
};

/// Share of the mean that the slowest thread must reach in one trial at least.
const STARVING: f64 = 0.03;

static INFO: Info = Info {
    name: "contention",
    title: "Extreme contention",
    rule: "with no more keys than threads and updates alone every trial ends, keeps its keys, and lets every thread work",
    threshold: "any trial that does not end or breaks a law fails; so does a slowest thread below 3 % of the mean of all in \
                every trial, where each thread has a CPU; 5 trials of at most 60 ms",
    source: "Brown, Good data structure experiments are R.A.R.E., sanity check 8",
    reason: "faults in the synchronisation of a structure show first where all threads want the same keys, and a structure \
             that hangs or loses keys there is wrong everywhere",
    remedy: "a trial that does not end is a deadlock or a livelock, a wrong sum a lost update: mend the structure before \
             anything is measured; a starving thread says that its lock or its retries are unfair",
};

/// See [`INFO`].
pub(super) struct Contention;

impl Check for Contention {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn probes(&self, ground: &Ground<'_>) -> Vec<Probe> {
        let stores = ground.bases().into_iter().filter(|base| !probing::is_noop(base));
        let contended = stores.map(|base| probing::short(contended(base)));
        contended.map(|setting| setting.probe(INFO.name, Mode::Timed, probing::N_TRIALS)).collect()
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let probes = evidence.probes(INFO.name);
        let rows: Vec<Row> = probes.iter().flat_map(|probed| findings(evidence, probed)).collect();
        let lacking = lacking(&probes);
        let found = rows.iter().map(|row| row.grade).chain(lacking.as_ref().map(|_| Grade::Unknown)).max();
        let grade = found.unwrap_or(Grade::Pass);
        let worst = rows.iter().find(|row| row.grade == grade);
        let summary = match (worst, lacking) {
            (Some(row), _) => format!("{}: {}", counted(rows.len(), "finding"), row.finding),
            (None, Some(lacking)) => lacking,
            (None, None) => {
                let n_trials: usize = probes.iter().map(|probed| probed.trials.len()).sum();
                format!("all {n_trials} trials ended with the keys they should have, and no thread starved")
            }
        };
        let exhibits = if probes.is_empty() { Vec::new() } else { vec![exhibit(evidence, &probes)] };
        Verdict { info: &INFO, grade, summary, rows, exhibits }
    }
}

/// Sets as many keys as threads, half of them present, and updates alone. What `all` threads are is not known to a plan:
/// two keys are then no more than the threads, unless there is one CPU and nothing to contend for.
fn contended(base: Setting) -> Setting {
    let Value::Threads(threads) = base[Parameter::Threads as usize] else { unreachable!("the column of threads") };
    let n_keys = match threads {
        Threads::Count(n) => u64::from(n).max(1),
        Threads::All => 2,
    };
    let uniform = rare_workloads::protocol::Distribution::Uniform;
    let half = rare_workloads::protocol::Mix::WHOLE / 2;
    base.with_mix(half, half, 0)
        .with(Parameter::KeyRange, Value::Count(n_keys))
        .with(Parameter::Prefill, Value::Prefill(Prefill::Share(BasisPoints(5_000))))
        .with(Parameter::Distribution, Value::Distribution(uniform))
}

fn findings(evidence: &Evidence, probed: &Probed) -> Vec<Row> {
    let label = &probed.cell.structure().label;
    let failed = probed.failures.iter().filter_map(|(record_idx, trial)| {
        Some(row(*record_idx, trial, format!("`{label}` did not end well: {}", blamed(trial)?)))
    });
    let broken = probed.trials.iter().filter_map(|replied| {
        let fault = evidence.summary.trials[replied.record_idx].faults.first()?;
        Some(row(replied.record_idx, replied.trial, format!("`{label}`: {}", fault.detail)))
    });
    failed.chain(broken).chain(starving(probed)).collect()
}

fn row(record_idx: usize, trial: &Trial, finding: String) -> Row {
    let subject = Subject::Record { record_idx, trial: trial.trial };
    Row { subject, finding, grade: Grade::Fail }
}

/// Says how a trial failed, if the structure may be to blame and not the machine or a tool.
fn blamed(trial: &Trial) -> Option<&str> {
    match &trial.outcome {
        Outcome::Failed { class: FailureClass::Start | FailureClass::Refused, .. } | Outcome::Replied(_) => None,
        Outcome::Failed { class, .. } if class.is_the_tools() => None,
        Outcome::Failed { detail, .. } => Some(detail),
    }
}

/// The fairest trial, if even there a thread starves.
fn starving(probed: &Probed) -> Option<Row> {
    let shares = probed.trials.iter().filter(|replied| has_cpus(replied)).filter_map(|it| Some((it, slowest(it)?)));
    let (replied, share) = shares.max_by(|(_, left), (_, right)| left.total_cmp(right))?;
    let label = &probed.cell.structure().label;
    (share < STARVING).then(|| {
        let finding =
            format!("a thread of `{label}` starves: in the fairest trial it did {} of the mean of all", percent(share));
        row(replied.record_idx, replied.trial, finding)
    })
}

/// Tells whether each thread can have a CPU: otherwise who starves is the scheduler's choice.
fn has_cpus(replied: &Replied) -> bool {
    let threads = &replied.reply.threads;
    let cpus: BTreeSet<u32> = threads.iter().flat_map(|thread| thread.cpus_allowed.iter().copied()).collect();
    cpus.len() >= threads.len()
}

/// Operations of the slowest thread over the mean of all; `None` for one thread.
fn slowest(replied: &Replied) -> Option<f64> {
    let operations = || replied.reply.threads.iter().map(|thread| thread.operations.attempted());
    let (least, total, n_threads) = (operations().min()?, operations().sum::<u64>(), replied.reply.threads.len());
    (n_threads > 1 && total > 0).then(|| least as f64 * n_threads as f64 / total as f64)
}

fn lacking(probes: &[Probed]) -> Option<String> {
    let is_contended = |probed: &Probed| probed.trials.iter().any(|replied| replied.reply.threads.len() > 1);
    let unheard = |probed: &&Probed| probed.trials.len() < probed.probe.n_trials as usize;
    match probes.iter().find(unheard) {
        _ if probes.is_empty() => Some("the plan has no trials for it".to_owned()),
        Some(probed) => Some(format!(
            "`{}` has {} of {} trials",
            probed.cell.structure().label,
            probed.trials.len(),
            probed.probe.n_trials
        )),
        None if !probes.iter().any(is_contended) => {
            Some("every trial has one thread: nobody contends for the keys".to_owned())
        }
        None => None,
    }
}

fn exhibit(evidence: &Evidence, probes: &[Probed]) -> Exhibit {
    let row = |probed: &Probed| {
        let shares: Vec<f64> = probed.trials.iter().filter_map(slowest).collect();
        let ends = [f64::min as fn(f64, f64) -> f64, f64::max].map(|end| shares.iter().copied().reduce(end));
        let [least, most] = ends.map(|share| share.map_or_else(|| NONE.to_owned(), percent));
        let fastest = evidence.throughputs(probed).into_iter().reduce(f64::max);
        vec![
            probed.cell.structure().label.clone(),
            probed.cell.value(Parameter::Threads).to_string(),
            probed.cell.key_range().to_string(),
            format!("{} of {}", probed.trials.len(), probed.probe.n_trials),
            fastest.map_or_else(|| NONE.to_owned(), mops),
            least,
            most,
        ]
    };
    Exhibit {
        title: "Updates of as many keys as threads".to_owned(),
        columns: columns(&[
            ("structure", None),
            ("threads", Some("")),
            ("keys", Some("")),
            ("trials that ended", None),
            ("best throughput", Some("Mops/s")),
            ("slowest thread, least fair trial", None),
            ("slowest thread, fairest trial", None),
        ]),
        rows: probes.iter().map(row).collect(),
        note: "The slowest thread is given as its share of the mean of all threads. One thread may keep the cache lines of \
               such few keys for most of a short trial; a thread starves if it does so in every one."
            .to_owned(),
    }
}
