//! The checks that compare trials with other trials: each fires on its fault, planted or made up, and on nothing else.

#![allow(clippy::unwrap_used, reason = "a test stops where it does not find what it expects")]

mod playground;
mod report_common;

use playground::Playground;
use rare::{
    plan::{BlockKind, Plan, Probe},
    record::Outcome,
    spec::{
        model::Condition,
        value::{Parameter, Value},
    },
    units::Nanos,
    verdict::{self, Grade, Verdict, judge},
};
use rare_workloads::protocol::{Reclamation, Reply, Sample};
use report_common::{Case, SMALL, Shape};

/// Fast enough that 20,000 objects are retired.
const RATE: f64 = 2e7;

fn judged(case: &Case) -> Verdict {
    let summary = case.summary();
    let mut verdicts = judge(&case.evidence(&summary));
    assert_eq!(verdicts.len(), 1, "a case asks for one check");
    let verdict = verdicts.remove(0);
    for exhibit in &verdict.exhibits {
        assert!(exhibit.rows.iter().all(|row| row.len() == exhibit.columns.len()), "{exhibit:?}");
    }
    verdict
}

/// The replies to the trials of probes, each with its probe.
fn replies(case: &mut Case) -> impl Iterator<Item = (&Probe, &mut Reply)> {
    let plan = &case.plan;
    case.trials.iter_mut().filter_map(move |trial| match (plan.probe_of(trial.trial), &mut trial.outcome) {
        (Some(probe), Outcome::Replied(reply)) => Some((probe, reply.as_mut())),
        _ => None,
    })
}

fn label(probe: &Probe) -> &str {
    &probe.cell().structure().label
}

#[test]
fn labels_of_one_cell_that_differ_are_told() {
    let with = |slower: f64| {
        let mut case = Case::new(&SMALL);
        case.ask("aa", |probe| if label(probe).ends_with("-again") { RATE * slower } else { RATE });
        case
    };
    assert_eq!(with(1.0).plan.probes.iter().map(label).collect::<Vec<_>>(), ["nm14", "nm14-again"]);
    assert_eq!(judged(&with(1.0)).grade, Grade::Pass);
    let (close, far) = (judged(&with(0.95)), judged(&with(0.85)));
    assert_eq!((close.grade, far.grade), (Grade::Warn, Grade::Fail), "{} {}", close.summary, far.summary);
    let unlike = judged(&with(0.3));
    assert_eq!(unlike.grade, Grade::Fail, "that far apart is not unsteady: {}", unlike.summary);
    assert!(close.summary.contains("the noise floor is 5.3 %"), "{}", close.summary);
}

#[test]
fn a_floor_says_which_differences_may_be_noise() {
    let mut case = Case::new(&SMALL);
    // The medians of the two differ by nothing, and their trials by up to 15 %.
    let nth = std::cell::Cell::new(0u32);
    case.ask("aa", |_| {
        // The two of a block are alike.
        let block = nth.replace(nth.get() + 1) / 2;
        RATE * (1.0 + 0.05 * f64::from(block % 4))
    });
    let silent = judged(&case);
    assert_eq!(silent.grade, Grade::Pass, "{}", silent.summary);
    // The structures differ by far more; now by 3 %, in every trial.
    for trial in case.trials.iter_mut().filter(|trial| trial.trial.kind == BlockKind::Measure) {
        let share = if trial.request.structure == "nm14" { 1.03 } else { 1.0 };
        let Outcome::Replied(reply) = &mut trial.outcome else { unreachable!("made-up trials reply") };
        for thread in &mut reply.threads {
            let measured = (thread.stop_ns - thread.start_ns) as f64 / 1e9;
            thread.operations.contains.attempted = (RATE * share * measured) as u64
                - thread.operations.insert.attempted
                - thread.operations.remove.attempted;
        }
    }
    let verdict = judged(&case);
    assert_eq!(verdict.grade, Grade::Warn, "{}", verdict.summary);
    assert_eq!(verdict.exhibits[1].rows, [["nm14", "mutex-btree", "1.03×", "a test"]]);
}

#[test]
fn an_unsteady_machine_has_no_floor() {
    let mut case = Case::new(&SMALL);
    let nth = std::cell::Cell::new(0u32);
    case.ask("aa", |_| if (nth.replace(nth.get() + 1) / 2).is_multiple_of(2) { RATE } else { RATE / 3.0 });
    let verdict = judged(&case);
    assert_eq!(verdict.grade, Grade::Unknown, "{}", verdict.summary);
    assert!(verdict.summary.contains("too unsteady"), "{}", verdict.summary);
}

#[test]
fn a_floor_without_trials_is_unknown() {
    let mut case = Case::new(&SMALL);
    case.ask("aa", |_| RATE);
    case.trials.retain(|trial| trial.trial.kind != BlockKind::Probe || trial.trial.trial_idx < 5);
    let verdict = judged(&case);
    assert_eq!(verdict.grade, Grade::Unknown);
    assert!(verdict.summary.contains("5 and 5 trials count"), "{}", verdict.summary);
}

/// A case in which longer trials have the rates that `rate` gives for a structure at a share of its trial.
fn sampled(rate: impl Fn(&str, f64) -> f64) -> Case {
    let mut case = Case::new(&SMALL);
    case.ask("trial-length", |_| RATE);
    for trial in case.trials.iter_mut().filter(|trial| trial.trial.kind == BlockKind::Measure) {
        let Outcome::Replied(reply) = &mut trial.outcome else { unreachable!("made-up trials reply") };
        for thread in &mut reply.threads {
            let measured = (thread.stop_ns - thread.start_ns) as f64 / 1e9;
            thread.operations = Default::default();
            thread.operations.contains.attempted = (RATE / 2.0 * measured) as u64;
        }
        reply.audit_after = reply.audit_before.clone();
        reply.threads.iter_mut().for_each(|thread| (thread.inserted_sum, thread.removed_sum) = (0, 0));
    }
    for (probe, reply) in replies(&mut case) {
        let n = probe.cell().trial_length().0 / 100_000_000;
        let mut operations = 0;
        let sample = |idx: u64| {
            operations += if idx == 0 { 0 } else { (rate(label(probe), idx as f64 / n as f64) / 10.0) as u64 };
            Sample { at_ns: idx * 100_000_000, operations }
        };
        reply.samples = (0..=n).map(sample).collect();
    }
    case
}

#[test]
fn decay_within_a_trial_is_told_from_a_machine_that_slows_down() {
    let of_nm14 = |rate: fn(f64) -> f64| sampled(move |label, at| if label == "nm14" { rate(at) } else { RATE });
    let flat = judged(&of_nm14(|_| RATE));
    assert_eq!(flat.grade, Grade::Pass, "{}", flat.summary);
    let decaying = judged(&of_nm14(|at| RATE / (1.0 + 10.0 * at).sqrt()));
    assert_eq!(decaying.grade, Grade::Fail, "{}", decaying.summary);
    assert!(
        decaying.summary.starts_with("nm14 is all the time getting slower in a trial of 1m"),
        "{}",
        decaying.summary
    );
    let mut unconfirmed = of_nm14(|at| RATE / (1.0 + 10.0 * at).sqrt());
    let confirming =
        replies(&mut unconfirmed).filter(|(probe, _)| probe.cell().trial_length() == Nanos(12_000_000_000));
    for (_, reply) in confirming {
        reply.samples.iter_mut().for_each(|sample| sample.operations = sample.at_ns / 100);
    }
    assert_eq!(judged(&unconfirmed).grade, Grade::Warn);
    let a_little = judged(&of_nm14(|at| RATE * (1.0 - 0.2 * at)));
    assert_eq!(a_little.grade, Grade::Warn, "{}", a_little.summary);
    let stepping = judged(&of_nm14(|at| if at < 0.6 { RATE } else { RATE * 0.4 }));
    assert_eq!(stepping.grade, Grade::Pass, "{}", stepping.summary);
}

#[test]
fn longer_trials_that_are_slower_from_the_start_are_told() {
    let slower = judged(&sampled(|label, _| if label == "nm14" { RATE * 0.6 } else { RATE }));
    assert_eq!(slower.grade, Grade::Warn, "{}", slower.summary);
    assert!(slower.summary.contains("nm14 has 60.0 % of the throughput of a trial of 3s"), "{}", slower.summary);
    let mut unsteady = sampled(|label, _| if label == "nm14" { RATE * 0.6 } else { RATE });
    let slow = unsteady.trials.iter_mut().find(|trial| trial.request.structure == "mutex-btree").unwrap();
    let Outcome::Replied(reply) = &mut slow.outcome else { unreachable!("made-up trials reply") };
    reply.threads.iter_mut().for_each(|thread| thread.operations.contains.attempted /= 3);
    assert_eq!(judged(&unsteady).grade, Grade::Unknown, "a machine of two speeds tells nothing of lengths");
    let mut without = sampled(|_, _| RATE);
    without.trials.retain(|trial| trial.trial.kind != BlockKind::Probe);
    let unknown = judged(&without);
    assert_eq!(unknown.grade, Grade::Unknown);
    assert!(unknown.summary.contains("nm14: the trial of 1m does not count"), "{}", unknown.summary);
}

#[test]
fn long_trials_are_bounded() {
    let lengths = |of_plan: u64, scheme: Reclamation| -> Vec<u64> {
        let mut case = Case::new(&SMALL);
        case.spec.axes[Parameter::TrialLength as usize] = vec![Value::Duration(Nanos(of_plan))];
        case.spec.axes[Parameter::Reclamation as usize] = vec![Value::Reclamation(scheme)];
        case.spec.checks = vec!["trial-length"];
        let plan = Plan::compile(&case.spec, verdict::probes).unwrap();
        plan.probes.iter().map(|probe| probe.cell().trial_length().0 / 1_000_000).collect()
    };
    assert_eq!(lengths(200_000_000, Reclamation::Epoch), [4_000, 800, 4_000, 800]);
    assert_eq!(lengths(1_000_000, Reclamation::Epoch), [1_000, 400, 1_000, 400]);
    assert_eq!(lengths(3_000_000_000, Reclamation::Epoch), [60_000, 12_000, 60_000, 12_000]);
    assert_eq!(lengths(10_000_000_000, Reclamation::Epoch), [60_000, 40_000, 60_000, 40_000]);
    assert!(lengths(30_000_000_000, Reclamation::Epoch).is_empty());
    assert_eq!(lengths(200_000_000, Reclamation::None), [2_000, 800, 2_000, 800]);
    assert!(lengths(1_000_000_000, Reclamation::None).is_empty());
}

/// A case in which trials of nm14 hold so many objects at their end, by scheme.
fn holding(held: impl Fn(Reclamation) -> Option<u64>) -> Case {
    let mut case = Case::new(&SMALL);
    case.ask("reclamation", |_| RATE);
    for (probe, reply) in replies(&mut case) {
        reply.memory.unreclaimed_objects = held(probe.cell().reclamation());
    }
    case
}

#[test]
fn a_scheme_that_grows_like_none_is_told() {
    let schemes = |case: &Case| case.plan.probes.iter().map(|probe| probe.cell().reclamation()).collect::<Vec<_>>();
    let of = |own: u64| holding(move |scheme| Some(if scheme == Reclamation::None { 1_000_000 } else { own }));
    assert_eq!(schemes(&of(0)), [Reclamation::Epoch, Reclamation::Eager, Reclamation::None]);
    for (own, grade) in [(5_000, Grade::Pass), (300_000, Grade::Warn), (900_000, Grade::Fail)] {
        let verdict = judged(&of(own));
        assert_eq!(verdict.grade, grade, "{}", verdict.summary);
        assert_eq!(verdict.exhibits[0].rows.len(), 3);
    }
    let silent = judged(&holding(|_| None));
    assert_eq!(silent.grade, Grade::Unknown, "{}", silent.summary);
    let few = judged(&holding(|_| Some(900)));
    assert_eq!(few.grade, Grade::Unknown, "{}", few.summary);
}

#[test]
fn a_plan_that_never_reclaims_is_warned_of() {
    let mut case = Case::new(&SMALL);
    let none = vec![Value::Reclamation(Reclamation::None)];
    case.spec.axes[Parameter::Reclamation as usize].clone_from(&none);
    case.plan.values[Parameter::Reclamation as usize] = none;
    case.trials.iter_mut().for_each(|trial| trial.request.reclamation = Reclamation::None);
    case.ask("reclamation", |_| RATE);
    let verdict = judged(&case);
    assert_eq!(verdict.grade, Grade::Warn, "{}", verdict.summary);
    assert!(verdict.summary.contains("the plan reclaims nothing"), "{}", verdict.summary);
}

#[test]
fn what_frees_at_once_needs_no_scheme() {
    let mut case = Case::new(&Shape { structures: &["mutex-btree", "rwlock-btree"], ..SMALL });
    case.ask("reclamation", |_| RATE);
    assert!(case.plan.probes.is_empty());
    assert_eq!(judged(&case).grade, Grade::Pass);
}

/// A case with a claim that holds at its own 1000 keys, in which at 100 keys the other structure is ahead.
fn turning(scope: Vec<(Parameter, Vec<Condition>)>) -> Case {
    let mut case = Case::new(&SMALL);
    case.claim("nm14", "mutex-btree", 0, scope);
    case.ask("key-range", |probe| match (label(probe), probe.cell().key_range()) {
        ("mutex-btree", 100) => RATE * 3.0,
        ("nm14", _) => RATE,
        _ => RATE / 2.0,
    });
    case
}

#[test]
fn a_claim_that_is_silent_about_the_key_range_is_held_to_all() {
    let verdict = judged(&turning(Vec::new()));
    assert_eq!(verdict.grade, Grade::Warn, "{}", verdict.summary);
    assert!(verdict.summary.contains("at 100 keys mutex-btree is ahead by 3.00×"), "{}", verdict.summary);
    let scoped = vec![(Parameter::KeyRange, vec![Condition::Is(Value::Count(1000))])];
    let verdict = judged(&turning(scoped));
    assert_eq!(verdict.grade, Grade::Pass, "{}", verdict.summary);
    let turn = ["mutex-btree at 100 keys", "3.00×", "nm14 at 100k keys", "2.00×"];
    assert_eq!(verdict.exhibits[1].rows, [turn], "that the order changes is said all the same");
}

#[test]
fn sizes_that_the_plan_has_are_not_measured_again() {
    let mut case = Case::new(&Shape { key_ranges: &[100, 100_000], ..SMALL });
    case.ask("key-range", |_| RATE);
    assert!(case.plan.probes.iter().all(|probe| probe.cell().key_range() == 10_000_000 && probe.n_trials == 1));
    assert_eq!(judged(&case).grade, Grade::Pass);
}

#[test]
fn what_a_structure_is_too_slow_for_is_left_out_and_said() {
    let mut case = Case::new(&Shape { structures: &["nm14", "harris01"], ..SMALL });
    case.ask("key-range", |_| RATE);
    let probed = case.plan.probes.iter().filter(|probe| label(probe) == "harris01");
    assert_eq!(probed.map(|probe| probe.cell().key_range()).collect::<Vec<_>>(), [100, 10_000]);
    let verdict = judged(&case);
    assert_eq!(verdict.grade, Grade::Pass);
    for size in ["100k", "10M"] {
        let text = format!("harris01 is too slow to be filled to {size} keys, and has 10k");
        assert!(verdict.summary.contains(&text), "{}", verdict.summary);
    }
    case.trials.retain(|trial| trial.trial.kind != BlockKind::Probe || trial.request.key_range != 10_000);
    assert_eq!(judged(&case).grade, Grade::Unknown);
}

/// Runs a spec of nm14 beside another structure and returns the exit code and the rows of the report's table of checks.
fn make(structures: &str) -> (i32, Vec<String>) {
    let playground = Playground::new();
    let text = format!(
        "rare: 1\nname: compared\nquestion: Is it caught?\nstructures: [{structures}]\nthreads: 2\npinning: none\n\
         key_ranges: 1000\nmixes: {{insert: 50, remove: 50}}\ntrials: {{count: 3, length: 50ms}}\ninstruments: none\n\
         sanity_checks: [trial-length, key-range, reclamation, aa]\n"
    );
    playground.write("spec.yaml", &text);
    let done = playground.run(&["make", "spec.yaml"]);
    let path = playground.path().join("reports/compared").join(done.word("plan")).join("report.md");
    let report = std::fs::read_to_string(path).unwrap();
    let is_of_check =
        |line: &&str| ["(trial-length)", "(key-range)", "(reclamation)", "(aa)"].iter().any(|name| line.contains(name));
    let rows = report.lines().filter(|line| line.starts_with('|')).filter(is_of_check);
    (done.code, rows.map(str::to_owned).collect())
}

/// One after another: each takes both CPUs.
#[test]
fn planted_faults_are_caught_and_sound_structures_are_not() {
    let (code, rows) = make("nm14, bcco10");
    assert_eq!(code, 0, "{rows:#?}");
    assert_eq!(rows.len(), 4, "{rows:#?}");
    assert!(rows.iter().all(|row| !row.contains("**fail**")), "{rows:#?}");
    for (control, dose, check) in
        [("control-decay", ", one_in: 500", "(trial-length)"), ("control-never-frees", "", "(reclamation)")]
    {
        // A disturbed trial can hide a course, so that the check says unknown; it must not do so again and again.
        let planted = || make(&format!("nm14, {{use: {control}{dose}}}"));
        let (code, rows) = (0..4).map(|_| planted()).find(|(code, _)| *code == 5).unwrap_or_else(planted);
        assert_eq!(code, 5, "{control}: {rows:#?}");
        for row in rows {
            assert_eq!(row.contains("**fail**"), row.contains(check), "{row}");
            assert!(!row.contains(check) || row.contains(control), "{row}");
        }
    }
}
