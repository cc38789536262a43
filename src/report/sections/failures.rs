//! Section `failures`: every trial that failed, broke a law, was replaced or never ran.

use super::{Context, Section};
use crate::{
    plan::TrialId,
    record::Outcome,
    report::{
        block::{Block, Cell, Table, Tone},
        csv,
        number::counted,
    },
    stats::Standing,
};

pub(super) const SECTION: Section = Section { id: "failures", title: "Failed and excluded trials", build };

/// Missing trials that are named; a run that was stopped early has many.
const MAX_MISSING: usize = 30;

/// Standard error that is shown of a failed trial, in characters from its end: the last words tell most.
const MAX_STDERR: usize = 2000;

fn build(context: &Context) -> Vec<Block> {
    let evidence = context.evidence;
    let mut table = Table::new("", &[("Trial", None), ("Cell", None), ("What", None), ("Detail", None)]);
    let mut stderrs = Vec::new();
    for (record_idx, (trial, summary)) in evidence.trials.iter().zip(&evidence.summary.trials).enumerate() {
        let (what, detail) = match (&trial.outcome, summary.standing) {
            (Outcome::Failed { class, detail, stderr }, _) => {
                stderrs.push((trial.trial, stderr));
                (csv::class_name(*class), detail.clone())
            }
            (Outcome::Replied(_), Standing::Excluded) => {
                let faults: Vec<String> =
                    summary.faults.iter().map(|fault| format!("{}: {}", fault.law.name(), fault.detail)).collect();
                ("excluded".to_owned(), faults.join("; "))
            }
            (Outcome::Replied(_), Standing::Foreign) => ("foreign".to_owned(), "the plan has no such trial".to_owned()),
            (Outcome::Replied(_), Standing::Superseded) => {
                ("superseded".to_owned(), "a later attempt at the same trial stands".to_owned())
            }
            (Outcome::Replied(_), _) => continue,
        };
        let what = Cell::new(what).tone(Tone::Bad).strong();
        let what = if summary.standing == Standing::Superseded { what.note("retried later") } else { what };
        table.row(vec![
            Cell::code(trial.trial.to_string()).note(format!("record {record_idx}")),
            Cell::new(cell_label(context, trial.trial)),
            what,
            Cell::new(detail),
        ]);
    }
    let mut blocks = Vec::new();
    if table.rows.is_empty() && evidence.summary.missing.is_empty() {
        blocks.push(Block::paragraph("None: every planned trial ran, replied and kept every law."));
    }
    if !table.rows.is_empty() {
        blocks.push(Block::Table(table.noted("None of these is in any number above.")));
    }
    for (trial, stderr) in stderrs.into_iter().filter(|(_, stderr)| !stderr.trim().is_empty()) {
        let code = Block::Code { language: "text", text: tail(stderr) };
        blocks.push(Block::details(format!("Standard error of {trial}"), vec![code]));
    }
    blocks.extend(missing(context));
    blocks
}

fn cell_label(context: &Context, trial: TrialId) -> String {
    context.evidence.trial_label(trial).unwrap_or_else(|| "not in the plan".to_owned())
}

fn tail(text: &str) -> String {
    let n_chars = text.chars().count();
    if n_chars <= MAX_STDERR {
        return text.to_owned();
    }
    let tail: String = text.chars().skip(n_chars - MAX_STDERR).collect();
    format!("[{} characters before]\n{tail}", n_chars - MAX_STDERR)
}

fn missing(context: &Context) -> Option<Block> {
    let missing = &context.evidence.summary.missing;
    let named: Vec<String> = missing.iter().take(MAX_MISSING).map(TrialId::to_string).collect();
    let more = missing.len().saturating_sub(MAX_MISSING);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!missing.is_empty()).then(|| {
        Block::callout(
            Tone::Warn,
            format!("{} never ran", counted(missing.len(), "planned trial")),
            format!("{}{more}.", named.join(", ")),
        )
    })
}
