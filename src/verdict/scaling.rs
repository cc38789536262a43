//! How look-ups scale with threads: what the checks `empty` and `read-only` have in common.
//!
//! Every structure is measured with 1 thread and with the threads of the plan, and `noop` beside it. `noop` shares nothing
//! but the harness, so its speed-up is what this machine gives to so many threads, be they more than the CPUs, or siblings
//! of one core. What a structure reaches of that speed-up is its efficiency.
//!
//! On two virtual CPUs, with 60 ms trials, the best of six with 2 threads over the best with 1 was, empty and with half of
//! 1,000 keys: `noop` 1.97 and 1.98, structures whose look-ups write nothing 1.80 to 1.99 and 1.82 to 2.02,
//! `control-false-sharing` 0.61 and 1.26 (1.64 with half of 10,000, where a search takes long beside a line), `mutex-btree`
//! 0.47 and 0.52, `rwlock-btree` 0.36 and 1.19, `dashmap` 1.26 and 1.20, and `noop` 0.79 in a harness without padding.
//! Single trials at half speed occurred, and once a median that was a quarter too low.
//!
//! In 21 runs of sound trees there the least efficient had 0.90 to 1.1 with half of 10,000 or 100,000 keys; empty it had
//! 0.91 to 0.96, but 0.67 and 0.69 in two runs, in every trial of every tree alike: the guard of an epoch now and then
//! writes a shared line, and what that costs depends on how near the hypervisor has put the two CPUs.

use std::collections::{BTreeMap, BTreeSet};

use rare_workloads::structures;

use super::{
    checks::{Exhibit, Grade, Info, Row, Verdict},
    evidence::{Evidence, Probed},
    number::{fixed, mops, percent, ratio},
    probing::{self, Best, columns},
};
use crate::{
    plan::{
        Ground, Mode, Probe,
        probe::{Change, Setting},
    },
    spec::value::Threads,
    stats::validity,
};

/// Throughput of all threads over that of one below which threads slow each other down. A tenth is left for noise: two
/// threads that are given one CPU between them still reach 1.
const SLOWER: f64 = 0.9;

/// Speed-up of `noop` below which the machine has no further CPU for further threads, or is too busy to give it.
const NO_GAIN: f64 = 1.3;

/// Most numbers of threads between 1 and the most that are measured too.
const MOST_BETWEEN: usize = 2;

/// Returns the probes for `purpose`: `noop` and each structure of the plan, as `change` sets them, with 1 thread and with
/// those of the plan.
pub(crate) fn probes(purpose: &str, ground: &Ground<'_>, change: impl Fn(Setting) -> Setting) -> Vec<Probe> {
    let counts = thread_counts(ground);
    let of_base = |base: Setting| {
        let base = probing::short(change(base));
        let with =
            |&threads: &Threads| base.clone().with_threads(threads).probe(purpose, Mode::Timed, probing::N_TRIALS);
        counts.iter().map(with).collect::<Vec<Probe>>()
    };
    probing::bases_and_noop(ground).into_iter().flat_map(of_base).collect()
}

/// Returns 1, the most threads of the plan, and what it lists between if that is little.
fn thread_counts(ground: &Ground<'_>) -> Vec<Threads> {
    let mut counts: BTreeSet<Threads> = ground.cells().map(|cell| cell.threads()).collect();
    counts.insert(Threads::Count(1));
    let counts = Vec::from_iter(counts);
    match counts.as_slice() {
        [one, between @ .., most] if between.len() > MOST_BETWEEN => vec![*one, *most],
        _ => counts,
    }
}

/// The throughputs of one structure by threads.
pub(crate) struct Curve<'a> {
    /// Label of the structure.
    pub(crate) label: &'a str,
    /// Whether it stores nothing.
    pub(crate) is_noop: bool,
    /// What it states of its progress.
    progress: &'static str,
    /// The best trial, by threads.
    bests: BTreeMap<usize, Best>,
}

impl Curve<'_> {
    /// Returns the best trial with one thread.
    pub(crate) fn alone(&self) -> Option<&Best> {
        self.bests.get(&1)
    }

    /// Returns the throughput with so many threads over that with one.
    fn speed_up(&self, n_threads: usize) -> Option<f64> {
        Some(self.bests.get(&n_threads)?.rate / self.alone()?.rate)
    }

    /// Iterates over the trials with more than one thread, each with its speed-up.
    fn together(&self) -> impl Iterator<Item = (&Best, f64)> {
        let with_speed_up = |(&n_threads, best)| Some((best, self.speed_up(n_threads)?));
        self.bests.iter().filter(|(n_threads, _)| **n_threads > 1).filter_map(with_speed_up)
    }
}

/// What the probes of one purpose gave.
pub(crate) struct Scaling<'a> {
    /// Efficiency below which a structure scales far worse than `noop`.
    weak: f64,
    /// A curve a structure, in the order of the plan.
    pub(crate) curves: Vec<Curve<'a>>,
    /// What is missing.
    missing: Vec<String>,
}

impl<'a> Scaling<'a> {
    /// Collects the probes for `purpose`; an efficiency below `weak` is to warn.
    pub(crate) fn of(evidence: &Evidence<'a>, purpose: &str, weak: f64) -> Self {
        let mut scaling = Self { weak, curves: Vec::new(), missing: Vec::new() };
        for probed in evidence.probes(purpose) {
            match Best::of(evidence, &probed) {
                Ok(best) => scaling.add(&probed, best),
                Err(missing) => scaling.missing.push(missing),
            }
        }
        scaling
    }

    /// Adds a trial to the curve of its structure. Two numbers of the plan may have become the same one on this machine.
    fn add(&mut self, probed: &Probed<'a>, best: Best) {
        let used = probed.cell.structure();
        let curve_idx = self.curves.iter().position(|curve| curve.label == used.label).unwrap_or_else(|| {
            self.curves.push(Curve {
                label: &used.label,
                is_noop: validity::stores_nothing(&used.name),
                progress: structures::find(&used.name).map_or("nothing known", |found| found.info.progress),
                bests: BTreeMap::new(),
            });
            self.curves.len() - 1
        });
        let holder = self.curves[curve_idx].bests.entry(best.n_threads).or_insert(best);
        if holder.rate < best.rate {
            *holder = best;
        }
    }

    /// Returns the curve of `noop`.
    pub(crate) fn noop(&self) -> Option<&Curve<'a>> {
        self.curves.iter().find(|curve| curve.is_noop)
    }

    /// Returns what a structure reaches of the speed-up of `noop`; `None` where that gains nothing to be reached.
    fn efficiency(&self, n_threads: usize, speed_up: f64) -> Option<f64> {
        let bound = self.noop()?.speed_up(n_threads).filter(|&bound| bound >= NO_GAIN)?;
        Some(speed_up / bound.min(n_threads as f64))
    }

    /// Judges it: a structure that gets slower in total with more threads fails, one that scales weakly warns.
    pub(crate) fn judge(&self, info: &'static Info) -> Verdict {
        let rows = self.findings();
        let lacking = self.lacking();
        let grade = rows.iter().map(|row| row.grade).chain(lacking.as_ref().map(|_| Grade::Unknown)).max();
        let grade = grade.unwrap_or(Grade::Pass);
        let worst: Vec<&str> = rows.iter().filter(|row| row.grade == grade).map(|row| row.finding.as_str()).collect();
        let summary = match (worst.as_slice(), lacking) {
            ([], Some(lacking)) => lacking,
            ([], None) => self.held(),
            (found, None) => found.join("; "),
            (found, Some(lacking)) => format!("{}; besides, {lacking}", found.join("; ")),
        };
        let exhibits = if self.curves.is_empty() { Vec::new() } else { vec![self.exhibit()] };
        Verdict { info, grade, summary, rows, exhibits }
    }

    /// What is not as the rule wants it. Where `noop` itself is slowed down the harness is at fault, and what it does to
    /// the structures is not theirs.
    fn findings(&self) -> Vec<Row> {
        let of_curve = |curve: &Curve| {
            curve.together().filter_map(|(best, speed_up)| self.finding(curve, best, speed_up)).collect::<Vec<Row>>()
        };
        let of_noop = self.noop().map_or_else(Vec::new, of_curve);
        if of_noop.is_empty() { self.curves.iter().flat_map(of_curve).collect() } else { of_noop }
    }

    fn finding(&self, curve: &Curve, best: &Best, speed_up: f64) -> Option<Row> {
        let (label, n_threads) = (curve.label, best.n_threads);
        let efficiency = self.efficiency(n_threads, speed_up);
        let found = format!("`{label}` does {} the work of one thread with {n_threads}", ratio(speed_up));
        let states = if curve.is_noop {
            "and has nothing to share but the harness".to_owned()
        } else {
            format!("and states of itself: {}", curve.progress)
        };
        match efficiency {
            _ if speed_up < SLOWER => Some(best.row(Grade::Fail, format!("{found}, {states}"))),
            Some(share) if share < self.weak => {
                let reached = format!("{found}, {} of what `noop` gains, {states}", percent(share));
                Some(best.row(Grade::Warn, reached))
            }
            _ => None,
        }
    }

    /// Says what cannot be judged, if anything.
    fn lacking(&self) -> Option<String> {
        let most = self.curves.iter().flat_map(|curve| curve.bests.keys()).max();
        let noop = self.noop().and_then(|noop| noop.together().last());
        match (most, noop) {
            _ if !self.missing.is_empty() => Some(self.missing.join("; ")),
            (None, _) => Some("the plan has no trials for it".to_owned()),
            (Some(1), _) => Some("every trial has one thread: nothing to scale".to_owned()),
            (Some(_), None) => Some("`noop` was not measured".to_owned()),
            (Some(_), Some((best, gain))) if (SLOWER..NO_GAIN).contains(&gain) => Some(format!(
                "`noop` itself does {} the work of one thread with {}: this machine has no CPUs for them, or is busy",
                ratio(gain),
                best.n_threads
            )),
            (Some(_), Some(_)) => None,
        }
    }

    fn held(&self) -> String {
        let stores = self.curves.iter().filter(|curve| !curve.is_noop);
        let shares = stores.flat_map(|curve| {
            curve.together().filter_map(|(best, speed_up)| {
                Some((self.efficiency(best.n_threads, speed_up)?, curve.label, best.n_threads))
            })
        });
        match shares.min_by(|(left, ..), (right, ..)| left.total_cmp(right)) {
            Some((share, label, n_threads)) => format!(
                "every structure scales: `{label}` with {n_threads} threads least, to {} of what `noop` gains",
                percent(share)
            ),
            None => "`noop` scales, and the plan has no structure beside it".to_owned(),
        }
    }

    fn exhibit(&self) -> Exhibit {
        let row = |curve: &Curve, best: &Best| {
            let speed_up = curve.speed_up(best.n_threads);
            let share = speed_up.and_then(|speed_up| self.efficiency(best.n_threads, speed_up));
            let share = share.filter(|_| best.n_threads > 1);
            vec![
                curve.label.to_owned(),
                best.n_threads.to_string(),
                mops(best.rate),
                fixed(best.nanos(), 1),
                speed_up.map_or_else(|| super::number::NONE.to_owned(), ratio),
                share.map_or_else(|| super::number::NONE.to_owned(), percent),
            ]
        };
        Exhibit {
            title: "Look-ups by threads".to_owned(),
            columns: columns(&[
                ("structure", None),
                ("threads", Some("")),
                ("throughput", Some("Mops/s")),
                ("an operation of a thread", Some("ns")),
                ("against one thread", Some("")),
                ("of what noop gains", Some("")),
            ]),
            rows: self.curves.iter().flat_map(|curve| curve.bests.values().map(move |best| row(curve, best))).collect(),
            note:
                "The best of the trials of each setting: what disturbs a trial makes it slower, what is built into a \
                   structure makes every one slower."
                    .to_owned(),
        }
    }
}
