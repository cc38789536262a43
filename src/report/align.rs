//! Lets the numbers of a column stand point under point.
//!
//! Digits of a table have one width, and so have the spaces that stand for a digit and for a point: filling up is exact,
//! and what is copied is still the number.

use super::block::Table;

/// As wide as a digit, and as wide as a point.
const DIGIT: char = '\u{2007}';
const POINT: char = '\u{2008}';

/// Fills the cells of the number columns of a table.
pub(super) fn align(table: &mut Table) {
    for column in (0..table.columns.len()).filter(|&column| table.columns[column].numeric) {
        let texts: Vec<&str> = table.rows.iter().map(|row| row[column].text.as_str()).collect();
        let filled = fill(&texts);
        for (row, filled) in table.rows.iter_mut().zip(filled) {
            row[column].aligned = filled;
        }
    }
}

/// A text as numbers and what stands before, between and after them.
struct Parts<'t> {
    between: Vec<&'t str>,
    /// Digits before the point, with a sign, and after it.
    numbers: Vec<(&'t str, &'t str)>,
}

fn parts(text: &str) -> Parts<'_> {
    let mut parts = Parts { between: Vec::new(), numbers: Vec::new() };
    let mut rest = text;
    while let Some(at) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let at = if rest[..at].ends_with('-') { at - 1 } else { at };
        parts.between.push(&rest[..at]);
        let number = &rest[at..];
        let end = number[1..]
            .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
            .map_or(number.len(), |end| end + 1);
        parts.numbers.push(number[..end].split_once('.').unwrap_or((&number[..end], "")));
        rest = &number[end..];
    }
    parts.between.push(rest);
    parts
}

/// Returns each text filled up; an empty one where it is not of the shape of most, or nothing is to be filled.
fn fill(texts: &[&str]) -> Vec<String> {
    let parts: Vec<Parts> = texts.iter().map(|text| parts(text)).collect();
    let Some(shape) = parts.iter().find(|parts| !parts.numbers.is_empty()) else {
        return vec![String::new(); texts.len()];
    };
    // What stands before the first number is out of the way on the left.
    let fits = |one: &Parts| one.numbers.len() == shape.numbers.len() && one.between[1..] == shape.between[1..];
    let widths: Vec<(usize, usize)> = (0..shape.numbers.len())
        .map(|idx| {
            let fitting = || parts.iter().filter(|one| fits(one)).map(|one| one.numbers[idx]);
            (
                fitting().map(|(whole, _)| whole.len()).max().unwrap_or(0),
                fitting().map(|(_, part)| part.len()).max().unwrap_or(0),
            )
        })
        .collect();
    let filled = |one: &Parts| {
        let mut text = one.between[0].to_owned();
        for (idx, ((whole, part), (wide, deep))) in one.numbers.iter().zip(&widths).enumerate() {
            if idx > 0 {
                text.extend(std::iter::repeat_n(DIGIT, wide - whole.len()));
            }
            text.push_str(whole);
            match (part.is_empty(), *deep) {
                (true, 0) => {}
                (true, _) => text.push(POINT),
                (false, _) => text.extend(['.'].into_iter().chain(part.chars())),
            }
            text.extend(std::iter::repeat_n(DIGIT, deep - part.len()));
            text.push_str(one.between[idx + 1]);
        }
        text
    };
    parts.iter().map(|one| if fits(one) { filled(one) } else { String::new() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_stand_under_each_other() {
        let shown = |texts: &[&str]| -> Vec<String> {
            fill(texts).into_iter().map(|text| text.replace(DIGIT, "_").replace(POINT, ",")).collect()
        };
        assert_eq!(shown(&["17.65", "9.947", "137"]), ["17.65_", "9.947", "137,___"]);
        assert_eq!(shown(&["16.50 – 18.03", "9.538 – 9.820"]), ["16.50_ – 18.03_", "9.538 – _9.820"]);
        assert_eq!(shown(&["12.4 %", "3.3 %", "–"]), ["12.4 %", "3.3 %", ""]);
        assert_eq!(shown(&["-7.36", "< 0.001", "0.84"]), ["-7.36_", "< 0.001", "0.84_"]);
        assert_eq!(shown(&["no number", ""]), ["", ""]);
    }
}
