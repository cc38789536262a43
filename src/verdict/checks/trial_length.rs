//! Check `trial-length`: a trial twenty times as long gives the same throughput, and is as fast at its end as at its start.
//!
//! Each structure has a trial of twenty times the plan's length in its base setting, and one of four times, which is to
//! confirm what the first shows; the plan's own trials of that cell are the short ones. A shared machine changes its speed
//! in steps, to a third and back on the one where this was tried, which no trial can tell from a slower structure. So what
//! counts within a trial is a course that changes all the time; and between trials a difference that both long ones show
//! alike, in a run in which the machine had one speed, and that not all structures share.
//!
//! On 20 runs of six trees without fault on two shared cores nothing fired; none of 252 long trials changed all the time; in
//! 7 runs the lengths could not be compared. The last third of a trial of `control-decay` has 30 to 60 % of the throughput
//! of its first.

use std::collections::BTreeSet;

use rare_workloads::protocol::Reclamation;

use super::{Check, Exhibit, Grade, Info, Verdict};
use crate::{
    plan::{Ground, Mode, Probe, probe::Change, probe::Setting},
    spec::value::{Parameter, Value},
    stats::{
        describe,
        series::{self, Course},
    },
    units::Nanos,
    verdict::{
        Evidence,
        beside::{competing, own_cell, unknown},
        evidence::Probed,
        number::{counted, mops, p_value, percent, ratio},
        probing::columns,
    },
};

/// A long trial is so many times as long as those of the plan: a minute for 3 s, as in the talk.
const FACTOR: u64 = 20;

/// No long trial is shorter, in nanoseconds: a throughput is sampled ten times a second, and its course has four parts of
/// two samples each.
const SHORTEST: u64 = 1_000_000_000;

/// Nor is one that confirms, in nanoseconds: it has two halves of two samples each.
const SHORTEST_CONFIRMING: u64 = 400_000_000;

/// No long trial is longer, in nanoseconds.
const LONGEST: u64 = 60_000_000_000;

/// All long trials together are not longer, in nanoseconds: with many structures each has its share.
const LONGEST_OF_ALL: u64 = 360_000_000_000;

/// Under no reclamation a trial keeps all that it removes, some hundred megabytes a second.
const LONGEST_WITHOUT_RECLAMATION: u64 = 2_000_000_000;

/// The trial that confirms is so many times as long, and the long one at least: less says nothing that the plan's own
/// trials do not.
const CONFIRMING_FACTOR: u64 = 4;

/// From this change over the whole trial on, a steady and confirmed one fails. Where it is less it warns.
const FAIL_SHARE: f64 = 0.25;

/// Differences between lengths up to this are not looked at.
const WARN_SHARE: f64 = 0.2;

/// Trials of equal length, or of the two longer lengths, that differ by more show a machine that changes its speed.
const UNSTEADY_SHARE: f64 = 0.2;

/// Trials of one cell, or of one probe of any check, whose fastest is more times as fast as the slowest show a machine
/// that had two speeds in this run. Those of a steady one are within a fifth of each other.
const MOST_SPREAD: f64 = 1.5;

/// From so many structures on what they have in common is the machine's.
const MIN_STRUCTURES: usize = 3;

static INFO: Info = Info {
    name: "trial-length",
    title: "Longer trials",
    rule: "for each structure a trial twenty times as long as the plan's has the same throughput, and is as fast at its end \
           as at its start",
    threshold: "a course that falls, or rises, by more than 3 % from each quarter of the long trial to the next warns; it \
                fails if the last third differs from the first by more than 25 % and a trial of four times the length goes \
                the same way; a throughput that differs by more than 20 % in both longer trials warns. Long trials last \
                1 s at least and 60 s at most, and 6 min for all structures together",
    source: "Brown, Good data structure experiments are R.A.R.E., sanity check 4; Kharal and Brown 2022",
    reason: "what slows down as it runs, or needs a while to settle, has no throughput of its own: the trial's length \
             chooses the number, and with it perhaps the ranking",
    remedy: "lengthen the trials until the throughput within them is flat; if it never is, look for what grows: unreclaimed \
             memory, debris on the paths, an unbalanced tree",
};

/// See [`INFO`].
pub(super) struct TrialLength;

impl Check for TrialLength {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn probes(&self, ground: &Ground<'_>) -> Vec<Probe> {
        let bases = competing(ground.plan());
        let n_bases = bases.len() as u64;
        let longer = |base: Setting| {
            let Value::Duration(Nanos(short)) = base[Parameter::TrialLength as usize] else {
                unreachable!("the column of durations")
            };
            let leaks = base[Parameter::Reclamation as usize] == Value::Reclamation(Reclamation::None);
            let longest = if leaks { LONGEST_WITHOUT_RECLAMATION } else { LONGEST }.min(LONGEST_OF_ALL / n_bases);
            let long = short.saturating_mul(FACTOR).max(SHORTEST).min(longest);
            let confirming = short.saturating_mul(CONFIRMING_FACTOR).max(SHORTEST_CONFIRMING);
            let lengths = if long < confirming { Vec::new() } else { vec![long, confirming] };
            let with = move |length| base.clone().with(Parameter::TrialLength, Value::Duration(Nanos(length)));
            lengths.into_iter().map(move |length| with(length).probe(INFO.name, Mode::Timed, 1))
        };
        bases.into_iter().flat_map(longer).collect()
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let probed = evidence.probes(INFO.name);
        if probed.is_empty() {
            return unknown(&INFO, "the plan has no longer trials: its own are too long to be exceeded within reason");
        }
        let of = |pair: &[Probed]| (pair[0].cell.structure().label.clone(), Found::new(evidence, pair));
        let found: Vec<(String, Result<Found, String>)> = probed.chunks(2).map(of).collect();
        let known = || found.iter().filter_map(|(label, found)| Some((label.as_str(), found.as_ref().ok()?)));
        let machine = Machine { common: common(known().map(|(_, found)| found)), is_steady: is_steady(evidence) };
        let judged: Vec<(Grade, String)> = found
            .iter()
            .map(|(label, found)| match found {
                Ok(found) => found.judge(label, &machine),
                Err(missing) => (Grade::Unknown, format!("{label}: {missing}")),
            })
            .collect();
        let grade = judged.iter().map(|(grade, _)| *grade).max().unwrap_or(Grade::Unknown);
        let mut findings: Vec<&str> =
            judged.iter().filter(|(of, _)| *of == grade && *of > Grade::Pass).map(|(_, text)| text.as_str()).collect();
        if grade == Grade::Pass {
            findings.push("longer trials are as fast as the plan's, and as fast at their end as at their start");
        }
        let exhibits = vec![exhibit(known())];
        Verdict { info: &INFO, grade, summary: findings.join("; "), rows: Vec::new(), exhibits }
    }
}

/// What one structure shows.
struct Found {
    /// Lengths of the plan's trials, of the long one and of the confirming one.
    lengths: [Nanos; 3],
    /// Median throughput of the plan's trials, upper quartiles within the two others, in operations per second.
    speeds: [f64; 3],
    /// Largest of the plan's trials over the smallest.
    spread: f64,
    /// The course of the long trial.
    course: Course,
    /// Second half of the confirming trial over its first.
    confirming: f64,
}

impl Found {
    /// # Errors
    /// What is missing.
    fn new(evidence: &Evidence, pair: &[Probed]) -> Result<Self, String> {
        let [long, confirming] = pair else {
            return Err("the plan has one longer trial, and two are needed".to_owned());
        };
        let cell =
            own_cell(evidence.plan, long.cell, &[Parameter::TrialLength]).ok_or("the plan has no shorter trials")?;
        let short = describe::describe(&evidence.summary.cell(cell).values).ok_or("no trial of the plan counts")?;
        let rates = |probed: &Probed| {
            let valid = evidence.valid(probed).next().map(|replied| series::rates(&replied.reply.samples));
            valid.ok_or_else(|| format!("the trial of {} does not count", probed.cell.trial_length()))
        };
        let (of_long, of_confirming) = (rates(long)?, rates(confirming)?);
        let too_few = |rates: &[f64]| format!("{} within a longer trial are too few", counted(rates.len(), "sample"));
        let course = Course::of(&of_long).ok_or_else(|| too_few(&of_long))?;
        let ratio = series::second_half_over_first(&of_confirming).ok_or_else(|| too_few(&of_confirming))?;
        let [upper_long, upper_confirming] = [&of_long, &of_confirming].map(|rates| series::upper_quartile(rates));
        Ok(Self {
            lengths: [
                evidence.plan.cell(cell).trial_length(),
                long.cell.trial_length(),
                confirming.cell.trial_length(),
            ],
            speeds: [short.median, upper_long, upper_confirming],
            spread: short.max / short.min,
            course,
            confirming: ratio,
        })
    }

    /// Speeds of the long and the confirming trial over that of the short ones.
    fn of_lengths(&self) -> [f64; 2] {
        [self.speeds[1] / self.speeds[0], self.speeds[2] / self.speeds[0]]
    }

    fn judge(&self, label: &str, machine: &Machine) -> (Grade, String) {
        let of_thirds = self.course.ratio();
        if self.course.is_steady {
            let text = format!(
                "{label} is all the time getting {} in a trial of {}: its last third has {} of the throughput of its first",
                if of_thirds < 1.0 { "slower" } else { "faster" },
                self.lengths[1],
                percent(of_thirds)
            );
            let is_confirmed = (of_thirds < 1.0) == (self.confirming < 1.0);
            let is_far = is_beyond(of_thirds, FAIL_SHARE);
            return (if is_confirmed && is_far { Grade::Fail } else { Grade::Warn }, text);
        }
        let [long, confirming] = self.of_lengths();
        let differs = |ratio: f64| is_beyond(ratio, WARN_SHARE) && is_beyond(ratio / machine.common, WARN_SHARE);
        if !differs(long) || !differs(confirming) {
            return (Grade::Pass, String::new());
        }
        if !machine.is_steady || self.spread > 1.0 + UNSTEADY_SHARE || is_beyond(long / confirming, UNSTEADY_SHARE) {
            let text = format!("{label}: trials of one length differ as much as those of different lengths");
            return (Grade::Unknown, text);
        }
        let text = format!(
            "{label} has {} of the throughput of a trial of {} in one of {}, and {} in one of {}",
            percent(long),
            self.lengths[0],
            self.lengths[1],
            percent(confirming),
            self.lengths[2]
        );
        (Grade::Warn, text)
    }
}

/// What the run tells of the machine.
struct Machine {
    /// See [`common`].
    common: f64,
    /// See [`is_steady`].
    is_steady: bool,
}

/// Tells whether no cell and no probe has two trials of which one is far slower: the machine had one speed.
fn is_steady(evidence: &Evidence) -> bool {
    let purposes: BTreeSet<&str> = evidence.plan.probes.iter().map(|probe| probe.purpose.as_str()).collect();
    let probed = purposes.into_iter().flat_map(|purpose| evidence.probes(purpose));
    let probed = probed.map(|probed| evidence.throughputs(&probed));
    let mut all = evidence.summary.cells.iter().map(|cell| cell.values.clone()).chain(probed);
    all.all(|values| match describe::describe(&values) {
        Some(described) => described.max <= described.min * MOST_SPREAD,
        None => true,
    })
}

/// The median ratio of long to short over all structures, which is the machine's; 1 where there are too few of them.
fn common<'f>(found: impl Iterator<Item = &'f Found>) -> f64 {
    let ratios: Vec<f64> = found.map(|found| found.of_lengths()[0]).collect();
    if ratios.len() < MIN_STRUCTURES { 1.0 } else { describe::median(&ratios).expect("there are some") }
}

fn is_beyond(ratio: f64, share: f64) -> bool {
    ratio > 1.0 + share || ratio < 1.0 / (1.0 + share)
}

fn exhibit<'f>(found: impl Iterator<Item = (&'f str, &'f Found)>) -> Exhibit {
    let row = |(label, found): (&str, &Found)| {
        let lengths =
            found.lengths.iter().zip(found.speeds).flat_map(|(length, speed)| [length.to_string(), mops(speed)]);
        let course = [
            ratio(found.course.ratio()),
            format!("{:.2}", found.course.tau),
            p_value(found.course.p),
            (if found.course.is_steady { "yes" } else { "no" }).to_owned(),
            ratio(found.confirming),
        ];
        [label.to_owned()].into_iter().chain(lengths).chain(course).collect()
    };
    Exhibit {
        title: "The plan's trials and longer ones".to_owned(),
        columns: columns(&[
            ("structure", None),
            ("the plan's trials", None),
            ("median", Some("Mops/s")),
            ("long trial", None),
            ("upper quartile", Some("Mops/s")),
            ("confirming trial", None),
            ("upper quartile", Some("Mops/s")),
            ("long: last third over first", Some("")),
            ("tau", Some("")),
            ("p of a trend", Some("")),
            ("every quarter falls or rises", None),
            ("confirming: second half over first", Some("")),
        ]),
        rows: found.map(row).collect(),
        note: "The quartiles are over the moments of a trial, a tenth of a second each. Tau is Kendall's, of throughput and \
               time: -1 if each moment is slower than the one before. A machine that changes its speed shows a trend and \
               different thirds as well, but not a change from each quarter to the next."
            .to_owned(),
    }
}
