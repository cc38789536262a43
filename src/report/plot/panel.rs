//! One panel: the throughputs of one configuration, a row for each structure.

use plotters::style::text_anchor::HPos;

use super::{
    palette,
    pen::{Area, Drawn, LABEL_CHARS, MARGIN, Pen, Sketch, TITLE_CHARS, TITLE_LINE, UNIT, WIDTH, wrap},
    scale::Scale,
};
use crate::stats::Interval;

/// Height of a row's marks in points.
const ROW: i32 = 26;
/// Height of a line of a label that stands above its marks.
const LABEL_LINE: i32 = 15;
const FOOT: i32 = 26;
/// Width of the medians on the right.
const NUMBERS: i32 = 50;
/// Labels up to this length stand beside their marks; a longer one would leave those no room.
const SIDE_CHARS: usize = 20;

/// What a panel shows. Values are in Mops/s.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Panel {
    /// What tells it from the other panels.
    pub title: String,
    /// One row a structure, in the order of the legend.
    pub rows: Vec<Row>,
    /// Largest value that the axis must hold.
    pub max: f64,
}

/// One structure in one configuration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// Name of the structure.
    pub label: String,
    /// Index of the structure, for its colour and shape.
    pub series_idx: usize,
    /// Every trial that counts, in trial order.
    pub values: Vec<f64>,
    /// Their median, and how it is written.
    pub median: Option<(f64, String)>,
    /// 95 % interval of the median.
    pub interval: Option<Interval>,
}

impl Sketch for Panel {
    fn title(&self) -> &str {
        &self.title
    }

    fn height(&self) -> i32 {
        let rows: i32 = self.rows.iter().map(|row| self.row_height(row)).sum();
        self.head() + rows + FOOT
    }

    fn draw(&self, area: &Area, left: i32, top: i32) -> Drawn {
        let pen = Pen { area, left, top };
        let axis =
            Axis { scale: Scale::up_to(self.max), left: (left + self.gutter()) * UNIT, span: self.span() * UNIT };
        pen.title(&self.title_lines())?;
        let mut row_top = self.head();
        let mut spans = Vec::new();
        for row in &self.rows {
            let bottom = row_top + self.row_height(row);
            spans.push((bottom - ROW, bottom));
            row_top = bottom;
        }
        axis.draw(&pen, &spans)?;
        for (row, &(marks_top, _)) in self.rows.iter().zip(&spans) {
            self.row(&pen, row, &axis, marks_top)?;
        }
        Ok(())
    }
}

impl Panel {
    fn title_lines(&self) -> Vec<String> {
        wrap(&self.title, TITLE_CHARS, 3)
    }

    fn head(&self) -> i32 {
        11 + TITLE_LINE * i32::try_from(self.title_lines().len()).expect("a title has few lines")
    }

    /// Tells whether labels stand beside their marks, and not above.
    fn beside(&self) -> bool {
        self.longest() <= SIDE_CHARS
    }

    fn longest(&self) -> usize {
        self.rows.iter().map(|row| row.label.chars().count()).max().unwrap_or(0)
    }

    /// Left end of the axis in points.
    fn gutter(&self) -> i32 {
        // The widest letters of a label take 0.56 of its size of 12 points in the mean.
        let letters = i32::try_from(self.longest()).expect("a label has few letters");
        if self.beside() { MARGIN + 18 + letters * 27 / 4 } else { MARGIN + 2 }
    }

    /// Length of the axis in points.
    fn span(&self) -> i32 {
        WIDTH - self.gutter() - MARGIN - NUMBERS
    }

    fn row_height(&self, row: &Row) -> i32 {
        if self.beside() { ROW } else { ROW + LABEL_LINE * i32::try_from(lines(row).len()).expect("few lines") }
    }

    fn row(&self, pen: &Pen, row: &Row, axis: &Axis, top: i32) -> Drawn {
        let (ink, shape) = palette::series(row.series_idx);
        let label_lines = if self.beside() { vec![row.label.clone()] } else { lines(row) };
        let n_lines = i32::try_from(label_lines.len()).expect("a label has few lines");
        let label_top = if self.beside() { top + ROW / 2 } else { top - LABEL_LINE * n_lines + 9 };
        pen.marker(shape, pen.at((MARGIN + 5, label_top)), 4 * UNIT, ink)?;
        for (line_idx, line) in (0..).zip(&label_lines) {
            let at = (MARGIN + 15, label_top + LABEL_LINE * line_idx);
            pen.text(line, at, 12, palette::TEXT, HPos::Left)?;
        }
        let written = row.median.as_ref().map_or("none", |(_, written)| written);
        pen.text(written, (WIDTH - MARGIN, top + ROW / 2), 12, palette::TEXT, HPos::Right)?;
        let middle = pen.at((0, top + ROW / 2)).1;
        if let Some(interval) = row.interval {
            let ends = [axis.x_of(interval.low), axis.x_of(interval.high)];
            pen.line((ends[0], middle), (ends[1], middle), 2 * UNIT, ink)?;
            for x in ends {
                pen.line((x, middle - 4 * UNIT), (x, middle + 4 * UNIT), UNIT, ink)?;
            }
        }
        for (value_idx, &value) in row.values.iter().enumerate() {
            let at = (axis.x_of(value), middle + lane(value_idx) * UNIT);
            pen.marker(shape, at, 2 * UNIT + UNIT / 2, ink)?;
        }
        if let Some((median, _)) = row.median {
            let x = axis.x_of(median);
            pen.line((x, middle - 9 * UNIT), (x, middle + 9 * UNIT), 2 * UNIT, palette::TEXT)?;
        }
        Ok(())
    }
}

/// The axis of values, in units.
struct Axis {
    scale: Scale,
    left: i32,
    span: i32,
}

impl Axis {
    fn x_of(&self, value: f64) -> i32 {
        self.left + (value / self.scale.max() * f64::from(self.span)).round() as i32
    }

    /// Draws grid lines beside the marks only, so that none crosses a label, and the ticks below.
    fn draw(&self, pen: &Pen, spans: &[(i32, i32)]) -> Drawn {
        let y = |points: i32| pen.at((0, points)).1;
        let lower = spans.last().map_or(0, |&(_, bottom)| bottom);
        for &tick in &self.scale.ticks {
            let x = self.x_of(tick);
            let ink = if tick == 0.0 { palette::MUTED } else { palette::GRID };
            for &(top, bottom) in spans {
                pen.line((x, y(top)), (x, y(bottom)), UNIT, ink)?;
            }
            pen.text_at(&self.scale.label(tick), (x, y(lower + 10)), 11, palette::MUTED, HPos::Center)?;
        }
        pen.text("Mops/s", (WIDTH - MARGIN, lower + 10), 11, palette::MUTED, HPos::Right)
    }
}

fn lines(row: &Row) -> Vec<String> {
    wrap(&row.label, LABEL_CHARS, 3)
}

/// Spreads trials over five lanes, so that equal values do not hide each other.
fn lane(value_idx: usize) -> i32 {
    [0, -5, 5, -2, 3][value_idx % 5]
}
