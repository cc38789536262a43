//! `rare` compiles experiment specs into hashed run plans, runs them, and renders R.A.R.E. reports.
//!
//! Phases are pure functions: `spec` → `plan` → `run` → `record` → `stats` → `verdict` → `report`. Only `store` writes
//! files, only `host` reads the machine, only `run` starts processes, only `cli` prints.

pub mod cli;
pub mod diag;
pub mod host;
pub mod plan;
pub mod record;
pub mod report;
pub mod run;
pub mod spec;
pub mod stats;
pub mod store;
pub mod tools;
pub mod units;
pub mod verdict;
