//! One panel: each trial relative to the median of its cell, in the order in which the trials ran.

use plotters::style::text_anchor::HPos;

use super::{
    palette,
    pen::{Area, Drawn, LABEL_CHARS, MARGIN, Pen, Sketch, TITLE_CHARS, TITLE_LINE, UNIT, WIDTH, wrap},
};

/// Height of the area of points.
const AREA: i32 = 150;
/// Room for the ticks on the left.
const GUTTER: i32 = 44;
const FOOT: i32 = 26;
const LEGEND_LINE: i32 = 16;

/// What a panel of drift shows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Drift {
    /// What tells it from the other panels.
    pub title: String,
    /// The structures by their index, for colour and shape, and their names.
    pub legend: Vec<(usize, String)>,
    /// One point a trial.
    pub points: Vec<Point>,
    /// First and last position, and the median ratio, of each block.
    pub steps: Vec<(u32, u32, f64)>,
    /// Last position of the whole run; the first is 0.
    pub last_position: u32,
    /// Smallest and largest ratio that the axis must hold.
    pub range: (f64, f64),
}

/// One trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// Place in the order of the run.
    pub position: u32,
    /// Throughput over the median of its cell.
    pub ratio: f64,
    /// Index of the structure.
    pub series_idx: usize,
}

impl Sketch for Drift {
    fn title(&self) -> &str {
        &self.title
    }

    fn height(&self) -> i32 {
        self.head() + AREA + FOOT
    }

    fn draw(&self, area: &Area, left: i32, top: i32) -> Drawn {
        let pen = Pen { area, left, top };
        let titles = wrap(&self.title, TITLE_CHARS, 3);
        pen.title(&titles)?;
        let mut y = 9 + TITLE_LINE * n(&titles) + LEGEND_LINE / 2;
        for line in self.legend_lines() {
            for (x, series_idx, label) in line {
                let (ink, shape) = palette::series(series_idx);
                pen.marker(shape, pen.at((x + 5, y)), 4 * UNIT, ink)?;
                pen.text(&label, (x + 14, y), 12, palette::TEXT, HPos::Left)?;
            }
            y += LEGEND_LINE;
        }
        self.axes(&pen)?;
        for point in &self.points {
            let (ink, shape) = palette::series(point.series_idx);
            pen.marker(shape, (self.x(&pen, point.position), self.y(&pen, point.ratio)), 2 * UNIT, ink)?;
        }
        for &(first, last, ratio) in &self.steps {
            let y = self.y(&pen, ratio);
            pen.line((self.x(&pen, first), y), (self.x(&pen, last), y), 2 * UNIT, palette::TEXT)?;
        }
        Ok(())
    }
}

impl Drift {
    fn head(&self) -> i32 {
        let titles = wrap(&self.title, TITLE_CHARS, 3);
        20 + TITLE_LINE * n(&titles) + LEGEND_LINE * n(&self.legend_lines())
    }

    /// Places of the names of the legend: left end, series, text.
    fn legend_lines(&self) -> Vec<Vec<(i32, usize, String)>> {
        let mut lines: Vec<Vec<(i32, usize, String)>> = vec![Vec::new()];
        let mut x = MARGIN;
        for (series_idx, label) in &self.legend {
            let label = wrap(label, LABEL_CHARS, 1).remove(0);
            let width = 34 + i32::try_from(label.chars().count()).expect("wrapped") * 27 / 4;
            if x > MARGIN && x + width > WIDTH - MARGIN {
                lines.push(Vec::new());
                x = MARGIN;
            }
            lines.last_mut().expect("there is always a line").push((x, *series_idx, label));
            x += width;
        }
        lines
    }

    fn axes(&self, pen: &Pen) -> Drawn {
        let (low, high) = self.ends();
        let right = pen.at((WIDTH - MARGIN, 0)).0;
        let step = [1, 2, 5, 10].into_iter().find(|step| (high - low) / step <= 6).unwrap_or(20);
        for tenth in (low..=high).filter(|tenth| (tenth - 10) % step == 0) {
            let y = self.y(pen, f64::from(tenth) / 10.0);
            let ink = if tenth == 10 { palette::MUTED } else { palette::GRID };
            let left = pen.at((GUTTER, 0)).0;
            pen.line((left, y), (right, y), UNIT, ink)?;
            let tick = format!("{}.{}×", tenth / 10, tenth % 10);
            pen.text_at(&tick, (left - 5 * UNIT, y), 11, palette::MUTED, HPos::Right)?;
        }
        let y = self.head() + AREA + 12;
        pen.text("first trial", (GUTTER, y), 11, palette::MUTED, HPos::Left)?;
        pen.text("last", (WIDTH - MARGIN, y), 11, palette::MUTED, HPos::Right)
    }

    /// Ends of the axis in tenths.
    fn ends(&self) -> (i32, i32) {
        let low = (self.range.0.min(0.9) * 10.0).floor() as i32;
        (low.max(0), (self.range.1.max(1.1) * 10.0).ceil() as i32)
    }

    fn x(&self, pen: &Pen, position: u32) -> i32 {
        let span = f64::from((WIDTH - MARGIN - GUTTER - 8) * UNIT);
        let share = f64::from(position) / f64::from(self.last_position.max(1));
        pen.at((GUTTER + 4, 0)).0 + (share * span).round() as i32
    }

    fn y(&self, pen: &Pen, ratio: f64) -> i32 {
        let (low, high) = self.ends();
        let share = (ratio * 10.0 - f64::from(low)) / f64::from(high - low);
        pen.at((0, self.head() + AREA)).1 - (share * f64::from(AREA * UNIT)).round() as i32
    }
}

fn n<T>(items: &[T]) -> i32 {
    i32::try_from(items.len()).expect("a panel has few lines")
}
