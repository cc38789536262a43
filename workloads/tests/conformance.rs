//! What every structure of the registry must be: a set of all `u64` keys, alone and under many threads.
//!
//! `RARE_TEST_SEED` and `RARE_TEST_THREADS` choose the run; failures print both. `RARE_TESTS` chooses its size.

mod common;

use std::{
    collections::{BTreeSet, HashMap},
    sync::Barrier,
    thread,
};

use common::{Random, Subject, churn, n_threads, sized};
use rare_workloads::structures::{Adt, ErasedSet};

/// Keys where an off-by-one or a spent sentinel shows.
const EXTREMES: [u64; 8] = [0, 1, 2, u64::MAX / 2, u64::MAX / 2 + 1, u64::MAX - 2, u64::MAX - 1, u64::MAX];

fn stores_keys(subject: &Subject) -> bool {
    subject.info.semantics.adt != Adt::Nothing
}

/// Compares size, key sum and broken invariants of the structure's own walk with what must be there.
fn check_audit(subject: &Subject, set: &mut dyn ErasedSet, present: impl IntoIterator<Item = u64>) {
    let audit = set.audit();
    let (mut size, mut key_sum) = (0, 0_u64);
    for key in present {
        size += 1;
        key_sum = key_sum.wrapping_add(key);
    }
    assert_eq!(audit.violations, Vec::<String>::new(), "{}", subject.name());
    assert_eq!((audit.size, audit.key_sum), (size, key_sum), "size and key sum of {}", subject.name());
}

#[test]
fn registry_is_well_formed() {
    let names: BTreeSet<_> = Subject::all().iter().map(Subject::short_name).collect();
    assert_eq!(names.len(), Subject::all().len(), "no driver twice, nor any parameter of one value");
    for subject in Subject::all() {
        let info = subject.info;
        for text in [info.name, info.title, info.source, info.progress] {
            assert!(!text.trim().is_empty(), "{}", subject.name());
        }
        for (idx, invariant) in info.invariants.iter().enumerate() {
            assert!(invariant.starts_with(&format!("I{} ", idx + 1)), "{invariant} of {}", subject.name());
        }
        assert!(!rare_workloads::structures::PLANNED.contains(&info.name), "{} is built", info.name);
    }
}

/// Keys to draw from: the extremes, few, many, and a mixture.
fn pools() -> [Vec<u64>; 4] {
    let mixed = EXTREMES.into_iter().chain((0..200).map(|idx| idx * 0x0123_4567_89ab_cdef)).collect();
    [EXTREMES.to_vec(), (0..16).collect(), (0..1000).collect(), mixed]
}

#[test]
fn follows_the_sequential_model_from_empty() {
    // The first operations on a set are special in most structures, hence many sets of which each sees few.
    let pools = pools();
    for subject in Subject::all() {
        for case in 0..sized(20, 100, 1000) {
            let mut set = subject.make();
            let mut model = BTreeSet::new();
            let mut random = Random::of(8, case);
            let pool = &pools[case as usize % pools.len()];
            follow_the_model(&subject, &*set, &mut model, &mut random, pool, 200);
            check_audit(&subject, &mut *set, model);
        }
    }
}

#[test]
fn follows_the_sequential_model() {
    let pools = pools();
    for subject in Subject::all() {
        for (pool_idx, pool) in pools.iter().enumerate() {
            let mut random = Random::of(1, pool_idx as u64);
            let mut set = subject.make();
            let mut model = BTreeSet::new();
            for _ in 0..sized(4, 20, 20) {
                follow_the_model(&subject, &*set, &mut model, &mut random, pool, 1000);
                check_audit(&subject, &mut *set, model.iter().copied());
            }
        }
    }
}

/// Applies random operations to both and compares every answer.
fn follow_the_model(
    subject: &Subject,
    set: &dyn ErasedSet,
    model: &mut BTreeSet<u64>,
    random: &mut Random,
    pool: &[u64],
    n_operations: u64,
) {
    let mut handle = set.handle();
    for _ in 0..n_operations {
        let key = pool[random.below(pool.len() as u64) as usize];
        if !stores_keys(subject) {
            assert!(!handle.insert(key, 7) && !handle.remove(key), "no update takes effect in {}", subject.name());
            continue;
        }
        let (operation, answer, due) = match random.below(3) {
            0 => ("insert", handle.insert(key, !key), model.insert(key)),
            1 => ("remove", handle.remove(key), model.remove(&key)),
            _ => ("contains", handle.contains(key), model.contains(&key)),
        };
        assert_eq!(answer, due, "{operation} of {key} in {}", subject.name());
    }
}

#[test]
fn survives_sorted_keys() {
    // An unbalanced tree becomes as deep as it has keys: audit and drop must not recurse. Quadratic, hence few keys.
    let n_keys = sized(500, 4000, 4000);
    for subject in Subject::all().iter().filter(|subject| stores_keys(subject)) {
        for descending in [false, true] {
            let mut set = subject.make();
            let mut handle = set.handle();
            for idx in 0..n_keys {
                let key = if descending { n_keys - 1 - idx } else { idx };
                assert!(handle.insert(key, key), "{}", subject.name());
            }
            drop(handle);
            check_audit(subject, &mut *set, 0..n_keys);
        }
    }
}

#[test]
fn threads_with_keys_of_their_own_are_undisturbed() {
    // Keys of unlike threads alternate, so that structural changes collide although no key is shared: each thread
    // knows the answer of each of its operations.
    const N_KEYS: u64 = 24;
    for subject in Subject::all().iter().filter(|subject| stores_keys(subject)) {
        let mut set = subject.make();
        let barrier = Barrier::new(n_threads() as usize);
        let models: Vec<BTreeSet<u64>> = thread::scope(|scope| {
            let run = |thread: u64| {
                let (set, barrier) = (&set, &barrier);
                move || {
                    let pool: Vec<u64> = (0..N_KEYS).map(|idx| idx * n_threads() + thread).collect();
                    let mut random = Random::of(2, thread);
                    let mut model = BTreeSet::new();
                    barrier.wait();
                    for _ in 0..sized(5, 50, 200) {
                        follow_the_model(subject, &**set, &mut model, &mut random, &pool, 1000);
                    }
                    model
                }
            };
            let threads: Vec<_> = (0..n_threads()).map(|thread| scope.spawn(run(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        check_audit(subject, &mut *set, models.into_iter().flatten());
    }
}

/// Lets threads compete for `keys` and returns inserts minus removes of each key.
fn compete(set: &dyn ErasedSet, test: u64, keys: &[u64], n_operations: u64) -> HashMap<u64, i64> {
    let barrier = Barrier::new(n_threads() as usize);
    let run = |thread: u64| {
        let mut handle = set.handle();
        let mut random = Random::of(test, thread);
        let mut net = HashMap::new();
        barrier.wait();
        for _ in 0..n_operations {
            let key = keys[random.below(keys.len() as u64) as usize];
            match random.below(5) {
                0 | 1 => *net.entry(key).or_insert(0) += i64::from(handle.insert(key, !key)),
                2 | 3 => *net.entry(key).or_insert(0) -= i64::from(handle.remove(key)),
                _ => _ = handle.contains(key),
            }
        }
        net
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads()).map(|thread| scope.spawn(move || run(thread))).collect();
        let mut total = HashMap::new();
        for (key, net) in threads.into_iter().flat_map(|thread| thread.join().expect("the thread did not panic")) {
            *total.entry(key).or_insert(0) += net;
        }
        total
    })
}

/// Competes, and checks that the updates of each key alternated: inserts minus removes is the key's final presence.
fn conserves(test: u64, keys: &[u64], n_operations: u64) {
    let n_operations = sized(n_operations / 20, n_operations, 4 * n_operations);
    for subject in Subject::all() {
        let mut set = subject.make();
        let net = compete(&*set, test, keys, n_operations);
        let mut handle = set.handle();
        for (&key, &net) in &net {
            assert!(net == 0 || net == 1, "key {key} was inserted {net} times more than removed in {}", subject.name());
            if stores_keys(&subject) {
                assert_eq!(handle.contains(key), net == 1, "presence of key {key} in {}", subject.name());
            }
        }
        drop(handle);
        check_audit(&subject, &mut *set, net.into_iter().filter(|&(_, net)| net == 1).map(|(key, _)| key));
    }
}

#[test]
fn conserves_keys_under_competition() {
    conserves(3, &(0..500).collect::<Vec<_>>(), 100_000);
}

#[test]
fn conserves_extreme_keys_under_competition() {
    conserves(4, &EXTREMES, 100_000);
}

#[test]
fn conserves_three_keys_under_high_contention() {
    conserves(5, &[0, 1, u64::MAX], 200_000);
}

#[test]
fn conserves_one_key_under_extreme_contention() {
    conserves(6, &[u64::MAX], 200_000);
}

#[test]
fn instances_share_nothing() {
    for subject in Subject::all().iter().filter(|subject| stores_keys(subject)) {
        let (mut one, mut other, mut untouched) = (subject.make(), subject.make(), subject.make());
        let mut held = untouched.handle();
        assert!(held.insert(5, 5));
        // Insertions too may retire something: what replaced a node, a record of the operation.
        let retired_before = untouched.unreclaimed();
        // Uses both in turn on each thread, so that any thread-local state would mix them up.
        thread::scope(|scope| {
            for thread in 0..n_threads() {
                let (one, other) = (&one, &other);
                scope.spawn(move || {
                    let mut random = Random::of(7, thread);
                    let (mut of_one, mut of_other) = (one.handle(), other.handle());
                    for _ in 0..sized(20, 200, 200) {
                        churn(&mut *of_one, &mut random, &[1, 2, 3], 20);
                        churn(&mut *of_other, &mut random, &[11, 12, 13], 20);
                    }
                });
            }
        });
        let (mut of_one, mut of_other) = (one.handle(), other.handle());
        for key in [1, 2, 3, 11, 12, 13] {
            let (is_of_one, is_of_other) = (of_one.contains(key), of_other.contains(key));
            let strayed = if key > 10 { is_of_one } else { is_of_other };
            assert!(!strayed, "key {key} strayed in {}", subject.name());
        }
        let present = |keys: [u64; 3], handle: &mut dyn rare_workloads::families::set::SetHandle| {
            keys.into_iter().filter(|&key| handle.contains(key)).collect::<Vec<_>>()
        };
        let (in_one, in_other) = (present([1, 2, 3], &mut *of_one), present([11, 12, 13], &mut *of_other));
        drop((of_one, of_other, held));
        check_audit(subject, &mut *one, in_one);
        drop(one);
        check_audit(subject, &mut *other, in_other);
        check_audit(subject, &mut *untouched, [5]);
        assert_eq!(untouched.unreclaimed(), retired_before, "{}", subject.name());
        assert!(matches!(retired_before, Some(0..=8) | None), "{}", subject.name());
    }
}
