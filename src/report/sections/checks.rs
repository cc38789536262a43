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
    let mut blocks = vec![Block::Table(table)];
    blocks.extend(silent(context));
    blocks.extend(context.verdicts.iter().filter_map(|verdict| evidence(context, verdict)));
    let rules = context.verdicts.iter().map(rule).collect();
    blocks.push(Block::details("The rule of each check", vec![Block::Definitions { entries: rules }]));
    blocks
}

/// What a check found and what it judged from, behind one line; `None` if the table of verdicts says it all.
fn evidence(context: &Context, verdict: &Verdict) -> Option<Block> {
    let findings = (!verdict.rows.is_empty()).then(|| counted(verdict.rows.len(), "finding"));
    // A table without rows shows nothing; the verdict says what is missing.
    let exhibits: Vec<&Exhibit> = verdict.exhibits.iter().filter(|exhibit| !exhibit.rows.is_empty()).collect();
    let source = (!exhibits.is_empty()).then(|| "what it was judged from".to_owned());
    let parts: Vec<String> = findings.iter().chain(&source).cloned().collect();
    let mut blocks: Vec<Block> = findings.iter().map(|_| Block::Table(rows(context, verdict))).collect();
    blocks.extend(exhibits.into_iter().map(|exhibit| Block::Table(exhibited(exhibit))));
    // Without a finding the colour of the verdict would point at nothing.
    let tone = if findings.is_some() { tone(verdict.grade) } else { Tone::Plain };
    let summary = format!("{}: {}", verdict.info.title, parts.join(", and "));
    (!blocks.is_empty()).then_some(Block::Details { summary, tone, blocks })
}

/// The checks that did not run: a reader must not take their silence for a pass. `None` if all did.
fn silent(context: &Context) -> Option<Block> {
    let mut table = Table::new("", &[("Check", None), ("Verdict", None), ("What is not known", None)]);
    for (name, question) in not_run(context) {
        table.row(vec![Cell::new(name), Cell::new("not run").tone(Tone::Unknown), Cell::new(question)]);
    }
    let summary = format!("Not run: {}, so that what they ask is not known", counted(table.rows.len(), "check"));
    (!table.rows.is_empty()).then(|| Block::Details { summary, tone: Tone::Unknown, blocks: vec![Block::Table(table)] })
}

/// Names of checks that did not run, with what they would have asked or why they are not known.
pub(super) fn not_run(context: &Context) -> Vec<(String, String)> {
    let asked = &context.evidence.plan.checks;
    let left_out =
        checks::ALL.iter().map(|check| check.info()).filter(|info| !asked.iter().any(|name| name == info.name));
    let mut names: Vec<(String, String)> = left_out
        .map(|info| (info.name.to_owned(), format!("Whether {}: the spec leaves it out.", info.rule)))
        .collect();
    let known = |name: &str| checks::ALL.iter().any(|check| check.info().name == name);
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
    for (idx, column) in table.columns.iter_mut().enumerate() {
        let mut cells = exhibit.rows.iter().filter_map(|row| row.get(idx)).filter(|text| !text.is_empty()).peekable();
        column.numeric |= cells.peek().is_some() && cells.all(|text| is_number(text));
    }
    for row in &exhibit.rows {
        table.row(row.iter().map(Cell::new).collect());
    }
    table.noted(&exhibit.note)
}

/// Tells whether a text is a number or an interval, with at most a unit behind it.
fn is_number(text: &str) -> bool {
    let is_figure = |word: &str| word.starts_with(|letter: char| letter.is_ascii_digit() || "+-<–".contains(letter));
    let mut words: Vec<&str> = text.split(' ').collect();
    if words.len() > 1 && words.last().is_some_and(|word| !is_figure(word)) {
        words.pop();
    }
    words.into_iter().all(is_figure)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_from_words() {
        for text in ["12", "-7.5", "+0.3", "< 0.001", "12.3 %", "3.1 – 3.3", "1.84×", "–", "640 B", "0.9 – 1.1 Mops/s"]
        {
            assert!(is_number(text), "{text}");
        }
        for text in ["nm14", "0 bytes in 0 blocks", "256 × Node, 48 of 56 B", "too few", "jemalloc 5.3"] {
            assert!(!is_number(text), "{text}");
        }
    }
}
