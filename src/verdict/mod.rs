//! What the records prove: sanity checks and claims, each with the trials it rests on.
//!
//! Pure. Must not alter or leave out data: what makes a trial invalid is `stats::validity`, and it is reported here.

pub(crate) mod beside;
pub mod checks;
pub mod claims;
pub mod evidence;
pub mod instruments;
pub(crate) mod number;
pub(crate) mod probing;
pub(crate) mod scaling;

pub use checks::{Check, Grade, Info, Row, Verdict, judge};
pub use claims::{ClaimDecision, Decision};
pub use evidence::Evidence;

use crate::plan::{Ground, Probe};

/// Returns the trials that the check or the instrument of a name needs beside the cells of a plan: the prober of
/// [`crate::plan::Plan::compile`].
pub fn probes(name: &str, ground: &Ground<'_>) -> Vec<Probe> {
    let mut probes = checks::probes(name, ground);
    probes.extend(instruments::probes(name, ground));
    probes
}
