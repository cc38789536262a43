//! Section `dependence`: where the ranking changes with the configuration.

use super::{Context, Section};
use crate::{
    report::{
        answer::{self, Dependence},
        block::{Block, Cell, Table, Tone},
        number::counted,
    },
    spec::value::Parameter,
    verdict::evidence::title,
};

pub(super) const SECTION: Section =
    Section { id: "dependence", title: "Where the answer changes with the configuration", build };

fn build(context: &Context) -> Vec<Block> {
    let dependences = answer::dependences(context.evidence, &context.leads);
    if dependences.is_empty() {
        return vec![Block::paragraph(
            "Nothing but the structure is varied: whether the answer survives another configuration is not known.",
        )];
    }
    let mut blocks: Vec<Block> = dependences.iter().map(|one| Block::Table(table(context, one))).collect();
    blocks.push(Block::details("Who leads in each configuration", vec![Block::Table(each(context))]));
    blocks
}

fn table(context: &Context, dependence: &Dependence) -> Table {
    let parameter = dependence.parameter;
    let values = &context.evidence.plan.values[parameter as usize];
    let labels = labels(context);
    let name = title(parameter);
    let mut columns: Vec<(&str, Option<&'static str>)> = vec![(name.as_str(), None)];
    columns.extend(labels.iter().map(|label| (label.as_str(), Some(""))));
    columns.push(("not distinguishable", Some("")));
    let comparable = dependence.by_value.iter().all(|value| value.n_incomparable == 0);
    if !comparable {
        columns.push(("not comparable", Some("")));
    }
    let mut table = Table::new(format!("Fastest structure by {name}, in numbers of configurations"), &columns);
    for value in &dependence.by_value {
        let alone = |label: &String| value.alone.iter().find(|(name, _)| name == label).map_or(0, |(_, count)| *count);
        let most = value.alone.iter().map(|(_, count)| *count).max().unwrap_or(0);
        let count = |count: usize| {
            let cell = Cell::new(if count == 0 { "·".to_owned() } else { count.to_string() });
            if count > 0 && count == most { cell.strong() } else { cell }
        };
        let mut row = vec![Cell::new(context.evidence.value_text(&values[value.value_idx as usize]))];
        row.extend(labels.iter().map(|label| count(alone(label))));
        let plain = |count: usize| Cell::new(if count == 0 { "·".to_owned() } else { count.to_string() });
        row.push(plain(value.n_open));
        if !comparable {
            row.push(plain(value.n_incomparable));
        }
        table.row(row);
    }
    table.noted(flips(dependence, &name))
}

fn flips(dependence: &Dependence, name: &str) -> String {
    match (dependence.n_settings, dependence.n_flips) {
        (0, _) => format!("No two values of {name} have a clear leader under otherwise equal settings."),
        (n, 0) => format!(
            "With everything else equal, the leader is the same for every {name} that has a clear one, in all {}.",
            counted(n, "setting")
        ),
        (n, flips) => {
            format!(
                "With everything else equal, changing only the {name} changes the leader in {flips} of {}.",
                counted(n, "setting")
            )
        }
    }
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

fn each(context: &Context) -> Table {
    let varied: Vec<Parameter> =
        context.evidence.plan.varied().into_iter().filter(|&parameter| parameter != Parameter::Structure).collect();
    let titles: Vec<String> = varied.iter().map(|&parameter| title(parameter)).collect();
    let mut columns: Vec<(&str, Option<&'static str>)> = titles.iter().map(|title| (title.as_str(), None)).collect();
    columns.push(("fastest", None));
    let mut table = Table::new("", &columns);
    for lead in &context.leads {
        let Some(&cell) = lead.cells.first() else { continue };
        let value = |&parameter: &Parameter| {
            Cell::new(context.evidence.value_text(context.evidence.plan.cell(cell).value(parameter)))
        };
        let mut row: Vec<Cell> = varied.iter().map(value).collect();
        let names: Vec<&str> =
            lead.leaders.iter().map(|&cell| context.evidence.plan.cell(cell).structure().label.as_str()).collect();
        row.push(match names.as_slice() {
            [] => Cell::new("nothing to compare").tone(Tone::Unknown),
            [only] => Cell::new(*only).strong(),
            several => Cell::new(several.join(", ")).note("not distinguishable"),
        });
        table.row(row);
    }
    table
}
