//! Dropping a structure gives back every block and byte, or, where the scheme leaks, all but what it says it leaked.
//!
//! One test only: the balance is that of the whole process.

mod common;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::{
        Barrier,
        atomic::{AtomicI64, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use common::{Random, Subject, churn, n_threads, sized};
use parking_lot::{Condvar, Mutex};
use rare_workloads::{protocol::Reclamation, structures::Reclaims};

/// The system allocator, counting.
struct Counting;

static BLOCKS: AtomicI64 = AtomicI64::new(0);
static BYTES: AtomicI64 = AtomicI64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: hands every call on to the system allocator unchanged, but for the default `realloc`, which is made of these.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BLOCKS.fetch_add(1, SeqCst);
        BYTES.fetch_add(layout.size() as i64, SeqCst);
        // SAFETY: the caller's promises are those of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        BLOCKS.fetch_sub(1, SeqCst);
        BYTES.fetch_sub(layout.size() as i64, SeqCst);
        // SAFETY: the caller's promises are those of `dealloc`.
        unsafe { System.dealloc(block, layout) };
    }
}

fn balance() -> (i64, i64) {
    (BLOCKS.load(SeqCst), BYTES.load(SeqCst))
}

/// Lets threads churn, drops the structure, and returns what it did not give back, and what it said was unreclaimed.
fn leak_of(subject: &Subject, n_keys: u64) -> (i64, i64, Option<u64>) {
    let keys: Vec<u64> = (0..n_keys).collect();
    // Threads that all live at once: what is kept per thread of the process has its final size after the first run.
    let all_have_run = Barrier::new(n_threads() as usize);
    let before = balance();
    let set = subject.make();
    thread::scope(|scope| {
        let run = |thread: u64| {
            let (set, keys, all_have_run) = (&*set, &*keys, &all_have_run);
            move || {
                churn(&mut *set.handle(), &mut Random::of(1, thread), keys, sized(20_000, 50_000, 200_000));
                all_have_run.wait();
            }
        };
        let threads: Vec<_> = (0..n_threads()).map(|thread| scope.spawn(run(thread))).collect();
        // Joined one by one: the scope alone waits for the closures, not for what the threads free when they end.
        for thread in threads {
            thread.join().expect("the thread did not panic");
        }
    });
    let unreclaimed = set.unreclaimed();
    drop(set);
    let after = balance();
    (after.0 - before.0, after.1 - before.1, unreclaimed)
}

/// Lets as many threads park at once as ever will. parking_lot keeps one table of them, which it makes and enlarges when
/// a thread parks for the first time, and never frees.
fn fill_the_parking_lot() {
    let all_have_parked = Barrier::new(n_threads() as usize);
    thread::scope(|scope| {
        for _ in 0..n_threads() {
            scope.spawn(|| {
                let lock = Mutex::new(());
                let outcome = Condvar::new().wait_for(&mut lock.lock(), Duration::from_millis(1));
                assert!(outcome.timed_out(), "nobody wakes it");
                all_have_parked.wait();
            });
        }
    });
}

#[test]
fn drop_gives_everything_back() {
    fill_the_parking_lot();
    for subject in Subject::all() {
        // Nor is what the standard library and crates keep for the process the structure's: numbers of threads that
        // ended, in seize (papaya); one arena of the records of threads, in sdd (scc).
        leak_of(&subject, 4);
        for n_keys in [1, 4, 1000] {
            let (blocks, bytes, unreclaimed) = leak_of(&subject, n_keys);
            let name = subject.name();
            let leaks = subject.reclamation == Reclamation::None && subject.info.reclaims == Reclaims::Deferred;
            if !leaks {
                assert_eq!((blocks, bytes), (0, 0), "blocks and bytes left of {name}");
                continue;
            }
            let retired = unreclaimed.expect("a scheme that leaks counts what it leaks") as i64;
            if subject.info.name == "occ-abtree22" {
                // Nodes of many keys, changed in place: none is retired while all keys fit into one.
                assert_eq!((blocks, bytes), (retired, 192 * retired), "blocks and bytes leaked by {name}");
                assert!(n_keys < 1000 || retired > 1000, "{name} retired only {retired} objects");
                continue;
            }
            if subject.info.name == "abtree17" {
                // Leaves of many keys, and the records of updates.
                assert_eq!(blocks, retired, "blocks leaked by {name}");
                assert!(retired > 1000 && (96 * blocks..=192 * blocks).contains(&bytes), "{name} leaked {bytes} bytes");
                continue;
            }
            assert!(retired > 1000, "{name} retired only {retired} objects, so this proves little");
            if subject.info.name == "crossbeam-skiplist" {
                // The crate's queue of what it would free leaks as well.
                assert!(blocks > retired, "{name} leaked {blocks} blocks, and says {retired}");
            } else {
                assert_eq!(blocks, retired, "blocks leaked by {name}");
                // From a leaf of key and value to a node that keeps to a cache line.
                assert!((16 * blocks..=64 * blocks).contains(&bytes), "{name} leaked {bytes} bytes in {blocks} blocks");
            }
        }
    }
}
