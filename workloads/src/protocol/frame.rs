//! How a reply crosses the pipe: one header line with the length and the digest of the payload, the payload, one newline.
//!
//! ```text
//! rare-reply 1 <length of payload in bytes> <SHA-256 of payload, 64 lower-case hexadecimal digits>
//! <payload: the reply as one line of JSON>
//! ```
//!
//! A refusal is the same with `rare-refusal` and a text in words. Pure: bytes in, bytes out.

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{FORMAT, Reply};

/// First word of a reply.
const REPLY: &str = "rare-reply";

/// First word of a refusal.
const REFUSAL: &str = "rare-refusal";

/// Longest header that can be valid: the longer word, a version and a length of 20 digits, a digest, blanks.
const HEADER_BYTES_MAX: usize = 128;

/// What a worker answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// The trial was run.
    Reply(Box<Reply>),
    /// It was not, for this reason.
    Refusal(String),
}

/// Why bytes are not exactly one complete frame.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// Nothing was written.
    #[error("the worker wrote no reply")]
    Empty,
    /// The first line is not a header.
    #[error("unknown header `{0}`")]
    UnknownHeader(String),
    /// The header names another format version.
    #[error("reply format {found}, expected {FORMAT}")]
    Version {
        /// As written.
        found: String,
    },
    /// The bytes end too early.
    #[error("truncated reply: {found} of {expected} bytes")]
    Truncated {
        /// Bytes of a complete frame; at least this many when even the header is cut.
        expected: usize,
        /// Bytes that came.
        found: usize,
    },
    /// The payload is not what was hashed.
    #[error("digest mismatch: header says {expected}, payload has {found}")]
    Digest {
        /// From the header.
        expected: String,
        /// Of the payload that came.
        found: String,
    },
    /// Something follows the frame.
    #[error("{bytes} bytes after the reply{}", if *.second_frame { ": a second reply" } else { "" })]
    Trailing {
        /// How many.
        bytes: usize,
        /// Whether they begin like another frame.
        second_frame: bool,
    },
    /// The digest holds, but the payload is not a reply: a missing or unknown field, a number that is not finite.
    #[error("the payload is not a reply")]
    Payload(#[source] serde_json::Error),
    /// The digest holds, but the refusal is not text.
    #[error("the refusal is not UTF-8")]
    RefusalText(#[source] std::str::Utf8Error),
}

/// Returns the bytes of a reply.
///
/// # Panics
/// If the reply cannot be written as JSON, which its types rule out.
pub fn encode_reply(reply: &Reply) -> Vec<u8> {
    encode(REPLY, &to_json(reply))
}

/// Returns the bytes of a refusal.
pub fn encode_refusal(reason: &str) -> Vec<u8> {
    encode(REFUSAL, reason.as_bytes())
}

/// Reads exactly one frame.
///
/// # Errors
/// One [`FrameError`] for each way in which bytes fail to be one complete frame; the digest is checked before the payload
/// is read.
pub fn decode(bytes: &[u8]) -> Result<Frame, FrameError> {
    if bytes.is_empty() {
        return Err(FrameError::Empty);
    }
    let header = Header::parse(bytes)?;
    let payload_end = header.payload_at.saturating_add(header.payload_bytes);
    let frame_end = payload_end.saturating_add(1);
    let Some(payload) = bytes.get(header.payload_at..payload_end).filter(|_| bytes.len() >= frame_end) else {
        return Err(FrameError::Truncated { expected: frame_end, found: bytes.len() });
    };
    let found = sha256_hex(payload);
    if found != header.sha256 {
        return Err(FrameError::Digest { expected: header.sha256.to_owned(), found });
    }
    // The byte after the payload must be the newline; anything else is already a stray byte.
    let rest = &bytes[payload_end..];
    if rest != b"\n" {
        let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        let second_frame = rest.starts_with(REPLY.as_bytes()) || rest.starts_with(REFUSAL.as_bytes());
        return Err(FrameError::Trailing { bytes: rest.len(), second_frame });
    }
    if header.refusal {
        let reason = std::str::from_utf8(payload).map_err(FrameError::RefusalText)?;
        return Ok(Frame::Refusal(reason.to_owned()));
    }
    Ok(Frame::Reply(Box::new(serde_json::from_slice(payload).map_err(FrameError::Payload)?)))
}

/// Returns the SHA-256 of `bytes` as 64 lower-case hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns `bytes` as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]])
        .map(char::from)
        .collect()
}

struct Header<'b> {
    refusal: bool,
    payload_bytes: usize,
    sha256: &'b str,
    payload_at: usize,
}

impl<'b> Header<'b> {
    fn parse(bytes: &'b [u8]) -> Result<Self, FrameError> {
        let head = &bytes[..bytes.len().min(HEADER_BYTES_MAX)];
        let unknown = || FrameError::UnknownHeader(String::from_utf8_lossy(line_of(head)).into_owned());
        let begins = |word: &str| head.starts_with(&word.as_bytes()[..word.len().min(head.len())]);
        if !begins(REPLY) && !begins(REFUSAL) {
            return Err(unknown());
        }
        let Some(line_bytes) = head.iter().position(|&byte| byte == b'\n') else {
            let cut = bytes.len() < HEADER_BYTES_MAX;
            let truncated = FrameError::Truncated { expected: bytes.len() + 1, found: bytes.len() };
            return Err(if cut { truncated } else { unknown() });
        };
        let line = std::str::from_utf8(&head[..line_bytes]).map_err(|_| unknown())?;
        let words: Vec<&str> = line.split(' ').collect();
        let &[kind, version, length, sha256] = &words[..] else { return Err(unknown()) };
        if kind != REPLY && kind != REFUSAL {
            return Err(unknown());
        }
        if version != FORMAT.to_string() {
            return Err(FrameError::Version { found: version.to_owned() });
        }
        let payload_bytes = length.parse().map_err(|_| unknown())?;
        Ok(Self { refusal: kind == REFUSAL, payload_bytes, sha256, payload_at: line_bytes + 1 })
    }
}

/// Returns `bytes` up to the first newline.
fn line_of(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == b'\n').next().unwrap_or_default()
}

fn encode(kind: &str, payload: &[u8]) -> Vec<u8> {
    let header = format!("{kind} {FORMAT} {} {}\n", payload.len(), sha256_hex(payload));
    [header.as_bytes(), payload, b"\n"].concat()
}

fn to_json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("maps have string keys and no Serialize of ours fails")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal() -> Vec<u8> {
        encode_refusal("no such CPU")
    }

    #[test]
    fn round_trip_of_a_refusal() {
        assert_eq!(decode(&refusal()).unwrap(), Frame::Refusal("no such CPU".to_owned()));
        assert_eq!(decode(&encode_refusal("")).unwrap(), Frame::Refusal(String::new()));
    }

    #[test]
    fn every_cut_is_truncated_or_empty() {
        let whole = refusal();
        assert!(matches!(decode(b""), Err(FrameError::Empty)));
        for end in 1..whole.len() {
            let error = decode(&whole[..end]).unwrap_err();
            assert!(matches!(error, FrameError::Truncated { .. }), "{end}: {error}");
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let whole = refusal();
        for position in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[position / 8] ^= 1 << (position % 8);
            assert!(decode(&flipped).is_err(), "bit {position}");
        }
    }

    #[test]
    fn names_what_is_wrong() {
        let check = |bytes: &[u8], expected: &str| {
            let error = decode(bytes).unwrap_err().to_string();
            assert!(error.contains(expected), "`{error}` lacks `{expected}`");
        };
        check(b"hello\nworld", "unknown header `hello`");
        check(b"rare-reply 3 2\n{}\n", "unknown header");
        check(b"rare-reply 3 -2 00\n{}\n", "unknown header");
        check(&[b'r'; 500], "unknown header");
        check(b"rare-reply 1 2 00\n{}\n", "reply format 1, expected 3");
        check(b"rare-reply 3 2 00\n{}\n", "digest mismatch");
        check(b"rare-reply 3 18446744073709551615 00\n{}\n", "truncated");
        check(&encode(REPLY, b"{}"), "not a reply");
        check(&encode(REPLY, br#"{"format":NaN}"#), "not a reply");
        check(&[refusal(), refusal()].concat(), "a second reply");
        check(&[refusal(), b"x".to_vec()].concat(), "1 bytes after the reply");
    }
}
