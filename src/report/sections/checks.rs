//! Section `checks`: each sanity check with its rule, its verdict and the trials it rests on, and those that did not run.

use super::{Context, Section, tone};
use crate::{
    report::{
        block::{Block, Cell, Definition, Table, Tone},
        number::counted,
    },
    verdict::{
        Verdict,
        checks::{self, Exhibit, Subject},
    },
};

pub(super) const SECTION: Section = Section { id: "checks", title: "Sanity checks", build };

/// Trials that a verdict lists; the others are in the table of proofs.
const MAX_ROWS: usize = 40;

fn build(context: &Context) -> Vec<Block> {
    let mut table = Table::new("", &[("Check", None), ("Verdict", None), ("Finding", None)]);
    for verdict in &context.verdicts {
        table.row(vec![
            Cell::new(verdict.info.title).note(verdict.info.name),
            Cell::new(verdict.grade.name()).tone(tone(verdict.grade)).strong(),
            Cell::new(&verdict.summary),
        ]);
    }
    let mut blocks = vec![Block::Table(table), silent(context)];
    for verdict in context.verdicts.iter().filter(|verdict| !verdict.rows.is_empty()) {
        blocks.push(Block::Details {
            summary: format!("{}: {}", verdict.info.title, counted(verdict.rows.len(), "finding")),
            tone: tone(verdict.grade),
            blocks: vec![Block::Table(rows(context, verdict))],
        });
    }
    for verdict in context.verdicts.iter().filter(|verdict| !verdict.exhibits.is_empty()) {
        let exhibits = verdict.exhibits.iter().map(|exhibit| Block::Table(exhibited(exhibit))).collect();
        blocks.push(Block::details(format!("{}: what it was judged from", verdict.info.title), exhibits));
    }
    let rules = context.verdicts.iter().map(rule).collect();
    blocks.push(Block::details("The rule of each check", vec![Block::Definitions { entries: rules }]));
    blocks
}

/// The checks that did not run: a reader must not take their silence for a pass.
fn silent(context: &Context) -> Block {
    let mut table = Table::new("", &[("Check", None), ("Verdict", None), ("What is not known", None)]);
    for (name, question) in not_run(context) {
        table.row(vec![Cell::new(name), Cell::new("not run").tone(Tone::Unknown), Cell::new(question)]);
    }
    let summary = format!("Not run: {}, so that what they ask is not known", counted(table.rows.len(), "check"));
    Block::Details { summary, tone: Tone::Unknown, blocks: vec![Block::Table(table)] }
}

/// Names of checks that did not run, with what they would have asked or why they are not known.
pub(super) fn not_run(context: &Context) -> Vec<(String, String)> {
    let asked = &context.evidence.plan.checks;
    let left_out =
        checks::ALL.iter().map(|check| check.info()).filter(|info| !asked.iter().any(|name| name == info.name));
    let mut names: Vec<(String, String)> = left_out
        .map(|info| (info.name.to_owned(), format!("Whether {}: the spec leaves it out.", info.rule)))
        .collect();
    let planned = checks::planned();
    names.extend(
        planned.map(|(name, meaning)| (name.to_owned(), format!("Whether {meaning}: this version cannot tell."))),
    );
    let known = |name: &str| {
        checks::ALL.iter().any(|check| check.info().name == name)
            || checks::planned().any(|(planned, _)| planned == name)
    };
    let unknown = asked.iter().filter(|name| !known(name));
    names.extend(unknown.map(|name| (name.clone(), "The plan asks for it; this version does not know it.".to_owned())));
    names
}

fn rows(context: &Context, verdict: &Verdict) -> Table {
    let mut table = Table::new("", &[("Trial", None), ("Cell", None), ("Verdict", None), ("Finding", None)]);
    for row in verdict.rows.iter().take(MAX_ROWS) {
        let not_planned = || "not in the plan".to_owned();
        let (trial, cell) = match row.subject {
            Subject::Record { record_idx, trial } => {
                let label = context.evidence.trial_label(trial).unwrap_or_else(not_planned);
                (Cell::code(trial.to_string()).note(format!("record {record_idx}")), Some(label))
            }
            Subject::Cell(cell) => (Cell::new("the cell"), Some(context.evidence.cell_label(cell))),
            Subject::Run => (Cell::new("the run"), None),
        };
        table.row(vec![
            trial,
            Cell::new(cell.unwrap_or_else(|| "all".to_owned())),
            Cell::new(row.grade.name()).tone(tone(row.grade)),
            Cell::new(&row.finding),
        ]);
    }
    let n_more = verdict.rows.len().saturating_sub(MAX_ROWS);
    if n_more > 0 { table.noted(format!("{} more.", counted(n_more, "finding"))) } else { table }
}

fn exhibited(exhibit: &Exhibit) -> Table {
    let mut table = Table::new(&exhibit.title, &exhibit.columns);
    for row in &exhibit.rows {
        table.row(row.iter().map(Cell::new).collect());
    }
    table.noted(&exhibit.note)
}

fn rule(verdict: &Verdict) -> Definition {
    let info = verdict.info;
    Definition {
        term: info.title.to_owned(),
        text: format!("Rule: {}. Threshold: {}.", info.rule, info.threshold),
        note: format!("Why: {}. Source: {}. If it fires: {}.", info.reason, info.source, info.remedy),
        code: false,
    }
}
