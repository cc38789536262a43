//! Events of the processor and the kernel, counted over the window of each thread.
//!
//! What cannot be counted is never zero: each event says that it was counted, that it was counted part of the time, or why
//! it was not. There is no generic event for misses of the second-level cache, and the numbers of each processor for them
//! are not guessed.

use super::event::{self, Code, Open, Reading, Refusal, Scope};
use crate::protocol::{Count, Counter};

/// An event that is asked for.
struct Event {
    name: &'static str,
    code: Code,
    without_kernel: WithoutKernel,
}

/// What is left of an event when what the kernel does may not be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WithoutKernel {
    /// The part outside the kernel, under a name that says so.
    Part,
    /// All of it: the kernel counts it alike.
    All,
    /// Nothing: it happens in the kernel only, and would read zero.
    Nothing,
}

/// All events, those of the kernel first.
static EVENTS: &[Event] = &[
    kernel("task-clock", 1, WithoutKernel::All),
    kernel("page-faults", 2, WithoutKernel::Part),
    kernel("context-switches", 3, WithoutKernel::Nothing),
    kernel("cpu-migrations", 4, WithoutKernel::Nothing),
    processor("cycles", 0),
    processor("instructions", 1),
    processor("branch-misses", 5),
    processor("stalled-cycles-frontend", 7),
    processor("stalled-cycles-backend", 8),
    cache("l1d-read-misses", 0),
    cache("llc-read-misses", 2),
    cache("dtlb-read-misses", 3),
];

const fn kernel(name: &'static str, config: u64, without_kernel: WithoutKernel) -> Event {
    Event { name, code: Code { kind: 1, config }, without_kernel }
}

const fn processor(name: &'static str, config: u64) -> Event {
    Event { name, code: Code { kind: 0, config }, without_kernel: WithoutKernel::Part }
}

/// Misses of the reads from one cache.
const fn cache(name: &'static str, cache: u64) -> Event {
    const READS: u64 = 0;
    const MISSES: u64 = 1;
    let config = cache | READS << 8 | MISSES << 16;
    Event { name, code: Code { kind: 3, config }, without_kernel: WithoutKernel::Part }
}

/// The events of one thread, in the order of [`EVENTS`].
#[derive(Debug)]
pub(crate) struct Counters(Vec<Result<(Scope, Open), Refusal>>);

/// What one thread counted, in the order of [`EVENTS`].
#[derive(Debug)]
pub(crate) struct Counted(Vec<Result<(Scope, Reading), Refusal>>);

impl Counters {
    /// Opens all events of the calling thread; they do not count yet.
    pub fn of_this_thread() -> Self {
        Self(EVENTS.iter().map(open).collect())
    }

    /// Counts what the calling thread does in `action`, and the return into it from the kernel. Once for one thread, which
    /// opened the events.
    pub fn during<T>(&self, action: impl FnOnce() -> T) -> T {
        event::count_during(action)
    }

    /// Reads everything.
    pub fn read(self) -> Counted {
        let read = |(scope, open): (Scope, Open)| match open.read() {
            Ok(reading) => Ok((scope, reading)),
            Err(error) => Err(Refusal::Unsupported(format!("the counter cannot be read: {error}"))),
        };
        Counted(self.0.into_iter().map(|event| event.and_then(read)).collect())
    }
}

/// Opens one event with what the kernel does, or without where that is forbidden and something is left.
fn open(event: &Event) -> Result<(Scope, Open), Refusal> {
    match (Open::of_this_thread(event.code, Scope::Whole), event.without_kernel) {
        (Ok(open), _) => Ok((Scope::Whole, open)),
        (Err(Refusal::Denied(reason)), WithoutKernel::Nothing) => {
            Err(Refusal::Denied(format!("{reason}; outside the kernel there is nothing to count")))
        }
        (Err(Refusal::Denied(_)), WithoutKernel::Part) => {
            Ok((Scope::User, Open::of_this_thread(event.code, Scope::User)?))
        }
        (Err(Refusal::Denied(_)), WithoutKernel::All) => {
            Ok((Scope::Whole, Open::of_this_thread(event.code, Scope::User)?))
        }
        (Err(unsupported), _) => Err(unsupported),
    }
}

/// Adds the counts of all threads up. An event that one of them could not count is not counted.
pub(crate) fn sum(threads: &[Counted]) -> Vec<Counter> {
    let sum_of = |(event_idx, event): (usize, &Event)| {
        let readings = || threads.iter().map(|thread| thread.0[event_idx].as_ref());
        let is_part = readings().flatten().any(|(scope, _)| *scope == Scope::User);
        let name = format!("{}{}", event.name, if is_part { ":u" } else { "" });
        let readings: Result<Vec<Reading>, &Refusal> = readings().map(|read| Ok(read?.1)).collect();
        let count = match readings {
            Ok(readings) => total(&readings),
            Err(Refusal::Unsupported(reason)) => Count::Unsupported(reason.clone()),
            Err(Refusal::Denied(reason)) => Count::Denied(reason.clone()),
        };
        Counter { event: name, count }
    };
    EVENTS.iter().enumerate().map(sum_of).collect()
}

/// Adds readings of one event up, and tells a count from an extrapolated one and from none.
fn total(readings: &[Reading]) -> Count {
    let (mut estimate, mut running_ns, mut enabled_ns) = (0_u64, 0, 0);
    for reading in readings {
        if reading.running_ns == 0 {
            let reason = format!("the counter of a thread got no turn in {} ns", reading.enabled_ns);
            return Count::Unsupported(reason);
        }
        estimate = estimate.saturating_add(extrapolated(*reading));
        running_ns += reading.running_ns;
        enabled_ns += reading.enabled_ns;
    }
    if running_ns >= enabled_ns {
        Count::Counted(estimate)
    } else {
        Count::Multiplexed { estimate, running_ns, enabled_ns }
    }
}

/// Returns what would have been counted in the whole time at the rate of the time in which it was.
fn extrapolated(Reading { count, enabled_ns, running_ns }: Reading) -> u64 {
    if running_ns >= enabled_ns {
        return count;
    }
    let estimate = u128::from(count) * u128::from(enabled_ns) / u128::from(running_ns);
    u64::try_from(estimate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use super::*;

    fn reading(count: u64, enabled_ns: u64, running_ns: u64) -> Reading {
        Reading { count, enabled_ns, running_ns }
    }

    /// Counts one thread's `action`.
    fn count(action: impl FnOnce()) -> Vec<Counter> {
        let counters = Counters::of_this_thread();
        counters.during(action);
        sum(&[counters.read()])
    }

    /// Returns the count of one event of the kernel, which every machine has; `None` where this user may not count it.
    fn counted(counters: &[Counter], name: &str) -> Option<u64> {
        let is_it = |counter: &&Counter| counter.event.trim_end_matches(":u") == name;
        let counter = counters.iter().find(is_it).unwrap_or_else(|| panic!("{counters:?}"));
        match &counter.count {
            Count::Counted(count) => Some(*count),
            Count::Denied(reason) if reason.contains("perf_event_paranoid is ") => None,
            _ => panic!("{counter:?}"),
        }
    }

    #[test]
    fn readings_of_all_threads_make_one_count() {
        assert_eq!(total(&[reading(7, 10, 10), reading(5, 20, 20)]), Count::Counted(12));
        // A quarter of the time it ran, so four times as much; the other was counted the whole time.
        let mixed = [reading(100, 4_000, 1_000), reading(50, 3_000, 3_000)];
        assert_eq!(total(&mixed), Count::Multiplexed { estimate: 450, running_ns: 4_000, enabled_ns: 7_000 });
        let starved = total(&[reading(100, 4_000, 4_000), reading(0, 4_000, 0)]);
        assert!(matches!(&starved, Count::Unsupported(reason) if reason.contains("no turn in 4000 ns")), "{starved:?}");
    }

    #[test]
    fn one_thread_without_a_counter_leaves_none() {
        let whole = |count| Ok((Scope::Whole, reading(count, 10, 10)));
        let thread = |first: Result<(Scope, Reading), Refusal>| {
            Counted([first].into_iter().chain(EVENTS.iter().skip(1).map(|_| whole(1))).collect())
        };
        let without = |refusal| sum(&[thread(whole(3)), thread(Err(refusal)), thread(whole(4))]);
        let denied = without(Refusal::Denied("no".to_owned()));
        assert_eq!(denied[0].count, Count::Denied("no".to_owned()));
        assert_eq!(without(Refusal::Unsupported("none".to_owned()))[0].count, Count::Unsupported("none".to_owned()));
        assert_eq!((denied[1].event.as_str(), &denied[1].count), ("page-faults", &Count::Counted(3)));
        let part = sum(&[thread(whole(3)), thread(Ok((Scope::User, reading(2, 10, 10))))]);
        assert_eq!((part[0].event.as_str(), &part[0].count), ("task-clock:u", &Count::Counted(5)));
    }

    #[test]
    fn each_touched_page_is_one_fault_of_the_window() {
        const N_PAGES: usize = 5_000;
        let map = |n_pages: usize| {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            // SAFETY: asks for new memory wherever there is room.
            let pages = unsafe { libc::mmap(std::ptr::null_mut(), n_pages * 4_096, protection, flags, -1, 0) };
            assert_ne!(pages, libc::MAP_FAILED);
            // SAFETY: the range is that of the mapping. Huge pages would be one fault for many.
            assert_eq!(unsafe { libc::madvise(pages, n_pages * 4_096, libc::MADV_NOHUGEPAGE) }, 0);
            pages.cast::<u8>()
        };
        let touch = |pages: *mut u8| {
            for page_idx in 0..N_PAGES {
                // SAFETY: the byte lies within the mapping of so many pages.
                let byte = unsafe { pages.add(page_idx * 4_096) };
                // SAFETY: it may be written, and nobody else knows of the mapping.
                unsafe { byte.write_volatile(1) };
            }
        };
        touch(map(N_PAGES));
        let pages = map(N_PAGES);
        let counters = count(|| touch(pages));
        touch(map(N_PAGES));
        if let Some(faults) = counted(&counters, "page-faults") {
            assert!((N_PAGES as u64..N_PAGES as u64 + 20).contains(&faults), "{faults}");
        }
    }

    #[test]
    fn switches_and_time_are_those_of_the_kernel_itself() {
        let usage = || {
            // SAFETY: a record of integers, for which all zeroes is a value.
            let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: the record is live for the call.
            assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) }, 0);
            let micros = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
            (usage.ru_nvcsw + usage.ru_nivcsw, micros(usage.ru_utime) + micros(usage.ru_stime))
        };
        let (mut switches, mut micros) = (0, 0);
        let counters = count(|| {
            let before = usage();
            (0..50).for_each(|_| thread::sleep(Duration::from_micros(200)));
            while usage().1 - before.1 < 20_000 {}
            (switches, micros) = (usage().0 - before.0, usage().1 - before.1);
        });
        assert!(switches >= 50);
        if let Some(count) = counted(&counters, "context-switches").map(u64::cast_signed) {
            assert!((switches..=switches + 2).contains(&count), "{count} {switches}");
        }
        if let Some(clock_ns) = counted(&counters, "task-clock") {
            let clock_micros = (clock_ns / 1_000).cast_signed();
            assert!((micros - 5_000..=micros + 5_000).contains(&clock_micros), "{clock_micros} {micros}");
        }
    }

    /// No event of the processor reads zero: a thread that ran executed instructions.
    #[test]
    fn what_the_processor_cannot_count_says_so() {
        let counters = count(|| (0..100_000_u64).for_each(|n| _ = std::hint::black_box(n)));
        assert_eq!(counters.len(), EVENTS.len());
        for counter in counters.iter().filter(|counter| ["cycles", "instructions"].contains(&counter.event.as_str())) {
            let is_sound = match &counter.count {
                Count::Counted(count) | Count::Multiplexed { estimate: count, .. } => *count >= 100_000,
                Count::Unsupported(reason) | Count::Denied(reason) => reason.contains("os error"),
            };
            assert!(is_sound, "{counter:?}");
        }
    }
}
