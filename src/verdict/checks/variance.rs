//! Check `variance`: the trials of a cell agree, and do not change with their order.

use super::{Check, Grade, Info, Row, Subject, Verdict};
use crate::{
    stats::{
        Description,
        compare::holm,
        dip,
        drift::{self, Placed},
        tails,
    },
    verdict::Evidence,
};

/// A cell that varies more is called noisy. Source: the talk's tenth check, as the rule of the field has it.
const NOISY_CV: f64 = 0.05;

/// A cell that varies more has no number worth the name: two trials of it easily differ by half.
const USELESS_CV: f64 = 0.25;

/// An interval of the median this wide, relative to it, leaves nothing below a quarter to be said of the cell.
const WIDE_INTERVAL: f64 = 0.25;

/// Change from the first to the last quarter of a run that is worth a warning: as much as the CV of a noisy cell.
const LARGE_DRIFT: f64 = 0.05;

/// Chance, over all cells together, of calling a cell noisy that varies by exactly [`NOISY_CV`].
const CV_ALPHA: f64 = 0.01;

/// Chance, over all cells together, of seeing two modes where there is one.
const MODES_ALPHA: f64 = 0.003;

/// Chance of calling a drift that is none.
const DRIFT_ALPHA: f64 = 0.001;

static INFO: Info = Info {
    name: "variance",
    title: "Variance between trials",
    rule: "the coefficient of variation of each cell is within its bound or above it by no more than chance; intervals are \
           narrow; no cell has two modes; throughput relative to the cell's median does not follow the order of the \
           trials. Outliers are counted and named, not judged: small sound samples have them, and a far one shows in the \
           CV",
    threshold: "CV: beyond chance (chi-square, Holm over the cells, 1 %) above 5 % warns, above 25 % fails; interval wider \
                than 25 % of the median warns; two modes (Hartigan's dip, from 10 trials on, Holm over the cells, 0.3 %) \
                warn; drift (rank correlation within cells, 0.1 %) of over 5 % from the first to the last quarter warns",
    source: "the talk's tenth check; Hoefler and Belli, SC'15, rules 5 and 6; Hartigan and Hartigan 1985",
    reason: "a median of trials that do not agree is the luck of a few; two modes are two systems under one label",
    remedy: "look at the trials it names and at `interference`; make trials longer, or take more of them; a cell with two \
             modes has a hidden factor, such as layout or placement: make it an axis",
};

/// See [`INFO`].
pub(super) struct Variance;

impl Check for Variance {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let cells = evidence.summary.cells.iter().filter_map(|cell| {
            let description = cell.description.as_ref()?;
            Some((cell.cell, Sample { values: &cell.values, records: &cell.records, description }))
        });
        let (ids, samples): (Vec<u32>, Vec<Sample>) = cells.unzip();
        let judged = samples.iter().filter(|sample| sample.description.cv.is_some()).count();
        if judged == 0 {
            let why = if samples.is_empty() { "no trial counts" } else { "one trial of a cell has no spread" };
            return Verdict::new(&INFO, Grade::Unknown, why.to_owned(), Vec::new());
        }
        let findings = examine(&samples);
        let grade = findings.iter().map(|finding| finding.grade).max().unwrap_or(Grade::Pass);
        let worst = findings.iter().find(|finding| finding.grade == grade).map(|finding| {
            let label = finding.sample_idx.map(|idx| format!("{}: ", evidence.cell_label(ids[idx])));
            format!("{}{}; ", label.unwrap_or_default(), finding.text)
        });
        let n_silent = evidence.plan.cells.len() - judged;
        let silent =
            if n_silent > 0 { format!("; {n_silent} cells without two trials that count") } else { String::new() };
        let summary = format!("{}{}{silent}", worst.unwrap_or_default(), overview(&samples));
        let row = |finding: Finding| Row {
            subject: finding.sample_idx.map_or(Subject::Run, |idx| {
                let record_idx = samples[idx].records[samples[idx].farthest()];
                Subject::Record { record_idx, trial: evidence.trials[record_idx].trial }
            }),
            finding: finding.text,
            grade: finding.grade,
        };
        Verdict::new(&INFO, grade, summary, findings.into_iter().map(row).collect())
    }
}

/// The trials of one cell that count, in the order of the cell's trials; at least one.
struct Sample<'a> {
    /// Throughputs, in operations per second.
    values: &'a [f64],
    /// Index of the record of each, which is its place in the order of the run.
    records: &'a [usize],
    description: &'a Description,
}

/// Something that does not hold, of one sample or of all together.
#[derive(Debug)]
struct Finding {
    sample_idx: Option<usize>,
    grade: Grade,
    text: String,
}

impl Sample<'_> {
    /// Index of the value farthest from the median.
    fn farthest(&self) -> usize {
        let distance = |idx: &usize| (self.values[*idx] - self.description.median).abs();
        let indices = 0..self.values.len();
        indices.max_by(|a, b| distance(a).total_cmp(&distance(b))).expect("a described sample has a value")
    }

    /// Width of the interval of the median relative to it; `None` where there is no interval.
    fn width(&self) -> Option<f64> {
        let interval = self.description.interval?;
        (self.description.median > 0.0).then(|| (interval.high - interval.low) / self.description.median)
    }

    /// Probability of a CV at least as large where the true one is `limit`, for a normal sample; `None` for one value.
    fn exceeds(&self, limit: f64) -> Option<f64> {
        let cv = self.description.cv?;
        // Of the largest samples a thousand values stand for all: no p-value near the bound depends on more.
        let freedom = (self.description.n - 1).min(tails::MAX_FREEDOM);
        Some(tails::chi_square_upper(freedom as f64 * (cv / limit).powi(2), freedom))
    }

    fn dip_p(&self) -> Option<f64> {
        let mut sorted = self.values.to_vec();
        sorted.sort_by(f64::total_cmp);
        dip::p_at_most(dip::dip(&sorted), sorted.len())
    }

    /// Names its farthest trial and its outliers.
    fn extremes(&self) -> String {
        let ratio = self.values[self.farthest()] / self.description.median;
        let count = |outliers: Option<usize>| outliers.map_or("not judged".to_owned(), |n| n.to_string());
        let Description { n, outliers_modified_z, outliers_tukey, .. } = *self.description;
        format!(
            "the farthest of {n} trials has {ratio:.2} of the median; outliers: {} by modified z, {} by Tukey",
            count(outliers_modified_z),
            count(outliers_tukey)
        )
    }
}

/// Judges samples, each on its own and the order of all.
fn examine(samples: &[Sample]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let useless = surprises(samples, CV_ALPHA, |sample| sample.exceeds(USELESS_CV));
    let noisy = surprises(samples, CV_ALPHA, |sample| sample.exceeds(NOISY_CV));
    let two_modes = surprises(samples, MODES_ALPHA, |sample| sample.dip_p());
    for (sample_idx, sample) in samples.iter().enumerate() {
        let mut add = |grade, text: String| findings.push(Finding { sample_idx: Some(sample_idx), grade, text });
        let cv = 100.0 * sample.description.cv.unwrap_or_default();
        if useless[sample_idx] {
            add(Grade::Fail, format!("CV {cv:.1} %, above 25 % beyond chance; {}", sample.extremes()));
        } else if noisy[sample_idx] {
            add(Grade::Warn, format!("CV {cv:.1} %, above 5 % beyond chance; {}", sample.extremes()));
        }
        if let Some(width) = sample.width().filter(|&width| width > WIDE_INTERVAL) {
            add(
                Grade::Warn,
                format!("the interval is {:.0} % of the median wide; {}", 100.0 * width, sample.extremes()),
            );
        }
        if two_modes[sample_idx] {
            add(Grade::Warn, format!("the trials fall into two groups; {}", sample.extremes()));
        }
    }
    findings.extend(drifted(samples));
    findings
}

/// Tells of which samples a p-value is too small, over all of them together; those without one are not surprising.
fn surprises(samples: &[Sample], alpha: f64, p: impl Fn(&Sample) -> Option<f64>) -> Vec<bool> {
    let (judged, all): (Vec<usize>, Vec<f64>) =
        samples.iter().enumerate().filter_map(|(idx, sample)| Some((idx, p(sample)?))).unzip();
    let mut surprising = vec![false; samples.len()];
    for (idx, p) in judged.into_iter().zip(holm(&all)) {
        surprising[idx] = p < alpha;
    }
    surprising
}

fn order(samples: &[Sample]) -> Option<drift::Drift> {
    let place = |sample: &Sample| {
        let placed = sample.records.iter().zip(sample.values);
        placed.map(|(&position, &value)| Placed { position, value }).collect()
    };
    drift::test(&samples.iter().map(place).collect::<Vec<Vec<Placed>>>())
}

fn drifted(samples: &[Sample]) -> Option<Finding> {
    let drift = order(samples).filter(|drift| drift.p < DRIFT_ALPHA && drift.change.abs() > LARGE_DRIFT)?;
    let change = 100.0 * drift.change;
    let text = format!(
        "throughput changed by {change:+.1} % from the first to the last quarter of {} trials, relative to each cell's \
         median (p {:.0e})",
        drift.n, drift.p
    );
    Some(Finding { sample_idx: None, grade: Grade::Warn, text })
}

/// All samples in a few numbers; at least one has a CV.
fn overview(samples: &[Sample]) -> String {
    let largest = |numbers: &mut dyn Iterator<Item = f64>| numbers.max_by(f64::total_cmp);
    let mut cvs: Vec<f64> = samples.iter().filter_map(|sample| sample.description.cv).collect();
    cvs.sort_by(f64::total_cmp);
    let n_noisy = cvs.iter().filter(|&&cv| cv > NOISY_CV).count();
    let (middle, most) = (100.0 * cvs[cvs.len() / 2], 100.0 * cvs[cvs.len() - 1]);
    let mut text =
        format!("CV of {} cells {middle:.1} % in the middle, {most:.1} % at most, {n_noisy} above 5 %", cvs.len());
    text.push_str(&match largest(&mut samples.iter().filter_map(Sample::width)) {
        Some(width) => format!("; intervals at most {:.0} % wide", 100.0 * width),
        None => "; no intervals at 5 trials or fewer".to_owned(),
    });
    let n_trials: usize = samples.iter().map(|sample| sample.values.len()).sum();
    let outliers = samples.iter().filter_map(|sample| sample.description.outliers_modified_z);
    text.push_str(&format!("; outliers: {} of {n_trials} trials", outliers.sum::<usize>()));
    let n_modes = samples.iter().filter(|sample| sample.values.len() >= dip::MIN_N).count();
    if n_modes < samples.len() {
        let n_unjudged = samples.len() - n_modes;
        text.push_str(&format!("; two modes not judged in {n_unjudged} cells of fewer than {} trials", dip::MIN_N));
    }
    if let Some(drift) = order(samples) {
        text.push_str(&format!("; drift {:+.1} % (p {:.2})", 100.0 * drift.change, drift.p));
    }
    text
}

#[cfg(test)]
mod tests {
    use rare_workloads::rng::Xoshiro256PlusPlus;

    use super::*;
    use crate::stats::describe::describe;

    /// A standard normal variable by Marsaglia's polar method.
    fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
        loop {
            let (x, y) = (2.0 * rng.unit() - 1.0, 2.0 * rng.unit() - 1.0);
            let s = x * x + y * y;
            if s > 0.0 && s < 1.0 {
                return x * (-2.0 * s.ln() / s).sqrt();
            }
        }
    }

    /// Judges a run in blocks, given the value of each trial by cell, trial and position.
    fn run(
        n_cells: usize,
        n: usize,
        rng: &mut Xoshiro256PlusPlus,
        value: impl Fn(usize, usize, usize, f64) -> f64,
    ) -> Vec<Finding> {
        let mut values = vec![vec![0.0; n]; n_cells];
        let mut records = vec![vec![0; n]; n_cells];
        for trial in 0..n {
            let mut order: Vec<usize> = (0..n_cells).collect();
            rng.shuffle(&mut order);
            for (place, cell) in order.into_iter().enumerate() {
                records[cell][trial] = trial * n_cells + place;
                values[cell][trial] = 1e6 * (cell + 1) as f64 * value(cell, trial, records[cell][trial], normal(rng));
            }
        }
        let descriptions: Vec<Description> = values.iter().map(|values| describe(values).unwrap()).collect();
        let sample =
            |cell: usize| Sample { values: &values[cell], records: &records[cell], description: &descriptions[cell] };
        examine(&(0..n_cells).map(sample).collect::<Vec<Sample>>())
    }

    #[test]
    fn sound_runs_of_3_percent_warn_less_than_once_in_a_hundred() {
        let mut rng = Xoshiro256PlusPlus::new(34);
        for (n_cells, n, n_runs) in [(144, 3, 300), (144, 5, 300), (144, 10, 300), (1, 5, 1000), (6, 20, 500)] {
            let is_alarm = |_| !run(n_cells, n, &mut rng, |_, _, _, noise| 1.0 + 0.03 * noise).is_empty();
            let n_alarms = (0..n_runs).map(is_alarm).filter(|&alarm| alarm).count();
            assert!(n_alarms * 100 <= n_runs, "{n_alarms} of {n_runs} runs of {n_cells} cells with {n} trials warn");
        }
    }

    /// At the very bound of the CV the rules together still warn in no more than 2 of 100 runs.
    #[test]
    fn the_bound_itself_is_not_called_noisy() {
        let mut rng = Xoshiro256PlusPlus::new(35);
        for n in [3, 8] {
            let is_alarm = |_| !run(24, n, &mut rng, |_, _, _, noise| 1.0 + 0.05 * noise).is_empty();
            let n_alarms = (0..1000).map(is_alarm).filter(|&alarm| alarm).count();
            assert!(n_alarms <= 20, "{n_alarms} of 1000 runs with {n} trials warn");
        }
    }

    /// One planted fault a row: what finds it, and how bad it is.
    #[test]
    fn planted_faults_are_found() {
        let mut rng = Xoshiro256PlusPlus::new(36);
        let mut judge = |n_cells, n, value: fn(usize, usize, usize, f64) -> f64| run(n_cells, n, &mut rng, value);
        let found = judge(144, 8, |cell, _, _, noise| 1.0 + if cell == 7 { 0.2 } else { 0.02 } * noise);
        assert!(found.iter().any(|one| one.sample_idx == Some(7) && one.text.contains("above 5 %")), "{found:?}");
        assert!(found.iter().all(|one| one.sample_idx == Some(7) && one.grade == Grade::Warn), "{found:?}");
        let found = judge(12, 8, |_, _, _, noise| (1.0 + 0.9 * noise).max(0.05));
        assert!(found.iter().any(|one| one.grade == Grade::Fail), "{found:?}");
        let found = judge(12, 12, |cell, trial, _, noise| {
            1.0 + 0.004 * noise - if cell == 3 && trial % 2 == 0 { 0.07 } else { 0.0 }
        });
        assert!(
            matches!(&found[..], [one] if one.sample_idx == Some(3) && one.text.contains("two groups")),
            "{found:?}"
        );
        let found = judge(12, 5, |_, _, position, noise| 1.0 + 0.02 * noise - 0.12 * position as f64 / 60.0);
        assert!(found.iter().any(|one| one.sample_idx.is_none() && one.text.contains('-')), "{found:?}");
    }

    #[test]
    fn a_single_far_trial_is_named() {
        let mut rng = Xoshiro256PlusPlus::new(37);
        let far = |cell, trial, _, noise: f64| if (cell, trial) == (2, 4) { 0.5 } else { 1.0 + 0.01 * noise };
        let found = run(12, 8, &mut rng, far);
        assert!(matches!(&found[..], [one] if one.text.contains("0.50 of the median")), "{found:?}");
    }
}
