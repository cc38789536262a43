//! The checks that need no trials of their own: each with faults that it must see, and sound data on which it is silent.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

mod report_common;

use rare::{
    plan::BlockKind,
    record::{Interference, Outcome, Trial},
    spec::value::{Parameter, Value},
    stats::stream::{self, Draw, Promise},
    verdict::{Grade, Verdict, checks::Subject, judge},
};
use rare_workloads::{
    harness::{stream::draw_into, window::Operation},
    keys::Permutation,
    protocol::{Distribution, Fault, Harness, Mix, Reclamation, Reply},
    rng::{Bound, Xoshiro256PlusPlus},
};
use report_common::{Case, SMALL, Shape};

/// Judges by one check, whether or not the plan asks for it.
fn verdict(case: &mut Case, check: &str) -> Verdict {
    case.plan.checks = vec![check.to_owned()];
    let summary = case.summary();
    judge(&case.evidence(&summary)).remove(0)
}

fn timed(case: &mut Case) -> impl Iterator<Item = &mut Trial> {
    case.trials.iter_mut().filter(|trial| trial.trial.kind == BlockKind::Measure)
}

fn reply(trial: &mut Trial) -> &mut Reply {
    match &mut trial.outcome {
        Outcome::Replied(reply) => reply,
        Outcome::Failed { .. } => unreachable!("made-up trials reply"),
    }
}

/// Multiplies the operations of a trial.
fn scale(trial: &mut Trial, factor: f64) {
    for thread in &mut reply(trial).threads {
        let operations = &mut thread.operations;
        for tally in [&mut operations.insert, &mut operations.remove] {
            tally.attempted = (tally.attempted as f64 * factor) as u64;
        }
    }
}

#[test]
fn variance_names_the_cell_and_its_farthest_trial() {
    let mut case = Case::new(&SMALL);
    let sound = verdict(&mut case, "variance");
    assert_eq!((sound.grade, sound.rows.len()), (Grade::Pass, 0), "{sound:?}");
    assert!(sound.summary.contains("two modes not judged"), "7 trials a cell: {}", sound.summary);
    let far = timed(&mut case).find(|trial| trial.trial.cell == 1).unwrap();
    // Halved attempts would leave more effective operations than attempts.
    scale(far, 0.55);
    let id = far.trial;
    let fired = verdict(&mut case, "variance");
    assert_eq!(fired.grade, Grade::Warn, "{fired:?}");
    assert!(matches!(fired.rows[0].subject, Subject::Record { trial, .. } if trial == id), "{fired:?}");
    assert!(fired.summary.contains("mutex-btree"), "{}", fired.summary);
}

#[test]
fn variance_of_single_trials_is_unknown() {
    let mut case = Case::new(&Shape { n_trials: 1, ..SMALL });
    let verdict = verdict(&mut case, "variance");
    assert_eq!(verdict.grade, Grade::Unknown, "{verdict:?}");
    assert!(verdict.summary.contains("no spread"), "{verdict:?}");
}

#[test]
fn variance_sees_the_machine_slow_down() {
    let mut case = Case::new(&Shape { n_trials: 20, ..SMALL });
    let n = case.trials.len() as f64;
    for (position, trial) in
        case.trials.iter_mut().enumerate().filter(|(_, trial)| trial.trial.kind == BlockKind::Measure)
    {
        scale(trial, 1.0 - 0.15 * position as f64 / n);
    }
    let fired = verdict(&mut case, "variance");
    assert_eq!(fired.grade, Grade::Warn, "{fired:?}");
    assert!(
        fired.rows.iter().any(|row| row.subject == Subject::Run && row.finding.contains("changed by -")),
        "{fired:?}"
    );
}

/// Disturbs one timed trial and returns the grade with the findings.
fn disturbed(disturb: impl FnOnce(&mut Trial)) -> (Grade, String) {
    let mut case = Case::new(&SMALL);
    for trial in timed(&mut case) {
        reply(trial).threads.iter_mut().for_each(|thread| thread.voluntary_switches = 0);
    }
    let sound = verdict(&mut case, "interference");
    assert_eq!((sound.grade, sound.rows.len()), (Grade::Pass, 0), "{sound:?}");
    disturb(timed(&mut case).nth(3).unwrap());
    let fired = verdict(&mut case, "interference");
    let counted = case.summary().cells.iter().map(|cell| cell.values.len()).sum::<usize>();
    assert_eq!(counted, 14, "no trial is left out");
    (fired.grade, fired.rows.iter().map(|row| row.finding.clone()).collect::<Vec<_>>().join("; "))
}

#[test]
fn interference_grades_each_disturbance() {
    // Trials of 3 s, on two CPUs, in 3.12 s.
    let seen = |change: fn(&mut Interference)| disturbed(|trial| change(&mut trial.interference));
    assert_eq!(seen(|seen| seen.steal_ns = Some(900_000_000)), (Grade::Pass, String::new()));
    assert_eq!(seen(|seen| seen.steal_ns = Some(1_000_000_000)).0, Grade::Warn);
    assert_eq!(seen(|seen| seen.steal_ns = Some(2_000_000_000)).0, Grade::Fail);
    assert_eq!(seen(|seen| seen.other_cpu_ns = Some(1_000_000_000)).0, Grade::Warn);
    assert_eq!(seen(|seen| seen.pinned_other_cpu_ns = Some(2_000_000_000)).0, Grade::Fail);
    // What others do on other CPUs is their own business.
    let elsewhere = seen(|seen| (seen.other_cpu_ns, seen.pinned_other_cpu_ns) = (Some(2_000_000_000), Some(0)));
    assert_eq!(elsewhere.0, Grade::Pass);
    assert_eq!(seen(|seen| seen.swapped_pages = Some(1)).0, Grade::Warn);
    assert_eq!(seen(|seen| seen.throttled = Some(2)).0, Grade::Warn);
    assert_eq!(seen(|seen| seen.device_interrupts = Some(5_000)).0, Grade::Pass);
    assert_eq!(seen(|seen| seen.device_interrupts = Some(7_000)).0, Grade::Warn);
    let late = |share: u64| disturbed(|trial| reply(trial).threads[0].user_ns = 3_000_000_000 / 100 * (100 - share));
    assert_eq!(late(10).0, Grade::Pass);
    assert!(matches!(late(20), (Grade::Warn, text) if text.contains("9 involuntary switches")));
    assert_eq!(late(40).0, Grade::Fail);
    // Of a thread that waited nobody knows why it did not run.
    let waiting = disturbed(|trial| {
        let thread = &mut reply(trial).threads[0];
        (thread.user_ns, thread.voluntary_switches) = (1_000_000_000, 500);
    });
    assert_eq!(waiting.0, Grade::Pass);
    let (grade, text) = disturbed(|trial| reply(trial).threads[1].migrations = Ok(2));
    assert_eq!(grade, Grade::Fail);
    assert!(text.contains("pinned to CPU 1, migrated 2 times"), "{text}");
}

#[test]
fn ticks_of_short_trials_are_no_interference() {
    let mut case = Case::new(&SMALL);
    for trial in timed(&mut case) {
        trial.wall = rare::units::Nanos(60_000_000);
        // Four ticks are a third of what two threads have in 60 ms.
        trial.interference =
            Interference { other_cpu_ns: Some(40_000_000), steal_ns: Some(20_000_000), ..trial.interference };
    }
    assert_eq!(verdict(&mut case, "interference").grade, Grade::Pass);
}

#[test]
fn interference_is_unknown_where_nobody_tells() {
    let mut case = Case::new(&SMALL);
    timed(&mut case).for_each(|trial| trial.interference = Interference::default());
    let untold = verdict(&mut case, "interference");
    assert_eq!(untold.grade, Grade::Unknown);
    assert!(untold.summary.contains("other processes, the hypervisor's share, swapping"), "{untold:?}");
    case.trials.clear();
    assert_eq!(verdict(&mut case, "interference").grade, Grade::Unknown);
}

#[test]
fn many_trials_at_a_low_clock_rate_warn() {
    let mut case = Case::new(&SMALL);
    let set = |case: &mut Case, n_low: usize| {
        for (idx, trial) in timed(case).enumerate() {
            trial.interference.after_khz = Some(if idx < n_low { 2_500_000 } else { 3_000_000 });
        }
    };
    set(&mut case, 0);
    assert_eq!(verdict(&mut case, "interference").grade, Grade::Pass);
    set(&mut case, 2);
    assert_eq!(verdict(&mut case, "interference").grade, Grade::Warn);
}

#[test]
fn records_of_earlier_versions_read_and_are_written_the_same() {
    let text = r#"{"other_cpu_ns":5,"steal_ns":null,"swapped_pages":0,"throttled":null}"#;
    let read: Interference = serde_json::from_str(text).unwrap();
    assert_eq!(read, Interference { other_cpu_ns: Some(5), swapped_pages: Some(0), ..Interference::default() });
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
}

/// Changes a plan of two structures in one configuration and returns the verdict.
fn apples(change: impl FnOnce(&mut Case)) -> Verdict {
    let mut case = Case::new(&Shape { structures: &["nm14", "bcco10"], ..SMALL });
    let sound = verdict(&mut case, "apples");
    assert_eq!((sound.grade, sound.rows.len()), (Grade::Pass, 0), "{sound:?}");
    change(&mut case);
    verdict(&mut case, "apples")
}

fn use_structure(case: &mut Case, name: &str) {
    let Value::Structure(structure) = &mut case.plan.values[Parameter::Structure as usize][1] else { unreachable!() };
    (structure.name, structure.label) = (name.to_owned(), name.to_owned());
    for trial in case.trials.iter_mut().filter(|trial| trial.trial.cell == 1) {
        trial.request.structure = name.to_owned();
    }
}

#[test]
fn apples_knows_unlike_semantics_and_leaks() {
    let unlike = apples(|case| use_structure(case, "dashmap"));
    assert_eq!(unlike.grade, Grade::Fail, "{unlike:?}");
    assert!(unlike.rows[0].finding.contains("unordered dictionary"), "{unlike:?}");
    let allowed = apples(|case| {
        use_structure(case, "dashmap");
        case.spec.allow = vec!["semantics"];
    });
    assert_eq!(allowed.grade, Grade::Warn, "{allowed:?}");
    let bound = apples(|case| use_structure(case, "noop"));
    assert_eq!(bound.grade, Grade::Pass, "a structure that stores nothing does not compete: {bound:?}");
    let freeing = apples(|case| use_structure(case, "mutex-btree"));
    assert_eq!(freeing.grade, Grade::Pass, "{freeing:?}");
    assert!(freeing.summary.contains("`mutex-btree` frees at once"), "{freeing:?}");
    let leaking = apples(|case| {
        use_structure(case, "mutex-btree");
        case.plan.values[Parameter::Reclamation as usize] = vec![Value::Reclamation(Reclamation::None)];
        case.trials.iter_mut().for_each(|trial| trial.request.reclamation = Reclamation::None);
    });
    assert_eq!(leaking.grade, Grade::Warn);
    assert!(leaking.rows[0].finding.contains("`nm14` leak what `mutex-btree` really free"), "{leaking:?}");
    let foreign = apples(|case| use_structure(case, "of-another-version"));
    assert_eq!(foreign.grade, Grade::Unknown, "{foreign:?}");
}

#[test]
fn apples_sees_settings_of_single_structures_and_of_the_harness() {
    let padded = apples(|case| {
        case.plan.values[Parameter::NodePadding as usize].push(Value::Count(64));
        case.plan.cells[1][Parameter::NodePadding as usize] = 1;
    });
    assert_eq!(padded.grade, Grade::Warn, "{padded:?}");
    assert!(padded.rows[0].finding.contains("never share a node padding"), "{padded:?}");
    let hidden = apples(|case| {
        use_structure(case, "occ-abtree22");
        let Value::Structure(used) = &mut case.plan.values[Parameter::Structure as usize][1] else { unreachable!() };
        used.parameters.insert("elimination".to_owned(), 1);
        for trial in case.trials.iter_mut().filter(|trial| trial.trial.cell == 1) {
            trial.request.structure_parameters.insert("elimination".to_owned(), 1);
        }
    });
    assert_eq!(hidden.grade, Grade::Warn, "{hidden:?}");
    assert!(hidden.rows[0].finding.contains("elimination 1 instead of 0"), "{hidden:?}");
    let clocked = apples(|case| case.plan.values[Parameter::TimeCheck as usize] = vec![Value::Word("every-op")]);
    assert!(clocked.rows[0].finding.contains("`harness.time_check: every-op`"), "{clocked:?}");
    let planted = apples(|case| case.trials[0].request.harness.fault = Some(Fault::LateThread));
    assert_eq!(planted.grade, Grade::Warn);
    assert!(planted.rows[0].finding.contains("late-thread"), "{planted:?}");
}

#[test]
fn apples_compares_effective_updates() {
    let weaken = |share: f64| {
        apples(|case| {
            for trial in timed(case).filter(|trial| trial.trial.cell == 1) {
                let reply = reply(trial);
                for thread in &mut reply.threads {
                    for tally in [&mut thread.operations.insert, &mut thread.operations.remove] {
                        tally.effective = (tally.effective as f64 * (1.0 - share)) as u64;
                    }
                }
                // The walk agrees with what is left, so that no law is broken.
                let gained: i64 = reply
                    .threads
                    .iter()
                    .map(|thread| thread.operations.insert.effective as i64 - thread.operations.remove.effective as i64)
                    .sum();
                reply.audit_after.size = (reply.audit_before.size as i64 + gained) as u64;
            }
        })
    };
    // Half of the operations took effect.
    assert_eq!(weaken(0.01).grade, Grade::Pass);
    assert_eq!(weaken(0.05).grade, Grade::Warn);
    assert_eq!(weaken(0.5).grade, Grade::Fail);
    let missing = apples(|case| case.trials.retain(|trial| trial.trial.cell == 0));
    assert_eq!(missing.grade, Grade::Unknown, "{missing:?}");
    let alone = verdict(&mut Case::new(&Shape { structures: &["nm14"], ..SMALL }), "apples");
    assert_eq!(alone.grade, Grade::Pass);
    assert!(alone.summary.contains("no two structures"), "{alone:?}");
}

const MIX: Mix = Mix { insert: 2_500, remove: 2_500, contains: 5_000, range: 0 };
const N_DRAWS: usize = 1 << 17;

/// Draws the stream of one thread, as a worker does.
fn sound(promise: &Promise, seed: u64, thread_idx: u32) -> Vec<Draw> {
    let mut request = Case::new(&SMALL).trials.remove(0).request;
    (request.key_range, request.distribution, request.mix) = (promise.key_range, promise.distribution, promise.mix);
    request.seed = seed;
    let mut draws = Vec::new();
    let mut take = |key, operation| {
        let kind = match operation {
            Operation::Insert => 0,
            Operation::Remove => 1,
            Operation::Contains => 2,
            Operation::Range(_) => 3,
        };
        draws.push(Draw { key, kind });
    };
    draw_into(&request, thread_idx, N_DRAWS as u64, &mut take).unwrap();
    draws
}

fn promise(key_range: u64, distribution: Distribution) -> Promise {
    Promise { key_range, distribution, mix: MIX }
}

/// Over many sound streams p-values are small as rarely as they say.
#[test]
fn p_values_of_sound_streams_are_even() {
    let rare_kinds = Mix { insert: 3, remove: 0, contains: 9_997, range: 0 };
    let uniform = |key_range| promise(key_range, Distribution::Uniform);
    let zipf = |key_range, millionths| promise(key_range, Distribution::Zipf(millionths));
    let mut all = Vec::new();
    for promise in [
        uniform(1),
        uniform(2),
        uniform(100),
        uniform(100_000),
        uniform(65_537),
        uniform(10_000_019),
        uniform(1 << 40),
        uniform(u64::MAX),
        zipf(2, 990_000),
        zipf(1_000, 500_000),
        zipf(100_000, 990_000),
        zipf(100_000, 10_000),
        zipf(3_000_000, 1_200_000),
        Promise { mix: rare_kinds, ..uniform(1_000) },
        Promise { mix: Mix { contains: Mix::WHOLE, insert: 0, remove: 0, range: 0 }, ..uniform(1_000) },
    ] {
        for seed in 0..3 {
            let streams = [sound(&promise, seed, 0), sound(&promise, seed, 1)];
            let found = streams.iter().flat_map(|draws| stream::examine(&promise, draws));
            let found = found.chain([stream::compare(&promise, &streams[0], &streams[1])]);
            for one in found {
                assert!(one.p > 1e-6, "seed {seed}, {promise:?}: {one:?}");
                all.push(one.p);
            }
        }
    }
    let n_below = |bound: f64| all.iter().filter(|&&p| p < bound).count();
    assert!(all.len() > 400, "{}", all.len());
    // Corrected p-values are at most as often small as they say; four deviations of slack.
    let due = 0.01 * all.len() as f64;
    assert!((n_below(0.01) as f64) < due + 4.0 * due.sqrt(), "{} of {}", n_below(0.01), all.len());
}

/// The smallest p-value of a stream, with its text.
fn worst(promise: &Promise, draws: &[Draw]) -> (f64, String) {
    let found = stream::examine(promise, draws).into_iter().min_by(|a, b| a.p.total_cmp(&b.p)).unwrap();
    (found.p, found.text)
}

#[track_caller]
fn is_caught(promise: &Promise, draws: &[Draw], by: &str) {
    let found = stream::examine(promise, draws);
    let hit = found.iter().find(|one| one.text.contains(by)).unwrap_or_else(|| panic!("no `{by}` in {found:?}"));
    assert!(hit.p < 1e-12, "{hit:?}");
}

/// FNV-1a over the last draw: its lowest bit alternates, and each operation takes two draws.
#[test]
fn keys_of_one_parity_are_caught() {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    let mut next = || {
        state = state
            .to_le_bytes()
            .iter()
            .fold(state, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
        state ^ (state >> 32) & !1
    };
    let mut parity = 0;
    let draws: Vec<Draw> = (0..N_DRAWS)
        .map(|_| {
            parity ^= 1;
            let word = next() & !1 | parity;
            parity ^= 1;
            Draw { key: word % 1_000, kind: if (next() & !1 | parity) >> 40 & 1 == 0 { 0 } else { 1 } }
        })
        .collect();
    let promise = Promise {
        mix: Mix { insert: 5_000, remove: 5_000, contains: 0, range: 0 },
        ..promise(1_000, Distribution::Uniform)
    };
    is_caught(&promise, &draws, "bit 0 is set in 100.00 %");
    is_caught(&promise, &draws, "500 of 1000 keys");
    // Alternating from draw to draw the bit is balanced, and still no draw of a sound generator.
    let alternating: Vec<Draw> =
        (0..).zip(sound(&promise, 1, 0)).map(|(idx, draw)| Draw { key: draw.key & !1 | idx & 1, ..draw }).collect();
    is_caught(&promise, &alternating, "lowest bits of keys correlate");
}

#[test]
fn one_draw_for_key_and_operation_is_caught() {
    let mut rng = Xoshiro256PlusPlus::new(1);
    let draws: Vec<Draw> = (0..N_DRAWS)
        .map(|_| {
            let word = rng.next_u64();
            let kind = [0, 1, 2, 2][(word >> 62) as usize];
            Draw { key: ((u128::from(word) * 1_000) >> 64) as u64, kind }
        })
        .collect();
    let promise = promise(1_000, Distribution::Uniform);
    is_caught(&promise, &draws, "the kind of operation depends");
    // By parity: even keys are inserted, odd ones removed.
    let by_parity: Vec<Draw> = sound(&promise, 1, 0)
        .into_iter()
        .map(|draw| Draw { kind: if draw.kind < 2 { (draw.key & 1) as u8 } else { 2 }, ..draw })
        .collect();
    is_caught(&promise, &by_parity, "on the parity of the key");
}

#[test]
fn faults_of_zipf_are_caught() {
    let zipf = promise(1_000, Distribution::Zipf(500_000));
    let uniform = sound(&promise(1_000, Distribution::Uniform), 1, 0);
    is_caught(&zipf, &uniform, "frequencies of ranks");
    // A draw of 53 bits over 2^64: only the first ranks are ever drawn.
    let scatter = Permutation::scatter(1_000);
    let mut rng = Xoshiro256PlusPlus::new(2);
    let few = Bound::new(39);
    let narrow: Vec<Draw> =
        uniform.iter().map(|draw| Draw { key: scatter.apply(few.draw(&mut rng)), ..*draw }).collect();
    is_caught(&zipf, &narrow, "frequencies of ranks");
    let near = promise(100_000, Distribution::Zipf(990_000));
    is_caught(&near, &sound(&promise(100_000, Distribution::Zipf(950_000)), 1, 0), "frequencies of ranks");
}

#[test]
fn other_flaws_of_streams_are_caught() {
    let promise = promise(100_000, Distribution::Uniform);
    let draws = sound(&promise, 3, 0);
    // A range that was rounded down to a power of two, and one that was cut.
    let rounded: Vec<Draw> = draws.iter().map(|draw| Draw { key: draw.key & 0xffff, ..*draw }).collect();
    is_caught(&promise, &rounded, "parts of the range");
    let outside: Vec<Draw> = draws.iter().map(|draw| Draw { key: draw.key + 10, ..*draw }).collect();
    assert_eq!(worst(&promise, &outside).0, 0.0);
    // Each key once, in a random order: too even to be drawn.
    let each_once = Permutation::new(100_000, 7);
    let without_replacement: Vec<Draw> =
        (0..100_000).map(|idx| Draw { key: each_once.apply(idx), kind: draws[idx as usize].kind }).collect();
    is_caught(&promise, &without_replacement, "100000 of 100000 keys were drawn");
    // Neighbours of the last key are favoured.
    let mut last = 0;
    let walking: Vec<Draw> = draws
        .iter()
        .enumerate()
        .map(|(idx, draw)| {
            last = if idx % 8 == 0 { (last + 1) % 100_000 } else { draw.key };
            Draw { key: last, ..*draw }
        })
        .collect();
    is_caught(&promise, &walking, "keys correlate");
    let other_mix = Promise { mix: Mix { insert: 2_400, remove: 2_600, contains: 5_000, range: 0 }, ..promise };
    is_caught(&other_mix, &draws, "of the draws are");
    let no_removes = Promise { mix: Mix { insert: 5_000, remove: 0, contains: 5_000, range: 0 }, ..promise };
    assert_eq!(worst(&no_removes, &draws).0, 0.0);
    assert!(stream::compare(&promise, &draws, &draws).p < 1e-12, "two threads with one stream");
}

#[test]
fn the_streams_of_a_plan_pass_and_another_generator_is_unknown() {
    let mut case = Case::new(&SMALL);
    // No trial is needed.
    case.trials.clear();
    let sound = verdict(&mut case, "generator");
    assert_eq!(sound.grade, Grade::Pass, "{sound:?}");
    assert!(sound.summary.contains("2 streams"), "two threads in one setting: {sound:?}");
    case.plan.values[Parameter::KeyRange as usize] = (1..=20).map(|n| Value::Count(n * 50)).collect();
    let cell = case.plan.cells[0];
    case.plan.cells = (0..20)
        .map(|range| {
            let mut cell = cell;
            cell[Parameter::KeyRange as usize] = range;
            cell
        })
        .collect();
    let many = verdict(&mut case, "generator");
    assert_eq!(many.grade, Grade::Pass, "{many:?}");
    assert!(many.summary.contains("8 further settings were not drawn"), "{many:?}");
    let mut case = Case::new(&SMALL);
    case.plan.values[Parameter::Generator as usize] = vec![Value::Word("another")];
    assert_eq!(verdict(&mut case, "generator").grade, Grade::Unknown);
    case.plan.values[Parameter::Generator as usize] = vec![Value::Word("fnv1a-alternating")];
    let faulty = verdict(&mut case, "generator");
    assert_eq!(faulty.grade, Grade::Fail, "{faulty:?}");
    assert!(faulty.rows.iter().any(|row| row.finding.contains("bit 0 is set in")), "{faulty:?}");
    assert!(faulty.rows.iter().any(|row| row.finding.contains("500 of 1000 keys were drawn")), "{faulty:?}");
}

#[test]
fn apples_leaves_alone_what_probes_plant_on_purpose() {
    let mut case = Case::new(&SMALL);
    let before = verdict(&mut case, "apples");
    case.ask("harness-overhead", |_| 1e8);
    let planted = case.trials.iter().filter(|trial| trial.request.harness != Harness::default());
    assert!(planted.map(|trial| trial.trial.cell as usize).max() >= Some(case.plan.cells.len()), "beyond the cells");
    let after = verdict(&mut case, "apples");
    assert_eq!((after.grade, after.rows), (before.grade, before.rows));
}
