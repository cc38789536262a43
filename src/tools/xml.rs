//! XML read one element at a time: a document of any length, of which each part below the root is small.

use quick_xml::{
    Reader,
    errors::{Error, IllFormedError, SyntaxError},
    escape::resolve_xml_entity,
    events::{BytesRef, Event},
};

/// Deepest nesting of elements that is read. Valgrind's own is five.
const DEPTH_MAX: usize = 16;

/// An element without its attributes.
#[derive(Debug, Default)]
pub(super) struct Element {
    pub(super) name: String,
    /// Its own text, trimmed.
    pub(super) text: String,
    pub(super) children: Vec<Element>,
}

impl Element {
    /// Returns the first child of a name.
    pub(super) fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    /// Returns all children of a name.
    pub(super) fn all<'e>(&'e self, name: &'e str) -> impl Iterator<Item = &'e Element> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// Returns the text of the first child of a name.
    pub(super) fn text_of(&self, name: &str) -> Option<&str> {
        self.child(name).map(|child| child.text.as_str())
    }

    /// Returns the text of the first child of a name as a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.text_of(name)?.parse().ok()
    }
}

/// Why bytes are not one document.
#[derive(Debug)]
pub(super) enum Broken {
    /// There is nothing.
    Empty,
    /// They end within the document.
    Cut,
    /// Something follows the document.
    Trailing,
    /// They are no XML of the kind that is read, in words with the place.
    Garbled(String),
}

/// Calls `part` with each element below the root and returns the name of the root.
pub(super) fn read(bytes: &[u8], mut part: impl FnMut(Element)) -> Result<String, Broken> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Broken::Empty);
    }
    let mut reader = Reader::from_reader(bytes);
    let mut open: Vec<Element> = Vec::new();
    let mut root = None;
    loop {
        let event = reader.read_event().map_err(|error| broken(&error, &reader, root.is_some()))?;
        let at = reader.buffer_position();
        let garbled = |what: &str| Broken::Garbled(format!("{what} at byte {at}"));
        if root.is_some() && !matches!(event, Event::Eof | Event::Comment(_)) && !is_blank(&event) {
            return Err(Broken::Trailing);
        }
        match event {
            Event::Eof => return root.ok_or(Broken::Cut),
            Event::Start(tag) if open.len() < DEPTH_MAX => {
                let name = String::from_utf8_lossy(tag.name().into_inner()).into_owned();
                open.push(Element { name, ..Element::default() });
            }
            Event::Start(_) => return Err(garbled("elements are nested too deeply")),
            Event::Empty(tag) => {
                let name = String::from_utf8_lossy(tag.name().into_inner()).into_owned();
                close(Element { name, ..Element::default() }, &mut open, &mut part, &mut root);
            }
            Event::End(_) => {
                let element = open.pop().ok_or_else(|| garbled("an element ends that did not begin"))?;
                close(element, &mut open, &mut part, &mut root);
            }
            Event::Text(text) => match open.last_mut() {
                Some(element) => element.text.push_str(&String::from_utf8_lossy(&text)),
                None if is_blank(&Event::Text(text)) => {}
                None => return Err(garbled("text outside of any element")),
            },
            Event::CData(text) => {
                let element = open.last_mut().ok_or_else(|| garbled("text outside of any element"))?;
                element.text.push_str(&String::from_utf8_lossy(&text));
            }
            Event::GeneralRef(reference) => {
                let letter = resolve(&reference).ok_or_else(|| garbled("an unknown entity"))?;
                open.last_mut().ok_or_else(|| garbled("an entity outside of any element"))?.text.push_str(&letter);
            }
            Event::Decl(_) | Event::PI(_) | Event::DocType(_) | Event::Comment(_) => {}
        }
    }
}

/// Puts a finished element where it belongs: to its parent, to the caller, or to the root.
fn close(mut element: Element, open: &mut [Element], part: &mut impl FnMut(Element), root: &mut Option<String>) {
    let trimmed = element.text.trim();
    if trimmed.len() < element.text.len() {
        element.text = trimmed.to_owned();
    }
    match open.len() {
        0 => *root = Some(element.name),
        1 => part(element),
        _ => open.last_mut().expect("there are at least two").children.push(element),
    }
}

fn is_blank(event: &Event<'_>) -> bool {
    matches!(event, Event::Text(text) if text.iter().all(u8::is_ascii_whitespace))
}

fn resolve(reference: &BytesRef<'_>) -> Option<String> {
    if let Ok(Some(letter)) = reference.resolve_char_ref() {
        return Some(letter.to_string());
    }
    let name = reference.decode().ok()?;
    resolve_xml_entity(&name).map(str::to_owned)
}

/// Tells a document that merely ends too early from one that is none: what is not closed reaches to the end.
fn broken(error: &Error, reader: &Reader<&[u8]>, after_root: bool) -> Broken {
    match error {
        _ if after_root => Broken::Trailing,
        Error::Syntax(SyntaxError::InvalidBangMarkup) | Error::IllFormed(IllFormedError::UnclosedReference)
            if reader.get_ref().is_empty() =>
        {
            Broken::Cut
        }
        Error::Syntax(SyntaxError::InvalidBangMarkup) => {
            Broken::Garbled(format!("{error} at byte {}", reader.error_position()))
        }
        Error::Syntax(_) => Broken::Cut,
        error => Broken::Garbled(format!("{error} at byte {}", reader.error_position())),
    }
}
