//! A YAML document with the place of everything, before anything is interpreted.
//!
//! Scalars stay text: what `010` or `no` means is decided where a number or a name is due.

use crate::diag::Span;

/// One value of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) at: Span,
    pub(crate) kind: Kind,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Scalar(Scalar),
    Sequence(Vec<Node>),
    Mapping(Vec<Entry>),
    /// Something that was refused and reported where it stands: nothing more is said about it.
    Refused,
}

/// A scalar as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scalar {
    /// The text after the reader's unescaping and folding.
    pub(crate) text: String,
    /// Whether it has quotes or is a block (`|`, `>`): then it is text, whatever it looks like.
    pub(crate) quoted: bool,
}

/// One key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) value: Node,
}

/// The key of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) at: Span,
    pub(crate) scalar: Scalar,
}

impl Key {
    pub(crate) fn text(&self) -> &str {
        &self.scalar.text
    }

    /// Returns the key as a value, for names that stand in key position.
    pub(crate) fn node(&self) -> Node {
        Node { at: self.at.clone(), kind: Kind::Scalar(self.scalar.clone()) }
    }
}

impl Node {
    /// Returns the entries if it is a mapping.
    pub(crate) fn entries(&self) -> Option<&[Entry]> {
        match &self.kind {
            Kind::Mapping(entries) => Some(entries),
            _ => None,
        }
    }

    /// Returns the value of a key if it is a mapping that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries()?.iter().find(|entry| entry.key.text() == key).map(|entry| &entry.value)
    }

    /// Tells whether nothing is there: `key:`, `null`, `~`.
    pub(crate) fn is_null(&self) -> bool {
        match &self.kind {
            Kind::Scalar(Scalar { text, quoted: false }) => {
                matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL")
            }
            _ => false,
        }
    }

    /// Returns what it is, for a message.
    pub(crate) fn noun(&self) -> &'static str {
        match &self.kind {
            Kind::Scalar(_) if self.is_null() => "nothing",
            Kind::Scalar(_) => "a single value",
            Kind::Sequence(_) => "a list",
            Kind::Mapping(_) => "a mapping",
            Kind::Refused => "a refused value",
        }
    }

    /// Forgets all places: for defaults, which no one wrote.
    pub(crate) fn unplaced(mut self) -> Self {
        self.at = 0..0;
        self.kind = match self.kind {
            Kind::Sequence(items) => Kind::Sequence(items.into_iter().map(Self::unplaced).collect()),
            Kind::Mapping(entries) => Kind::Mapping(
                entries
                    .into_iter()
                    .map(|Entry { key, value }| Entry { key: Key { at: 0..0, ..key }, value: value.unplaced() })
                    .collect(),
            ),
            other => other,
        };
        self
    }
}
