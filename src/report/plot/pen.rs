//! What panels of all kinds share: their size, text, and the marks of the series.

use plotters::{
    coord::Shift,
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use super::palette::{self, Ink, Shape};

/// Coordinates of a drawing a point: the library knows whole coordinates only, and marks need finer ones.
pub(super) const UNIT: i32 = 4;

/// Width of a panel in points: on a phone it shrinks to nine tenths, on a page it grows by a quarter.
pub(super) const WIDTH: i32 = 400;
pub(super) const MARGIN: i32 = 12;

/// Letters of a title's line at 13 points and of a label's line at 12: a letter of a wide sans-serif takes 0.55 of its
/// size in the mean, and 0.6 leaves room for wide ones.
pub(super) const TITLE_CHARS: usize = 46;
pub(super) const LABEL_CHARS: usize = 46;

/// Height of a title's line in points.
pub(super) const TITLE_LINE: i32 = 17;

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// A panel of any kind.
pub(crate) trait Sketch {
    /// Returns what tells it from the other panels.
    fn title(&self) -> &str;
    /// Returns its height in points; the width is that of all panels.
    fn height(&self) -> i32;
    /// Draws it with its upper left corner at `(left, top)` in points.
    fn draw(&self, area: &Area, left: i32, top: i32) -> Drawn;
}

/// Draws in points relative to a panel.
pub(super) struct Pen<'a, 'b> {
    pub area: &'a Area<'b>,
    pub left: i32,
    pub top: i32,
}

impl Pen<'_, '_> {
    /// Returns a place in units.
    pub(super) fn at(&self, (x, y): (i32, i32)) -> (i32, i32) {
        ((self.left + x) * UNIT, (self.top + y) * UNIT)
    }

    pub(super) fn text(&self, text: &str, at: (i32, i32), size: i32, ink: Ink, anchor: HPos) -> Drawn {
        self.text_at(text, self.at(at), size, ink, anchor)
    }

    /// Writes at a place in units.
    pub(super) fn text_at(&self, text: &str, at: (i32, i32), size: i32, ink: Ink, anchor: HPos) -> Drawn {
        // The backend divides sizes by 1.24.
        let font = ("sans-serif", f64::from(size * UNIT) * 1.24).into_font();
        let style = TextStyle::from(font).color(&ink.rgb).pos(Pos::new(anchor, VPos::Center));
        self.area.draw(&Text::new(text.to_owned(), at, style))
    }

    /// Writes a title's lines from the upper left corner.
    pub(super) fn title(&self, lines: &[String]) -> Drawn {
        for (line_idx, line) in (0..).zip(lines) {
            self.text(line, (MARGIN, 15 + TITLE_LINE * line_idx), 13, palette::TEXT, HPos::Left)?;
        }
        Ok(())
    }

    /// Draws a line between two places in units, `width` units wide.
    pub(super) fn line(&self, from: (i32, i32), to: (i32, i32), width: i32, ink: Ink) -> Drawn {
        self.area.draw(&PathElement::new(vec![from, to], ink.rgb.stroke_width(width as u32)))
    }

    /// Draws a mark of `radius` units around a place in units.
    pub(super) fn marker(&self, shape: Shape, (x, y): (i32, i32), radius: i32, ink: Ink) -> Drawn {
        let fill = ink.rgb.mix(0.65).filled();
        let r = radius;
        match shape {
            Shape::Circle => self.area.draw(&Circle::new((x, y), r, fill)),
            Shape::Square => self
                .area
                .draw(&Rectangle::new([(x - r * 9 / 10, y - r * 9 / 10), (x + r * 9 / 10, y + r * 9 / 10)], fill)),
            Shape::Triangle => self.area.draw(&Polygon::new(vec![(x, y - r), (x + r, y + r), (x - r, y + r)], fill)),
            Shape::Diamond => {
                let d = r * 5 / 4;
                self.area.draw(&Polygon::new(vec![(x, y - d), (x + d, y), (x, y + d), (x - d, y)], fill))
            }
            Shape::Cross => {
                let width = UNIT * 3 / 2;
                self.line((x - r, y - r), (x + r, y + r), width, ink)?;
                self.line((x - r, y + r), (x + r, y - r), width, ink)
            }
        }
    }
}

/// Breaks a text between words into lines of at most `n_chars`; a word that is longer is broken, and after `n_lines`
/// the rest is left out and marked so: the tables have it.
pub(super) fn wrap(text: &str, n_chars: usize, n_lines: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut letters: Vec<char> = word.chars().collect();
        let used = lines[lines.len() - 1].chars().count();
        if used > 0 && used + 1 + letters.len() > n_chars {
            lines.push(String::new());
        }
        while letters.len() > n_chars {
            let rest = letters.split_off(n_chars);
            let line = lines.last_mut().expect("there is always a line");
            line.extend(letters);
            lines.push(String::new());
            letters = rest;
        }
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(letters);
    }
    if lines.len() > n_lines {
        lines.truncate(n_lines);
        let last = lines.last_mut().expect("at least one line is wanted");
        last.pop();
        last.push('…');
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_broken_between_words_and_kept_whole() {
        assert_eq!(wrap("", 10, 2), [""]);
        assert_eq!(wrap("1 thread · 100 keys", 40, 2), ["1 thread · 100 keys"]);
        assert_eq!(wrap("1 thread · 100 keys · update-heavy", 22, 3), ["1 thread · 100 keys ·", "update-heavy"]);
        assert_eq!(wrap("abcdefgh", 3, 9), ["abc", "def", "gh"]);
        assert_eq!(wrap(&"x".repeat(300), 40, 2), ["x".repeat(40), "x".repeat(39) + "…"]);
        for text in ["a bb ccc dddd eeeee ffffff ggggggg", "ggggggg ffffff eeeee dddd ccc bb a"] {
            assert_eq!(wrap(text, 9, 20).join(" "), text);
            assert!(wrap(text, 9, 20).iter().all(|line| line.chars().count() <= 9));
        }
    }
}
