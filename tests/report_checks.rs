//! Each check with a specimen that fires it and one that leaves it silent; each law excludes its trial.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

mod report_common;

use rare::{
    plan::{BlockKind, TrialId},
    record::{FailureClass, Outcome},
    spec::{
        model::Condition,
        value::{Parameter, Value},
    },
    stats::{Answer, Law, Standing},
    verdict::{Decision, Grade, Row, Verdict, checks, claims, judge},
};
use rare_workloads::protocol::{Preload, Reply, Sample};
use report_common::{Case, SMALL, Shape, USUAL};

fn verdict(case: &Case, check: &str) -> Verdict {
    let summary = case.summary();
    judge(&case.evidence(&summary)).into_iter().find(|verdict| verdict.info.name == check).unwrap()
}

/// Spoils the reply of one timed trial and returns what the check says of it.
#[track_caller]
fn fires(check: &str, grade: Grade, spoil: impl FnOnce(&mut Reply)) -> Vec<Row> {
    let mut case = Case::new(&SMALL);
    let before = verdict(&case, check);
    assert_eq!((before.grade, before.rows.len()), (Grade::Pass, 0), "silent on a sound run: {before:?}");
    spoil(case.reply(BlockKind::Measure));
    let after = verdict(&case, check);
    assert_eq!(after.grade, grade, "{after:?}");
    assert!(!after.rows.is_empty() && !after.summary.is_empty());
    after.rows
}

/// Spoils the reply of one timed trial and asserts that the law alone excludes it from every number.
#[track_caller]
fn excludes(law: Law, spoil: impl FnOnce(&mut Reply)) {
    let mut case = Case::new(&SMALL);
    let n_counted = case.summary().n_standing(Standing::Counted);
    spoil(case.reply(BlockKind::Measure));
    let summary = case.summary();
    let excluded: Vec<_> = summary.trials.iter().filter(|trial| trial.standing == Standing::Excluded).collect();
    assert_eq!(excluded.len(), 1);
    assert!(excluded[0].faults.iter().all(|fault| fault.law == law), "{:?}", excluded[0].faults);
    assert_eq!(summary.n_standing(Standing::Counted), n_counted - 1);
    let values: usize = summary.cells.iter().map(|cell| cell.values.len()).sum();
    assert_eq!(values, n_counted - 1);
    assert_eq!(summary.cells.iter().map(|cell| cell.n_excluded).sum::<usize>(), 1);
}

#[test]
fn registry_is_whole_and_named_uniquely() {
    let mut names: Vec<&str> = checks::ALL.iter().map(|check| check.info().name).collect();
    let n_names = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), n_names);
    // Every file beside the registry is a check that is registered.
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/verdict/checks")).unwrap();
    let n_files = files.filter(|file| file.as_ref().unwrap().file_name() != "mod.rs").count();
    assert_eq!(n_files, checks::ALL.len());
    for check in checks::ALL {
        let info = check.info();
        for text in [info.title, info.rule, info.threshold, info.source, info.reason, info.remedy] {
            assert!(text.len() > 5, "{} says too little", info.name);
        }
    }
}

#[test]
fn checksum_fires_on_a_lost_key_a_wrong_sum_and_a_broken_invariant() {
    let rows = fires("checksum", Grade::Fail, |reply| reply.audit_after.size -= 1);
    assert!(rows[0].finding.contains("after the window"), "{rows:?}");
    fires("checksum", Grade::Fail, |reply| reply.audit_after.key_sum ^= 1);
    fires("checksum", Grade::Fail, |reply| reply.audit_before.size += 1);
    fires("checksum", Grade::Fail, |reply| reply.audit_after.violations.push("I1: keys out of order".to_owned()));
    fires("checksum", Grade::Fail, |reply| reply.threads[0].operations.insert.effective += 1_000_000_000_000);
    excludes(Law::Checksum, |reply| reply.audit_after.size -= 1);
}

#[test]
fn prefill_fires_on_a_missed_target_and_an_idle_thread() {
    fires("prefill", Grade::Fail, |reply| reply.prefill.per_thread[0] -= 1);
    fires("prefill", Grade::Fail, |reply| {
        let rest = reply.prefill.per_thread.pop().unwrap();
        reply.prefill.per_thread[0] += rest;
    });
    excludes(Law::Prefill, |reply| reply.prefill.target += 1);
    let mut case = Case::new(&Shape { key_ranges: &[1_000_000], ..SMALL });
    let prefill = &mut case.reply(BlockKind::Measure).prefill;
    prefill.per_thread = vec![prefill.target, 0];
    assert_eq!(verdict(&case, "prefill").grade, Grade::Warn);
}

#[test]
fn pinning_fires_on_a_wider_mask_a_strayed_thread_and_a_shared_cpu() {
    fires("pinning", Grade::Fail, |reply| reply.threads[0].cpus_allowed = vec![0, 1]);
    fires("pinning", Grade::Fail, |reply| reply.threads[1].cpu_at_end = 0);
    excludes(Law::Pinning, |reply| reply.threads[1].cpu_at_start = 7);
    let mut case = Case::new(&SMALL);
    let trial = &mut case.trials[0];
    trial.request.cpus = vec![Some(0), Some(0)];
    if let Outcome::Replied(reply) = &mut trial.outcome {
        for thread in &mut reply.threads {
            (thread.cpus_allowed, thread.cpu_at_start, thread.cpu_at_end) = (vec![0], 0, 0);
        }
    }
    let verdict = verdict(&case, "pinning");
    assert!(verdict.rows[0].finding.contains("shares CPU 0"), "{verdict:?}");
}

#[test]
fn duration_warns_and_fails_by_its_thresholds_and_keeps_the_trial() {
    // 3 s trials: 30 ms are allowed, 300 ms fail.
    fires("duration", Grade::Warn, |reply| reply.threads[0].stop_ns += 31_000_000);
    fires("duration", Grade::Fail, |reply| reply.threads[0].stop_ns += 310_000_000);
    let skewed = fires("duration", Grade::Warn, |reply| {
        reply.threads[0].start_ns += 40_000_000;
        reply.threads[0].stop_ns += 40_000_000;
    });
    assert!(skewed.iter().any(|row| row.finding.starts_with("threads start apart")), "{skewed:?}");
    let mut case = Case::new(&SMALL);
    let counted = case.summary().n_standing(Standing::Counted);
    case.reply(BlockKind::Measure).threads[0].stop_ns += 310_000_000;
    assert_eq!(case.summary().n_standing(Standing::Counted), counted);
    excludes(Law::Window, |reply| reply.threads[0].stop_ns = reply.threads[0].start_ns);
}

/// Stamps of the nominal time: the kernel and the sampler know better.
#[test]
fn work_after_a_threads_own_stop_is_noticed() {
    // The reply's CPU time is at most 1.9 ms short of the measured time; one tick of 10 ms is nobody's fault.
    let ran_on = |nanos| move |reply: &mut Reply| reply.threads[1].user_ns += nanos;
    let ran_on_row = fires("duration", Grade::Fail, ran_on(12_000_000));
    assert!(ran_on_row[0].finding.contains("thread 1: 3010."), "{ran_on_row:?}");
    excludes(Law::Window, ran_on(12_000_000));
    let mut case = Case::new(&SMALL);
    ran_on(9_000_000)(case.reply(BlockKind::Measure));
    assert_eq!(verdict(&case, "duration").grade, Grade::Pass);

    // 3 s trials: 30 ms are allowed, 300 ms fail; by their samples alone the trials stay in.
    let sampled_on = |nanos| {
        move |reply: &mut Reply| {
            let stop_ns = reply.threads.iter().map(|thread| thread.stop_ns).min().unwrap();
            reply.samples = vec![Sample { at_ns: stop_ns + nanos, operations: 1 }];
        }
    };
    let rows = fires("duration", Grade::Warn, sampled_on(31_000_000));
    assert!(rows[0].finding.contains("sampled after a thread's own stop for another 31.0 ms"), "{rows:?}");
    fires("duration", Grade::Fail, sampled_on(301_000_000));
    let mut case = Case::new(&SMALL);
    sampled_on(29_000_000)(case.reply(BlockKind::Measure));
    assert_eq!(verdict(&case, "duration").grade, Grade::Pass);
}

#[test]
fn short_trials_are_allowed_ten_milliseconds() {
    let mut case = Case::new(&SMALL);
    let short = 200_000_000;
    case.plan.values[Parameter::TrialLength as usize] = vec![Value::Duration(rare::units::Nanos(short))];
    for trial in &mut case.trials {
        if trial.trial.kind == BlockKind::Measure {
            trial.request.length = rare_workloads::protocol::Length::Nanos(short);
        }
        if let Outcome::Replied(reply) = &mut trial.outcome {
            for thread in &mut reply.threads {
                thread.stop_ns = thread.start_ns + short + 9_000_000;
                thread.user_ns = short;
            }
        }
    }
    assert_eq!(verdict(&case, "duration").grade, Grade::Pass);
}

#[test]
fn allocator_fires_on_another_name_and_an_unproven_preload() {
    fires("allocator", Grade::Fail, |reply| reply.allocator.name = "mimalloc".to_owned());
    fires("allocator", Grade::Fail, |reply| reply.allocator.evidence.clear());
    excludes(Law::Allocator, |reply| {
        reply.allocator.preload =
            Some(Preload { path: "/usr/lib/libjemalloc.so.2".to_owned(), sha256: "0".repeat(64) });
    });
}

#[test]
fn fairness_fires_on_a_starved_thread_and_warns_of_an_uneven_one() {
    let starved = |reply: &mut Reply, share: u64| {
        let operations = &mut reply.threads[1].operations;
        operations.insert.attempted = operations.insert.attempted * share / 100;
        operations.remove.attempted = operations.remove.attempted * share / 100;
    };
    fires("fairness", Grade::Fail, |reply| starved(reply, 0));
    fires("fairness", Grade::Warn, |reply| starved(reply, 40));
}

#[test]
fn identity_fires_on_a_foreign_trial_and_on_another_request() {
    let mut case = Case::new(&SMALL);
    assert_eq!(verdict(&case, "identity").grade, Grade::Pass);
    case.trials[0].request.key_range += 1;
    let fired = verdict(&case, "identity");
    assert_eq!(fired.grade, Grade::Fail);
    assert!(fired.rows[0].finding.contains("key range"), "{fired:?}");
    let mut case = Case::new(&SMALL);
    case.trials[0].trial = TrialId { kind: BlockKind::Measure, cell: 99, trial_idx: 0 };
    assert_eq!(verdict(&case, "identity").grade, Grade::Fail);
    assert_eq!(case.summary().trials[0].standing, Standing::Foreign);
    assert_eq!(case.summary().missing.len(), 1);
}

#[test]
fn without_replies_every_check_is_unknown() {
    let mut case = Case::new(&SMALL);
    case.trials.clear();
    let summary = case.summary();
    for verdict in judge(&case.evidence(&summary)) {
        assert_eq!(verdict.grade, Grade::Unknown, "{verdict:?}");
    }
    assert_eq!(summary.missing.len(), case.plan.n_trials());
}

#[test]
fn the_last_attempt_stands_and_instrumented_trials_never_count() {
    let mut case = Case::new(&SMALL);
    let retried = case.trials[0].clone();
    case.trials[0].outcome =
        Outcome::Failed { class: FailureClass::TimedOut, detail: "late".to_owned(), stderr: String::new() };
    assert_eq!(case.summary().n_standing(Standing::Failed), 1);
    case.trials.push(rare::record::Trial { attempt: 1, ..retried });
    let summary = case.summary();
    assert_eq!(summary.trials[0].standing, Standing::Superseded);
    assert_eq!(summary.trials.last().unwrap().standing, Standing::Counted);
    assert_eq!(summary.n_standing(Standing::Failed), 0);
    let n_account = case.plan.trials().filter(|trial| trial.kind == BlockKind::Account).count();
    assert_eq!(summary.n_standing(Standing::Instrumented), n_account);
    assert!(
        summary
            .trials
            .iter()
            .zip(&case.trials)
            .all(|(summary, trial)| { trial.trial.kind == BlockKind::Measure || summary.throughput.is_none() })
    );
}

#[test]
fn throughput_is_over_each_threads_own_time() {
    let mut case = Case::new(&SMALL);
    let reply = case.reply(BlockKind::Measure);
    let operations: Vec<u64> = reply.threads.iter().map(|thread| thread.operations.attempted()).collect();
    (reply.threads[0].start_ns, reply.threads[0].stop_ns) = (0, 1_000_000_000);
    (reply.threads[1].start_ns, reply.threads[1].stop_ns) = (500_000_000, 2_500_000_000);
    let expected = operations[0] as f64 + operations[1] as f64 / 2.0;
    let throughput = rare::stats::throughput::throughput(reply).unwrap();
    assert!((throughput / expected - 1.0).abs() < 1e-12, "{throughput} instead of {expected}");
}

fn decide(case: &Case) -> (Decision, Vec<Decision>, String) {
    let summary = case.summary();
    let evidence = case.evidence(&summary);
    let decided = claims::decide(&evidence).remove(0);
    (decided.decision, decided.pairs.iter().map(|pair| pair.decision).collect(), decided.reason)
}

#[test]
fn claims_hold_fail_and_flip() {
    let claimed = |faster, slower, by, scope| {
        let mut case = Case::new(&USUAL);
        case.claim(faster, slower, by, scope);
        decide(&case)
    };
    assert_eq!(claimed("nm14", "crossbeam-skiplist", 0, Vec::new()).0, Decision::Holds);
    assert_eq!(claimed("crossbeam-skiplist", "nm14", 0, Vec::new()).0, Decision::Fails);
    let (flipping, pairs, reason) = claimed("nm14", "harris01", 0, Vec::new());
    assert_eq!(flipping, Decision::Fails);
    assert_eq!(pairs.iter().filter(|&&pair| pair == Decision::Holds).count(), 2);
    assert!(reason.contains("it holds in 2"), "{reason}");
    let large = || vec![(Parameter::KeyRange, vec![Condition::Over(1000)])];
    assert_eq!(claimed("nm14", "harris01", 0, large()).0, Decision::Holds);
    // Twice as fast holds on many keys, a thousand times does not.
    assert_eq!(claimed("nm14", "harris01", 10_000, large()).0, Decision::Holds);
    assert_eq!(claimed("nm14", "harris01", 10_000_000, large()).0, Decision::Fails);
    let nowhere = vec![(Parameter::KeyRange, vec![Condition::Is(Value::Count(7))])];
    assert_eq!(claimed("nm14", "harris01", 0, nowhere).0, Decision::Undecided);
}

#[test]
fn claims_stay_undecided_with_too_few_trials() {
    let mut case = Case::new(&Shape { n_trials: 3, ..SMALL });
    case.claim("nm14", "mutex-btree", 0, Vec::new());
    let (decision, _, reason) = decide(&case);
    assert_eq!(decision, Decision::Undecided);
    assert!(reason.contains("cannot decide"), "{reason}");
}

#[test]
fn comparisons_stay_within_a_configuration() {
    let case = Case::new(&USUAL);
    let summary = case.summary();
    assert_eq!(summary.groups.len(), 4);
    assert_eq!(summary.comparisons.len(), 4 * 6);
    for comparison in &summary.comparisons {
        let (left, right) = (case.plan.cell(comparison.left), case.plan.cell(comparison.right));
        assert_ne!(left.structure(), right.structure());
        assert_eq!((left.key_range(), left.threads()), (right.key_range(), right.threads()));
        assert!(comparison.p_holm >= comparison.p);
    }
    assert!(summary.comparisons.iter().any(|comparison| comparison.answer == Answer::Slower));
}

#[test]
fn the_words_of_specs_are_the_checks_that_exist() {
    let built: Vec<&str> = rare::spec::words::names(rare::spec::words::CHECKS).collect();
    let registered: Vec<&str> = rare::verdict::checks::ALL.iter().map(|check| check.info().name).collect();
    assert_eq!(built, registered);
}
