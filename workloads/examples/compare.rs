//! Compares the throughput of structures in one process: a first look while one is being written, not an experiment.
//! For those, write a spec and let `rare` run it.
//!
//! Usage: `cargo run --release -p rare-workloads --example compare -- [KEYS [THREADS [STRUCTURE...]]]`
//! Half inserts, half removes, prefilled to half. Rates are per second of CPU time, so that a busy machine disturbs
//! less. Compare structures that were run in processes of their own: a heap that another run has left in pieces, or that
//! `none` has filled, halves the rate of the next.

use std::{
    env,
    hint::black_box,
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use rare_workloads::{
    families::set::{ConcurrentSet, Parameters, SetHandle},
    reclaim::{Epoch, NoReclamation},
    structures::{
        abtree17::Abtree17, crossbeam_skiplist::CrossbeamSkiplist, harris01::Harris01, mutex_btree::MutexBtree,
        nm14::Nm14, noop::Noop, occ_abtree22::OccAbtree22, rwlock_btree::RwlockBtree,
    },
};

use rustix::time::{ClockId, clock_gettime};

const WINDOW: Duration = Duration::from_millis(400);

fn main() {
    let mut words = env::args().skip(1);
    let mut number = |default| words.next().map_or(default, |word| word.parse().expect("a number"));
    let (n_keys, n_threads) = (number(100_000), number(2));
    let chosen: Vec<String> = words.collect();
    type Run = fn(u64, u64) -> f64;
    let runs: [(&str, Run); 13] = [
        ("noop", measure::<Noop>),
        ("nm14/epoch", measure::<Nm14<Epoch>>),
        ("nm14/none", measure::<Nm14<NoReclamation>>),
        ("abtree17/epoch", measure::<Abtree17<Epoch>>),
        ("abtree17/none", measure::<Abtree17<NoReclamation>>),
        ("occ-abtree22/epoch", measure::<OccAbtree22<Epoch>>),
        ("occ-abtree22/none", measure::<OccAbtree22<NoReclamation>>),
        ("crossbeam-skiplist/epoch", measure::<CrossbeamSkiplist<Epoch>>),
        ("crossbeam-skiplist/none", measure::<CrossbeamSkiplist<NoReclamation>>),
        ("mutex-btree", measure::<MutexBtree>),
        ("rwlock-btree", measure::<RwlockBtree>),
        ("harris01/epoch", measure::<Harris01<Epoch>>),
        ("harris01/none", measure::<Harris01<NoReclamation>>),
    ];
    for (name, run) in runs {
        let is_chosen = chosen.is_empty() || chosen.iter().any(|word| name.starts_with(word.as_str()));
        if !is_chosen || (chosen.is_empty() && name.starts_with("harris01") && n_keys > 10_000) {
            continue;
        }
        let mut rates: Vec<f64> = (0..5).map(|_| run(n_keys, n_threads)).collect();
        rates.sort_by(f64::total_cmp);
        println!("{name:<26} {:8.2} M/s  ({:.2} to {:.2})", rates[2], rates[0], rates[4]);
    }
}

/// CPU time of the calling thread in seconds.
fn cpu_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns millions of operations per second, summed over the threads.
fn measure<S: ConcurrentSet>(n_keys: u64, n_threads: u64) -> f64 {
    let set = S::new(&Parameters::new());
    let (stop, barrier) = (AtomicBool::new(false), Barrier::new(n_threads as usize + 1));
    let run = |thread: u64| {
        let mut handle = set.handle();
        let mut random = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(thread + 1);
        let mut draw = move || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        let below =
            |word: u64| ((u128::from(word.wrapping_mul(0x2545_f491_4f6c_dd1d)) * u128::from(n_keys)) >> 64) as u64;
        // `noop` never takes a key.
        let mut n_prefilled = if handle.insert(0, 0) { 1 } else { n_keys };
        while n_prefilled < n_keys / 2 / n_threads {
            n_prefilled += u64::from(handle.insert(below(draw()), 0));
        }
        barrier.wait();
        let start = cpu_time();
        let mut n_operations = 0_u64;
        while !stop.load(Relaxed) {
            let key = below(draw());
            black_box(if draw() & 1 == 0 { handle.insert(key, key) } else { handle.remove(key) });
            n_operations += 1;
        }
        n_operations as f64 / (cpu_time() - start) / 1e6
    };
    thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = (0..n_threads).map(|thread| scope.spawn(move || run(thread))).collect();
        barrier.wait();
        thread::sleep(WINDOW);
        stop.store(true, Relaxed);
        threads.into_iter().map(|thread| thread.join().expect("the thread did not panic")).sum()
    })
}
