//! Padded and pooled nodes: every structure whose nodes can be, under each scheme, keeps its keys and gives back all its
//! memory; the padding is there, and the pool spares the allocator.
//!
//! How nodes are managed is a setting of the process, so the program runs itself once for each.

mod common;

use std::{
    env,
    process::{Command, ExitCode},
    sync::Barrier,
    thread,
};

use common::{Random, Subject, churn, n_threads};
use rare_workloads::{
    alloc::{Counts, Dispatch},
    nodes::{self, Nodes, Pool},
    protocol::{Balance, Reclamation},
    structures::Memory,
};

#[global_allocator]
static ALLOCATOR: Dispatch = Dispatch;

const SETTINGS: [(&str, Nodes); 5] = [
    ("plain", Nodes::PLAIN),
    ("64", Nodes { padding_bytes: 64, pool: Pool::None }),
    ("128", Nodes { padding_bytes: 128, pool: Pool::None }),
    ("pooled", Nodes { padding_bytes: 0, pool: Pool::PerThread }),
    ("64-pooled", Nodes { padding_bytes: 64, pool: Pool::PerThread }),
];

fn main() -> ExitCode {
    if let Some(name) = env::args().skip_while(|word| word != "under").nth(1) {
        let nodes = SETTINGS.iter().find(|(known, _)| *known == name).expect("this program named it").1;
        under(nodes);
        return ExitCode::SUCCESS;
    }
    let mut n_failed = 0;
    for (name, _) in SETTINGS {
        let status =
            Command::new(env::current_exe().expect("the test binary is running")).args(["under", name]).status();
        let is_ok = status.expect("this program can be run again").success();
        println!("nodes {name} ... {}", if is_ok { "ok" } else { "FAILED" });
        n_failed += u32::from(!is_ok);
    }
    if n_failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn under(nodes: Nodes) {
    // SAFETY: no structure was made yet.
    unsafe { nodes::configure(nodes) }.expect("the setting is known");
    Dispatch::start_counting().expect("the dispatching allocator is in charge");
    for subject in Subject::all().into_iter().filter(|subject| subject.info.memory == Memory::Nodes) {
        keeps_its_keys(&subject);
        for n_keys in [4, 1000] {
            // The first run lets crates make what they keep for the process.
            leak_of(&subject, n_keys);
            let leak = leak_of(&subject, n_keys);
            let is_none = subject.reclamation == Reclamation::None;
            assert!(is_none || leak == Balance::default(), "{leak:?} is left of {}", subject.name());
        }
        has_its_setting(&subject, nodes);
    }
}

/// Lets threads compete, and compares what each did with the walk.
fn keeps_its_keys(subject: &Subject) {
    let keys: Vec<u64> = (0..50).collect();
    let mut set = subject.make();
    let barrier = Barrier::new(n_threads() as usize);
    thread::scope(|scope| {
        for thread in 0..n_threads() {
            let (set, keys, barrier) = (&*set, &*keys, &barrier);
            scope.spawn(move || {
                barrier.wait();
                churn(&mut *set.handle(), &mut Random::of(7, thread), keys, 20_000);
            });
        }
    });
    let mut handle = set.handle();
    let present: Vec<u64> = keys.into_iter().filter(|&key| handle.contains(key)).collect();
    drop(handle);
    let audit = set.audit();
    assert_eq!(audit.violations, Vec::<String>::new(), "{}", subject.name());
    assert_eq!((audit.size, audit.key_sum), (present.len() as u64, present.iter().sum()), "{}", subject.name());
}

/// Returns what is left after a thread has used a set and dropped it; the pool goes with the thread.
fn leak_of(subject: &Subject, n_keys: u64) -> Balance {
    let keys: Vec<u64> = (0..n_keys).collect();
    let use_and_drop = || {
        let (counts, ()) = Counts::during(|| {
            let set = subject.make();
            churn(&mut *set.handle(), &mut Random::of(8, 0), &keys, 10_000);
            drop(set);
            nodes::flush_this_thread();
        });
        counts.balance()
    };
    thread::scope(|scope| scope.spawn(use_and_drop).join().expect("the thread did not panic"))
}

/// Checks that blocks have the size that the padding demands, and that a pool serves updates.
fn has_its_setting(subject: &Subject, nodes: Nodes) {
    // What earlier sets left to the pool would serve this one.
    nodes::flush_this_thread();
    let set = subject.make();
    let mut handle = set.handle();
    let fill = |handle: &mut dyn rare_workloads::families::set::SetHandle| {
        (0..1000).for_each(|key| assert!(handle.insert(key, key), "{}", subject.name()));
    };
    let (filled, ()) = Counts::during(|| fill(&mut *handle));
    let bytes_per_block = filled.allocated_bytes / filled.allocations;
    let padding = u64::from(nodes.padding_bytes);
    assert!(bytes_per_block >= padding, "{bytes_per_block} bytes a block in {}", subject.name());
    if subject.reclamation == Reclamation::Eager {
        // The crate allocates a bag for each retirement, which hides what nodes do.
        return;
    }
    // An update allocates; without a pool always, with one only until as much was freed as is kept back by the scheme.
    let (churned, ()) =
        Counts::during(|| churn(&mut *handle, &mut Random::of(9, 0), &(0..1000).collect::<Vec<_>>(), 100_000));
    if nodes.pool == Pool::PerThread && subject.reclamation != Reclamation::None {
        assert!(churned.allocations < 10_000, "{} allocations in {}", churned.allocations, subject.name());
    } else if !["occ-abtree22"].contains(&subject.info.name) {
        assert!(churned.allocations > 15_000, "{} allocations in {}", churned.allocations, subject.name());
    }
}
