//! `rare` compiles experiment specs into hashed run plans, runs them, and renders R.A.R.E. reports.
//!
//! Phases are pure functions: `spec` → `plan` → `run` → `record` → `stats` → `verdict` → `report`. Only `store` writes
//! files, only `host` reads the machine, only `run` starts processes, only `cli` prints.

pub mod diag;
pub mod host;
pub mod plan;
pub mod record;
pub mod run;
pub mod spec;
pub mod store;
pub mod units;
