//! The plan: cells, trials in order, checks and instruments, as canonical JSON with a hash.
//!
//! Pure: the same spec gives the same bytes everywhere. No clock, host, locale, float or hash-map order on this path.

pub mod model;

pub use model::{Block, BlockKind, Cell, Plan, PlanHash, TrialId};
