//! `rare list`: what can be named in a spec, from the registries, and the plans of the store.

use rare_workloads::structures;
use serde_json::{Value, json};

use super::{
    arguments::{Kind, ListArguments},
    console::Console,
    exit::{Exit, Failure},
    statement, store,
};
use crate::spec::words::{self, Word};

/// Kinds whose members have a line each everywhere.
const SHORT: [Kind; 4] = [Kind::Allocators, Kind::Reclamation, Kind::Checks, Kind::Controls];

/// Lists one kind of thing, or all in short.
pub(super) fn list(console: &Console, arguments: &ListArguments) -> Result<Exit, Failure> {
    let reports = &arguments.store.reports;
    match (arguments.json, arguments.kind) {
        (true, kind) => all_as_json(console, kind, arguments),
        (false, Some(Kind::Plans)) => store::list(console, reports),
        (false, Some(Kind::Structures)) => {
            let blocks: Vec<String> = structures::ALL.iter().map(|structure| statement::block(structure)).collect();
            console.line(blocks.join("\n\n"));
            console.line("\n`rare explain NAME` adds deviations and invariants");
            Ok(Exit::Valid)
        }
        (false, Some(kind)) => {
            console.line(lines(&members(kind), ""));
            Ok(Exit::Valid)
        }
        (false, None) => {
            let titles = structures::ALL.iter().map(|structure| (structure.info.name, structure.info.title)).collect();
            console.line(section("structures (`rare list structures` says more)", &titles));
            SHORT.iter().for_each(|kind| console.line(section(kind.name(), &members(*kind))));
            store::list(console, reports)
        }
    }
}

/// Prints one kind as an array, or an object with all of them.
fn all_as_json(console: &Console, kind: Option<Kind>, arguments: &ListArguments) -> Result<Exit, Failure> {
    let structures = || structures::ALL.iter().map(|structure| statement::json(structure)).collect::<Value>();
    let plans = || store::listed(&arguments.store.reports);
    let short = |kind| members(kind).iter().map(|(name, meaning)| json!({"name": name, "meaning": meaning})).collect();
    let (value, exit) = match kind {
        Some(Kind::Structures) => (structures(), Exit::Valid),
        Some(Kind::Plans) => plans()?,
        Some(kind) => (short(kind), Exit::Valid),
        None => {
            let (plans, exit) = plans()?;
            let mut all = json!({Kind::Structures.name(): structures(), Kind::Plans.name(): plans});
            SHORT.iter().for_each(|kind| all[kind.name()] = short(*kind));
            (all, exit)
        }
    };
    console.write(serde_json::to_string_pretty(&value).expect("a JSON value is always writable") + "\n");
    Ok(exit)
}

/// Name and meaning of each member of a kind that a spec names by a word.
fn members(kind: Kind) -> Vec<(&'static str, &'static str)> {
    let words = |words: &'static [Word]| words.iter().map(|word| (word.name, word.meaning));
    match kind {
        Kind::Structures | Kind::Plans => unreachable!("they have more to them than a word"),
        Kind::Allocators => {
            let preload = ("{preload: PATH}", "any other, as a library that is loaded before the C library");
            words(words::ALLOCATORS).chain([preload]).collect()
        }
        Kind::Reclamation => words(words::RECLAMATION).collect(),
        Kind::Checks => words(words::CHECKS).collect(),
        Kind::Controls => {
            let fault = |control: &structures::Structure| (control.info.name, control.info.deviations[0]);
            structures::CONTROLS.iter().map(|control| fault(control)).collect()
        }
    }
}

fn section(heading: &str, members: &Vec<(&str, &str)>) -> String {
    format!("{heading}\n{}", lines(members, "  "))
}

/// A line for each member, meanings below each other.
fn lines(members: &[(&str, &str)], indent: &str) -> String {
    let width = members.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let lines: Vec<String> =
        members.iter().map(|(name, meaning)| format!("{indent}{name:width$}  {meaning}")).collect();
    lines.join("\n")
}
