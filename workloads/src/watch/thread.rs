//! What watches one thread.

use super::{
    counters::{self, Counted, Counters},
    valgrind,
};
use crate::protocol::{Counter, Watch};

/// What watches the thread that set it up; it is told of the thread's phases.
#[derive(Debug)]
pub(crate) enum Watcher {
    /// Nothing, or what watches the process as a whole.
    Nothing,
    /// Counters of the kernel.
    Counters(Counters),
    /// A tool of valgrind.
    Valgrind,
}

/// What was seen of one thread.
#[derive(Debug)]
pub(crate) enum Seen {
    /// What was seen is not known to this process.
    Nothing,
    /// What its counters read.
    Counters(Counted),
}

impl Watcher {
    /// Sets up what watches the calling thread. All memory that it needs is reserved here.
    pub fn of_this_thread(watch: Option<&Watch>) -> Self {
        match watch {
            Some(Watch::Counters) => Self::Counters(Counters::of_this_thread()),
            Some(Watch::Valgrind) => Self::Valgrind,
            _ => Self::Nothing,
        }
    }

    /// Runs the window of the calling thread, watched.
    pub fn during_window<T>(&mut self, window: impl FnOnce() -> T) -> T {
        match self {
            Self::Nothing => window(),
            Self::Counters(counters) => counters.during(window),
            Self::Valgrind => valgrind::collect(window),
        }
    }

    /// Hands in what was seen, on the thread that saw it.
    pub fn seen(self) -> Seen {
        match self {
            Self::Nothing | Self::Valgrind => Seen::Nothing,
            Self::Counters(counters) => Seen::Counters(counters.read()),
        }
    }
}

/// What was seen of a trial.
#[derive(Debug, Default)]
pub(crate) struct Sight {
    /// The events of all threads, if they were counted.
    pub counters: Option<Vec<Counter>>,
}

/// Puts together what was seen of all threads, which are all watched alike.
pub(crate) fn together(threads: Vec<Seen>) -> Sight {
    let mut counted = Vec::new();
    for seen in threads {
        match seen {
            Seen::Nothing => {}
            Seen::Counters(counts) => counted.push(counts),
        }
    }
    Sight { counters: (!counted.is_empty()).then(|| counters::sum(&counted)) }
}
