//! Check `harness-overhead`: the harness is little beside the structure.
//!
//! `noop` does all that an operation costs outside a structure: drawing a key and an operation, counting, looking whether
//! the time is up. It is measured once for each combination of what it meets (threads, mix, distribution, pinning, settings
//! of the harness), and its time held against that of the fastest cell there.
//!
//! A share that no setting can lower belongs to a fast structure, and is something to know when it is read: it warns. What
//! a setting of the harness adds for nothing is a fault of the experiment: it fails.
//!
//! On two virtual CPUs `noop` took 1.7 ns with look-ups alone and 2.5 ns with a tenth of updates: 14 % of the fastest hash
//! table with 100 keys, 8 % of the fastest tree with 10,000. The clock after each operation added 21 ns, 40 % of a tree with
//! 10,000 keys and 16 % of one with 100,000; after each tenth 2 ns; after each hundredth and without, nothing that shows.

use super::{Check, Exhibit, Grade, Info, Row, Verdict};
use crate::{
    plan::{
        Cell, Ground, Mode, Probe,
        probe::{Change, Setting},
    },
    spec::{
        value::{Parameter, Value},
        words,
    },
    stats::validity,
    verdict::{
        Evidence,
        number::{NONE, fixed, percent, ratio},
        probing::{self, Best, columns},
    },
};

/// Share of the time of an operation above which the harness weighs on comparisons: a structure that is twice as fast as
/// another then seems to be at most 1.9 times as fast.
const SHARE: f64 = 0.05;

/// What `noop` never meets: it stores nothing. Its time does not depend on the range of keys either, into which a draw is
/// scaled.
const NOT_MET: [Parameter; 10] = [
    Parameter::Allocator,
    Parameter::Reclamation,
    Parameter::KeyRange,
    Parameter::Prefill,
    Parameter::TrialLength,
    Parameter::HugePages,
    Parameter::Aslr,
    Parameter::EnvironmentPadding,
    Parameter::ObjectPool,
    Parameter::NodePadding,
];

static INFO: Info = Info {
    name: "harness-overhead",
    title: "Overhead of the harness",
    rule: "an operation of `noop` takes little of the time of an operation of the fastest cell, and no setting of the \
           harness takes more than it must",
    threshold: "more than 5 % of the time of an operation of a cell warns; settings of the harness that add more than 5 % \
                fail; each the best of 5 trials of at most 60 ms against the best trial of the cell",
    source: "Brown, Good data structure experiments are R.A.R.E., sanity check 1 and common error 1; `noop` at least 20 \
             times as fast as the fastest cell",
    reason: "what the harness takes weighs more on a fast structure than on a slow one, and hides how far they are apart",
    remedy: "take `harness.time_check: flag` and `harness.padding: 128`; if the share stays, the structure is as fast as \
             that: subtract the time of `noop` before saying how many times as fast it is",
};

/// See [`INFO`].
pub(super) struct HarnessOverhead;

impl Check for HarnessOverhead {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn probes(&self, ground: &Ground<'_>) -> Vec<Probe> {
        let Some(first) = ground.cells().next() else { return Vec::new() };
        let mut settings: Vec<Setting> = Vec::new();
        let mut add = |setting: Setting| {
            if !settings.contains(&setting) {
                settings.push(setting);
            }
        };
        for cell in ground.cells() {
            let own = as_noop_meets(cell, first);
            add(probing::with_sound_harness(own.clone()));
            add(own);
        }
        let curve = curve_base(ground.cells());
        words::TIME_CHECKS.iter().filter_map(|word| Some(with_time_check(curve.clone()?, word))).for_each(add);
        settings.into_iter().map(|setting| setting.probe(INFO.name, Mode::Timed, probing::N_TRIALS)).collect()
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let harness = Harness::of(evidence);
        let shares: Vec<Share> =
            (0..evidence.plan.n_cells()).filter_map(|cell| harness.share(evidence, cell)).collect();
        let Some(most) = shares.iter().max_by(|left, right| left.share().total_cmp(&right.share())) else {
            let summary =
                harness.missing.first().cloned().unwrap_or("no cell of a structure has a valid trial".to_owned());
            return Verdict { info: &INFO, grade: Grade::Unknown, summary, rows: Vec::new(), exhibits: Vec::new() };
        };
        let caused = shares.iter().max_by(|left, right| left.caused().total_cmp(&right.caused())).unwrap_or(most);
        let rows: Vec<Row> = [caused.fault(evidence), most.weight(evidence)].into_iter().flatten().collect();
        let incomplete = (!harness.missing.is_empty()).then_some(Grade::Unknown);
        let grade = rows.iter().map(|row| row.grade).chain(incomplete).max().unwrap_or(Grade::Pass);
        let mut summary = rows.first().map_or_else(|| most.sentence(evidence), |row| row.finding.clone());
        if let Some(missing) = harness.missing.first() {
            summary += &format!("; besides, {missing}");
        }
        Verdict { info: &INFO, grade, summary, rows, exhibits: harness.exhibits(evidence, &shares) }
    }
}

/// Returns what `noop` meets of a cell, with all else as in the first cell.
fn as_noop_meets(cell: Cell, first: Cell) -> Setting {
    let alike = |setting: Setting, parameter| setting.with(parameter, first.value(parameter).clone());
    probing::short(NOT_MET.into_iter().fold(cell.setting(), alike).with_structure("noop"))
}

/// Returns the setting in which the curve over time checks is measured: the first cell with the most threads.
fn curve_base<'p>(mut cells: impl Iterator<Item = Cell<'p>>) -> Option<Setting> {
    let first = cells.next()?;
    let most = cells.fold(first, |most, cell| if cell.threads() > most.threads() { cell } else { most });
    Some(probing::with_sound_harness(as_noop_meets(most, first)))
}

fn with_time_check(setting: Setting, word: &words::Word) -> Setting {
    setting.with(Parameter::TimeCheck, Value::Word(word.name))
}

/// What `noop` took in each setting.
struct Harness<'a> {
    bests: Vec<(&'a Setting, Best)>,
    missing: Vec<String>,
}

impl<'a> Harness<'a> {
    fn of(evidence: &Evidence<'a>) -> Self {
        let mut harness = Self { bests: Vec::new(), missing: Vec::new() };
        for probed in evidence.probes(INFO.name) {
            match Best::of(evidence, &probed) {
                Ok(best) => harness.bests.push((&probed.probe.setting, best)),
                Err(missing) => harness.missing.push(missing),
            }
        }
        harness
    }

    fn best(&self, setting: &Setting) -> Option<Best> {
        self.bests.iter().find(|(known, _)| *known == setting).map(|(_, best)| *best)
    }

    /// Returns what the harness takes of a cell; `None` if one of both was not measured, or the cell is one of `noop`.
    fn share(&self, evidence: &Evidence, cell: u32) -> Option<Share> {
        let plan = evidence.plan;
        if validity::stores_nothing(&plan.cell(cell).structure().name) {
            return None;
        }
        let own = as_noop_meets(plan.cell(cell), plan.cell(0));
        let (harness, sound) = (self.best(&own)?, self.best(&probing::with_sound_harness(own))?);
        let rate = evidence.summary.cell(cell).values.iter().copied().reduce(f64::max).filter(|&rate| rate > 0.0)?;
        Some(Share { cell, nanos: 1e9 * harness.n_threads as f64 / rate, harness, sound })
    }

    fn exhibits(&self, evidence: &Evidence, shares: &[Share]) -> Vec<Exhibit> {
        let curve = self.curve(evidence);
        [Some(shares_exhibit(evidence, shares)), curve].into_iter().flatten().collect()
    }

    /// The talk's curve: `noop` by how often it looks at the clock.
    fn curve(&self, evidence: &Evidence) -> Option<Exhibit> {
        let plan = evidence.plan;
        let base = curve_base((0..plan.n_cells()).map(|cell| plan.cell(cell)))?;
        let nanos = |word: &words::Word| self.best(&with_time_check(base.clone(), word)).map(|best| best.nanos());
        let least = words::TIME_CHECKS.iter().filter_map(nanos).reduce(f64::min);
        let row = |word: &words::Word| {
            let nanos = nanos(word);
            let over = nanos.zip(least).map(|(nanos, least)| ratio(nanos / least));
            let text = nanos.map_or_else(|| NONE.to_owned(), |nanos| fixed(nanos, 2));
            vec![word.name.to_owned(), word.meaning.to_owned(), text, over.unwrap_or_else(|| NONE.to_owned())]
        };
        let own = plan.values[Parameter::TimeCheck as usize].iter().map(|value| format!("`{value}`"));
        Some(Exhibit {
            title: "An operation of `noop` by how a thread learns that the time is up".to_owned(),
            columns: columns(&[
                ("harness.time_check", None),
                ("meaning", None),
                ("time", Some("ns")),
                ("over the least", Some("")),
            ]),
            rows: words::TIME_CHECKS.iter().map(row).collect(),
            note: format!("The best trial of each. The plan takes {}.", own.collect::<Vec<String>>().join(" and ")),
        })
    }
}

/// What the harness takes of an operation of a cell.
struct Share {
    cell: u32,
    /// An operation in the cell's best trial, in nanoseconds of its thread.
    nanos: f64,
    /// `noop` with the harness of the cell.
    harness: Best,
    /// `noop` with a sound harness.
    sound: Best,
}

impl Share {
    fn share(&self) -> f64 {
        self.harness.nanos() / self.nanos
    }

    /// Share of the time that the settings of the harness add.
    fn caused(&self) -> f64 {
        (self.harness.nanos() - self.sound.nanos()) / self.nanos
    }

    fn sentence(&self, evidence: &Evidence) -> String {
        format!(
            "the harness takes {} ns of the {} ns of an operation of `{}`: {}, the largest share of all cells",
            fixed(self.harness.nanos(), 1),
            fixed(self.nanos, 1),
            evidence.cell_label(self.cell),
            percent(self.share())
        )
    }

    fn weight(&self, evidence: &Evidence) -> Option<Row> {
        (self.share() > SHARE).then(|| self.harness.row(Grade::Warn, self.sentence(evidence)))
    }

    fn fault(&self, evidence: &Evidence) -> Option<Row> {
        (self.caused() > SHARE).then(|| {
            let finding = format!(
                "the settings of the harness add {} ns to an operation of `{}`, {} of its {} ns",
                fixed(self.harness.nanos() - self.sound.nanos(), 1),
                evidence.cell_label(self.cell),
                percent(self.caused()),
                fixed(self.nanos, 1)
            );
            self.harness.row(Grade::Fail, finding)
        })
    }
}

/// Cells of the largest share that are listed: those where it matters.
const LISTED: usize = 10;

fn shares_exhibit(evidence: &Evidence, shares: &[Share]) -> Exhibit {
    let mut sorted: Vec<&Share> = shares.iter().collect();
    sorted.sort_by(|left, right| right.share().total_cmp(&left.share()));
    let row = |share: &&Share| {
        vec![
            evidence.cell_label(share.cell),
            fixed(share.nanos, 1),
            fixed(share.harness.nanos(), 2),
            fixed(share.sound.nanos(), 2),
            percent(share.share()),
        ]
    };
    Exhibit {
        title: "The harness in an operation".to_owned(),
        columns: columns(&[
            ("cell", None),
            ("operation", Some("ns")),
            ("harness", Some("ns")),
            ("sound harness", Some("ns")),
            ("share", Some("")),
        ]),
        rows: sorted.iter().take(LISTED).map(row).collect(),
        note: format!(
            "Nanoseconds of the thread, in the best trial; the {} cells with the largest share of {}. A sound harness reads \
             a flag and pads the state of each thread.",
            sorted.len().min(LISTED),
            sorted.len()
        ),
    }
}
