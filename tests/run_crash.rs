//! `rare` killed at any time: nothing acknowledged is lost, nothing is done twice, nothing is left running; and two of it
//! at once.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set its stage up has failed; helpers are not known as tests"
)]

mod run_support;

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use rare::{
    plan::{Plan, TrialId},
    record::{Outcome, Trial},
    run::Observer,
    store::{
        Lock,
        lock::{Holder, MACHINE_LOCK_VARIABLE},
    },
};
use run_support::{Bench, one_at_a_time, plan, processes_of, worker};

/// Kills in all; each trial of the plan takes some milliseconds, so that a round of 40 sees several.
const KILLS: u32 = 200;

/// Seed of the times of the kills.
const SEED: u64 = 20_260_102;

fn forty_trials() -> Plan {
    plan(&[("noop", 100), ("mutex-btree", 100), ("mutex-btree", 101), ("noop", 101)], 10)
}

/// Acknowledges each trial on standard output, as a user's terminal would show it.
struct Acknowledge;

impl Observer for Acknowledge {
    fn started(&mut self, _trial: TrialId, _position: u32) {}

    fn finished(&mut self, record: &Trial) {
        println!("\nfinished {}", record.trial);
        std::io::stdout().flush().unwrap();
    }
}

/// The side of `rare`: continues the run in the folder that `RARE_DRIVER` names, under its locks.
#[test]
fn driver() {
    let Some(reports) = std::env::var_os("RARE_DRIVER") else { return };
    let bench = Bench::at(Path::new(&reports), forty_trials());
    let holder = Holder::this_process("the driver", bench.plan_folder.short(), "2026-01-02T03:04:05Z");
    let locks = Lock::machine(&holder).and_then(|machine| Ok((machine, bench.plan_folder.lock(&holder)?)));
    let _locks = match locks {
        Ok(locks) => locks,
        Err(error) => {
            println!("\nlocked: {error}");
            return;
        }
    };
    let summary = bench.execute(&worker(), &mut Acknowledge, |_| ()).unwrap();
    println!("\nsummary {} {}", summary.n_executed, summary.n_missing);
}

fn start(reports: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "driver", "--nocapture", "--test-threads=1"])
        .env("RARE_DRIVER", reports)
        .env(MACHINE_LOCK_VARIABLE, reports.join("machine.lock"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Returns the trials that a dead driver had acknowledged. A line that the kill cut short acknowledges nothing.
fn acknowledged(child: &mut Child) -> Vec<TrialId> {
    let mut output = String::new();
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    output
        .split_inclusive('\n')
        .filter_map(|line| line.strip_prefix("finished ")?.strip_suffix('\n'))
        .map(|trial| trial.parse().unwrap())
        .collect()
}

/// SplitMix64: the times of the kills must not need a library.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[test]
fn two_hundred_kills_lose_and_repeat_nothing() {
    let _guard = one_at_a_time();
    let mut state = SEED;
    let mut kills = 0;
    let mut rounds = 0;
    while kills < KILLS {
        rounds += 1;
        kills += round(&mut state, KILLS - kills);
    }
    eprintln!("{kills} kills in {rounds} rounds of 40 trials, seed {SEED}");
}

/// Runs the plan to its end under at most `kills` kills; returns how many there were.
fn round(state: &mut u64, kills: u32) -> u32 {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::at(folder.path(), forty_trials());
    let mut said: BTreeSet<TrialId> = BTreeSet::new();
    let mut n_killed = 0;
    loop {
        let mut child = start(folder.path());
        let mut killed = false;
        if n_killed < kills {
            sleep(Duration::from_micros(next(state) % 120_000));
            // It may have come to its end by itself.
            killed = child.try_wait().unwrap().is_none();
            child.kill().unwrap();
        }
        let status = child.wait().unwrap();
        for trial in acknowledged(&mut child) {
            assert!(said.insert(trial), "{trial} was acknowledged twice; seed {SEED}, kill {n_killed}");
        }
        if !bench.plan_folder.runs().unwrap().is_empty() {
            check_journal(&bench, &mut said);
        }
        if !killed {
            assert!(status.success(), "{status}");
            break;
        }
        n_killed += 1;
    }
    assert_eq!(bench.plan_folder.runs().unwrap().len(), 1);
    let trials: Vec<TrialId> = bench.records().iter().map(|record| record.trial).collect();
    assert_eq!(trials, bench.plan.trials().collect::<Vec<_>>(), "exactly the forty, in order; seed {SEED}");
    assert!(bench.records().iter().all(|record| matches!(record.outcome, Outcome::Replied(_))));
    assert_eq!(bench.plan_folder.verify().unwrap().faults, []);
    assert_eq!(processes_of(env!("CARGO_BIN_EXE_rare-worker")), [] as [String; 0]);
    n_killed
}

/// Everything acknowledged is in the journal, at most one more is, and a torn line hides nothing.
fn check_journal(bench: &Bench, said: &mut BTreeSet<TrialId>) {
    let run = bench.plan_folder.runs().unwrap().remove(0);
    let recorded: BTreeSet<TrialId> = run.read().unwrap().trials.iter().map(|record| record.trial).collect();
    let lost: Vec<&TrialId> = said.difference(&recorded).collect();
    assert!(lost.is_empty(), "{lost:?} were acknowledged and lost; seed {SEED}");
    let unsaid: Vec<TrialId> = recorded.difference(said).copied().collect();
    assert!(unsaid.len() <= 1, "{unsaid:?} are recorded and were not acknowledged");
    // The kill came between the record and its acknowledgement: from now on it must not be run again.
    said.extend(unsaid);
}

#[test]
fn a_second_run_is_told_the_first_at_once() {
    let _guard = one_at_a_time();
    let folder = tempfile::tempdir().unwrap();
    let mut first = start(folder.path());
    let mut lines = BufReader::new(first.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("finished")));
    let begin = Instant::now();
    let second = start(folder.path()).wait_with_output().unwrap();
    let second = String::from_utf8(second.stdout).unwrap();
    let expected = format!("is in use by process {} (`the driver`, plan ", first.id());
    assert!(second.contains("\nlocked: this machine") && second.contains(&expected), "{second}");
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    assert!(lines.any(|line| line == "summary 40 0"));
    assert!(first.wait().unwrap().success());
}
