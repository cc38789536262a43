//! Arranges the panels of configurations into figures: one parameter across, the others down, so that a glance along a
//! row or a column compares one thing.

use crate::{plan::Plan, spec::value::Parameter};

/// Panels side by side: more would be too small to read.
const MAX_COLUMNS: usize = 3;

/// Rows of a figure: what fits a page.
const MAX_ROWS: usize = 4;

/// Values of the parameters of one configuration, by their indices.
type Key = [u32; Parameter::COUNT];

/// One figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sheet {
    /// Which panel stands where, row by row; rows have equal lengths, and a place may be empty.
    pub rows: Vec<Vec<Option<usize>>>,
    /// The parameter whose values are the columns; without one, panels follow each other in plan order.
    pub across: Option<Parameter>,
    /// Parameters that tell its rows apart, or its panels if none is across.
    pub down: Vec<Parameter>,
    /// Parameters that vary in the plan but not within this figure.
    pub shared: Vec<Parameter>,
}

impl Sheet {
    /// Returns the parameters that tell its panels apart, in plan order.
    pub(crate) fn distinct(&self, plan: &Plan) -> Vec<Parameter> {
        varied(plan).into_iter().filter(|parameter| !self.shared.contains(parameter)).collect()
    }
}

/// Arranges panels, given the configuration of each in plan order.
pub(crate) fn sheets(plan: &Plan, keys: &[Key]) -> Vec<Sheet> {
    let across = across(plan, keys);
    let rows = rows(keys, across);
    let mut parts = Vec::new();
    let max_rows = if across.is_some() { MAX_ROWS } else { MAX_ROWS * 2 };
    split(plan, keys, rows, max_rows, &mut parts);
    parts.into_iter().map(|part| sheet(plan, keys, across, part)).collect()
}

fn varied(plan: &Plan) -> Vec<Parameter> {
    plan.varied().into_iter().filter(|&parameter| parameter != Parameter::Structure).collect()
}

/// Chooses the parameter across: threads, since their scaling is asked for most often; else the innermost that fits.
fn across(plan: &Plan, keys: &[Key]) -> Option<Parameter> {
    let fits = |&parameter: &Parameter| (2..=MAX_COLUMNS).contains(&values(keys, parameter).len());
    let candidates: Vec<Parameter> = varied(plan).into_iter().filter(fits).collect();
    candidates.iter().copied().find(|&parameter| parameter == Parameter::Threads).or(candidates.last().copied())
}

fn values(keys: &[Key], parameter: Parameter) -> Vec<u32> {
    let mut values: Vec<u32> = keys.iter().map(|key| key[parameter as usize]).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// Panels that differ across only, each at the place of its value.
fn rows(keys: &[Key], across: Option<Parameter>) -> Vec<Vec<Option<usize>>> {
    let Some(across) = across else { return (0..keys.len()).map(|idx| vec![Some(idx)]).collect() };
    let columns = values(keys, across);
    let rest = |key: &Key| {
        let mut key = *key;
        (key[across as usize], key[Parameter::Structure as usize]) = (0, 0);
        key
    };
    let mut rows: Vec<(Key, Vec<Option<usize>>)> = Vec::new();
    for (idx, key) in keys.iter().enumerate() {
        let column = columns.binary_search(&key[across as usize]).expect("values() lists the value of every key");
        let row = match rows.iter().position(|(known, _)| *known == rest(key)) {
            Some(row) => row,
            None => {
                rows.push((rest(key), vec![None; columns.len()]));
                rows.len() - 1
            }
        };
        rows[row].1[column] = Some(idx);
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Splits rows by the outermost parameter that differs between them, until each part fits.
fn split(
    plan: &Plan,
    keys: &[Key],
    rows: Vec<Vec<Option<usize>>>,
    max_rows: usize,
    parts: &mut Vec<Vec<Vec<Option<usize>>>>,
) {
    if rows.len() <= max_rows {
        parts.push(rows);
        return;
    }
    let key = |row: &Vec<Option<usize>>| keys[row.iter().flatten().next().copied().expect("a row has a panel")];
    let firsts: Vec<Key> = rows.iter().map(key).collect();
    let differs = |&parameter: &Parameter| values(&firsts, parameter).len() > 1;
    // A part of a single row each would be no grid: the innermost parameter stays together as far as it fits.
    let outermost = varied(plan).into_iter().find(differs);
    let Some(parameter) = outermost.filter(|&parameter| values(&firsts, parameter).len() < rows.len()) else {
        parts.extend(rows.chunks(max_rows).map(<[_]>::to_vec));
        return;
    };
    for value in values(&firsts, parameter) {
        let part = rows.iter().filter(|row| key(row)[parameter as usize] == value).cloned().collect();
        split(plan, keys, part, max_rows, parts);
    }
}

fn sheet(plan: &Plan, keys: &[Key], across: Option<Parameter>, rows: Vec<Vec<Option<usize>>>) -> Sheet {
    let here: Vec<Key> = rows.iter().flatten().flatten().map(|&idx| keys[idx]).collect();
    let (shared, distinct): (Vec<Parameter>, Vec<Parameter>) =
        varied(plan).into_iter().partition(|&parameter| values(&here, parameter).len() < 2);
    let down = distinct.into_iter().filter(|&parameter| Some(parameter) != across).collect();
    let rows = if across.is_some() || here.len() < 2 {
        rows
    } else {
        let panels: Vec<Option<usize>> = rows.into_iter().flatten().collect();
        let padded = |pair: &[Option<usize>]| vec![pair[0], pair.get(1).copied().flatten()];
        panels.chunks(2).map(padded).collect()
    };
    Sheet { rows, across, down, shared }
}
