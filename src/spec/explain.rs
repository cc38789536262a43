//! `rare explain`: what a code, a key or one of its values means.

use super::fields::{self, Class, Default, FIELDS, Field, Kind};
use crate::{
    diag::{
        self,
        codes::{self, Code},
    },
    spec::words::{self, Word},
};

/// Returns what a code (`E0207`), a key (`trials.length`, `trials`, `length`) or a value that is a word (`epoch`) means, or
/// `None` if it is none of them.
pub fn explain(term: &str) -> Option<String> {
    let term = term.trim().trim_matches('`').trim_end_matches(':');
    if let Some(code) = codes::find(term) {
        return Some(explain_code(code));
    }
    if let Some(field) = fields::find(term) {
        return Some(explain_field(field));
    }
    let members = FIELDS.iter().filter(|field| {
        field.key.split_once('.').is_some_and(|(group, leaf)| group == term || leaf == term)
            || field.parameter.is_some_and(|parameter| parameter.name() == term)
    });
    let members: Vec<String> = members.map(explain_field).collect();
    let texts = if members.is_empty() { explain_word(term) } else { members };
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// Explains a value such as `epoch` under each key that takes it.
fn explain_word(term: &str) -> Vec<String> {
    let meant = |field: &Field| {
        let word = words::find(words_of(field), term)?;
        let text = format!("`{term}` as a value of `{}`: {}", field.key, word.meaning);
        Some(wrap(&text) + "\n")
    };
    FIELDS.iter().filter_map(meant).collect()
}

fn explain_code(code: &Code) -> String {
    let mut text = format!("{}: {}\n\n{}\n", code.id, code.title, wrap(code.explanation));
    if !code.wrong.is_empty() {
        text += &format!("\nwrong:\n\n{}\nright:\n\n{}", indent(code.wrong), indent(code.right));
    }
    text
}

fn explain_field(field: &Field) -> String {
    let default = match field.default {
        Default::Required => "none: the key is required".to_owned(),
        Default::Absent => "nothing".to_owned(),
        Default::Text(text) => format!("`{text}`"),
    };
    let mut lines = vec![format!("{}\n\n{}\n", field.key, wrap(field.meaning))];
    let axis = match field.kind {
        Kind::Mixes => "; several make it an axis",
        _ if field.is_axis() => "; a list makes it an axis",
        _ => "",
    };
    lines.push(format!("values:  {}{axis}", field.range()));
    if !field.unit().is_empty() {
        lines.push(format!("unit:    {}", field.unit()));
    }
    lines.push(format!("default: {default}"));
    lines.push(format!("reason:  {}", field.reason));
    lines.push(match field.class {
        Class::Identity => "class:   identity: it is part of the plan hash".to_owned(),
        Class::Analysis(reason) | Class::Display(reason) => {
            format!("class:   {}: it is not part of the plan hash, because {reason}", field.class.name())
        }
    });
    let words = words_of(field);
    if !words.is_empty() {
        let width = words.iter().map(|word| word.name.len()).max().unwrap_or(0);
        lines.push(String::new());
        lines.extend(words.iter().map(|word| format!("  {:width$}  {}", word.name, word.meaning)));
    }
    lines.join("\n") + "\n"
}

/// Returns the words of a field, each of which has a meaning.
fn words_of(field: &Field) -> &'static [Word] {
    match field.kind {
        Kind::Word(words) | Kind::Words { words, .. } => words,
        Kind::Allocator => words::ALLOCATORS,
        Kind::Reclamation => words::RECLAMATION,
        Kind::Pinning => words::PINNING,
        Kind::Prefill => words::PREFILLS,
        Kind::RangeQuery { .. } => words::RANGE_QUERIES,
        Kind::Distribution => words::DISTRIBUTIONS,
        _ => &[],
    }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// Breaks a paragraph at 80 columns.
fn wrap(text: &str) -> String {
    diag::wrap(text, 80).join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explains_codes_keys_groups_and_leaves() {
        assert!(explain("e0207").unwrap().contains("100 %"));
        let length = explain("trials.length").unwrap();
        for part in ["`1ms` to `24h`", "default: `3s`", "reason:", "identity", "unit:"] {
            assert!(length.contains(part), "{part} in {length}");
        }
        assert_eq!(explain("length").unwrap(), length);
        assert!(explain("trials").unwrap().contains("trials.count"));
        assert!(explain("question").unwrap().contains("not part of the plan hash"));
        assert!(explain("epoch").unwrap().contains("`epoch` as a value of `reclamation`: "));
        assert_eq!(explain("nonsense"), None);
        assert_eq!(explain("E9999"), None);
    }

    #[test]
    fn every_field_and_every_code_is_explained() {
        assert!(FIELDS.iter().all(|field| explain(field.key).is_some()));
        assert!(codes::all().all(|code| explain(code.id).is_some()));
    }
}
