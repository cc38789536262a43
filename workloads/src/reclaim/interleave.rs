//! Tests of a structure under every interleaving of a few operations, on one thread and without chance.
//!
//! A guard that runs another operation, whole, right after the n-th load of the operation that holds it. Two operations
//! nested so, and three, for every n: what comes out must be what some order of them gives, one after another.
//!
//! [`Announcing`] does the same as hazard pointers see it: what no guard has announced is gone as soon as it is retired.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
};

use super::{AnyGuard, Guard, hazard::N_SLOTS};
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

/// Objects that were retired; freed when no operation is left. Before that they can only be gone.
#[derive(Default)]
pub(crate) struct Graveyard {
    retired: RefCell<Vec<Retired>>,
    /// The slots of each guard that lives, in the order in which they began.
    announced: RefCell<Vec<[usize; N_SLOTS]>>,
}

/// An object and how to free it.
struct Retired {
    object: *mut (),
    size: usize,
    /// Whether nothing protected it at some moment since.
    is_gone: bool,
    free: unsafe fn(*mut ()),
}

impl Graveyard {
    fn bury<T>(&self, object: *mut T) {
        let object = object.cast::<()>();
        let mut retired = self.retired.borrow_mut();
        assert!(retired.iter().all(|retired| retired.object != object), "an object was retired twice");
        // SAFETY of the function: to be called once, on an object of this type that came from `nodes::allocate`.
        unsafe fn free_as<T>(object: *mut ()) {
            // SAFETY: see above.
            unsafe { nodes::free(object.cast::<T>()) };
        }
        retired.push(Retired { object, size: size_of::<T>(), is_gone: false, free: free_as::<T> });
    }

    /// Lets go what no guard has announced.
    fn scan(&self) {
        let announced = self.announced.borrow();
        for retired in self.retired.borrow_mut().iter_mut() {
            retired.is_gone |= !announced.iter().flatten().any(|&address| address == retired.object.addr());
        }
    }

    /// Panics if `source` lies in an object that is gone.
    fn check<T>(&self, source: &AtomicPtr<T>) {
        let offset = |retired: &Retired| std::ptr::from_ref(source).addr().wrapping_sub(retired.object.addr());
        let is_gone = self.retired.borrow().iter().any(|retired| retired.is_gone && offset(retired) < retired.size);
        assert!(!is_gone, "a link of a freed object was read");
    }
}

impl Drop for Graveyard {
    fn drop(&mut self) {
        for Retired { object, free, .. } in self.retired.take() {
            // SAFETY: `free` is that of the object's type, the object was retired once, and no guard is left.
            unsafe { free(object) };
        }
    }
}

/// A guard that lets another operation in after a number of loads. It protects whole operations, or else, if it is
/// [`Announcing`], only what it has announced.
pub(crate) struct Scripted<'t, const ANNOUNCES: bool = false> {
    loads_left: Cell<usize>,
    interloper: RefCell<Option<Box<dyn FnOnce() + 't>>>,
    graveyard: &'t Graveyard,
    guard_idx: usize,
}

/// See [`Scripted`].
pub(crate) type Announcing<'t> = Scripted<'t, true>;

impl<'t, const ANNOUNCES: bool> Scripted<'t, ANNOUNCES> {
    /// Makes a guard that lets nobody in.
    pub(crate) fn alone(graveyard: &'t Graveyard) -> Self {
        Self::with(graveyard, 0, || {})
    }

    /// Makes a guard that runs `interloper` after that many loads.
    pub(crate) fn with(graveyard: &'t Graveyard, n_loads: usize, interloper: impl FnOnce() + 't) -> Self {
        let mut announced = graveyard.announced.borrow_mut();
        announced.push([0; N_SLOTS]);
        Self {
            loads_left: Cell::new(n_loads),
            interloper: RefCell::new(Some(Box::new(interloper))),
            graveyard,
            guard_idx: announced.len() - 1,
        }
    }

    /// Tells whether the other operation was let in.
    pub(crate) fn is_spent(&self) -> bool {
        self.interloper.borrow().is_none()
    }

    fn step<T>(&self, source: &AtomicPtr<T>) -> *mut T {
        self.graveyard.check(source);
        let loaded = source.load(Ordering::Acquire);
        self.loads_left.set(self.loads_left.get().wrapping_sub(1));
        if self.loads_left.get() == 0 {
            let interloper = self.interloper.take();
            interloper.expect("it is let in once, since the count of loads passes zero once")();
        }
        loaded
    }

    fn announce<T>(&self, word: *mut T, slot: usize) {
        self.graveyard.announced.borrow_mut()[self.guard_idx][slot] = word.addr() & !0b111;
    }
}

impl<const ANNOUNCES: bool> Drop for Scripted<'_, ANNOUNCES> {
    fn drop(&mut self) {
        self.graveyard.announced.borrow_mut().pop();
        assert_eq!(self.graveyard.announced.borrow().len(), self.guard_idx, "guards end in the opposite order");
        if ANNOUNCES {
            self.graveyard.scan();
        }
    }
}

impl Guard for Scripted<'_> {
    fn load<T>(&self, source: &AtomicPtr<T>) -> *mut T {
        self.step(source)
    }

    unsafe fn retire<T: Send>(&self, object: *mut T) {
        self.graveyard.bury(object);
    }
}

impl AnyGuard for Announcing<'_> {
    const PROTECTS_ALL: bool = false;

    fn protect<T>(&self, source: &AtomicPtr<T>, slot: usize) -> *mut T {
        let mut word = self.step(source);
        loop {
            self.announce(word, slot);
            self.graveyard.check(source);
            let again = source.load(Ordering::SeqCst);
            if again == word {
                return word;
            }
            word = again;
        }
    }

    fn keep<T>(&self, object: *mut T, slot: usize) {
        self.announce(object, slot);
    }

    fn look<T>(&self, source: &AtomicPtr<T>) -> *mut T {
        self.step(source)
    }

    unsafe fn retire<T: Send>(&self, object: *mut T) {
        self.graveyard.bury(object);
        self.graveyard.scan();
    }
}

/// How to apply an operation to a structure under a guard.
pub(crate) type Apply<S, const ANNOUNCES: bool = false> = fn(&S, Operation, &Scripted<'_, ANNOUNCES>) -> bool;

/// Tries every two operations on three keys, and every three on two keys, from every initial set.
pub(crate) fn explore<S: ConcurrentSet>(apply: Apply<S>) {
    explore_with(apply);
}

/// Does the same with guards that protect only what they announce.
pub(crate) fn explore_announcing<S: ConcurrentSet>(apply: Apply<S, true>) {
    explore_with(apply);
}

fn explore_with<S: ConcurrentSet, const ANNOUNCES: bool>(apply: Apply<S, ANNOUNCES>) {
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
fn nest<S: ConcurrentSet, const ANNOUNCES: bool>(
    apply: Apply<S, ANNOUNCES>,
    initial: &BTreeSet<u64>,
    operations: &[Operation],
) -> usize {
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
fn run<S: ConcurrentSet, const ANNOUNCES: bool>(
    apply: Apply<S, ANNOUNCES>,
    initial: &BTreeSet<u64>,
    operations: &[Operation],
    loads: &[usize],
) -> usize {
    let graveyard = Graveyard::default();
    let mut set = S::new(&Parameters::new());
    let alone = || Scripted::alone(&graveyard);
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
fn begin<S, const ANNOUNCES: bool>(
    apply: Apply<S, ANNOUNCES>,
    set: &S,
    operations: &[Operation],
    loads: &[usize],
    graveyard: &Graveyard,
    answers: &RefCell<Vec<(Operation, bool)>>,
) {
    let Some((&operation, rest)) = operations.split_first() else { return };
    let (loads_left, rest_loads) = loads.split_first().map_or((0, loads), |(&first, rest)| (first, rest));
    let guard = Scripted::with(graveyard, loads_left, || begin(apply, set, rest, rest_loads, graveyard, answers));
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
