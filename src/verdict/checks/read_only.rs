//! Check `read-only`: look-ups alone scale.
//!
//! Look-ups need not write, so nothing but the memory is shared by the threads that make them. What gets slower with more
//! threads writes after all: a lock, a counter, a guard, or two things on one cache line. That a structure with a lock
//! does so is true of it, and as much a finding: its other numbers with several threads are those of its lock.

use rare_workloads::protocol::Mix;

use super::{Check, Info, Verdict};
use crate::{
    plan::{
        Ground, Probe,
        probe::{Change, Setting},
    },
    spec::value::{Parameter, Prefill, Value},
    units::BasisPoints,
    verdict::{
        Evidence,
        scaling::{self, Scaling},
    },
};

/// What a structure must reach of the speed-up of `noop`. Sound ones reached 0.90 at least; `scc-hash`, `dashmap` and
/// `rwlock-btree`, which lock in look-ups, 0.72 at most.
const WEAK: f64 = 0.75;

static INFO: Info = Info {
    name: "read-only",
    title: "Look-ups alone",
    rule: "look-ups in structures that are filled as the plan fills them (to half where it leaves them empty) scale as \
           those in `noop`, which stores nothing",
    threshold: "with more threads less than 0.9 times the throughput of one fails; less than 75 % of the speed-up of \
                `noop` warns; each the best of 5 trials of at most 60 ms",
    source: "Brown, Good data structure experiments are R.A.R.E., sanity check 2",
    reason: "look-ups that get slower with more threads write to what they share, which weighs on every mix",
    remedy: "look for locks and counters in look-ups, for objects of several threads on one cache line, for a reclamation \
             scheme whose guards write to shared lines, and for a lack of memory bandwidth; a structure that locks in \
             look-ups shows here that it does: say so where it is compared",
};

/// See [`INFO`].
pub(super) struct ReadOnly;

impl Check for ReadOnly {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn probes(&self, ground: &Ground<'_>) -> Vec<Probe> {
        scaling::probes(INFO.name, ground, |base| filled(base.with_mix(0, 0, Mix::WHOLE)))
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        Scaling::of(evidence, INFO.name, WEAK).judge(&INFO)
    }
}

/// Fills a setting to half that would leave its structure empty.
fn filled(setting: Setting) -> Setting {
    match setting[Parameter::Prefill as usize] {
        Value::Prefill(Prefill::Share(BasisPoints(0)) | Prefill::Keys(0)) => {
            setting.with(Parameter::Prefill, Value::Prefill(Prefill::Share(BasisPoints(5_000))))
        }
        _ => setting,
    }
}
