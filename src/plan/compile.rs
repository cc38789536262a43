//! Compiles a spec into its plan.

use rare_workloads::rng::Xoshiro256PlusPlus;

use super::{
    error::{PlanError, RuleFault, RuleProblem},
    estimate::Estimate,
    expand::{self, Expansion},
    limits,
    model::{Block, BlockKind, Plan},
    probe::{Ground, Probe, Prober},
};
use crate::spec::{
    Spec,
    model::{Claim, Order},
    value::{Parameter, Threads, Value},
};

/// The instrument that adds a block of counted trials.
pub(super) const ACCOUNTING: &str = "accounting";

/// What the comparisons of a spec are called by whoever tells their probes.
pub const COMPARE: &str = "compare";

impl Plan {
    /// Compiles `spec`: bounds it, expands it into cells, adds the probes that `prober` tells for its checks and
    /// instruments, and orders the trials.
    ///
    /// # Errors
    /// [`PlanError::OverLimit`] before anything too large is built; [`PlanError::Rules`] with every rule and claim that
    /// speaks of no cell; [`PlanError::NoCells`] when all are excluded.
    pub fn compile(spec: &Spec, prober: Prober) -> Result<Self, PlanError> {
        limits::check_crossing(spec)?;
        let Expansion { values, cells, faults } = expand::expand(spec);
        if cells.is_empty() {
            return Err(PlanError::NoCells { rules: spec.exclude.iter().map(|rule| rule.at.clone()).collect() });
        }
        let n_account_blocks = u32::from(spec.instruments.contains(&ACCOUNTING));
        let n_of_cells = cells.len() as u128 * u128::from(spec.n_trials + n_account_blocks);
        limits::check_trials(spec, n_of_cells)?;
        let mut plan = Self {
            values,
            cells,
            blocks: Vec::new(),
            order: spec.order,
            seed: spec.seed,
            checks: spec.checks.iter().map(|&name| name.to_owned()).collect(),
            instruments: spec.instruments.iter().map(|&name| name.to_owned()).collect(),
            probes: Vec::new(),
        };
        check_rules(spec, &plan, faults)?;
        plan.probes = plan.probed(spec, prober);
        let n_of_probes = plan.probes.iter().map(|probe| u128::from(probe.n_trials)).sum::<u128>();
        limits::check_trials(spec, n_of_cells + n_of_probes)?;
        let n_probe_blocks = plan.probes.iter().map(|probe| probe.n_trials).max().unwrap_or(0);
        plan.blocks = [
            (BlockKind::Measure, spec.n_trials),
            (BlockKind::Account, n_account_blocks),
            (BlockKind::Probe, n_probe_blocks),
        ]
        .into_iter()
        .flat_map(|(kind, n_blocks)| (0..n_blocks).map(move |trial_idx| (kind, trial_idx)))
        .map(|(kind, trial_idx)| plan.block(kind, trial_idx))
        .collect();
        plan.least_estimate().check(&spec.limits)?;
        Ok(plan)
    }

    /// What the plan takes on the machine that suits it best. A plan must not depend on the machine, so only what no
    /// machine can do is refused here; whoever knows the machine compares [`Plan::estimate`] with the limits again.
    fn least_estimate(&self) -> Estimate {
        let counts = self.values[Parameter::Threads as usize].iter().filter_map(|value| match value {
            Value::Threads(Threads::Count(threads)) => Some(*threads),
            _ => None,
        });
        // One CPU for each thread fills a structure fastest; on a single CPU the least memory is in use at a time.
        Estimate { wall: self.estimate(counts.max().unwrap_or(1)).wall, ..self.estimate(1) }
    }

    /// Returns the number of cells, at least 1.
    pub fn n_cells(&self) -> u32 {
        u32::try_from(self.cells.len()).expect("the largest `limits.cells` is far smaller")
    }

    /// What the checks and instruments of `spec` ask for beside the cells.
    fn probed(&self, spec: &Spec, prober: Prober) -> Vec<Probe> {
        let pairs = spec.compare.iter().filter_map(|compare| self.pair(compare)).collect();
        let ground = Ground::new(self, spec.n_trials, pairs);
        spec.checks.iter().chain(&spec.instruments).chain(&[COMPARE]).flat_map(|name| prober(name, &ground)).collect()
    }

    /// Returns the members of a block, ascending: every cell, or every probe that has a trial of this index.
    pub(super) fn members(&self, kind: BlockKind, trial_idx: u32) -> Vec<u32> {
        match kind {
            BlockKind::Measure | BlockKind::Account => (0..self.n_cells()).collect(),
            BlockKind::Probe => {
                (0..).zip(&self.probes).filter(|(_, probe)| trial_idx < probe.n_trials).map(|(idx, _)| idx).collect()
            }
        }
    }

    fn block(&self, kind: BlockKind, trial_idx: u32) -> Block {
        let mut order = self.members(kind, trial_idx);
        if self.order == Order::Random {
            Xoshiro256PlusPlus::new(self.order_seed(kind, trial_idx)).shuffle(&mut order);
        }
        Block { kind, trial_idx, order }
    }
}

/// Refuses rules and claims that speak of no cell. Not under the `quick` block: it may have taken away the very values
/// that they name, and the full spec is where they are checked.
fn check_rules(spec: &Spec, plan: &Plan, mut faults: Vec<RuleFault>) -> Result<(), PlanError> {
    let sides = spec.claims.iter().flat_map(|claim| [(claim, &claim.faster), (claim, &claim.slower)]);
    let vain = sides.filter(|(claim, structure)| !has_cell(plan, claim, structure));
    faults.extend(vain.map(|(claim, structure)| RuleFault {
        at: claim.at.clone(),
        problem: RuleProblem::ClaimsNothing { structure: structure.clone() },
    }));
    let unpaired = spec.compare.iter().filter(|compare| plan.pair(compare).is_none());
    faults.extend(unpaired.map(|it| RuleFault { at: it.at.clone(), problem: RuleProblem::ComparesNothing }));
    if spec.quick || faults.is_empty() { Ok(()) } else { Err(PlanError::Rules(faults)) }
}

/// A claim compares two structures, so each must have a cell in its scope.
fn has_cell(plan: &Plan, claim: &Claim, structure: &str) -> bool {
    let mut cells = plan.matching(&claim.scope);
    cells.any(|cell_idx| plan.cell(cell_idx).structure().label == structure)
}

impl Threads {
    /// Returns the thread count on a machine that allows `n_cpus` CPUs.
    pub(super) fn on(self, n_cpus: u32) -> u32 {
        match self {
            Self::Count(threads) => threads,
            Self::All => n_cpus,
        }
    }
}
