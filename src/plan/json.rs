//! Writes a plan as canonical JSON (RFC 8785) and hashes it.
//!
//! The hash is SHA-256 of exactly those bytes, so that `sha256sum plan.json` is the proof. No document tree is built:
//! the writer is a visitor of the walk, which already goes in canonical order.

use std::io::Write;

use sha2::{Digest, Sha256};

use super::{
    model::{Plan, PlanHash},
    walk::{self, Bracket, Leaf, Step, Visitor},
};

/// The largest integer below which every JSON reader keeps each one apart: 2^53 − 1.
pub(super) const MAX_INTEGER: u64 = (1 << 53) - 1;

impl Plan {
    /// Returns the plan as canonical JSON: the content of `plan.json`, without a newline at the end.
    pub fn canonical(&self) -> Vec<u8> {
        let mut writer = JsonWriter::default();
        walk::plan(self, &mut writer);
        writer.bytes
    }

    /// Returns SHA-256 of [`Plan::canonical`].
    pub fn hash(&self) -> PlanHash {
        PlanHash(Sha256::digest(self.canonical()).into())
    }
}

/// Writes what it visits as JSON without any white space.
#[derive(Default)]
pub(super) struct JsonWriter {
    pub(super) bytes: Vec<u8>,
    /// Closing bracket of everything open, outermost first.
    open: Vec<u8>,
    /// Whether the innermost open bracket already has a member.
    has_member: bool,
}

impl JsonWriter {
    /// Begins a member: its comma and its key.
    fn step(&mut self, step: Step<'_>) {
        if self.has_member {
            self.bytes.push(b',');
        }
        self.has_member = true;
        if let Some(key) = step.key() {
            write_text(key, &mut self.bytes);
            self.bytes.push(b':');
        }
    }
}

impl Visitor for JsonWriter {
    fn open(&mut self, step: Step<'_>, bracket: Bracket) {
        self.step(step);
        let (begin, end) = match bracket {
            Bracket::Object => (b'{', b'}'),
            Bracket::Array => (b'[', b']'),
        };
        self.bytes.push(begin);
        self.open.push(end);
        self.has_member = false;
    }

    fn close(&mut self) {
        self.bytes.push(self.open.pop().expect("the walk closes only what it opened"));
        self.has_member = true;
    }

    fn leaf(&mut self, step: Step<'_>, leaf: Leaf<'_>) {
        self.step(step);
        leaf.write(&mut self.bytes);
    }

    fn list<'l>(&mut self, step: Step<'_>, leaves: impl Iterator<Item = Leaf<'l>>) {
        self.step(step);
        write_list(leaves, &mut self.bytes);
    }
}

impl Step<'_> {
    /// Returns the key of a member of an object.
    pub(super) fn key(&self) -> Option<&str> {
        match self {
            Self::Root | Self::Index(_) => None,
            Self::Field(key, _) => Some(key),
            Self::Parameter(parameter) => Some(parameter.name()),
            Self::Key(key) => Some(key),
        }
    }
}

impl Leaf<'_> {
    /// Appends the leaf in its one canonical form.
    pub(super) fn write(self, bytes: &mut Vec<u8>) {
        match self {
            Self::Text(text) => write_text(text, bytes),
            Self::Number(number) if number <= MAX_INTEGER => write_display(number, bytes),
            // RFC 8785 reads numbers as doubles, and two larger integers could share one.
            Self::Number(number) | Self::Seed(number) => write_text(&number.to_string(), bytes),
            Self::Signed(number) => write_display(number, bytes),
        }
    }
}

/// Appends an array of leaves.
pub(super) fn write_list<'l>(leaves: impl Iterator<Item = Leaf<'l>>, bytes: &mut Vec<u8>) {
    bytes.push(b'[');
    for (idx, leaf) in leaves.enumerate() {
        if idx > 0 {
            bytes.push(b',');
        }
        leaf.write(bytes);
    }
    bytes.push(b']');
}

/// Appends a string with the escapes of RFC 8785, section 3.2.2.2: the short ones where JSON has them, `\u00xx` for
/// the other control characters, everything else as it is.
fn write_text(text: &str, bytes: &mut Vec<u8>) {
    bytes.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' => bytes.extend(b"\\\""),
            b'\\' => bytes.extend(b"\\\\"),
            0x08 => bytes.extend(b"\\b"),
            b'\t' => bytes.extend(b"\\t"),
            b'\n' => bytes.extend(b"\\n"),
            0x0C => bytes.extend(b"\\f"),
            b'\r' => bytes.extend(b"\\r"),
            control @ 0..0x20 => write_display(format_args!("\\u{control:04x}"), bytes),
            other => bytes.push(other),
        }
    }
    bytes.push(b'"');
}

fn write_display(value: impl std::fmt::Display, bytes: &mut Vec<u8>) {
    write!(bytes, "{value}").expect("a vector takes every write");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(leaf: Leaf<'_>) -> String {
        let mut bytes = Vec::new();
        leaf.write(&mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn texts_are_escaped_as_rfc_8785_does() {
        let every_control: String = (0u8..0x30).map(char::from).collect();
        for text in [every_control.as_str(), "\u{7f}\u{80}é€\u{2028}😀\u{e000}/\\\"<script>", ""] {
            let expected = serde_json_canonicalizer::to_string(&text).unwrap();
            assert_eq!(written(Leaf::Text(text)), expected);
        }
    }

    #[test]
    fn integers_that_doubles_fold_together_stay_apart() {
        assert_eq!(written(Leaf::Number(MAX_INTEGER)), "9007199254740991");
        assert_eq!(written(Leaf::Number(MAX_INTEGER + 1)), "\"9007199254740992\"");
        assert_eq!(written(Leaf::Number(MAX_INTEGER + 2)), "\"9007199254740993\"");
        assert_eq!(written(Leaf::Seed(1)), "\"1\"");
        assert_eq!(written(Leaf::Signed(-20)), "-20");
    }
}
