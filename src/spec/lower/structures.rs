//! Structures: a name of the catalogue, or an entry with a label and parameters of its own.

use std::collections::BTreeMap;

use rare_workloads::structures::{ParameterInfo, Structure};

use super::{
    super::{
        fields, suggest,
        tree::{self, Entry, Node},
        value::{Parameter, StructureUse, Value},
        words,
    },
    Draft, Lowering, Override, Placed,
};
use crate::{
    diag::{Diagnostic, Span, codes, quote},
    units::Quantity,
};

/// A structure of the catalogue as the spec uses it.
#[derive(Clone)]
pub(crate) struct Used {
    pub(crate) label: String,
    pub(crate) structure: &'static Structure,
    pub(crate) at: Span,
}

impl std::fmt::Debug for Used {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} as {}", self.structure.info.name, self.label)
    }
}

/// Parameters that an entry may fix for itself, by the key it uses.
const OVERRIDES: &[(&str, Parameter)] = &[
    ("reclamation", Parameter::Reclamation),
    ("object_pool", Parameter::ObjectPool),
    ("padding", Parameter::NodePadding),
];

/// Returns the key by which a structure's entry fixes a parameter for itself, if it can.
pub(crate) fn entry_key(parameter: Parameter) -> Option<&'static str> {
    OVERRIDES.iter().find(|(_, known)| *known == parameter).map(|(key, _)| *key)
}

impl Lowering<'_> {
    /// Lowers the structures of the spec.
    pub(super) fn structures(&mut self, draft: &mut Draft, node: &Node) -> Vec<Placed<Value>> {
        let mut labels: BTreeMap<String, Span> = BTreeMap::new();
        self.each("structures", node, |lowering, item| {
            let (structure, label_at) = match item.entries() {
                Some(entries) => lowering.entry(draft, item, entries)?,
                None => (lowering.plain(draft, item)?, item.at.clone()),
            };
            if let Some(first) = labels.get(&structure.label) {
                let message = format!("the label `{}` is used twice", structure.label);
                let diagnostic = Diagnostic::new(&codes::LABEL_TWICE, label_at, message).label("again here");
                let help = format!("give one of them another label: `{{use: {}, as: …}}`", structure.name);
                lowering.report(diagnostic.also(first.clone(), "first here").help(help));
                return None;
            }
            labels.insert(structure.label.clone(), label_at);
            Some(Value::Structure(structure))
        })
    }

    /// Lowers a bare name.
    fn plain(&mut self, draft: &mut Draft, node: &Node) -> Option<StructureUse> {
        let structure = self.catalogued(node)?;
        let label = structure.info.name.to_owned();
        draft.used.push(Used { label: label.clone(), structure, at: node.at.clone() });
        Some(StructureUse { name: structure.info.name.to_owned(), label, parameters: defaults(structure) })
    }

    /// Lowers `{use: …, as: …, …}`; also returns the place of the label.
    fn entry(&mut self, draft: &mut Draft, node: &Node, entries: &[Entry]) -> Option<(StructureUse, Span)> {
        let Some(name) = node.get("use") else {
            let diagnostic = Diagnostic::new(&codes::MISSING_KEY, node.at.clone(), "the entry names no structure");
            let keyed = entries.iter().map(|entry| entry.key.text()).find(|key| self.catalogue.find(key).is_some());
            self.report(diagnostic.help(format!("write `{{use: {}, …}}`", keyed.unwrap_or("NAME"))));
            return None;
        };
        let structure = self.catalogued(name);
        let (label, label_at) = match node.get("as") {
            Some(label) => (self.label(label), label.at.clone()),
            None => (structure.map(|structure| structure.info.name.to_owned()), name.at.clone()),
        };
        let structure = structure?;
        let parameters = self.parameters_of(draft, structure, label.as_deref(), entries);
        let label = label?;
        draft.used.push(Used { label: label.clone(), structure, at: label_at.clone() });
        Some((StructureUse { name: structure.info.name.to_owned(), label, parameters }, label_at))
    }

    /// Lowers what an entry sets besides its name and label. Without a label nothing can be fixed for it.
    fn parameters_of(
        &mut self,
        draft: &mut Draft,
        structure: &Structure,
        label: Option<&str>,
        entries: &[Entry],
    ) -> BTreeMap<String, u64> {
        let mut parameters = defaults(structure);
        for Entry { key, value } in entries {
            let text = key.text();
            if matches!(text, "use" | "as") {
                continue;
            }
            if let Some((_, parameter)) = OVERRIDES.iter().find(|(known, _)| *known == text) {
                let lowered = self.value(fields::of(*parameter), value);
                draft.overrides.extend(lowered.zip(label).map(|(lowered, label)| Override {
                    label: label.to_owned(),
                    parameter: *parameter,
                    value: Placed { value: lowered, at: value.at.clone() },
                }));
            } else if let Some(info) = structure.info.parameters.iter().find(|info| info.name == text) {
                if let Some(number) = self.own_parameter(structure, info, value) {
                    parameters.insert(text.to_owned(), number);
                }
            } else {
                self.unknown_parameter(structure, text, &key.at);
            }
        }
        parameters
    }

    /// Lowers the value of a parameter of the structure's own, of which an entry has one.
    fn own_parameter(&mut self, structure: &Structure, info: &ParameterInfo, value: &Node) -> Option<u64> {
        let name = info.name;
        if matches!(value.kind, tree::Kind::Sequence(_)) {
            let message = format!("expected one value of `{name}`, found a list");
            let help =
                format!("write an entry for each value: `{{use: {0}, as: {0}-a, {name}: …}}`", structure.info.name);
            self.report(Diagnostic::new(&codes::SHAPE, value.at.clone(), message).help(help));
            return None;
        }
        let n_found = self.found.len();
        let number = self.number(name, value, Quantity::Count, info.range);
        if let [refusal] = &mut self.found[n_found..] {
            *refusal = refusal.clone().help(format!("`rare explain {}` says what it means", structure.info.name));
        }
        number
    }

    fn unknown_parameter(&mut self, structure: &Structure, text: &str, at: &Span) {
        let own = structure.info.parameters.iter().map(|info| info.name);
        let known: Vec<&str> =
            ["use", "as"].into_iter().chain(OVERRIDES.iter().map(|(key, _)| *key)).chain(own).collect();
        let message = format!("`{}` has no parameter {}", structure.info.name, quote(text));
        let help = match suggest::closest(text, known.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if fields::find(text).is_some() => {
                format!("write `{text}` beside `structures`; it is the same for all")
            }
            None => format!("an entry takes {}", words::enumerate(known)),
        };
        self.report(Diagnostic::new(&codes::STRUCTURE_PARAMETER, at.clone(), message).help(help));
    }

    /// Returns the structure that a node names.
    fn catalogued(&mut self, node: &Node) -> Option<&'static Structure> {
        if matches!(node.kind, tree::Kind::Mapping(_) | tree::Kind::Sequence(_)) {
            self.wrong_shape(node, "the name of a structure");
            return None;
        }
        let name = self.scalar(node, "the name of a structure")?.text.as_str();
        if let Some(structure) = self.catalogue.find(name) {
            return Some(structure);
        }
        let built = || self.catalogue.structures.iter().map(|structure| structure.info.name);
        if self.catalogue.planned.contains(&name) {
            let message = format!("the structure `{name}` is not built yet");
            let help = format!("this version has {}", words::enumerate(built()));
            let diagnostic = Diagnostic::new(&codes::NOT_BUILT, node.at.clone(), message);
            self.report(diagnostic.label("known, but not in this version").help(help));
            return None;
        }
        let diagnostic =
            Diagnostic::new(&codes::UNKNOWN_STRUCTURE, node.at.clone(), format!("no structure {}", quote(name)));
        self.report(diagnostic.label("not in the catalogue").help(self.meant_or_all(name)));
        None
    }

    /// Says which structures may be meant by a name that none has: by words of their statements, or by spelling.
    fn meant_or_all(&self, name: &str) -> String {
        let built = || self.catalogue.structures.iter().map(|structure| structure.info.name);
        let described: Vec<&str> = self.catalogue.described(name).collect();
        match suggest::closest(name, built().chain(self.catalogue.planned.iter().copied())) {
            _ if !described.is_empty() => format!("did you mean {}?", words::alternatives(described)),
            Some(meant) => format!("did you mean `{meant}`?"),
            None => {
                let all = words::enumerate(built());
                format!("this version has {all}; `rare list structures` says what each is")
            }
        }
    }
}

/// Returns every parameter of a structure at its default.
fn defaults(structure: &Structure) -> BTreeMap<String, u64> {
    structure.info.parameters.iter().map(|info| (info.name.to_owned(), info.default)).collect()
}
