//! Section `proofs`: what was really used in each trial, as the worker and the kernel tell.

use rare_workloads::protocol::{Length, Reply, Request};

use super::{Context, Section};
use crate::{
    report::{
        block::{Block, Cell, Table, Tone},
        number,
    },
    stats::{Law, Standing, validity},
    verdict::evidence::Replied,
};

pub(super) const SECTION: Section = Section { id: "proofs", title: "Proofs of each trial", build };

fn build(context: &Context) -> Vec<Block> {
    let columns = [
        ("trial", None),
        ("keys after", Some("")),
        ("prefill", Some("keys")),
        ("pins", None),
        ("measured", Some("ms")),
        ("allocator", None),
        ("counts", None),
    ];
    let mut table = Table::new("", &columns);
    let mut evidence = Vec::new();
    for replied in context.evidence.replied() {
        table.row(row(context, &replied));
        let allocator = &replied.reply.allocator;
        let proof = format!("{} {}: {}", allocator.name, allocator.version, allocator.evidence);
        if !evidence.contains(&proof) {
            evidence.push(proof);
        }
    }
    let n_trials = table.rows.len();
    if n_trials == 0 {
        return vec![Block::paragraph("No trial has a reply: nothing is proven.")];
    }
    table.per_trial = true;
    let table = table.noted(
        "Keys after: size found by the structure's own walk, with the wrapping key sum; both are computed from the \
         operations too. Prefill: keys reached, by how many threads. Pins: CPUs that the kernel allows, thread by thread. \
         Measured: shortest and longest time by the threads' own stamps.",
    );
    vec![
        Block::paragraph("Not what was asked for, but what the kernel, the allocator and the structure answered."),
        Block::List { items: evidence },
        Block::details(format!("Proofs of {}", number::counted(n_trials, "trial")), vec![Block::Table(table)]),
    ]
}

fn row(context: &Context, replied: &Replied) -> Vec<Cell> {
    let summary = &context.evidence.summary.trials[replied.record_idx];
    let broken = |law: Law| summary.faults.iter().any(|fault| fault.law == law);
    let marked = |cell: Cell, law: Law| if broken(law) { cell.tone(Tone::Bad) } else { cell };
    let (request, reply) = (&replied.trial.request, replied.reply);
    let counts = match summary.standing {
        Standing::Counted => Cell::new("yes"),
        Standing::Instrumented => Cell::new("instrumented"),
        _ => Cell::new("excluded").tone(Tone::Bad).strong(),
    };
    let allocator = match &reply.allocator.preload {
        Some(preload) => Cell::new(&preload.path).note(format!("sha256 {:.12}", preload.sha256)),
        None => Cell::new(format!("{} {}", reply.allocator.name, reply.allocator.version)),
    };
    vec![
        Cell::code(replied.trial.trial.to_string()),
        marked(keys(request, reply), Law::Checksum),
        marked(prefill(reply), Law::Prefill),
        marked(pins(reply), Law::Pinning),
        marked(measured(request, reply), Law::Window),
        marked(allocator, Law::Allocator),
        counts,
    ]
}

fn keys(request: &Request, reply: &Reply) -> Cell {
    if validity::stores_nothing(&request.structure) {
        return Cell::new("stores nothing");
    }
    Cell::new(reply.audit_after.size.to_string()).note(format!("sum {}", reply.audit_after.key_sum))
}

fn prefill(reply: &Reply) -> Cell {
    let reached: u64 = reply.prefill.per_thread.iter().sum();
    let by = reply.prefill.per_thread.iter().filter(|&&keys| keys > 0).count();
    Cell::new(format!("{reached} of {}", reply.prefill.target)).note(format!("by {by}"))
}

fn pins(reply: &Reply) -> Cell {
    if reply.threads.iter().all(|thread| thread.cpu_asked.is_none()) {
        return Cell::new("float");
    }
    let allowed = |thread: &rare_workloads::protocol::ThreadReply| match thread.cpus_allowed.as_slice() {
        [cpu] => cpu.to_string(),
        several => format!("any of {}", several.len()),
    };
    Cell::new(reply.threads.iter().map(allowed).collect::<Vec<String>>().join(" "))
}

fn measured(request: &Request, reply: &Reply) -> Cell {
    let spans = || reply.threads.iter().map(|thread| thread.stop_ns.saturating_sub(thread.start_ns));
    let text = match (spans().min(), spans().max()) {
        (Some(least), Some(most)) if least == most => number::milliseconds(least),
        (Some(least), Some(most)) => format!("{} – {}", number::milliseconds(least), number::milliseconds(most)),
        _ => number::NONE.to_owned(),
    };
    match request.length {
        Length::Nanos(_) => Cell::new(text),
        Length::Accounting { .. } | Length::Operations { .. } => Cell::new(text).note("counted, not timed"),
    }
}
