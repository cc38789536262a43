//! What watches one thread.

use super::{
    counters::{self, Counted, Counters},
    layout, valgrind,
};
use crate::{
    alloc,
    protocol::{AllocationPhase, Counter, ThreadLayout, Watch},
};

/// What watches the thread that set it up; it is told of the thread's phases.
#[derive(Debug)]
pub(crate) enum Watcher {
    /// Nothing, or what watches the process as a whole.
    Nothing,
    /// The list of its first blocks.
    Layout,
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
    /// Its first blocks.
    Layout(ThreadLayout),
    /// What its counters read.
    Counters(Counted),
}

impl Watcher {
    /// Sets up what watches the calling thread. All memory that it needs is reserved here.
    pub fn of_this_thread(watch: Option<&Watch>) -> Self {
        match watch {
            Some(Watch::Layout { allocations }) => {
                alloc::reserve_list(*allocations as usize);
                Self::Layout
            }
            Some(Watch::Counters) => Self::Counters(Counters::of_this_thread()),
            Some(Watch::Valgrind) => Self::Valgrind,
            _ => Self::Nothing,
        }
    }

    /// Runs the prefill of the calling thread, watched.
    pub fn during_prefill<T>(&mut self, prefill: impl FnOnce() -> T) -> T {
        match self {
            Self::Layout => alloc::list_during(AllocationPhase::Prefill, prefill),
            Self::Nothing | Self::Counters(_) | Self::Valgrind => prefill(),
        }
    }

    /// Runs the window of the calling thread, watched.
    pub fn during_window<T>(&mut self, window: impl FnOnce() -> T) -> T {
        match self {
            Self::Nothing => window(),
            Self::Layout => alloc::list_during(AllocationPhase::Window, window),
            Self::Counters(counters) => counters.during(window),
            Self::Valgrind => valgrind::collect(window),
        }
    }

    /// Hands in what was seen, on the thread that saw it.
    pub fn seen(self) -> Seen {
        match self {
            Self::Nothing | Self::Valgrind => Seen::Nothing,
            Self::Layout => Seen::Layout(layout::of_this_thread()),
            Self::Counters(counters) => Seen::Counters(counters.read()),
        }
    }
}

/// What was seen of a trial.
#[derive(Debug, Default)]
pub(crate) struct Sight {
    /// The first blocks of each thread, if they were listed.
    pub layout: Option<Vec<ThreadLayout>>,
    /// The events of all threads, if they were counted.
    pub counters: Option<Vec<Counter>>,
}

/// Puts together what was seen of all threads, which are all watched alike.
pub(crate) fn together(threads: Vec<Seen>) -> Sight {
    let (mut layouts, mut counted) = (Vec::new(), Vec::new());
    for seen in threads {
        match seen {
            Seen::Nothing => {}
            Seen::Layout(layout) => layouts.push(layout),
            Seen::Counters(counts) => counted.push(counts),
        }
    }
    Sight {
        layout: (!layouts.is_empty()).then_some(layouts),
        counters: (!counted.is_empty()).then(|| counters::sum(&counted)),
    }
}
