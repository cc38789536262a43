//! What checks that run probes share: what a setting reaches at its best, and `noop` as a yardstick.
//!
//! These checks look for faults that are built in, and use the best trial of a probe, not the median. What disturbs a trial
//! (another process, the hypervisor) only ever makes it slower, and on a shared machine it can hit most of a few short
//! trials; a fault that is built in slows down every one of them, the best too.

use super::{
    checks::{Grade, Row, Subject},
    evidence::{Evidence, Probed},
};
use crate::{
    plan::{
        Ground, TrialId,
        probe::{Change, Setting},
    },
    spec::value::{Parameter, Value},
    stats::validity,
    units::Nanos,
};

/// Trials of each setting. More short ones beat few long ones: disturbances come in bursts, and the best trial is used.
pub(crate) const N_TRIALS: u32 = 5;

/// Longest trial of a probe whose best is used: a thousand times the skew between the starts of two threads, and still
/// ten thousand look-ups in a list of a thousand keys.
const LONGEST: Nanos = Nanos(60_000_000);

/// Share of a probe's trials that must be valid for it to be judged: more than half, so that what it says is not the luck
/// of the one that got through.
const JUDGED_SHARE: f64 = 0.5;

/// The fastest valid trial of a probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Best {
    /// Threads that ran: what the symbolic number of the plan became.
    pub(crate) n_threads: usize,
    /// Operations per second of all threads, above 0.
    pub(crate) rate: f64,
    /// Index of its record.
    record_idx: usize,
    /// The trial.
    trial: TrialId,
}

impl Best {
    /// Returns the best of a probe, or what is missing.
    pub(crate) fn of(evidence: &Evidence, probed: &Probed) -> Result<Self, String> {
        let label = &probed.cell.structure().label;
        let (n_valid, n_planned) = (evidence.throughputs(probed).len(), probed.probe.n_trials);
        if n_valid as f64 <= f64::from(n_planned) * JUDGED_SHARE {
            let threads = evidence.phrase(Parameter::Threads, probed.cell.value(Parameter::Threads));
            return Err(format!("of `{label}` with {threads} {n_valid} of {n_planned} trials are valid"));
        }
        let fastest = evidence.valid_timed(probed).max_by(|(_, left), (_, right)| left.total_cmp(right));
        let (replied, rate) = fastest.filter(|(_, rate)| *rate > 0.0).ok_or(format!("`{label}` did nothing"))?;
        let n_threads = replied.reply.threads.len();
        Ok(Self { n_threads, rate, record_idx: replied.record_idx, trial: replied.trial.trial })
    }

    /// Returns the nanoseconds that an operation takes its thread.
    pub(crate) fn nanos(&self) -> f64 {
        1e9 * self.n_threads as f64 / self.rate
    }

    /// Returns a finding that rests on it.
    pub(crate) fn row(&self, grade: Grade, finding: String) -> Row {
        let subject = Subject::Record { record_idx: self.record_idx, trial: self.trial };
        Row { subject, finding, grade }
    }
}

/// Tells whether the structure of a setting stores nothing.
pub(crate) fn is_noop(setting: &Setting) -> bool {
    matches!(&setting[Parameter::Structure as usize], Value::Structure(used) if validity::stores_nothing(&used.name))
}

/// Returns the bases of the plan, and `noop` set as the first of them if it is not among them.
pub(crate) fn bases_and_noop(ground: &Ground<'_>) -> Vec<Setting> {
    let mut bases = ground.bases();
    if !bases.iter().any(is_noop) {
        bases.extend(bases.first().map(|base| base.clone().with_structure("noop")));
    }
    bases
}

/// Returns the heads of an exhibit's columns: of numbers with their unit, which may be empty, of texts with none.
pub(crate) fn columns(heads: &[(&str, Option<&'static str>)]) -> Vec<(String, Option<&'static str>)> {
    heads.iter().map(|&(head, unit)| (head.to_owned(), unit)).collect()
}

/// The settings of the harness that cost least, share nothing between threads and have no fault planted: those of a plan
/// that asks for no other.
const SOUND_HARNESS: [(Parameter, Value); 4] = [
    (Parameter::TimeCheck, Value::Word("flag")),
    (Parameter::HarnessPadding, Value::Count(128)),
    (Parameter::Generator, Value::Word("xoshiro256++")),
    NO_FAULT,
];

/// Faults that are planted in the trials of a plan are for the checks of those trials; a probe need not even be possible
/// with them, such as one thread whose pins are to be rotated.
const NO_FAULT: (Parameter, Value) = (Parameter::HarnessFault, Value::Word("none"));

/// Returns the setting with the harness of [`SOUND_HARNESS`].
pub(crate) fn with_sound_harness(setting: Setting) -> Setting {
    SOUND_HARNESS.into_iter().fold(setting, |setting, (parameter, value)| setting.with(parameter, value))
}

/// Returns the setting for short trials of its own: of at most [`LONGEST`], with no fault planted in the harness.
pub(crate) fn short(setting: Setting) -> Setting {
    let (parameter, none) = NO_FAULT;
    setting.at_most(LONGEST).with(parameter, none)
}
