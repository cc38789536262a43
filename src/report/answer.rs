//! Who is fastest where, by the comparisons alone.

use std::collections::BTreeSet;

use crate::{
    spec::value::Parameter,
    stats::{Answer, Comparison, validity},
    verdict::Evidence,
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
    let label = |cell: u32| evidence.plan.cell(cell).structure().label.clone();
    let mut tally: Vec<(String, usize)> = Vec::new();
    for name in decided.iter().filter_map(|lead| lead.alone()).map(label) {
        match tally.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => tally.push((name, 1)),
        }
    }
    tally.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let n_open = decided.iter().filter(|lead| lead.leaders.len() > 1).count();
    let of = decided.len();
    match tally.as_slice() {
        [] if of == 1 => "The fastest structures are not distinguishable.".to_owned(),
        [] => format!("In none of {of} configurations is one structure distinguishably faster than all others."),
        [(name, n)] if *n == of && of == 1 => format!("{name} is the fastest."),
        [(name, n)] if *n == of => format!("{name} is the fastest in all {of} configurations."),
        [(name, n)] => format!("{name} is the fastest in {n} of {of} configurations; {}.", open(n_open)),
        several => {
            let parts: Vec<String> = several.iter().map(|(name, n)| format!("{name} is the fastest in {n}")).collect();
            let rest = if n_open > 0 { format!("; {}", open(n_open)) } else { String::new() };
            format!("The answer depends on the configuration: of {of}, {}{rest}.", parts.join(", "))
        }
    }
}

fn open(n_open: usize) -> String {
    format!("in {n_open} the fastest are not distinguishable")
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
