//! Check `key-range`: the ranking of the structures at 100, 100 thousand and 10 million keys.
//!
//! That the ranking changes is no fault, and most plans do not ask about every size: a warning in every report would be
//! read in none. What a reader must not be told is a claim that is silent about the size of the structure and that another
//! size contradicts: that warns. All other changes are named.
//!
//! Sizes that the plan has are read from its own trials. A size that a structure is too slow to be filled to is replaced by
//! the largest power of ten below, and the verdict says so.

use super::{Check, Exhibit, Grade, Info, Verdict};
use crate::{
    plan::{Cell, Ground, Mode, Plan, Probe, probe::Change, probe::Setting},
    spec::{
        model::Claim,
        value::{Parameter, Prefill, Value},
    },
    stats::describe::median,
    units::{BasisPoints, Nanos, count},
    verdict::{
        Decision, Evidence,
        beside::{columns, competing, own_cell, unknown},
        claims,
        evidence::Probed,
        number::{NONE, counted, mops, ratio},
    },
};

/// Keys: what fits in the nearest cache, in the one that is shared, and in none.
const SIZES: [u64; 3] = [100, 100_000, 10_000_000];

/// Trials of each size that the plan has not; of the largest one alone, because filling it takes seconds.
const N_TRIALS: u32 = 3;

/// Longest trial: the caches are warm after the filling.
const LONGEST: Nanos = Nanos(500_000_000);

/// A plan whose cells have no more keys than this, and whose trials are shorter than [`SHORT`], is not made to wait for
/// the largest size: it is a try-out.
const FEW_KEYS: u64 = 1_000_000;

/// See [`FEW_KEYS`].
const SHORT: Nanos = Nanos(100_000_000);

/// Keys that may be passed while a structure is filled: a few seconds, as ten million keys in a tree take.
const MOST_PASSED: u128 = 150_000_000;

/// A structure is ahead if each of its trials is faster than each of the other's, and the medians are so many times apart.
const AHEAD: f64 = 1.1;

/// One trial may be disturbed.
const AHEAD_OF_ONE_TRIAL: f64 = 1.5;

static INFO: Info = Info {
    name: "key-range",
    title: "Other key ranges",
    rule: "no claim that is silent about the key range is contradicted at 100, 100,000 or 10,000,000 keys",
    threshold: "a structure is ahead of another if each of its trials is faster than each of the other's and the medians \
                differ by 10 % (50 % where one trial is all there is); where what a claim holds slower is ahead with at \
                least 2 trials of each, it warns",
    source: "Brown, Good data structure experiments are R.A.R.E., sanity check 5",
    reason: "a set of 100 keys is decided by instructions, one of 10 million by cache misses: the same structures rank \
             differently, and a claim about one size says nothing of another",
    remedy: "add the key ranges at which the ranking changes to the plan, or write `where: {key_ranges: …}` into the claim",
};

/// See [`INFO`].
pub(super) struct KeyRange;

impl Check for KeyRange {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn probes(&self, ground: &Ground<'_>) -> Vec<Probe> {
        let plan = ground.plan();
        let wanted = wanted(plan).into_iter().filter(|wanted| !wanted.is_again);
        let missing = wanted.map(|wanted| wanted.setting).filter(|setting| own(plan, setting).is_none());
        let probe = |setting: Setting| {
            let is_largest = Cell::of_setting(&setting).key_range() > FEW_KEYS;
            let n_trials = if is_largest { 1 } else { ground.n_trials().min(N_TRIALS) };
            setting.probe(INFO.name, Mode::Timed, n_trials)
        };
        missing.map(probe).collect()
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let table = Table::new(evidence);
        if table.sizes.iter().all(|size| size.speeds.iter().all(|(_, values)| values.is_empty())) {
            return unknown(&INFO, "no trial of any size counts");
        }
        let contradicted: Vec<String> = claims::decide(evidence)
            .iter()
            .filter(|decided| decided.decision == Decision::Holds)
            .flat_map(|decided| contradictions(evidence, &table, decided.claim))
            .collect();
        let changes = table.changes();
        let grade = match (contradicted.is_empty(), table.missing.is_empty()) {
            (false, _) => Grade::Warn,
            (true, true) => Grade::Pass,
            (true, false) => Grade::Unknown,
        };
        let parts = [contradicted, table.ranking(&changes), table.missing.clone(), table.left_out.clone()];
        let summary = parts.concat().join("; ");
        let mut exhibits = vec![table.exhibit()];
        exhibits.extend((!changes.is_empty()).then(|| exhibit_changes(&changes)));
        Verdict { info: &INFO, grade, summary, rows: Vec::new(), exhibits }
    }
}

/// A setting of one structure at one of [`SIZES`], or at what stands for it.
struct Wanted {
    size: u64,
    setting: Setting,
    /// Whether it stands for a smaller size already.
    is_again: bool,
}

/// The settings to look at, structure by structure, sizes ascending.
fn wanted(plan: &Plan) -> Vec<Wanted> {
    let mut found = Vec::new();
    for base in competing(plan) {
        let mut reached = 0;
        for &size in sizes(plan, &base) {
            let keys = feasible(&base, size);
            found.push(Wanted { size, setting: resized(&base, keys), is_again: keys <= reached });
            reached = keys;
        }
    }
    found
}

fn sizes(plan: &Plan, base: &Setting) -> &'static [u64] {
    let is_small = (0..plan.n_cells()).all(|cell| plan.cell(cell).key_range() <= FEW_KEYS);
    let is_try_out = is_small && Cell::of_setting(base).trial_length() < SHORT;
    if is_try_out { &SIZES[..2] } else { &SIZES }
}

/// The largest power of ten up to `size` that the structure can be filled to within reason.
fn feasible(base: &Setting, size: u64) -> u64 {
    let used = Cell::of_setting(base).structure();
    let Some(structure) = rare_workloads::structures::find(&used.name) else { return size };
    let mut size = size;
    while size > SIZES[0] {
        let setting = resized(base, size);
        let keys = Cell::of_setting(&setting).prefill().keys(size);
        let passed = u128::from(structure.info.search.passes(keys / 2, &used.parameters)) * u128::from(keys);
        if passed <= MOST_PASSED {
            break;
        }
        size /= 10;
    }
    size
}

/// The base at another size, filled to the same share.
fn resized(base: &Setting, size: u64) -> Setting {
    let cell = Cell::of_setting(base);
    let prefill = match cell.prefill() {
        Prefill::Keys(keys) => {
            let share = u128::from(keys) * 10_000 / u128::from(cell.key_range().max(1));
            Prefill::Share(BasisPoints(u32::try_from(share).unwrap_or(10_000).min(10_000)))
        }
        share @ Prefill::Share(_) => share,
    };
    let resized = base.clone().with(Parameter::KeyRange, Value::Count(size));
    resized.with(Parameter::Prefill, Value::Prefill(prefill)).at_most(LONGEST)
}

/// The plan's own cell, if it has one but for the length of the trials.
fn own(plan: &Plan, setting: &Setting) -> Option<u32> {
    own_cell(plan, Cell::of_setting(setting), &[Parameter::TrialLength])
}

/// Throughputs by size and structure.
struct Table {
    labels: Vec<String>,
    sizes: Vec<OfSize>,
    /// Structures and sizes without a trial that counts.
    missing: Vec<String>,
    /// What was not asked for, and why.
    left_out: Vec<String>,
}

struct OfSize {
    keys: u64,
    /// Label and throughputs, in operations per second, of those that were measured at this size.
    speeds: Vec<(String, Vec<f64>)>,
}

impl OfSize {
    fn values(&self, label: &str) -> &[f64] {
        let found = self.speeds.iter().find(|(known, _)| known == label);
        found.map_or(&[], |(_, values)| values)
    }

    /// Returns by how much the first is ahead of the second, if it is.
    fn lead(&self, first: &str, second: &str) -> Option<f64> {
        let (first, second) = (self.values(first), self.values(second));
        let least = if first.len().min(second.len()) > 1 { AHEAD } else { AHEAD_OF_ONE_TRIAL };
        let times = median(first)? / median(second)?;
        let is_apart = first.iter().all(|first| second.iter().all(|second| first > second));
        (is_apart && times >= least).then_some(times)
    }

    /// Returns the structure with the highest median.
    fn fastest(&self) -> Option<&str> {
        let medians = self.speeds.iter().filter_map(|(label, values)| Some((label.as_str(), median(values)?)));
        medians.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(label, _)| label)
    }
}

/// Two structures of which each is ahead at some size.
struct Turn {
    /// Who is ahead at the first size, and who at the second.
    labels: [String; 2],
    keys: [u64; 2],
    leads: [f64; 2],
}

impl Table {
    fn new(evidence: &Evidence) -> Self {
        let (plan, probed) = (evidence.plan, evidence.probes(INFO.name));
        let mut table = Self { labels: Vec::new(), sizes: Vec::new(), missing: Vec::new(), left_out: Vec::new() };
        for Wanted { size, setting, is_again } in wanted(plan) {
            let cell = Cell::of_setting(&setting);
            let (label, keys) = (cell.structure().label.clone(), cell.key_range());
            if keys < size {
                let [size, keys] = [size, keys].map(count);
                table.left_out.push(format!("{label} is too slow to be filled to {size} keys, and has {keys}"));
            }
            if is_again {
                continue;
            }
            let values = throughputs(evidence, &probed, &setting);
            if values.is_empty() {
                table.missing.push(format!("no trial of {label} with {} keys counts", count(keys)));
            }
            table.add(label, keys, values);
        }
        if plan.bases().iter().any(|base| sizes(plan, base).len() < SIZES.len()) {
            let largest = count(SIZES[SIZES.len() - 1]);
            table.left_out.push(format!("{largest} keys are left out of a plan of short trials with few keys"));
        }
        table.sizes.sort_by_key(|size| size.keys);
        table
    }

    fn add(&mut self, label: String, keys: u64, values: Vec<f64>) {
        if !self.labels.contains(&label) {
            self.labels.push(label.clone());
        }
        let known = self.sizes.iter().position(|size| size.keys == keys);
        let at = known.unwrap_or_else(|| {
            self.sizes.push(OfSize { keys, speeds: Vec::new() });
            self.sizes.len() - 1
        });
        self.sizes[at].speeds.push((label, values));
    }
}

impl Table {
    /// Every pair whose order changes, with the first size of either order.
    fn changes(&self) -> Vec<Turn> {
        let lead = |first: &String, second: &String| {
            self.sizes.iter().find_map(|size| Some((size.keys, size.lead(first, second)?)))
        };
        let mut turns = Vec::new();
        for (idx, first) in self.labels.iter().enumerate() {
            for second in &self.labels[idx + 1..] {
                let (Some(one), Some(other)) = (lead(first, second), lead(second, first)) else { continue };
                let mut leads = [(one, first), (other, second)];
                leads.sort_by_key(|((keys, _), _)| *keys);
                turns.push(Turn {
                    labels: leads.map(|(_, label)| label.clone()),
                    keys: leads.map(|((keys, _), _)| keys),
                    leads: leads.map(|((_, times), _)| times),
                });
            }
        }
        turns
    }

    /// Says who is fastest where, and how often the order changes.
    fn ranking(&self, changes: &[Turn]) -> Vec<String> {
        if self.labels.len() < 2 {
            return vec![format!("{} is alone: there is no ranking", self.labels.join(""))];
        }
        let fastest = self.sizes.iter().filter(|size| size.speeds.len() > 1);
        let fastest = fastest.filter_map(|size| Some(format!("{} at {} keys", size.fastest()?, count(size.keys))));
        let fastest: Vec<String> = fastest.collect();
        let n_pairs = counted(self.labels.len() * (self.labels.len() - 1) / 2, "pair");
        let change = match changes {
            [] => format!("the order of none of {n_pairs} changes with the number of keys"),
            changes => format!("the order of {} of {n_pairs} changes with the number of keys", changes.len()),
        };
        vec![format!("the highest median has {}", fastest.join(", ")), change]
    }

    fn exhibit(&self) -> Exhibit {
        let mut heads = vec![("structure".to_owned(), None)];
        heads.extend(self.sizes.iter().map(|size| (format!("{} keys", count(size.keys)), Some("Mops/s"))));
        let row = |label: &String| {
            let speeds = self.sizes.iter().map(|size| median(size.values(label)).map_or_else(|| NONE.to_owned(), mops));
            [label.clone()].into_iter().chain(speeds).collect()
        };
        let mut note =
            "Medians of the plan's own trials where it has such cells, otherwise of up to 3 trials, of more than a \
                        million keys of one."
                .to_owned();
        for left_out in &self.left_out {
            note += &format!(" Left out: {left_out}.");
        }
        let title = "Throughput over the number of keys".to_owned();
        Exhibit { title, columns: heads, rows: self.labels.iter().map(row).collect(), note }
    }
}

fn exhibit_changes(changes: &[Turn]) -> Exhibit {
    let row = |Turn { labels, keys, leads }: &Turn| {
        let ahead = |idx: usize| format!("{} at {} keys", labels[idx], count(keys[idx]));
        vec![ahead(0), ratio(leads[0]), ahead(1), ratio(leads[1])]
    };
    Exhibit {
        title: "Where the order changes".to_owned(),
        columns: columns(&[("ahead", None), ("by", Some("")), ("ahead", None), ("by", Some(""))]),
        rows: changes.iter().map(row).collect(),
        note: "The first sizes at which each is ahead of the other. What is ahead by less than 10 % is not listed."
            .to_owned(),
    }
}

/// Where a claim that says nothing of the key range, and holds, does not hold.
fn contradictions(evidence: &Evidence, table: &Table, claim: &Claim) -> Vec<String> {
    let conditions = &claim.scope.conditions;
    if conditions.iter().any(|(parameter, _)| *parameter == Parameter::KeyRange) {
        return Vec::new();
    }
    // Only if the claim speaks of the base, whatever its key range, are the sizes its own.
    let scope: Vec<u32> = evidence.plan.matching(&claim.scope).collect();
    let bases = evidence.plan.bases();
    let speaks_of = |label: &str| {
        let base = bases.iter().find(|base| Cell::of_setting(base).structure().label == label);
        base.is_some_and(|base| {
            let cell = Cell::of_setting(base);
            scope.iter().any(|&own| own_cell(evidence.plan, cell, &[]) == Some(own))
        })
    };
    if !speaks_of(&claim.faster) && !speaks_of(&claim.slower) {
        return Vec::new();
    }
    let several = |size: &&OfSize| size.values(&claim.faster).len().min(size.values(&claim.slower).len()) > 1;
    let against = |size: &OfSize| {
        let times = size.lead(&claim.slower, &claim.faster)?;
        let (slower, keys) = (&claim.slower, count(size.keys));
        Some(format!(
            "`{}` is silent about the key range, and at {keys} keys {slower} is ahead by {}",
            claim.text,
            ratio(times)
        ))
    };
    table.sizes.iter().filter(several).filter_map(against).collect()
}

fn throughputs(evidence: &Evidence, probed: &[Probed], setting: &Setting) -> Vec<f64> {
    if let Some(cell) = own(evidence.plan, setting) {
        return evidence.summary.cell(cell).values.clone();
    }
    let of_setting = probed.iter().find(|probed| *probed.probe.setting == *setting);
    of_setting.map_or_else(Vec::new, |probed| evidence.throughputs(probed))
}
