//! All records of a run, summarised: what each trial counts for, each cell in numbers, each comparison.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    compare::{self, Comparison},
    describe::{self, Description},
    throughput,
    validity::{self, Fault},
};
use crate::{
    plan::{BlockKind, Mode, Plan, TrialId},
    record::{Outcome, Trial},
    spec::value::Parameter,
};

/// A summarised run.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// One entry a record, in the order of the records.
    pub trials: Vec<TrialSummary>,
    /// One entry a cell, in plan order.
    pub cells: Vec<CellSummary>,
    /// Cells that differ in their structure only, in plan order; every cell is in exactly one group.
    pub groups: Vec<Vec<u32>>,
    /// Every pair within a group whose cells both have trials that count, corrected over all of them.
    pub comparisons: Vec<Comparison>,
    /// Planned trials without a record, in plan order.
    pub missing: Vec<TrialId>,
}

/// What one record counts for.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialSummary {
    /// Whether its throughput is summarised, and if not why.
    pub standing: Standing,
    /// Broken laws.
    pub faults: Vec<Fault>,
    /// Operations per second of a timed trial with a reply, be it of a cell or of a check, valid or not.
    pub throughput: Option<f64>,
}

/// Whether a record enters the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// A valid timed trial: it is summarised.
    Counted,
    /// A valid trial under instruments or of a check, shown on its own.
    Instrumented,
    /// It broke a law.
    Excluded,
    /// It has no reply.
    Failed,
    /// The tool under which it was to run is not there, may not be used, or failed.
    NotRun,
    /// A later attempt at the same trial replaced it.
    Superseded,
    /// The plan has no such trial.
    Foreign,
}

/// One cell in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct CellSummary {
    /// Cell index.
    pub cell: u32,
    /// Timed trials that the plan has for it.
    pub n_planned: usize,
    /// Throughputs that count, in operations per second, in the order of the trials.
    pub values: Vec<f64>,
    /// Index of the record of each value.
    pub records: Vec<usize>,
    /// Timed trials that failed, at their last attempt.
    pub n_failed: usize,
    /// Timed trials that broke a law.
    pub n_excluded: usize,
    /// The values described; `None` if none counts.
    pub description: Option<Description>,
}

impl Summary {
    /// Returns the numbers of a cell.
    pub fn cell(&self, cell: u32) -> &CellSummary {
        &self.cells[cell as usize]
    }

    /// Returns the comparison of two cells and whether it stands the other way round.
    pub fn comparison(&self, left: u32, right: u32) -> Option<(&Comparison, bool)> {
        self.comparisons.iter().find_map(|comparison| match (comparison.left, comparison.right) {
            pair if pair == (left, right) => Some((comparison, false)),
            pair if pair == (right, left) => Some((comparison, true)),
            _ => None,
        })
    }

    /// Returns how many records have that standing.
    pub fn n_standing(&self, standing: Standing) -> usize {
        self.trials.iter().filter(|trial| trial.standing == standing).count()
    }
}

/// Summarises the records of one run. Only valid timed trials enter a cell's numbers; of several attempts at a trial
/// the last one stands.
pub fn summarise(plan: &Plan, trials: &[Trial]) -> Summary {
    let planned: BTreeSet<TrialId> = plan.trials().collect();
    let last = last_attempts(trials);
    let summaries: Vec<TrialSummary> = trials
        .iter()
        .enumerate()
        .map(|(record_idx, trial)| summarise_trial(plan, trial, &planned, last[&trial.trial] == record_idx))
        .collect();
    let cells = summarise_cells(plan, trials, &summaries);
    let groups = groups(plan);
    let mut comparisons = Vec::new();
    for group in &groups {
        compare_group(plan, group, &cells, &mut comparisons);
    }
    compare::correct(&mut comparisons);
    let missing = plan.trials().filter(|trial| !last.contains_key(trial)).collect();
    Summary { trials: summaries, cells, groups, comparisons, missing }
}

/// Index of the record of each trial's last attempt.
fn last_attempts(trials: &[Trial]) -> BTreeMap<TrialId, usize> {
    let mut last: BTreeMap<TrialId, usize> = BTreeMap::new();
    for (record_idx, trial) in trials.iter().enumerate() {
        let holder = last.entry(trial.trial).or_insert(record_idx);
        if trials[*holder].attempt <= trial.attempt {
            *holder = record_idx;
        }
    }
    last
}

fn summarise_trial(plan: &Plan, trial: &Trial, planned: &BTreeSet<TrialId>, is_last: bool) -> TrialSummary {
    if !planned.contains(&trial.trial) {
        return TrialSummary { standing: Standing::Foreign, faults: Vec::new(), throughput: None };
    }
    let faults = validity::faults(trial, plan);
    let measured = trial.trial.kind == BlockKind::Measure;
    let timed = measured || plan.probe_of(trial.trial).is_some_and(|probe| probe.mode == Mode::Timed);
    let (throughput, replied) = match &trial.outcome {
        Outcome::Replied(reply) if timed => (throughput::throughput(reply), true),
        Outcome::Replied(_) => (None, true),
        Outcome::Failed { .. } => (None, false),
    };
    let standing = match () {
        () if !is_last => Standing::Superseded,
        () if not_run(trial) => Standing::NotRun,
        () if !replied => Standing::Failed,
        () if !faults.is_empty() => Standing::Excluded,
        () if measured => Standing::Counted,
        () => Standing::Instrumented,
    };
    TrialSummary { standing, faults, throughput }
}

/// Tells whether a trial has no reply for want of its tool: that says nothing of its cell.
fn not_run(trial: &Trial) -> bool {
    matches!(trial.outcome, Outcome::Failed { class, .. } if class.is_the_tools())
}

fn summarise_cells(plan: &Plan, trials: &[Trial], summaries: &[TrialSummary]) -> Vec<CellSummary> {
    let empty = |cell| CellSummary {
        cell,
        n_planned: 0,
        values: Vec::new(),
        records: Vec::new(),
        n_failed: 0,
        n_excluded: 0,
        description: None,
    };
    let n_cells = u32::try_from(plan.cells.len()).expect("cell indices are u32 by the plan's limits");
    let mut cells: Vec<CellSummary> = (0..n_cells).map(empty).collect();
    for trial in plan.trials().filter(|trial| trial.kind == BlockKind::Measure) {
        cells[trial.cell as usize].n_planned += 1;
    }
    let mut order: Vec<usize> = (0..trials.len()).collect();
    order.sort_by_key(|&record_idx| (trials[record_idx].trial, record_idx));
    for record_idx in order {
        let (trial, summary) = (trials[record_idx].trial, &summaries[record_idx]);
        if trial.kind != BlockKind::Measure || summary.standing == Standing::Foreign {
            continue;
        }
        let cell = &mut cells[trial.cell as usize];
        match (summary.standing, summary.throughput) {
            (Standing::Counted, Some(value)) => {
                cell.values.push(value);
                cell.records.push(record_idx);
            }
            (Standing::Failed, _) => cell.n_failed += 1,
            (Standing::Excluded, _) => cell.n_excluded += 1,
            _ => {}
        }
    }
    for cell in &mut cells {
        cell.description = describe::describe(&cell.values);
    }
    cells
}

/// Cells by everything but their structure, in order of first appearance.
fn groups(plan: &Plan) -> Vec<Vec<u32>> {
    let mut of_key: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
    let mut groups: Vec<Vec<u32>> = Vec::new();
    for (cell, columns) in (0..).zip(&plan.cells) {
        let mut key = columns.to_vec();
        key[Parameter::Structure as usize] = 0;
        let group = *of_key.entry(key).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[group].push(cell);
    }
    groups
}

/// Compares each pair of a group; the earlier cell is the left one. A structure that stores nothing bounds the harness
/// and does not compete.
fn compare_group(plan: &Plan, group: &[u32], cells: &[CellSummary], comparisons: &mut Vec<Comparison>) {
    let competing: Vec<u32> =
        group.iter().copied().filter(|&cell| !validity::stores_nothing(&plan.cell(cell).structure().name)).collect();
    for (left_idx, &left) in competing.iter().enumerate() {
        for &right in &competing[left_idx + 1..] {
            let values = |cell: u32| cells[cell as usize].values.as_slice();
            comparisons.extend(Comparison::new((left, values(left)), (right, values(right))));
        }
    }
}
