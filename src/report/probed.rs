//! What the sections that explain have in common: the one trial of a probe, its operations, and how it is named.
//!
//! Only a trial that breaks no law explains anything: what an invalid one counted is left out, with the reason.

use super::{
    block::{Block, Tone},
    number::NONE,
};
use crate::{
    plan::Cell,
    record::{Outcome, Watched, watched::Simulated},
    spec::value::Parameter,
    stats::Standing,
    verdict::{
        Evidence,
        evidence::{Probed, Replied},
    },
};

/// Returns the valid trial of a probe.
///
/// # Errors
/// Why there is none, in words.
pub(crate) fn sole<'a>(evidence: &Evidence, probed: &Probed<'a>) -> Result<Replied<'a>, String> {
    let standing = |replied: &&Replied| evidence.summary.trials[replied.record_idx].standing;
    if let Some(replied) = probed.trials.iter().find(|replied| standing(replied) == Standing::Instrumented) {
        return Ok(*replied);
    }
    let broken = probed.trials.first().map(|replied| &evidence.summary.trials[replied.record_idx].faults);
    Err(match (broken.and_then(|faults| faults.first()), probed.failures.first().map(|(_, trial)| &trial.outcome)) {
        (Some(fault), _) => format!("its trial is invalid: {}", fault.detail),
        (None, Some(Outcome::Failed { detail, .. })) => detail.clone(),
        (None, _) => "its trial has not been run".to_owned(),
    })
}

/// Returns the operations that all threads of a trial attempted within its window.
pub(crate) fn operations(replied: &Replied) -> u64 {
    replied.reply.threads.iter().map(|thread| thread.operations.attempted()).sum()
}

/// Returns a count divided by operations; `None` if there were none.
pub(crate) fn per_operation(count: u64, operations: u64) -> Option<f64> {
    (operations > 0).then(|| count as f64 / operations as f64)
}

/// Writes what an operation takes of something. From a thousandth on three digits count; what is less is only said to be.
pub(crate) fn amount(amount: Option<f64>) -> String {
    match amount {
        None => NONE.to_owned(),
        Some(0.0) => "0".to_owned(),
        Some(amount) if amount < 0.001 => "< 0.001".to_owned(),
        Some(amount) if amount >= 100.0 => format!("{amount:.0}"),
        Some(amount) if amount >= 10.0 => format!("{amount:.1}"),
        Some(amount) if amount >= 1.0 => format!("{amount:.2}"),
        Some(amount) => format!("{amount:.3}"),
    }
}

/// What callgrind's events add up to.
pub(crate) struct Sum {
    /// Word of specs.
    pub word: &'static str,
    /// What tables call it.
    pub title: &'static str,
    events: &'static [&'static str],
}

pub(crate) static INSTRUCTIONS: Sum = Sum { word: "instructions", title: "instructions", events: &["Ir"] };
pub(crate) static L1_MISSES: Sum = Sum { word: "l1-misses", title: "L1 misses", events: &["D1mr", "D1mw"] };
static LLC_MISSES: Sum = Sum { word: "llc-misses", title: "LLC misses", events: &["DLmr", "DLmw"] };
static BRANCH_MISSES: Sum = Sum { word: "branch-misses", title: "branch misses", events: &["Bcm", "Bim"] };

/// Every sum, in the order of tables.
pub(crate) static SUMS: [&Sum; 4] = [&INSTRUCTIONS, &L1_MISSES, &LLC_MISSES, &BRANCH_MISSES];

/// A simulated trial.
#[derive(Clone, Copy)]
pub(crate) struct Simulation<'a> {
    /// What callgrind counted.
    pub seen: &'a Simulated,
    operations: u64,
}

impl<'a> Simulation<'a> {
    /// Returns the simulated trial of a probe.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub(crate) fn of(evidence: &Evidence, probed: &Probed<'a>) -> Result<Self, String> {
        let replied = sole(evidence, probed)?;
        match replied.trial.watched.as_deref() {
            Some(Watched::Simulated(seen)) => Ok(Self { seen, operations: operations(&replied) }),
            _ => Err("its record holds nothing of callgrind's".to_owned()),
        }
    }

    /// Returns what an operation takes; `None` if an event of the sum was not simulated.
    pub(crate) fn per_operation(&self, sum: &Sum) -> Option<f64> {
        let total: Option<u64> = sum.events.iter().map(|event| self.seen.total(event)).sum();
        per_operation(total?, self.operations)
    }

    /// Returns the share of all instructions that is in some costs; `None` if there are none.
    pub(crate) fn share(&self, costs: &[u64]) -> Option<f64> {
        let at = self.seen.events.iter().position(|event| event == "Ir")?;
        per_operation(*costs.get(at)?, *self.seen.totals.get(at)?)
    }
}

/// How the cells of some probes are told apart beside their structures.
pub(crate) struct Naming {
    differing: Vec<Parameter>,
    shared: Vec<Parameter>,
}

impl Naming {
    /// Looks at all cells that stand in one table.
    pub(crate) fn new(evidence: &Evidence, cells: &[Cell]) -> Self {
        let differs = |parameter: Parameter| {
            parameter != Parameter::Structure
                && cells.windows(2).any(|pair| pair[0].value(parameter) != pair[1].value(parameter))
        };
        let differing: Vec<Parameter> = Parameter::ALL.into_iter().filter(|&parameter| differs(parameter)).collect();
        let varied = evidence.plan.varied().into_iter();
        let shared = varied.filter(|it| *it != Parameter::Structure && !differing.contains(it)).collect();
        Self { differing, shared }
    }

    /// Returns the structure of a cell, and what else tells it from the others.
    pub(crate) fn name(&self, evidence: &Evidence, cell: Cell) -> String {
        let parts = self.differing.iter().map(|&parameter| evidence.phrase(parameter, cell.value(parameter)));
        let parts: Vec<String> = [cell.structure().label.clone()].into_iter().chain(parts).collect();
        parts.join(", ")
    }

    /// Returns what all cells have in common of what the plan varies; empty if that is nothing.
    pub(crate) fn common(&self, evidence: &Evidence, cells: &[Cell]) -> String {
        let phrase = |cell: &Cell| {
            let parts = self.shared.iter().map(|&parameter| evidence.phrase(parameter, cell.value(parameter)));
            parts.collect::<Vec<String>>().join(", ")
        };
        cells.first().map(phrase).unwrap_or_default()
    }
}

/// Says of an instrument that the spec did not ask for it, and how to.
pub(crate) fn not_asked(name: &str, what: &str) -> Block {
    Block::paragraph(format!("{what} not asked for; `instruments: [{name}]` in the spec asks for them."))
}

/// Says what could not be had: each reason once, with those that it concerns. `None` if nothing is missing.
pub(crate) fn missing(title: &str, missing: &[(String, String)]) -> Option<Block> {
    let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, reason) in missing {
        match by_reason.iter_mut().find(|(known, _)| known == reason) {
            Some((_, names)) => names.push(name),
            None => by_reason.push((reason, vec![name])),
        }
    }
    let sentence = |(reason, names): &(&str, Vec<&str>)| format!("{}: {reason}.", names.join(", "));
    let text: Vec<String> = by_reason.iter().map(sentence).collect();
    (!missing.is_empty()).then(|| Block::callout(Tone::Unknown, title, text.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_three_digits_and_nothing_is_not_zero() {
        let shown = |it: f64| amount(Some(it));
        assert_eq!([1234.5, 99.96, 9.876, 0.5, 0.001].map(shown), ["1234", "100.0", "9.88", "0.500", "0.001"]);
        assert_eq!([0.000_9, 0.0].map(shown), ["< 0.001", "0"]);
        assert_eq!(amount(per_operation(7, 0)), NONE);
    }

    #[test]
    fn every_counter_that_a_spec_predicts_is_a_sum() {
        let predicted: Vec<&str> = crate::spec::words::PREDICTED.iter().map(|word| word.name).collect();
        assert_eq!(SUMS.map(|sum| sum.word).as_slice(), predicted);
    }

    #[test]
    fn a_reason_is_given_once() {
        let of = |name: &str, why: &str| (name.to_owned(), why.to_owned());
        let Some(Block::Callout { text, .. }) = missing("t", &[of("a", "x"), of("b", "y"), of("c", "x")]) else {
            panic!("something is missing");
        };
        assert_eq!(text, "a, c: x. b: y.");
        assert!(missing("t", &[]).is_none());
    }
}
