//! Flame graphs as pictures that need nothing: no script, no style sheet, no font from elsewhere.
//!
//! Source: Gregg, The Flame Graph, CACM 59(6), 2016, drawn by the crate inferno. What inferno adds for a page of its own is
//! taken out again, so that several pictures can stand in one page under a policy that allows no script.

use std::collections::BTreeMap;

use inferno::flamegraph::{self, Options, color::BackgroundColor};
use quick_xml::{
    Reader, Writer,
    events::{BytesStart, Event},
};

use crate::record::watched::{Profile, Stack};

/// Width of the picture in its own units; it takes the width of the page.
const WIDTH: usize = 1_000;

/// Frames narrower than this share of the picture, in percent, are left out: they would be a few pixels wide, without room
/// for a name, and most of the frames.
const NARROWEST: f64 = 0.5;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum FlameError {
    /// A profile has no samples.
    #[error("there are no samples to draw")]
    Nothing,
    /// Inferno failed.
    #[error("the flame graph cannot be drawn")]
    Draw(#[source] std::io::Error),
    /// What inferno drew is no XML.
    #[error("the flame graph cannot be read")]
    Read(#[source] quick_xml::Error),
}

/// Draws a profile. The outermost frames are at the bottom, and each has its share as its title.
///
/// # Errors
/// [`FlameError`].
pub fn graph(profile: &Profile) -> Result<String, FlameError> {
    let lines: Vec<String> = fold(profile).iter().map(|(stack, weight)| format!("{stack} {weight}")).collect();
    draw(&lines, &profile.event)
}

/// Draws `after`, coloured by what became of the share of each frame since `before`: red where it grew, blue where it
/// shrank. The shares are compared, not the samples, of which one may have more.
///
/// # Errors
/// [`FlameError`].
pub fn difference(before: &Profile, after: &Profile) -> Result<String, FlameError> {
    let (before_stacks, after_stacks) = (fold(before), fold(after));
    // Inferno draws the second of two counts and colours by their difference, so the first is brought to its total.
    let scaled = |weight: u64| {
        let scaled = u128::from(weight) * u128::from(after.weight) / u128::from(before.weight.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    };
    let mut both: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (stack, weight) in &before_stacks {
        both.entry(stack).or_default().0 = scaled(*weight);
    }
    for (stack, weight) in &after_stacks {
        both.entry(stack).or_default().1 = *weight;
    }
    let lines: Vec<String> = both.iter().map(|(stack, (before, after))| format!("{stack} {before} {after}")).collect();
    draw(&lines, &after.event)
}

/// Returns each stack as its names between semicolons, with its weight, sorted.
pub fn fold(profile: &Profile) -> BTreeMap<String, u64> {
    let name = |position: &u32| profile.names.get(*position as usize).map_or("[unnamed]", String::as_str);
    let mut folded: BTreeMap<String, u64> = BTreeMap::new();
    for Stack { frames, weight } in &profile.stacks {
        let stack: Vec<String> = frames.iter().map(|position| plain(name(position))).collect();
        let sum = folded.entry(stack.join(";")).or_default();
        *sum = sum.saturating_add(*weight);
    }
    let listed = folded.values().fold(0, |sum: u64, weight| sum.saturating_add(*weight));
    if let Some(rest) = profile.weight.checked_sub(listed).filter(|rest| *rest > 0) {
        folded.insert("[stacks not listed]".to_owned(), rest);
    }
    folded
}

/// Returns a name that can stand between semicolons and before a number.
fn plain(name: &str) -> String {
    let mut name: String = name.chars().map(|letter| if letter == ';' { ':' } else { letter }).collect();
    name.retain(|letter| !letter.is_control());
    // A last word that looks like a count would be taken for one.
    if name.rsplit(' ').next().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')) {
        name.push('\'');
    }
    name
}

fn draw(lines: &[String], event: &str) -> Result<String, FlameError> {
    let mut options = Options::default();
    options.image_width = Some(WIDTH);
    options.min_width = NARROWEST;
    // Colours by name, not by chance.
    options.deterministic = true;
    options.no_javascript = true;
    options.bgcolors = Some(BackgroundColor::Flat((255, 255, 255).into()));
    options.title = String::new();
    options.count_name = unit(event);
    if lines.iter().all(|line| line.split(' ').next_back() == Some("0")) {
        return Err(FlameError::Nothing);
    }
    let mut drawn = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut drawn).map_err(FlameError::Draw)?;
    bare(&drawn).map_err(FlameError::Read)
}

/// Returns what the samples of an event stand for.
fn unit(event: &str) -> String {
    match event.split(':').next() {
        Some("cpu-clock" | "task-clock") => "ns".to_owned(),
        Some(name) if name.contains("cycles") => "cycles".to_owned(),
        _ => "events".to_owned(),
    }
}

/// Takes out of a picture what only a page of its own needs: head, style sheet, script, background, controls, and the
/// attributes that belong to them.
fn bare(svg: &[u8]) -> Result<String, quick_xml::Error> {
    let mut reader = Reader::from_reader(svg);
    let mut writer = Writer::new(Vec::new());
    // Depth within an element that is taken out.
    let mut dropped = 0_u32;
    let mut is_root = true;
    loop {
        match reader.read_event()? {
            Event::Eof => break,
            Event::Start(tag) => {
                if dropped > 0 || is_dropped(&tag)? {
                    dropped += 1;
                } else {
                    let tag = cleaned(&tag, std::mem::take(&mut is_root))?;
                    writer.write_event(Event::Start(tag))?;
                }
            }
            Event::End(_) if dropped > 0 => dropped -= 1,
            Event::Empty(tag) if dropped > 0 || is_dropped(&tag)? => {}
            Event::Empty(tag) => writer.write_event(Event::Empty(cleaned(&tag, false)?))?,
            Event::Decl(_) | Event::DocType(_) | Event::Comment(_) | Event::PI(_) => {}
            event if dropped == 0 => writer.write_event(event)?,
            _ => {}
        }
    }
    // What inferno wrote is text, and so are all parts of it.
    Ok(String::from_utf8_lossy(&writer.into_inner()).into_owned())
}

fn is_dropped(tag: &BytesStart<'_>) -> Result<bool, quick_xml::Error> {
    const CONTROLS: [&[u8]; 6] = [b"title", b"subtitle", b"details", b"unzoom", b"search", b"matched"];
    let has = |name: &str, values: &[&[u8]]| -> Result<bool, quick_xml::Error> {
        Ok(tag.try_get_attribute(name)?.is_some_and(|attribute| values.contains(&&*attribute.value)))
    };
    Ok(match tag.name().into_inner() {
        b"defs" | b"style" | b"script" => true,
        b"text" => has("id", &CONTROLS)?,
        b"rect" => has("fill", &[b"url(#background)"])?,
        _ => false,
    })
}

fn cleaned(tag: &BytesStart<'_>, is_root: bool) -> Result<BytesStart<'static>, quick_xml::Error> {
    const DROPPED: [&[u8]; 6] = [b"onload", b"id", b"class", b"total_samples", b"xmlns:fg", b"xmlns:xlink"];
    let name = String::from_utf8_lossy(tag.name().into_inner()).into_owned();
    let mut kept = BytesStart::new(name);
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(quick_xml::Error::from)?;
        let key = attribute.key.into_inner();
        let is_size = is_root && matches!(key, b"width" | b"height" | b"version");
        if !(DROPPED.contains(&key) || key.starts_with(b"fg:") || is_size) {
            kept.push_attribute(attribute);
        }
    }
    if is_root {
        kept.extend_attributes([("role", "img"), ("font-family", "monospace"), ("font-size", "12")]);
    }
    Ok(kept)
}
