//! A strip of dots that fits a line of text: every trial of a cell on an axis from zero.

use std::fmt::Write;

use super::{palette, svg::escape};

/// Size in points.
const WIDTH: f64 = 132.0;
const HEIGHT: f64 = 18.0;
/// Room for half a dot at either end.
const MARGIN: f64 = 4.0;

/// Draws `values` and their median on an axis from 0 to `max`. `text` tells them to those who cannot see them.
pub(crate) fn strip(values: &[f64], median: f64, max: f64, series_idx: usize, text: &str) -> String {
    let x = |value: f64| MARGIN + value / max * (WIDTH - 2.0 * MARGIN);
    let text = escape(text);
    let variable = palette::series(series_idx).0.variable;
    let mut svg = format!(
        "<svg class=\"strip\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\"><title>{text}</title>\
         <path class=\"base\" d=\"M{MARGIN} 2V16M{MARGIN} 9H{}\"/>",
        WIDTH - MARGIN
    );
    write!(svg, "<g fill=\"var({variable})\">").expect("writing to a string cannot fail");
    for (value, y) in values.iter().zip([9, 6, 12].into_iter().cycle()) {
        write!(svg, "<circle cx=\"{:.1}\" cy=\"{y}\" r=\"2.2\"/>", x(*value)).expect("writing to a string cannot fail");
    }
    write!(svg, "</g><path class=\"median\" d=\"M{:.1} 2V16\"/></svg>", x(median))
        .expect("writing to a string cannot fail");
    svg
}
