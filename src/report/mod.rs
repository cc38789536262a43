//! The report: Markdown, HTML, figures and CSV, a pure function of the evidence.
//!
//! Must not read the clock, the machine or files other than a folder of templates that the caller names: the same
//! evidence gives the same bytes everywhere. A section is one file and one line in [`sections::ALL`]; it yields blocks,
//! and each kind of block has one template a format.

mod align;
mod answer;
mod block;
mod csv;
mod embed;
mod figures;
mod grid;
mod plot;
mod probed;
mod prose;
mod render;
mod sections;
mod symbol;
mod text;

pub use embed::{embedded_environment, embedded_plan, embedded_spec};
pub use render::{Rendered, ReportError, check_templates, render};

use crate::verdict::number;

/// Returns the answer of the run in one or two sentences: who leads where, or that nobody does.
pub fn answer(evidence: &crate::verdict::Evidence) -> String {
    answer::sentence(evidence, &answer::leads(evidence))
}
