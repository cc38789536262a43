//! Section `limits`: what this experiment cannot show. Never empty.

use std::collections::BTreeSet;

use super::{Context, Section, checks, drift};
use crate::{
    record::Reading,
    report::{
        block::Block,
        number::{self, counted},
    },
    spec::value::{Parameter, Value},
    stats::{bootstrap, compare},
};

pub(super) const SECTION: Section = Section { id: "limits", title: "Limits of this experiment", build };

/// Below this, start-up and the first scheduling slices weigh in the result; the talk's trials are of 3 s.
const SHORT_NS: u64 = 1_000_000_000;

fn build(context: &Context) -> Vec<Block> {
    let mut items = Vec::new();
    if context.evidence.quick {
        items.push("It is a quick run: fewer and shorter trials than the spec's own.".to_owned());
    }
    items.push(
        "It ran on one machine, in one run: how the answer varies between machines and days is not known.".to_owned(),
    );
    items.extend(virtualised(context));
    items.extend(sample_sizes(context));
    items.extend(drift::limit(context));
    items.extend(short_trials(context));
    items.extend(single_values(context));
    items.extend(machine_share(context));
    let not_run = checks::not_run(context);
    items.push(format!(
        "{} did not run: {}.",
        counted(not_run.len(), "sanity check"),
        not_run.into_iter().map(|(name, _)| name).collect::<Vec<String>>().join(", ")
    ));
    items.push(
        "Throughput is what was measured; latency, energy and fairness over time were not. No counter explains it."
            .to_owned(),
    );
    items.push("All threads of a trial ran the same closed loop without pauses; no real program does.".to_owned());
    items.extend(unreadable(context));
    vec![Block::List { items }]
}

fn virtualised(context: &Context) -> Option<String> {
    let telling = |key: &str| ["hypervisor", "virtual", "container"].iter().any(|word| key.contains(word));
    let no = |value: &str| matches!(value, "" | "none" | "no" | "false" | "0" | "bare metal");
    let entries = &context.evidence.environment.before.entries;
    let found = entries.iter().find_map(|entry| match &entry.reading {
        Reading::Value(value) if telling(&entry.key) && !no(value) => Some((&entry.key, value)),
        _ => None,
    });
    found.map(|(key, value)| {
        format!("The machine is shared or virtual ({key}: {value}): others may take its time, and its caches are not its own.")
    })
}

fn sample_sizes(context: &Context) -> Vec<String> {
    let summary = context.evidence.summary;
    let sizes: BTreeSet<usize> = summary.cells.iter().map(|cell| cell.values.len()).collect();
    let (least, most) = (sizes.first().copied().unwrap_or(0), sizes.last().copied().unwrap_or(0));
    let span = if least == most { format!("{most}") } else { format!("{least} to {most}") };
    let interval =
        if least < bootstrap::MIN_N { "; at five or fewer no interval of the median reaches 95 %" } else { "" };
    let mut items = vec![format!("Each cell has {span} trials that count{interval}.")];
    let n_comparisons = summary.comparisons.len();
    let hopeless = summary.comparisons.iter().filter(|comparison| comparison.is_hopeless(n_comparisons)).count();
    if hopeless > 0 {
        items.push(format!(
            "{hopeless} of {n_comparisons} comparisons could not have been decided with so few trials; {} of each cell \
             are needed.",
            compare::trials_needed(n_comparisons)
        ));
    }
    items
}

fn short_trials(context: &Context) -> Option<String> {
    let lengths = &context.evidence.plan.values[Parameter::TrialLength as usize];
    let shortest = lengths.iter().filter_map(|value| match value {
        Value::Duration(length) => Some(*length),
        _ => None,
    });
    let shortest = shortest.min()?;
    (shortest.0 < SHORT_NS)
        .then(|| format!("Trials of {shortest} are short: start-up and single interruptions weigh in them."))
}

/// Parameters that decide rankings elsewhere and have one value here.
fn single_values(context: &Context) -> Vec<String> {
    let decisive = [
        (Parameter::Allocator, "another allocator"),
        (Parameter::Pinning, "another pinning"),
        (Parameter::KeyRange, "other sizes"),
        (Parameter::Mix, "another mix of operations"),
        (Parameter::Threads, "other numbers of threads"),
        (Parameter::Distribution, "skewed keys"),
        (Parameter::EnvironmentPadding, "another memory layout"),
    ];
    let held: Vec<&str> = decisive
        .into_iter()
        .filter(|(parameter, _)| context.evidence.plan.values[*parameter as usize].len() < 2)
        .map(|(_, what)| what)
        .collect();
    if held.is_empty() { Vec::new() } else { vec![format!("Not tried: {}.", held.join(", "))] }
}

/// Whether the largest trial used all the CPUs that some float thread could have used.
fn machine_share(context: &Context) -> Option<String> {
    let most = context.evidence.trials.iter().map(|trial| trial.request.cpus.len()).max()?;
    let cpus = context.evidence.replied().flat_map(|replied| replied.reply.threads.iter());
    let seen = cpus.map(|thread| thread.cpus_allowed.len()).max()?;
    (most < seen)
        .then(|| format!("At most {most} threads ran where {seen} CPUs were allowed: the whole machine was not tried."))
}

fn unreadable(context: &Context) -> Option<String> {
    let entries = &context.evidence.environment.before.entries;
    let keys: Vec<&str> = entries
        .iter()
        .filter(|entry| matches!(entry.reading, Reading::Unreadable(_)))
        .map(|entry| entry.key.as_str())
        .collect();
    let shown: Vec<&str> = keys.iter().copied().take(8).collect();
    let more = if keys.len() > shown.len() { format!(" and {} more", keys.len() - shown.len()) } else { String::new() };
    (!keys.is_empty()).then(|| {
        format!(
            "{} could not be read: {}{more}.",
            number::counted(keys.len(), "environment parameter"),
            shown.join(", ")
        )
    })
}
