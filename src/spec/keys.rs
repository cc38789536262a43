//! Which keys a spec has: finds the value of each field, and refuses every other key.

use std::collections::BTreeMap;

use super::{
    fields::{self, Default, FIELDS},
    lower::Lowering,
    suggest,
    tree::{Entry, Node},
    words::enumerate,
};
use crate::diag::{Diagnostic, codes, quote};

/// The value that is written for each field.
pub(crate) type Written<'n> = BTreeMap<&'static str, &'n Node>;

/// Keys that `quick` cannot lay over.
const FIXED: &[&str] = &["rare", "name", "family", "quick"];

/// Where the keys stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// At the top of the spec.
    Spec,
    /// Under `quick`.
    Quick,
}

impl Lowering<'_> {
    /// Finds the value of each field in a mapping.
    pub(crate) fn keys<'n>(&mut self, node: &'n Node, place: Place) -> Written<'n> {
        let mut written = Written::new();
        let Some(entries) = node.entries() else {
            let due = if place == Place::Quick { "keys of the spec, such as `{trials: {count: 3}}`" } else { "keys" };
            self.wrong_shape(node, due);
            return written;
        };
        for entry in entries {
            let text = entry.key.text();
            if place == Place::Quick && FIXED.contains(&text) {
                let message = format!("a quick run cannot change `{text}`");
                let diagnostic = Diagnostic::new(&codes::NOT_IN_QUICK, entry.key.at.clone(), message);
                self.report(diagnostic.help("lay over what makes it shorter: `trials`, `key_ranges`, `threads`"));
            } else if let Some(group) = fields::groups().find(|group| *group == text) {
                self.group_keys(group, &entry.value, &mut written);
            } else if let Some(field) = fields::find(text).filter(|field| field.group().is_none()) {
                written.insert(field.key, &entry.value);
            } else {
                self.unknown_key(entry, None);
            }
        }
        written
    }

    fn group_keys<'n>(&mut self, group: &str, node: &'n Node, written: &mut Written<'n>) {
        let members = || FIELDS.iter().filter(|field| field.group() == Some(group));
        let leaf = |key: &'static str| key.split_once('.').map_or(key, |(_, leaf)| leaf);
        let Some(entries) = node.entries() else {
            let form: Vec<String> = members().map(|field| format!("{}: …", leaf(field.key))).collect();
            self.wrong_shape(node, &format!("`{{{}}}`", form.join(", ")));
            return;
        };
        for entry in entries {
            match members().find(|field| leaf(field.key) == entry.key.text()) {
                Some(field) => drop(written.insert(field.key, &entry.value)),
                None => self.unknown_key(entry, Some(group)),
            }
        }
    }

    fn unknown_key(&mut self, entry: &Entry, group: Option<&str>) {
        let text = entry.key.text();
        let within = group.map_or(String::new(), |group| format!(" in `{group}`"));
        let message = format!("unknown key {}{within}", quote(text));
        let help = match group {
            Some(group) => help_in_group(text, group),
            None => help_at_top(text).or_else(|| self.help_of_structures(text)),
        };
        self.report(Diagnostic::new(&codes::UNKNOWN_KEY, entry.key.at.clone(), message).maybe_help(help));
    }

    /// Says where a parameter that structures have of their own belongs.
    fn help_of_structures(&self, text: &str) -> Option<String> {
        let owners: Vec<&str> = self.catalogue.with_parameter(text).collect();
        let first = owners.first()?;
        let owned = enumerate(owners.iter().copied());
        Some(format!("it is a parameter of {owned}: write `structures: [{{use: {first}, {text}: …}}]`"))
    }

    /// Reports the keys that have no default and are not there.
    pub(crate) fn missing_keys(&mut self, root: &Node, written: &Written<'_>) {
        let first = root.entries().and_then(|entries| entries.first());
        let at = first.map_or(root.at.clone(), |entry| entry.key.at.clone());
        for field in FIELDS.iter().filter(|field| field.default == Default::Required) {
            if !written.contains_key(field.key) {
                let form = match field.key {
                    "rare" => "add `rare: 1`, the format of the file",
                    "name" => "add `name: …`, the folder of the reports",
                    _ => "add `structures: […]`, what is measured",
                };
                let message = format!("the key `{}` is missing", field.key);
                self.report(Diagnostic::new(&codes::MISSING_KEY, at.clone(), message).help(form));
            }
        }
    }
}

fn help_in_group(text: &str, group: &str) -> Option<String> {
    let leaves = FIELDS.iter().filter_map(|field| field.key.split_once('.')).filter(|(of, _)| *of == group);
    let leaves: Vec<&str> = leaves.map(|(_, leaf)| leaf).collect();
    Some(match suggest::closest(text, leaves.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None if fields::find(text).is_some() => {
            format!("`{text}` does not belong under `{group}`; write it on its own")
        }
        None => format!("`{group}` takes {}", enumerate(leaves)),
    })
}

fn help_at_top(text: &str) -> Option<String> {
    if let Some((group, leaf)) = text.split_once('.').filter(|_| fields::find(text).is_some()) {
        return Some(format!("write `{group}: {{{leaf}: …}}`"));
    }
    let nested = FIELDS.iter().filter_map(|field| field.key.split_once('.')).find(|(_, leaf)| *leaf == text);
    if let Some((group, leaf)) = nested {
        return Some(format!("write `{group}: {{{leaf}: …}}`"));
    }
    let tops = FIELDS.iter().filter(|field| field.group().is_none()).map(|field| field.key).chain(fields::groups());
    suggest::closest(text, tops).map(|meant| format!("did you mean `{meant}`?"))
}
