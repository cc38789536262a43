//! From byte offsets to what a person counts: lines and characters.

use super::Span;

/// A place as editors show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// From 1.
    pub line: usize,
    /// In characters, from 1. A byte order mark does not count.
    pub column: usize,
}

/// Returns the line and column of a byte offset; an offset beyond the end gives the end.
pub fn position(text: &str, offset: usize) -> Position {
    let before = &text[..floor(text, offset)];
    let line_start = before.rfind('\n').map_or(0, |line_feed| line_feed + 1);
    let column = before[line_start..].chars().filter(|&character| character != '\u{feff}').count() + 1;
    Position { line: before.bytes().filter(|&byte| byte == b'\n').count() + 1, column }
}

/// Returns the span made whole: within the text, on character boundaries, without a trailing line break.
pub(super) fn whole(text: &str, span: &Span) -> Span {
    let start = floor(text, span.start);
    let end = floor(text, span.end.max(start));
    start..start + text[start..end].trim_end_matches(['\n', '\r']).len()
}

/// Returns the largest character boundary that is at most `offset`.
fn floor(text: &str, offset: usize) -> usize {
    let offset = offset.min(text.len());
    (0..=offset).rev().find(|&boundary| text.is_char_boundary(boundary)).expect("0 is a boundary")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_characters_not_bytes() {
        let text = "\u{feff}a: ü\r\nb: 𝄞x\n";
        let of = |needle: &str| position(text, text.find(needle).unwrap());
        assert_eq!(of("a"), Position { line: 1, column: 1 });
        assert_eq!(of("ü"), Position { line: 1, column: 4 });
        assert_eq!(of("x"), Position { line: 2, column: 5 });
        assert_eq!(position(text, 999), Position { line: 3, column: 1 });
        assert_eq!(position("ü", 1), Position { line: 1, column: 1 }, "inside a character");
    }
}
