//! The checks that measure beside the cells how things scale and what the harness costs: judged on made-up trials, and run
//! on structures and settings with a planted fault.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

mod playground;
mod report_common;
mod skip;

use std::cell::Cell as Counter;

use playground::{Done, Playground};
use rare::{
    plan::{BlockKind, Mode, Probe},
    record::{FailureClass, Outcome, Trial},
    spec::value::{Parameter, Prefill, Threads, Value},
    units::BasisPoints,
    verdict::{Grade, Verdict, judge},
};
use rare_workloads::protocol::{Reply, TimeCheck};
use report_common::{Case, SMALL, Shape, USUAL};

const ONE_THREAD: Shape = Shape { threads: &[1], ..SMALL };

/// Judges the only check that was asked for.
fn judged(case: &Case) -> Verdict {
    let summary = case.summary();
    judge(&case.evidence(&summary)).into_iter().next().unwrap()
}

/// Judges a check whose probes have these rates, in operations per second.
fn judged_by(check: &'static str, shape: &Shape, rate: impl Fn(&Probe) -> f64) -> Verdict {
    let mut case = Case::new(shape);
    case.ask(check, rate);
    judged(&case)
}

#[track_caller]
fn assert_grade(verdict: &Verdict, grade: Grade, says: &str) {
    assert_eq!(verdict.grade, grade, "{verdict:?}");
    assert!(verdict.summary.contains(says), "{verdict:?}");
}

fn structure(probe: &Probe) -> &str {
    &probe.cell().structure().name
}

fn threads(probe: &Probe) -> f64 {
    let Threads::Count(threads) = probe.cell().threads() else { unreachable!("counts only") };
    f64::from(threads)
}

/// Everything scales: `noop` fully, the rest to 95 % of that.
fn scales(probe: &Probe) -> f64 {
    match (structure(probe), threads(probe)) {
        ("noop", n) => 5e8 * n,
        (_, 1.0) => 1e8,
        (_, n) => 0.95e8 * n,
    }
}

/// One structure has a throughput of its own with more than one thread.
fn but(name: &'static str, rate: f64) -> impl Fn(&Probe) -> f64 {
    move |probe| if structure(probe) == name && threads(probe) > 1.0 { rate } else { scales(probe) }
}

fn probe_trials(case: &mut Case) -> impl Iterator<Item = &mut Trial> {
    case.trials.iter_mut().filter(|trial| trial.trial.kind == BlockKind::Probe)
}

fn reply(trial: &mut Trial) -> &mut Reply {
    match &mut trial.outcome {
        Outcome::Replied(reply) => reply,
        Outcome::Failed { .. } => unreachable!("made-up trials reply"),
    }
}

fn fail(trial: &mut Trial, class: FailureClass) {
    trial.outcome = Outcome::Failed { class, detail: "no reply within 20 s".to_owned(), stderr: String::new() };
}

#[test]
fn look_ups_that_scale_pass_and_those_that_do_not_are_named() {
    for (check, weak, less) in [("empty", 0.95e8, "47.5 %"), ("read-only", 1.3e8, "65.0 %")] {
        let verdict = judged_by(check, &USUAL, scales);
        assert_grade(&verdict, Grade::Pass, "95.0 %");
        let lookups = &verdict.exhibits[0];
        assert_eq!(lookups.rows.len(), 5 * 2, "four structures and `noop`, with one thread and with two");
        assert!(verdict.exhibits.iter().all(|it| it.rows.iter().all(|row| row.len() == it.columns.len())));

        let slower = judged_by(check, &USUAL, but("nm14", 0.6e8));
        assert_grade(
            &slower,
            Grade::Fail,
            "`nm14` does 0.60× the work of one thread with 2, and states of itself: lock-free",
        );
        assert_eq!(slower.rows.len(), 1);
        let gains = format!("{less} of what `noop` gains");
        assert_grade(&judged_by(check, &USUAL, but("nm14", weak)), Grade::Warn, &gains);
        assert_grade(&judged_by(check, &USUAL, but("nm14", 1.6e8)), Grade::Pass, "80.0 %");
        assert_grade(&judged_by(check, &USUAL, but("noop", 2e8)), Grade::Fail, "nothing to share but the harness");
    }
}

#[test]
fn a_machine_on_which_nothing_can_scale_is_not_held_against_structures() {
    let idle = |probe: &Probe| if structure(probe) == "noop" { 5e8 } else { 1e8 };
    assert_grade(&judged_by("read-only", &SMALL, idle), Grade::Unknown, "no CPUs for them");
    assert_grade(&judged_by("read-only", &ONE_THREAD, scales), Grade::Unknown, "one thread");
    // More threads than CPUs: `noop` gains what there is, and the bound is that.
    let shape = Shape { threads: &[1, 8], ..SMALL };
    let two_cpus = |probe: &Probe| threads(probe).min(2.0) * if structure(probe) == "noop" { 5e8 } else { 1e8 };
    assert_grade(&judged_by("read-only", &shape, two_cpus), Grade::Pass, "100.0 %");
}

#[test]
fn disturbed_trials_do_not_decide_about_scaling() {
    // Of the five trials of each setting four are disturbed: the best of them counts.
    let n_asked = Counter::new(0_u32);
    let mut case = Case::new(&SMALL);
    let n_settings = 6;
    case.ask("read-only", |probe| {
        let trial_idx = n_asked.replace(n_asked.get() + 1) / n_settings;
        if trial_idx == 3 { scales(probe) } else { scales(probe) / threads(probe) }
    });
    assert_eq!(n_asked.get(), n_settings * 5);
    assert_grade(&judged(&case), Grade::Pass, "95.0 %");
}

#[test]
fn too_few_trials_are_not_judged() {
    let mut case = Case::new(&SMALL);
    case.ask("empty", scales);
    let of_nm14 = |trial: &&mut Trial| trial.request.structure == "nm14" && trial.request.cpus.len() == 2;
    probe_trials(&mut case).filter(of_nm14).take(2).for_each(|trial| fail(trial, FailureClass::Signal));
    assert_grade(&judged(&case), Grade::Pass, "scales");
    probe_trials(&mut case).filter(of_nm14).take(3).for_each(|trial| fail(trial, FailureClass::Signal));
    assert_grade(&judged(&case), Grade::Unknown, "of `nm14` with 2 threads 2 of 5 trials are valid");
    case.trials.retain(|trial| trial.trial.kind != BlockKind::Probe);
    assert_eq!(judged(&case).grade, Grade::Unknown);
}

#[test]
fn the_structure_that_is_slow_with_nothing_to_find_is_named_without_a_warning() {
    let slow = |probe: &Probe| scales(probe) / if structure(probe) == "crossbeam-skiplist" { 2.0 } else { 1.0 };
    assert_grade(&judged_by("empty", &USUAL, slow), Grade::Pass, "`crossbeam-skiplist` is to be explained: 2.00×");
    assert!(!judged_by("empty", &USUAL, scales).summary.contains("explained"));
    // One thread is enough for that.
    assert_eq!(judged_by("empty", &ONE_THREAD, scales).exhibits[1].rows.len(), 3);
}

#[test]
fn probes_are_few_short_and_as_the_checks_want_them() {
    let mut case = Case::new(&Shape {
        structures: &["nm14", "harris01", "crossbeam-skiplist", "rwlock-btree", "bcco10", "noop"],
        ..USUAL
    });
    // One thread has no pins to rotate: a fault that is planted in the cells is not planted in probes.
    case.spec.axes[Parameter::HarnessFault as usize] = vec![Value::Word("rotated-pins")];
    case.spec.axes[Parameter::Prefill as usize] = vec![Value::Prefill(Prefill::Share(BasisPoints(0)))];
    let mut nanos = 0;
    for (check, n_probes) in
        [("empty", 6 * 2), ("read-only", 6 * 2), ("contention", 5), ("harness-overhead", 6), ("false-sharing", 2)]
    {
        case.ask(check, scales);
        assert_eq!(case.plan.probes.len(), n_probes, "{check}");
        for probe in &case.plan.probes {
            assert_eq!((probe.mode, probe.cell().harness().unwrap().fault), (Mode::Timed, None));
            // What starting and ending a worker takes here is about 10 ms.
            nanos += u64::from(probe.n_trials) * (probe.cell().trial_length().0 + 10_000_000);
            let (keys, mix) = (probe.cell().prefill().keys(probe.cell().key_range()), probe.cell().mix());
            match check {
                "empty" => assert_eq!((keys, mix.contains), (0, 10_000)),
                "read-only" => assert_eq!((keys, mix.contains), (50, 10_000)),
                "contention" => assert_eq!((probe.cell().key_range(), keys, mix.contains), (2, 1, 0)),
                _ => assert_eq!(structure(probe), "noop"),
            }
        }
    }
    assert!(nanos < 30_000_000_000, "{nanos} ns");
}

#[test]
fn under_contention_trials_end_keep_their_keys_and_starve_nobody() {
    let mut sound = Case::new(&SMALL);
    sound.ask("contention", |_| 2e7);
    assert_grade(&judged(&sound), Grade::Pass, "all 10 trials ended");

    let spoilt = |grade, says: &str, spoil: &dyn Fn(usize, &mut Trial)| {
        let mut case = Case::new(&SMALL);
        case.ask("contention", |_| 2e7);
        let of_nm14 = |trial: &&mut Trial| trial.request.structure == "nm14";
        probe_trials(&mut case).filter(of_nm14).enumerate().for_each(|(idx, trial)| spoil(idx, trial));
        assert_grade(&judged(&case), grade, says);
    };
    spoilt(Grade::Fail, "no reply within 20 s", &|idx, trial| {
        if idx == 0 {
            fail(trial, FailureClass::TimedOut);
        }
    });
    spoilt(Grade::Unknown, "4 of 5 trials", &|idx, trial| {
        if idx == 0 {
            fail(trial, FailureClass::Start);
        }
    });
    spoilt(Grade::Fail, "the walk finds", &|idx, trial| {
        if idx == 0 {
            reply(trial).audit_after.size += 1;
        }
    });
    spoilt(Grade::Fail, "a thread of `nm14` starves", &|_, trial| starve(reply(trial)));
    spoilt(Grade::Pass, "no thread starved", &|idx, trial| {
        if idx > 0 {
            starve(reply(trial));
        }
    });
    // Two threads on one CPU: the scheduler says who goes first.
    spoilt(Grade::Pass, "no thread starved", &|_, trial| {
        trial.request.cpus = vec![None, None];
        let reply = reply(trial);
        reply.threads.iter_mut().for_each(|thread| thread.cpus_allowed = vec![0]);
        starve(reply);
    });
    assert_grade(&judged_by("contention", &ONE_THREAD, |_| 2e7), Grade::Unknown, "one thread");
}

/// Leaves the second thread a hundredth of its operations, and the keys that it added.
fn starve(reply: &mut Reply) {
    let operations = &mut reply.threads[1].operations;
    let added = operations.insert.effective - operations.remove.effective;
    (operations.insert.effective, operations.remove.effective) = (added, 0);
    operations.insert.attempted /= 100;
    operations.remove.attempted /= 100;
}

#[test]
fn the_harness_is_held_against_the_fastest_cell() {
    // The fastest cell takes some 100 ns, and `noop` with so many nanoseconds an operation.
    let takes = |nanos: f64| move |probe: &Probe| threads(probe) * 1e9 / nanos;
    let verdict = judged_by("harness-overhead", &SMALL, takes(2.0));
    assert_grade(&verdict, Grade::Pass, "the harness takes 2.0 ns");
    assert_eq!(verdict.exhibits[1].rows.len(), 5, "the curve over time checks");
    assert_grade(&judged_by("harness-overhead", &SMALL, takes(12.0)), Grade::Warn, "the harness takes 12.0 ns");

    // The clock after each operation is a setting that adds something for nothing.
    let mut case = Case::new(&SMALL);
    case.plan.values[Parameter::TimeCheck as usize] = vec![Value::Word("every-op")];
    case.spec.axes[Parameter::TimeCheck as usize] = vec![Value::Word("every-op")];
    let by_time_check = |probe: &Probe| match probe.cell().value(Parameter::TimeCheck) {
        Value::Word("every-op") => takes(22.0)(probe),
        _ => takes(2.0)(probe),
    };
    case.trials.iter_mut().for_each(|trial| trial.request.harness.time_check = TimeCheck::Every(1));
    case.ask("harness-overhead", by_time_check);
    assert_grade(&judged(&case), Grade::Fail, "the settings of the harness add 20.0 ns");
    assert_eq!(judged(&case).rows.len(), 2, "that it weighs is said too");

    case.trials.retain(|trial| trial.trial.kind != BlockKind::Probe);
    assert_grade(&judged(&case), Grade::Unknown, "0 of 5 trials");
}

#[test]
fn the_padding_of_the_plan_is_held_against_the_full_one() {
    let by_padding = |share: f64| {
        move |probe: &Probe| match probe.cell().value(Parameter::HarnessPadding) {
            Value::Count(0) => share * 1e9,
            _ => 1e9,
        }
    };
    let sound = judged_by("false-sharing", &SMALL, by_padding(0.4));
    assert_grade(&sound, Grade::Pass, "without any `noop` would be 0.40× as fast");
    assert!(sound.exhibits[0].note.contains("A/B trial"));
    assert_grade(&judged_by("false-sharing", &SMALL, by_padding(0.95)), Grade::Unknown, "cannot see false sharing");
    assert_grade(&judged_by("false-sharing", &ONE_THREAD, by_padding(0.4)), Grade::Unknown, "one thread");

    let mut case = Case::new(&SMALL);
    case.plan.values[Parameter::HarnessPadding as usize] = vec![Value::Count(0)];
    case.spec.axes[Parameter::HarnessPadding as usize] = vec![Value::Count(0)];
    case.ask("false-sharing", by_padding(0.4));
    assert_grade(&judged(&case), Grade::Fail, "`harness.padding: 0` of the plan `noop` is 0.40× as fast");
}

/// Runs, each with another seed, in one of which a fault that shows in speed must be caught: other work on the CPUs may
/// hide it. What is right must not fail in any.
const RUNS: u32 = 4;

/// Makes the report of one short experiment.
fn make(structures: &str, checks: &str, more: &str, seed: u32) -> Done {
    let playground = Playground::new();
    let spec = format!(
        "rare: 1\nname: scaling\nquestion: Is it caught?\nstructures: [{structures}]\nthreads: 2\n\
         key_ranges: 10k\nmixes: {{contains: 100}}\ntrials: {{count: 2, length: 60ms}}\nseed: {seed}\n\
         sanity_checks: [{checks}]\n{more}"
    );
    playground.write("spec.yaml", &spec);
    let done = playground.run(&["make", "spec.yaml"]);
    let report = playground.path().join("reports/scaling").join(done.word("plan")).join("report.md");
    let stdout = std::fs::read_to_string(report).unwrap();
    Done { stdout, ..done }
}

/// Asserts that a check fails, unless the machine has no two CPUs to give in any run: then the check says that it cannot
/// judge.
#[track_caller]
fn assert_caught(structures: &str, check: &str, more: &str, says: &str) {
    let mut verdicts: Vec<String> = Vec::new();
    for seed in 0..RUNS {
        let report = make(structures, check, more, seed).stdout;
        let verdict = report.lines().find(|line| line.contains(&format!("({check})"))).unwrap();
        verdicts.push(verdict.to_owned());
        if verdict.contains("**fail**") {
            break;
        }
    }
    let last = verdicts.last().unwrap();
    if verdicts.iter().all(|verdict| verdict.contains("unknown")) {
        // No program is missing, so that this is no part that continuous integration could have.
        return eprintln!("not shown on so busy a machine, whether `{check}` catches its fault: {last}");
    }
    assert!(last.contains("**fail**") && last.contains(says), "not caught in {RUNS} runs:\n{}", verdicts.join("\n"));
}

/// One after the other: together they would measure each other.
#[test]
fn planted_faults_are_caught_and_sound_structures_are_not() {
    if std::thread::available_parallelism().is_ok_and(|n_cpus| n_cpus.get() < 2) {
        return skip::skip("checks of scaling: there is one CPU");
    }
    assert_caught("nm14, control-false-sharing", "empty", "", "\\`control-false-sharing\\` does");
    assert_caught("nm14, control-unfair", "contention", "", "a thread of \\`control-unfair\\` starves");
    assert_caught("nm14, {use: control-lost-update, one_in: 1000}", "contention", "", "control-lost-update");
    assert_caught("nm14", "harness-overhead", "harness: {time_check: every-op}\n", "the settings of the harness add");
    assert_caught("nm14", "false-sharing", "harness: {padding: 0}\n", "of the plan");
    let sound = |seed| make("nm14, bcco10", "empty, read-only, contention, harness-overhead, false-sharing", "", seed);
    // Another program may take a CPU from one thread of a trial, which then looks like a thread that starves.
    (1..RUNS).map(sound).find(|done| done.code == 0).unwrap_or_else(|| sound(RUNS)).expect(0);
}
