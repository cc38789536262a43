//! Check `empty`: look-ups in an empty structure cost little, and as little however many threads make them.
//!
//! What is left of an operation when there is nothing to find is the harness, the reclamation scheme, and what the
//! structure does before it looks. That it takes longer in one structure than in others is a property to explain (levels
//! of a skip list, a hash function) and no fault: it is named, and does not warn.

use super::{Check, Exhibit, Info, Verdict};
use crate::{
    plan::{
        Ground, Probe,
        probe::{Change, Setting},
    },
    spec::value::{Parameter, Prefill, Value},
    stats::describe,
    units::BasisPoints,
    verdict::{
        Evidence,
        number::{NONE, fixed, ratio},
        probing::{Best, columns},
        scaling::{self, Curve, Scaling},
    },
};

/// An operation that takes so many times the median of the other structures is one to explain. Between structures without
/// an index to walk it varied from 8 to 13 ns; the talk's skip list took 1.9 times the time of its tree.
const OUTLIER: f64 = 1.5;

/// What a structure must reach of the speed-up of `noop`. Sound ones reached 0.67 at least, where a look-up is little more
/// than the guard of its epoch and a line that both CPUs want is far away.
const WEAK: f64 = 0.5;

static INFO: Info = Info {
    name: "empty",
    title: "Empty structures",
    rule: "look-ups in empty structures scale as those in `noop`, which stores nothing",
    threshold: "with more threads less than 0.9 times the throughput of one fails; less than half of the speed-up of \
                `noop` warns; each the best of 5 trials of at most 60 ms",
    source: "Brown, Good data structure experiments are R.A.R.E., sanity check 1",
    reason: "where nothing is found nothing can be in the way of a thread but what the harness or the structure writes; \
             whatever differs here weighs on every other number",
    remedy: "look for writes and locks in look-ups, for false sharing in the structure or the harness, and for a \
             reclamation scheme whose guards write to shared lines; a structure that locks in look-ups shows here that it \
             does: say so where it is compared. Explain the structure that is named by its instructions per operation",
};

/// See [`INFO`].
pub(super) struct Empty;

impl Check for Empty {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn probes(&self, ground: &Ground<'_>) -> Vec<Probe> {
        scaling::probes(INFO.name, ground, |base: Setting| {
            let nothing = Value::Prefill(Prefill::Share(BasisPoints(0)));
            base.with_mix(0, 0, rare_workloads::protocol::Mix::WHOLE).with(Parameter::Prefill, nothing)
        })
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let scaling = Scaling::of(evidence, INFO.name, WEAK);
        let mut verdict = scaling.judge(&INFO);
        let times = Times::of(&scaling);
        if let Some((label, times_others)) = times.outlier() {
            verdict.summary +=
                &format!("; `{label}` is to be explained: {} the time of the others", ratio(times_others));
        }
        verdict.exhibits.extend((!times.0.is_empty()).then(|| times.exhibit()));
        verdict
    }
}

/// What one operation takes with one thread, in nanoseconds: the structures and `noop`.
struct Times<'a>(Vec<(&'a Curve<'a>, f64)>);

impl<'a> Times<'a> {
    fn of(scaling: &'a Scaling<'a>) -> Self {
        let alone = |curve: &'a Curve<'a>| Some((curve, curve.alone().map(Best::nanos)?));
        Self(scaling.curves.iter().filter_map(alone).collect())
    }

    /// Returns the time of a structure over the median of the other structures; `None` if there are none, or for `noop`.
    fn over_others(&self, of: &Curve) -> Option<f64> {
        let stores = || self.0.iter().filter(|(curve, _)| !curve.is_noop);
        let (_, own) = stores().find(|(curve, _)| curve.label == of.label)?;
        let others: Vec<f64> = stores().filter(|(curve, _)| curve.label != of.label).map(|(_, nanos)| *nanos).collect();
        Some(own / describe::median(&others)?)
    }

    /// Returns the structure that is slowest against the others, with by how much, if that is to be explained.
    fn outlier(&self) -> Option<(&'a str, f64)> {
        let against = self.0.iter().filter_map(|(curve, _)| Some((curve.label, self.over_others(curve)?)));
        against.filter(|(_, ratio)| *ratio >= OUTLIER).max_by(|(_, left), (_, right)| left.total_cmp(right))
    }

    fn exhibit(&self) -> Exhibit {
        let noop = self.0.iter().find(|(curve, _)| curve.is_noop).map(|(_, nanos)| *nanos);
        let text = |against: Option<f64>| against.map_or_else(|| NONE.to_owned(), ratio);
        let row = |(curve, nanos): &(&Curve, f64)| {
            let over_noop = noop.map(|noop| nanos / noop);
            vec![curve.label.to_owned(), fixed(*nanos, 1), text(over_noop), text(self.over_others(curve))]
        };
        Exhibit {
            title: "A look-up in an empty structure, one thread".to_owned(),
            columns: columns(&[
                ("structure", None),
                ("time", Some("ns")),
                ("over noop", Some("")),
                ("over the median of the others", Some("")),
            ]),
            rows: self.0.iter().map(row).collect(),
            note: format!(
                "A structure at {OUTLIER} times the median of the others or more is named: it does work before it looks, \
                 which its design explains or should not be there."
            ),
        }
    }
}
