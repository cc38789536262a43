//! What the records prove: sanity checks and claims, each with the trials it rests on.
//!
//! Pure. Must not alter or leave out data: what makes a trial invalid is `stats::validity`, and it is reported here.

pub mod checks;
pub mod claims;
pub mod evidence;
pub(crate) mod number;

pub use checks::{Check, Grade, Info, Row, Verdict, judge, probes};
pub use claims::{ClaimDecision, Decision};
pub use evidence::Evidence;
