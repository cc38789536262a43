//! Probes: trials beside the cells of a plan, which a check or an instrument asks for.
//!
//! A probe has a cell of its own, with every parameter explicit, and a mode: what its trials are run with. What the name
//! of a check asks for is told by whoever compiles the plan ([`Prober`]), so that a check and its probes stand in one
//! place.

use std::cmp::Reverse;

use rare_workloads::{
    protocol::{Mix, Reclamation},
    structures,
};

use super::{
    estimate::ACCOUNTING_OPERATIONS,
    model::{Cell, Plan},
};
use crate::{
    spec::value::{Parameter, RangeQuery, StructureUse, Threads, Value},
    units::Nanos,
};

/// One value of every parameter, by [`Parameter`].
pub type Setting = [Value; Parameter::COUNT];

/// Tells the probes that the check or the instrument of a name asks for; none for a name that it does not know.
pub type Prober = fn(&str, &Ground<'_>) -> Vec<Probe>;

/// Trials of one setting in one mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Name of the check or the instrument that asks for it.
    pub purpose: String,
    /// What its trials are run with.
    pub mode: Mode,
    /// Trials, at least 1.
    pub n_trials: u32,
    /// Its cell.
    pub setting: Box<Setting>,
}

impl Probe {
    /// Returns its cell.
    pub fn cell(&self) -> Cell<'_> {
        Cell::of_setting(&self.setting)
    }
}

/// What the trials of a probe are run with. Only timed ones have a throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Nothing else: as the cells of the plan.
    Timed,
    /// Under the counting hook, as the accounting trials of a plan.
    Account,
    /// The first allocations of each thread are listed.
    Layout,
    /// Events of the processor and the kernel are counted.
    Counters,
    /// Under valgrind's memcheck.
    Memcheck,
    /// Under valgrind's callgrind, which simulates caches and branches.
    Simulate,
    /// Under `perf record`.
    Sample,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 7] =
        [Self::Timed, Self::Account, Self::Layout, Self::Counters, Self::Memcheck, Self::Simulate, Self::Sample];

    /// Returns the word used in plans and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timed => "timed",
            Self::Account => "account",
            Self::Layout => "layout",
            Self::Counters => "counters",
            Self::Memcheck => "memcheck",
            Self::Simulate => "simulate",
            Self::Sample => "sample",
        }
    }

    /// Returns the operations of each thread where a trial ends after so many and not after a time. Fixed, so that what
    /// is counted can be compared between machines.
    pub fn operations(self) -> Option<u64> {
        match self {
            Self::Timed | Self::Counters | Self::Sample => None,
            Self::Account => Some(ACCOUNTING_OPERATIONS),
            Self::Layout => Some(1_000),
            // Under memcheck an operation takes some ten microseconds; a leak of every operation shows after a few.
            Self::Memcheck => Some(2_000),
            // Enough that what the first operations find cold does not count: below 1 % of a megabyte of cache.
            Self::Simulate => Some(20_000),
        }
    }
}

/// What a plan offers those who choose probes.
pub struct Ground<'p> {
    plan: &'p Plan,
    n_trials: u32,
    pairs: Vec<(u32, u32)>,
}

impl<'p> Ground<'p> {
    /// `plan` has its cells, and needs no blocks yet; each cell will have `n_trials` trials. `pairs` are the cells that the
    /// spec compares.
    pub(super) fn new(plan: &'p Plan, n_trials: u32, pairs: Vec<(u32, u32)>) -> Self {
        Self { plan, n_trials, pairs }
    }

    /// Returns the pairs of settings that the spec compares, the base first, in its order.
    pub fn pairs(&self) -> impl Iterator<Item = [Setting; 2]> {
        self.pairs.iter().map(|&(base, changed)| [base, changed].map(|cell| self.plan.cell(cell).setting()))
    }

    /// Returns the trials of each cell, at least 1.
    pub fn n_trials(&self) -> u32 {
        self.n_trials
    }

    /// Returns the cells of the plan.
    pub fn cells(&self) -> impl Iterator<Item = Cell<'p>> + use<'p> {
        let plan = self.plan;
        (0..plan.n_cells()).map(move |cell| plan.cell(cell))
    }

    /// Returns the plan, whose probes are still to be chosen.
    pub fn plan(&self) -> &'p Plan {
        self.plan
    }

    /// See [`Plan::bases`].
    pub fn bases(&self) -> Vec<Setting> {
        self.plan.bases()
    }
}

impl Plan {
    /// Returns one setting for each structure, in the order of the plan: of its cells the one with the most threads and
    /// otherwise the values listed first. So the settings of different structures are alike wherever their cells are.
    pub fn bases(&self) -> Vec<Setting> {
        let mut best: Vec<Option<(Reverse<Threads>, u32)>> =
            vec![None; self.values[Parameter::Structure as usize].len()];
        for (cell, columns) in (0..).zip(&self.cells) {
            let holder = &mut best[columns[Parameter::Structure as usize] as usize];
            let rank = Reverse(self.cell(cell).threads());
            // Cells are in the order of their axes, so of equals the first has the values listed first.
            if holder.as_ref().is_none_or(|(known, _)| rank < *known) {
                *holder = Some((rank, cell));
            }
        }
        best.into_iter().flatten().map(|(_, cell)| self.cell(cell).setting()).collect()
    }
}

/// Changes of a setting, for whoever chooses probes.
pub trait Change: Sized {
    /// Returns the setting with another value of one parameter.
    fn with(self, parameter: Parameter, value: Value) -> Self;

    /// Returns it with another number of threads.
    fn with_threads(self, threads: Threads) -> Self;

    /// Returns it with another structure, of default parameters, under its own name.
    ///
    /// # Panics
    /// If the registry has no such structure.
    fn with_structure(self, name: &str) -> Self;

    /// Returns it with its structure under another label.
    fn with_label(self, label: &str) -> Self;

    /// Returns it with a mix of operations on single keys.
    fn with_mix(self, insert: u32, remove: u32, contains: u32) -> Self;

    /// Returns it with trials no longer than `most`.
    fn at_most(self, most: Nanos) -> Self;

    /// Returns it under the default scheme of the structure where the structure does not support the present one.
    fn supported(self) -> Self;

    /// Returns a probe of it.
    fn probe(self, purpose: &str, mode: Mode, n_trials: u32) -> Probe;
}

impl Change for Setting {
    fn with(mut self, parameter: Parameter, value: Value) -> Self {
        self[parameter as usize] = value;
        self
    }

    fn with_threads(self, threads: Threads) -> Self {
        self.with(Parameter::Threads, Value::Threads(threads))
    }

    fn with_structure(self, name: &str) -> Self {
        let structure = structures::find(name).expect("checks name structures that are registered");
        let parameters = structure.info.parameters.iter().map(|info| (info.name.to_owned(), info.default)).collect();
        let used = StructureUse { name: name.to_owned(), label: name.to_owned(), parameters };
        self.with(Parameter::Structure, Value::Structure(used)).supported()
    }

    fn with_label(self, label: &str) -> Self {
        let used = StructureUse { label: label.to_owned(), ..Cell::of_setting(&self).structure().clone() };
        self.with(Parameter::Structure, Value::Structure(used))
    }

    fn with_mix(self, insert: u32, remove: u32, contains: u32) -> Self {
        self.with(Parameter::Mix, Value::Mix(Mix { insert, remove, contains, range: 0 }))
            .with(Parameter::RangeQuery, Value::RangeQuery(RangeQuery::None))
    }

    fn at_most(self, most: Nanos) -> Self {
        match self[Parameter::TrialLength as usize] {
            Value::Duration(length) if length > most => self.with(Parameter::TrialLength, Value::Duration(most)),
            _ => self,
        }
    }

    fn supported(self) -> Self {
        let cell = Cell::of_setting(&self);
        let structure = structures::find(&cell.structure().name);
        let supports = |scheme| structure.is_none_or(|structure| structure.driver(scheme).is_some());
        if supports(cell.reclamation()) {
            return self;
        }
        let scheme = [Reclamation::Epoch].into_iter().chain(Reclamation::ALL.iter().copied()).find(|&it| supports(it));
        let scheme = scheme.expect("every structure has a driver under some scheme");
        self.with(Parameter::Reclamation, Value::Reclamation(scheme))
    }

    fn probe(self, purpose: &str, mode: Mode, n_trials: u32) -> Probe {
        Probe { purpose: purpose.to_owned(), mode, n_trials, setting: Box::new(self) }
    }
}
