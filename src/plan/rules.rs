//! Decides which cells a rule matches.

use std::{cmp::Reverse, collections::BTreeMap};

use super::model::Plan;
use crate::spec::{
    model::{Compare, Condition, Rule},
    value::{Parameter, Prefill, RangeQuery, Threads, Value},
};

/// A cell as indices into the values of each parameter.
pub(super) type Indices = [u32; Parameter::COUNT];

/// A rule resolved against a table of values: whether a cell matches is then a lookup per condition.
pub(super) struct Matcher {
    /// For each parameter of the rule, whether each of its values meets a condition.
    columns: Vec<(Parameter, Vec<bool>)>,
}

impl Matcher {
    /// Resolves `rule` against `values`.
    pub(super) fn new(rule: &Rule, values: &[Vec<Value>; Parameter::COUNT]) -> Self {
        let column = |(parameter, conditions): &(Parameter, Vec<Condition>)| {
            let meets = |value| conditions.iter().any(|condition| meets(condition, value));
            (*parameter, values[*parameter as usize].iter().map(meets).collect())
        };
        Self { columns: rule.conditions.iter().map(column).collect() }
    }

    /// Tells whether each parameter of the rule meets one of its conditions in this cell.
    pub(super) fn matches(&self, cell: &Indices) -> bool {
        self.columns.iter().all(|(parameter, met)| met[cell[*parameter as usize] as usize])
    }
}

impl Plan {
    /// Iterates over the indices of the cells that `rule` matches, ascending; all of them for a rule without conditions.
    pub fn matching(&self, rule: &Rule) -> impl Iterator<Item = u32> + use<'_> {
        let matcher = Matcher::new(rule, &self.values);
        (0..self.n_cells()).filter(move |&cell_idx| matcher.matches(&self.cells[cell_idx as usize]))
    }
}

impl Plan {
    /// Returns the cells that a comparison is about: of the pairs that differ in nothing but what its rules name, the one
    /// with the most threads and otherwise the values listed first; `None` if there is no pair.
    pub fn pair(&self, compare: &Compare) -> Option<(u32, u32)> {
        let named: Vec<Parameter> = compare
            .base
            .conditions
            .iter()
            .chain(&compare.changed.conditions)
            .map(|(parameter, _)| *parameter)
            .collect();
        let held = |cell: u32| {
            let mut columns = self.cells[cell as usize];
            named.iter().for_each(|&parameter| columns[parameter as usize] = 0);
            columns
        };
        // The first cell of each kind.
        let mut changed = BTreeMap::new();
        for cell in self.matching(&compare.changed) {
            changed.entry(held(cell)).or_insert(cell);
        }
        let pairs = self.matching(&compare.base).filter_map(|base| {
            let changed = *changed.get(&held(base))?;
            (base != changed).then_some((base, changed))
        });
        pairs.min_by_key(|&(base, _)| (Reverse(self.cell(base).threads()), base))
    }
}

fn meets(condition: &Condition, value: &Value) -> bool {
    match (condition, value) {
        (Condition::Is(expected), value) => value == expected,
        (Condition::Named(name), Value::Structure(structure)) => [&structure.label, &structure.name].contains(&name),
        (Condition::Named(_), _) => false,
        (Condition::Over(bound), value) => number(value).is_some_and(|number| number > i128::from(*bound)),
        (Condition::Under(bound), value) => number(value).is_some_and(|number| number < i128::from(*bound)),
    }
}

/// The value as a number in the base unit of its parameter, where it is one. The thread count `all` is none: what it
/// becomes depends on the machine, and the cells must not.
fn number(value: &Value) -> Option<i128> {
    match value {
        Value::Threads(Threads::Count(threads)) => Some((*threads).into()),
        Value::Count(count) => Some((*count).into()),
        Value::Prefill(Prefill::Keys(keys)) | Value::RangeQuery(RangeQuery::Keys(keys)) => Some((*keys).into()),
        Value::Prefill(Prefill::Share(share)) => Some(share.0.into()),
        Value::Duration(duration) => Some(duration.0.into()),
        Value::Bytes(bytes) => Some(bytes.0.into()),
        Value::Nice(level) => Some((*level).into()),
        Value::Threads(Threads::All)
        | Value::Structure(_)
        | Value::Allocator(_)
        | Value::Reclamation(_)
        | Value::Pinning(_)
        | Value::Mix(_)
        | Value::Distribution(_)
        | Value::RangeQuery(RangeQuery::None)
        | Value::Word(_) => None,
    }
}
