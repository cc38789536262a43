//! From panels to SVG text: one drawing a panel for the inside of a page, where the page arranges them to its width, and
//! one drawing of all panels for a file.

use plotters::{backend::SVGBackend, drawing::IntoDrawingArea};

use super::{palette, panel, panel::Panel};

/// Coordinates of a drawing a point: the library knows whole coordinates only, and marks need finer ones.
pub(super) const UNIT: i32 = 4;

/// Panels side by side in a file.
const N_COLUMNS: usize = 2;

/// A drawing in both of its forms.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Drawing {
    /// The panels as elements one after the other; colours are variables.
    pub inline: String,
    /// A whole file; colours are fixed, on white.
    pub standalone: String,
}

/// Draws panels. `title` tells what they show to those who cannot see them.
pub(crate) fn draw(panels: &[Panel], title: &str) -> Drawing {
    let inline = panels.iter().map(|panel| {
        let drawn = canvas(&[(panel, 0, 0)], (panel::WIDTH, panel.height()));
        element(&with_variables(&drawn), (panel::WIDTH, panel.height()), &format!("{title}: {}", panel.title), "panel")
    });
    Drawing { inline: inline.collect(), standalone: standalone(panels, title) }
}

fn standalone(panels: &[Panel], title: &str) -> String {
    let (mut placed, mut top) = (Vec::new(), 0);
    for row in panels.chunks(N_COLUMNS) {
        placed.extend((0..).zip(row).map(|(column, panel)| (panel, column * panel::WIDTH, top)));
        top += row.iter().map(Panel::height).max().unwrap_or(0);
    }
    let width = panel::WIDTH * i32::try_from(panels.len().min(N_COLUMNS)).expect("at most two");
    let drawn = canvas(&placed, (width, top));
    let page = format!("<rect width=\"{}\" height=\"{}\" fill=\"#FFFFFF\"/>\n{drawn}", width * UNIT, top * UNIT);
    let svg = element(&page, (width, top), title, "");
    svg.replacen("<svg ", &format!("<svg width=\"{width}\" height=\"{top}\" xmlns=\"http://www.w3.org/2000/svg\" "), 1)
}

/// Draws panels at their places; returns what is inside of the `svg` element.
fn canvas(panels: &[(&Panel, i32, i32)], (width, height): (i32, i32)) -> String {
    let mut text = String::new();
    let size = ((width * UNIT) as u32, (height * UNIT) as u32);
    {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        for (panel, left, top) in panels {
            panel.draw(&area, *left, *top).expect("drawing into a string cannot fail");
        }
        area.present().expect("drawing into a string cannot fail");
    }
    let inside = text.split_once(">\n").map_or("", |(_, rest)| rest);
    inside.trim_end().trim_end_matches("</svg>").replace(" opacity=\"1\"", "")
}

fn element(inside: &str, (width, height): (i32, i32), title: &str, class: &str) -> String {
    let title = escape(title);
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    format!(
        "<svg{class} viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n{inside}</svg>\n",
        width * UNIT,
        height * UNIT
    )
}

/// Replaces each colour by its variable, and the font by that of the page.
fn with_variables(drawn: &str) -> String {
    let drawn = drawn.replace(" font-family=\"sans-serif\"", "");
    palette::all().fold(drawn, |drawn, ink| {
        let (red, green, blue) = (ink.rgb.0, ink.rgb.1, ink.rgb.2);
        drawn.replace(&format!("\"#{red:02X}{green:02X}{blue:02X}\""), &format!("\"var({})\"", ink.variable))
    })
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
