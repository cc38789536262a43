//! A plan in memory: the axes' values once, and each cell as indices into them.

use std::{fmt, str::FromStr};

use rare_workloads::{
    nodes::{Nodes, Pool},
    protocol::{Distribution, Fault, GeneratorKind, Harness, Mix, Padding, Reclamation, TimeCheck},
};

use super::probe::{Probe, Setting};
use crate::{
    spec::{
        model::Order,
        value::{Allocator, Parameter, Pinning, Prefill, RangeQuery, StructureUse, Threads, Value},
    },
    units::{Bytes, Nanos},
};

/// Version of the plan format. A newer one is refused.
pub const FORMAT: u32 = 1;

/// A compiled experiment: everything that decides what is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Every value that some cell takes, by parameter, in order of first use.
    pub values: [Vec<Value>; Parameter::COUNT],
    /// Cells in plan order: for each parameter the index of its value in `values`.
    pub cells: Vec<[u32; Parameter::COUNT]>,
    /// Blocks in execution order.
    pub blocks: Vec<Block>,
    /// Order within blocks, as asked.
    pub order: Order,
    /// Seed of everything random.
    pub seed: u64,
    /// Names of the checks, in registry order.
    pub checks: Vec<String>,
    /// Names of the instruments, in registry order.
    pub instruments: Vec<String>,
    /// What the checks and instruments ask for beside the cells.
    pub probes: Vec<Probe>,
}

/// One trial of every cell, in order of execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// What its trials do.
    pub kind: BlockKind,
    /// Index of the trial among those of its cell and kind.
    pub trial_idx: u32,
    /// Cell indices in order of execution, each cell once; of a block of probes the indices of the probes that have so
    /// many trials.
    pub order: Vec<u32>,
}

/// What the trials of a block do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockKind {
    /// Timed trials, which reports summarise.
    Measure,
    /// Trials under the counting hook, shown but never summarised as throughput.
    Account,
    /// Trials of probes, each in its mode: shown beside the check or instrument that asks for them.
    Probe,
}

impl BlockKind {
    /// Every kind, in the order in which blocks of them follow each other.
    pub const ALL: [Self; 3] = [Self::Measure, Self::Account, Self::Probe];

    /// Returns the word used in plans, records and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Measure => "measure",
            Self::Account => "account",
            Self::Probe => "probe",
        }
    }
}

/// Names one trial of a plan: `measure-12-3` is the fourth measured trial of cell 12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrialId {
    /// Kind of its block.
    pub kind: BlockKind,
    /// Cell index; the index of the probe where it is of one.
    pub cell: u32,
    /// Index among the trials of its cell and kind.
    pub trial_idx: u32,
}

impl fmt::Display for TrialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.kind.name(), self.cell, self.trial_idx)
    }
}

impl FromStr for TrialId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fail = || format!("`{text}` is not a trial, such as `measure-12-3`");
        let mut parts = text.split('-');
        let word = parts.next();
        let kind = BlockKind::ALL.into_iter().find(|kind| Some(kind.name()) == word).ok_or_else(fail)?;
        let mut number = || parts.next().and_then(|part| part.parse().ok()).ok_or_else(fail);
        let id = Self { kind, cell: number()?, trial_idx: number()? };
        // `measure-01-2` and `measure-1-2` must not be two names of one trial.
        if id.to_string() == text { Ok(id) } else { Err(fail()) }
    }
}

impl serde::Serialize for TrialId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for TrialId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// SHA-256 of the canonical bytes of a plan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlanHash(pub [u8; 32]);

impl PlanHash {
    /// Returns the 12 hexadecimal digits that people see and folders carry.
    pub fn short(&self) -> String {
        self.to_string()[..12].to_owned()
    }
}

impl fmt::Display for PlanHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PlanHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Plan {
    /// Returns the cell at `cell_idx`.
    pub fn cell(&self, cell_idx: u32) -> Cell<'_> {
        Cell(Values::Listed(self, cell_idx))
    }

    /// Returns the cell of a trial, be it of the plan or of a probe; `None` if the plan has none of that index.
    pub fn cell_of(&self, trial: TrialId) -> Option<Cell<'_>> {
        match trial.kind {
            BlockKind::Measure | BlockKind::Account => {
                ((trial.cell as usize) < self.cells.len()).then(|| self.cell(trial.cell))
            }
            BlockKind::Probe => self.probes.get(trial.cell as usize).map(Probe::cell),
        }
    }

    /// Returns the probe of a trial, if it is of one.
    pub fn probe_of(&self, trial: TrialId) -> Option<&Probe> {
        (trial.kind == BlockKind::Probe).then(|| self.probes.get(trial.cell as usize)).flatten()
    }

    /// Iterates over every trial in order of execution.
    pub fn trials(&self) -> impl Iterator<Item = TrialId> + '_ {
        self.blocks.iter().flat_map(|block| {
            block.order.iter().map(|&cell| TrialId { kind: block.kind, cell, trial_idx: block.trial_idx })
        })
    }

    /// Iterates over every cell, those of the plan first and then those of its probes.
    pub fn all_cells(&self) -> impl Iterator<Item = Cell<'_>> {
        let own = (0..).take(self.cells.len()).map(|cell_idx| self.cell(cell_idx));
        own.chain(self.probes.iter().map(Probe::cell))
    }

    /// Returns the number of trials of all kinds.
    pub fn n_trials(&self) -> usize {
        self.blocks.iter().map(|block| block.order.len()).sum()
    }

    /// Returns the parameters that take more than one value over the cells, in order.
    pub fn varied(&self) -> Vec<Parameter> {
        Parameter::ALL.into_iter().filter(|&parameter| self.values[parameter as usize].len() > 1).collect()
    }
}

/// One cell of a plan, or of a probe.
#[derive(Clone, Copy, Debug)]
pub struct Cell<'p>(Values<'p>);

/// Where the values of a cell are.
#[derive(Clone, Copy, Debug)]
enum Values<'p> {
    /// In the columns of a plan, for the cell of this index.
    Listed(&'p Plan, u32),
    /// All in one place.
    Own(&'p Setting),
}

/// Unpacks the value of one parameter; the expander puts only fitting values into a column.
macro_rules! unpack {
    ($cell:expr, $parameter:ident, $variant:ident) => {
        match $cell.value(Parameter::$parameter) {
            Value::$variant(value) => value,
            other => unreachable!("column {} holds {other:?}", Parameter::$parameter.name()),
        }
    };
}

impl<'p> Cell<'p> {
    /// Returns the value of one parameter.
    pub fn value(&self, parameter: Parameter) -> &'p Value {
        match self.0 {
            Values::Listed(plan, cell_idx) => {
                let value_idx = plan.cells[cell_idx as usize][parameter as usize];
                &plan.values[parameter as usize][value_idx as usize]
            }
            Values::Own(setting) => &setting[parameter as usize],
        }
    }

    /// Returns its index in the plan; `None` for the cell of a probe, which has none.
    pub fn cell_idx(&self) -> Option<u32> {
        match self.0 {
            Values::Listed(_, cell_idx) => Some(cell_idx),
            Values::Own(_) => None,
        }
    }

    /// Returns the cell of a setting.
    pub fn of_setting(setting: &'p Setting) -> Self {
        Self(Values::Own(setting))
    }

    /// Returns all its values.
    pub fn setting(&self) -> Setting {
        Parameter::ALL.map(|parameter| self.value(parameter).clone())
    }

    /// Returns the structure with its label and parameters.
    pub fn structure(&self) -> &'p StructureUse {
        unpack!(self, Structure, Structure)
    }

    /// Returns the allocator.
    pub fn allocator(&self) -> &'p Allocator {
        unpack!(self, Allocator, Allocator)
    }

    /// Returns the reclamation scheme.
    pub fn reclamation(&self) -> Reclamation {
        *unpack!(self, Reclamation, Reclamation)
    }

    /// Returns the pinning policy.
    pub fn pinning(&self) -> &'p Pinning {
        unpack!(self, Pinning, Pinning)
    }

    /// Returns the thread count, still symbolic.
    pub fn threads(&self) -> Threads {
        *unpack!(self, Threads, Threads)
    }

    /// Returns the number of keys that may be drawn.
    pub fn key_range(&self) -> u64 {
        *unpack!(self, KeyRange, Count)
    }

    /// Returns the shares of the operations.
    pub fn mix(&self) -> Mix {
        *unpack!(self, Mix, Mix)
    }

    /// Returns how keys are drawn.
    pub fn distribution(&self) -> Distribution {
        *unpack!(self, Distribution, Distribution)
    }

    /// Returns the fill before the window.
    pub fn prefill(&self) -> Prefill {
        *unpack!(self, Prefill, Prefill)
    }

    /// Returns the keys in the interval of each range query, or `None` if no operation is one.
    pub fn range_keys(&self) -> Option<u64> {
        match unpack!(self, RangeQuery, RangeQuery) {
            RangeQuery::Keys(keys) if self.mix().range > 0 => Some(*keys),
            RangeQuery::Keys(_) | RangeQuery::None => None,
        }
    }

    /// Returns the length of the measured window.
    pub fn trial_length(&self) -> Nanos {
        *unpack!(self, TrialLength, Duration)
    }

    /// Returns the transparent huge page setting: `system` or `never`.
    pub fn huge_pages(&self) -> &'static str {
        unpack!(self, HugePages, Word)
    }

    /// Returns the address space randomisation: `on` or `off`.
    pub fn aslr(&self) -> &'static str {
        unpack!(self, Aslr, Word)
    }

    /// Returns the bytes added to the worker's environment.
    pub fn environment_padding(&self) -> Bytes {
        *unpack!(self, EnvironmentPadding, Bytes)
    }

    /// Returns the nice level.
    pub fn priority(&self) -> i8 {
        *unpack!(self, Priority, Nice)
    }

    /// Returns how the memory of nodes is managed.
    ///
    /// # Panics
    /// If the padding exceeds 32 bits, which neither a spec nor [`Plan::from_canonical`] lets pass.
    pub fn nodes(&self) -> Nodes {
        let padding = *unpack!(self, NodePadding, Count);
        let pool = match *unpack!(self, ObjectPool, Word) {
            "none" => Pool::None,
            _ => Pool::PerThread,
        };
        Nodes { padding_bytes: u32::try_from(padding).expect("paddings are a few words of bytes"), pool }
    }

    /// Returns how the harness measures.
    ///
    /// # Errors
    /// The parameter whose value this version cannot bring about.
    pub fn harness(&self) -> Result<Harness, Parameter> {
        Ok(Harness {
            time_check: match *unpack!(self, TimeCheck, Word) {
                "flag" => TimeCheck::Flag,
                "every-op" => TimeCheck::Every(1),
                "every-10" => TimeCheck::Every(10),
                "every-100" => TimeCheck::Every(100),
                "every-1000" => TimeCheck::Every(1_000),
                _ => return Err(Parameter::TimeCheck),
            },
            padding: match *unpack!(self, HarnessPadding, Count) {
                0 => Padding::None,
                128 => Padding::Lines,
                _ => return Err(Parameter::HarnessPadding),
            },
            generator: match *unpack!(self, Generator, Word) {
                "xoshiro256++" => GeneratorKind::Xoshiro,
                "fnv1a-alternating" => GeneratorKind::Fnv1aAlternating,
                _ => return Err(Parameter::Generator),
            },
            fault: match *unpack!(self, HarnessFault, Word) {
                "none" => None,
                "prefill-with-replacement" => Some(Fault::PrefillWithReplacement),
                "rotated-pins" => Some(Fault::RotatedPins),
                "late-thread" => Some(Fault::LateThread),
                "nominal-time" => Some(Fault::NominalTime),
                _ => return Err(Parameter::HarnessFault),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{fields, fields::Kind};

    /// The settings of a cell whose harness is as by default, but for one value.
    fn harness(other: Parameter, value: Value) -> Result<Harness, Parameter> {
        // The harness looks at no other parameter.
        let mut setting: Setting = std::array::from_fn(|_| Value::Count(0));
        for (parameter, usual) in [
            (Parameter::TimeCheck, Value::Word("flag")),
            (Parameter::HarnessPadding, Value::Count(128)),
            (Parameter::Generator, Value::Word("xoshiro256++")),
            (Parameter::HarnessFault, Value::Word("none")),
            (other, value),
        ] {
            setting[parameter as usize] = usual;
        }
        Cell::of_setting(&setting).harness()
    }

    #[test]
    fn every_word_of_the_harness_is_a_setting_of_its_own() {
        let mut settings = std::collections::BTreeSet::new();
        let mut n_words = 0;
        for parameter in [Parameter::TimeCheck, Parameter::Generator, Parameter::HarnessFault] {
            let Kind::Word(words) = fields::of(parameter).kind else { panic!("{parameter:?} takes words") };
            for word in words {
                n_words += 1;
                settings.insert(harness(parameter, Value::Word(word.name)).unwrap());
            }
        }
        // The default of each is the same setting.
        assert_eq!(settings.len(), n_words - 2);
        assert!(settings.contains(&Harness::default()));
    }

    #[test]
    fn paddings_that_there_are_not_are_named() {
        let harness = |padding| harness(Parameter::HarnessPadding, Value::Count(padding));
        assert_eq!(harness(0).map(|harness| harness.padding), Ok(Padding::None));
        assert_eq!(harness(128), Ok(Harness::default()));
        assert_eq!(harness(64), Err(Parameter::HarnessPadding));
    }
}
