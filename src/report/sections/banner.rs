//! Section `verdict`: what a reader must know before any number, and what is known of each letter of R.A.R.E.
//!
//! A letter is good only if everything that this version can tell about it was told and is in order.

use super::{Context, Section, tone};
use crate::{
    plan::BlockKind,
    record::{Environment, Reading, environment::Stability},
    report::{
        block::{Block, Card, Tone},
        number::{bytes, counted},
    },
    spec::value::{Parameter, Value},
    stats::{Standing, validity},
    verdict::{Decision, Grade},
};

pub(super) const SECTION: Section = Section { id: "verdict", title: "Verdict", build };

fn build(context: &Context) -> Vec<Block> {
    let mut blocks = Vec::new();
    if context.evidence.quick {
        blocks.push(Block::callout(
            Tone::Warn,
            "Quick run",
            "This is a try-out with the spec's quick settings: fewer and shorter trials. Do not publish its numbers.",
        ));
    }
    blocks.push(verdict(context));
    let cards = vec![reproducible(context), apples(context), realistic(context), explainable(context)];
    blocks.push(Block::Cards { cards });
    blocks
}

fn verdict(context: &Context) -> Block {
    let summary = context.evidence.summary;
    let n_bad_trials = summary.n_standing(Standing::Failed) + summary.n_standing(Standing::Excluded);
    let failed: Vec<&str> = named(context, Grade::Fail);
    let warned: Vec<&str> = named(context, Grade::Warn);
    let n_failed_claims = context.claims.iter().filter(|claim| claim.decision == Decision::Fails).count();
    let counted_trials = counted(summary.n_standing(Standing::Counted), "timed trial");
    let mut parts = vec![format!("{counted_trials} count")];
    if n_bad_trials > 0 {
        parts.push(format!("{} failed or excluded", counted(n_bad_trials, "trial")));
    }
    if !summary.missing.is_empty() {
        parts.push(format!("{} not run", counted(summary.missing.len(), "planned trial")));
    }
    if n_failed_claims > 0 {
        parts.push(format!("{} contradicted by the data", counted(n_failed_claims, "claim")));
    }
    if !warned.is_empty() {
        parts.push(format!("warnings from {}", warned.join(", ")));
    }
    let (tone, title) = if summary.n_standing(Standing::Counted) == 0 {
        (Tone::Bad, "No trial counts: there is nothing to conclude".to_owned())
    } else if !failed.is_empty() {
        (Tone::Bad, format!("A sanity check failed: {}", failed.join(", ")))
    } else if n_bad_trials > 0 {
        (Tone::Bad, "Some trials failed".to_owned())
    } else if !summary.missing.is_empty() {
        (Tone::Warn, "The run is not complete".to_owned())
    } else if n_failed_claims > 0 {
        (Tone::Bad, format!("The checks hold, and the data contradict {}", counted(n_failed_claims, "claim")))
    } else if !warned.is_empty() {
        (Tone::Warn, format!("Valid, with warnings: {}", warned.join(", ")))
    } else if !changed_settings(context).is_empty() {
        (Tone::Warn, "Valid, but the machine changed during the run".to_owned())
    } else {
        (Tone::Good, format!("Valid: all {} checks that ran pass", context.verdicts.len()))
    };
    Block::callout(tone, title, format!("{}.", parts.join(", ")))
}

fn named(context: &Context, grade: Grade) -> Vec<&'static str> {
    context.verdicts.iter().filter(|verdict| verdict.grade == grade).map(|verdict| verdict.info.name).collect()
}

fn card(letter: &'static str, title: &'static str, (tone, state): (Tone, &str), points: Vec<String>) -> Card {
    Card { letter, title, tone, state: state.to_owned(), points }
}

fn reproducible(context: &Context) -> Card {
    let evidence = context.evidence;
    let before = &evidence.environment.before;
    let n_unreadable = before.entries.iter().filter(|entry| matches!(entry.reading, Reading::Unreadable(_))).count();
    let n_changed = changed_settings(context).len();
    let mut points = vec![
        format!(
            "The plan has the hash {}; the page embeds the plan and a rerun starts from either.",
            evidence.hash.short()
        ),
        format!(
            "{} recorded, {n_unreadable} of them unreadable with the reason.",
            counted(before.entries.len(), "environment parameter")
        ),
        "Every trial has its own seed, all from the plan's.".to_owned(),
    ];
    let state = if evidence.environment.after.is_none() {
        points.push("The environment after the run is not recorded.".to_owned());
        (Tone::Warn, "incomplete")
    } else if n_changed > 0 {
        points.push(format!("{} changed during the run.", counted(n_changed, "setting")));
        (Tone::Warn, "the machine changed")
    } else if before.entries.is_empty() {
        (Tone::Bad, "no environment recorded")
    } else if !evidence.summary.missing.is_empty() {
        (Tone::Warn, "not all trials ran")
    } else {
        (Tone::Good, "recorded")
    };
    card("R", "Reproducible", state, points)
}

/// Keys of the settings and fixed parameters that read differently after the run.
pub(super) fn changed_settings(context: &Context) -> Vec<String> {
    let environment = context.evidence.environment;
    let Some(after) = &environment.after else { return Vec::new() };
    let differences = Environment::differences(&environment.before, after).into_iter();
    differences.filter(|change| change.stability != Stability::Volatile).map(|change| change.key).collect()
}

fn apples(context: &Context) -> Card {
    let evidence = context.evidence;
    let grades: Vec<Grade> = ["identity", "prefill", "pinning", "allocator"]
        .into_iter()
        .map(|check| context.grade(check).unwrap_or(Grade::Unknown))
        .collect();
    let worst = grades.into_iter().max().unwrap_or(Grade::Unknown);
    let mut points = vec!["Structures are compared only where every other parameter is the same.".to_owned()];
    points.push(match worst {
        Grade::Pass => "Prefill, pins and allocator of every trial are proven to be those asked for.".to_owned(),
        Grade::Unknown => "Nothing is proven: no trial replied.".to_owned(),
        Grade::Warn | Grade::Fail => "Not everything asked for was what was used: see the checks.".to_owned(),
    });
    let n_alone = evidence.summary.groups.iter().filter(|group| group.len() < 2).count();
    if n_alone > 0 {
        points.push(format!("{} without a counterpart.", counted(n_alone, "configuration")));
    }
    let allowed = evidence.spec.map_or(&[][..], |spec| &spec.allow);
    if !allowed.is_empty() {
        points.push(format!("The spec allows unlike things to be compared: {}.", allowed.join(", ")));
    }
    points.push("Whether the code of the structures is of equal quality is not checked.".to_owned());
    let state = match worst {
        Grade::Pass if allowed.is_empty() => "same settings, proven",
        Grade::Pass => "unlike things, by permission",
        Grade::Unknown => "not known",
        Grade::Warn => "with warnings",
        Grade::Fail => "not the same",
    };
    let tone = if worst == Grade::Pass && !allowed.is_empty() { Tone::Warn } else { tone(worst) };
    card("A", "Apples-to-apples", (tone, state), points)
}

fn realistic(context: &Context) -> Card {
    let plan = context.evidence.plan;
    let texts = |parameter: Parameter| -> Vec<String> {
        plan.values[parameter as usize].iter().map(|value| context.evidence.value_text(value)).collect()
    };
    let mut points = vec![
        format!("Allocators: {}.", texts(Parameter::Allocator).join(", ")),
        format!("Reclamation: {}.", texts(Parameter::Reclamation).join(", ")),
        format!("Trial length: {}.", texts(Parameter::TrialLength).join(", ")),
    ];
    let leaks = plan.values[Parameter::Reclamation as usize]
        .iter()
        .any(|value| matches!(value, Value::Reclamation(rare_workloads::protocol::Reclamation::None)));
    let short = plan.values[Parameter::TrialLength as usize]
        .iter()
        .any(|value| matches!(value, Value::Duration(length) if length.0 < 1_000_000_000));
    let mut reservations = Vec::new();
    if leaks {
        reservations.push("some cells never free memory");
    }
    if short {
        reservations.push("some trials are shorter than 1 s");
    }
    if context.evidence.quick {
        reservations.push("it is a quick run");
    }
    if context.grade("checksum") == Some(Grade::Fail) {
        reservations.push("a structure broke its checksum");
    }
    points.push("Whether the workload is like yours is for you to judge.".to_owned());
    if reservations.is_empty() {
        card("R", "Realistic", (Tone::Good, "no reservation found"), points)
    } else {
        points.push(format!("Reservations: {}.", reservations.join("; ")));
        card("R", "Realistic", (Tone::Warn, "with reservations"), points)
    }
}

fn explainable(context: &Context) -> Card {
    let accounted: Vec<u64> = context
        .evidence
        .replied()
        .filter(|replied| replied.trial.trial.kind == BlockKind::Account)
        .filter(|replied| context.evidence.summary.trials[replied.record_idx].standing == Standing::Instrumented)
        .filter(|replied| !validity::stores_nothing(&replied.trial.request.structure))
        .filter_map(|replied| replied.reply.accounting.as_ref())
        .map(|accounting| u64::try_from(accounting.prefilled.bytes).unwrap_or(0))
        .collect();
    let mut points = vec!["No hardware counter and no profile was recorded: the report says what, not why.".to_owned()];
    if let (Some(least), Some(most)) = (accounted.iter().min(), accounted.iter().max()) {
        let span = if least == most { bytes(*most) } else { format!("{} to {}", bytes(*least), bytes(*most)) };
        points.push(format!("Allocations are counted: prefilled structures take {span}."));
        card("E", "Explainable", (Tone::Unknown, "memory only"), points)
    } else {
        card("E", "Explainable", (Tone::Unknown, "not known"), points)
    }
}
