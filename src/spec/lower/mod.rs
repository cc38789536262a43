//! From the tree of a spec to typed values, one function a kind of value.
//!
//! Every function reports what it refuses and returns `None`; none of them stops the others, so that all mistakes of a
//! spec are found in one go.

mod claims;
mod compare;
mod mixes;
mod rules;
mod scalars;
mod structures;
mod values;
mod zip;

use rare_workloads::protocol::Mix;

use super::{
    Catalogue,
    fields::{self, Field, Kind},
    model::{Claim, Compare, Inclusion, Rule},
    tree::{self, Node},
    value::{Parameter, StructureUse, Value},
    words::{self, Word},
};
use crate::diag::{Diagnostic, Span, codes, quote};

pub(crate) use mixes::OPERATIONS;
pub(crate) use structures::{Used, entry_key};

/// Something with the place where it is written; an empty place means that no one wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed<T> {
    pub(crate) value: T,
    pub(crate) at: Span,
}

/// The values of one parameter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Axis {
    pub(crate) values: Vec<Placed<Value>>,
    /// Whether nothing of it was refused. Of an incomplete axis it cannot be said what is missing.
    pub(crate) complete: bool,
}

/// A parameter that a structure entry fixes for itself.
#[derive(Clone, Debug)]
pub(crate) struct Override {
    pub(crate) label: String,
    pub(crate) parameter: Parameter,
    pub(crate) value: Placed<Value>,
}

/// What has been lowered so far; later parts refer to earlier ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    pub(crate) axes: [Axis; Parameter::COUNT],
    pub(crate) used: Vec<Used>,
    pub(crate) overrides: Vec<Override>,
    pub(crate) mix_names: Vec<(Mix, String)>,
    pub(crate) zip: Vec<Placed<Vec<Parameter>>>,
    pub(crate) include: Vec<Inclusion>,
    pub(crate) exclude: Vec<Rule>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) compare: Vec<Compare>,
}

impl Draft {
    pub(crate) fn axis(&self, parameter: Parameter) -> &Axis {
        &self.axes[parameter as usize]
    }

    /// Iterates over every value that some cell may take, with repetitions.
    pub(crate) fn known(&self, parameter: Parameter) -> impl Iterator<Item = &Value> {
        let fixed = self.overrides.iter().filter(move |fixed| fixed.parameter == parameter);
        let included = self.include.iter().flat_map(|inclusion| &inclusion.values);
        let included = included.filter(move |(included, _)| *included == parameter).flat_map(|(_, values)| values);
        let axis = self.axis(parameter).values.iter().map(|placed| &placed.value);
        axis.chain(fixed.map(|fixed| &fixed.value.value)).chain(included)
    }

    /// Returns the structure with this label.
    pub(crate) fn labelled(&self, label: &str) -> Option<&StructureUse> {
        self.axis(Parameter::Structure).values.iter().find_map(|placed| match &placed.value {
            Value::Structure(structure) if structure.label == label => Some(structure),
            _ => None,
        })
    }

    /// Iterates over the labels of the structures.
    pub(crate) fn labels(&self) -> impl Iterator<Item = &str> {
        self.used.iter().map(|used| used.label.as_str())
    }
}

/// Lowers, and collects what is refused.
pub(crate) struct Lowering<'s> {
    pub(crate) text: &'s str,
    pub(crate) catalogue: &'s Catalogue,
    /// The spec without its `quick` block, when the block is laid over it: its values may be named although the short
    /// run leaves them out.
    pub(crate) whole: Option<&'s Draft>,
    pub(crate) found: Vec<Diagnostic>,
}

impl<'s> Lowering<'s> {
    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }

    /// Lowers the values of a parameter.
    pub(crate) fn axis(&mut self, draft: &mut Draft, field: &'static Field, node: &Node) -> Axis {
        let n_found = self.found.len();
        let values = match field.kind {
            Kind::Structures => self.structures(draft, node),
            Kind::Mixes => self.mixes(draft, node),
            _ => self.each(field.key, node, |lowering, item| lowering.value(field, item)),
        };
        // Structures are told apart by label, and two labels may have the same parameters.
        if !matches!(field.kind, Kind::Structures) {
            self.refuse_repetitions(field, &values);
        }
        let complete = self.found.len() == n_found && !values.is_empty();
        Axis { values, complete }
    }

    /// Lowers a single value or each item of a list that is not empty.
    fn each<T>(
        &mut self,
        key: &str,
        node: &Node,
        mut lower: impl FnMut(&mut Self, &Node) -> Option<T>,
    ) -> Vec<Placed<T>> {
        let items = match &node.kind {
            tree::Kind::Sequence(items) if items.is_empty() => {
                let diagnostic = Diagnostic::new(&codes::NO_VALUES, node.at.clone(), format!("`{key}` has no value"));
                let help = "give at least one value, or leave the key out for its default";
                self.report(diagnostic.label("an empty list").help(help));
                return Vec::new();
            }
            tree::Kind::Sequence(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        let place = |item: &Node, value| Placed { value, at: item.at.clone() };
        items.iter().filter_map(|item| lower(self, item).map(|value| place(item, value))).collect()
    }

    fn refuse_repetitions(&mut self, field: &Field, values: &[Placed<Value>]) {
        // Sorting finds repetitions among a hundred thousand values without comparing each with each.
        let mut order: Vec<&Placed<Value>> = values.iter().collect();
        order.sort_by(|a, b| a.value.cmp(&b.value).then_with(|| a.at.start.cmp(&b.at.start)));
        for pair in order.windows(2).filter(|pair| pair[0].value == pair[1].value) {
            let (first, again) = (self.words_at(&pair[0].at), self.words_at(&pair[1].at));
            let message = if first == again {
                format!("{again} is listed twice in `{}`", field.key)
            } else {
                format!("{again} and {first} are the same value of `{}`", field.key)
            };
            let diagnostic = Diagnostic::new(&codes::VALUE_TWICE, pair[1].at.clone(), message).label("again here");
            let help = "remove one of them; for more trials of a cell raise `trials.count`";
            self.report(diagnostic.also(pair[0].at.clone(), "first here").help(help));
        }
    }

    /// Returns what the person wrote at a place, quoted.
    fn words_at(&self, at: &Span) -> String {
        quote(self.text.get(at.clone()).unwrap_or_default())
    }

    /// Lowers words of a closed list into registry order.
    pub(crate) fn words(&mut self, field: &Field, words: &'static [Word], all: bool, node: &Node) -> Vec<&'static str> {
        let scalar = match &node.kind {
            tree::Kind::Scalar(scalar) if all => scalar.text.as_str(),
            _ => "",
        };
        match scalar {
            "all" => return words::names(words).collect(),
            "none" => return Vec::new(),
            _ => {}
        }
        if matches!(&node.kind, tree::Kind::Sequence(items) if items.is_empty()) {
            return Vec::new();
        }
        let extra: &[&'static str] = if all { &["all", "none"] } else { &[] };
        let named = self.each(field.key, node, |lowering, item| lowering.word(words, extra, item));
        let mut seen: Vec<&Placed<&Word>> = Vec::new();
        for word in &named {
            if let Some(first) = seen.iter().find(|first| first.value.name == word.value.name) {
                let message = format!("`{}` is listed twice in `{}`", word.value.name, field.key);
                let diagnostic = Diagnostic::new(&codes::VALUE_TWICE, word.at.clone(), message).label("again here");
                self.report(diagnostic.also(first.at.clone(), "first here").help("remove one of them"));
            }
            seen.push(word);
        }
        words.iter().map(|word| word.name).filter(|name| named.iter().any(|word| word.value.name == *name)).collect()
    }

    /// Returns the parameter of a key in a rule or in `zip`.
    fn parameter(&mut self, text: &str, at: &Span) -> Option<Parameter> {
        let found = Parameter::ALL.into_iter().find(|parameter| parameter.key() == text);
        if found.is_some() {
            return found;
        }
        let diagnostic = Diagnostic::new(&codes::UNKNOWN_KEY, at.clone(), format!("no parameter {}", quote(text)));
        let nested = Parameter::ALL.iter().find(|parameter| fields::of(**parameter).group() == Some(text));
        let leaf = Parameter::ALL.iter().find(|parameter| parameter.key().ends_with(&format!(".{text}")));
        let close = || super::suggest::closest(text, Parameter::ALL.map(Parameter::key));
        let help = match (nested.or(leaf), fields::find(text)) {
            (Some(nested), _) => format!("parameters are named by their whole path here: `{}`", nested.key()),
            (None, Some(_)) => format!("`{text}` is the same for all cells"),
            (None, None) => match close() {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "parameters are named by their keys, such as `threads` or `trials.length`".to_owned(),
            },
        };
        self.report(diagnostic.label("not a parameter of cells").help(help));
        None
    }
}
