//! Rules over cells: `exclude`, `include`, and the scope of a claim.

use super::{
    super::{
        fields::{self, Field, Kind},
        model::{Condition, Inclusion, Rule},
        suggest,
        tree::{self, Entry, Node},
        value::{Parameter, RangeQuery, Threads, Value},
        words::enumerate,
    },
    Draft, Lowering,
    values::number_value,
};
use crate::{
    diag::{Diagnostic, codes, quote},
    units::Quantity,
};

/// Values named in a message at most; the rest is counted.
const MAX_LISTED: usize = 8;

impl Condition {
    /// Tells whether a value of a cell meets the condition.
    ///
    /// The thread count `all` is above and below nothing: it has no number before the machine is known.
    pub(crate) fn is_met_by(&self, value: &Value) -> bool {
        match self {
            Self::Is(expected) => expected == value,
            Self::Named(name) => {
                matches!(value, Value::Structure(structure) if structure.label == *name || structure.name == *name)
            }
            Self::Over(bound) => number_of(value).is_some_and(|number| number > *bound),
            Self::Under(bound) => number_of(value).is_some_and(|number| number < *bound),
        }
    }
}

/// Returns a value as a number in the base unit of its parameter, if it is one.
fn number_of(value: &Value) -> Option<u64> {
    match value {
        Value::Threads(Threads::Count(count)) => Some(u64::from(*count)),
        Value::Count(number) | Value::RangeQuery(RangeQuery::Keys(number)) => Some(*number),
        Value::Duration(duration) => Some(duration.0),
        Value::Bytes(bytes) => Some(bytes.0),
        _ => None,
    }
}

impl Lowering<'_> {
    /// Lowers `exclude`. A rule that the `quick` block leaves without values is dropped.
    pub(crate) fn exclude(&mut self, draft: &Draft, node: &Node) -> Vec<Rule> {
        let rules = self.listed(node, "a list of rules, such as `[{threads: 1}]`");
        let rules: Vec<Rule> = rules.iter().filter_map(|rule| self.rule(draft, rule, &[])).collect();
        rules.into_iter().filter(|rule| self.whole.is_none() || is_possible(draft, rule)).collect()
    }

    /// Lowers `include`. A rule about structures that the `quick` block leaves out is dropped.
    pub(crate) fn include(&mut self, draft: &Draft, node: &Node) -> Vec<Inclusion> {
        let rules = self.listed(node, "a list of rules, such as `[{threads: 64}]`");
        rules.iter().filter_map(|rule| self.inclusion(draft, rule)).collect()
    }

    pub(super) fn listed<'n>(&mut self, node: &'n Node, due: &str) -> &'n [Node] {
        match &node.kind {
            tree::Kind::Sequence(rules) => rules,
            // A single rule without brackets can mean only one thing.
            tree::Kind::Mapping(_) => std::slice::from_ref(node),
            _ => {
                self.wrong_shape(node, due);
                &[]
            }
        }
    }

    /// Lowers one rule. `forbidden` parameters have no meaning in this place.
    pub(super) fn rule(&mut self, draft: &Draft, node: &Node, forbidden: &[(Parameter, &str)]) -> Option<Rule> {
        let entries = self.conditions_of(node)?;
        let n_found = self.found.len();
        let mut conditions = Vec::new();
        for Entry { key, value } in entries {
            let Some(parameter) = self.parameter(key.text(), &key.at) else { continue };
            if let Some((_, help)) = forbidden.iter().find(|(forbidden, _)| *forbidden == parameter) {
                let message = format!("`{}` cannot be part of this rule", parameter.key());
                self.report(Diagnostic::new(&codes::UNKNOWN_KEY, key.at.clone(), message).help(*help));
                continue;
            }
            let field = fields::of(parameter);
            let alternatives = self.each(field.key, value, |lowering, item| lowering.condition(draft, field, item));
            let alternatives: Vec<Condition> = alternatives.into_iter().map(|placed| placed.value).collect();
            conditions.push((parameter, alternatives));
        }
        // In the order of parameters, so that the order of keys makes no difference.
        conditions.sort_by_key(|(parameter, _)| *parameter);
        (self.found.len() == n_found).then(|| Rule { at: node.at.clone(), conditions })
    }

    fn conditions_of<'n>(&mut self, node: &'n Node) -> Option<&'n [Entry]> {
        let Some(entries) = node.entries() else {
            self.wrong_shape(node, "a rule, such as `{threads: 1}`");
            return None;
        };
        if entries.is_empty() {
            let diagnostic = Diagnostic::new(&codes::RULE_EMPTY, node.at.clone(), "the rule names no parameter");
            self.report(diagnostic.label("matches every cell").help("write a rule such as `{threads: 1}`"));
            return None;
        }
        Some(entries)
    }

    fn condition(&mut self, draft: &Draft, field: &'static Field, node: &Node) -> Option<Condition> {
        let parameter = field.parameter.expect("rules name parameters");
        let condition = match node.entries() {
            Some(entries) if entries.iter().any(|entry| matches!(entry.key.text(), "over" | "under")) => {
                self.bound(field, node, entries)?
            }
            _ if parameter == Parameter::Structure => {
                Condition::Named(self.scalar(node, "the label of a structure")?.text.clone())
            }
            _ if parameter == Parameter::Mix => Condition::Is(Value::Mix(self.named_mix(draft, node)?)),
            _ => Condition::Is(self.value(field, node)?),
        };
        let is_known = |draft: &Draft| draft.known(parameter).any(|value| condition.is_met_by(value));
        if is_known(draft) || !draft.axis(parameter).complete || self.whole.is_some_and(is_known) {
            return Some(condition);
        }
        self.unknown_value(draft, field, node, &condition);
        None
    }

    /// Lowers `{over: …}` or `{under: …}`.
    fn bound(&mut self, field: &'static Field, node: &Node, entries: &[Entry]) -> Option<Condition> {
        let Some(quantity) = quantity_of(field) else {
            let message = format!("`{}` has no order to compare in", field.key);
            let diagnostic = Diagnostic::new(&codes::BOUND, node.at.clone(), message);
            self.report(diagnostic.help("name its values, alone or in a list"));
            return None;
        };
        let [Entry { key, value }] = entries else {
            let message = "a condition is one bound, `over` or `under`";
            let diagnostic = Diagnostic::new(&codes::BOUND, node.at.clone(), message);
            self.report(diagnostic.help("name the values between two bounds in a list"));
            return None;
        };
        let bound = self.number(field.key, value, quantity, (0, u64::MAX))?;
        Some(if key.text() == "over" { Condition::Over(bound) } else { Condition::Under(bound) })
    }

    fn unknown_value(&mut self, draft: &Draft, field: &Field, node: &Node, condition: &Condition) {
        let parameter = field.parameter.expect("rules name parameters");
        let mut known: Vec<String> = Vec::new();
        for value in draft.known(parameter).map(Value::to_string) {
            if !known.contains(&value) {
                known.push(value);
            }
        }
        let words = |value: u64| match quantity_of(field) {
            Some(quantity) => number_value(quantity, value).to_string(),
            None => value.to_string(),
        };
        let message = match condition {
            Condition::Over(bound) => format!("no value of `{}` is over `{}`", field.key, words(*bound)),
            Condition::Under(bound) => format!("no value of `{}` is under `{}`", field.key, words(*bound)),
            Condition::Is(value) => {
                format!("{} is not among the `{}` of this spec", quote(&value.to_string()), field.key)
            }
            Condition::Named(name) => format!("{} is not among the `structures` of this spec", quote(name)),
        };
        let meant = match condition {
            Condition::Named(name) => suggest::closest(name, draft.labels()),
            _ => None,
        };
        let diagnostic = Diagnostic::new(&codes::RULE_VALUE, node.at.clone(), message);
        let help = match meant {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if known.len() > MAX_LISTED => format!("`{}` has {} other values", field.key, known.len()),
            None => format!("`{}` has {}", field.key, enumerate(known.iter().map(String::as_str))),
        };
        self.report(diagnostic.label("matches no cell").help(help));
    }

    /// Returns the mix that a name stands for.
    fn named_mix(&mut self, draft: &Draft, node: &Node) -> Option<rare_workloads::protocol::Mix> {
        let name = &self.scalar(node, "the name of a mix")?.text;
        let named = |draft: &Draft| draft.mix_names.iter().find(|(_, known)| known == name).map(|(mix, _)| *mix);
        let mix = named(draft).or_else(|| self.whole.and_then(named));
        if mix.is_none() && draft.axis(Parameter::Mix).complete {
            let names = || draft.mix_names.iter().map(|(_, name)| name.as_str());
            let message = format!("{} is not among the `mixes` of this spec", quote(name));
            let diagnostic = Diagnostic::new(&codes::RULE_VALUE, node.at.clone(), message);
            let help = match suggest::closest(name, names()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None if names().next().is_none() => "give the mixes names to speak of them".to_owned(),
                None => format!("`mixes` has {}", enumerate(names())),
            };
            self.report(diagnostic.help(help));
        }
        mix
    }

    fn inclusion(&mut self, draft: &Draft, node: &Node) -> Option<Inclusion> {
        let entries = self.conditions_of(node)?;
        let n_found = self.found.len();
        let mut is_left_out = false;
        let mut values = Vec::new();
        for Entry { key, value } in entries {
            let Some(parameter) = self.parameter(key.text(), &key.at) else { continue };
            let field = fields::of(parameter);
            let added = self.each(field.key, value, |lowering, item| match field.kind {
                Kind::Structures => lowering.included_structure(draft, item, &mut is_left_out),
                Kind::Mixes => match item.entries() {
                    Some(shares) => lowering.mix(item, shares).map(Value::Mix),
                    None => lowering.named_mix(draft, item).map(Value::Mix),
                },
                _ => lowering.value(field, item),
            });
            self.refuse_repetitions(field, &added);
            values.push((parameter, added.into_iter().map(|placed| placed.value).collect()));
        }
        values.sort_by_key(|(parameter, _)| *parameter);
        let inclusion = Inclusion { at: node.at.clone(), values };
        (self.found.len() == n_found && !is_left_out).then_some(inclusion)
    }

    fn included_structure(&mut self, draft: &Draft, node: &Node, is_left_out: &mut bool) -> Option<Value> {
        let label = &self.scalar(node, "the label of a structure")?.text;
        if let Some(structure) = draft.labelled(label) {
            return Some(Value::Structure(structure.clone()));
        }
        if self.whole.is_some_and(|whole| whole.labelled(label).is_some()) {
            *is_left_out = true;
            return None;
        }
        if draft.axis(Parameter::Structure).complete {
            let condition = Condition::Named(label.clone());
            self.unknown_value(draft, fields::of(Parameter::Structure), node, &condition);
        }
        None
    }
}

/// Tells whether each parameter of a rule has a value that meets a condition.
pub(super) fn is_possible(draft: &Draft, rule: &Rule) -> bool {
    rule.conditions.iter().all(|(parameter, conditions)| {
        draft.known(*parameter).any(|value| conditions.iter().any(|condition| condition.is_met_by(value)))
    })
}

/// Returns the kind of number that bounds of a parameter are.
fn quantity_of(field: &Field) -> Option<Quantity> {
    match field.kind {
        Kind::Number { quantity, .. } => Some(quantity),
        Kind::Threads { .. } | Kind::RangeQuery { .. } => Some(Quantity::Count),
        _ => None,
    }
}
