//! Section `environment`: the whole record of the machine and the build, before and after.

use super::{Context, Section, banner};
use crate::{
    record::{Entry, Reading, environment::Stability},
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
    let mut groups: Vec<(&str, Vec<&Entry>)> = Vec::new();
    for entry in &environment.before.entries {
        let name = entry.key.split('.').next().unwrap_or_default();
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, entries)) => entries.push(entry),
            None => groups.push((name, vec![entry])),
        }
    }
    for (name, entries) in groups {
        let unreadable = entries.iter().filter(|entry| matches!(entry.reading, Reading::Unreadable(_))).count();
        let summary = match unreadable {
            0 => format!("{name}: {}", counted(entries.len(), "parameter")),
            _ => format!("{name}: {}, {unreadable} unreadable", counted(entries.len(), "parameter")),
        };
        blocks.push(Block::details(summary, vec![Block::Table(table(context, &entries))]));
    }
    blocks
}

fn table(context: &Context, entries: &[&Entry]) -> Table {
    let mut table = Table::new("", &[("parameter", None), ("before", None), ("after", None), ("source", None)]);
    let after = context.evidence.environment.after.as_ref();
    for entry in entries {
        let later = after.and_then(|after| after.entries.iter().find(|later| later.key == entry.key));
        let after = match later {
            None => Cell::new("not recorded").tone(Tone::Unknown),
            Some(later) if later.reading == entry.reading => Cell::new("same"),
            Some(later) if entry.stability == Stability::Volatile => reading(later),
            Some(later) => reading(later).tone(Tone::Warn).strong(),
        };
        table.row(vec![Cell::code(&entry.key), reading(entry), after, Cell::new(&entry.source)]);
    }
    table
}

fn reading(entry: &Entry) -> Cell {
    match &entry.reading {
        Reading::Value(value) if entry.unit.is_empty() => Cell::new(value),
        Reading::Value(value) => Cell::new(format!("{value} {}", entry.unit)),
        Reading::Unreadable(reason) => Cell::new("unreadable").tone(Tone::Unknown).note(reason),
    }
}
