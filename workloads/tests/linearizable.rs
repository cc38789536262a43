//! Every structure of the registry is linearizable in the histories seen: many short ones, where all orders of few
//! operations occur, and a long one with contention.
//!
//! Controls, those of the registry and some that are broken in ways that nobody sees in sums at the end, show that each
//! fault is found in seconds.
//! `RARE_TEST_SEED` chooses the run, `RARE_TESTS` its size. A structure that does not finish in time gets no verdict,
//! which counts as a failure.

mod common;
mod history;

use std::{
    collections::{BTreeMap, BTreeSet},
    hint::spin_loop,
    panic::resume_unwind,
    sync::{
        Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
        mpsc::{RecvTimeoutError, channel},
    },
    thread,
    time::{Duration, Instant},
};

use common::{
    Random, Subject,
    controls::{EXPECTED, Suite},
    is_long, seed, sized,
};
use crossbeam_skiplist::SkipMap;
use history::{
    Clock,
    Kind::{Contains, Insert, Remove},
    Operation, Recorder,
    linearize::check,
};
use rare_workloads::{
    families::set::SetHandle,
    harness::pin::{AllowedCpus, pin_to},
    protocol::Audit,
    structures::{Adt, ErasedSet},
};

/// Threads of a short history at most. Those that sit one out do nothing.
const MAX_THREADS: u64 = 4;

/// Time in which a structure must come to a verdict; a hundred times what the slowest usually takes on two busy cores.
const LIMIT: Duration = Duration::from_secs(60);

/// Time in which a control must be caught.
const CONTROL_LIMIT: Duration = Duration::from_secs(20);

/// Keys of short histories; neighbours, extremes, and keys far apart.
const TRIPLES: [[u64; 3]; 4] =
    [[0, 1, 2], [0, 1, u64::MAX], [u64::MAX - 2, u64::MAX - 1, u64::MAX], [7, 1 << 20, 1 << 40]];

fn stores_keys(subject: &Subject) -> bool {
    subject.info.semantics.adt != Adt::Nothing
}

/// Time in which a structure must come to a verdict, in a run of this size.
fn limit() -> Duration {
    if is_long() { 10 * LIMIT } else { LIMIT }
}

/// Lets one test of this file run at a time: histories need the cores to overlap.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `judge` on a thread of its own, so that a set that hangs fails the test instead of the patience of its user.
fn within(limit: Duration, name: &str, judge: impl FnOnce() + Send + 'static) {
    let (done, verdict) = channel::<()>();
    let thread = thread::spawn(move || {
        let _done = done;
        judge();
    });
    match verdict.recv_timeout(limit) {
        Err(RecvTimeoutError::Timeout) => panic!("no verdict within {limit:?}, which counts as a failure: {name}"),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    }
}

/// Waits until `n` threads have arrived. Spins, because histories of a microsecond must begin together; yields now and
/// then, because there may be fewer cores than threads.
fn meet(arrivals: &AtomicU64, n: u64) {
    // Release and Acquire: nothing of the histories before is left to happen; the counter needs no more.
    arrivals.fetch_add(1, Release);
    let mut n_spins = 0_u32;
    while arrivals.load(Acquire) < n {
        n_spins += 1;
        if n_spins.is_multiple_of(200) { thread::yield_now() } else { spin_loop() }
    }
}

/// Pins the thread of that index, so that threads that should overlap do not share a core while another is idle, or busy
/// with something else.
fn pin(thread: u64) {
    let cpus = AllowedCpus::of_this_thread().expect("the kernel tells").numbers();
    pin_to(cpus[thread as usize % cpus.len()]).expect("the CPU is an allowed one");
}

/// Applies one random operation. Updates are four of five, half of them inserts.
fn step(recorder: &mut Recorder, handle: &mut dyn SetHandle, random: &mut Random, keys: &[u64]) {
    let key = keys[random.below(keys.len() as u64) as usize];
    let kind = [Insert, Insert, Remove, Remove, Contains][random.below(5) as usize];
    recorder.run(handle, kind, key);
}

/// Adds to a history what the calling thread finds at the end, so that a lost update cannot hide behind it.
fn look_at_the_end(clock: Clock, set: &dyn ErasedSet, keys: &[u64], history: &mut Vec<Operation>) {
    let mut recorder = Recorder::new(clock, u32::MAX, keys.len());
    let mut handle = set.handle();
    keys.iter().for_each(|&key| recorder.run(&mut *handle, Contains, key));
    history.append(&mut recorder.operations);
}

/// Tells whether threads run at the same time here. Where they do, tests go on until enough operations overlapped: on a
/// busy machine few do, and histories without overlap say little.
fn can_overlap() -> bool {
    thread::available_parallelism().is_ok_and(|n| n.get() > 1)
}

/// Counts the operations that were invoked while another on the same key was open.
fn n_overlapping(history: &[Operation]) -> usize {
    let mut by_key: Vec<&Operation> = history.iter().collect();
    by_key.sort_by_key(|operation| (operation.key, operation.invoked));
    let overlapping_of_key = |operations: &[&Operation]| {
        let mut end = None;
        let overlaps = |operation: &&&Operation| {
            let overlaps = end.is_some_and(|end| operation.invoked <= end);
            end = end.max(Some(operation.responded));
            overlaps
        };
        operations.iter().filter(overlaps).count()
    };
    by_key.chunk_by(|one, next| one.key == next.key).map(overlapping_of_key).sum()
}

/// What the threads of one short history share.
struct Short {
    set: Box<dyn ErasedSet>,
    keys: [u64; 3],
    n_threads: u64,
    arrivals: AtomicU64,
}

/// Records `n` histories, each of 2 to 4 threads with 4 to 8 operations each on three keys of a set of its own.
fn short_histories(make: &dyn Fn() -> Box<dyn ErasedSet>, test: u64, n: usize) -> Vec<Vec<Operation>> {
    let mut random = Random::of(test, u64::MAX);
    let mut short = || Short {
        set: make(),
        keys: TRIPLES[random.below(TRIPLES.len() as u64) as usize],
        n_threads: 2 + random.below(MAX_THREADS - 1),
        arrivals: AtomicU64::new(0),
    };
    let shorts: Vec<Short> = (0..n).map(|_| short()).collect();
    let clock = Clock::start();
    let run = |thread: u64| {
        pin(thread);
        let mut random = Random::of(test, thread);
        let part_of = |short: &Short| {
            let mut recorder = Recorder::new(clock, thread as u32, 8);
            if thread < short.n_threads {
                let mut handle = short.set.handle();
                let n_operations = 4 + random.below(5);
                meet(&short.arrivals, short.n_threads);
                (0..n_operations).for_each(|_| step(&mut recorder, &mut *handle, &mut random, &short.keys));
            }
            recorder.operations
        };
        shorts.iter().map(part_of).collect::<Vec<_>>()
    };
    let mut histories: Vec<Vec<Operation>> = vec![Vec::new(); n];
    thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = (0..MAX_THREADS).map(|thread| scope.spawn(move || run(thread))).collect();
        for thread in threads {
            let parts = thread.join().expect("the thread did not panic");
            histories.iter_mut().zip(parts).for_each(|(history, part)| history.extend(part));
        }
    });
    for (history, short) in histories.iter_mut().zip(&shorts) {
        look_at_the_end(clock, &*short.set, &short.keys, history);
    }
    histories
}

/// Records one history of about `n_operations` by `n_threads` threads on `keys`.
fn long_history(set: &dyn ErasedSet, test: u64, n_threads: u64, keys: &[u64], n_operations: u64) -> Vec<Operation> {
    let (arrivals, clock) = (AtomicU64::new(0), Clock::start());
    let run = |thread: u64| {
        pin(thread);
        let of_thread = n_operations / n_threads;
        let mut random = Random::of(test, thread);
        let mut recorder = Recorder::new(clock, thread as u32, of_thread as usize);
        let mut handle = set.handle();
        meet(&arrivals, n_threads);
        (0..of_thread).for_each(|_| step(&mut recorder, &mut *handle, &mut random, keys));
        recorder.operations
    };
    let mut history: Vec<Operation> = thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = (0..n_threads).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("the thread did not panic")).collect()
    });
    look_at_the_end(clock, set, keys, &mut history);
    history
}

#[test]
fn short_histories_are_linearizable() {
    let _turn = alone();
    for subject in Subject::sample().into_iter().filter(stores_keys) {
        within(limit(), &subject.name(), move || {
            let n_short = sized(200, 2000, 2000);
            let (mut n_histories, mut n_that_overlap) = (0, 0);
            while n_histories < n_short || (can_overlap() && n_that_overlap < n_short / 10) {
                let histories = short_histories(&|| subject.make(), 1000 + n_histories as u64, n_short / 4);
                n_histories += histories.len();
                n_that_overlap += histories.iter().filter(|history| n_overlapping(history) > 0).count();
                for history in &histories {
                    check(history).unwrap_or_else(|violation| panic!("{}\n{violation}", subject.name()));
                }
            }
            println!("{n_that_overlap} of {n_histories} short histories overlap: {}", subject.name());
        });
    }
}

#[test]
fn long_histories_are_linearizable() {
    let _turn = alone();
    let n_operations = sized(5_000, 100_000, 1_000_000);
    for subject in Subject::sample().into_iter().filter(stores_keys) {
        within(limit(), &subject.name(), move || {
            for (n_threads, keys) in [(2, &[7, 8, 9, 10][..]), (3, &[0, u64::MAX])] {
                for test in 100 * n_threads.. {
                    let history = long_history(&*subject.make(), test, n_threads, keys, n_operations);
                    check(&history).unwrap_or_else(|violation| panic!("{}\n{violation}", subject.name()));
                    let n_overlapping = n_overlapping(&history);
                    println!("{n_overlapping} of {} operations overlap: {}", history.len(), subject.name());
                    if !can_overlap() || n_overlapping >= history.len() / 100 {
                        break;
                    }
                }
            }
        });
    }
}

/// Records histories of a control until one is not linearizable.
fn catch(make: impl Fn() -> Box<dyn ErasedSet>) {
    let _turn = alone();
    let start = Instant::now();
    for round in 0.. {
        let history = long_history(&*make(), 40 + round, 2, &[7, 8, 9, 10], 50_000);
        if let Err(violation) = check(&history) {
            println!("caught in round {round}, after {:?}: {violation}", start.elapsed());
            return;
        }
        assert!(start.elapsed() < CONTROL_LIMIT, "not caught in {round} rounds, seed {}", seed());
    }
}

/// A control: a set of which only the handle is told, as a closure from kind of operation and key to the answer.
struct Control<M, H> {
    shared: M,
    /// Makes what a thread keeps.
    apply: fn(&M, &mut H, history::Kind, u64) -> bool,
}

struct ControlHandle<'s, M, H> {
    control: &'s Control<M, H>,
    own: H,
}

impl<M: Send + Sync, H: Default> ErasedSet for Control<M, H> {
    fn handle(&self) -> Box<dyn SetHandle + '_> {
        Box::new(ControlHandle { control: self, own: H::default() })
    }

    fn audit(&mut self) -> Audit {
        unreachable!("controls are judged by their answers alone")
    }

    fn unreclaimed(&self) -> Option<u64> {
        None
    }
}

impl<M, H> ControlHandle<'_, M, H> {
    fn apply(&mut self, kind: history::Kind, key: u64) -> bool {
        (self.control.apply)(&self.control.shared, &mut self.own, kind, key)
    }
}

impl<M, H> SetHandle for ControlHandle<'_, M, H> {
    fn insert(&mut self, key: u64, _value: u64) -> bool {
        self.apply(Insert, key)
    }

    fn remove(&mut self, key: u64) -> bool {
        self.apply(Remove, key)
    }

    fn contains(&mut self, key: u64) -> bool {
        self.apply(Contains, key)
    }
}

/// A set that is right: what the controls are without their faults.
fn apply_rightly(set: &Mutex<BTreeSet<u64>>, kind: history::Kind, key: u64) -> bool {
    let mut set = set.lock().expect("no operation panics");
    match kind {
        Insert => set.insert(key),
        Remove => set.remove(&key),
        Contains => set.contains(&key),
    }
}

#[test]
fn a_control_without_fault_passes() {
    let _turn = alone();
    let set = Control::<Mutex<BTreeSet<u64>>, ()> {
        shared: Mutex::default(),
        apply: |set, (), kind, key| apply_rightly(set, kind, key),
    };
    let history = long_history(&set, 33, 3, &[7, 8], 100_000);
    check(&history).unwrap_or_else(|violation| panic!("seed {}: {violation}", seed()));
}

/// Each control of the registry is caught by histories, or passes, as it must.
#[test]
fn controls_are_caught_or_pass() {
    for expected in EXPECTED {
        let (subject, dose) = (expected.subject(), expected.dose);
        if expected.must_be_caught_by(Suite::Linearizability) {
            catch(|| subject.make_with(dose));
            continue;
        }
        let _turn = alone();
        within(LIMIT, &subject.name(), move || {
            for test in 60..63 {
                let history = long_history(&*subject.make_with(dose), test, 2, &[7, 8, 9, 10], 50_000);
                check(&history).unwrap_or_else(|violation| panic!("{}\n{violation}", subject.name()));
            }
        });
    }
}

#[test]
fn a_stale_look_up_is_caught() {
    catch(|| {
        Box::new(Control::<RwLock<BTreeSet<u64>>, (u32, BTreeMap<u64, bool>)> {
            shared: RwLock::default(),
            apply: |set, (n_look_ups, seen), kind, key| match kind {
                Insert => set.write().expect("no operation panics").insert(key),
                Remove => set.write().expect("no operation panics").remove(&key),
                Contains => {
                    *n_look_ups += 1;
                    let answer = set.read().expect("no operation panics").contains(&key);
                    let last = seen.insert(key, answer).unwrap_or(answer);
                    if n_look_ups.is_multiple_of(1000) { last } else { answer }
                }
            },
        })
    });
}

#[test]
fn an_entry_given_to_two_threads_is_caught() {
    // The crate's own `remove`, which the adaptor avoids. Each insert brings a value of its own, so that it knows
    // whether the entry it gets is its own.
    static N_VALUES: AtomicU64 = AtomicU64::new(0);
    catch(|| {
        Box::new(Control::<SkipMap<u64, u64>, ()> {
            shared: SkipMap::new(),
            apply: |map, (), kind, key| match kind {
                Insert => {
                    let value = N_VALUES.fetch_add(1, Relaxed);
                    *map.get_or_insert(key, value).value() == value
                }
                Remove => map.remove(&key).is_some(),
                Contains => map.contains_key(&key),
            },
        })
    });
}

/// Lets two threads insert a key each and then look for the other's, with nothing between that would order memory.
/// Returns the rounds in which both missed it.
///
/// The stamps of histories cannot show this fault, for they order memory themselves.
fn rounds_that_miss(set: &dyn ErasedSet, n_rounds: u64) -> usize {
    let arrivals: Vec<_> = (0..n_rounds).map(|_| AtomicU64::new(0)).collect();
    let run = |thread: u64| {
        pin(thread);
        let mut handle = set.handle();
        let round = |(round, arrivals): (usize, &AtomicU64)| {
            let keys = 2 * round as u64;
            meet(arrivals, 2);
            assert!(handle.insert(keys + thread, 0), "the key is new");
            handle.contains(keys + 1 - thread)
        };
        arrivals.iter().enumerate().map(round).collect::<Vec<bool>>()
    };
    thread::scope(|scope| {
        let run = &run;
        let threads = [0, 1].map(|thread| scope.spawn(move || run(thread)));
        let [found, found_by_other] = threads.map(|thread| thread.join().expect("the thread did not panic"));
        found.iter().zip(&found_by_other).filter(|&(&one, &other)| !one && !other).count()
    })
}

#[test]
fn threads_do_not_miss_each_other() {
    let _turn = alone();
    for subject in Subject::sample().into_iter().filter(stores_keys) {
        within(limit(), &subject.name(), move || {
            let n_missed = (0..5).map(|_| rounds_that_miss(&*subject.make(), 2000)).sum::<usize>();
            assert_eq!(n_missed, 0, "rounds where both inserts came too late, of {}", subject.name());
        });
    }
}

#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "whether plain stores are late depends on the processor")]
fn threads_that_miss_each_other_are_caught() {
    // A flag per key, written with Release and read with Acquire: each key alone is linearizable on paper, but a store
    // may still be on its way when the next load is done.
    let _turn = alone();
    let start = Instant::now();
    let mut n_missed = 0;
    while n_missed == 0 {
        let flags = Control::<Vec<AtomicBool>, ()> {
            shared: (0..4000).map(|_| AtomicBool::new(false)).collect(),
            apply: |flags, (), kind, key| {
                let flag = &flags[key as usize];
                // Release and Acquire: the fault.
                if kind == Insert {
                    flag.store(true, Release);
                    true
                } else {
                    flag.load(Acquire)
                }
            },
        };
        n_missed += rounds_that_miss(&flags, 2000);
        assert!(start.elapsed() < CONTROL_LIMIT, "not caught");
    }
    println!("{n_missed} rounds, after {:?}", start.elapsed());
}
