//! What watches a trial from within the measured process, besides the harness.
//!
//! Each thread sets up a [`Watcher`] of its own before the window, which is told of the phases. Must not change what is
//! measured where nothing was asked to watch, and must not judge what it saw.

mod counters;
mod event;
mod layout;
mod perf;
mod thread;
mod valgrind;

use crate::protocol::Watch;

pub(crate) use perf::Switch;
pub(crate) use thread::{Seen, Watcher, together};

/// Refuses what cannot be honoured in this process.
///
/// # Errors
/// In words.
pub(crate) fn admit(watch: &Watch) -> Result<(), String> {
    match watch {
        Watch::Valgrind => valgrind::admit(),
        Watch::Layout { allocations } => layout::admit(*allocations),
        // Whether there is what they need shows when it is opened.
        Watch::Counters | Watch::Perf { .. } => Ok(()),
    }
}

/// Begins what must be on before the threads start.
///
/// # Errors
/// In words: what is to watch does not.
pub(crate) fn begin(watch: Option<&Watch>) -> Result<(), String> {
    match watch {
        Some(Watch::Layout { .. }) => layout::begin(),
        _ => Ok(()),
    }
}
