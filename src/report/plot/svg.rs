//! From panels to SVG text: one drawing a panel for the inside of a page, where the page arranges them to its width, and
//! one drawing of all panels for a file.

use plotters::{backend::SVGBackend, drawing::IntoDrawingArea};

use super::{
    palette,
    pen::{Sketch, UNIT, WIDTH},
};

/// A drawing in both of its forms.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Drawing {
    /// The panels as elements one after the other, row by row; colours are variables.
    pub inline: String,
    /// A whole file; colours are fixed, on white.
    pub standalone: String,
}

/// Panels in rows of equal lengths; a place may be empty.
pub(crate) type Grid<'a> = [Vec<Option<&'a dyn Sketch>>];

/// Draws panels. `title` tells what they show to those who cannot see them.
pub(crate) fn draw(grid: &Grid, title: &str) -> Drawing {
    let inline = grid.iter().flatten().map(|place| match place {
        Some(panel) => {
            let size = (WIDTH, panel.height());
            let drawn = canvas(&[(*panel, 0, 0)], size);
            element(&with_variables(&drawn), size, &format!("{title}: {}", panel.title()), "panel")
        }
        None => "<div class=\"gap\"></div>\n".to_owned(),
    });
    Drawing { inline: inline.collect(), standalone: standalone(grid, title) }
}

fn standalone(grid: &Grid, title: &str) -> String {
    let (mut placed, mut top) = (Vec::new(), 0);
    for row in grid {
        let at = (0..).zip(row).filter_map(|(column, place)| Some(((*place)?, column * WIDTH, top)));
        placed.extend(at);
        top += row.iter().flatten().map(|panel| panel.height()).max().unwrap_or(0);
    }
    let n_columns = grid.iter().map(Vec::len).max().unwrap_or(1);
    let width = WIDTH * i32::try_from(n_columns).expect("a grid has few columns");
    let drawn = canvas(&placed, (width, top));
    let page = format!("<rect width=\"{}\" height=\"{}\" fill=\"#FFFFFF\"/>\n{drawn}", width * UNIT, top * UNIT);
    let svg = element(&page, (width, top), title, "");
    svg.replacen("<svg ", &format!("<svg width=\"{width}\" height=\"{top}\" xmlns=\"http://www.w3.org/2000/svg\" "), 1)
}

/// Draws panels at their places; returns what is inside of the `svg` element.
fn canvas(panels: &[(&dyn Sketch, i32, i32)], (width, height): (i32, i32)) -> String {
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

/// Escapes text for an element or an attribute of SVG.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
