//! Reads a plan back from its canonical bytes.
//!
//! The input is hostile: it may come from a published report. Nothing here panics, and memory stays within a small
//! multiple of the input. What is accepted is exactly what [`Plan::canonical`] writes: the plan that was read is
//! written again and compared, so that one plan has one file and one hash.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};

use super::{
    error::PlanReadError,
    model::{Block, BlockKind, FORMAT, Plan},
    probe::{Mode, Probe, Setting},
    read_value::{decimal, read_value},
    walk::{FAMILY, IMPLIED, order_name},
};
use crate::spec::{
    model::Order,
    value::{Parameter, Prefill, RangeQuery, Value},
};

impl Plan {
    /// Reads the content of a `plan.json`.
    ///
    /// # Errors
    /// [`PlanReadError`] when the format is newer, a key is unknown, a value is out of its range, a block is not a
    /// permutation of the cells, or the bytes are not canonical.
    pub fn from_canonical(bytes: &[u8]) -> Result<Self, PlanReadError> {
        check_format(bytes)?;
        let document: Document = serde_json::from_slice(bytes).map_err(PlanReadError::Shape)?;
        let plan = document.plan().map_err(PlanReadError::Content)?;
        let canonical = plan.canonical();
        if canonical != bytes {
            let n_equal = canonical.iter().zip(bytes).take_while(|(ours, theirs)| ours == theirs).count();
            return Err(PlanReadError::NotCanonical { offset: n_equal });
        }
        Ok(plan)
    }
}

/// Looks at nothing but the format: a newer one may have any other shape.
fn check_format(bytes: &[u8]) -> Result<(), PlanReadError> {
    #[derive(Deserialize)]
    struct Header {
        format: u64,
    }
    let Header { format: found } = serde_json::from_slice(bytes).map_err(PlanReadError::Shape)?;
    match found {
        _ if found == u64::from(FORMAT) => Ok(()),
        _ if found > u64::from(FORMAT) => Err(PlanReadError::Newer { found }),
        _ => Err(PlanReadError::UnknownFormat { found }),
    }
}

/// The document as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    blocks: Vec<BlockForm>,
    cells: Vec<Settings>,
    checks: Vec<String>,
    family: String,
    #[serde(rename = "format")]
    _format: u32,
    held: Settings,
    instruments: Vec<String>,
    order: String,
    #[serde(default)]
    probes: ProbesForm,
    seed: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProbesForm {
    held: Settings,
    list: Vec<ProbeForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProbeForm {
    cell: Settings,
    mode: String,
    purpose: String,
    trials: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockForm {
    kind: String,
    order: Vec<u32>,
    trial: u32,
}

/// Values of some parameters.
#[derive(Default)]
struct Settings(BTreeMap<Parameter, Value>);

impl Document {
    fn plan(self) -> Result<Plan, String> {
        if self.family != FAMILY {
            return Err(format!("unknown family `{}`", self.family));
        }
        let mut cells = Columns::default();
        for (cell_idx, settings) in self.cells.iter().enumerate() {
            cells.push(&self.held, settings).map_err(|fault| format!("cell {cell_idx} {fault}"))?;
        }
        if cells.rows.is_empty() {
            return Err("it has no cell".to_owned());
        }
        let orders = [Order::Random, Order::Listed];
        let order = orders.into_iter().find(|&order| order_name(order) == self.order);
        let probes = self.probes.probes()?;
        Ok(Plan {
            blocks: blocks(self.blocks, cells.rows.len(), &probes)?,
            values: cells.values,
            cells: cells.rows,
            probes,
            order: order.ok_or_else(|| format!("unknown order `{}`", self.order))?,
            seed: decimal(&self.seed).ok_or_else(|| format!("`{}` is not a seed", self.seed))?,
            checks: self.checks,
            instruments: self.instruments,
        })
    }
}

impl ProbesForm {
    fn probes(self) -> Result<Vec<Probe>, String> {
        let Self { held, list } = self;
        let probe = |(idx, form): (usize, ProbeForm)| {
            let fault = |fault: String| format!("probe {idx} {fault}");
            let mode = Mode::ALL.into_iter().find(|mode| mode.name() == form.mode);
            let mode = mode.ok_or_else(|| fault(format!("has the unknown mode `{}`", form.mode)))?;
            if form.trials == 0 {
                return Err(fault("has no trial".to_owned()));
            }
            let values = Parameter::ALL.map(|parameter| held.value(&form.cell, parameter).cloned());
            let values: Vec<Value> = values.into_iter().collect::<Result<_, _>>().map_err(fault)?;
            let setting: Setting = values.try_into().expect("one value of each parameter");
            let value = |parameter: Parameter| &setting[parameter as usize];
            check_prefill(value).and_then(|()| check_range_query(value)).map_err(fault)?;
            Ok(Probe { purpose: form.purpose, mode, n_trials: form.trials, setting: Box::new(setting) })
        };
        list.into_iter().enumerate().map(probe).collect()
    }
}

impl Settings {
    /// Returns the value that either these, which are held, or a cell's own have.
    fn value<'s>(&'s self, own: &'s Self, parameter: Parameter) -> Result<&'s Value, String> {
        match (self.0.get(&parameter), own.0.get(&parameter)) {
            (Some(value), None) | (None, Some(value)) => Ok(value),
            (None, None) => implied(parameter).ok_or_else(|| format!("has no `{}`", parameter.name())),
            (Some(_), Some(_)) => Err(format!("has `{}`, which is held", parameter.name())),
        }
    }
}

/// Cells while they are numbered.
#[derive(Default)]
struct Columns {
    values: [Vec<Value>; Parameter::COUNT],
    places: [BTreeMap<Value, u32>; Parameter::COUNT],
    rows: Vec<[u32; Parameter::COUNT]>,
    seen: BTreeSet<[u32; Parameter::COUNT]>,
}

impl Columns {
    /// Adds the cell with `held` and its own settings.
    fn push(&mut self, held: &Settings, own: &Settings) -> Result<(), String> {
        let mut row = [0; Parameter::COUNT];
        for parameter in Parameter::ALL {
            row[parameter as usize] = self.place(parameter, held.value(own, parameter)?)?;
        }
        let value = |parameter: Parameter| &self.values[parameter as usize][row[parameter as usize] as usize];
        check_prefill(value)?;
        check_range_query(value)?;
        if !self.seen.insert(row) {
            return Err("is there twice".to_owned());
        }
        self.rows.push(row);
        Ok(())
    }

    fn place(&mut self, parameter: Parameter, value: &Value) -> Result<u32, String> {
        let (values, places) = (&mut self.values[parameter as usize], &mut self.places[parameter as usize]);
        if let Some(&place) = places.get(value) {
            return Ok(place);
        }
        let place = u32::try_from(values.len()).map_err(|_| "is one of too many".to_owned())?;
        values.push(value.clone());
        places.insert(value.clone(), place);
        Ok(place)
    }
}

/// Returns the value that a parameter has where a plan leaves it out.
fn implied(parameter: Parameter) -> Option<&'static Value> {
    IMPLIED.iter().find(|(implied, _)| *implied == parameter).map(|(_, value)| value)
}

/// No structure can hold more keys than there are.
fn check_prefill<'v>(value: impl Fn(Parameter) -> &'v Value) -> Result<(), String> {
    match (value(Parameter::KeyRange), value(Parameter::Prefill)) {
        (Value::Count(key_range), Value::Prefill(Prefill::Keys(keys))) if keys > key_range => {
            Err(format!("is filled with {keys} keys out of {key_range}"))
        }
        _ => Ok(()),
    }
}

/// A range query has a size.
fn check_range_query<'v>(value: impl Fn(Parameter) -> &'v Value) -> Result<(), String> {
    match (value(Parameter::Mix), value(Parameter::RangeQuery)) {
        (Value::Mix(mix), Value::RangeQuery(RangeQuery::None)) if mix.range > 0 => {
            Err("has range queries without a size".to_owned())
        }
        _ => Ok(()),
    }
}

/// The measured blocks come first, and those of a kind are numbered from 0.
fn blocks(forms: Vec<BlockForm>, n_cells: usize, probes: &[Probe]) -> Result<Vec<Block>, String> {
    let mut blocks: Vec<Block> = Vec::new();
    for form in forms {
        let kind = BlockKind::ALL.into_iter().find(|kind| kind.name() == form.kind);
        let kind = kind.ok_or_else(|| format!("unknown kind of block `{}`", form.kind))?;
        let expected_idx = match blocks.last() {
            Some(last) if last.kind == kind => last.trial_idx.checked_add(1),
            Some(last) if last.kind > kind => None,
            Some(_) | None => Some(0),
        };
        if expected_idx != Some(form.trial) {
            return Err(format!("block {} is out of order", blocks.len()));
        }
        let (members, what) = match kind {
            BlockKind::Measure | BlockKind::Account => (vec![true; n_cells], "cell"),
            BlockKind::Probe => (probes.iter().map(|probe| form.trial < probe.n_trials).collect(), "probe"),
        };
        if !holds_each_once(&form.order, members) {
            return Err(format!("block {} does not hold each {what} once", blocks.len()));
        }
        blocks.push(Block { kind, trial_idx: form.trial, order: form.order });
    }
    let n_of_probes = blocks.iter().filter(|block| block.kind == BlockKind::Probe).count() as u32;
    if probes.iter().map(|probe| probe.n_trials).max().unwrap_or(0) != n_of_probes {
        return Err("it does not hold each trial of its probes".to_owned());
    }
    if blocks.is_empty() { Err("it has no block".to_owned()) } else { Ok(blocks) }
}

/// Tells whether an order holds each index that is due, once, and no other.
fn holds_each_once(order: &[u32], mut due: Vec<bool>) -> bool {
    let mut take = |&idx: &u32| due.get_mut(idx as usize).is_some_and(std::mem::take);
    let all_were_due = order.iter().all(&mut take);
    all_were_due && due.iter().all(|&is_due| !is_due)
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SettingsVisitor;

        impl<'de> Visitor<'de> for SettingsVisitor {
            type Value = Settings;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of parameters")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Settings, A::Error> {
                let mut settings = BTreeMap::new();
                while let Some((name, json)) = members.next_entry::<String, serde_json::Value>()? {
                    let parameter = Parameter::ALL.into_iter().find(|it| it.name() == name);
                    let parameter = parameter.ok_or_else(|| A::Error::custom(format!("unknown parameter `{name}`")))?;
                    let value = read_value(parameter, &json)
                        .ok_or_else(|| A::Error::custom(format!("`{json}` is no value of `{name}`")))?;
                    if settings.insert(parameter, value).is_some() {
                        return Err(A::Error::custom(format!("`{name}` twice")));
                    }
                }
                Ok(Settings(settings))
            }
        }

        deserializer.deserialize_map(SettingsVisitor)
    }
}
