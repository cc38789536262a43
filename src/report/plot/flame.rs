//! Flame graphs in the style of the report: colours of the page, names without what all have in common, and no frames
//! below those that most samples share.

use std::collections::BTreeMap;

use super::{
    palette::{self, Ink},
    svg::{Drawing, escape},
};
use crate::{
    record::watched::{Profile, Stack},
    report::{symbol, text},
    tools::flame,
};

/// A frame with this share of all samples above it, counted from the outermost, is the way into what is measured, and tells
/// nothing. Some samples come another way: the kernel's, and those of code that keeps no frame pointer.
const WAY_IN: f64 = 0.75;

/// Strongest fill of a frame, so that the text on it can be read.
const STRONGEST: f64 = 0.55;

/// Draws a profile; `None` if it has no samples. `title` tells what it shows to those who cannot see it.
pub(crate) fn flame(profile: &Profile, title: &str) -> Option<Drawing> {
    let profile = shortened(profile, way_in(profile).len());
    Some(drawing(&flame::graph(&profile).ok()?, title, |red, green, _| {
        // Inferno's warm colours differ by name; here one colour does, by its strength.
        let strength = 0.25 + 0.25 * f64::from(green) / 230.0 + 0.05 * f64::from(red) / 255.0;
        (palette::SERIES[4], strength)
    }))
}

/// Draws the second of two profiles, coloured by what became of each frame's share since the first.
pub(crate) fn difference(before: &Profile, after: &Profile, title: &str) -> Option<Drawing> {
    let ways = (way_in(before), way_in(after));
    let n_shared = ways.0.iter().zip(&ways.1).take_while(|(before, after)| before == after).count();
    let svg = flame::difference(&shortened(before, n_shared), &shortened(after, n_shared)).ok()?;
    Some(drawing(&svg, title, |red, green, blue| {
        // Inferno goes from white to red or to blue.
        let strength = STRONGEST * f64::from(255 - green) / 155.0;
        match red.cmp(&blue) {
            std::cmp::Ordering::Greater => (palette::SERIES[1], strength),
            std::cmp::Ordering::Less => (palette::SERIES[0], strength),
            std::cmp::Ordering::Equal => (palette::GRID, STRONGEST),
        }
    }))
}

fn name(profile: &Profile, position: u32) -> &str {
    profile.names.get(position as usize).map_or("", String::as_str)
}

/// Returns the outermost frames below which most samples lie, but for the last of them.
fn way_in(profile: &Profile) -> Vec<&str> {
    let mut way: Vec<&str> = Vec::new();
    let mut inside: Vec<&Stack> = profile.stacks.iter().collect();
    loop {
        let mut weights: BTreeMap<&str, u64> = BTreeMap::new();
        for stack in inside.iter().filter(|stack| stack.frames.len() > way.len()) {
            let weight = weights.entry(name(profile, stack.frames[way.len()])).or_default();
            *weight = weight.saturating_add(stack.weight);
        }
        let widest = weights.into_iter().max_by_key(|&(name, weight)| (weight, std::cmp::Reverse(name)));
        let Some((next, _)) = widest.filter(|&(_, weight)| weight as f64 >= WAY_IN * profile.weight as f64) else {
            break;
        };
        inside.retain(|stack| stack.frames.get(way.len()).is_some_and(|&position| name(profile, position) == next));
        way.push(next);
    }
    way.pop();
    way
}

/// Leaves out the first `n_frames` frames of the stacks that go through the way in, and makes all names plain.
fn shortened(profile: &Profile, n_frames: usize) -> Profile {
    let way: Vec<&str> = way_in(profile).into_iter().take(n_frames).collect();
    let is_inside = |stack: &Stack| {
        let names = stack.frames.iter().map(|&position| name(profile, position));
        stack.frames.len() > way.len() && names.zip(&way).all(|(name, expected)| name == *expected)
    };
    let cut = |stack: &Stack| {
        let n_cut = if is_inside(stack) { way.len() } else { 0 };
        Stack { frames: stack.frames[n_cut..].to_vec(), weight: stack.weight }
    };
    Profile {
        names: profile.names.iter().map(|name| text::visible(&symbol::plain(name))).collect(),
        stacks: profile.stacks.iter().map(cut).collect(),
        ..profile.clone()
    }
}

/// Puts a picture of inferno's into both forms. `recolour` turns a colour of its into one of ours and its strength.
fn drawing(svg: &str, title: &str, recolour: impl Fn(u8, u8, u8) -> (Ink, f64)) -> Drawing {
    let frames = svg.split_once('>').map_or("", |(_, rest)| rest.trim_end().trim_end_matches("</svg>"));
    let (top, height) = extent(frames);
    let title = escape(&text::visible(title));
    let root = |attributes: &str, text: &str| {
        format!(
            "<svg {attributes} viewBox=\"0 {top} 1000 {height}\" role=\"img\" aria-label=\"{title}\" \
             font-family=\"monospace\" font-size=\"12\" fill=\"{text}\"><title>{title}</title>"
        )
    };
    let hex = |ink: Ink| format!("#{:02X}{:02X}{:02X}", ink.rgb.0, ink.rgb.1, ink.rgb.2);
    let page = root("class=\"panel flame\"", "var(--text)");
    let file =
        root(&format!("width=\"1000\" height=\"{height}\" xmlns=\"http://www.w3.org/2000/svg\""), &hex(palette::TEXT));
    let variable = |ink: Ink| format!("var({})", ink.variable);
    let background = format!("<rect y=\"{top}\" width=\"1000\" height=\"{height}\" fill=\"#FFFFFF\"/>");
    Drawing {
        inline: format!("<div class=\"scroll\">{page}{}</svg></div>\n", filled(frames, &recolour, variable)),
        standalone: format!("{file}{background}{}</svg>\n", filled(frames, &recolour, hex)),
    }
}

/// Replaces the colour of each frame.
fn filled(frames: &str, recolour: impl Fn(u8, u8, u8) -> (Ink, f64), write: impl Fn(Ink) -> String) -> String {
    let mut parts = frames.split("fill=\"rgb(");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (colour, rest) = part.split_once(")\"").unwrap_or((part, ""));
        let mut numbers = colour.split(',').map(|number| number.trim().parse().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        let (ink, strength) = recolour(next(), next(), next());
        filled.push_str(&format!("fill=\"{}\" fill-opacity=\"{strength:.2}\"{rest}", write(ink)));
    }
    filled
}

/// Returns where the frames begin and how high they are, with some room: inferno leaves more for its controls.
fn extent(frames: &str) -> (u32, u32) {
    let number = |rect: &str, name: &str| -> Option<u32> { rect.split_once(name)?.1.split_once('"')?.0.parse().ok() };
    let rects =
        frames.split("<rect ").skip(1).filter_map(|rect| Some((number(rect, " y=\"")?, number(rect, " height=\"")?)));
    let (mut top, mut bottom) = (u32::MAX, 0);
    for (y, height) in rects {
        (top, bottom) = (top.min(y), bottom.max(y + height));
    }
    let top = top.min(bottom).saturating_sub(8);
    (top, bottom + 8 - top)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(stacks: &[(&[&str], u64)]) -> Profile {
        let mut names: Vec<String> = Vec::new();
        let mut position = |name: &str| {
            let known = names.iter().position(|known| known == name);
            let position = known.unwrap_or_else(|| {
                names.push(name.to_owned());
                names.len() - 1
            });
            u32::try_from(position).unwrap()
        };
        let stack = |(frames, weight): &(&[&str], u64)| Stack {
            frames: frames.iter().map(|name| position(name)).collect(),
            weight: *weight,
        };
        let stacks: Vec<Stack> = stacks.iter().map(stack).collect();
        Profile {
            event: "cpu-clock".to_owned(),
            samples: 100,
            weight: stacks.iter().map(|stack| stack.weight).sum(),
            lost: 0,
            threads: 1,
            symbols: Vec::new(),
            n_symbols: 0,
            names,
            n_stacks: stacks.len() as u64,
            stacks,
        }
    }

    #[test]
    fn the_way_in_is_left_out_and_nothing_else() {
        let profile = profile(&[
            (&["start", "run", "measure", "get"], 60),
            (&["start", "run", "measure", "put"], 38),
            (&["other"], 2),
        ]);
        assert_eq!(way_in(&profile), ["start", "run"]);
        let folded: Vec<String> = flame::fold(&shortened(&profile, 2)).into_keys().collect();
        assert_eq!(folded, ["measure;get", "measure;put", "other"]);
        let svg = flame(&profile, "what \"it\" shows").unwrap().standalone;
        assert!(svg.contains("measure (98") && !svg.contains(">run"), "{svg}");
        assert!(svg.contains("<title>what &quot;it&quot; shows</title>"));
    }

    #[test]
    fn pages_have_variables_and_files_have_colours() {
        let (before, after) = (
            profile(&[(&["m", "get"], 50), (&["m", "put"], 50)]),
            profile(&[(&["m", "get"], 90), (&["m", "put"], 10)]),
        );
        let Drawing { inline, standalone } = difference(&before, &after, "t").unwrap();
        assert!(!inline.contains("rgb(") && !inline.contains("fill=\"#"), "{inline}");
        assert!(!standalone.contains("rgb(") && !standalone.contains("var("), "{standalone}");
        assert!(inline.contains("var(--s2)") && inline.contains("var(--s1)"), "one grew and one shrank: {inline}");
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert_eq!(flame(&profile(&[]), "t"), None);
    }
}
