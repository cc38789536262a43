//! Check `aa`: one cell of the plan twice, under two labels. What then differs is noise, and no smaller difference between
//! structures is one.
//!
//! The two are probes with as many trials each, which stand in the same blocks in random order, so that drift of the
//! machine falls on both. They go through the machinery of all comparisons, at a level of its own.

use super::{Check, Exhibit, Grade, Info, Verdict};
use crate::{
    plan::{Ground, Mode, Probe, probe::Change, probe::Setting},
    spec::value::{Parameter, Value},
    stats::{Answer, Comparison, Description, Interval, bootstrap, describe},
    units::Nanos,
    verdict::{
        Decision, Evidence,
        beside::{competing, unknown},
        claims,
        number::{counted, mops, p_value, percent, ratio, ratio_interval},
        probing::columns,
    },
};

/// Trials of each side. Eight are enough that one disturbed trial of a side does not reach the end of its interval; below
/// six there is none.
const N_TRIALS: (u32, u32) = (bootstrap::MIN_N as u32, 8);

/// Longest trial. Longer ones vary less, so that the floor is rather too high than too low where the plan's are longer.
const LONGEST: Nanos = Nanos(1_000_000_000);

/// Chance of calling the two different although they are the same: the next level below 1 in 100 that 6 or 8 trials of
/// each side can reach (0.43 % and 0.47 %).
const LEVEL: f64 = 0.005;

/// Two labels that are told apart and whose medians differ by more fail. On 38 runs of six trees on two shared cores none
/// were told apart; the medians differed by at most 6 % in the 19 in which the machine was steady, and by up to 34 % in the
/// others.
const FAIL_SHARE: f64 = 0.1;

/// With a noise floor above this the machine changed its speed meanwhile: nothing could be claimed on it, and to call
/// every difference noise would say more than is known. In those 19 runs it was at most 16 %, in the others 34 % or more.
const UNSTEADY_SHARE: f64 = 0.25;

static INFO: Info = Info {
    name: "aa",
    title: "The same against itself",
    rule: "a cell that is measured twice under two labels is not told apart, and every difference that is called one is \
           larger than what the two show",
    threshold: "a p-value below 0.005 warns, and fails if the medians differ by more than 10 % as well; a difference \
                below the noise floor, which is the further end of the 95 % interval of their ratio, warns",
    source: "Kalibera and Jones, ISMM'13; Mytkowicz, Diwan, Hauswirth and Sweeney, ASPLOS'09; A/A tests",
    reason: "a harness that finds a difference where there is none finds others as well",
    remedy: "look for what differs between the two but the label: order, place in the block, load of the machine; claim no \
             difference below the noise floor, or lengthen the trials until it falls",
};

/// See [`INFO`].
pub(super) struct AgainstItself;

impl Check for AgainstItself {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn probes(&self, ground: &Ground<'_>) -> Vec<Probe> {
        let Some(base) = competing(ground.plan()).into_iter().next().or_else(|| ground.bases().into_iter().next())
        else {
            return Vec::new();
        };
        let n_trials = ground.n_trials().clamp(N_TRIALS.0, N_TRIALS.1);
        let base = base.at_most(LONGEST);
        let twin = relabelled(base.clone(), ground);
        [base, twin].map(|setting| setting.probe(INFO.name, Mode::Timed, n_trials)).into()
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let probed = evidence.probes(INFO.name);
        let [left, right] = probed.as_slice() else {
            return unknown(&INFO, "the plan does not have the two cells");
        };
        let values = [left, right].map(|side| evidence.throughputs(side));
        let [n_left, n_right] = [0, 1].map(|side| values[side].len());
        let compared = Comparison::new((0, &values[0]), (1, &values[1]));
        let found = compared.and_then(|compared| Some(Found::new(compared.ratio?, compared.interval?, compared.p)));
        let Some(found) = found else {
            let needed = bootstrap::MIN_N;
            return unknown(&INFO, format!("{n_left} and {n_right} trials count, {needed} of each are needed"));
        };
        let labels = [left, right].map(|side| side.cell.structure().label.as_str());
        let is_unsteady = found.floor > 1.0 + UNSTEADY_SHARE;
        let below = if is_unsteady { Vec::new() } else { below(evidence, found.floor) };
        let mut exhibits = vec![found.exhibit(labels, [&values[0], &values[1]])];
        exhibits.extend((!below.is_empty()).then(|| exhibit_below(&below)));
        let mut summary = found.sentence();
        if !below.is_empty() {
            summary += &format!("; {} claimed or called real below it", counted(below.len(), "difference"));
        }
        let grade = match found.grade() {
            Grade::Pass if is_unsteady => {
                summary += "; the machine was too unsteady to call differences noise that are smaller";
                Grade::Unknown
            }
            Grade::Pass if !below.is_empty() => Grade::Warn,
            grade => grade,
        };
        Verdict { info: &INFO, grade, summary, rows: Vec::new(), exhibits }
    }
}

/// Returns the setting under a label that no structure of the plan has. Labels are of letters, digits, `-`, `_`, `.`, `+`.
fn relabelled(setting: Setting, ground: &Ground<'_>) -> Setting {
    let Value::Structure(mut used) = setting[Parameter::Structure as usize].clone() else {
        unreachable!("the column of structures")
    };
    used.label += "-again";
    while ground.cells().any(|cell| cell.structure().label == used.label) {
        used.label += "-again";
    }
    setting.with(Parameter::Structure, Value::Structure(used))
}

/// What the two labels show.
struct Found {
    /// Median of the first over that of the second.
    ratio: f64,
    /// 95 % interval of the ratio.
    interval: Interval,
    /// Two-sided p-value of the Mann-Whitney test.
    p: f64,
    /// Ratio, above 1, that a difference must exceed: the further end of the interval.
    floor: f64,
}

impl Found {
    fn new(ratio: f64, interval: Interval, p: f64) -> Self {
        Self { ratio, interval, p, floor: interval.high.max(1.0 / interval.low).max(1.0) }
    }

    fn grade(&self) -> Grade {
        match self.p < LEVEL {
            true if factor(self.ratio) > 1.0 + FAIL_SHARE => Grade::Fail,
            true => Grade::Warn,
            false => Grade::Pass,
        }
    }

    fn sentence(&self) -> String {
        let told = if self.p < LEVEL { "is told apart from itself" } else { "is not told apart from itself" };
        format!(
            "the noise floor is {}: one cell {told}, its medians differ by {}",
            percent(self.floor - 1.0),
            percent(factor(self.ratio) - 1.0)
        )
    }

    fn exhibit(&self, labels: [&str; 2], values: [&[f64]; 2]) -> Exhibit {
        let side = |(label, values): (&str, &[f64])| {
            let Description { n, median, min, max, .. } = describe::describe(values).expect("the two were compared");
            vec![label.to_owned(), n.to_string(), mops(median), mops(min), mops(max)]
        };
        Exhibit {
            title: "One cell under two labels".to_owned(),
            columns: columns(&[
                ("label", None),
                ("trials", Some("")),
                ("median", Some("Mops/s")),
                ("least", Some("Mops/s")),
                ("most", Some("Mops/s")),
            ]),
            rows: labels.into_iter().zip(values).map(side).collect(),
            note: format!(
                "Ratio of medians {} with the 95 % interval {}; Mann-Whitney p {}. A difference between structures that is \
                 smaller than {} may be noise, whatever a test says of it.",
                ratio(self.ratio),
                ratio_interval(self.interval),
                p_value(self.p),
                percent(self.floor - 1.0)
            ),
        }
    }
}

/// A difference that is called real and is smaller than the noise floor.
struct Below {
    faster: String,
    slower: String,
    ratio: f64,
    said_by: &'static str,
}

/// Every difference below the floor: those of claims that hold, and then those that the report's own comparisons show.
fn below(evidence: &Evidence, floor: f64) -> Vec<Below> {
    let decided = claims::decide(evidence);
    let pairs = decided.iter().flat_map(|claim| &claim.pairs).filter(|pair| pair.decision == Decision::Holds);
    let claimed: Vec<(u32, u32, Option<f64>)> = pairs.map(|pair| (pair.faster, pair.slower, pair.ratio)).collect();
    let shown = evidence.summary.comparisons.iter().filter_map(|comparison| match comparison.answer {
        Answer::Faster => Some((comparison.left, comparison.right, comparison.ratio)),
        Answer::Slower => Some((comparison.right, comparison.left, comparison.ratio)),
        Answer::NotDistinguishable => None,
    });
    let is_claimed = |&(faster, slower, _): &(u32, u32, Option<f64>)| {
        claimed.iter().any(|known| (known.0, known.1) == (faster, slower))
    };
    let shown: Vec<(u32, u32, Option<f64>)> = shown.filter(|pair| !is_claimed(pair)).collect();
    let said = claimed.into_iter().map(|pair| (pair, "a claim")).chain(shown.into_iter().map(|pair| (pair, "a test")));
    said.filter_map(|((faster, slower, ratio), said_by)| {
        let ratio = ratio.map(factor).filter(|&ratio| ratio < floor)?;
        Some(Below { faster: evidence.cell_label(faster), slower: evidence.cell_label(slower), ratio, said_by })
    })
    .collect()
}

fn exhibit_below(below: &[Below]) -> Exhibit {
    let row = |Below { faster, slower, ratio: times, said_by }: &Below| {
        vec![faster.clone(), slower.clone(), ratio(*times), (*said_by).to_owned()]
    };
    Exhibit {
        title: "Differences below the noise floor".to_owned(),
        columns: columns(&[("faster", None), ("slower", None), ("ratio of medians", Some("")), ("said by", None)]),
        rows: below.iter().map(row).collect(),
        note: "Each is smaller than what one and the same cell shows against itself.".to_owned(),
    }
}

/// How far a ratio is from 1, whichever way: at least 1.
fn factor(ratio: f64) -> f64 {
    ratio.max(1.0 / ratio)
}
