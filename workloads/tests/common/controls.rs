//! What each control must be caught by; by everything else it must not.

use rare_workloads::structures::{
    Structure, bcco10,
    controls::{
        bad_padding, decay, double_remove, false_sharing, forest, interleaved, leak, lost_update, never_frees,
        size_drift, unfair, use_after_free,
    },
    nm14,
};

use super::Subject;
use Suite::{Accounting, Checksum, Fairness, Layout, Linearizability, Memcheck, Model, Reclamation};

/// A kind of check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// Answers of one thread alone, compared with a model.
    Model,
    /// Size and key sum of the walk after a trial, compared with what its threads did.
    Checksum,
    /// Histories.
    Linearizability,
    /// What is still allocated after the drop of a trial.
    Accounting,
    /// Objects unreclaimed at the end of a trial, compared with those removed.
    Reclamation,
    /// Bytes allocated by an insertion, compared with the sound base.
    Layout,
    /// Operations of the least busy thread, compared with the busiest.
    Fairness,
    /// Valgrind.
    Memcheck,
}

/// What is expected of one control.
pub struct Expected {
    pub control: &'static Structure,
    /// The sound structure in it.
    pub base: &'static Structure,
    /// Parameters under which a test of seconds suffices.
    pub dose: &'static [(&'static str, u64)],
    /// The suites that must catch it. Where none is, the fault shows in speed alone, which the bench `controls` prints.
    pub caught_by: &'static [Suite],
}

impl Expected {
    /// Tells whether a suite must catch it.
    pub fn must_be_caught_by(&self, suite: Suite) -> bool {
        self.caught_by.contains(&suite)
    }

    /// Its driver under the scheme that it claims.
    pub fn subject(&self) -> Subject {
        Subject::of(self.control).last().expect("a control has a driver")
    }

    /// The driver of its base under the same scheme.
    pub fn base(&self) -> Subject {
        let reclamation = self.subject().reclamation;
        Subject::of(self.base).find(|base| base.reclamation == reclamation).expect("the base supports what it supports")
    }
}

/// Every control: it, its base, a dose, and what must catch it.
pub static EXPECTED: &[Expected] = &[
    row(&lost_update::CONTROL, &nm14::STRUCTURE, &[("one_in", 500)], &[Model, Checksum, Linearizability]),
    row(&double_remove::CONTROL, &nm14::STRUCTURE, &[("one_in", 50)], &[Checksum, Linearizability]),
    row(&size_drift::CONTROL, &nm14::STRUCTURE, &[("one_in", 500)], &[Checksum]),
    row(&leak::CONTROL, &forest::SOUND, &[("one_in", 10)], &[Accounting, Memcheck]),
    row(&never_frees::CONTROL, &nm14::STRUCTURE, &[], &[Accounting, Reclamation, Memcheck]),
    row(&use_after_free::CONTROL, &forest::SOUND, &[("one_in", 100)], &[Memcheck]),
    row(&false_sharing::CONTROL, &nm14::STRUCTURE, &[], &[]),
    row(&interleaved::CONTROL, &bcco10::STRUCTURE, &[], &[Layout]),
    row(&bad_padding::CONTROL, &forest::SOUND, &[], &[Layout]),
    row(&unfair::CONTROL, &nm14::STRUCTURE, &[("pauses", 300)], &[Fairness]),
    row(&decay::CONTROL, &nm14::STRUCTURE, &[], &[]),
];

const fn row(
    control: &'static Structure,
    base: &'static Structure,
    dose: &'static [(&'static str, u64)],
    caught_by: &'static [Suite],
) -> Expected {
    Expected { control, base, dose, caught_by }
}
