//! Section `memory`: what each cell takes and gives back.

use super::{Context, Section};
use crate::{
    plan::BlockKind,
    report::{
        block::{Block, Cell, Table, Tone},
        number::{self, NONE},
    },
    stats::Standing,
    verdict::evidence::Replied,
};

pub(super) const SECTION: Section = Section { id: "memory", title: "Memory", build };

const COLUMNS: [(&str, Option<&str>); 9] = [
    ("structure", None),
    ("bytes per key", Some("B")),
    ("blocks per key", Some("")),
    ("allocations per operation", Some("")),
    ("frees per operation", Some("")),
    ("left after drop", Some("B")),
    ("unreclaimed", Some("objects")),
    ("peak resident", Some("")),
    ("harness", Some("")),
];

fn build(context: &Context) -> Vec<Block> {
    let mut columns = context.configuration_columns();
    columns.extend(COLUMNS.map(|(title, unit)| (title.to_owned(), unit)));
    let mut table = Table::new("Memory of every cell", &columns);
    let mut by_cell: Vec<Vec<Replied>> = vec![Vec::new(); context.evidence.plan.cells.len()];
    let valid = |replied: &Replied| {
        let standing = context.evidence.summary.trials[replied.record_idx].standing;
        matches!(standing, Standing::Counted | Standing::Instrumented)
    };
    let of_cell = |replied: &Replied| replied.trial.trial.kind != BlockKind::Probe;
    for replied in context.evidence.replied().filter(of_cell).filter(valid) {
        by_cell[replied.trial.trial.cell as usize].push(replied);
    }
    let mut counted = false;
    let in_order = context.evidence.summary.groups.iter().flat_map(|group| group.iter().enumerate());
    for (idx, &cell) in in_order {
        let replied = &by_cell[cell as usize];
        let of_kind = |kind| replied.iter().filter(move |replied| replied.trial.trial.kind == kind);
        let mut row = context.configuration(cell, idx > 0);
        row.push(Cell::new(&context.evidence.plan.cell(cell).structure().label));
        counted |= of_kind(BlockKind::Account).next().is_some();
        row.extend(accounted(of_kind(BlockKind::Account).next()));
        row.extend(resident(&of_kind(BlockKind::Measure).copied().collect::<Vec<Replied>>()));
        table.row(row);
    }
    let source = if counted {
        "What a key takes, what an operation does and what is left after drop come from trials of their own under a counting \
         hook, which are never summarised as throughput."
    } else {
        "What a key takes and what an operation does need accounting trials, which this run does not have."
    };
    let table = table.noted(format!(
        "{source} Unreclaimed: the most of any timed trial. Peak resident memory: the median over the timed trials by the \
         kernel's account, with the harness, whose share stands beside it."
    ));
    vec![Block::Table(table)]
}

fn accounted(replied: Option<&Replied>) -> [Cell; 5] {
    let Some((replied, accounting)) = replied.and_then(|replied| Some((replied, replied.reply.accounting.as_ref()?)))
    else {
        return [(); 5].map(|()| Cell::new(NONE));
    };
    let keys = replied.reply.audit_before.size;
    let operations: u64 = replied.reply.threads.iter().map(|thread| thread.operations.attempted()).sum();
    let per = |count: f64, of: u64, n_digits| {
        Cell::new(if of == 0 { NONE.to_owned() } else { number::fixed(count / of as f64, n_digits) })
    };
    let left = accounting.after_drop;
    let balance = Cell::new(left.bytes.to_string());
    let balance = if left.bytes == 0 && left.blocks == 0 {
        balance
    } else {
        balance.tone(Tone::Bad).note(format!("in {} blocks", left.blocks))
    };
    [
        per(accounting.prefilled.bytes as f64, keys, 1),
        per(accounting.prefilled.blocks as f64, keys, 2),
        per(accounting.allocations as f64, operations, 3),
        per(accounting.frees as f64, operations, 3),
        balance,
    ]
}

fn resident(replied: &[Replied]) -> [Cell; 3] {
    let median = |mut values: Vec<u64>| {
        values.sort_unstable();
        values.get(values.len().saturating_sub(1) / 2).map_or(NONE.to_owned(), |&value| number::bytes(value))
    };
    let memory = || replied.iter().map(|replied| &replied.reply.memory);
    let unreclaimed = memory().filter_map(|memory| memory.unreclaimed_objects).max();
    [
        Cell::new(unreclaimed.map_or(NONE.to_owned(), |objects| objects.to_string())),
        Cell::new(median(memory().map(|memory| memory.peak_bytes).collect())),
        Cell::new(median(memory().map(|memory| memory.harness_bytes).collect())),
    ]
}
