//! The external tools valgrind and perf: what they are told, and what they tell.
//!
//! Pure: arguments as data, and readers of the tools' outputs, which never panic whatever they are given and whose memory
//! is bounded by the length of it. Must not start a process, read a file, or judge what was seen.

pub mod callgrind;
pub mod flame;
pub mod found;
pub mod lines;
pub mod memcheck;
pub mod perf;
pub mod profile;
pub mod valgrind;

mod name;
mod xml;

pub use found::{Answer, Missing};
