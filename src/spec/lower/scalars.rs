//! Scalars: numbers, words and names, with nothing coerced.

use super::{
    super::{
        suggest,
        tree::{Kind, Node, Scalar},
        words::{Word, enumerate, find, names},
    },
    Lowering,
};
use crate::{
    diag::{Code, Diagnostic, codes, quote},
    units::{Fault, Malformed, Quantity},
};

/// Longest name in characters: it becomes a folder and a legend.
const MAX_NAME: usize = 64;

impl Lowering<'_> {
    /// Returns the scalar, or reports what stands there instead of what is `due`.
    pub(crate) fn scalar<'n>(&mut self, node: &'n Node, due: &str) -> Option<&'n Scalar> {
        match &node.kind {
            Kind::Refused => None,
            _ if node.is_null() => {
                self.report(missing_value(node, due));
                None
            }
            Kind::Scalar(scalar) => Some(scalar),
            Kind::Sequence(_) | Kind::Mapping(_) => {
                self.wrong_shape(node, due);
                None
            }
        }
    }

    /// Reports a value of another shape than is `due`; nothing for one that was already refused.
    pub(crate) fn wrong_shape(&mut self, node: &Node, due: &str) {
        match node.kind {
            Kind::Refused => {}
            _ if node.is_null() => self.report(missing_value(node, due)),
            _ => {
                let message = format!("expected {due}, found {}", node.noun());
                self.report(Diagnostic::new(&codes::SHAPE, node.at.clone(), message));
            }
        }
    }

    /// Lowers a number with its unit, in base units within inclusive bounds.
    pub(crate) fn number(&mut self, key: &str, node: &Node, quantity: Quantity, bounds: (u64, u64)) -> Option<u64> {
        let text = self.unquoted(node, quantity)?;
        let number = match quantity.parse(text) {
            Ok(number) => number,
            Err(malformed) => {
                self.malformed(node, quantity, malformed);
                return None;
            }
        };
        let (min, max) = bounds;
        if (min..=max).contains(&number) {
            return Some(number);
        }
        let size = if number < min { "small" } else { "large" };
        let message = format!("{} is too {size} for `{key}`", quote(text));
        let bounds = format!("takes `{}` to `{}`", quantity.write(min), quantity.write(max));
        self.report(Diagnostic::new(&codes::RANGE, node.at.clone(), message).label(bounds));
        None
    }

    /// Lowers a whole number that may be negative.
    pub(crate) fn signed(&mut self, key: &str, node: &Node, min: i64, max: i64) -> Option<i64> {
        let text = self.unquoted(node, Quantity::Integer)?;
        match Quantity::parse_signed(text) {
            Ok(number) if (min..=max).contains(&number) => Some(number),
            Ok(number) => {
                let size = if number < min { "small" } else { "large" };
                let message = format!("{} is too {size} for `{key}`", quote(text));
                let diagnostic = Diagnostic::new(&codes::RANGE, node.at.clone(), message);
                self.report(diagnostic.label(format!("takes `{min}` to `{max}`")));
                None
            }
            Err(malformed) => {
                self.malformed(node, Quantity::Integer, malformed);
                None
            }
        }
    }

    /// Returns the text of a scalar that must not be quoted, because a number is due.
    pub(crate) fn unquoted<'n>(&mut self, node: &'n Node, quantity: Quantity) -> Option<&'n str> {
        let scalar = self.scalar(node, quantity.noun())?;
        if !scalar.quoted {
            return Some(&scalar.text);
        }
        let is_number = quantity.parse(&scalar.text).is_ok();
        let diagnostic = if is_number {
            let message = format!("{} is in quotes, which makes it a text", quote(&scalar.text));
            let help = format!("write `{}` without quotes", scalar.text);
            Diagnostic::new(&codes::QUOTED_NUMBER, node.at.clone(), message).help(help)
        } else {
            let message = format!("{} is not {}", quote(&scalar.text), quantity.noun());
            Diagnostic::new(&codes::NOT_A_NUMBER, node.at.clone(), message)
        };
        self.report(diagnostic.label(quantity.expected()));
        None
    }

    /// Reports a text that is not the quantity due.
    pub(crate) fn malformed(&mut self, node: &Node, quantity: Quantity, malformed: Malformed) {
        let text = match &node.kind {
            Kind::Scalar(scalar) => quote(&scalar.text),
            _ => String::new(),
        };
        let code: &'static Code = match malformed.fault {
            Fault::Form => &codes::NOT_A_NUMBER,
            Fault::Unit => &codes::UNIT,
            Fault::Inexact => &codes::INEXACT,
            Fault::Range => &codes::RANGE,
        };
        let diagnostic = Diagnostic::new(code, node.at.clone(), format!("{text} {}", malformed.problem));
        self.report(diagnostic.label(quantity.expected()).maybe_help(malformed.help));
    }

    /// Lowers one word of a closed list. `extra` are further words that are possible in this place.
    pub(crate) fn word(
        &mut self,
        words: &'static [Word],
        extra: &[&'static str],
        node: &Node,
    ) -> Option<&'static Word> {
        let scalar = self.scalar(node, "a word")?;
        // Words that are numbers, such as `nodes.padding: 64`, are numbers to their readers too.
        if scalar.quoted && scalar.text.starts_with(|first: char| first.is_ascii_digit()) {
            return self.unquoted(node, Quantity::Integer).and(None);
        }
        match find(words, &scalar.text) {
            Some(word) => Some(word),
            None => {
                let known: Vec<&str> = extra.iter().copied().chain(names(words)).collect();
                let message = format!("{} is not known here", quote(&scalar.text));
                let expected = match known.len() {
                    1 => format!("expected {}", enumerate(known.iter().copied())),
                    _ => format!("expected one of {}", enumerate(known.iter().copied())),
                };
                let meant = suggest::closest(&scalar.text, known.iter().copied())
                    .map(|meant| format!("did you mean `{meant}`?"));
                let diagnostic = Diagnostic::new(&codes::UNKNOWN_WORD, node.at.clone(), message);
                self.report(diagnostic.label(expected).maybe_help(meant));
                None
            }
        }
    }

    /// Lowers the name of the spec, which becomes a folder.
    pub(crate) fn file_name(&mut self, node: &Node) -> Option<String> {
        self.name_of(node, "a name", "`a-z`, `0-9` and `-`", |c| {
            c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
        })
    }

    /// Lowers a label of a structure or mix.
    pub(crate) fn label(&mut self, node: &Node) -> Option<String> {
        self.name_of(node, "a label", "letters without accents, digits, `-`, `_`, `.` and `+`", |c| {
            c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+')
        })
    }

    fn name_of(&mut self, node: &Node, due: &str, made_of: &str, allowed: impl Fn(char) -> bool) -> Option<String> {
        let scalar = self.scalar(node, due)?;
        let text = scalar.text.as_str();
        if !scalar.quoted && reads_as_other(text) {
            let message = format!("{} is not a text to every YAML reader", quote(text));
            let diagnostic =
                Diagnostic::new(&codes::AMBIGUOUS, node.at.clone(), message).label(format!("expected {due}"));
            self.report(diagnostic.help(format!("write `'{text}'` in quotes, or choose another name")));
            return None;
        }
        let first = text.chars().find(|&c| !allowed(c));
        let problem = match first {
            _ if text.is_empty() => "is empty".to_owned(),
            Some(' ') => "contains a space".to_owned(),
            Some(c) if c.is_ascii_uppercase() => "contains upper-case letters".to_owned(),
            Some(c) => format!("contains {}", quote(&c.to_string())),
            None if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) => {
                "does not begin with a letter or digit".to_owned()
            }
            None if text.len() > MAX_NAME => {
                format!("has {} characters, and at most {MAX_NAME} are possible", text.len())
            }
            None => return Some(text.to_owned()),
        };
        let cleaned: String = text.trim().to_lowercase().chars().map(|c| if allowed(c) { c } else { '-' }).collect();
        let cleaned = cleaned.trim_matches('-');
        let usable = !cleaned.is_empty() && cleaned.len() <= MAX_NAME && cleaned.is_ascii() && !reads_as_other(cleaned);
        let help = if usable { format!("write `{cleaned}`") } else { format!("use {made_of}") };
        let diagnostic = Diagnostic::new(&codes::NAME, node.at.clone(), format!("the name {} {problem}", quote(text)));
        self.report(diagnostic.label(format!("expected {due}")).help(help));
        None
    }
}

fn missing_value(node: &Node, due: &str) -> Diagnostic {
    let diagnostic = Diagnostic::new(&codes::MISSING_VALUE, node.at.clone(), "a value is missing");
    diagnostic
        .label(format!("expected {due}"))
        .help("give a value; a key that is left out takes its default, if it has one")
}

/// Tells whether some YAML reader takes the unquoted text for a boolean, nothing, or a number.
fn reads_as_other(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    if matches!(lower.as_str(), "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false" | "null" | "~") {
        return true;
    }
    let is_numeric = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-'));
    is_numeric && (lower.replace('_', "").parse::<f64>().is_ok() || lower.starts_with("0x") || lower.starts_with("0o"))
}
