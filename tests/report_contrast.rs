//! Every colour of text on every ground it stands on, in the light, in the dark and in print: WCAG 2.2, level AA.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::collections::BTreeMap;

const CSS: &str = include_str!("../templates/report.css");

/// Contrast that text needs, and that marks of a drawing need.
const TEXT: f64 = 4.5;
const MARK: f64 = 3.0;

/// Grounds that any text may stand on.
const GROUNDS: [&str; 3] = ["--paper", "--raised", "--sunken"];

type Colours = BTreeMap<String, [u8; 3]>;

/// Reads the variables of each `:root` block: light, dark, print.
fn modes() -> [Colours; 3] {
    let blocks: Vec<Colours> =
        CSS.split(":root {").skip(1).map(|block| colours(block.split('}').next().unwrap())).collect();
    let [light, dark, print]: [Colours; 3] = blocks.try_into().unwrap();
    // What a mode does not set, it takes from the light.
    let over = |mode: Colours| light.clone().into_iter().chain(mode).collect::<Colours>();
    [light.clone(), over(dark), over(print)]
}

fn colours(block: &str) -> Colours {
    let declarations = block.split(';').filter_map(|declaration| declaration.split_once(':'));
    declarations.filter_map(|(name, value)| Some((name.trim().to_owned(), colour(value.trim())?))).collect()
}

fn colour(text: &str) -> Option<[u8; 3]> {
    let digits = text.strip_prefix('#')?;
    let digits: String = match digits.len() {
        3 => digits.chars().flat_map(|digit| [digit, digit]).collect(),
        _ => digits.to_owned(),
    };
    let part = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    Some([part(0), part(2), part(4)])
}

/// Relative luminance by the definition of WCAG.
fn luminance(colour: [u8; 3]) -> f64 {
    let [red, green, blue] = colour.map(|part| {
        let part = f64::from(part) / 255.0;
        if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

fn contrast(one: [u8; 3], other: [u8; 3]) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn contrast_agrees_with_known_values() {
    let of = |one: &str, other: &str| contrast(colour(one).unwrap(), colour(other).unwrap());
    assert!((of("#000", "#fff") - 21.0).abs() < 1e-9);
    assert!((of("#767676", "#ffffff") - 4.54).abs() < 0.005);
    assert!((of("#ff0000", "#ffffff") - 4.0).abs() < 0.005);
}

#[test]
fn every_text_can_be_read() {
    let mut weak = Vec::new();
    for (mode, colours) in ["light", "dark", "print"].into_iter().zip(modes()) {
        let mut check = |ink: &str, ground: &str, least: f64| {
            let contrast = contrast(colours[ink], colours[ground]);
            if contrast < least {
                weak.push(format!("{mode}: {ink} on {ground} has {contrast:.2}, {least} is due"));
            }
        };
        for ground in GROUNDS {
            for ink in ["--text", "--muted", "--link", "--good", "--warn", "--bad", "--unknown"] {
                check(ink, ground, TEXT);
            }
        }
        for tone in ["good", "warn", "bad", "unknown"] {
            for ink in ["--text".to_owned(), format!("--{tone}")] {
                check(&ink, &format!("--{tone}-wash"), TEXT);
            }
        }
        for series in 1..=8 {
            for ground in ["--paper", "--raised"] {
                check(&format!("--s{series}"), ground, MARK);
            }
        }
    }
    let banner = CSS.split(".quick-banner {").nth(1).unwrap().split('}').next().unwrap();
    let banner = colours(banner);
    assert!(contrast(banner["color"], banner["background"]) >= TEXT);
    assert!(weak.is_empty(), "{}", weak.join("\n"));
}

/// A colour that is not a variable would be the same in all modes, and the test above would not see it.
#[test]
fn colours_are_variables() {
    let rules: String = CSS.split(":root {").map(|part| part.split_once('}').map_or(part, |(_, rest)| rest)).collect();
    for declaration in rules.split([';', '{', '}']).filter(|declaration| declaration.contains('#')) {
        let (name, value) = declaration.split_once(':').unwrap_or((declaration, ""));
        let allowed = ["#1c1400", "#f2b938"].contains(&value.trim()) || value.trim() == "1px solid #000";
        assert!(name.trim().starts_with('#') || allowed, "`{}` names a colour", declaration.trim());
    }
}
