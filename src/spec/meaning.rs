//! Judges what single values cannot show: combinations that no cell can be run with.
//!
//! A combination that `exclude` leaves out or `zip` never makes is not judged.

use rare_workloads::structures::{Adt, Insert, Semantics};

use super::{
    lower::{Draft, Lowering, Placed},
    value::{Parameter, Pinning, Prefill, Threads, Value},
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
        self.judge_reclamation(draft);
        if !allow.contains(&"semantics") {
            self.judge_semantics(draft);
        }
        self.judge_prefill(draft);
        self.judge_cpus(draft);
    }

    fn judge_reclamation(&mut self, draft: &Draft) {
        let mut judged = Vec::new();
        for pair in pairs(draft, Parameter::Structure, Parameter::Reclamation) {
            let (Value::Structure(structure), Some(used)) = (&pair.a.value, used_as(draft, pair.a.value)) else {
                continue;
            };
            let fixed = draft.overrides.iter().find(|fixed| {
                !pair.is_b_chosen && fixed.label == structure.label && fixed.parameter == Parameter::Reclamation
            });
            let scheme = fixed.map_or(pair.b, |fixed| Placed { value: &fixed.value.value, at: fixed.value.at.clone() });
            let Value::Reclamation(asked) = scheme.value else { continue };
            let supports = used.structure.drivers.iter().any(|(supported, _)| supported == asked);
            let combination = [(Parameter::Structure, pair.a.value), (Parameter::Reclamation, scheme.value)];
            if supports || judged.contains(&(&structure.label, *asked)) || is_excluded(draft, &combination) {
                continue;
            }
            judged.push((&structure.label, *asked));
            let message = format!("`{}` does not support `reclamation: {}`", structure.label, asked.name());
            let supported = enumerate(used.structure.drivers.iter().map(|(scheme, _)| scheme.name()));
            let diagnostic = Diagnostic::new(&codes::RECLAMATION, used.at.clone(), message);
            let diagnostic = diagnostic.label(format!("supports {supported}")).also(scheme.at, "asked for here");
            let entry = format!("give it a scheme of its own, `{{use: {}, reclamation: …}}`", structure.name);
            let rule = format!("`exclude: [{{structures: {}, reclamation: {}}}]`", structure.label, asked.name());
            self.report(diagnostic.help(format!("{entry}, or leave the pair out by {rule}")));
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
