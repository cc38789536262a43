//! Section `trials`: every record, in the order of the journal.

use super::{Context, Section};
use crate::{
    report::{
        block::{Block, Cell, Table, Tone},
        csv,
        number::{self, NONE, counted},
    },
    stats::Standing,
};

pub(super) const SECTION: Section = Section { id: "trials", title: "Every trial", build };

fn build(context: &Context) -> Vec<Block> {
    let evidence = context.evidence;
    let columns = [
        ("record", Some("")),
        ("position", Some("")),
        ("trial", None),
        ("cell", None),
        ("throughput", Some("Mops/s")),
        ("standing", None),
        ("seed", None),
    ];
    let mut table = Table::new("", &columns);
    for (record_idx, (trial, summary)) in evidence.trials.iter().zip(&evidence.summary.trials).enumerate() {
        let label = evidence.trial_label(trial.trial).unwrap_or_else(|| NONE.to_owned());
        let standing = Cell::new(csv::standing(summary.standing));
        let standing = match summary.standing {
            Standing::Counted | Standing::Instrumented => standing,
            Standing::Excluded | Standing::Failed | Standing::Foreign => standing.tone(Tone::Bad).strong(),
            Standing::Superseded => standing.tone(Tone::Warn),
            Standing::NotRun => standing.tone(Tone::Unknown),
        };
        let position = Cell::new(trial.position.to_string());
        let attempt = if trial.attempt > 0 { format!("attempt {}", trial.attempt + 1) } else { String::new() };
        table.row(vec![
            Cell::new(record_idx.to_string()),
            position.note(attempt),
            Cell::code(trial.trial.to_string()),
            Cell::new(label),
            Cell::new(summary.throughput.map_or(NONE.to_owned(), number::mops)),
            standing,
            Cell::code(trial.request.seed.to_string()),
        ]);
    }
    let n_records = table.rows.len();
    if n_records == 0 {
        return vec![Block::paragraph("There is no record.")];
    }
    table.per_trial = true;
    let table = table.noted(
        "Record: line of trials.jsonl, from 0. Position: place in the planned order. When each began is in data.csv.",
    );
    vec![
        Block::paragraph(
            "In the order of the journal. data.csv has every field of every record; trials.jsonl is the record itself, a line \
             each, with a digest of its own.",
        ),
        Block::details(counted(n_records, "record"), vec![Block::Table(table)]),
    ]
}
