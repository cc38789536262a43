//! Every structure of ours, under many schedules of a few operations: what threads are told and what is left must be what
//! some sequential order gives that respects real time.
//!
//! Built with the feature `schedules`, atomics and locks are shuttle's: threads are coroutines, one runs at a time, and at
//! each access to shared memory a scheduler decides which goes on. *Random* lets any go on with equal chance. *PCT*
//! (Burckhardt, Kothari, Musuvathi and Nagarakatte, A Randomized Scheduler with Probabilistic Guarantees of Finding
//! Bugs, ASPLOS 2010) gives threads priorities and changes them at few random steps, which finds orders that are
//! unlikely by chance: of a fault that takes `d` such changes to show, with a known probability.
//!
//! Only sequentially consistent executions occur: whatever ordering an access asks for, it happens at once and for all.
//! A missing Release or fence is not found here. Nor is reclamation: only `none` runs, under which no schedule can free
//! what another thread reads.
//!
//! Controls, each broken in one way, must be found by both schedulers within the schedules that a structure gets.
//!
//! `RARE_TEST_SEED` chooses the schedules. A failure prints its case and its schedule; with both in `RARE_TEST_CASE` and
//! `RARE_TEST_SCHEDULE`, only that case runs, and as it did.

mod common;
mod history;

use std::{
    collections::BTreeSet,
    env,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use common::seed;
use history::{
    Kind::{self, Contains, Insert, Remove},
    Operation,
};
use rare_workloads::{
    families::set::{Parameters, SetHandle},
    protocol::{Audit, Reclamation},
    structures::{ALL, Driver, ErasedSet, Info},
};
use shuttle::{
    Config, MaxSteps, Runner,
    scheduler::{PctScheduler, RandomScheduler, ReplayScheduler, Scheduler, UncontrolledNondeterminismCheckScheduler},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    thread,
};

/// Structures that others wrote: the crates' atomics are not ours to replace. The last has nothing to explore.
const FOREIGN: [&str; 6] = ["crossbeam-skiplist", "dashmap", "scc-hash", "scc-tree", "papaya", "noop"];

/// Schedules of one scenario by one scheduler. The controls need a few dozen.
const N_SCHEDULES: usize = 500;

/// Changes of priority in PCT, one more than the number of them: faults that take two changes to show are aimed at.
const DEPTH: usize = 3;

/// Steps of one schedule, some fifty times what the longest scenario takes: beyond it somebody waits for ever.
const MAX_STEPS: usize = 50_000;

/// One operation that a thread is to apply.
type Step = (Kind, u64);

/// What is done before, alone, and what threads then do at the same time.
struct Scenario {
    name: &'static str,
    before: &'static [Step],
    threads: &'static [&'static [Step]],
}

const fn insert(key: u64) -> Step {
    (Insert, key)
}

const fn remove(key: u64) -> Step {
    (Remove, key)
}

const fn contains(key: u64) -> Step {
    (Contains, key)
}

/// Inserts keys from 1 on, ascending.
const fn ascending<const N: usize>() -> [Step; N] {
    let mut steps = [insert(1); N];
    let mut idx = 0;
    while idx < N {
        steps[idx] = insert(idx as u64 + 1);
        idx += 1;
    }
    steps
}

/// A node of an (a,b)-tree is full with 11 keys.
const FULL: [Step; 11] = ascending();

/// Two such nodes, each at its smallest, and the root above them.
const SPARSE: [Step; 20] = {
    let mut steps = [remove(3); 20];
    let full: [Step; 12] = ascending();
    let mut idx = 0;
    while idx < 12 {
        steps[idx] = full[idx];
        idx += 1;
    }
    let removed = [3, 4, 5, 9, 10, 11, 12, 6];
    while idx < 20 {
        steps[idx] = remove(removed[idx - 12]);
        idx += 1;
    }
    steps
};

static SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "one key, absent",
        before: &[],
        threads: &[&[insert(2), remove(2)], &[insert(2), remove(2)], &[contains(2), insert(2)]],
    },
    Scenario {
        name: "one key, present",
        before: &[insert(2)],
        threads: &[&[remove(2), insert(2)], &[remove(2), contains(2)], &[remove(2)]],
    },
    Scenario {
        name: "neighbours leave",
        before: &[insert(1), insert(2), insert(3)],
        threads: &[&[remove(1), contains(2)], &[remove(2), contains(1)], &[remove(3)]],
    },
    Scenario {
        name: "one comes beside one that leaves",
        before: &[insert(1), insert(3)],
        threads: &[&[insert(2), contains(1)], &[remove(1), contains(2)], &[remove(3), insert(3)]],
    },
    Scenario {
        name: "two come beside two that leave",
        before: &[insert(5), insert(2), insert(8)],
        threads: &[&[insert(3), remove(2)], &[remove(5), insert(6)], &[remove(8), contains(3)]],
    },
    Scenario {
        name: "each looks for the other's",
        before: &[],
        threads: &[&[insert(1), contains(2)], &[insert(2), contains(1)]],
    },
    Scenario {
        name: "an inner node of a tree leaves",
        before: &[insert(4), insert(2), insert(6), insert(5), insert(7)],
        threads: &[&[remove(4), insert(4)], &[contains(5), remove(5)], &[remove(6), contains(4)]],
    },
    Scenario {
        name: "a path grows long",
        before: &[insert(1), insert(2), insert(3), insert(4)],
        threads: &[&[insert(5), insert(6)], &[remove(2), contains(5)], &[remove(4), contains(3)]],
    },
    Scenario {
        name: "full nodes split",
        before: &FULL,
        threads: &[&[insert(12), remove(12)], &[insert(13), contains(12)], &[remove(1), contains(11)]],
    },
    Scenario {
        name: "sparse nodes join",
        before: &SPARSE,
        threads: &[&[remove(1), contains(7)], &[remove(8), insert(9)], &[remove(2), contains(8)]],
    },
];

/// Makes an empty set; called within a schedule.
type Make = dyn Fn() -> Box<dyn ErasedSet> + Send + Sync;

/// A structure with parameters, or a control.
#[derive(Clone)]
struct Subject {
    name: String,
    make: Arc<Make>,
}

impl Subject {
    /// Every structure of ours under `none`, and with each parameter at its extremes.
    fn all() -> Vec<Self> {
        let ours = ALL.iter().filter(|structure| !FOREIGN.contains(&structure.info.name));
        ours.flat_map(|structure| {
            let (_, driver) = structure
                .drivers
                .iter()
                .find(|(reclamation, _)| *reclamation == Reclamation::None)
                .unwrap_or_else(|| panic!("{} runs without reclamation", structure.info.name));
            variants(&structure.info).into_iter().map(move |parameters| Self::of(&structure.info, *driver, parameters))
        })
        .collect()
    }

    fn of(info: &Info, driver: &'static dyn Driver, parameters: Parameters) -> Self {
        let shown: String = parameters.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        Self { name: format!("{}{shown}", info.name), make: Arc::new(move || driver.erased(&parameters)) }
    }

    fn control<S: ErasedSet + Default + 'static>(name: &str) -> Self {
        Self { name: format!("control {name}"), make: Arc::new(|| Box::<S>::default()) }
    }
}

/// The parameters with which a structure is explored.
fn variants(info: &Info) -> BTreeSet<Parameters> {
    /// Every execution makes a structure anew: none may be large.
    const LARGEST: u64 = 16;
    let defaults: Parameters =
        info.parameters.iter().map(|parameter| (parameter.name.to_owned(), parameter.default.min(LARGEST))).collect();
    let mut variants = BTreeSet::from([defaults.clone()]);
    for parameter in info.parameters {
        for value in [parameter.range.0, parameter.range.1.min(LARGEST)] {
            let mut variant = defaults.clone();
            variant.insert(parameter.name.to_owned(), value);
            variants.insert(variant);
        }
    }
    variants
}

/// The order of what threads do, as all of them see it. Not shuttle's: reading it is no step.
#[derive(Default)]
struct Clock(AtomicU64);

impl Clock {
    fn tick(&self) -> u64 {
        self.0.fetch_add(1, Relaxed)
    }
}

/// Applies steps and records the answers.
fn apply(handle: &mut dyn SetHandle, thread: u32, steps: &[Step], clock: &Clock) -> Vec<Operation> {
    let apply = |&(kind, key): &Step| {
        let invoked = clock.tick();
        let answer = match kind {
            Insert => handle.insert(key, !key),
            Remove => handle.remove(key),
            Contains => handle.contains(key),
        };
        Operation { thread, kind, key, answer, invoked, responded: clock.tick() }
    };
    steps.iter().map(apply).collect()
}

/// Runs a scenario once, as the scheduler decides, and judges it.
fn run(scenario: &Scenario, make: &Make) {
    let clock = Clock::default();
    let mut set = make();
    let mut history = apply(&mut *set.handle(), 0, scenario.before, &clock);
    thread::scope(|scope| {
        let run = |(idx, steps)| {
            let (set, clock) = (&set, &clock);
            scope.spawn(move || apply(&mut *set.handle(), idx, steps, clock))
        };
        let threads: Vec<_> = (1..).zip(scenario.threads.iter().copied()).map(run).collect();
        for thread in threads {
            history.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
    });
    let keys: BTreeSet<u64> = history.iter().map(|operation| operation.key).collect();
    let looks: Vec<Step> = keys.into_iter().map(contains).collect();
    history.extend(apply(&mut *set.handle(), 0, &looks, &clock));
    let shown = || history.iter().map(|operation| format!("\n  {operation}")).collect::<String>();
    assert!(is_explained(&history), "no order explains{}", shown());

    let present = &history[history.len() - looks.len()..];
    let present = present.iter().filter(|operation| operation.answer);
    let (size, key_sum) = present.fold((0, 0), |(size, key_sum), operation| (size + 1, key_sum + operation.key));
    let Audit { size: walked, key_sum: walked_sum, violations } = set.audit();
    assert!(violations.is_empty(), "the walk finds {violations:?} after{}", shown());
    assert_eq!((walked, walked_sum), (size, key_sum), "size and key sum of the walk after{}", shown());
}

/// Tells whether some order of the operations of a set that starts empty gives their answers, and respects real time.
///
/// By trying all of them: a second opinion beside the checker of `tests/linearizable.rs`, which judges each key alone and
/// never searches.
fn is_explained(history: &[Operation]) -> bool {
    fn extends(present: &mut BTreeSet<u64>, rest: &mut Vec<Operation>) -> bool {
        let Some(first_response) = rest.iter().map(|operation| operation.responded).min() else { return true };
        for idx in 0..rest.len() {
            let operation = rest[idx];
            if operation.invoked > first_response || operation.needs_present() != present.contains(&operation.key) {
                continue;
            }
            rest.remove(idx);
            change(present, &operation);
            if extends(present, rest) {
                return true;
            }
            change(present, &operation);
            rest.insert(idx, operation);
        }
        false
    }
    extends(&mut BTreeSet::new(), &mut history.to_vec())
}

/// Does what an operation did; twice undoes it.
fn change(present: &mut BTreeSet<u64>, operation: &Operation) {
    if operation.is_effective() && !present.remove(&operation.key) {
        present.insert(operation.key);
    }
}

/// Who decides.
#[derive(Clone, Copy, Debug)]
enum By {
    Chance,
    Priorities,
}

/// Runs a scenario under every schedule of a scheduler. Panics with the case's name where one fails.
fn explore(subject: &Subject, scenario: &'static Scenario, by: By) {
    let case = format!("{}: {}", subject.name, scenario.name);
    if let Ok(only) = env::var("RARE_TEST_CASE") {
        if only == case {
            let schedule = env::var("RARE_TEST_SCHEDULE").expect("RARE_TEST_CASE is set, and hence RARE_TEST_SCHEDULE");
            schedule_with(ReplayScheduler::new_from_encoded(&schedule), subject, scenario);
        }
        return;
    }
    let explored = catch_unwind(AssertUnwindSafe(|| match by {
        By::Chance => schedule_with(RandomScheduler::new_from_seed(seed(), N_SCHEDULES), subject, scenario),
        By::Priorities => schedule_with(PctScheduler::new_from_seed(seed(), DEPTH, N_SCHEDULES), subject, scenario),
    }));
    if let Err(panic) = explored {
        eprintln!("replay it with RARE_TEST_CASE='{case}' RARE_TEST_SCHEDULE=<the failing schedule above>");
        resume_unwind(panic);
    }
}

fn schedule_with(scheduler: impl Scheduler + 'static, subject: &Subject, scenario: &'static Scenario) {
    let mut config = Config::new();
    config.max_steps = MaxSteps::FailAfter(MAX_STEPS);
    config.stack_size = 1 << 18;
    // What it would warn of stands at the top of this file.
    config.silence_warnings = true;
    let make = Arc::clone(&subject.make);
    Runner::new(scheduler, config).run(move || run(scenario, &*make));
}

fn explore_all(by: By) {
    for subject in Subject::all() {
        for scenario in SCENARIOS {
            explore(&subject, scenario, by);
        }
    }
}

#[test]
fn structures_are_linearizable_in_random_schedules() {
    explore_all(By::Chance);
}

#[test]
fn structures_are_linearizable_in_schedules_by_priority() {
    explore_all(By::Priorities);
}

#[test]
fn schedules_can_be_replayed() {
    // Runs each schedule twice and panics where the second differs: then a structure depends on something else.
    for subject in Subject::all() {
        for scenario in SCENARIOS {
            let random = RandomScheduler::new_from_seed(seed(), 5);
            schedule_with(UncontrolledNondeterminismCheckScheduler::new(random), &subject, scenario);
        }
    }
}

#[test]
fn what_is_left_out_is_in_the_registry() {
    for name in FOREIGN {
        assert!(rare_workloads::structures::find(name).is_some(), "{name}");
    }
}

// Controls. Keys are positions: each holds keys below N_KEYS.

const N_KEYS: usize = 16;

/// One flag a key; how it is changed decides whether it is right.
struct Flags<C>([AtomicBool; N_KEYS], std::marker::PhantomData<C>);

/// How a flag is changed to `present`. True if this call did it.
trait Change: Send + Sync + 'static {
    fn change(flag: &AtomicBool, present: bool) -> bool;
}

impl<C> Default for Flags<C> {
    fn default() -> Self {
        Self([const { AtomicBool::new(false) }; N_KEYS], std::marker::PhantomData)
    }
}

impl<C: Change> SetHandle for &Flags<C> {
    fn insert(&mut self, key: u64, _value: u64) -> bool {
        C::change(&self.0[key as usize], true)
    }

    fn remove(&mut self, key: u64) -> bool {
        C::change(&self.0[key as usize], false)
    }

    fn contains(&mut self, key: u64) -> bool {
        self.0[key as usize].load(SeqCst)
    }
}

/// What the walk of a set without invariants finds.
fn audit(keys: impl Iterator<Item = u64> + Clone) -> Audit {
    Audit { size: keys.clone().count() as u64, key_sum: keys.sum(), violations: Vec::new() }
}

impl<C: Change> ErasedSet for Flags<C> {
    fn handle(&self) -> Box<dyn SetHandle + '_> {
        Box::new(self)
    }

    fn audit(&mut self) -> Audit {
        let present: Vec<u64> = (0..N_KEYS as u64).filter(|&key| *self.0[key as usize].get_mut()).collect();
        audit(present.into_iter())
    }

    fn unreclaimed(&self) -> Option<u64> {
        None
    }
}

/// Right: one exchange.
struct Exchange;

impl Change for Exchange {
    fn change(flag: &AtomicBool, present: bool) -> bool {
        flag.swap(present, SeqCst) != present
    }
}

/// Loads, then stores: two threads may both do it.
struct LoadThenStore;

impl Change for LoadThenStore {
    fn change(flag: &AtomicBool, present: bool) -> bool {
        if flag.load(SeqCst) == present {
            return false;
        }
        flag.store(present, SeqCst);
        true
    }
}

/// Inserts as is right, and removes twice what two threads remove.
struct RemoveTwice;

impl Change for RemoveTwice {
    fn change(flag: &AtomicBool, present: bool) -> bool {
        if present { Exchange::change(flag, true) } else { LoadThenStore::change(flag, false) }
    }
}

/// Waits for the flag to become what it is already, for ever where nobody changes it.
struct Hang;

impl Change for Hang {
    fn change(flag: &AtomicBool, present: bool) -> bool {
        while !Exchange::change(flag, present) {
            shuttle::hint::spin_loop();
        }
        true
    }
}

/// A sorted list whose remove unlinks without marking first: what comes behind the node meanwhile leaves with it.
/// The first link is the head's, then the link of key `k` at `k + 1`; a link is the position of the next, or the last's.
struct UnmarkedList([AtomicUsize; N_KEYS + 1]);

const END: usize = N_KEYS + 1;

impl Default for UnmarkedList {
    fn default() -> Self {
        Self([const { AtomicUsize::new(END) }; N_KEYS + 1])
    }
}

impl UnmarkedList {
    /// Returns the last node before the one of `node`, and what follows it.
    fn seek(&self, node: usize) -> (usize, usize) {
        let (mut before, mut next) = (0, self.0[0].load(SeqCst));
        while next < node {
            (before, next) = (next, self.0[next].load(SeqCst));
        }
        (before, next)
    }

    fn swing(&self, before: usize, old: usize, new: usize) -> bool {
        self.0[before].compare_exchange(old, new, SeqCst, SeqCst).is_ok()
    }
}

impl SetHandle for &UnmarkedList {
    fn insert(&mut self, key: u64, _value: u64) -> bool {
        let node = key as usize + 1;
        loop {
            let (before, next) = self.seek(node);
            if next == node {
                return false;
            }
            self.0[node].store(next, SeqCst);
            if self.swing(before, next, node) {
                return true;
            }
        }
    }

    fn remove(&mut self, key: u64) -> bool {
        let node = key as usize + 1;
        loop {
            let (before, next) = self.seek(node);
            if next != node {
                return false;
            }
            if self.swing(before, node, self.0[node].load(SeqCst)) {
                return true;
            }
        }
    }

    fn contains(&mut self, key: u64) -> bool {
        self.seek(key as usize + 1).1 == key as usize + 1
    }
}

impl ErasedSet for UnmarkedList {
    fn handle(&self) -> Box<dyn SetHandle + '_> {
        Box::new(self)
    }

    fn audit(&mut self) -> Audit {
        let follow = |node: usize| Some(self.0[node].load(SeqCst)).filter(|&next| next != END);
        let nodes = std::iter::successors(follow(0), |&node| follow(node));
        audit(nodes.map(|node| node as u64 - 1))
    }

    fn unreclaimed(&self) -> Option<u64> {
        None
    }
}

/// Expects that each scheduler finds a control's fault in some scenario, and says so in these words.
fn is_caught<S: ErasedSet + Default + 'static>(name: &str, words: &str) {
    let subject = Subject::control::<S>(name);
    for by in [By::Chance, By::Priorities] {
        let found = SCENARIOS.iter().find_map(|scenario| {
            let explored = catch_unwind(AssertUnwindSafe(|| explore(&subject, scenario, by)));
            explored.err().map(|panic| panic.downcast_ref::<String>().cloned().unwrap_or_default())
        });
        let message = found.unwrap_or_else(|| panic!("{name} was not found by {by:?}"));
        assert!(message.contains(words), "{name} was found by {by:?}, but for another reason: {message}");
    }
}

#[test]
fn a_check_and_act_race_is_caught() {
    is_caught::<Flags<LoadThenStore>>("load then store", "no order explains");
}

#[test]
fn a_double_remove_is_caught() {
    is_caught::<Flags<RemoveTwice>>("remove twice", "no order explains");
}

#[test]
fn a_lost_insert_is_caught() {
    is_caught::<UnmarkedList>("unmarked list", "no order explains");
}

#[test]
fn a_hang_is_caught() {
    is_caught::<Flags<Hang>>("hang", "exceeded max_steps");
}

#[test]
fn a_set_without_fault_is_not_accused() {
    let subject = Subject::control::<Flags<Exchange>>("exchange");
    for scenario in SCENARIOS {
        explore(&subject, scenario, By::Chance);
        explore(&subject, scenario, By::Priorities);
    }
}
