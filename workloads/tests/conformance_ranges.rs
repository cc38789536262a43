//! What every range query of the registry must be: exact alone, and one moment of the set among updates.
//!
//! `RARE_TEST_SEED` and `RARE_TEST_THREADS` choose the run; failures print both.

mod common;

use std::{
    collections::BTreeSet,
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

use common::{Random, Subject, n_threads};
use rare_workloads::{
    families::set::{RangeAnswer, RangeHandle, SetHandle, last_of_range},
    structures::ErasedSet,
};

/// Where an end beyond the largest key, or an interval of nothing, shows.
const EXTREMES: [u64; 8] = [0, 1, 2, 7, u64::MAX / 2, u64::MAX - 2, u64::MAX - 1, u64::MAX];

/// Every driver whose structure has a range query.
fn subjects() -> Vec<Subject> {
    Subject::all().into_iter().filter(Subject::has_range_query).collect()
}

fn ranges(set: &dyn ErasedSet) -> Box<dyn RangeHandle + '_> {
    set.range_handle().expect("the driver says that there is a range query")
}

fn expected(model: &BTreeSet<u64>, lo: u64, n: u64) -> RangeAnswer {
    // The end in more bits than a key has, unlike in the structures.
    let end = u128::from(lo) + u128::from(n);
    model.iter().copied().filter(|&key| key >= lo && u128::from(key) < end).collect()
}

#[test]
fn drivers_and_instances_agree_on_who_has_one() {
    let mut names = BTreeSet::new();
    for subject in Subject::all() {
        assert_eq!(subject.make().range_handle().is_some(), subject.has_range_query(), "{}", subject.name());
        names.extend(subject.has_range_query().then_some(subject.info.name));
    }
    for structure in rare_workloads::structures::ALL {
        assert_eq!(structure.has_range_query(), names.contains(structure.info.name), "some schemes of it have one");
    }
    assert!(names.contains("mutex-btree") && names.contains("rwlock-btree"), "{names:?}");
}

#[test]
fn the_last_key_of_an_interval_saturates() {
    assert_eq!(last_of_range(5, 0), None);
    assert_eq!(last_of_range(5, 1), Some(5));
    assert_eq!(last_of_range(0, u64::MAX), Some(u64::MAX - 1));
    assert_eq!(last_of_range(u64::MAX, 1), Some(u64::MAX));
    assert_eq!(last_of_range(u64::MAX - 1, 3), Some(u64::MAX));
    assert_eq!(last_of_range(u64::MAX, u64::MAX), Some(u64::MAX));
}

#[test]
fn follows_the_sequential_model() {
    let mixed: Vec<u64> = EXTREMES.into_iter().chain((0..200).map(|idx| idx * 0x0123_4567_89ab_cdef)).collect();
    let pools: [Vec<u64>; 4] = [EXTREMES.to_vec(), (0..16).collect(), (0..1000).collect(), mixed];
    for subject in subjects() {
        for (pool_idx, pool) in pools.iter().enumerate() {
            let mut random = Random::of(21, pool_idx as u64);
            let set = subject.make();
            let mut handle = ranges(&*set);
            let mut model = BTreeSet::new();
            for _ in 0..10_000 {
                let key = pool[random.below(pool.len() as u64) as usize];
                match random.below(5) {
                    0 | 1 => assert_eq!(handle.insert(key, !key), model.insert(key), "{}", subject.name()),
                    2 => assert_eq!(handle.remove(key), model.remove(&key), "{}", subject.name()),
                    _ => {
                        let n = match random.below(3) {
                            0 => EXTREMES[random.below(EXTREMES.len() as u64) as usize],
                            1 => random.below(100),
                            _ => random.next() >> random.below(64),
                        };
                        let due = expected(&model, key, n);
                        assert_eq!(handle.range(key, n), due, "{n} keys from {key} in {}", subject.name());
                    }
                }
            }
        }
    }
}

#[test]
fn extremes_are_exact() {
    for subject in subjects() {
        let set = subject.make();
        let mut handle = ranges(&*set);
        assert_eq!(handle.range(0, u64::MAX), RangeAnswer::default(), "{}", subject.name());
        let model = BTreeSet::from(EXTREMES);
        for key in EXTREMES {
            assert!(handle.insert(key, key));
        }
        for (lo, n) in EXTREMES.into_iter().flat_map(|lo| EXTREMES.map(|n| (lo, n))) {
            assert_eq!(handle.range(lo, n), expected(&model, lo, n), "{n} keys from {lo} in {}", subject.name());
        }
    }
}

/// Keys of the interval in which tokens move, wide enough for many leaves of any tree.
const N_KEYS: u64 = 600;

/// Moves one token: its new key is inserted before the old one is removed, so the set never holds fewer than one key of a
/// token, nor more than two.
fn move_token(handle: &mut dyn SetHandle, from: u64, to: u64) {
    assert!(handle.insert(to, to));
    assert!(handle.remove(from));
}

/// Lets writers move a token each while this thread asks, and returns the first answer that no moment of the set has.
///
/// Each writer owns the keys of one remainder, so no two meet, and every key range of the tree has several writers.
fn watch_tokens(
    subject: &Subject,
    n_queries: u64,
    query: impl Fn(&mut dyn RangeHandle) -> RangeAnswer,
) -> Option<RangeAnswer> {
    let n_writers = n_threads().max(2) - 1;
    let set = subject.make();
    let mut handle = ranges(&*set);
    // Keys that stay, so that the interval spans many leaves; the tokens lie between them.
    let still: Vec<u64> = (0..N_KEYS).map(|idx| idx * (n_writers + 1)).collect();
    for &key in &still {
        assert!(handle.insert(key, key));
    }
    let token = |writer: u64, place: u64| place * (n_writers + 1) + 1 + writer;
    (0..n_writers).for_each(|writer| assert!(handle.insert(token(writer, 0), 0)));
    let (stop, start) = (AtomicBool::new(false), Barrier::new(n_writers as usize + 1));
    let (n_still, still_sum) = (N_KEYS, still.iter().sum::<u64>());
    thread::scope(|scope| {
        for writer in 0..n_writers {
            let (set, stop, start) = (&set, &stop, &start);
            scope.spawn(move || {
                let mut handle = set.handle();
                let mut random = Random::of(22, writer);
                let mut place = 0;
                start.wait();
                while !stop.load(Relaxed) {
                    // From end to end, so that a slow query meets the token twice, or never.
                    let next = if place < N_KEYS / 2 { N_KEYS - 1 - random.below(9) } else { random.below(9) };
                    move_token(&mut *handle, token(writer, place), token(writer, next));
                    place = next;
                }
            });
        }
        start.wait();
        let mut wrong = None;
        for _ in 0..n_queries {
            let answer = query(&mut *handle);
            let tokens = answer.count.wrapping_sub(n_still);
            let sum_fits = answer.key_sum.wrapping_sub(still_sum) < 2 * n_writers * N_KEYS * (n_writers + 1);
            if !(n_writers..=2 * n_writers).contains(&tokens) || !sum_fits {
                wrong = Some(answer);
                break;
            }
        }
        stop.store(true, Relaxed);
        wrong
    })
}

fn width() -> u64 {
    N_KEYS * (n_threads().max(2))
}

#[test]
fn a_range_query_sees_one_moment() {
    for subject in subjects() {
        let wrong = watch_tokens(&subject, 20_000, |handle| handle.range(0, width()));
        assert_eq!(wrong, None, "of {N_KEYS} keys that stay, and the tokens, in {}", subject.name());
    }
}

#[test]
fn a_query_of_two_moments_is_caught() {
    for subject in subjects() {
        let wrong = watch_tokens(&subject, 2_000_000, |handle| {
            let middle = width() / 2;
            let (low, high) = (handle.range(0, middle), handle.range(middle, width() - middle));
            RangeAnswer { count: low.count + high.count, key_sum: low.key_sum.wrapping_add(high.key_sum) }
        });
        assert!(wrong.is_some(), "two halves of {} were never seen apart", subject.name());
    }
}
