//! Check `false-sharing`: the threads of the harness write to no line of each other.
//!
//! An A/B trial: `noop`, which shares nothing itself, with the padding of the plan, with 128 bytes, and without any. The
//! last is the positive control: where it costs nothing, this trial cannot see false sharing and says so. Where a processor
//! can sample who writes to whose lines (`perf c2c`) that would name the place; it is not used yet.

use std::collections::BTreeSet;

use super::{Check, Exhibit, Grade, Info, Row, Verdict};
use crate::{
    plan::{
        Ground, Mode, Probe,
        probe::{Change, Setting},
    },
    spec::value::{Parameter, Value},
    verdict::{
        Evidence,
        number::{fixed, mops, ratio},
        probing::{self, Best, columns},
    },
};

/// Throughput over that with full padding below which threads share lines. Unpadded state of two threads left 0.39 to 0.48
/// of it; the best trials of one setting were within a tenth of each other.
const SHARED: f64 = 0.8;

/// Bytes with which no two threads share a pair of lines.
const FULL: u64 = 128;

static INFO: Info = Info {
    name: "false-sharing",
    title: "False sharing in the harness",
    rule: "with the most threads of the plan, `noop` is as fast with the plan's `harness.padding` as with 128 bytes",
    threshold: "less than 0.8 times the throughput with 128 bytes fails; unknown where no padding at all costs less than \
                that; each the best of 5 trials of at most 60 ms",
    source: "Brown, Good data structure experiments are R.A.R.E., common errors 4 and 5",
    reason: "state of several threads on one cache line makes every operation wait for it, most of all the fast ones, and \
             differences between structures vanish in that",
    remedy: "take `harness.padding: 128`",
};

/// See [`INFO`].
pub(super) struct FalseSharing;

impl Check for FalseSharing {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn probes(&self, ground: &Ground<'_>) -> Vec<Probe> {
        let Some(base) = ground.bases().into_iter().max_by_key(threads) else { return Vec::new() };
        let base = probing::short(probing::with_sound_harness(base.with_structure("noop")));
        let own = ground.cells().map(|cell| cell.value(Parameter::HarnessPadding).clone());
        let paddings: BTreeSet<Value> = own.chain([Value::Count(0), Value::Count(FULL)]).collect();
        let of_padding = |padding| base.clone().with(Parameter::HarnessPadding, padding);
        paddings.into_iter().map(|it| of_padding(it).probe(INFO.name, Mode::Timed, probing::N_TRIALS)).collect()
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let mut measured = Vec::new();
        for probed in evidence.probes(INFO.name) {
            match Best::of(evidence, &probed) {
                Ok(best) => measured.push((probed.cell.value(Parameter::HarnessPadding), best)),
                Err(missing) => return unknown(missing, Vec::new()),
            }
        }
        let rate = |padding| measured.iter().find(|(it, _)| **it == Value::Count(padding)).map(|(_, best)| best.rate);
        let (Some(none), Some(full)) = (rate(0), rate(FULL)) else {
            return unknown("the plan has no trials for it".to_owned(), Vec::new());
        };
        let exhibits = vec![exhibit(&measured, full)];
        if measured.iter().any(|(_, best)| best.n_threads < 2) {
            return unknown("every trial has one thread, which can share nothing".to_owned(), exhibits);
        }
        if none >= full * SHARED {
            let summary = format!(
                "without padding `noop` is {} as fast as with it: on this machine an A/B trial cannot see false sharing",
                ratio(none / full)
            );
            return unknown(summary, exhibits);
        }
        verdict(evidence, &measured, (none, full), exhibits)
    }
}

fn threads(setting: &Setting) -> Value {
    setting[Parameter::Threads as usize].clone()
}

fn unknown(summary: String, exhibits: Vec<Exhibit>) -> Verdict {
    Verdict { info: &INFO, grade: Grade::Unknown, summary, rows: Vec::new(), exhibits }
}

fn verdict(evidence: &Evidence, measured: &[(&Value, Best)], ends: (f64, f64), exhibits: Vec<Exhibit>) -> Verdict {
    let (none, full) = ends;
    let is_own = |padding: &Value| {
        (0..evidence.plan.n_cells()).any(|cell| evidence.plan.cell(cell).value(Parameter::HarnessPadding) == padding)
    };
    let finding = |(padding, best): &(&Value, Best)| {
        let against = best.rate / full;
        (is_own(padding) && against < SHARED).then(|| {
            let text = format!(
                "A/B trial: with `harness.padding: {padding}` of the plan `noop` is {} as fast as with {FULL}",
                ratio(against)
            );
            best.row(Grade::Fail, text)
        })
    };
    let rows: Vec<Row> = measured.iter().filter_map(finding).collect();
    let held = || {
        let cost = ratio(none / full);
        format!("A/B trial: the plan's padding is as good as {FULL} bytes; without any `noop` would be {cost} as fast")
    };
    let summary = rows.first().map_or_else(held, |row| row.finding.clone());
    let grade = if rows.is_empty() { Grade::Pass } else { Grade::Fail };
    Verdict { info: &INFO, grade, summary, rows, exhibits }
}

fn exhibit(measured: &[(&Value, Best)], full: f64) -> Exhibit {
    let row = |(padding, best): &(&Value, Best)| {
        vec![
            padding.to_string(),
            best.n_threads.to_string(),
            mops(best.rate),
            fixed(best.nanos(), 2),
            ratio(best.rate / full),
        ]
    };
    Exhibit {
        title: "`noop` by the padding between the state of two threads".to_owned(),
        columns: columns(&[
            ("padding", Some("B")),
            ("threads", Some("")),
            ("throughput", Some("Mops/s")),
            ("an operation of a thread", Some("ns")),
            ("against 128", Some("")),
        ]),
        rows: measured.iter().map(row).collect(),
        note: "The best trial of each. Judged by this A/B trial; events of the processor that name the shared lines \
               (`perf c2c`) were not used."
            .to_owned(),
    }
}
