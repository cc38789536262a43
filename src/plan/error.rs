//! Why a spec has no plan, and why a file is not a plan.

use super::{
    estimate::{rough_duration, rough_size},
    model::FORMAT,
};
use crate::{
    diag::{Diagnostic, Span},
    spec, units,
};

/// Why a spec has no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The plan would be too large, long or heavy; nothing of it was built.
    #[error(
        "the plan has {count}, over the limit of {bound}; drop values or trials, split the spec, or raise `{key}`",
        count = limit.amount(*count),
        bound = limit.amount((*bound).into()),
        key = limit.key()
    )]
    OverLimit {
        /// Which limit.
        limit: Limit,
        /// Its value, in the unit of the limit.
        bound: u64,
        /// What the plan has of it; at least this many when it is the largest `u128`.
        count: u128,
    },
    /// Some rules and claims speak of no cell at all; each has its place in the spec.
    #[error("rules or claims that match no cell: {}", .0.len())]
    Rules(Vec<RuleFault>),
    /// Every cell is excluded.
    #[error("the `exclude` rules leave no cell; relax one of them")]
    NoCells {
        /// Where the spec writes the rules.
        rules: Vec<Span>,
    },
}

/// A bound that a plan must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Cells before `exclude`.
    Cells,
    /// Trials of all kinds.
    Trials,
    /// Estimated wall time, in nanoseconds.
    Time,
    /// Estimated size of the records, in bytes.
    Disk,
    /// Estimated memory of the largest trial, in bytes.
    Memory,
}

impl Limit {
    /// Returns the key of the spec that sets it.
    pub fn key(self) -> &'static str {
        match self {
            Self::Cells => "limits.cells",
            Self::Trials => "limits.trials",
            Self::Time => "limits.time",
            Self::Disk => "limits.disk",
            Self::Memory => "limits.memory",
        }
    }

    fn amount(self, amount: u128) -> String {
        let clamped = u64::try_from(amount).unwrap_or(u64::MAX);
        match self {
            Self::Cells => format!("{amount} cells"),
            Self::Trials => format!("{amount} trials"),
            Self::Time => format!("{} of wall time", rough_duration(units::Nanos(clamped))),
            Self::Disk => format!("{} of records", rough_size(units::Bytes(clamped))),
            Self::Memory => format!("{} in one trial", rough_size(units::Bytes(clamped))),
        }
    }
}

/// A rule or a claim that speaks of no cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFault {
    /// Where the spec writes it.
    pub at: Span,
    /// What is wrong with it.
    pub problem: RuleProblem,
}

/// What is wrong with a rule or a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleProblem {
    /// An `exclude` rule matches no cell of the crossing.
    ExcludesNothing,
    /// An `include` rule adds no cell that is not there already.
    IncludesNothing,
    /// A claim about a structure that has no cell in the claim's scope.
    ClaimsNothing {
        /// Label of the structure.
        structure: String,
    },
    /// A comparison of which no two cells are a pair.
    ComparesNothing,
}

impl PlanError {
    /// Returns the mistakes of the person with their places in the spec; none for a plan that is only too large.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        match self {
            Self::OverLimit { .. } => Vec::new(),
            Self::Rules(faults) => faults.iter().map(RuleFault::diagnostic).collect(),
            Self::NoCells { rules } => vec![spec::no_cell_left(rules)],
        }
    }
}

impl RuleFault {
    fn diagnostic(&self) -> Diagnostic {
        let at = self.at.clone();
        match &self.problem {
            RuleProblem::ExcludesNothing => spec::rule_matches_nothing(at),
            RuleProblem::IncludesNothing => spec::include_adds_nothing(at),
            RuleProblem::ComparesNothing => spec::compare_pairs_nothing(at),
            RuleProblem::ClaimsNothing { structure } => {
                spec::claim_matches_no_cell(at).label(format!("no cell of `{structure}` lies in its scope"))
            }
        }
    }
}

/// Why bytes are not a plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanReadError {
    /// Not JSON, or not of the shape of a plan.
    #[error("not a plan")]
    Shape(#[source] serde_json::Error),
    /// Written by a newer `rare`.
    #[error("plan has format {found}, this `rare` reads up to {FORMAT}; use a newer `rare`")]
    Newer {
        /// Its format.
        found: u64,
    },
    /// Written in a format that never was.
    #[error("plan has format {found}, which does not exist")]
    UnknownFormat {
        /// Its format.
        found: u64,
    },
    /// The content contradicts itself.
    #[error("not a plan: {0}")]
    Content(String),
    /// The content is a plan, but these are not its canonical bytes, so its hash would not be that of the file.
    #[error("plan is not canonical JSON from byte {offset} on; take the file that `rare` wrote, byte for byte")]
    NotCanonical {
        /// First byte that differs from the canonical form.
        offset: usize,
    },
}
