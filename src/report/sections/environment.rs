//! Section `environment`: the whole record of the machine and the build, before and after.

use std::collections::BTreeMap;

use super::{Context, Section, banner};
use crate::{
    record::{Entry, Environment, Reading, environment::Stability},
    report::{
        block::{Block, Cell, Table, Tone},
        number::counted,
    },
};

pub(super) const SECTION: Section = Section { id: "environment", title: "Environment", build };

fn build(context: &Context) -> Vec<Block> {
    let environment = context.evidence.environment;
    let mut blocks = Vec::new();
    let when = match &environment.after {
        Some(after) => {
            format!("Read before the first trial ({}) and after the last ({}).", environment.before.taken, after.taken)
        }
        None => format!(
            "Read before the first trial ({}). There is no record from after the last: the run was interrupted or goes on.",
            environment.before.taken
        ),
    };
    blocks.push(Block::paragraph(when));
    let changed = banner::changed_settings(context);
    if !changed.is_empty() {
        blocks.push(Block::callout(
            Tone::Warn,
            format!("{} changed during the run", counted(changed.len(), "setting")),
            format!("{}.", changed.join(", ")),
        ));
    }
    let entries = both(environment);
    let differing: Vec<&Both> = entries.iter().filter(|entry| entry.differs()).collect();
    let n_unreadable = entries.iter().filter(|entry| entry.is_unreadable()).count();
    let after = match (&environment.after, differing.len()) {
        (None, _) => String::new(),
        (Some(_), n) => format!(" {n} read differently after the run."),
    };
    blocks.push(Block::paragraph(format!(
        "{}, {n_unreadable} of them unreadable, each with the reason.{after}",
        counted(entries.len(), "parameter")
    )));
    if !differing.is_empty() {
        let summary = format!("Different after the run: {}", counted(differing.len(), "parameter"));
        blocks.push(Block::details(summary, vec![Block::Table(table(&differing))]));
    }
    let mut groups: Vec<(&str, Vec<&Both>)> = Vec::new();
    for entry in &entries {
        let name = entry.any().key.split('.').next().unwrap_or_default();
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, entries)) => entries.push(entry),
            None => groups.push((name, vec![entry])),
        }
    }
    for (name, entries) in groups {
        let unreadable = entries.iter().filter(|entry| entry.is_unreadable()).count();
        let summary = match unreadable {
            0 => format!("{name}: {}", counted(entries.len(), "parameter")),
            _ => format!("{name}: {}, {unreadable} unreadable", counted(entries.len(), "parameter")),
        };
        blocks.push(Block::details(summary, vec![Block::Table(table(&entries))]));
    }
    blocks
}

/// One parameter before and after the run.
struct Both<'e> {
    before: Option<&'e Entry>,
    after: Option<&'e Entry>,
    /// Whether there is a record from after the run at all.
    complete: bool,
}

impl<'e> Both<'e> {
    fn any(&self) -> &'e Entry {
        self.before.or(self.after).expect("both() makes one of an entry")
    }

    fn differs(&self) -> bool {
        self.complete && self.before.map(|entry| &entry.reading) != self.after.map(|entry| &entry.reading)
    }

    fn is_unreadable(&self) -> bool {
        matches!(self.any().reading, Reading::Unreadable(_))
    }
}

/// Pairs the entries of both records, in the order of the first, then what only the second has.
fn both(environment: &Environment) -> Vec<Both<'_>> {
    let later = environment.after.iter().flat_map(|after| &after.entries);
    let mut of_key: BTreeMap<&str, &Entry> = later.map(|entry| (entry.key.as_str(), entry)).collect();
    let complete = environment.after.is_some();
    let entries = environment.before.entries.iter();
    let mut all: Vec<Both> = entries
        .map(|before| Both { before: Some(before), after: of_key.remove(before.key.as_str()), complete })
        .collect();
    all.extend(of_key.into_values().map(|after| Both { before: None, after: Some(after), complete }));
    all
}

fn table(entries: &[&Both]) -> Table {
    let mut table = Table::new("", &[("parameter", None), ("value", None), ("source", None)]);
    for both in entries {
        let (entry, or_none) = (both.any(), |entry: Option<&Entry>| entry.map_or("not recorded".to_owned(), text));
        let mut value = reading(entry);
        if both.differs() {
            value = Cell::new(format!("before: {}", or_none(both.before)));
            value = value.note(format!("after: {}", or_none(both.after)));
            if entry.stability != Stability::Volatile {
                value = value.tone(Tone::Warn).strong();
            }
        }
        table.row(vec![Cell::code(&entry.key), value, Cell::new(&entry.source)]);
    }
    table
}

fn reading(entry: &Entry) -> Cell {
    match &entry.reading {
        Reading::Value(_) => Cell::new(text(entry)),
        Reading::Unreadable(reason) => Cell::new("unreadable").tone(Tone::Unknown).note(reason),
    }
}

fn text(entry: &Entry) -> String {
    match &entry.reading {
        Reading::Value(value) if entry.unit.is_empty() => value.clone(),
        Reading::Value(value) => format!("{value} {}", entry.unit),
        Reading::Unreadable(reason) => format!("unreadable, {reason}"),
    }
}
