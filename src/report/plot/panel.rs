//! One panel: the throughputs of one configuration, a row for each structure.

use plotters::{
    coord::Shift,
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use super::{
    palette::{self, Ink, Shape},
    scale::Scale,
    svg::UNIT,
};
use crate::stats::Interval;

/// Width of a panel in points: on a phone it shrinks to nine tenths, on a page it grows by as much.
pub(super) const WIDTH: i32 = 400;
const MARGIN: i32 = 10;
const HEAD: i32 = 34;
const ROW: i32 = 44;
const FOOT: i32 = 40;

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

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

impl Panel {
    /// Returns the height in points.
    pub(super) fn height(&self) -> i32 {
        HEAD + ROW * i32::try_from(self.rows.len()).expect("a panel has few rows") + FOOT
    }

    /// Draws the panel with its upper left corner at `(left, top)` in points.
    pub(super) fn draw(&self, area: &Area, left: i32, top: i32) -> Drawn {
        let pen = Pen { area, left, top };
        let scale = Scale::up_to(self.max);
        pen.text(&clip(&self.title, 58), (MARGIN, HEAD / 2 - 2), 13, palette::TEXT, HPos::Left)?;
        pen.axis(&scale, self.height())?;
        for (row_idx, row) in (0..).zip(&self.rows) {
            pen.row(row, &scale, HEAD + ROW * row_idx)?;
        }
        Ok(())
    }
}

/// Draws in points relative to a panel.
struct Pen<'a, 'b> {
    area: &'a Area<'b>,
    left: i32,
    top: i32,
}

impl Pen<'_, '_> {
    fn at(&self, (x, y): (i32, i32)) -> (i32, i32) {
        ((self.left + x) * UNIT, (self.top + y) * UNIT)
    }

    /// Horizontal place of a value, in units.
    fn x_of(&self, value: f64, scale: &Scale) -> i32 {
        let span = f64::from((WIDTH - 2 * MARGIN - 12) * UNIT);
        (self.left + MARGIN) * UNIT + (value / scale.max() * span).round() as i32
    }

    fn text(&self, text: &str, at: (i32, i32), size: i32, ink: Ink, anchor: HPos) -> Drawn {
        // The backend divides sizes by 1.24.
        let font = ("sans-serif", f64::from(size * UNIT) * 1.24).into_font();
        let style = TextStyle::from(font).color(&ink.rgb).pos(Pos::new(anchor, VPos::Center));
        self.area.draw(&Text::new(text.to_owned(), self.at(at), style))
    }

    fn axis(&self, scale: &Scale, height: i32) -> Drawn {
        let (upper, lower) = (self.at((0, HEAD + 4)).1, self.at((0, height - FOOT)).1);
        for &tick in &scale.ticks {
            let x = self.x_of(tick, scale);
            let ink = if tick == 0.0 { palette::MUTED } else { palette::GRID };
            self.area.draw(&PathElement::new(vec![(x, upper), (x, lower)], ink.rgb.stroke_width(UNIT as u32)))?;
            let style = TextStyle::from(("sans-serif", f64::from(11 * UNIT) * 1.24).into_font())
                .color(&palette::MUTED.rgb)
                .pos(Pos::new(HPos::Center, VPos::Center));
            self.area.draw(&Text::new(scale.label(tick), (x, lower + 10 * UNIT), style))?;
        }
        self.text("Mops/s", (WIDTH / 2, height - 11), 11, palette::MUTED, HPos::Center)
    }

    fn row(&self, row: &Row, scale: &Scale, top: i32) -> Drawn {
        let (ink, shape) = palette::series(row.series_idx);
        self.marker(shape, self.at((MARGIN + 8, top + 12)), 4 * UNIT, ink)?;
        self.text(&clip(&row.label, 40), (MARGIN + 18, top + 12), 12, palette::TEXT, HPos::Left)?;
        let written = row.median.as_ref().map_or("no trial counts", |(_, written)| written);
        self.text(written, (WIDTH - MARGIN, top + 12), 12, palette::TEXT, HPos::Right)?;
        let middle = self.at((0, top + 31)).1;
        if let Some(interval) = row.interval {
            let ends = [self.x_of(interval.low, scale), self.x_of(interval.high, scale)];
            self.area.draw(&PathElement::new(
                vec![(ends[0], middle), (ends[1], middle)],
                ink.rgb.stroke_width(2 * UNIT as u32),
            ))?;
            for x in ends {
                let cap = vec![(x, middle - 4 * UNIT), (x, middle + 4 * UNIT)];
                self.area.draw(&PathElement::new(cap, ink.rgb.stroke_width(UNIT as u32)))?;
            }
        }
        for (value_idx, &value) in row.values.iter().enumerate() {
            let at = (self.x_of(value, scale), middle + lane(value_idx) * UNIT);
            self.marker(shape, at, 2 * UNIT + UNIT / 2, ink)?;
        }
        if let Some((median, _)) = row.median {
            let x = self.x_of(median, scale);
            let bar = vec![(x, middle - 9 * UNIT), (x, middle + 9 * UNIT)];
            self.area.draw(&PathElement::new(bar, palette::TEXT.rgb.stroke_width(2 * UNIT as u32)))?;
        }
        Ok(())
    }

    /// Draws a mark of `radius` units around a place in units.
    fn marker(&self, shape: Shape, (x, y): (i32, i32), radius: i32, ink: Ink) -> Drawn {
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
                let stroke = ink.rgb.stroke_width((UNIT * 3 / 2) as u32);
                self.area.draw(&PathElement::new(vec![(x - r, y - r), (x + r, y + r)], stroke))?;
                self.area.draw(&PathElement::new(vec![(x - r, y + r), (x + r, y - r)], stroke))
            }
        }
    }
}

/// Spreads trials over five lanes, so that equal values do not hide each other.
fn lane(value_idx: usize) -> i32 {
    [0, -5, 5, -2, 3][value_idx % 5]
}

/// Cuts a text that would leave its place.
fn clip(text: &str, n_chars: usize) -> String {
    if text.chars().count() <= n_chars {
        return text.to_owned();
    }
    text.chars().take(n_chars - 1).chain(['…']).collect()
}
