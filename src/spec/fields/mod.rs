//! What a spec can say: one table, from which lowering, defaults, `rare explain`, the JSON Schema and the docs derive.
//!
//! Code never repeats a default: it lowers the text of the table.

mod table;

use rare_workloads::reclaim::BATCHES;

use super::{
    value::Parameter,
    words::{self, Word},
};
use crate::units::Quantity;

pub use table::FIELDS;

/// One key of a spec.
#[derive(Debug)]
pub struct Field {
    /// Path of the key, such as `trials.count`.
    pub key: &'static str,
    /// The parameter of cells that it feeds.
    pub parameter: Option<Parameter>,
    /// What its value may be.
    pub kind: Kind,
    /// What holds when the key is left out.
    pub default: Default,
    /// What it means, in sentences.
    pub meaning: &'static str,
    /// Why the default is what it is, in sentences.
    pub reason: &'static str,
    /// What it decides.
    pub class: Class,
}

/// What a value may be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// The format of the file.
    Version,
    /// A file-safe name.
    Name,
    /// A text in Markdown.
    Markdown,
    /// A number with its unit, within inclusive bounds in base units.
    Number {
        /// Which kind of number.
        quantity: Quantity,
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A number or `none`.
    NumberOrNone {
        /// Which kind of number.
        quantity: Quantity,
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A whole number that may be negative, within inclusive bounds.
    Signed {
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
    /// One word of a closed list.
    Word(&'static [Word]),
    /// Words of a closed list.
    Words {
        /// The list.
        words: &'static [Word],
        /// Whether `all` stands for all that are built.
        all: bool,
    },
    /// Names of structures, or entries.
    Structures,
    /// A linked allocator or `{preload: PATH}`.
    Allocator,
    /// A scheme or `{hyaline: {batch: COUNT}}`.
    Reclamation,
    /// A policy or `{cpus: […]}`.
    Pinning,
    /// A count up to this, or `all`.
    Threads {
        /// Largest count.
        max: u64,
    },
    /// Shares by operation, by name.
    Mixes,
    /// `uniform` or `{zipf: EXPONENT}`.
    Distribution,
    /// A word, a percentage or a count of keys.
    Prefill,
    /// A word or a size in keys, up to this.
    RangeQuery {
        /// Largest size.
        max: u64,
    },
    /// Rules over cells.
    Exclude,
    /// Cells to add.
    Include,
    /// Groups of parameters.
    Zip,
    /// Sentences about the data.
    Claims,
    /// Pairs of cells that confirm an explanation.
    Compare,
    /// Keys laid over the spec.
    Quick,
}

/// What holds when a key is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Default {
    /// The key must be there.
    Required,
    /// Nothing.
    Absent,
    /// This YAML, read by the same code as a written value.
    Text(&'static str),
}

/// What a field decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// What is executed: it enters the plan hash.
    Identity,
    /// How the results are judged; why it is left out of the hash.
    Analysis(&'static str),
    /// What is shown; why it is left out of the hash.
    Display(&'static str),
}

impl Class {
    /// Returns the word that listings show.
    pub fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Analysis(_) => "analysis",
            Self::Display(_) => "display",
        }
    }
}

impl Field {
    /// Returns the group of a nested key: `trials` of `trials.count`.
    pub fn group(&self) -> Option<&'static str> {
        self.key.split_once('.').map(|(group, _)| group)
    }

    /// Tells whether a list of values makes an axis.
    pub fn is_axis(&self) -> bool {
        self.parameter.is_some()
    }

    /// Returns the range or the words of the value, for people.
    pub fn range(&self) -> String {
        match self.kind {
            Kind::Version => "`1`".to_owned(),
            Kind::Name => "1 to 64 of `a-z`, `0-9` and `-`, the first no `-`".to_owned(),
            Kind::Markdown => "any text, Markdown".to_owned(),
            Kind::Number { quantity, min, max } => {
                format!("`{}` to `{}`", quantity.write(min), quantity.write(max))
            }
            Kind::NumberOrNone { quantity, min, max } => {
                format!("`none`, or `{}` to `{}`", quantity.write(min), quantity.write(max))
            }
            Kind::Signed { min, max } => format!("`{min}` to `{max}`"),
            Kind::Word(words) => listing(words),
            Kind::Words { words, all } => {
                format!("{}a list of {}", if all { "`all`, `none`, or " } else { "" }, listing(words))
            }
            Kind::Structures => "names of the catalogue, or `{use: NAME, as: LABEL, …}`".to_owned(),
            Kind::Allocator => format!("{}, or `{{preload: /PATH}}`", listing(words::ALLOCATORS)),
            Kind::Reclamation => {
                let (least, most) = (BATCHES.start(), BATCHES.end());
                format!("{}, or `{{hyaline: {{batch: {least}}}}}` to `{most}`", listing(words::RECLAMATION))
            }
            Kind::Pinning => format!("{}, or `{{cpus: [0, 2]}}`", listing(words::PINNING)),
            Kind::Threads { max } => format!("`1` to `{max}`, or `all` CPUs that the machine allows"),
            Kind::Mixes => {
                "`NAME: {insert: 50, remove: 50}`, shares in percent, adding up to 100, one may be `rest`".to_owned()
            }
            Kind::Distribution => "`uniform`, or `{zipf: 0.99}` with an exponent from `0.01` to `5`".to_owned(),
            Kind::Prefill => "`none`, `half`, `full`, a percentage of the key range, or a count of keys".to_owned(),
            Kind::RangeQuery { max } => {
                format!("`none`, or `1` to `{}` keys, also as `{{size: 100}}`", Quantity::Count.write(max))
            }
            Kind::Exclude => {
                "a list of rules `{PARAMETER: VALUE, …}`, with lists, `{over: …}` and `{under: …}`".to_owned()
            }
            Kind::Include => "a list of rules `{PARAMETER: VALUE, …}`".to_owned(),
            Kind::Zip => "a list of groups `[PARAMETER, PARAMETER]`".to_owned(),
            Kind::Claims => "a list of `a > b`, or `{that: a > b, by: 5%, where: {…}}`".to_owned(),
            Kind::Compare => "a list of `{base: {…}, changed: {…}, predicts: COUNTER}`".to_owned(),
            Kind::Quick => "keys of the spec, except `rare`, `name`, `family` and `quick`".to_owned(),
        }
    }

    /// Returns the unit of a number; empty where the value has none.
    pub fn unit(&self) -> &'static str {
        match self.kind {
            Kind::Number { quantity, .. } | Kind::NumberOrNone { quantity, .. } => match quantity {
                Quantity::Duration => "`ns`, `us`, `ms`, `s`, `m`, `h`",
                Quantity::Size => "`B`, `KiB`, `MiB`, `GiB`",
                Quantity::Count => "none, or `k`, `M`, `G`",
                Quantity::Percent | Quantity::Share => "`%`",
                Quantity::Integer | Quantity::Decimal => "",
            },
            _ => "",
        }
    }
}

/// Writes the words of a list that are built.
fn listing(words: &'static [Word]) -> String {
    let names: Vec<String> = words::names(words).map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// Returns the field of a key.
pub fn find(key: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.key == key)
}

/// Returns the field that feeds a parameter.
pub(crate) fn of(parameter: Parameter) -> &'static Field {
    FIELDS.iter().find(|field| field.parameter == Some(parameter)).expect("a test holds a field for each parameter")
}

/// Iterates over the groups of nested keys, in order.
pub(crate) fn groups() -> impl Iterator<Item = &'static str> {
    let mut groups: Vec<&str> = FIELDS.iter().filter_map(Field::group).collect();
    groups.dedup();
    groups.into_iter()
}

/// Returns every field that is left out of the plan hash, with its class and the reason.
pub fn outside_hash() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    FIELDS.iter().filter_map(|field| match field.class {
        Class::Identity => None,
        Class::Analysis(reason) | Class::Display(reason) => Some((field.key, field.class.name(), reason)),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_parameter_has_one_field_under_its_key() {
        for parameter in Parameter::ALL {
            let rows: Vec<_> = FIELDS.iter().filter(|field| field.parameter == Some(parameter)).collect();
            assert_eq!(rows.len(), 1, "{parameter:?}");
            assert_eq!(rows[0].key, parameter.key());
            assert_eq!(rows[0].class, Class::Identity, "{parameter:?} decides what is executed");
        }
    }

    #[test]
    fn each_field_is_documented_and_classified() {
        let keys: BTreeSet<&str> = FIELDS.iter().map(|field| field.key).collect();
        assert_eq!(keys.len(), FIELDS.len(), "a key is listed twice");
        for field in FIELDS {
            for (what, text) in [("meaning", field.meaning), ("reason", field.reason)] {
                assert!(text.len() > 20 && text.ends_with('.'), "{}: {what}", field.key);
            }
            if let Class::Analysis(reason) | Class::Display(reason) = field.class {
                assert!(reason.len() > 10, "{}", field.key);
            }
            assert!(!field.range().is_empty());
        }
    }

    #[test]
    fn groups_are_contiguous() {
        let groups: Vec<&str> = groups().collect();
        let unique: BTreeSet<&str> = groups.iter().copied().collect();
        assert_eq!(groups.len(), unique.len(), "{groups:?}");
    }
}
