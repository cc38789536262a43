//! What a run leaves behind: one [`Trial`] record per executed trial, and the [`Environment`] around them.
//!
//! Data only. Must not judge: the records are never altered, the verdicts are computed from them.

pub mod environment;
pub mod trial;
pub mod watched;

pub use environment::{Entry, Environment, Reading, Snapshot};
pub use trial::{FailureClass, Interference, Outcome, Trial};
pub use watched::Watched;
