//! Who is fastest where, by the comparisons alone.

use std::collections::BTreeSet;

use crate::{
    spec::value::Parameter,
    stats::{Answer, Comparison, validity},
    verdict::{Evidence, evidence::title},
};

/// Who leads in one configuration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lead {
    /// Cells of the configuration that compete.
    pub cells: Vec<u32>,
    /// Cell with the highest median, and the cells that are not distinguishable from it; best first. Empty if fewer than
    /// two cells have trials that count.
    pub leaders: Vec<u32>,
    /// The best of the others, if any.
    pub next: Option<u32>,
}

impl Lead {
    /// Returns the one cell that leads alone.
    pub(crate) fn alone(&self) -> Option<u32> {
        match self.leaders.as_slice() {
            [only] => Some(*only),
            _ => None,
        }
    }
}

/// Returns who leads in each configuration, in plan order.
pub(crate) fn leads(evidence: &Evidence) -> Vec<Lead> {
    let mut rest = evidence.summary.comparisons.as_slice();
    let groups = evidence.summary.groups.iter();
    let lead_of = |group: &Vec<u32>| {
        // Comparisons stand in the order of the groups.
        let n_here = rest.iter().take_while(|comparison| group.contains(&comparison.left)).count();
        let (here, later) = rest.split_at(n_here);
        rest = later;
        lead(evidence, group, here)
    };
    groups.map(lead_of).collect()
}

fn lead(evidence: &Evidence, group: &[u32], comparisons: &[Comparison]) -> Lead {
    let competes = |&cell: &u32| !validity::stores_nothing(&evidence.plan.cell(cell).structure().name);
    let cells: Vec<u32> = group.iter().copied().filter(competes).collect();
    let median = |cell: u32| evidence.summary.cell(cell).description.as_ref().map(|description| description.median);
    let mut ranked: Vec<(u32, f64)> = cells.iter().filter_map(|&cell| Some((cell, median(cell)?))).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    if ranked.len() < 2 {
        return Lead { cells, leaders: Vec::new(), next: None };
    }
    let best = ranked[0].0;
    let behind = |cell: u32| {
        comparisons.iter().any(|comparison| match comparison.answer {
            Answer::Faster => (comparison.left, comparison.right) == (best, cell),
            Answer::Slower => (comparison.left, comparison.right) == (cell, best),
            Answer::NotDistinguishable => false,
        })
    };
    let (next, leaders): (Vec<u32>, Vec<u32>) = ranked.iter().map(|&(cell, _)| cell).partition(|&cell| behind(cell));
    Lead { cells, leaders, next: next.first().copied() }
}

/// Returns the answer to "who is fastest where" in one or two sentences.
pub(crate) fn sentence(evidence: &Evidence, leads: &[Lead]) -> String {
    let decided: Vec<&Lead> = leads.iter().filter(|lead| !lead.leaders.is_empty()).collect();
    if decided.is_empty() {
        return "There is nothing to compare: no configuration has two structures with trials that count.".to_owned();
    }
    let mut tally: Vec<(String, Vec<u32>)> = Vec::new();
    for cell in decided.iter().filter_map(|lead| lead.alone()) {
        let label = &evidence.plan.cell(cell).structure().label;
        match tally.iter_mut().find(|(known, _)| known == label) {
            Some((_, cells)) => cells.push(cell),
            None => tally.push((label.clone(), vec![cell])),
        }
    }
    tally.sort_by_key(|(_, cells)| std::cmp::Reverse(cells.len()));
    let n_open = decided.iter().filter(|lead| lead.leaders.len() > 1).count();
    let of = decided.len();
    match tally.as_slice() {
        [] if of == 1 => "The fastest structures are not distinguishable.".to_owned(),
        [] => format!("In none of {of} configurations is one structure distinguishably faster than all others."),
        [(name, cells)] if cells.len() == of && of == 1 => format!("{name} is the fastest."),
        [(name, cells)] if cells.len() == of => format!("{name} is the fastest in all {of} configurations."),
        [(name, cells)] => {
            let n = cells.len();
            format!(
                "{name} is the fastest in {n} of {of} configurations; in {n_open} the fastest are not distinguishable."
            )
        }
        several => match explanation(evidence, leads) {
            Some(dependence) => by_value(evidence, leads, &dependence, n_open),
            None => by_structure(evidence, several, of, n_open),
        },
    }
}

/// Returns the one parameter that tells which structure leads wherever one does; of several the one that changes the
/// leader most often.
fn explanation(evidence: &Evidence, leads: &[Lead]) -> Option<Dependence> {
    let explains = |one: &Dependence| one.by_value.iter().all(|value| value.alone.len() <= 1) && one.n_flips > 0;
    // The first of equals is kept.
    dependences(evidence, leads).into_iter().filter(explains).rev().max_by_key(|dependence| dependence.n_flips)
}

/// The answer by the values of the parameter that explains it.
fn by_value(evidence: &Evidence, leads: &[Lead], dependence: &Dependence, n_open: usize) -> String {
    /// Neighbouring values under which the same structure leads.
    struct Run<'a> {
        name: &'a str,
        values: Vec<String>,
        n_alone: usize,
        n_decided: usize,
    }
    let parameter = dependence.parameter;
    let values = &evidence.plan.values[parameter as usize];
    let mut runs: Vec<Run> = Vec::new();
    for value in &dependence.by_value {
        let Some((name, n_alone)) = value.alone.first() else { continue };
        let phrase = evidence.phrase(parameter, &values[value.value_idx as usize]);
        let n_decided = n_alone + value.n_open;
        match runs.last_mut() {
            Some(run) if run.name == name => {
                run.values.push(phrase);
                run.n_alone += n_alone;
                run.n_decided += n_decided;
            }
            _ => runs.push(Run { name, values: vec![phrase], n_alone: *n_alone, n_decided }),
        }
    }
    let clause = |(idx, run): (usize, &Run)| {
        let is = if idx == 0 { " is the fastest" } else { "" };
        let often = match (run.n_alone, run.n_decided) {
            (1, 1) => String::new(),
            (2, 2) => " in both".to_owned(),
            (n, of) if n == of => format!(" in all {of}"),
            (n, of) => format!(" in {n} of {of}"),
        };
        let unit = if idx == 0 && !often.is_empty() { " configurations" } else { "" };
        format!("with {} {}{is}{often}{unit}", joined(&run.values, "or"), run.name)
    };
    let clauses: Vec<String> = runs.iter().enumerate().map(clause).collect();
    let name = match parameter {
        Parameter::Threads => "number of threads".to_owned(),
        other => title(other),
    };
    let rest = match (n_open, leads.iter().filter(|lead| !lead.leaders.is_empty()).count()) {
        (0, _) => String::new(),
        (n, of) => format!(" In {n} of {of} the fastest are not distinguishable."),
    };
    format!("The answer depends on the {name}: {}.{rest}", clauses.join(", "))
}

/// The answer by the structures, each with the values under which alone it leads, where few words tell them.
fn by_structure(evidence: &Evidence, tally: &[(String, Vec<u32>)], of: usize, n_open: usize) -> String {
    let part = |(idx, (name, cells)): (usize, &(String, Vec<u32>))| {
        let is = if idx == 0 { " is the fastest" } else { "" };
        let others: Vec<u32> =
            tally.iter().filter(|(other, _)| other != name).flat_map(|(_, cells)| cells).copied().collect();
        let place = place(evidence, cells, &others);
        let place = if place.is_empty() { place } else { format!(" (only with {place})") };
        format!("{name}{is} in {}{place}", cells.len())
    };
    let parts: Vec<String> = tally.iter().enumerate().map(part).collect();
    let rest = if n_open > 0 { format!("; in {n_open} the fastest are not distinguishable") } else { String::new() };
    format!("The answer depends on the configuration: of {of}, {}{rest}.", joined(&parts, "and"))
}

/// Returns the fewest values, at most three, that all of `cells` have and none of `others` has all of; empty if there
/// are none.
fn place(evidence: &Evidence, cells: &[u32], others: &[u32]) -> String {
    let column = |cell: u32, parameter: Parameter| evidence.plan.cells[cell as usize][parameter as usize];
    let common: Vec<Parameter> = evidence
        .plan
        .varied()
        .into_iter()
        .filter(|&parameter| parameter != Parameter::Structure)
        .filter(|&parameter| cells.iter().all(|&cell| column(cell, parameter) == column(cells[0], parameter)))
        .collect();
    let separates = |chosen: &[Parameter]| {
        let has_all = |&other: &u32| chosen.iter().all(|&one| column(other, one) == column(cells[0], one));
        !others.iter().any(has_all)
    };
    let Some(chosen) = subsets(&common).into_iter().find(|chosen| separates(chosen)) else { return String::new() };
    let cell = evidence.plan.cell(cells[0]);
    let phrases: Vec<String> =
        chosen.iter().map(|&parameter| evidence.phrase(parameter, cell.value(parameter))).collect();
    joined(&phrases, "and")
}

/// Returns the subsets of one to three parameters, small ones first.
fn subsets(parameters: &[Parameter]) -> Vec<Vec<Parameter>> {
    let mut of_size: Vec<Vec<usize>> = vec![Vec::new()];
    let mut all = Vec::new();
    for _ in 0..3 {
        let longer = |subset: &Vec<usize>| {
            let subset = subset.clone();
            let from = subset.last().map_or(0, |last| last + 1);
            (from..parameters.len()).map(move |next| [subset.as_slice(), &[next]].concat())
        };
        of_size = of_size.iter().flat_map(longer).collect();
        all.extend(of_size.iter().map(|subset| subset.iter().map(|&idx| parameters[idx]).collect()));
    }
    all
}

/// Joins phrases as people do: `a, b or c`.
fn joined(phrases: &[String], word: &str) -> String {
    match phrases {
        [] => String::new(),
        [only] => only.clone(),
        [before @ .., last] => format!("{} {word} {last}", before.join(", ")),
    }
}

/// How the leader depends on one parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Dependence {
    pub parameter: Parameter,
    /// For each value of the parameter: how often each label leads alone, and how often none does.
    pub by_value: Vec<ValueLeads>,
    /// Settings of all other parameters in which at least two values have a lone leader.
    pub n_settings: usize,
    /// Those in which the leaders differ.
    pub n_flips: usize,
}

/// Leaders under one value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ValueLeads {
    pub value_idx: u32,
    pub alone: Vec<(String, usize)>,
    pub n_open: usize,
    pub n_incomparable: usize,
}

/// Returns how the leader depends on each varied parameter but the structure.
pub(crate) fn dependences(evidence: &Evidence, leads: &[Lead]) -> Vec<Dependence> {
    let varied = evidence.plan.varied().into_iter().filter(|&parameter| parameter != Parameter::Structure);
    varied.map(|parameter| dependence(evidence, leads, parameter)).collect()
}

fn dependence(evidence: &Evidence, leads: &[Lead], parameter: Parameter) -> Dependence {
    let label = |cell: u32| evidence.plan.cell(cell).structure().label.clone();
    let n_values = u32::try_from(evidence.plan.values[parameter as usize].len()).expect("value indices are u32");
    let empty = |value_idx| ValueLeads { value_idx, alone: Vec::new(), n_open: 0, n_incomparable: 0 };
    let mut by_value: Vec<ValueLeads> = (0..n_values).map(empty).collect();
    let mut settings = std::collections::BTreeMap::<Vec<u32>, Vec<String>>::new();
    for lead in leads {
        let Some(&cell) = lead.cells.first() else { continue };
        let mut key = evidence.plan.cells[cell as usize].to_vec();
        let value = &mut by_value[key[parameter as usize] as usize];
        (key[parameter as usize], key[Parameter::Structure as usize]) = (0, 0);
        match (lead.alone().map(label), lead.leaders.is_empty()) {
            (Some(name), _) => {
                match value.alone.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, count)) => *count += 1,
                    None => value.alone.push((name.clone(), 1)),
                }
                settings.entry(key).or_default().push(name);
            }
            (None, true) => value.n_incomparable += 1,
            (None, false) => value.n_open += 1,
        }
    }
    let several = || settings.values().filter(|names| names.len() > 1);
    let differ = |names: &&Vec<String>| names.iter().collect::<BTreeSet<_>>().len() > 1;
    Dependence { parameter, by_value, n_settings: several().count(), n_flips: several().filter(differ).count() }
}
