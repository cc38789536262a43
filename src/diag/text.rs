//! Makes any text safe and fit to print: no control character, no direction mark, no endless line reaches a terminal.

/// Longest quotation of a person's own words, in characters.
const MAX_QUOTED: usize = 60;

/// Returns the person's words in backticks, on one line and shortened in the middle when long.
pub fn quote(words: &str) -> String {
    let n_chars = words.chars().count();
    if n_chars <= MAX_QUOTED {
        return format!("`{}`", one_line(words));
    }
    let head: String = words.chars().take(MAX_QUOTED * 2 / 3).collect();
    let tail: String = words.chars().skip(n_chars - MAX_QUOTED / 3).collect();
    format!("`{}…{}`", one_line(&head), one_line(&tail))
}

/// Returns the text without anything that moves a cursor, changes a direction or breaks the line.
pub fn one_line(text: &str) -> String {
    text.chars().map(visible).collect()
}

/// Breaks a paragraph into lines of at most `n_columns` characters; a longer word has a line of its own.
pub fn wrap(text: &str, n_columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= n_columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Returns a visible stand-in, one column wide, for a character that would act on a terminal; others as they are.
pub(super) fn visible(character: char) -> char {
    match character {
        '\0'..='\u{1f}' => char::from_u32(0x2400 + character as u32).expect("U+2400 to U+241F are assigned"),
        '\u{7f}' => '␡',
        '\u{80}'..='\u{9f}'
        | '\u{ad}'
        | '\u{61c}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => '\u{fffd}',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotations_stay_on_one_line_and_short() {
        assert_eq!(quote("nm14"), "`nm14`");
        assert_eq!(quote("a\u{1b}[31m\nb"), "`a␛[31m␊b`");
        assert_eq!(quote("a\u{202e}b"), "`a\u{fffd}b`");
        let long = quote(&"é".repeat(300));
        assert_eq!(long.chars().count(), 63);
        assert!(long.contains('…'));
    }

    #[test]
    fn paragraphs_are_broken_between_words() {
        assert_eq!(wrap("is it  faster\nthan é?", 6), ["is it", "faster", "than", "é?"]);
        assert_eq!(wrap("a word-of-its-own b", 5), ["a", "word-of-its-own", "b"]);
        assert_eq!(wrap(" ", 5), Vec::<String>::new());
    }
}
