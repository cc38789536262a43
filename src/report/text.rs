//! Text from outside made harmless: for the eye in every format, and for Markdown's syntax.

/// Longest text that a cell or a paragraph shows; the rest is in the plan and in `data.csv`.
const MAX_CHARS: usize = 1000;

/// Replaces what could fool the eye: controls, line breaks and marks that change the direction of writing become
/// visible, and a long text is cut.
pub(crate) fn visible(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    for (n_chars, letter) in text.trim().chars().enumerate() {
        if n_chars == MAX_CHARS {
            visible.push('…');
            break;
        }
        push_visible(&mut visible, letter, false);
    }
    visible
}

/// As [`visible`] for text of several lines, which keeps its lines and its length.
pub(crate) fn visible_lines(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    text.chars().for_each(|letter| push_visible(&mut visible, letter, true));
    visible
}

fn push_visible(visible: &mut String, letter: char, keep_lines: bool) {
    match letter {
        '\n' | '\t' if keep_lines => visible.push(letter),
        '\r' if keep_lines => {}
        '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => visible.push(' '),
        letter if letter.is_control() || is_invisible(letter) => visible.extend(letter.escape_unicode()),
        letter => visible.push(letter),
    }
}

/// Marks that reorder, hide or join text without being seen.
fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Escapes plain text for a paragraph, a heading or a table cell of Markdown.
pub(crate) fn markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in visible(text).chars() {
        if matches!(
            letter,
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '&' | '!' | '$' | '@'
        ) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

/// Sets plain text as inline code of Markdown, also within a table.
pub(crate) fn markdown_code(text: &str) -> String {
    let text = visible(text);
    if text.is_empty() {
        return String::new();
    }
    // A table's bar must be escaped even within code, and a code span cannot hold a backslash that escapes: text with
    // either is set plainly.
    if text.contains(['|', '\\']) {
        return markdown(&text);
    }
    let fence = "`".repeat(longest_run(&text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Sets text as a fenced block of Markdown.
pub(crate) fn markdown_fence(language: &str, text: &str) -> String {
    let text = visible_lines(text);
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end_matches('\n'))
}

fn longest_run(text: &str) -> usize {
    text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_seen_and_does_nothing() {
        assert_eq!(visible("a\u{202e}b\nc\u{7}"), "a\\u{202e}b c\\u{7}");
        assert_eq!(visible(&"x".repeat(3000)).chars().count(), MAX_CHARS + 1);
        assert_eq!(markdown("a|b`c<d>*"), r"a\|b\`c\<d\>\*");
        assert_eq!(markdown_code("a`b"), "``a`b``");
        assert_eq!(markdown_code("`"), "`` ` ``");
        assert_eq!(markdown_code("a|b"), r"a\|b");
        assert_eq!(markdown_fence("text", "```\nx"), "````text\n```\nx\n````");
    }
}
