//! Section `results`: the figures with every trial, the table of all cells, and all comparisons.

use super::{Context, Section};
use crate::{
    record::Outcome,
    report::{
        block::{Block, Cell, Table, Tone},
        figures,
        number::{self, NONE, counted},
        plot,
    },
    stats::{Answer, CellSummary, Comparison, Description, bootstrap, validity},
};

pub(super) const SECTION: Section = Section { id: "results", title: "Results", build };

/// Columns of the table of cells, after those of the configuration.
const COLUMNS: [(&str, Option<&str>); 7] = [
    ("structure", None),
    ("median", Some("Mops/s")),
    ("95 % interval", Some("Mops/s")),
    ("n", Some("")),
    ("CV", Some("")),
    ("outliers", Some("z / Tukey")),
    ("every trial", Some("Mops/s")),
];

/// Values that a strip tells in words too.
const MAX_TOLD: usize = 20;

fn build(context: &Context) -> Vec<Block> {
    let mut blocks = figures::throughput(context.evidence);
    blocks.push(Block::Table(cells(context)));
    let comparisons = &context.evidence.summary.comparisons;
    if comparisons.is_empty() {
        blocks.push(Block::paragraph("No two cells differ in their structure only: nothing is compared."));
    } else {
        let table = Block::Table(self::comparisons(context, comparisons));
        blocks.push(Block::details(format!("{} in full", counted(comparisons.len(), "comparison")), vec![table]));
    }
    blocks
}

fn cells(context: &Context) -> Table {
    let evidence = context.evidence;
    let mut columns = context.configuration_columns();
    columns.extend(COLUMNS.map(|(title, unit)| (title.to_owned(), unit)));
    let has_ranges = (0..evidence.plan.n_cells()).any(|cell| evidence.plan.cell(cell).range_keys().is_some());
    if has_ranges {
        columns.push(("keys per range query".to_owned(), Some("")));
    }
    let mut table = Table::new("Throughput of every cell", &columns);
    for (group, lead) in evidence.summary.groups.iter().zip(&context.leads) {
        let most = group.iter().flat_map(|&cell| &evidence.summary.cell(cell).values).copied().fold(0.0, f64::max);
        for (idx, &cell) in group.iter().enumerate() {
            let mut row = context.configuration(cell, idx > 0);
            // Where none is distinguishable from the fastest, none stands out.
            let leads = lead.next.is_some() && lead.leaders.contains(&cell);
            row.extend(cell_numbers(context, evidence.summary.cell(cell), leads, most));
            if has_ranges {
                row.push(keys_per_range(context, evidence.summary.cell(cell)));
            }
            table.row(row);
        }
    }
    let ranges = if has_ranges {
        " A range query is one operation, however many keys it finds; how many it finds stands beside, over the trials that \
         count."
    } else {
        ""
    };
    table.noted(format!(
        "Throughput is the sum over the threads of operations over that thread's own measured time. The interval is the \
         exact percentile bootstrap of the median; at five trials or fewer there is none that reaches 95 %, so every \
         trial is shown. Bold: the fastest of its configuration and what is not distinguishable from it. Every trial is drawn or listed; a drawing goes from zero to the \
         fastest trial of the configuration. Outliers are counted, \
         by modified z-score and by Tukey's fences, and kept.{ranges}"
    ))
}

/// Keys that a range query of the cell finds, on average over all of its trials that count.
fn keys_per_range(context: &Context, summary: &CellSummary) -> Cell {
    let (mut queries, mut keys) = (0_u64, 0_u64);
    for &record_idx in &summary.records {
        if let Outcome::Replied(reply) = &context.evidence.trials[record_idx].outcome {
            for thread in &reply.threads {
                queries = queries.saturating_add(thread.operations.range.attempted);
                keys = keys.saturating_add(thread.operations.range_keys);
            }
        }
    }
    Cell::new(if queries == 0 { NONE.to_owned() } else { number::fixed(keys as f64 / queries as f64, 1) })
}

fn cell_numbers(context: &Context, summary: &CellSummary, leads: bool, most: f64) -> Vec<Cell> {
    let structure = context.evidence.plan.cell(summary.cell).structure();
    let bound = if validity::stores_nothing(&structure.name) { "bound of the harness" } else { "" };
    let mut label = Cell::new(&structure.label).note(bound);
    label.strong = leads;
    let n = Cell::new(summary.values.len().to_string());
    let n = if summary.values.len() < summary.n_planned { n.note(lost(summary)).tone(Tone::Bad) } else { n };
    let Some(described) = &summary.description else {
        let none = || Cell::new(NONE);
        return vec![
            label,
            none().tone(Tone::Bad),
            none(),
            n,
            none(),
            none(),
            Cell::new("no trial counts").tone(Tone::Bad),
        ];
    };
    let median = Cell::new(number::mops(described.median));
    let none = if described.n < bootstrap::MIN_N { "none: n ≤ 5" } else { "none: n > 1000" };
    let interval = described.interval.map_or(none.to_owned(), number::mops_interval);
    let cv = described.cv.map_or(Cell::new(NONE), |cv| {
        let cell = Cell::new(number::percent(cv));
        if cv > 0.05 { cell.tone(Tone::Warn) } else { cell }
    });
    let mut raw = raw(summary);
    let series_idx = figures::series_idx(context.evidence, summary.cell);
    if most > 0.0 {
        raw.drawing = plot::strip(&summary.values, described.median, most, series_idx, &told(summary));
    }
    vec![label, median, Cell::new(interval), n, cv, Cell::new(outliers(described)), raw]
}

/// What became of the planned trials that do not count.
fn lost(summary: &CellSummary) -> String {
    let n_bad = summary.n_failed + summary.n_excluded;
    let n_missing = summary.n_planned - summary.values.len() - n_bad;
    let parts = [(n_bad, "failed or excluded"), (n_missing, "not run")].into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, what)| format!("{count} {what}")).collect();
    format!("of {}: {}", summary.n_planned, parts.join(", "))
}

/// The strip in words.
fn told(summary: &CellSummary) -> String {
    let shown: Vec<String> = summary.values.iter().take(MAX_TOLD).map(|&value| number::mops(value)).collect();
    let rest = summary.values.len().saturating_sub(MAX_TOLD);
    let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    format!("Mops/s, trial by trial: {}{rest}", shown.join(", "))
}

/// Every value in trial order.
fn raw(summary: &CellSummary) -> Cell {
    const MAX_SHOWN: usize = 12;
    let shown: Vec<String> = summary.values.iter().take(MAX_SHOWN).map(|&value| number::mops(value)).collect();
    let rest = summary.values.len().saturating_sub(MAX_SHOWN);
    let rest = if rest > 0 { format!(" and {rest} more below") } else { String::new() };
    Cell::new(format!("{}{rest}", shown.join(" ")))
}

/// How many values are outliers by modified z-score and by Tukey's fences.
fn outliers(described: &Description) -> String {
    let text = |count: Option<usize>| count.map_or(NONE.to_owned(), |count| count.to_string());
    match (described.outliers_modified_z, described.outliers_tukey) {
        (None | Some(0), None | Some(0)) => "none".to_owned(),
        (modified_z, tukey) => format!("{} / {}", text(modified_z), text(tukey)),
    }
}

fn comparisons(context: &Context, comparisons: &[Comparison]) -> Table {
    let evidence = context.evidence;
    let columns = [
        ("configuration", None),
        ("structure", None),
        ("is", None),
        ("than", None),
        ("medians", Some("Mops/s")),
        ("ratio", Some("")),
        ("95 % interval", Some("")),
        ("shift", Some("Mops/s")),
        ("Cliff's delta", Some("")),
        ("p", Some("")),
        ("p corrected", Some("")),
    ];
    let mut table = Table::new("Comparisons within each configuration", &columns);
    for comparison in comparisons {
        let label = |cell: u32| Cell::new(&evidence.plan.cell(cell).structure().label);
        let median = |cell: u32| {
            let description = evidence.summary.cell(cell).description.as_ref();
            description.map_or(NONE.to_owned(), |described| number::mops(described.median))
        };
        let (word, strong) = match comparison.answer {
            Answer::Faster => ("faster", true),
            Answer::Slower => ("slower", true),
            Answer::NotDistinguishable => ("not distinguishable", false),
        };
        let mut answer = Cell::new(word);
        answer.strong = strong;
        let p = if comparison.exact { "" } else { "normal approximation" };
        table.row(vec![
            Cell::new(evidence.configuration_label(comparison.left)),
            label(comparison.left),
            answer,
            label(comparison.right),
            Cell::new(format!("{} / {}", median(comparison.left), median(comparison.right))),
            Cell::new(comparison.ratio.map_or(NONE.to_owned(), number::ratio)),
            Cell::new(comparison.interval.map_or(NONE.to_owned(), number::ratio_interval)),
            Cell::new(number::mops(comparison.shift)),
            Cell::new(number::fixed(comparison.delta, 2)),
            Cell::new(number::p_value(comparison.p)).note(p),
            Cell::new(number::p_value(comparison.p_holm)),
        ]);
    }
    table.noted(format!(
        "Ratio of medians with its bootstrap interval; Hodges-Lehmann shift; two-sided Mann-Whitney test, corrected by \
         Holm over the {} of this report. Below 0.05 corrected, the answer is faster or slower; otherwise it is not \
         distinguishable, which is not the same as equal.",
        counted(comparisons.len(), "comparison")
    ))
}
