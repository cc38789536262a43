//! Section `dependence`: where the ranking changes with the configuration.

use super::{Context, Section};
use crate::{
    report::{
        answer::{self, Dependence, Lead},
        block::{Block, Cell, Table, Tone},
        number::{self, NONE, counted},
    },
    verdict::evidence::title,
};

pub(super) const SECTION: Section =
    Section { id: "dependence", title: "Where the answer changes with the configuration", build };

/// Configurations that a reader overlooks at once; more stand behind a line that opens them.
const MAX_OPEN: usize = 40;

fn build(context: &Context) -> Vec<Block> {
    let matrix = Block::Table(matrix(context));
    let dependences = answer::dependences(context.evidence, &context.leads);
    if dependences.is_empty() {
        let alone =
            "Nothing but the structure is varied: whether the answer survives another configuration is not known.";
        return vec![Block::paragraph(alone), matrix];
    }
    let matrix = match context.leads.len() {
        n if n > MAX_OPEN => {
            Block::details(format!("Who leads in each of {}", counted(n, "configuration")), vec![matrix])
        }
        _ => matrix,
    };
    let flips = Block::List { items: dependences.iter().map(flips).collect() };
    vec![flips, matrix, Block::details("Who leads by each value", vec![Block::Table(by_value(context, &dependences))])]
}

fn flips(dependence: &Dependence) -> String {
    let name = title(dependence.parameter);
    let settings = match dependence.n_settings {
        1 => "the one setting that can tell".to_owned(),
        n => format!("{n} settings that can tell"),
    };
    match (dependence.n_settings, dependence.n_flips) {
        (0, _) => format!("Changing only the {name}: no setting has a clear leader for two of its values."),
        (1, 0) => format!("Changing only the {name}: the same structure leads in {settings}."),
        (_, 0) => format!("Changing only the {name}: the same structure leads in all {settings}."),
        (1, _) => format!("Changing only the {name} changes the leader in {settings}."),
        (_, flips) => format!("Changing only the {name} changes the leader in {flips} of {settings}."),
    }
}

/// Rows are configurations, columns structures.
fn matrix(context: &Context) -> Table {
    let labels = labels(context);
    let mut columns = context.configuration_columns();
    columns.extend(labels.iter().map(|label| (label.clone(), Some("Mops/s"))));
    let mut table = Table::new("Medians of each configuration", &columns);
    for lead in &context.leads {
        let Some(&cell) = lead.cells.first() else { continue };
        let mut row = context.configuration(cell, false);
        let of_label = |label: &String| {
            let cell = lead.cells.iter().find(|&&cell| context.evidence.plan.cell(cell).structure().label == *label);
            cell.map_or_else(|| Cell::new(NONE).note("not in the plan"), |&cell| place(context, lead, cell))
        };
        row.extend(labels.iter().map(of_label));
        table.row(row);
    }
    table.noted(
        "◆ fastest: distinguishable from every other structure of the row. ◇ open: not distinguishable from the \
         highest median of the row. Ratios are to that median.",
    )
}

/// The place of one cell within its configuration.
fn place(context: &Context, lead: &Lead, cell: u32) -> Cell {
    let median = |cell: u32| context.evidence.summary.cell(cell).description.as_ref().map(|described| described.median);
    let Some(own) = median(cell) else { return Cell::new(NONE).tone(Tone::Bad).note("no trial counts") };
    let shown = Cell::new(number::mops(own));
    let best = lead.leaders.first().and_then(|&best| median(best)).filter(|&best| best > 0.0);
    let ratio = |best: f64| number::ratio(own / best);
    match best {
        None => shown.note("nothing to compare"),
        Some(_) if lead.alone() == Some(cell) => shown.strong().note("◆\u{a0}fastest"),
        Some(best) if lead.leaders.contains(&cell) => shown.note(format!("◇\u{a0}open,\u{a0}{}", ratio(best))),
        Some(best) => shown.note(ratio(best)),
    }
}

/// How often each structure leads under each value of each parameter.
fn by_value(context: &Context, dependences: &[Dependence]) -> Table {
    let labels = labels(context);
    let mut columns: Vec<(&str, Option<&'static str>)> = vec![("parameter", None), ("value", None)];
    columns.extend(labels.iter().map(|label| (label.as_str(), Some(""))));
    columns.push(("not distinguishable", Some("")));
    let comparable = dependences.iter().flat_map(|one| &one.by_value).all(|value| value.n_incomparable == 0);
    if !comparable {
        columns.push(("not comparable", Some("")));
    }
    let mut table = Table::new("Fastest structure, in numbers of configurations", &columns);
    for dependence in dependences {
        let values = &context.evidence.plan.values[dependence.parameter as usize];
        for (idx, value) in dependence.by_value.iter().enumerate() {
            let most = value.alone.iter().map(|(_, count)| *count).max().unwrap_or(0);
            let count = |count: usize, strong: bool| {
                let cell = Cell::new(if count == 0 { "·".to_owned() } else { count.to_string() });
                if strong && count > 0 { cell.strong() } else { cell }
            };
            let mut name = Cell::new(title(dependence.parameter));
            name.again = idx > 0;
            let mut row = vec![name, Cell::new(context.evidence.value_text(&values[value.value_idx as usize]))];
            row.extend(labels.iter().map(|label| {
                let n = value.alone.iter().find(|(name, _)| name == label).map_or(0, |(_, count)| *count);
                count(n, n == most)
            }));
            row.push(count(value.n_open, false));
            if !comparable {
                row.push(count(value.n_incomparable, false));
            }
            table.row(row);
        }
    }
    table
}

fn labels(context: &Context) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for lead in &context.leads {
        for &cell in &lead.cells {
            let label = &context.evidence.plan.cell(cell).structure().label;
            if !labels.contains(label) {
                labels.push(label.clone());
            }
        }
    }
    labels
}
