//! Runs of real workers: what surrounds them, what is resumed, what stops a run, and what is never mixed.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set its stage up has failed; helpers are not known as tests"
)]

mod run_support;

use std::{
    fs,
    io::Read,
    os::fd::{FromRawFd, OwnedFd},
    path::Path,
    process,
    time::{Duration, Instant},
};

use rare::{
    plan::{Plan, TrialId},
    record::{FailureClass, Outcome, Trial},
    run::{Identity, Observer, ResolveError, RunError, Stop, Worker, choose::choose, resolve},
    spec::value::{Allocator, Parameter, Pinning, Prefill, StructureUse, Threads, Value},
    units::{BasisPoints, Bytes, Nanos},
};
use rare_workloads::protocol::{Length, REPLY_FD, Request, frame::encode_refusal};
use run_support::{Bench, Told, host, one_at_a_time, plan, stub, worker};
use rustix::process::{Signal, getpgid, getpid, getppid, getpriority_process, kill_process};

/// The worker's side: refuses, and tells in the refusal what surrounds it.
#[test]
fn telling_worker() {
    if std::env::var_os("RARE_STUB").is_none() {
        return;
    }
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).unwrap();
    let request: Request = serde_json::from_slice(&bytes).unwrap();
    println!("noise");
    if request.structure == "interrupts" {
        kill_process(getppid().unwrap(), Signal::TERM).unwrap();
        std::thread::sleep(Duration::from_secs(1000));
    }
    // SAFETY: the worker's protocol gives this descriptor to the process.
    let mut reply = fs::File::from(unsafe { OwnedFd::from_raw_fd(REPLY_FD) });
    std::io::Write::write_all(&mut reply, &encode_refusal(&surroundings())).unwrap();
    process::exit(0);
}

fn surroundings() -> String {
    let environ = fs::read_to_string("/proc/self/environ").unwrap();
    let mut names: Vec<&str> = environ.split_terminator('\0').filter_map(|entry| entry.split('=').next()).collect();
    names.sort_unstable();
    let padding = std::env::var("RARE_PADDING").unwrap().len();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let thp = status.lines().find_map(|line| line.strip_prefix("THP_enabled:")).unwrap_or("unknown").trim();
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core")).unwrap().split_whitespace().nth(4).unwrap();
    let mut fds: Vec<i32> = fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().unwrap().parse().ok())
        .collect();
    fds.sort_unstable();
    // The last one is that of the listing itself.
    fds.pop();
    format!(
        "names {names:?}; padding {padding}; folder {}; leads its group {}; nice {}; personality {}; thp {thp}; core {core}; \
         oom {}; descriptors {fds:?}",
        std::env::current_dir().unwrap().display(),
        getpgid(None).unwrap() == getpid(),
        getpriority_process(None).unwrap(),
        fs::read_to_string("/proc/self/personality").unwrap().trim(),
        fs::read_to_string("/proc/self/oom_score_adj").unwrap().trim(),
    )
}

/// Replaces the only value of a parameter.
fn with(mut plan: Plan, parameter: Parameter, value: Value) -> Plan {
    plan.values[parameter as usize] = vec![value];
    plan
}

fn detail(record: &Trial) -> (FailureClass, &str) {
    match &record.outcome {
        Outcome::Failed { class, detail, .. } => (*class, detail),
        Outcome::Replied(reply) => panic!("{reply:?}"),
    }
}

#[test]
fn a_worker_gets_exactly_the_surroundings_of_its_cell() {
    let _guard = one_at_a_time();
    // A descriptor that `rare` was itself started with must not reach the worker.
    let leaked = fs::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
    let check = |plan: Plan, expected: &str| {
        let bench = Bench::new(plan);
        let worker = stub(&bench.reports, "telling_worker", "1");
        bench.execute(&worker, &mut Told::default(), |_| ()).unwrap();
        let records = bench.records();
        let (class, told) = detail(&records[0]);
        assert_eq!((class, told), (FailureClass::Refused, expected));
        // What it printed is kept as well.
        let run = bench.plan_folder.runs().unwrap().remove(0);
        let output = fs::read_to_string(run.path().join("artifacts/measure-0-0-0.txt")).unwrap();
        assert!(output.starts_with("--- standard output\n") && output.contains("noise"), "{output}");
    };
    // The shell that starts the stub adds PWD and the stub's own mark.
    let names = r#"names ["PWD", "RARE_ALLOCATOR", "RARE_PADDING", "RARE_STUB"]"#;
    let rest = "core 0; oom 1000; descriptors [0, 1, 2, 3]";
    let noop = || plan(&[("noop", 100)], 1);
    check(
        noop(),
        &format!("{names}; padding 0; folder /; leads its group true; nice 0; personality 00000000; thp 1; {rest}"),
    );
    let mut other = with(noop(), Parameter::EnvironmentPadding, Value::Bytes(Bytes(1001)));
    other = with(other, Parameter::Priority, Value::Nice(5));
    other = with(other, Parameter::Aslr, Value::Word("off"));
    other = with(other, Parameter::HugePages, Value::Word("never"));
    check(
        other,
        &format!("{names}; padding 1001; folder /; leads its group true; nice 5; personality 00040000; thp 0; {rest}"),
    );
}

#[test]
fn what_is_recorded_is_not_run_again() {
    let _guard = one_at_a_time();
    let bench = Bench::new(plan(&[("noop", 100), ("noop", 101)], 3));
    let mut told = Told::default();
    // The budget is met by the second block: 2 trials take at least 2 ms.
    let first = bench.execute(&worker(), &mut told, |job| job.budget = Some(Nanos(3_000_000))).unwrap();
    assert_eq!((first.n_executed, first.n_missing, first.stop), (2, 4, Stop::Budget));
    let second = bench.execute(&worker(), &mut told, |_| ()).unwrap();
    assert_eq!((second.n_executed, second.n_skipped, second.n_missing), (4, 2, 0));
    assert_eq!(second.stop, Stop::Complete);
    let third = bench.execute(&worker(), &mut told, |job| job.retry_failed = true).unwrap();
    assert_eq!((third.n_executed, third.n_skipped), (0, 6));

    let planned: Vec<TrialId> = bench.plan.trials().collect();
    assert_eq!(told.started, planned);
    assert_eq!(told.finished, planned);
    let records = bench.records();
    assert_eq!(records.iter().map(|record| record.trial).collect::<Vec<_>>(), planned);
    for (position, record) in (0..).zip(&records) {
        assert_eq!((record.position, record.attempt), (position, 0));
        let Outcome::Replied(reply) = &record.outcome else { panic!("{:?}", record.outcome) };
        assert!(reply.threads[0].operations.attempted() > 0);
        assert!(record.interference.other_cpu_ns.is_some());
    }
}

#[test]
fn failed_trials_count_as_done_unless_they_are_retried() {
    let _guard = one_at_a_time();
    let bench = Bench::new(plan(&[("noop", 100), ("unknown-structure", 100)], 1));
    let run = |retry_failed| {
        let summary = bench.execute(&worker(), &mut Told::default(), |job| job.retry_failed = retry_failed).unwrap();
        (summary.n_executed, summary.n_failed, summary.n_skipped, summary.n_missing)
    };
    assert_eq!(run(false), (2, 1, 0, 0));
    assert_eq!(run(false), (0, 0, 2, 0));
    assert_eq!(run(true), (1, 1, 1, 0));
    let records = bench.records();
    let attempts: Vec<(u32, u32)> = records.iter().map(|record| (record.trial.cell, record.attempt)).collect();
    assert_eq!(attempts, [(0, 0), (1, 0), (1, 1)]);
    assert!(detail(&records[1]).1.contains("unknown-structure"));
}

#[test]
fn a_run_in_which_everything_fails_alike_stops_early() {
    let _guard = one_at_a_time();
    let bench = Bench::new(plan(&[("unknown-structure", 100)], 15));
    let summary = bench.execute(&worker(), &mut Told::default(), |_| ()).unwrap();
    assert_eq!((summary.n_executed, summary.n_missing), (10, 5));
    assert_eq!(summary.stop, Stop::Hopeless(FailureClass::Refused));
    // One success shows that it is not the machine.
    let bench = Bench::new(plan(&[("noop", 100), ("unknown-structure", 100)], 15));
    let summary = bench.execute(&worker(), &mut Told::default(), |_| ()).unwrap();
    assert_eq!((summary.n_executed, summary.n_failed, summary.stop), (30, 15, Stop::Complete));
}

#[test]
fn a_worker_that_cannot_be_started_fails_its_trial() {
    let _guard = one_at_a_time();
    let bench = Bench::new(plan(&[("noop", 100)], 1));
    let worker = Worker { path: "/nonexistent/worker".into(), sha256: "00".repeat(32) };
    bench.execute(&worker, &mut Told::default(), |_| ()).unwrap();
    let records = bench.records();
    let (class, told) = detail(&records[0]);
    assert_eq!(class, FailureClass::Start);
    assert!(told.contains("No such file"), "{told}");
}

#[test]
fn an_interrupted_trial_is_killed_at_once_and_not_recorded() {
    let _guard = one_at_a_time();
    let bench = Bench::new(plan(&[("noop", 100), ("interrupts", 100), ("noop", 101)], 1));
    let worker = stub(&bench.reports, "telling_worker", "interrupted");
    let begin = Instant::now();
    let summary = bench.execute(&worker, &mut Told::default(), |_| ()).unwrap();
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert_eq!((summary.n_executed, summary.n_missing), (1, 2));
    assert_eq!(summary.stop, Stop::Interrupted(15));
    assert_eq!(bench.records().len(), 1);
    assert_eq!(run_support::processes_of("RARE_STUB=interrupted"), [] as [String; 0]);
}

#[test]
fn trials_of_another_worker_or_machine_are_not_mixed() {
    let _guard = one_at_a_time();
    let bench = Bench::new(plan(&[("noop", 100)], 1));
    let worker = worker();
    bench.execute(&worker, &mut Told::default(), |_| ()).unwrap();
    let here = Identity { worker_sha256: worker.sha256.clone(), machine: "here".to_owned() };
    let chosen = |identity: &Identity, fresh| {
        let choice = choose(&bench.plan_folder, identity, fresh).unwrap();
        (choice.continued.is_some(), choice.stale.into_iter().map(|(_, why)| why).collect::<Vec<_>>())
    };
    assert_eq!(chosen(&here, false), (true, vec![]));
    assert_eq!(chosen(&here, true), (false, vec!["a fresh run was asked for".to_owned()]));
    let elsewhere = Identity { machine: "elsewhere".to_owned(), ..here.clone() };
    assert_eq!(chosen(&elsewhere, false), (false, vec!["it was measured on another machine (here)".to_owned()]));
    let rebuilt = Identity { worker_sha256: "ef".repeat(32), ..here.clone() };
    let why = format!("it was measured by another worker ({})", &worker.sha256[..12]);
    assert_eq!(chosen(&rebuilt, false), (false, vec![why]));

    let other = Worker { sha256: rebuilt.worker_sha256.clone(), ..worker.clone() };
    bench.execute(&other, &mut Told::default(), |_| ()).unwrap();
    assert_eq!(bench.plan_folder.runs().unwrap().len(), 2);
    assert_eq!(bench.records().len(), 1);
    // Back to the first worker, its own run is continued, although it is the older one.
    let choice = choose(&bench.plan_folder, &here, false).unwrap();
    assert_eq!(choice.continued.unwrap().id(), "20260102T030405Z-host");

    // A run whose header is damaged could be the one to continue: it is not passed over in silence.
    let path = bench.plan_folder.runs().unwrap().remove(0).journal_path();
    let mut bytes = fs::read(&path).unwrap();
    bytes[100] ^= 1;
    fs::write(&path, bytes).unwrap();
    let error = choose(&bench.plan_folder, &here, false).unwrap_err().to_string();
    assert!(error.contains("damaged at record 0, byte 0"), "{error}");
    assert_eq!(chosen(&here, true).1.len(), 2);
}

#[test]
fn symbols_become_what_this_machine_has() {
    let base =
        || with(plan(&[("noop", 1001)], 1), Parameter::Prefill, Value::Prefill(Prefill::Share(BasisPoints(5000))));
    let trial: TrialId = "measure-0-0".parse().unwrap();
    let all = with(base(), Parameter::Threads, Value::Threads(Threads::All));
    let host = run_support::host(&all);
    let request = resolve(&all, trial, &host).unwrap();
    assert_eq!(request.cpus, vec![None; host.topology.n_allowed()]);
    assert_eq!((request.prefill_keys, request.length), (500, Length::Nanos(1_000_000)));
    assert_eq!(request.seed, all.seed(trial));
    let account = resolve(&all, "account-0-0".parse().unwrap(), &host).unwrap();
    assert_eq!(account.length, Length::Accounting { operations: rare::plan::ACCOUNTING_OPERATIONS });
    assert_ne!(account.seed, request.seed);

    let check = |plan: Plan, expected: &str| {
        let error = resolve(&plan, trial, &host).unwrap_err().to_string();
        assert!(error.contains(expected), "`{error}` lacks `{expected}`");
    };
    check(with(base(), Parameter::Pinning, Value::Pinning(Pinning::Cpus(vec![4095]))), "cannot pin to CPU 4095");
    // What the worker would silently do otherwise must not get that far.
    let unsupported = "this version of rare does not support the";
    check(with(base(), Parameter::HarnessPadding, Value::Count(64)), &format!("{unsupported} harness_padding `64`"));
    check(with(base(), Parameter::NodePadding, Value::Count(32)), &format!("{unsupported} node_padding `32`"));
    check(
        with(base(), Parameter::Threads, Value::Threads(Threads::Count(u32::MAX))),
        &format!("{unsupported} threads `4294967295`"),
    );
    check(
        with(base(), Parameter::EnvironmentPadding, Value::Bytes(Bytes(1 << 40))),
        &format!("{unsupported} environment_padding `1024GiB`"),
    );
}

#[test]
fn a_plan_of_another_version_is_refused_as_a_whole() {
    let refused = |plan: Plan, expected: &[&str]| {
        let errors = rare::run::check(&plan, &host(&plan)).err().unwrap_or_default();
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    };
    refused(plan(&[("noop", 100), ("nm14", 100)], 1), &[]);
    refused(
        plan(&[("nm14", 100), ("bst99", 100), ("bst99", 200)], 1),
        &["this version of rare has no structure `bst99`"],
    );
    let noop = StructureUse { name: "noop".into(), label: "n".into(), parameters: [("fanout".into(), 4)].into() };
    let parameters = with(plan(&[("noop", 100)], 1), Parameter::Structure, Value::Structure(noop));
    refused(parameters, &["this version of rare cannot run `noop` with `fanout: 4`"]);
}

#[test]
fn nothing_runs_on_a_machine_that_cannot_honour_the_plan() {
    let bench = Bench::new(with(
        plan(&[("noop", 100), ("noop", 101)], 1),
        Parameter::Pinning,
        Value::Pinning(Pinning::Cpus(vec![4095])),
    ));
    let mut told = Told::default();
    let error = bench.execute(&worker(), &mut told, |_| ()).unwrap_err();
    let RunError::Resolve(errors) = error else { panic!("{error}") };
    assert_eq!(errors.len(), 1, "each mistake once, not once a cell");
    assert!(told.started.is_empty() && bench.records().is_empty());

    let library = Value::Allocator(Allocator::Preload("/etc/hostname".to_owned()));
    let preload = with(plan(&[("noop", 100)], 1), Parameter::Allocator, library);
    let errors = rare::run::Host::new(&preload, bench.host.topology.clone()).unwrap_err();
    assert!(matches!(errors[..], [ResolveError::Preload(_)]), "{errors:?}");
}

#[test]
fn a_full_disk_stops_the_run_and_loses_nothing_acknowledged() {
    let _guard = one_at_a_time();
    let folder = tempfile::tempdir().unwrap();
    let Some(_mount) = run_support::Mount::tmpfs(folder.path(), "size=64k") else { return };
    let bench = Bench::at(folder.path(), plan(&[("noop", 100)], 200));
    let mut told = Told::default();
    let error = bench.execute(&worker(), &mut told, |_| ()).unwrap_err();
    assert!(matches!(error, RunError::Store(_)), "{error}");
    let recorded: Vec<TrialId> = bench.records().iter().map(|record| record.trial).collect();
    assert_eq!(recorded, told.finished);
    assert!(recorded.len() > 5);
    assert_eq!(bench.plan_folder.verify().unwrap().faults, []);
}

/// A trial costs little besides itself. The median over many, because other programs run on this machine.
#[test]
fn a_trial_costs_little_besides_itself() {
    struct Stamps(Vec<Instant>);
    impl Observer for Stamps {
        fn started(&mut self, _: TrialId, _: u32) {
            self.0.push(Instant::now());
        }
        fn finished(&mut self, _: &Trial) {}
    }
    let _guard = one_at_a_time();
    let bench = Bench::new(plan(&[("noop", 100)], 60));
    let mut stamps = Stamps(Vec::new());
    bench.execute(&worker(), &mut stamps, |_| ()).unwrap();
    let mut costs: Vec<Duration> = stamps.0.windows(2).map(|pair| pair[1] - pair[0]).collect();
    costs.sort();
    let median = costs[costs.len() / 2].saturating_sub(Duration::from_millis(1));
    eprintln!(
        "median cost of a trial besides its window: {median:?}, from {:?} to {:?}",
        costs[0],
        costs[costs.len() - 1]
    );
    // The target of an idle machine is 10 ms; tests also run beside a build.
    assert!(median < Duration::from_millis(50), "{median:?}");
}

#[test]
fn the_worker_of_this_build_is_found() {
    let _guard = one_at_a_time();
    let located = Worker::locate(&mut |text| panic!("{text}")).unwrap();
    assert_eq!(located, worker());
    assert!(Path::new(&located.path).is_absolute());
}
