//! Reads YAML 1.2 into a tree with places, and refuses what a spec must not hold.
//!
//! Built on the events of granit-parser, because a spec needs the raw text and the place of every scalar.

use std::collections::BTreeMap;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, options};

use super::tree::{Entry, Key, Kind, Node, Scalar};
use crate::diag::{Diagnostic, Span, codes, quote};

/// Largest spec in bytes. Read before any parsing, so it also bounds the work.
const MAX_BYTES: usize = 1_000_000;

/// Deepest nesting of lists and mappings.
const MAX_DEPTH: usize = 32;

/// Reads the only document of a spec.
///
/// Returns the root (`None` if the text cannot be read or is empty) and everything that was refused.
pub(crate) fn read(text: &str) -> (Option<Node>, Vec<Diagnostic>) {
    if text.len() > MAX_BYTES {
        let message = format!("the spec has {} bytes, and at most {MAX_BYTES} are read", text.len());
        let help = "write lists instead of one entry a cell; `include` and `zip` pick and pair values";
        return (None, vec![Diagnostic::new(&codes::TOO_LARGE, 0..0, message).help(help)]);
    }
    if let Some(diagnostic) = control_character(text) {
        return (None, vec![diagnostic]);
    }
    let mut reader = Reader { text, open: Vec::new(), root: None, refused: Vec::new(), n_documents: 0 };
    match reader.run() {
        Ok(()) => (reader.root, reader.refused),
        Err(fatal) => {
            reader.refused.push(*fatal);
            (None, reader.refused)
        }
    }
}

/// Finds the first character that no editor shows. Later ones are usually the same mistake.
fn control_character(text: &str) -> Option<Diagnostic> {
    let (offset, character) = text.char_indices().find(|&(offset, character)| match character {
        '\t' | '\n' | '\u{85}' => false,
        '\r' => !text[offset + 1..].starts_with('\n'),
        '\u{feff}' => offset != 0,
        other => other.is_control(),
    })?;
    let name = match character {
        '\0' => "NUL".to_owned(),
        '\r' => "a carriage return without a line feed".to_owned(),
        '\u{1b}' => "ESC".to_owned(),
        '\u{feff}' => "a byte order mark inside the text".to_owned(),
        other => format!("U+{:04X}", u32::from(other)),
    };
    let help = match character {
        '\0' => "save the file as UTF-8; UTF-16 looks like this",
        '\r' => "end lines with a line feed, with or without a return before it",
        _ => "remove it; in a quoted text it can be written as an escape, such as `\\x1b`",
    };
    let at = offset..offset + character.len_utf8();
    let diagnostic = Diagnostic::new(&codes::CONTROL, at, format!("the file contains {name}"));
    Some(diagnostic.label("not visible in an editor").help(help))
}

/// A list or mapping whose end has not been seen.
struct Open {
    start: usize,
    kind: OpenKind,
}

enum OpenKind {
    Sequence(Vec<Node>),
    Mapping { entries: Vec<Entry>, seen: BTreeMap<String, Span>, pending: Option<Pending> },
}

/// A key that waits for its value.
enum Pending {
    Key(Key),
    /// A key that was refused; its value is read and dropped.
    Refused,
}

struct Reader<'t> {
    text: &'t str,
    open: Vec<Open>,
    root: Option<Node>,
    refused: Vec<Diagnostic>,
    n_documents: usize,
}

/// Boxed: a diagnostic is large and the way without one is the hot one.
type Fatal = Box<Diagnostic>;

impl Reader<'_> {
    fn run(&mut self) -> Result<(), Fatal> {
        let mut options = options! {
            emit_unresolved_aliases: true,
            emit_anchor_events: true,
            disallow_directives: true,
            flow_nesting_limit: MAX_DEPTH,
            block_nesting_limit: MAX_DEPTH,
        };
        options.set_emit_comments(false);
        for event in Parser::new_from_str_with_options(self.text, options) {
            let (event, span) = event.map_err(|error| Box::new(self.syntax(&error)))?;
            let at = span.byte_range().expect("a parser over a string knows byte offsets");
            if let Some(tag) = event.tag() {
                let tag_at = span.tag_span().and_then(|tag| tag.byte_range()).unwrap_or(at.clone());
                let message = format!("the tag {} is not read", quote(&tag.original()));
                let help = "remove the tag; the key decides the type of its value";
                self.refused.push(Diagnostic::new(&codes::TAG, tag_at, message).help(help));
            }
            self.event(event, at)?;
        }
        Ok(())
    }

    fn event(&mut self, event: Event<'_>, at: Span) -> Result<(), Fatal> {
        match event {
            Event::DocumentStart(..) => {
                self.n_documents += 1;
                if self.n_documents > 1 {
                    let diagnostic = Diagnostic::new(&codes::DOCUMENTS, at, "a second document begins here");
                    return Err(Box::new(diagnostic.help("put each spec into a file of its own")));
                }
            }
            Event::Scalar(text, style, ..) => {
                let scalar = Scalar { text: text.into_owned(), quoted: !matches!(style, ScalarStyle::Plain) };
                self.value(Node { at, kind: Kind::Scalar(scalar) });
            }
            Event::SequenceStart(..) => self.begin(at, OpenKind::Sequence(Vec::new()))?,
            Event::MappingStart(..) => {
                self.begin(at, OpenKind::Mapping { entries: Vec::new(), seen: BTreeMap::new(), pending: None })?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(&at),
            Event::Anchor(_, name) => self.refuse_alias(at, &format!("the anchor {} is not read", quote(&name))),
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                let name = quote(self.text.get(at.clone()).unwrap_or_default());
                self.refuse_alias(at.clone(), &format!("the alias {name} is not read"));
                self.value(Node { at, kind: Kind::Refused });
            }
            _ => {}
        }
        Ok(())
    }

    /// Says what could not be read, and which bracket is still open there.
    fn syntax(&self, error: &ScanError) -> Diagnostic {
        let diagnostic = syntax(self.text, error);
        let bracket = self
            .open
            .iter()
            .rev()
            .map(|open| open.start)
            .find(|&start| self.text[start..].starts_with(['[', '{']) && !diagnostic.at.contains(&start));
        match bracket {
            Some(start) if diagnostic.code == &codes::SYNTAX => {
                let (open, close) = if self.text[start..].starts_with('[') { ('[', ']') } else { ('{', '}') };
                let diagnostic = diagnostic.also(start..start + 1, format!("this `{open}` is still open"));
                Diagnostic { help: vec![format!("close it with `{close}` where it ends")], ..diagnostic }
            }
            _ => diagnostic,
        }
    }

    fn refuse_alias(&mut self, at: Span, message: &str) {
        let help = "write the value here; `quick` and lists cover what aliases are used for";
        self.refused.push(Diagnostic::new(&codes::ALIAS, at, message).help(help));
    }

    fn begin(&mut self, at: Span, kind: OpenKind) -> Result<(), Fatal> {
        if self.open.len() == MAX_DEPTH {
            return Err(Box::new(too_deep(at.start)));
        }
        self.open.push(Open { start: at.start, kind });
        Ok(())
    }

    fn end(&mut self, at: &Span) {
        let open = self.open.pop().expect("the parser balances starts and ends");
        // A block collection ends where the next token begins; what belongs to it ends before the blanks and comments.
        let last = match &open.kind {
            OpenKind::Sequence(items) => items.last().map(|item| item.at.end),
            OpenKind::Mapping { entries, .. } => entries.last().map(|entry| entry.value.at.end.max(entry.key.at.end)),
        };
        let end = if at.is_empty() { last.unwrap_or(at.end) } else { at.end };
        let kind = match open.kind {
            OpenKind::Sequence(items) => Kind::Sequence(items),
            OpenKind::Mapping { entries, .. } => Kind::Mapping(entries),
        };
        self.value(Node { at: open.start..end.max(open.start), kind });
    }

    /// Puts a finished value where it belongs.
    fn value(&mut self, node: Node) {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return;
        };
        match &mut open.kind {
            OpenKind::Sequence(items) => items.push(node),
            OpenKind::Mapping { entries, seen, pending } => match pending.take() {
                Some(Pending::Key(key)) => entries.push(Entry { key, value: node }),
                Some(Pending::Refused) => {}
                None => {
                    let (next, diagnostic) = key(seen, node);
                    *pending = Some(next);
                    self.refused.extend(diagnostic);
                }
            },
        }
    }
}

/// Judges a value in key position.
fn key(seen: &mut BTreeMap<String, Span>, node: Node) -> (Pending, Option<Diagnostic>) {
    let is_null = node.is_null();
    let Node { at, kind } = node;
    let scalar = match kind {
        Kind::Scalar(scalar) if !is_null => scalar,
        Kind::Refused => return (Pending::Refused, None),
        _ => {
            let diagnostic = Diagnostic::new(&codes::KEY, at, "a key must be a word");
            return (Pending::Refused, Some(diagnostic.help("write `key: value`")));
        }
    };
    if scalar.text == "<<" && !scalar.quoted {
        let diagnostic = Diagnostic::new(&codes::MERGE, at, "merge keys are not read");
        let help = "write the values here; `quick` lays values over the spec for short runs";
        return (Pending::Refused, Some(diagnostic.help(help)));
    }
    if let Some(first) = seen.get(&scalar.text) {
        let message = format!("the key {} is written twice", quote(&scalar.text));
        let diagnostic = Diagnostic::new(&codes::DUPLICATE_KEY, at, message).label("again here");
        let help = "keep one of them; several values of one key are a list";
        return (Pending::Refused, Some(diagnostic.also(first.clone(), "first here").help(help)));
    }
    seen.insert(scalar.text.clone(), at.clone());
    (Pending::Key(Key { at, scalar }), None)
}

fn too_deep(offset: usize) -> Diagnostic {
    let message = format!("nested deeper than {MAX_DEPTH} levels");
    Diagnostic::new(&codes::TOO_DEEP, offset..offset + 1, message)
        .help("nothing in a spec nests deeper than a few levels")
}

/// Translates what the parser could not read. The causes that people meet have words of their own.
fn syntax(text: &str, error: &ScanError) -> Diagnostic {
    let offset = error.marker().byte_offset().unwrap_or(0).min(text.len());
    let at = offset..text[offset..].chars().next().map_or(offset, |character| offset + character.len_utf8());
    let (message, help) = match error.kind() {
        ErrorKind::RecursionLimitExceeded => return too_deep(offset),
        ErrorKind::DirectiveDisallowed => {
            let diagnostic = Diagnostic::new(&codes::DIRECTIVE, at, "directives are not read");
            return diagnostic.help("remove the line; a spec is always YAML 1.2");
        }
        ErrorKind::UnclosedFlowCollection { open } => {
            let close = if *open == '[' { ']' } else { '}' };
            (format!("`{open}` is never closed"), Some(format!("add `{close}` where it ends")))
        }
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => (format!("`{open}` is closed by `{close}`"), None),
        ErrorKind::UnclosedQuotedScalar => ("the quote is never closed".to_owned(), None),
        ErrorKind::TabInIndentation | ErrorKind::TabInBlockIndentation | ErrorKind::TabNotAllowed => {
            ("a tab cannot indent YAML".to_owned(), Some("indent with spaces".to_owned()))
        }
        ErrorKind::ExpectedFlowSequenceSeparator => {
            ("expected `,` or `]`".to_owned(), Some("a list is written `[a, b]`".to_owned()))
        }
        ErrorKind::ExpectedFlowMappingSeparator => {
            ("expected `,` or `}`".to_owned(), Some("a mapping is written `{a: 1, b: 2}`".to_owned()))
        }
        ErrorKind::UnexpectedCharacter { character } => (
            format!("a value cannot begin with {}", quote(&character.to_string())),
            Some("put the text in quotes".to_owned()),
        ),
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement => (
            "a `:` where no key can stand".to_owned(),
            Some("indent the key as those above it, or put a text that contains `: ` in quotes".to_owned()),
        ),
        ErrorKind::SimpleKeyExpected | ErrorKind::ExpectedBlockMappingKey | ErrorKind::InvalidIndentation => (
            "expected a key with `:` at this indentation".to_owned(),
            Some("keys of one mapping start in the same column".to_owned()),
        ),
        _ => (error.info().replace("EOF", "end of file"), None),
    };
    let label = if message.ends_with("is never closed") { "opened here" } else { "not YAML from here on" };
    Diagnostic::new(&codes::SYNTAX, at, message).label(label).maybe_help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes_of(text: &str) -> Vec<&'static str> {
        read(text).1.iter().map(|diagnostic| diagnostic.code.id).collect()
    }

    #[test]
    fn places_are_byte_ranges_of_the_source() {
        let text = "\u{feff}a: [ü, 'x y']\r\nb:\r\n  c: 1 # why\r\n\r\nd: 2\r\n";
        let root = read(text).0.unwrap();
        let slice = |node: &Node| &text[node.at.clone()];
        assert_eq!(slice(root.get("a").unwrap()), "[ü, 'x y']");
        assert_eq!(slice(root.get("b").unwrap()), "c: 1");
        assert_eq!(slice(root.get("b").unwrap().get("c").unwrap()), "1");
        assert_eq!(root.get("d").unwrap().kind, Kind::Scalar(Scalar { text: "2".into(), quoted: false }));
    }

    #[test]
    fn refuses_what_a_spec_must_not_hold() {
        let rows = [
            ("a: &x 1\nb: *x\n", vec!["E0004", "E0004"]),
            ("b: *x\n", vec!["E0004"]),
            ("a: !!str 1\n", vec!["E0005"]),
            ("a: {<<: {b: 1}}\n", vec!["E0006"]),
            ("a: 1\n---\nb: 1\n", vec!["E0007"]),
            ("a: 1\n'a': 2\n", vec!["E0008"]),
            ("a: \u{0}\n", vec!["E0009"]),
            ("a: 1\rb: 2\n", vec!["E0009"]),
            ("[a]: 1\n", vec!["E0011"]),
            ("%YAML 1.2\n---\na: 1\n", vec!["E0012"]),
            ("---\na: 1\n...\n", vec![]),
        ];
        for (text, expected) in rows {
            assert_eq!(codes_of(text), expected, "{text:?}");
        }
    }

    #[test]
    fn hostile_input_is_refused_quickly() {
        let started = std::time::Instant::now();
        for unit in ["[", "{", "{a: ", "[{", "- ", "? ", "a: &a [*a,", "'", "\"", "!", "&a ", "#", ": ", "|\n", "%"] {
            let text = unit.repeat(200_000 / unit.len());
            let root = read(&text).0;
            assert!(root.is_none_or(|root| matches!(root.kind, Kind::Scalar(_))), "{unit:?}");
        }
        let keys: String = (0..50_000).map(|key| format!("k{}: 1\n", key % 25_000)).collect();
        assert_eq!(read(&keys).1.len(), 25_000);
        assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
    }

    #[test]
    fn depth_is_bounded_exactly() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(codes_of(&nested(MAX_DEPTH)), Vec::<&str>::new());
        assert_eq!(codes_of(&nested(MAX_DEPTH + 1)), ["E0003"]);
    }
}
