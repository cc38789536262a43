//! Where the measured process gets its memory: one dispatching global allocator over four, the counts of accounting
//! trials, the lists of blocks of trials that ask for them, and the proof of which one served.
//!
//! One binary holds all four, so that every allocator is measured under the same code layout. Must not be installed as
//! the global allocator anywhere but in `rare-worker` and in tests of it.

mod count;
mod dispatch;
mod list;
mod preload;
mod proof;
mod usable;

pub use count::Counts;
pub use dispatch::{Dispatch, Linked};
pub(crate) use list::{Listed, as_kind, during as list_during, reserve as reserve_list, take as listed};
pub use proof::prove;
