//! Section `parameters`: every parameter of the experiment, as asked for and as it became on this machine.

use std::collections::BTreeSet;

use super::{Context, Section};
use crate::{
    report::{
        block::{Block, Cell, Table},
        number::NONE,
    },
    spec::{model::Order, value::Parameter},
    units::count,
    verdict::evidence::title,
};

pub(super) const SECTION: Section = Section { id: "parameters", title: "Parameters of the experiment", build };

fn build(context: &Context) -> Vec<Block> {
    let columns = [("parameter", None), ("role", None), ("asked for", None), ("became", None)];
    let mut table = Table::new("", &columns);
    for parameter in Parameter::ALL {
        table.row(row(context, parameter));
    }
    let plan = context.evidence.plan;
    let plain = |name: &str, value: String| vec![Cell::new(name), Cell::new("held"), Cell::new(value), Cell::new(NONE)];
    let order = match plan.order {
        Order::Random => "random within each block, seeded",
        Order::Listed => "as listed within each block",
    };
    table.row(plain("order", order.to_owned()));
    table.row(plain("seed", plan.seed.to_string()));
    table.row(plain("blocks", plan.blocks.len().to_string()));
    table.row(plain("checks", words(&plan.checks)));
    table.row(plain("instruments", words(&plan.instruments)));
    let table =
        table.noted("Varied parameters are crossed; held ones are the same in every cell. Defaults are written out.");
    let mut blocks = vec![Block::Table(table)];
    blocks.extend(structures(context));
    if let Some(spec) = context.evidence.spec_text {
        let code = Block::Code { language: "yaml", text: spec.to_owned() };
        blocks.push(Block::details("The spec as written", vec![code]));
    }
    blocks
}

fn words(words: &[String]) -> String {
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

fn row(context: &Context, parameter: Parameter) -> Vec<Cell> {
    let values = &context.evidence.plan.values[parameter as usize];
    let texts: Vec<String> = values
        .iter()
        .map(|value| match (context.evidence.value_text(value), value.to_string()) {
            (name, text) if name == text => text,
            (name, text) => format!("{name} ({text})"),
        })
        .collect();
    let role = if values.len() > 1 { Cell::new("varied").strong() } else { Cell::new("held") };
    let mut became: BTreeSet<String> = BTreeSet::new();
    for trial in context.evidence.trials {
        became.extend(resolved(parameter, &trial.request));
    }
    let became: Vec<String> = became.into_iter().collect();
    let became = if became.is_empty() { NONE.to_owned() } else { became.join("; ") };
    vec![Cell::new(title(parameter)), role, Cell::new(texts.join(", ")), Cell::new(became)]
}

/// What a symbol of the plan became in a request; `None` where the plan's value is the one used.
fn resolved(parameter: Parameter, request: &rare_workloads::protocol::Request) -> Option<String> {
    let threads = request.cpus.len();
    match parameter {
        Parameter::Threads => Some(format!("{threads:>3}").trim_start().to_owned()),
        Parameter::Pinning => {
            let cpu = |cpu: &Option<u32>| cpu.map_or("any".to_owned(), |cpu| cpu.to_string());
            let cpus: Vec<String> = request.cpus.iter().map(cpu).collect();
            Some(format!("CPUs {} for {threads}", cpus.join(" ")))
        }
        Parameter::Prefill => Some(format!("{} of {} keys", count(request.prefill_keys), count(request.key_range))),
        Parameter::Allocator => {
            request.allocator.preload.as_ref().map(|preload| format!("{} sha256 {}", preload.path, preload.sha256))
        }
        _ => None,
    }
}

/// What each structure states of itself.
fn structures(context: &Context) -> Option<Block> {
    let mut table = Table::new("", &[("structure", None), ("source", None), ("progress", None), ("deviations", None)]);
    for value in &context.evidence.plan.values[Parameter::Structure as usize] {
        let crate::spec::value::Value::Structure(used) = value else { continue };
        let Some(known) = rare_workloads::structures::find(&used.name) else { continue };
        let parameters: Vec<String> = used.parameters.iter().map(|(name, value)| format!("{name} {value}")).collect();
        table.row(vec![
            Cell::new(&used.label).note(parameters.join(", ")),
            Cell::new(known.info.source),
            Cell::new(known.info.progress),
            Cell::new(if known.info.deviations.is_empty() {
                "none".to_owned()
            } else {
                known.info.deviations.join("; ")
            }),
        ]);
    }
    (!table.rows.is_empty()).then(|| Block::details("What each structure states of itself", vec![Block::Table(table)]))
}
