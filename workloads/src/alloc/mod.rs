//! Where the measured process gets its memory: one dispatching global allocator over four, the counts of accounting
//! trials, and the proof of which one served.
//!
//! One binary holds all four, so that every allocator is measured under the same code layout. Must not be installed as
//! the global allocator anywhere but in `rare-worker` and in tests of it.

mod count;
mod dispatch;
mod preload;
mod proof;

pub use count::Counts;
pub use dispatch::{Dispatch, Linked};
pub use proof::prove;
