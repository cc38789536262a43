//! Trials in this process: what the harness measures, counts, and refuses. The process allocates through the dispatching
//! allocator, as the worker does.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

use std::{
    collections::{BTreeMap, BTreeSet},
    hint::black_box,
    mem,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use rare_workloads::{
    alloc::Dispatch,
    families::set::{ConcurrentSet, Parameters, RangeAnswer, RangeHandle, SetHandle},
    harness::{Measurements, RangeSetDriver, SetDriver, pin::AllowedCpus},
    nodes::Nodes,
    protocol::{
        Audit, Balance, Distribution, Fault as Planted, GeneratorKind, Harness, Length, Mix, Padding, Reclamation,
        Request, TimeCheck,
    },
    structures::Driver,
};

#[global_allocator]
static ALLOCATOR: Dispatch = Dispatch;

/// Trials pin and time: one after the other.
static ONE_TRIAL: Mutex<()> = Mutex::new(());

fn request(n_threads: usize) -> Request {
    Request {
        format: 1,
        structure: "test".to_owned(),
        structure_parameters: BTreeMap::new(),
        reclamation: Reclamation::Epoch,
        allocator: rare_workloads::protocol::AllocatorRequest { name: "system".to_owned(), preload: None },
        cpus: vec![None; n_threads],
        key_range: 1_000,
        mix: Mix { insert: 2_500, remove: 2_500, contains: 5_000, range: 0 },
        range_keys: None,
        distribution: Distribution::Uniform,
        prefill_keys: 500,
        length: Length::Nanos(20_000_000),
        seed: 7,
        nice: 0,
        nodes: Nodes::PLAIN,
        harness: rare_workloads::protocol::Harness::default(),
        watch: None,
    }
}

fn run<S: ConcurrentSet>(request: &Request) -> Result<Measurements, String> {
    let _alone = ONE_TRIAL.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    SetDriver::<S>::NEW.trial(request)
}

/// What a faulty set does wrong.
trait Fault: Send + Sync + 'static {
    const IN_NEW: bool = false;
    const IN_HANDLE: bool = false;
    const AT_OPERATION: u64 = u64::MAX;
    const IN_AUDIT: bool = false;
    /// Bytes that each effective removal leaks.
    const LEAKED_BYTES: usize = 0;
    /// Counts the sets dropped.
    const DROPS: Option<&'static AtomicU64> = None;
}

/// A mutex over a tree, sound but for the fault in `F`.
struct Set<F: Fault> {
    keys: Mutex<BTreeSet<u64>>,
    n_operations: AtomicU64,
    fault: std::marker::PhantomData<F>,
}

impl<F: Fault> Drop for Set<F> {
    fn drop(&mut self) {
        F::DROPS.inspect(|drops| _ = drops.fetch_add(1, Relaxed));
    }
}

struct Handle<'s, F: Fault>(&'s Set<F>);

impl<F: Fault> ConcurrentSet for Set<F> {
    type Handle<'s> = Handle<'s, F>;

    fn new(_parameters: &Parameters) -> Self {
        assert!(!F::IN_NEW, "planted in new");
        Self { keys: Mutex::default(), n_operations: AtomicU64::new(0), fault: std::marker::PhantomData }
    }

    fn handle(&self) -> Handle<'_, F> {
        assert!(!F::IN_HANDLE, "planted in handle");
        Handle(self)
    }

    fn audit(&mut self) -> Audit {
        assert!(!F::IN_AUDIT, "planted in audit");
        let keys = self.keys.get_mut().unwrap();
        // Text as a broken invariant would leave, which must not be taken for the structure's memory.
        let violations = vec!["I0 none, but this text is allocated".to_owned(); 3];
        Audit { size: keys.len() as u64, key_sum: keys.iter().fold(0, |sum, key| key.wrapping_add(sum)), violations }
    }

    fn unreclaimed(&self) -> Option<u64> {
        Some(3)
    }
}

impl<F: Fault> Handle<'_, F> {
    fn count(&self) {
        let n_operations = self.0.n_operations.fetch_add(1, Relaxed) + 1;
        assert!(n_operations != F::AT_OPERATION, "planted at operation {n_operations}");
    }
}

impl<F: Fault> SetHandle for Handle<'_, F> {
    fn insert(&mut self, key: u64, _value: u64) -> bool {
        self.count();
        self.0.keys.lock().unwrap().insert(key)
    }

    fn remove(&mut self, key: u64) -> bool {
        self.count();
        let removed = self.0.keys.lock().unwrap().remove(&key);
        if removed && F::LEAKED_BYTES > 0 {
            mem::forget(black_box(vec![0_u8; F::LEAKED_BYTES]));
        }
        removed
    }

    fn contains(&mut self, key: u64) -> bool {
        self.count();
        self.0.keys.lock().unwrap().contains(&key)
    }
}

struct Sound;
impl Fault for Sound {}

/// The law that every trial must obey: the walks agree with the prefill and with what the threads say they did.
fn conserves(measured: &Measurements) {
    let filled: u64 = measured.prefill.per_thread.iter().sum();
    assert_eq!((filled, measured.prefill.key_sum), (measured.audit_before.size, measured.audit_before.key_sum));
    let mut size = measured.audit_before.size;
    let mut key_sum = measured.audit_before.key_sum;
    for thread in &measured.threads {
        // One thread may remove what another inserted.
        size = size.wrapping_add(thread.operations.insert.effective).wrapping_sub(thread.operations.remove.effective);
        key_sum = key_sum.wrapping_add(thread.inserted_sum).wrapping_sub(thread.removed_sum);
    }
    assert_eq!((size, key_sum), (measured.audit_after.size, measured.audit_after.key_sum));
}

#[test]
fn a_timed_trial_measures_what_happened() {
    let length_ns = 250_000_000;
    let measured = run::<Set<Sound>>(&Request { length: Length::Nanos(length_ns), ..request(2) }).unwrap();
    conserves(&measured);
    assert_eq!(measured.prefill.target, 500);
    assert_eq!(measured.prefill.per_thread, [250, 250]);
    assert!(measured.accounting.is_none() && measured.drop_ns == 0);
    let allowed = AllowedCpus::of_this_thread().unwrap().numbers();
    for thread in &measured.threads {
        assert_eq!((thread.cpu_asked, &thread.cpus_allowed), (None, &allowed));
        assert!(allowed.contains(&thread.cpu_at_start) && allowed.contains(&thread.cpu_at_end));
        assert!(thread.start_ns < thread.stop_ns && thread.stop_ns >= length_ns, "{thread:?}");
        let wall_ns = thread.stop_ns - thread.start_ns;
        assert!(thread.user_ns + thread.system_ns <= wall_ns + wall_ns / 10, "{thread:?}");
        assert!(thread.operations.attempted() > 1_000, "{thread:?}");
        assert!(thread.operations.contains.effective < thread.operations.contains.attempted);
        assert!(thread.migrations.as_ref().is_ok_and(|&n_migrations| n_migrations < 10_000), "{thread:?}");
    }
    // The opening, 100 ms, 200 ms, the end.
    assert_eq!(measured.samples.len(), 4);
    assert_eq!((measured.samples[0].at_ns, measured.samples[0].operations), (0, 0));
    for pair in measured.samples.windows(2) {
        assert!(pair[0].at_ns < pair[1].at_ns && pair[0].operations < pair[1].operations, "{pair:?}");
    }
    let total: u64 = measured.threads.iter().map(|thread| thread.operations.attempted()).sum();
    assert!(measured.samples[3].operations <= total);
    assert_eq!(measured.memory.unreclaimed_objects, Some(3));
    assert!(measured.memory.peak_bytes >= measured.memory.end_bytes);
    assert!(measured.memory.harness_bytes > 100_000);
}

/// The sound set with a range query.
struct Ranged(Set<Sound>);

struct RangedHandle<'s>(Handle<'s, Sound>);

impl ConcurrentSet for Ranged {
    type Handle<'s> = RangedHandle<'s>;

    fn new(parameters: &Parameters) -> Self {
        Self(Set::new(parameters))
    }

    fn handle(&self) -> RangedHandle<'_> {
        RangedHandle(self.0.handle())
    }

    fn audit(&mut self) -> Audit {
        self.0.audit()
    }

    fn unreclaimed(&self) -> Option<u64> {
        self.0.unreclaimed()
    }
}

impl SetHandle for RangedHandle<'_> {
    fn insert(&mut self, key: u64, value: u64) -> bool {
        self.0.insert(key, value)
    }

    fn remove(&mut self, key: u64) -> bool {
        self.0.remove(key)
    }

    fn contains(&mut self, key: u64) -> bool {
        self.0.contains(key)
    }
}

impl RangeHandle for RangedHandle<'_> {
    fn range(&mut self, lo: u64, n: u64) -> RangeAnswer {
        assert!(n == 10 && lo < 1_000, "as the request says");
        self.0.0.keys.lock().unwrap().range(lo..lo + n).copied().collect()
    }
}

#[test]
fn range_queries_are_counted_with_their_keys() {
    let mix = Mix { insert: 1_000, remove: 1_000, contains: 5_000, range: 3_000 };
    let asked = Request {
        mix,
        range_keys: Some(10),
        prefill_keys: 1_000,
        length: Length::Accounting { operations: 20_000 },
        ..request(2)
    };
    let _alone = ONE_TRIAL.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let measured = RangeSetDriver::<Ranged>::NEW.trial(&asked).unwrap();
    conserves(&measured);
    for thread in &measured.threads {
        let operations = thread.operations;
        assert_eq!(operations.attempted(), 20_000, "a range query is one operation");
        let shares = [operations.insert, operations.remove, operations.contains, operations.range];
        for (tally, share) in shares.into_iter().zip([mix.insert, mix.remove, mix.contains, mix.range]) {
            let due = u64::from(share) * 2;
            assert!(tally.attempted.abs_diff(due) < 400, "{} instead of about {due}", tally.attempted);
        }
        // The set stays at least half full: a query of ten keys hardly ever finds none, and never more than ten.
        assert!(operations.range.effective > operations.range.attempted * 9 / 10, "{operations:?}");
        let keys = operations.range_keys;
        assert!(keys >= 4 * operations.range.attempted && keys <= 10 * operations.range.effective, "{operations:?}");
    }
    // The same driver without range queries draws what any other draws.
    let plain = Request { length: Length::Accounting { operations: 1_000 }, ..request(1) };
    let [ranged, without] =
        [RangeSetDriver::<Ranged>::NEW.trial(&plain).unwrap(), SetDriver::<Set<Sound>>::NEW.trial(&plain).unwrap()];
    assert_eq!(ranged.threads[0].operations, without.threads[0].operations);
    assert_eq!(ranged.threads[0].operations.range.attempted, 0);
}

#[test]
fn range_queries_of_a_structure_without_are_refused() {
    let mix = Mix { insert: 0, remove: 0, contains: 5_000, range: 5_000 };
    let error = run::<Set<Sound>>(&Request { mix, range_keys: Some(10), ..request(1) }).unwrap_err();
    assert_eq!(error, "`test` has no range query");
}

/// On a machine with other work a window may close late; of several, one closes within 1 %.
#[test]
fn windows_close_within_a_hundredth() {
    let length_ns = 100_000_000;
    let last = AllowedCpus::of_this_thread().unwrap().numbers().pop();
    let late = |_| {
        let asked = Request { cpus: vec![last], length: Length::Nanos(length_ns), ..request(1) };
        run::<Set<Sound>>(&asked).unwrap().threads[0].stop_ns - length_ns
    };
    let best_ns = (0..20).map(late).find(|&late_ns| late_ns <= length_ns / 100);
    assert!(best_ns.is_some(), "none of 20 windows closed within 1 % of its length");
}

#[test]
fn pins_are_read_back() {
    let allowed = AllowedCpus::of_this_thread().unwrap().numbers();
    let cpus: Vec<Option<u32>> = allowed.iter().rev().take(2).copied().map(Some).chain([None]).collect();
    let measured = run::<Set<Sound>>(&Request { cpus: cpus.clone(), ..request(0) }).unwrap();
    for (thread, &cpu) in measured.threads.iter().zip(&cpus) {
        match cpu {
            Some(cpu) => {
                assert_eq!(thread.cpus_allowed, [cpu]);
                assert_eq!((thread.cpu_at_start, thread.cpu_at_end), (cpu, cpu));
                assert_eq!(thread.migrations, Ok(0));
            }
            None => assert_eq!(thread.cpus_allowed, allowed),
        }
    }
    assert_eq!(AllowedCpus::of_this_thread().unwrap().numbers(), allowed, "the conducting thread got its CPUs back");
}

#[test]
fn a_refused_pin_refuses_the_trial() {
    // Far more CPUs than any machine has today, and a set that could still hold it.
    let error = run::<Set<Sound>>(&Request { cpus: vec![None, Some(1_000)], ..request(0) }).unwrap_err();
    assert!(error.contains("CPU 1000") && error.contains("errno 22"), "{error}");
}

#[test]
fn the_prefill_is_exact_for_any_number_of_threads() {
    for n_threads in [1, 2, 3, 7] {
        for (key_range, prefill_keys) in [(1, 1), (10, 0), (10, 10), (4_097, 2_048)] {
            let asked = Request { key_range, prefill_keys, length: Length::Nanos(1_000_000), ..request(n_threads) };
            let measured = run::<Set<Sound>>(&asked).unwrap();
            conserves(&measured);
            assert_eq!(measured.audit_before.size, prefill_keys);
        }
    }
}

#[test]
fn every_distribution_runs() {
    for (distribution, key_range) in [(Distribution::Zipf(990_000), 1_000), (Distribution::Zipf(1_200_000), 200_000)] {
        let measured = run::<Set<Sound>>(&Request { distribution, key_range, ..request(2) }).unwrap();
        conserves(&measured);
        assert!(measured.threads.iter().all(|thread| thread.operations.attempted() > 0));
    }
}

#[test]
fn the_same_seed_draws_the_same_operations() {
    let asked = Request { length: Length::Accounting { operations: 2_000 }, ..request(1) };
    let operations = |request: &Request| run::<Set<Sound>>(request).unwrap().threads[0].operations;
    assert_eq!(operations(&asked), operations(&asked));
    assert_ne!(operations(&asked), operations(&Request { seed: 8, ..asked.clone() }));
}

#[test]
fn accounting_balances_what_threads_free_for_each_other() {
    let asked = Request { length: Length::Accounting { operations: 20_000 }, ..request(3) };
    let measured = run::<Set<Sound>>(&asked).unwrap();
    conserves(&measured);
    assert!(measured.threads.iter().all(|thread| thread.operations.attempted() == 20_000));
    let accounting = measured.accounting.unwrap();
    assert_eq!(accounting.after_drop, Balance { blocks: 0, bytes: 0 });
    // 500 keys of 8 bytes in nodes of at most 11 keys, at least half full.
    assert!((500 / 11..500 / 4).contains(&accounting.prefilled.blocks), "{accounting:?}");
    assert!((500 * 8..500 * 40).contains(&accounting.prefilled.bytes), "{accounting:?}");
    assert!(accounting.allocations > 0 && accounting.frees > 0 && accounting.allocated_bytes > 0, "{accounting:?}");
}

/// What runs under a tool that seeks leaks must leave none of its own.
#[test]
fn a_number_of_operations_ends_the_window_and_drops_the_structure_uncounted() {
    static DROPS: AtomicU64 = AtomicU64::new(0);
    struct Noted;
    impl Fault for Noted {
        const DROPS: Option<&'static AtomicU64> = Some(&DROPS);
    }
    let timed = run::<Set<Noted>>(&request(2)).unwrap();
    assert_eq!((DROPS.load(Relaxed), timed.drop_ns, timed.structure.is_some()), (0, 0, true));
    drop(timed);

    for operations in [1, 12_345] {
        DROPS.store(0, Relaxed);
        let measured = run::<Set<Noted>>(&Request { length: Length::Operations { operations }, ..request(2) }).unwrap();
        conserves(&measured);
        assert_eq!((DROPS.load(Relaxed), measured.structure.is_none()), (1, true));
        assert!(measured.drop_ns > 0 && measured.accounting.is_none());
        assert!(measured.threads.iter().all(|thread| thread.operations.attempted() == operations));
        let totals: Vec<u64> = measured.samples.iter().map(|sample| sample.operations).collect();
        assert_eq!(totals, [0, 2 * operations]);
    }
}

#[test]
fn accounting_finds_a_planted_leak_exactly() {
    struct Leaky;
    impl Fault for Leaky {
        const LEAKED_BYTES: usize = 100;
    }
    let asked = Request { length: Length::Accounting { operations: 5_000 }, ..request(2) };
    let measured = run::<Set<Leaky>>(&asked).unwrap();
    let n_removed: u64 = measured.threads.iter().map(|thread| thread.operations.remove.effective).sum();
    assert!(n_removed > 1_000);
    let leaked = n_removed.cast_signed();
    assert_eq!(measured.accounting.unwrap().after_drop, Balance { blocks: leaked, bytes: 100 * leaked });
}

/// Each ends with the message and without waiting for the thread that is gone.
#[test]
fn a_panic_anywhere_refuses_the_trial() {
    struct InHandle;
    impl Fault for InHandle {
        const IN_HANDLE: bool = true;
    }
    struct InPrefill;
    impl Fault for InPrefill {
        const AT_OPERATION: u64 = 100;
    }
    struct InWindow;
    impl Fault for InWindow {
        const AT_OPERATION: u64 = 2_000;
    }
    let check = |outcome: Result<Measurements, String>, expected: &str| {
        let error = outcome.unwrap_err();
        assert!(error.contains("panicked") && error.contains(expected), "{error}");
    };
    check(run::<Set<InHandle>>(&request(3)), "planted in handle");
    check(run::<Set<InPrefill>>(&request(3)), "planted at operation 100");
    check(run::<Set<InWindow>>(&request(3)), "planted at operation 2000");
}

/// The conducting thread panics through; the worker turns that into a refusal. What matters here: nobody hangs.
#[test]
fn a_panic_of_the_conducting_thread_ends_the_trial() {
    struct InNew;
    impl Fault for InNew {
        const IN_NEW: bool = true;
    }
    struct InAudit;
    impl Fault for InAudit {
        const IN_AUDIT: bool = true;
    }
    let message =
        |outcome: std::thread::Result<Result<Measurements, String>>| *outcome.unwrap_err().downcast::<&str>().unwrap();
    assert_eq!(message(std::panic::catch_unwind(|| run::<Set<InNew>>(&request(2)))), "planted in new");
    assert_eq!(message(std::panic::catch_unwind(|| run::<Set<InAudit>>(&request(2)))), "planted in audit");
}

/// A trial of so many threads with another harness.
fn measured_by(harness: Harness, n_threads: usize) -> Request {
    Request { harness, ..request(n_threads) }
}

fn planted(fault: Planted) -> Harness {
    Harness { fault: Some(fault), ..Harness::default() }
}

/// Long enough to tell a third and a fifth of it from what the scheduler does.
const LONG_NS: u64 = 300_000_000;

#[test]
fn a_thread_that_reads_the_clock_stops_itself() {
    for batch in [1, 10, 100, 1_000, 7] {
        let harness = Harness { time_check: TimeCheck::Every(batch), ..Harness::default() };
        let asked = measured_by(harness, 2);
        let Length::Nanos(length_ns) = asked.length else { unreachable!("a timed request") };
        for thread in run::<Set<Sound>>(&asked).unwrap().threads {
            assert!(thread.stop_ns >= length_ns, "every {batch}: stopped at {}", thread.stop_ns);
            let n_operations = thread.operations.attempted();
            assert!(n_operations > 0 && n_operations.is_multiple_of(batch.into()), "every {batch}: {n_operations}");
        }
    }
    // Where operations end the window, no clock does.
    let harness = Harness { time_check: TimeCheck::Every(10), ..Harness::default() };
    let counted = Request { length: Length::Operations { operations: 1_234 }, ..measured_by(harness, 1) };
    assert_eq!(run::<Set<Sound>>(&counted).unwrap().threads[0].operations.attempted(), 1_234);
}

#[test]
fn an_unpadded_harness_counts_the_same() {
    let harness = Harness { padding: Padding::None, ..Harness::default() };
    let asked = Request { length: Length::Operations { operations: 1_000 }, ..measured_by(harness, 4) };
    let packed = run::<Set<Sound>>(&asked).unwrap();
    assert!(packed.threads.iter().all(|thread| thread.operations.attempted() == 1_000));
    let timed = run::<Set<Sound>>(&measured_by(harness, 4)).unwrap();
    let done: u64 = timed.threads.iter().map(|thread| thread.operations.attempted()).sum();
    // The last sample is taken when the flag is set: each thread may do some more.
    let sampled = timed.samples.last().unwrap().operations;
    assert!(sampled > 0 && sampled <= done, "{sampled} of {done}");
}

#[test]
fn alternating_draws_reach_half_of_the_keys() {
    let harness = Harness { generator: GeneratorKind::Fnv1aAlternating, ..Harness::default() };
    let mix = Mix { insert: Mix::WHOLE, remove: 0, contains: 0, range: 0 };
    let length = Length::Operations { operations: 100_000 };
    let asked = Request { mix, length, prefill_keys: 0, ..measured_by(harness, 1) };
    let after = run::<Set<Sound>>(&asked).unwrap().audit_after;
    let evens: u64 = (0..1_000).step_by(2).sum();
    assert_eq!(after.size, 500);
    assert!(after.key_sum == evens || after.key_sum == evens + 500, "{after:?}");
    assert_eq!(run::<Set<Sound>>(&Request { harness: Harness::default(), ..asked }).unwrap().audit_after.size, 1_000);

    let zipf = Request { distribution: Distribution::Zipf(990_000), ..measured_by(harness, 1) };
    let error = run::<Set<Sound>>(&zipf).unwrap_err();
    assert_eq!(error, "the generator `fnv1a-alternating` draws uniform keys only");
}

#[test]
fn a_prefill_with_replacement_claims_more_than_there_is() {
    let asked =
        Request { key_range: 10_000, prefill_keys: 5_000, ..measured_by(planted(Planted::PrefillWithReplacement), 2) };
    let measured = run::<Set<Sound>>(&asked).unwrap();
    assert_eq!((measured.prefill.target, measured.prefill.per_thread), (5_000, vec![2_500, 2_500]));
    // 1 - e^-0.5 of the range.
    assert!((3_700..4_200).contains(&measured.audit_before.size), "{:?}", measured.audit_before);
    assert_ne!(measured.audit_before.key_sum, measured.prefill.key_sum);
}

#[test]
fn rotated_pins_are_what_the_kernel_tells() {
    let cpus = AllowedCpus::of_this_thread().unwrap().numbers();
    let pins = |n_threads| Request {
        cpus: cpus[..n_threads].iter().copied().map(Some).collect(),
        ..measured_by(planted(Planted::RotatedPins), 0)
    };
    let refusal = "the pins of the threads cannot be rotated: they do not differ";
    assert_eq!(run::<Set<Sound>>(&pins(1)).unwrap_err(), refusal);
    assert_eq!(run::<Set<Sound>>(&measured_by(planted(Planted::RotatedPins), 2)).unwrap_err(), refusal);
    if cpus.len() < 2 {
        eprintln!("one CPU is allowed: nothing to rotate");
        return;
    }
    let threads = run::<Set<Sound>>(&pins(2)).unwrap().threads;
    for (thread, (asked, other)) in threads.iter().zip([(cpus[0], cpus[1]), (cpus[1], cpus[0])]) {
        assert_eq!(thread.cpu_asked, Some(asked));
        assert_eq!((thread.cpus_allowed.as_slice(), thread.cpu_at_start), ([other].as_slice(), other));
    }
}

#[test]
fn a_late_thread_begins_a_third_late() {
    let asked = Request { length: Length::Nanos(LONG_NS), ..measured_by(planted(Planted::LateThread), 2) };
    let threads = run::<Set<Sound>>(&asked).unwrap().threads;
    assert!(threads[0].start_ns < LONG_NS / 6, "{threads:?}");
    assert!(threads[1].start_ns >= LONG_NS / 3 && threads[1].stop_ns >= LONG_NS, "{threads:?}");
}

#[test]
fn nominal_time_is_claimed_and_the_sampler_knows_better() {
    for time_check in [TimeCheck::Flag, TimeCheck::Every(10)] {
        let harness = Harness { time_check, ..planted(Planted::NominalTime) };
        let measured =
            run::<Set<Sound>>(&Request { length: Length::Nanos(LONG_NS), ..measured_by(harness, 2) }).unwrap();
        for thread in &measured.threads {
            assert_eq!(thread.stop_ns - thread.start_ns, LONG_NS, "{time_check:?}");
        }
        assert!(measured.samples.last().unwrap().at_ns >= LONG_NS + LONG_NS / 5, "{:?}", measured.samples);
        // 0, 100, 200 and 300 ms, and the end.
        assert_eq!(measured.samples.len(), 5);
    }
}
