//! A spec after compilation: typed, every default made explicit, every name known to exist.

use rare_workloads::protocol::Mix;

use super::value::{Parameter, Value};
use crate::diag::Span;
use crate::units::{BasisPoints, Bytes, Nanos};

/// A compiled spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// File-safe name: `[a-z0-9][a-z0-9-]*`, at most 64 characters. The folder under `reports/`.
    pub name: String,
    /// What the experiment asks, Markdown; display only.
    pub question: Option<String>,
    /// Whether the `quick` block was laid over the spec.
    pub quick: bool,
    /// Values of each parameter in spec order, at least one each; indexed by [`Parameter`].
    pub axes: [Vec<Value>; Parameter::COUNT],
    /// Parameters that a structure entry fixes for itself: label, parameter, value. They replace the axis for it.
    pub overrides: Vec<(String, Parameter, Value)>,
    /// Linked parameters: the axes of one group have equal lengths and advance together.
    pub zip: Vec<Vec<Parameter>>,
    /// Cells that match any of these rules are left out.
    pub exclude: Vec<Rule>,
    /// Cells added beyond the crossing.
    pub include: Vec<Inclusion>,
    /// Trials of each cell, at least 1: the number of blocks.
    pub n_trials: u32,
    /// Names of the checks that run, in registry order.
    pub checks: Vec<&'static str>,
    /// Names of the instruments, in registry order.
    pub instruments: Vec<&'static str>,
    /// Order of the trials within a block.
    pub order: Order,
    /// Seed of everything random.
    pub seed: u64,
    /// Claims to decide; analysis only.
    pub claims: Vec<Claim>,
    /// Pairs of cells that confirm an explanation.
    pub compare: Vec<Compare>,
    /// Names that the spec gives to mixes; display only.
    pub mix_names: Vec<(Mix, String)>,
    /// Comparisons of unlike things that the spec allows by name.
    pub allow: Vec<&'static str>,
    /// Bounds that the plan must keep.
    pub limits: Limits,
    /// The run stops before a block that would exceed this wall time.
    pub budget: Option<Nanos>,
}

impl Spec {
    /// Returns the values of one parameter.
    pub fn axis(&self, parameter: Parameter) -> &[Value] {
        &self.axes[parameter as usize]
    }
}

/// A rule over cells: matches a cell when each named parameter meets one of its conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Where the spec writes it; empty for a rule that no one wrote.
    pub at: Span,
    /// Parameter and alternatives.
    pub conditions: Vec<(Parameter, Vec<Condition>)>,
}

/// A condition on one value of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Equal to this value.
    Is(Value),
    /// A structure with this label or registry name.
    Named(String),
    /// A number above this, in the base unit of the parameter.
    Over(u64),
    /// A number below this, in the base unit of the parameter.
    Under(u64),
}

/// Cells to add: each named parameter takes the given values, the others their axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inclusion {
    /// Where the spec writes it.
    pub at: Span,
    /// Parameter and the values it takes.
    pub values: Vec<(Parameter, Vec<Value>)>,
}

/// Order of the trials within a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A seeded permutation, another for each block.
    Random,
    /// Cells in plan order, in each block: drift of the machine then falls on the same cells.
    Listed,
}

/// A sentence about the data: `left > right`, optionally by a margin and within a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Where the spec writes it.
    pub at: Span,
    /// The sentence as written.
    pub text: String,
    /// Label of the structure claimed faster.
    pub faster: String,
    /// Label of the structure claimed slower.
    pub slower: String,
    /// Margin by which the ratio must exceed 1.
    pub by: BasisPoints,
    /// Cells that the claim speaks of; an empty rule means all.
    pub scope: Rule,
}

/// Two cells that differ in what an explanation names, and the counter that must then move with the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compare {
    /// Where the spec writes it.
    pub at: Span,
    /// The cell as it is.
    pub base: Rule,
    /// The cell with the change; alike in every parameter that neither rule names.
    pub changed: Rule,
    /// Which counter is predicted to move.
    pub predicts: &'static str,
}

/// Bounds of a plan. A plan over one of them is refused before it is expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Cells of the crossing before `exclude`.
    pub cells: u64,
    /// Trials in all.
    pub trials: u64,
    /// Estimated wall time.
    pub time: Nanos,
    /// Estimated size of the records.
    pub disk: Bytes,
    /// Estimated memory of the largest trial.
    pub memory: Bytes,
}
