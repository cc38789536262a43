//! Colours and shapes of the series: told apart by people who see few colours, in print, and in the dark.
//!
//! Source: Okabe and Ito, *Color universal design*, 2008; darkened where a colour was too light on white. The values in
//! the dark are in `report.css` under the same names.

use plotters::style::RGBColor;

/// A colour of drawings: its value in files and the variable that stands for it within a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ink {
    pub rgb: RGBColor,
    pub variable: &'static str,
}

const fn ink(red: u8, green: u8, blue: u8, variable: &'static str) -> Ink {
    Ink { rgb: RGBColor(red, green, blue), variable }
}

/// Text.
pub(super) const TEXT: Ink = ink(0x1C, 0x20, 0x24, "--text");
/// Weaker text, and axes.
pub(super) const MUTED: Ink = ink(0x5B, 0x64, 0x6E, "--muted");
/// Grid lines.
pub(super) const GRID: Ink = ink(0xE1, 0xE4, 0xE8, "--line");
/// Series, in order; they repeat after the last, with other shapes.
pub(super) const SERIES: [Ink; 8] = [
    ink(0x00, 0x6B, 0xA6, "--s1"),
    ink(0xC4, 0x4E, 0x00, "--s2"),
    ink(0x00, 0x83, 0x61, "--s3"),
    ink(0xA8, 0x4B, 0x86, "--s4"),
    ink(0xA8, 0x74, 0x00, "--s5"),
    ink(0x3A, 0x8F, 0xC9, "--s6"),
    ink(0x6B, 0x52, 0x2B, "--s7"),
    ink(0x4A, 0x4F, 0x57, "--s8"),
];

/// Shape of a raw value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
}

/// Returns colour and shape of a series. Five shapes and eight colours repeat together only after forty series.
pub(super) fn series(series_idx: usize) -> (Ink, Shape) {
    const SHAPES: [Shape; 5] = [Shape::Circle, Shape::Triangle, Shape::Square, Shape::Diamond, Shape::Cross];
    (SERIES[series_idx % SERIES.len()], SHAPES[series_idx % SHAPES.len()])
}

/// Returns every colour.
pub(super) fn all() -> impl Iterator<Item = Ink> {
    [TEXT, MUTED, GRID].into_iter().chain(SERIES)
}
