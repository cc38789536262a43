//! Plans through their public door: expansion, identity, bytes, and reading back.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

mod estimate;
mod expand;
mod format;
mod golden;
mod identity;
mod limits;
mod probes;
mod rewrites;
mod specs;
mod texts;
