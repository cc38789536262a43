//! The host layer on recorded machines, and on this one.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

#[path = "host/environment.rs"]
mod environment;
#[path = "host/pinning.rs"]
mod pinning;
#[path = "host/preload.rs"]
mod preload;
#[path = "host/tree.rs"]
mod tree;
