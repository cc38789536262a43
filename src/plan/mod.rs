//! The plan: cells, trials in order, checks and instruments, as canonical JSON with a hash.
//!
//! Pure: the same spec gives the same bytes everywhere. No clock, host, locale, float or hash-map order on this path.
//!
//! [`Plan::compile`] bounds the crossing, expands it and orders the trials; `walk` visits the result leaf by leaf, and
//! everything that is hashed or explained is a visitor of that one walk.

pub mod classify;
mod compile;
pub mod error;
pub mod estimate;
mod expand;
mod explain;
mod json;
mod limits;
mod listing;
pub mod model;
pub mod probe;
mod read;
mod read_value;
mod rules;
mod seeds;
mod walk;

pub use compile::COMPARE;
pub use error::{Limit, PlanError, PlanReadError, RuleFault, RuleProblem};
pub use estimate::{ACCOUNTING_OPERATIONS, Estimate};
pub use listing::listing;
pub use model::{Block, BlockKind, Cell, Plan, PlanHash, TrialId};
pub use probe::{Ground, Mode, Probe, Prober};
