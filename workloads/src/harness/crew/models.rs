//! Loom runs threads and their conductor in every order, and lets every load return whatever its ordering allows.
//!
//! Built with the feature `schedules`. Each law has controls: the same model with one fault, which loom must find.
//!
//! In each model one thread at most spins at a time: of two that do, loom lets either go on for ever while the third, for
//! which they wait, does not.

use std::sync::Arc;

use loom::{
    model::Builder,
    sync::atomic::{
        AtomicU32, AtomicU64,
        Ordering::{Relaxed, Release},
    },
    thread,
};

use super::{Crew, Gate};
use crate::{
    families::set::SetHandle,
    harness::window::{self, Countdown, Flag, Generator, Until},
    keys::UniformKeys,
    protocol::{Mix, Padding},
};

/// Time stands still: no law depends on it.
pub(super) mod clock {
    pub(crate) fn now_ns() -> u64 {
        1
    }

    /// Lets the others run.
    pub(crate) fn sleep_until(_moment_ns: u64) {
        loom::thread::yield_now();
    }
}

/// What the threads of one execution share besides the crew.
#[derive(Default)]
struct Shared {
    /// Threads that have come as far as the gate or line. Relaxed, so that only the crew's own orderings make it visible.
    n_before: AtomicU32,
    /// Operations done. Changed and read by Relaxed read-modify-writes, which see the newest value and order nothing.
    n_done: AtomicU64,
}

impl Shared {
    fn come(&self) {
        self.n_before.fetch_add(1, Relaxed);
    }

    fn have_come(&self, crew: &Crew) {
        assert_eq!(self.n_before.load(Relaxed), crew.n_threads, "passed before all had come");
    }
}

/// Runs `member` on that many threads beside `conduct`, in every order with a bounded number of preemptions.
fn explore(n_threads: u32, member: fn(&Crew, &Shared, u32), conduct: fn(&Crew, &Shared)) {
    /// The controls take one or two; without a bound the longer models take hours.
    const N_PREEMPTIONS: usize = 2;
    let mut builder = Builder::new();
    builder.preemption_bound = Some(N_PREEMPTIONS);
    builder.check(move || {
        let all = Arc::new((Crew::new(n_threads, Padding::None), Shared::default()));
        let spawn = |idx| {
            let all = Arc::clone(&all);
            thread::spawn(move || member(&all.0, &all.1, idx))
        };
        let threads: Vec<_> = (0..n_threads).map(spawn).collect();
        conduct(&all.0, &all.1);
        for thread in threads {
            thread.join().expect("a panic of a thread ends the model");
        }
    });
}

// Gates.

fn come_to_the_gate(crew: &Crew, shared: &Shared, _idx: u32) {
    shared.come();
    crew.pass(Gate::Ready).expect("nobody abandons");
    shared.have_come(crew);
}

#[test]
fn a_gate_lets_nobody_pass_before_all_have_come() {
    explore(2, come_to_the_gate, |crew, shared| {
        crew.all_arrived(Gate::Ready).expect("nobody abandons");
        shared.have_come(crew);
        crew.open(Gate::Ready);
    });
}

#[test]
#[should_panic(expected = "passed before all had come")]
fn a_gate_opened_too_early_is_found() {
    explore(2, come_to_the_gate, |crew, _| crew.open(Gate::Ready));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_gate_opened_in_silence_is_found() {
    explore(2, come_to_the_gate, |crew, _| {
        crew.all_arrived(Gate::Ready).expect("nobody abandons");
        crew.lock()[Gate::Ready as usize].open = true;
    });
}

#[test]
fn gates_follow_one_another() {
    let member = |crew: &Crew, shared: &Shared, _| {
        crew.pass(Gate::Ready).expect("nobody abandons");
        shared.come();
        crew.pass(Gate::Filled).expect("nobody abandons");
        shared.have_come(crew);
    };
    explore(2, member, |crew, shared| {
        for gate in [Gate::Ready, Gate::Filled] {
            crew.all_arrived(gate).expect("nobody abandons");
            crew.open(gate);
        }
        shared.have_come(crew);
    });
}

// The start line.

fn come_to_the_line(crew: &Crew, shared: &Shared, _idx: u32) {
    shared.come();
    assert_eq!(crew.start().expect("nobody abandons"), clock::now_ns());
    shared.have_come(crew);
}

#[test]
fn nobody_starts_before_the_last_is_at_the_line() {
    explore(2, come_to_the_line, |_, _| ());
}

#[test]
fn the_conductor_waits_for_the_line() {
    explore(1, come_to_the_line, |crew, shared| {
        assert_eq!(crew.opened_ns().expect("nobody abandons"), clock::now_ns());
        shared.have_come(crew);
    });
}

#[test]
#[should_panic(expected = "passed before all had come")]
fn a_line_opened_by_another_is_found() {
    explore(2, come_to_the_line, |crew, _| crew.opened_ns.store(clock::now_ns(), Relaxed));
}

#[test]
#[should_panic(expected = "passed before all had come")]
fn an_arrival_that_publishes_nothing_is_found() {
    let member = |crew: &Crew, shared: &Shared, _| {
        shared.come();
        // As `start` does, but Relaxed.
        if crew.n_at_start.fetch_add(1, Relaxed) + 1 == crew.n_threads {
            shared.have_come(crew);
        }
    };
    explore(2, member, |_, _| ());
}

// The stop flag, and the sampler.

/// Counts operations as they end.
struct Counting<'s>(&'s AtomicU64);

impl Counting<'_> {
    fn count(&self) -> bool {
        self.0.fetch_add(1, Relaxed);
        true
    }
}

impl SetHandle for Counting<'_> {
    fn insert(&mut self, _key: u64, _value: u64) -> bool {
        self.count()
    }

    fn remove(&mut self, _key: u64) -> bool {
        self.count()
    }

    fn contains(&mut self, _key: u64) -> bool {
        self.count()
    }
}

/// Lets others run between two looks at the flag: loom never ends a loop that does not.
struct Yielding<'f>(Flag<'f>);

impl Until for Yielding<'_> {
    fn goes_on(&mut self) -> bool {
        let goes_on = self.0.goes_on();
        thread::yield_now();
        goes_on
    }
}

/// Works as in a trial.
fn work(crew: &Crew, shared: &Shared, idx: u32, until: impl Until) {
    let mix = Mix { insert: Mix::WHOLE, remove: 0, contains: 0, range: 0 };
    let generator = Generator::new(UniformKeys::new(1), mix, 1, idx);
    let progress = crew.progress(idx);
    let done = window::run(&mut Counting(&shared.n_done), generator, until, progress);
    assert_eq!(progress.load(Relaxed), done.operations.insert.attempted, "what was done is what the sampler is told");
}

fn work_until_stopped(crew: &Crew, shared: &Shared, idx: u32) {
    work(crew, shared, idx, Yielding(Flag(crew.stop())));
}

#[test]
fn whoever_works_leaves_once_stopped() {
    explore(1, work_until_stopped, |crew, _| crew.stop().store(true, Relaxed));
}

#[test]
#[should_panic(expected = "exceeded maximum number of branches")]
fn a_flag_that_is_never_set_is_found() {
    explore(1, work_until_stopped, |_, _| ());
}

/// Samples twice: never more than was done, never less than before.
fn sample_twice(crew: &Crew, shared: &Shared) {
    let mut least = 0;
    for _ in 0..2 {
        let completed = crew.completed();
        assert!(completed <= shared.n_done.fetch_add(0, Relaxed), "sampled more than was done");
        assert!(completed >= least, "sampled less than before");
        least = completed;
    }
}

#[test]
fn samples_are_never_ahead_and_never_fall() {
    explore(2, |crew, shared, idx| work(crew, shared, idx, Countdown::once(2)), sample_twice);
}

#[test]
#[should_panic(expected = "sampled more than was done")]
fn progress_told_ahead_of_work_is_found() {
    let member = |crew: &Crew, shared: &Shared, idx: u32| {
        crew.progress(idx).store(1, Relaxed);
        Counting(&shared.n_done).count();
    };
    explore(2, member, sample_twice);
}

#[test]
#[should_panic(expected = "sampled less than before")]
fn progress_that_falls_is_found() {
    let member = |crew: &Crew, shared: &Shared, idx: u32| {
        shared.n_done.fetch_add(2, Relaxed);
        crew.progress(idx).store(2, Relaxed);
        crew.progress(idx).store(1, Relaxed);
    };
    explore(2, member, sample_twice);
}

// Abandoning.

/// One thread waits, the other gives up.
fn abandoned_at_a_gate(crew: &Crew, _shared: &Shared, idx: u32) {
    match idx {
        0 => _ = crew.pass(Gate::Ready).expect_err("nobody opens the gate"),
        _ => crew.abandon(),
    }
}

fn conductor_waits(crew: &Crew, _shared: &Shared) {
    crew.all_arrived(Gate::Ready).expect_err("one thread never comes");
    assert!(crew.is_abandoned());
}

#[test]
fn abandoning_wakes_whoever_waits_at_a_gate() {
    explore(2, abandoned_at_a_gate, conductor_waits);
}

#[test]
#[should_panic(expected = "deadlock")]
fn abandoning_without_the_lock_is_found() {
    let member = |crew: &Crew, shared: &Shared, idx: u32| {
        if idx == 0 {
            return abandoned_at_a_gate(crew, shared, idx);
        }
        crew.abandoned.store(true, Release);
        crew.changed.notify_all();
    };
    explore(2, member, conductor_waits);
}

#[test]
fn abandoning_ends_the_wait_at_the_line() {
    let member = |crew: &Crew, _: &Shared, idx: u32| match idx {
        0 => _ = crew.start().expect_err("one thread never comes"),
        _ => crew.abandon(),
    };
    explore(2, member, |_, _| ());
}

#[test]
fn abandoning_ends_the_wait_of_the_conductor() {
    explore(
        1,
        |crew, _, _| crew.abandon(),
        |crew, _| {
            crew.opened_ns().expect_err("the line never opens");
            assert!(crew.is_abandoned());
        },
    );
}

#[test]
fn abandoning_while_the_line_opens_leaves_nobody_at_work() {
    // The line may open all the same; whoever starts then finds the window closed, or is about to.
    let member = |crew: &Crew, shared: &Shared, idx: u32| {
        if crew.start().is_ok() {
            work_until_stopped(crew, shared, idx);
        }
    };
    explore(1, member, |crew, _| crew.abandon());
}
