//! One line of a journal: a record, its number, and a digest over both.
//!
//! `{"sha256":"…","seq":N,"record":{…}}`. The digest covers the digest of the header, the number and the exact bytes of
//! the record. So a line that was altered, deleted, repeated, moved, or taken from another journal is noticed; only a
//! missing tail of whole lines cannot be, and that is what the manifest is for.

use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// A line as read, borrowed from the journal's text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line<'j> {
    /// Digest, 64 lower-case hexadecimal digits.
    pub(super) sha256: &'j str,
    /// Number of the line; 0 is the header.
    pub(super) seq: u64,
    /// Exact text of the record.
    #[serde(borrow)]
    pub(super) record: &'j RawValue,
}

/// Renders a line with its newline. `salt` is the header's digest, empty for the header itself.
pub(super) fn render(salt: &str, seq: u64, record: &str) -> (String, String) {
    let digest = digest(salt, seq, record);
    (format!("{{\"sha256\":\"{digest}\",\"seq\":{seq},\"record\":{record}}}\n"), digest)
}

/// Reads a line without its newline and proves it. For the header `salt` is empty.
pub(super) fn parse<'j>(salt: &str, line: &'j [u8]) -> Result<Line<'j>, String> {
    let text = std::str::from_utf8(line).map_err(|_| "it is not UTF-8".to_owned())?;
    let parsed: Line = serde_json::from_str(text).map_err(|error| format!("it is not a journal line: {error}"))?;
    // Rendering again, rather than comparing digests alone, leaves no byte of the line unproven: spaces, escapes and
    // upper-case digits would otherwise be read as the same thing.
    let (rendered, _) = render(salt, parsed.seq, parsed.record.get());
    if rendered.as_bytes().strip_suffix(b"\n") != Some(line) {
        return Err("its digest does not hold".to_owned());
    }
    Ok(parsed)
}

/// Returns the digest of a line, in hexadecimal.
fn digest(salt: &str, seq: u64, record: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(format!("{salt}\n{seq}\n"));
    hasher.update(record);
    hex(&hasher.finalize())
}

/// Returns bytes as lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
