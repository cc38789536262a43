//! Tests of a structure under every interleaving of a few operations, on one thread and without chance.
//!
//! A guard that runs another operation, whole, right after the n-th load of the operation that holds it. Two operations
//! nested so, and three, for every n: what comes out must be what some order of them gives, one after another.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
};

use super::Guard;
use crate::{
    families::set::{ConcurrentSet, Parameters},
    nodes,
    sync::atomic::{AtomicPtr, Ordering},
};

/// One operation on a set.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Insert(u64),
    Remove(u64),
    Contains(u64),
}

use Operation::{Contains, Insert, Remove};

/// Objects that were retired; freed when no operation is left.
#[derive(Default)]
struct Graveyard(RefCell<Vec<Retired>>);

/// An object and how to free it.
struct Retired {
    object: *mut (),
    free: unsafe fn(*mut ()),
}

impl Drop for Graveyard {
    fn drop(&mut self) {
        for Retired { object, free } in self.0.take() {
            // SAFETY: `free` is that of the object's type, the object was retired once, and no guard is left.
            unsafe { free(object) };
        }
    }
}

/// A guard that lets another operation in after a number of loads.
pub(crate) struct Scripted<'t> {
    loads_left: Cell<usize>,
    interloper: RefCell<Option<Box<dyn FnOnce() + 't>>>,
    graveyard: &'t Graveyard,
}

impl Guard for Scripted<'_> {
    fn load<T>(&self, source: &AtomicPtr<T>) -> *mut T {
        let loaded = source.load(Ordering::Acquire);
        self.loads_left.set(self.loads_left.get().wrapping_sub(1));
        if self.loads_left.get() == 0 {
            let interloper = self.interloper.take();
            interloper.expect("it is let in once, since the count of loads passes zero once")();
        }
        loaded
    }

    unsafe fn retire<T: Send>(&self, object: *mut T) {
        let object = object.cast::<()>();
        let mut graveyard = self.graveyard.0.borrow_mut();
        assert!(graveyard.iter().all(|retired| retired.object != object), "an object was retired twice");
        // SAFETY of the function: to be called once, on an object of this type that came from `nodes::allocate`.
        unsafe fn free_as<T>(object: *mut ()) {
            // SAFETY: see above.
            unsafe { nodes::free(object.cast::<T>()) };
        }
        graveyard.push(Retired { object, free: free_as::<T> });
    }
}

/// How to apply an operation to a structure under a guard.
pub(crate) type Apply<S> = fn(&S, Operation, &Scripted<'_>) -> bool;

/// Tries every two operations on three keys, and every three on two keys, from every initial set.
pub(crate) fn explore<S: ConcurrentSet>(apply: Apply<S>) {
    let two_keys = operations(&[10, 20]);
    let three_keys = operations(&[10, 20, 30]);
    let mut n_runs = 0;
    for initial in subsets(&[10, 20, 30]) {
        for &outer in &three_keys {
            for &inner in &three_keys {
                n_runs += nest(apply, &initial, &[outer, inner]);
            }
        }
        for &outer in &two_keys {
            for &inner in &two_keys {
                for &innermost in &two_keys {
                    n_runs += nest(apply, &initial, &[outer, inner, innermost]);
                }
            }
        }
    }
    assert!(n_runs > 10_000, "operations load links, so that others can be let in; only {n_runs} runs were");
}

fn operations(keys: &[u64]) -> Vec<Operation> {
    keys.iter().flat_map(|&key| [Insert(key), Remove(key), Contains(key)]).collect()
}

fn subsets(keys: &[u64]) -> Vec<BTreeSet<u64>> {
    let of = |bits: usize| keys.iter().enumerate().filter(move |(idx, _)| bits >> idx & 1 == 1).map(|(_, &key)| key);
    (0..1 << keys.len()).map(|bits| of(bits).collect()).collect()
}

/// Nests the operations in every way. Returns how many.
fn nest<S: ConcurrentSet>(apply: Apply<S>, initial: &BTreeSet<u64>, operations: &[Operation]) -> usize {
    let mut n_runs = 0;
    for outer_load in 1.. {
        for inner_load in 1.. {
            let loads = [outer_load, inner_load];
            let n_begun = run(apply, initial, operations, &loads[..operations.len() - 1]);
            n_runs += 1;
            // The outer operation ended before its n-th load: larger numbers bring nothing new.
            if n_begun == 1 {
                return n_runs;
            }
            if n_begun < operations.len() || operations.len() == 2 {
                break;
            }
        }
    }
    n_runs
}

/// Runs one nesting and judges it. Returns how many operations began.
fn run<S: ConcurrentSet>(apply: Apply<S>, initial: &BTreeSet<u64>, operations: &[Operation], loads: &[usize]) -> usize {
    let graveyard = Graveyard::default();
    let mut set = S::new(&Parameters::new());
    let alone = || Scripted { loads_left: Cell::new(0), interloper: RefCell::new(None), graveyard: &graveyard };
    for &key in initial {
        apply(&set, Insert(key), &alone());
    }
    let answers = RefCell::new(Vec::new());
    begin(apply, &set, operations, loads, &graveyard, &answers);
    let answers = answers.into_inner();
    let present: BTreeSet<u64> = [10, 20, 30].into_iter().filter(|&key| apply(&set, Contains(key), &alone())).collect();

    let case = format!("{operations:?} let in after {loads:?} loads, from {initial:?}: {answers:?}, {present:?}");
    assert!(is_explained(initial, &answers, &present), "no order explains {case}");
    let audit = set.audit();
    assert_eq!(audit.violations, Vec::<String>::new(), "{case}");
    assert_eq!((audit.size, audit.key_sum), (present.len() as u64, present.iter().sum()), "{case}");
    answers.len()
}

/// Begins the first operation; the others are let in within.
fn begin<S>(
    apply: Apply<S>,
    set: &S,
    operations: &[Operation],
    loads: &[usize],
    graveyard: &Graveyard,
    answers: &RefCell<Vec<(Operation, bool)>>,
) {
    let Some((&operation, rest)) = operations.split_first() else { return };
    let (loads_left, rest_loads) = loads.split_first().map_or((0, loads), |(&first, rest)| (first, rest));
    let guard = Scripted {
        loads_left: Cell::new(loads_left),
        interloper: RefCell::new(Some(Box::new(|| begin(apply, set, rest, rest_loads, graveyard, answers)))),
        graveyard,
    };
    let answer = apply(set, operation, &guard);
    answers.borrow_mut().push((operation, answer));
}

/// Tells whether the operations, in some order, give these answers and end with these keys.
fn is_explained(before: &BTreeSet<u64>, answers: &[(Operation, bool)], after: &BTreeSet<u64>) -> bool {
    if answers.is_empty() {
        return before == after;
    }
    (0..answers.len()).any(|first_idx| {
        let mut keys = before.clone();
        let mut rest = answers.to_vec();
        let (operation, answer) = rest.remove(first_idx);
        let due = match operation {
            Insert(key) => keys.insert(key),
            Remove(key) => keys.remove(&key),
            Contains(key) => keys.contains(&key),
        };
        due == answer && is_explained(&keys, &rest, after)
    })
}
