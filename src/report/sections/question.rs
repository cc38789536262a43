//! Section `question`: what was asked, the answer that the data give, and the claims.

use super::{Context, Section};
use crate::{
    report::{
        answer,
        block::{Block, Cell, Table, Tone},
        number::{self, counted},
        prose,
    },
    spec::model::{Claim, Condition},
    stats::{ALPHA, compare},
    units::BasisPoints,
    verdict::{ClaimDecision, Decision, evidence::title},
};

pub(super) const SECTION: Section = Section { id: "question", title: "Question and answer", build };

fn build(context: &Context) -> Vec<Block> {
    let mut blocks = Vec::new();
    match context.evidence.spec.map(|spec| spec.question.as_deref()) {
        Some(Some(question)) => blocks.push(prose::prose(question)),
        Some(None) => blocks.push(Block::paragraph("The spec asks no question.")),
        None => blocks.push(Block::paragraph("The question is not known: only the plan was given.")),
    }
    let text = answer::sentence(context.evidence, &context.leads);
    blocks.push(Block::Paragraph { text, strong: true });
    blocks.extend(magnitude(context));
    blocks.extend(power(context));
    match (context.evidence.spec, context.claims.as_slice()) {
        (_, [_, ..]) => blocks.extend(claims(context)),
        (Some(_), []) => blocks.push(Block::paragraph("The spec claims nothing.")),
        (None, []) => blocks.push(Block::paragraph("Claims are in the spec, which is not known.")),
    }
    blocks
}

/// The span of the leads, beside their absolute base.
fn magnitude(context: &Context) -> Option<Block> {
    let evidence = context.evidence;
    let median = |cell: u32| evidence.summary.cell(cell).description.as_ref().map(|description| description.median);
    let mut leads: Vec<(f64, u32, u32)> = Vec::new();
    for lead in &context.leads {
        if let (Some(best), Some(next)) = (lead.alone(), lead.next) {
            leads.push((median(best)? / median(next)?, best, next));
        }
    }
    leads.sort_by(|a, b| a.0.total_cmp(&b.0));
    let phrase = |&(ratio, best, next): &(f64, u32, u32)| {
        let (best_text, next_text) = (number::mops(median(best)?), number::mops(median(next)?));
        let label = &evidence.plan.cell(best).structure().label;
        let other = &evidence.plan.cell(next).structure().label;
        Some(format!("{} ({label} {best_text} against {other} {next_text} Mops/s)", number::ratio(ratio)))
    };
    let text = match leads.as_slice() {
        [] => return None,
        [only] => format!("The lead over the next is {}.", phrase(only)?),
        [least, .., most] => format!("The lead over the next is between {} and {}.", phrase(least)?, phrase(most)?),
    };
    Some(Block::paragraph(text))
}

/// Says so when no data could have told any cells apart.
fn power(context: &Context) -> Option<Block> {
    let comparisons = &context.evidence.summary.comparisons;
    let hopeless = comparisons.iter().filter(|comparison| comparison.is_hopeless(comparisons.len())).count();
    (hopeless > 0).then(|| {
        Block::callout(
            Tone::Warn,
            "Too few trials to tell",
            format!(
                "{hopeless} of {} have too few trials to be told apart at the {} level after correction, however large \
                 the difference. {} of each cell would do.",
                counted(comparisons.len(), "comparison"),
                number::percent(ALPHA),
                counted(compare::trials_needed(comparisons.len()), "trial"),
            ),
        )
    })
}

fn claims(context: &Context) -> Vec<Block> {
    let mut table = Table::new("Claims", &[("Claim", None), ("Decision", None), ("Why", None)]);
    for decided in &context.claims {
        let decision = Cell::new(decided.decision.name()).tone(tone(decided.decision)).strong();
        let claim = Cell::new(&decided.claim.text).strong().note(scope(context, decided.claim));
        table.row(vec![claim, decision, Cell::new(&decided.reason)]);
    }
    let mut blocks = vec![Block::Table(table)];
    for decided in context.claims.iter().filter(|decided| !decided.pairs.is_empty()) {
        blocks.push(Block::details(
            format!("Each configuration of: {}", decided.claim.text),
            vec![pairs(context, decided)],
        ));
    }
    blocks
}

/// By how much a claim says so and where, without which its decision cannot be read; empty if everywhere, by anything.
fn scope(context: &Context, claim: &Claim) -> String {
    let evidence = context.evidence;
    let by = (claim.by > BasisPoints(0)).then(|| format!("by {}", claim.by));
    let conditions = claim.scope.conditions.iter().map(|(parameter, alternatives)| {
        let alternatives: Vec<String> = alternatives
            .iter()
            .map(|condition| match condition {
                Condition::Is(value) => evidence.phrase(*parameter, value),
                Condition::Named(name) => name.clone(),
                Condition::Over(number) => format!("{} over {number}", title(*parameter)),
                Condition::Under(number) => format!("{} under {number}", title(*parameter)),
            })
            .collect();
        alternatives.join(" or ")
    });
    by.into_iter().chain(conditions).collect::<Vec<_>>().join(", ")
}

fn tone(decision: Decision) -> Tone {
    match decision {
        Decision::Holds => Tone::Good,
        Decision::Fails => Tone::Bad,
        Decision::Undecided => Tone::Unknown,
    }
}

fn pairs(context: &Context, decided: &ClaimDecision) -> Block {
    let columns = [
        ("Configuration", None),
        ("Decision", None),
        (decided.claim.faster.as_str(), Some("Mops/s")),
        (decided.claim.slower.as_str(), Some("Mops/s")),
        ("Ratio", Some("")),
        ("95 % interval", Some("")),
        ("p corrected", Some("")),
    ];
    let mut table = Table::new("", &columns);
    for pair in &decided.pairs {
        let median = |cell: u32| {
            let description = context.evidence.summary.cell(cell).description.as_ref();
            Cell::new(description.map_or(number::NONE.to_owned(), |described| number::mops(described.median)))
        };
        let option = |text: Option<String>| Cell::new(text.unwrap_or_else(|| number::NONE.to_owned()));
        table.row(vec![
            Cell::new(configuration(context, pair.faster)),
            Cell::new(pair.decision.name()).tone(tone(pair.decision)).note(&pair.reason),
            median(pair.faster),
            median(pair.slower),
            option(pair.ratio.map(number::ratio)),
            option(pair.interval.map(number::ratio_interval)),
            option(pair.p.map(number::p_value)),
        ]);
    }
    Block::Table(table)
}

fn configuration(context: &Context, cell: u32) -> String {
    match context.evidence.configuration_label(cell) {
        label if label.is_empty() => "the only one".to_owned(),
        label => label,
    }
}
