//! Numbers from records: throughputs, descriptions of cells, comparisons between them.
//!
//! Pure and the same on every machine: no clock, no locale, no hash order, no platform mathematics library beyond the
//! operations that IEEE 754 rounds exactly. Must not decide what a number means for an experiment: `verdict` does.

pub mod bootstrap;
pub mod compare;
pub mod describe;
pub mod dip;
pub mod drift;
pub mod mann_whitney;
pub mod normal;
pub mod series;
pub mod stream;
pub mod summary;
pub mod tails;
pub mod throughput;
pub mod validity;

pub use bootstrap::Interval;
pub use compare::{ALPHA, Answer, Comparison};
pub use describe::Description;
pub use summary::{CellSummary, Standing, Summary, TrialSummary, summarise};
pub use validity::{Fault, Law};
