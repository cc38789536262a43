//! Every scheme: frees each object once, counts, and keeps what may still be read.

use std::{
    ptr,
    sync::{
        Arc,
        atomic::{
            AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
    thread,
};

use super::{hazard::N_SLOTS, hyaline::BATCH_PARAMETER, *};
use crate::nodes;

/// Counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// Makes objects that count their drops.
#[derive(Default)]
struct Maker(Arc<AtomicUsize>);

impl Maker {
    fn make(&self) -> *mut Counted {
        nodes::allocate(Counted(Arc::clone(&self.0)))
    }

    fn n_drops(&self) -> usize {
        self.0.load(Relaxed)
    }

    /// Retires `n` new objects, each in an operation of its own.
    fn retire(&self, n: usize, local: &mut impl AnyLocal) {
        for _ in 0..n {
            // SAFETY: the object was just made and nothing else points to it.
            unsafe { local.pin().retire(self.make()) };
        }
    }
}

/// Retires `n` objects on each of two threads, and returns the drops seen then and after the scheme's own drop, and what
/// it said was unreclaimed.
fn retire_on_two_threads<R: AnyReclaimer>(n: usize) -> (usize, usize, u64) {
    let maker = Maker::default();
    let reclaimer = R::new();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| maker.retire(n, &mut reclaimer.register()));
        }
    });
    let before = maker.n_drops();
    let unreclaimed = reclaimer.unreclaimed();
    drop(reclaimer);
    (before, maker.n_drops(), unreclaimed)
}

fn frees_each_object_once_and_counts_the_rest<R: AnyReclaimer>() {
    let (before, after, unreclaimed) = retire_on_two_threads::<R>(10_000);
    assert_eq!(after, 20_000);
    assert_eq!(unreclaimed, 20_000 - before as u64);
    assert!(before > 0, "nothing was freed while threads ran");
}

fn keeps_what_an_older_guard_may_read<R: Reclaimer>() {
    let maker = Maker::default();
    let reclaimer = <R as Reclaimer>::new();
    let mut reader = Reclaimer::register(&reclaimer);
    let guard = Local::pin(&mut reader);
    thread::scope(|scope| {
        scope.spawn(|| maker.retire(10_000, &mut AnyReclaimer::register(&reclaimer)));
    });
    assert_eq!(maker.n_drops(), 0);
    assert_eq!(Reclaimer::unreclaimed(&reclaimer), 10_000);
    drop(guard);
    drop(reader);
    drop(reclaimer);
    assert_eq!(maker.n_drops(), 10_000);
}

/// Two instances on one thread: what one frees is not counted for the other.
fn instances_count_apart<R: AnyReclaimer>() {
    let maker = Maker::default();
    let (one, other) = (R::new(), R::new());
    maker.retire(1000, &mut one.register());
    let before = one.unreclaimed();
    maker.retire(7, &mut other.register());
    drop(other);
    assert_eq!(one.unreclaimed(), before);
    assert_eq!(before, 1000 - (maker.n_drops() as u64 - 7));
    maker.retire(1, &mut one.register());
    drop(one);
    assert_eq!(maker.n_drops(), 1008);
}

#[test]
fn every_scheme_frees_each_object_once_and_counts_the_rest() {
    frees_each_object_once_and_counts_the_rest::<Epoch>();
    frees_each_object_once_and_counts_the_rest::<Eager>();
    frees_each_object_once_and_counts_the_rest::<Hyaline>();
    frees_each_object_once_and_counts_the_rest::<Hazard>();
}

#[test]
fn none_frees_nothing() {
    assert_eq!(retire_on_two_threads::<NoReclamation>(100), (0, 0, 200));
}

#[test]
fn schemes_for_whole_operations_keep_what_an_older_guard_may_read() {
    keeps_what_an_older_guard_may_read::<Epoch>();
    keeps_what_an_older_guard_may_read::<Eager>();
    keeps_what_an_older_guard_may_read::<Hyaline>();
}

#[test]
fn every_scheme_counts_for_each_instance() {
    instances_count_apart::<Epoch>();
    instances_count_apart::<Eager>();
    instances_count_apart::<Hyaline>();
    instances_count_apart::<Hazard>();
}

#[test]
fn a_slot_serves_the_next_thread() {
    let reclaimer = <Epoch as Reclaimer>::new();
    for _ in 0..100 {
        Maker::default().retire(1, &mut AnyReclaimer::register(&reclaimer));
    }
    assert_eq!(reclaimer.n_slots(), 1);
}

#[test]
fn eager_frees_with_the_second_retirement_after() {
    let (maker, reclaimer) = (Maker::default(), <Eager as AnyReclaimer>::new());
    let mut local = AnyReclaimer::register(&reclaimer);
    for n_retired in 1..=1000 {
        maker.retire(1, &mut local);
        let n_left = n_retired - maker.n_drops();
        assert!(n_left <= 2, "{n_left} objects of {n_retired} are left");
    }
}

#[test]
fn hyaline_frees_by_the_batch_that_is_asked_for() {
    for batch in [1, 4, 32, 1000] {
        let parameters = Parameters::from([(BATCH_PARAMETER.to_owned(), batch as u64)]);
        let (maker, reclaimer) = (Maker::default(), <Hyaline as AnyReclaimer>::with(&parameters));
        let mut local = AnyReclaimer::register(&reclaimer);
        maker.retire(batch - 1, &mut local);
        assert_eq!(maker.n_drops(), 0, "batch {batch}");
        maker.retire(1, &mut local);
        assert_eq!(maker.n_drops(), batch);
        maker.retire(3 * batch, &mut local);
        assert_eq!((maker.n_drops(), AnyReclaimer::unreclaimed(&reclaimer)), (4 * batch, 0));
    }
}

/// Objects that a thread retires before it scans, when there are `n_threads`.
const fn before_a_scan(n_threads: usize) -> usize {
    2 * N_SLOTS * n_threads
}

#[test]
fn an_announced_object_is_freed_when_it_is_announced_no_more() {
    let (maker, reclaimer) = (Maker::default(), Hazard::new());
    let link = AtomicPtr::new(maker.make());
    let (mut reader, mut remover) = (reclaimer.register(), reclaimer.register());
    let guard = reader.pin();
    let object = guard.protect(&link, 2);
    // SAFETY: unlinked by the exchange, and retired once.
    unsafe { remover.pin().retire(link.swap(ptr::null_mut(), SeqCst)) };
    maker.retire(10 * before_a_scan(2), &mut remover);
    // SAFETY: the object was announced before it was retired.
    assert!(unsafe { &*object }.0.load(Relaxed) > 0, "other objects were freed");
    let n_left = 10 * before_a_scan(2) + 1 - maker.n_drops();
    assert!((1..before_a_scan(2)).contains(&n_left), "{n_left} are left");
    assert_eq!(reclaimer.unreclaimed(), n_left as u64);
    drop(guard);
    drop(remover);
    assert_eq!((maker.n_drops(), reclaimer.unreclaimed()), (10 * before_a_scan(2) + 1, 0));
}

#[test]
fn a_kept_object_outlives_the_slot_it_came_from() {
    let (maker, reclaimer) = (Maker::default(), Hazard::new());
    let links = [AtomicPtr::new(maker.make()), AtomicPtr::new(maker.make())];
    let mut reader = reclaimer.register();
    let guard = reader.pin();
    let kept = guard.protect(&links[0], 0);
    guard.keep(kept.map_addr(|address| address | 1), N_SLOTS - 1);
    let second = guard.protect(&links[1], 0);
    let mut remover = reclaimer.register();
    for link in &links {
        // SAFETY: unlinked by the exchange, and retired once.
        unsafe { remover.pin().retire(link.swap(ptr::null_mut(), SeqCst)) };
    }
    drop(remover);
    assert_eq!((maker.n_drops(), reclaimer.unreclaimed()), (0, 2));
    // The slot of the second is used again; tag bits do not matter.
    let third = AtomicPtr::new(maker.make());
    assert_eq!(guard.protect(&third, 0), third.load(Relaxed));
    assert_ne!(second, kept);
    drop(reclaimer.register());
    assert_eq!((maker.n_drops(), reclaimer.unreclaimed()), (1, 1), "the first is kept");
    drop(guard);
    drop(reader);
    assert_eq!((maker.n_drops(), reclaimer.unreclaimed()), (2, 0));
    // SAFETY: nobody retired it.
    unsafe { nodes::free(third.load(SeqCst)) };
}

#[test]
fn a_scan_adopts_what_threads_left_behind() {
    let (maker, reclaimer) = (Maker::default(), Hazard::new());
    let link = AtomicPtr::new(maker.make());
    let mut reader = reclaimer.register();
    let guard = reader.pin();
    guard.protect(&link, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: unlinked by the exchange, and retired once.
            unsafe { reclaimer.register().pin().retire(link.swap(ptr::null_mut(), SeqCst)) };
        });
    });
    assert_eq!((maker.n_drops(), reclaimer.unreclaimed()), (0, 1), "it is announced, and its thread is gone");
    drop(guard);
    // Another thread, in the record of the one that is gone.
    maker.retire(before_a_scan(2), &mut reclaimer.register());
    assert_eq!((maker.n_drops(), reclaimer.unreclaimed()), (before_a_scan(2) + 1, 0));
}

#[test]
fn dropping_the_domain_frees_what_nobody_adopted() {
    let (maker, reclaimer) = (Maker::default(), Hazard::new());
    let link = AtomicPtr::new(maker.make());
    let mut reader = reclaimer.register();
    let guard = reader.pin();
    guard.protect(&link, 0);
    // SAFETY: unlinked by the exchange, and retired once.
    unsafe { reclaimer.register().pin().retire(link.swap(ptr::null_mut(), SeqCst)) };
    drop(guard);
    // Its own scan would free it: the reader is forgotten instead, as a thread that never ends would be.
    std::mem::forget(reader);
    assert_eq!(maker.n_drops(), 0);
    drop(reclaimer);
    assert_eq!(maker.n_drops(), 1);
}

#[test]
fn a_thread_holds_no_more_than_the_bound() {
    let (maker, reclaimer) = (Maker::default(), Hazard::new());
    let mut locals = [(); 3].map(|()| reclaimer.register());
    for _ in 0..2000 {
        locals.iter_mut().for_each(|local| maker.retire(1, local));
        assert!(reclaimer.unreclaimed() <= 3 * before_a_scan(3) as u64);
    }
    assert!(maker.n_drops() > 0);
}
