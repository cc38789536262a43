//! Judges what single values cannot show: combinations that no cell can be run with.
//!
//! A combination that `exclude` leaves out or `zip` never makes is not judged.

use rare_workloads::structures::{Adt, Insert, Memory, Semantics, Structure};

use super::{
    lower::{Draft, Lowering, Placed, entry_key},
    value::{Parameter, Pinning, Prefill, RangeQuery, Threads, Value},
    words::enumerate,
};
use crate::{
    diag::{Diagnostic, codes},
    units,
};

/// Combinations beyond these are not looked at: the plan of such a spec is over every limit and is refused with its
/// count.
const MAX_PAIRS: usize = 10_000_000;

impl Lowering<'_> {
    /// Judges the combinations of a draft.
    pub(crate) fn judge(&mut self, draft: &Draft, allow: &[&str]) {
        for parameter in [Parameter::Reclamation, Parameter::ObjectPool, Parameter::NodePadding] {
            self.judge_ability(draft, parameter);
        }
        if !allow.contains(&"semantics") {
            self.judge_semantics(draft);
        }
        self.judge_prefill(draft);
        self.judge_cpus(draft);
        self.judge_range_structures(draft);
        self.judge_range_sizes(draft);
    }

    /// Judges whether each structure can do what a parameter asks of it.
    fn judge_ability(&mut self, draft: &Draft, parameter: Parameter) {
        let mut judged = Vec::new();
        for pair in pairs(draft, Parameter::Structure, parameter) {
            let (Value::Structure(structure), Some(used)) = (&pair.a.value, used_as(draft, pair.a.value)) else {
                continue;
            };
            let fixed = draft
                .overrides
                .iter()
                .find(|fixed| !pair.is_b_chosen && fixed.label == structure.label && fixed.parameter == parameter);
            let asked = fixed.map_or(pair.b, |fixed| Placed { value: &fixed.value.value, at: fixed.value.at.clone() });
            let Some(ability) = shortfall(used.structure, asked.value) else { continue };
            let combination = [(Parameter::Structure, pair.a.value), (parameter, asked.value)];
            if judged.contains(&(&structure.label, asked.value)) || is_excluded(draft, &combination) {
                continue;
            }
            judged.push((&structure.label, asked.value));
            let word = match asked.value {
                Value::Reclamation(scheme) => scheme.name().to_owned(),
                other => other.to_string(),
            };
            let message = format!("`{}` does not support `{}: {word}`", structure.label, parameter.key());
            let code = if parameter == Parameter::Reclamation { &codes::RECLAMATION } else { &codes::NODES };
            let diagnostic = Diagnostic::new(code, used.at.clone(), message).label(ability);
            let key = entry_key(parameter).expect("an entry can fix whatever is judged here");
            let entry = format!("give it one of its own, `{{use: {}, {key}: …}}`", structure.name);
            let rule = format!("`exclude: [{{structures: {}, {}: {word}}}]`", structure.label, parameter.key());
            self.report(
                diagnostic.also(asked.at, "asked for here").help(format!("{entry}, or leave the pair out by {rule}")),
            );
        }
    }

    fn judge_semantics(&mut self, draft: &Draft) {
        let Some((first, others)) = draft.used.split_first() else { return };
        let meaning = |semantics: &Semantics| describe(semantics);
        for other in others {
            let (a, b) = (&first.structure.info.semantics, &other.structure.info.semantics);
            if a == b {
                continue;
            }
            let message = format!("`{}` and `{}` do not mean the same", first.label, other.label);
            let diagnostic = Diagnostic::new(&codes::SEMANTICS, other.at.clone(), message);
            let diagnostic = diagnostic.label(meaning(b)).also(first.at.clone(), meaning(a));
            self.report(diagnostic.help("if the comparison is wanted, write `allow: [semantics]`"));
            return;
        }
    }

    fn judge_prefill(&mut self, draft: &Draft) {
        let mut judged = Vec::new();
        for pair in pairs(draft, Parameter::Prefill, Parameter::KeyRange) {
            let (Value::Prefill(Prefill::Keys(keys)), Value::Count(key_range)) = (pair.a.value, pair.b.value) else {
                continue;
            };
            let combination = [(Parameter::Prefill, pair.a.value), (Parameter::KeyRange, pair.b.value)];
            if keys <= key_range || judged.contains(keys) || is_excluded(draft, &combination) {
                continue;
            }
            judged.push(*keys);
            let (keys, key_range) = (units::count(*keys), units::count(*key_range));
            let message = format!("a prefill of `{keys}` keys does not fit a key range of `{key_range}`");
            let diagnostic =
                Diagnostic::new(&codes::PREFILL, pair.a.at.clone(), message).label("more keys than there are");
            let diagnostic = diagnostic.also(pair.b.at.clone(), "the key range");
            self.report(diagnostic.help("write a share, such as `half`, which follows the key range"));
        }
    }

    fn judge_cpus(&mut self, draft: &Draft) {
        let mut judged = Vec::new();
        for pair in pairs(draft, Parameter::Pinning, Parameter::Threads) {
            let (Value::Pinning(Pinning::Cpus(cpus)), Value::Threads(Threads::Count(threads))) =
                (pair.a.value, pair.b.value)
            else {
                continue;
            };
            let combination = [(Parameter::Pinning, pair.a.value), (Parameter::Threads, pair.b.value)];
            let is_enough = cpus.len() >= *threads as usize;
            if is_enough || judged.contains(&cpus) || is_excluded(draft, &combination) {
                continue;
            }
            judged.push(cpus);
            let n_cpus = if cpus.len() == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", cpus.len()) };
            let message = format!("{n_cpus} for {threads} threads");
            let diagnostic = Diagnostic::new(&codes::FEW_CPUS, pair.a.at.clone(), message);
            let diagnostic =
                diagnostic.label(format!("lists {n_cpus}")).also(pair.b.at.clone(), "asks for more threads");
            self.report(diagnostic.help("list a CPU for each thread, or exclude the combination"));
        }
    }

    fn judge_range_structures(&mut self, draft: &Draft) {
        let mut judged = Vec::new();
        for pair in pairs(draft, Parameter::Structure, Parameter::Mix) {
            let (Value::Structure(structure), Some(used)) = (&pair.a.value, used_as(draft, pair.a.value)) else {
                continue;
            };
            let combination = [(Parameter::Structure, pair.a.value), (Parameter::Mix, pair.b.value)];
            let is_answered = !has_ranges(pair.b.value) || used.structure.has_range_query();
            if is_answered || judged.contains(&&structure.label) || is_excluded(draft, &combination) {
                continue;
            }
            judged.push(&structure.label);
            let message = format!("`{}` has no range query", structure.label);
            let diagnostic = Diagnostic::new(&codes::RANGE_QUERY, used.at.clone(), message);
            let diagnostic =
                diagnostic.label("has none that is linearizable").also(pair.b.at, "asks for range queries");
            let with = self.catalogue.structures.iter().filter(|structure| structure.has_range_query());
            let with = enumerate(with.map(|structure| structure.info.name));
            self.report(diagnostic.help(format!("leave it out, or take one that has: {with}")));
        }
    }

    /// A mix with a share of range queries needs their size, and a size that share.
    fn judge_range_sizes(&mut self, draft: &Draft) {
        let pairs = pairs(draft, Parameter::RangeQuery, Parameter::Mix).into_iter();
        let (asking, silent): (Vec<_>, Vec<_>) = pairs
            .filter(|pair| {
                !is_excluded(draft, &[(Parameter::RangeQuery, pair.a.value), (Parameter::Mix, pair.b.value)])
            })
            .partition(|pair| has_ranges(pair.b.value));
        let is_none = |value: &Value| *value == Value::RangeQuery(RangeQuery::None);
        if let Some(pair) = asking.iter().find(|pair| is_none(pair.a.value)) {
            let diagnostic = Diagnostic::new(&codes::RANGE_SIZE, pair.b.at.clone(), "the range queries have no size");
            // The default has no place.
            let written = Some(pair.a.at.clone()).filter(|at| !at.is_empty());
            let diagnostic = diagnostic.label("asks for range queries");
            let diagnostic = match written {
                Some(at) => diagnostic.also(at, "asks for none"),
                None => diagnostic,
            };
            self.report(diagnostic.help("write their size in keys, such as `range_query: 100`"));
        }
        // What was refused of the mixes may have had the share.
        if !draft.axis(Parameter::Mix).complete {
            return;
        }
        for (idx, pair) in silent.iter().enumerate().filter(|(_, pair)| !is_none(pair.a.value)) {
            let has_user = asking.iter().any(|other| other.a.value == pair.a.value);
            let twin =
                silent[..idx].iter().find(|other| other.b.value == pair.b.value && other.a.value != pair.a.value);
            let (message, note) = match twin {
                _ if !has_user => {
                    ("no operation is a range query of this size", (pair.b.at.clone(), "no share of `range`"))
                }
                Some(twin) => (
                    "a mix without range queries is measured once for each size",
                    (twin.a.at.clone(), "another size for the same mix"),
                ),
                None => continue,
            };
            let diagnostic = Diagnostic::new(&codes::RANGE_UNUSED, pair.a.at.clone(), message);
            let diagnostic = diagnostic.also(note.0, note.1);
            self.report(diagnostic.help("give a mix a share of `range`, or pair sizes and mixes with `zip`"));
            return;
        }
    }
}

fn has_ranges(mix: &Value) -> bool {
    matches!(mix, Value::Mix(mix) if mix.range > 0)
}

/// Values of two parameters that some cell may have together.
struct Pair<'d> {
    a: Placed<&'d Value>,
    b: Placed<&'d Value>,
    /// Whether an `include` rule chose `b`, which then overrides what a structure entry fixes.
    is_b_chosen: bool,
}

fn pairs(draft: &Draft, a: Parameter, b: Parameter) -> Vec<Pair<'_>> {
    let axis = |parameter| -> Vec<Placed<&Value>> {
        let values = draft.axis(parameter).values.iter();
        values.map(|placed| Placed { value: &placed.value, at: placed.at.clone() }).collect()
    };
    let linked = draft.zip.iter().any(|group| group.value.contains(&a) && group.value.contains(&b));
    let mut found = Vec::new();
    cross(&mut found, axis(a), axis(b), linked, false);
    for inclusion in &draft.include {
        let chosen = |parameter| {
            let values = inclusion.values.iter().find(|(chosen, _)| *chosen == parameter)?;
            Some(values.1.iter().map(|value| Placed { value, at: inclusion.at.clone() }).collect::<Vec<_>>())
        };
        let (chosen_a, chosen_b) = (chosen(a), chosen(b));
        if chosen_a.is_none() && chosen_b.is_none() {
            continue;
        }
        let is_b_chosen = chosen_b.is_some();
        cross(&mut found, chosen_a.unwrap_or_else(|| axis(a)), chosen_b.unwrap_or_else(|| axis(b)), false, is_b_chosen);
    }
    found
}

fn cross<'d>(
    found: &mut Vec<Pair<'d>>,
    a: Vec<Placed<&'d Value>>,
    b: Vec<Placed<&'d Value>>,
    linked: bool,
    is_b_chosen: bool,
) {
    if linked {
        found.extend(a.into_iter().zip(b).map(|(a, b)| Pair { a, b, is_b_chosen }));
    } else if a.len().saturating_mul(b.len()) <= MAX_PAIRS {
        for a in &a {
            found.extend(b.iter().map(|b| Pair { a: a.clone(), b: b.clone(), is_b_chosen }));
        }
    }
}

/// Tells whether a rule leaves out every cell with these values, whatever the others are.
fn is_excluded(draft: &Draft, values: &[(Parameter, &Value)]) -> bool {
    draft.exclude.iter().any(|rule| {
        rule.conditions.iter().all(|(parameter, conditions)| {
            let value = values.iter().find(|(known, _)| known == parameter).map(|(_, value)| *value);
            value.is_some_and(|value| conditions.iter().any(|condition| condition.is_met_by(value)))
        })
    })
}

/// Says what a structure can do instead of what is asked of it; `None` if it can do that.
fn shortfall(structure: &Structure, asked: &Value) -> Option<String> {
    match asked {
        Value::Reclamation(asked) => {
            let supported = || enumerate(structure.drivers.iter().map(|(scheme, _)| scheme.name()));
            structure.driver(*asked).is_none().then(|| format!("supports {}", supported()))
        }
        Value::Word("none") | Value::Count(0) => None,
        _ => (structure.info.memory == Memory::Own).then(|| "manages its own memory".to_owned()),
    }
}

fn used_as<'d>(draft: &'d Draft, value: &Value) -> Option<&'d super::lower::Used> {
    let Value::Structure(structure) = value else { return None };
    draft.used.iter().find(|used| used.label == structure.label)
}

/// Says in words what operations mean.
pub fn describe(semantics: &Semantics) -> String {
    let adt = match semantics.adt {
        Adt::OrderedDictionary => "an ordered dictionary",
        Adt::HashDictionary => "an unordered dictionary",
        Adt::Nothing => return "stores nothing".to_owned(),
    };
    let insert = match semantics.insert {
        Insert::IfAbsent => "insert-if-absent",
        Insert::Nothing => "an insert that does nothing",
    };
    format!("{adt} with {insert}, {}-bit keys, {}-bit values", semantics.key_bits, semantics.value_bits)
}
