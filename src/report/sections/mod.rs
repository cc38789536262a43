//! The sections of a report, in order: each is one file and one line in [`ALL`].

use super::{
    answer::{self, Lead},
    block::{Block, Cell, Tone},
};
use crate::{
    spec::value::Parameter,
    verdict::{self, ClaimDecision, Evidence, Grade, Verdict, evidence::title},
};

mod banner;
mod checks;
mod compare;
mod counters;
mod dependence;
mod drift;
mod environment;
mod failures;
mod layout;
mod limits;
mod memory;
mod parameters;
mod profile;
mod proofs;
mod question;
mod rerun;
mod results;
mod trials;

/// Every section, in the order of the report.
pub(super) static ALL: &[&Section] = &[
    &banner::SECTION,
    &question::SECTION,
    &results::SECTION,
    &dependence::SECTION,
    &checks::SECTION,
    &counters::SECTION,
    &profile::SECTION,
    &layout::SECTION,
    &compare::SECTION,
    &drift::SECTION,
    &memory::SECTION,
    &proofs::SECTION,
    &failures::SECTION,
    &parameters::SECTION,
    &environment::SECTION,
    &trials::SECTION,
    &limits::SECTION,
    &rerun::SECTION,
];

/// A section of the report.
pub(crate) struct Section {
    /// Anchor in a page.
    id: &'static str,
    /// Heading.
    title: &'static str,
    /// Yields its blocks.
    build: fn(&Context) -> Vec<Block>,
}

/// A section with its blocks.
pub(crate) struct Built {
    pub id: &'static str,
    pub title: &'static str,
    pub blocks: Vec<Block>,
}

/// What sections are made from: the evidence, and what was concluded from it once for all of them.
struct Context<'a> {
    evidence: &'a Evidence<'a>,
    verdicts: Vec<Verdict>,
    claims: Vec<ClaimDecision<'a>>,
    leads: Vec<Lead>,
}

/// Builds every section; one that has nothing to say is left out.
pub(crate) fn build(evidence: &Evidence) -> Vec<Built> {
    let context = Context {
        evidence,
        verdicts: verdict::judge(evidence),
        claims: verdict::claims::decide(evidence),
        leads: answer::leads(evidence),
    };
    let built = |section: &&Section| Built { id: section.id, title: section.title, blocks: (section.build)(&context) };
    ALL.iter().map(built).filter(|built| !built.blocks.is_empty()).collect()
}

impl Context<'_> {
    /// Returns the parameters that vary, but for the structure, in plan order.
    fn varied(&self) -> Vec<Parameter> {
        let varied = self.evidence.plan.varied().into_iter();
        varied.filter(|&parameter| parameter != Parameter::Structure).collect()
    }

    /// Returns a column for each varied parameter.
    fn configuration_columns(&self) -> Vec<(String, Option<&'static str>)> {
        self.varied().into_iter().map(|parameter| (title(parameter), None)).collect()
    }

    /// Returns the cells of those columns; `again` if the row above has the same.
    fn configuration(&self, cell: u32, again: bool) -> Vec<Cell> {
        let cell = self.evidence.plan.cell(cell);
        let value = |parameter| Cell { again, ..Cell::new(self.evidence.value_text(cell.value(parameter))) };
        self.varied().into_iter().map(value).collect()
    }

    /// Returns the verdict of a check.
    fn grade(&self, check: &str) -> Option<Grade> {
        self.verdicts.iter().find(|verdict| verdict.info.name == check).map(|verdict| verdict.grade)
    }
}

/// Returns the tone of a grade.
fn tone(grade: Grade) -> Tone {
    match grade {
        Grade::Pass => Tone::Good,
        Grade::Unknown => Tone::Unknown,
        Grade::Warn => Tone::Warn,
        Grade::Fail => Tone::Bad,
    }
}
