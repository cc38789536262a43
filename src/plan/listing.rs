//! The text of `rare plan`.

use std::fmt::Write;

use super::{
    estimate::{rough_duration, rough_size},
    model::{BlockKind, Cell, Plan},
    walk::order_name,
};
use crate::spec::value::{Parameter, Value};

/// More cells than this do not help to see whether the plan is the one that was meant.
const MAX_CELLS_SHOWN: u32 = 20;

/// As many values of an axis fill a line.
const MAX_VALUES_SHOWN: usize = 16;

/// Returns what a person wants to know of a plan before running it: the values that vary, the cells, the trials in
/// their order, what they take on a machine that allows `n_cpus` CPUs, and the hash.
pub fn listing(plan: &Plan, n_cpus: u32) -> String {
    let mut text = String::new();
    write_to(plan, n_cpus, &mut text).expect("a string takes every write");
    text
}

fn write_to(plan: &Plan, n_cpus: u32, text: &mut String) -> std::fmt::Result {
    let varied = plan.varied();
    let (axes, held): (Vec<_>, Vec<_>) = Parameter::ALL.into_iter().partition(|it| varied.contains(it));
    writeln!(text, "plan {}", plan.hash().short())?;
    write_values(plan, "varied", &axes, text)?;
    write_values(plan, "held", &held, text)?;
    write_cells(plan, &varied, text)?;
    write_trials(plan, text)?;
    let estimate = plan.estimate(n_cpus);
    writeln!(text, "\nestimate on {n_cpus} CPUs")?;
    writeln!(text, "  time    {}", rough_duration(estimate.wall))?;
    writeln!(text, "  disk    {}", rough_size(estimate.disk))?;
    writeln!(text, "  memory  {} at most in one trial", rough_size(estimate.memory))
}

fn write_values(plan: &Plan, title: &str, parameters: &[Parameter], text: &mut String) -> std::fmt::Result {
    if parameters.is_empty() {
        return Ok(());
    }
    writeln!(text, "\n{title}")?;
    let width = parameters.iter().map(|it| it.key().len()).max().unwrap_or_default();
    for &parameter in parameters {
        writeln!(text, "  {:width$}  {}", parameter.key(), enumerate(parameter, &plan.values[parameter as usize]))?;
    }
    Ok(())
}

fn enumerate(parameter: Parameter, values: &[Value]) -> String {
    let separator = if parameter == Parameter::Mix { "; " } else { ", " };
    let n_shown = values.len().min(MAX_VALUES_SHOWN);
    let shown: Vec<String> = values[..n_shown].iter().map(Value::to_string).collect();
    match values.len() - n_shown {
        0 => shown.join(separator),
        n_more => format!("{} … and {n_more} more", shown.join(separator)),
    }
}

fn write_cells(plan: &Plan, varied: &[Parameter], text: &mut String) -> std::fmt::Result {
    let n_cells = plan.n_cells();
    writeln!(text, "\n{}", count(n_cells.into(), "cell"))?;
    let n_shown = n_cells.min(MAX_CELLS_SHOWN);
    for cell_idx in 0..n_shown {
        writeln!(text, "  {cell_idx:>4}  {}", describe(plan.cell(cell_idx), varied))?;
    }
    match n_cells - n_shown {
        0 => Ok(()),
        n_more => writeln!(text, "  … and {n_more} more"),
    }
}

/// The values that tell this cell from the others; the structure when there are no others.
fn describe(cell: Cell<'_>, varied: &[Parameter]) -> String {
    let parameters = if varied.is_empty() { &[Parameter::Structure] } else { varied };
    let values: Vec<String> = parameters.iter().map(|&parameter| cell.value(parameter).to_string()).collect();
    values.join(" · ")
}

fn write_trials(plan: &Plan, text: &mut String) -> std::fmt::Result {
    let n_of = |kind| plan.blocks.iter().filter(|block| block.kind == kind).count();
    writeln!(text, "\n{}", count(plan.n_trials() as u64, "trial"))?;
    writeln!(
        text,
        "  {} of {} each",
        count(n_of(BlockKind::Measure) as u64, "block"),
        count(plan.n_cells().into(), "trial")
    )?;
    if n_of(BlockKind::Account) > 0 {
        writeln!(text, "  1 block of counted trials, whose throughput is not summarised")?;
    }
    if !plan.probes.is_empty() {
        let n_trials: u64 = plan.probes.iter().map(|probe| u64::from(probe.n_trials)).sum();
        writeln!(text, "  {} of checks and instruments, beside the cells", count(n_trials, "trial"))?;
    }
    writeln!(text, "  {} order within a block, seed {}", order_name(plan.order), plan.seed)?;
    if !plan.instruments.is_empty() {
        writeln!(text, "  instruments: {}", plan.instruments.join(", "))?;
    }
    if !plan.checks.is_empty() {
        writeln!(text, "  sanity checks: {}", plan.checks.join(", "))?;
    }
    Ok(())
}

fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
