//! Everything that runs inside the measured process: the structures, the measuring loop, the allocators, and the
//! protocol over which `rare` asks for a trial.
//!
//! Must not read specs, plans or the store, and must not know how a trial is judged: it measures and proves.

pub mod alloc;
pub mod families;
pub mod harness;
pub mod identity;
pub mod keys;
pub mod nodes;
pub mod protocol;
pub mod reclaim;
pub mod rng;
pub mod structures;
mod sync;
mod watch;
pub mod worker;
