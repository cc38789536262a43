//! Valgrind and perf themselves, started with the arguments of `tools` on the real worker, and what they write read back.
//! Skipped, and said so in one line, where they are not installed or not permitted.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

mod skip;

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use rare::{
    record::watched::{Blocks, FindingClass},
    run::instruments,
    tools::{
        callgrind::{self, CallgrindError},
        lines::Lines,
        memcheck, perf,
        profile::{self, Program},
        valgrind::{Cache, Caches, SUPPRESSIONS},
    },
};
use rare_workloads::{
    nodes::Nodes,
    protocol::{
        ALLOCATOR_VARIABLE, AllocatorRequest, Distribution, FORMAT, Harness, Length, Mix, Reclamation, Reply, Request,
        frame::{self, Frame},
    },
};
use rustix::fs::{CWD, Mode, mkfifoat};

const WORKER: &str = env!("CARGO_BIN_EXE_rare-worker");

fn request(structure: &str, length: Length) -> Request {
    Request {
        format: FORMAT,
        structure: structure.to_owned(),
        structure_parameters: BTreeMap::new(),
        reclamation: Reclamation::Epoch,
        allocator: AllocatorRequest { name: "system".to_owned(), preload: None },
        cpus: vec![None, None],
        key_range: 1_000,
        mix: Mix { insert: 2_500, remove: 2_500, contains: 5_000, range: 0 },
        range_keys: None,
        distribution: Distribution::Uniform,
        prefill_keys: 500,
        length,
        seed: 42,
        nice: 0,
        nodes: Nodes::PLAIN,
        harness: Harness::default(),
        watch: None,
    }
}

/// Returns the command that runs a worker under a tool, with its request and its reply as files in `folder`.
fn command(folder: &Path, prefix: &[String], request: &Request) -> Command {
    fs::write(folder.join("request"), serde_json::to_vec(request).unwrap()).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", r#"exec "$@" <"$FOLDER/request" 3>"$FOLDER/reply""#, "sh"]).args(prefix).arg(WORKER);
    command.env_clear().env("FOLDER", folder).env(ALLOCATOR_VARIABLE, "system").env("LC_ALL", "C");
    command.stdout(Stdio::null()).stderr(File::create(folder.join("stderr")).unwrap());
    command
}

fn reply(folder: &Path) -> Reply {
    let said = fs::read_to_string(folder.join("stderr")).unwrap();
    match frame::decode(&fs::read(folder.join("reply")).unwrap()) {
        Ok(Frame::Reply(reply)) => *reply,
        other => panic!("{other:?}: {said}"),
    }
}

#[test]
fn memcheck_finds_what_the_worker_says_it_leaks() {
    let Ok(valgrind) = instruments::find_valgrind() else {
        return skip::skip("valgrind is not installed, so memcheck is not run");
    };
    let folder = tempfile::tempdir().unwrap();
    // In names of files valgrind would expand what follows a percent sign.
    let output = folder.path().join("50%p.xml").to_str().unwrap().to_owned();
    let suppressions = folder.path().join("rare.supp").to_str().unwrap().to_owned();
    fs::write(&suppressions, SUPPRESSIONS).unwrap();
    let prefix = valgrind.memcheck(&output, &suppressions, 2);
    for (structure, leaks) in [("control-leak", true), ("nm14", false)] {
        let request = request(structure, Length::Accounting { operations: 1_000 });
        command(folder.path(), &prefix, &request).status().unwrap();
        let after_drop = reply(folder.path()).accounting.unwrap().after_drop;
        let seen = memcheck::read(&fs::read(&output).unwrap()).unwrap();
        assert_eq!(seen.version.as_deref(), Some(valgrind.version.as_str()));
        assert_eq!(
            seen.definite,
            Blocks { bytes: after_drop.bytes.unsigned_abs(), blocks: after_drop.blocks.unsigned_abs() }
        );
        assert_eq!(seen.definite.blocks > 10, leaks, "{structure}");
        assert_eq!((seen.possible, seen.n_errors), (Blocks::default(), 0), "{structure}");
        // Its names are the standard library's own, which may change.
        for name in ["std-ends-of-stacks", "std-record-of-main-thread"] {
            assert!(seen.suppressed.iter().any(|used| used.name == name), "{name} suppresses nothing");
        }
        let worst = &seen.findings[0];
        assert_eq!(worst.class == FindingClass::DefiniteLeak, leaks);
        if leaks {
            assert!(worst.frames[0].file.as_deref().unwrap().ends_with("controls/forest.rs"), "{:?}", worst.frames);
        }
    }
}

#[test]
fn callgrind_takes_its_arguments_and_collects_nothing_before_the_window() {
    let Ok(valgrind) = instruments::find_valgrind() else {
        return skip::skip("valgrind is not installed, so callgrind is not run");
    };
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out").to_str().unwrap().to_owned();
    let cache = Some(Cache { bytes: 64 << 10, ways: 4, line_bytes: 64 });
    let caches =
        Caches { instructions: cache, data: cache, last: Some(Cache { bytes: 1 << 22, ways: 16, line_bytes: 64 }) };
    let request = request("noop", Length::Accounting { operations: 1_000 });
    command(folder.path(), &valgrind.callgrind(&output, &caches, 2), &request).status().unwrap();
    reply(folder.path());
    let written = fs::read_to_string(&output).unwrap();
    for description in
        ["I1 cache: 65536 B, 64 B, 4-way", "D1 cache: 65536 B, 64 B, 4-way", "LL cache: 4194304 B, 64 B, 16-way"]
    {
        assert!(written.contains(description), "{written}");
    }
    assert_eq!(callgrind::read(&[written.as_bytes()]), Err(CallgrindError::NothingCollected));
}

#[test]
fn perf_samples_what_it_is_told_to_and_lines_are_found() {
    let perf = match instruments::find_perf() {
        Ok(perf) => perf,
        Err(missing) => return skip::skip(&format!("{missing}, so that nothing is sampled")),
    };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (data, control, acknowledgement) = (path("perf data"), path("control"), path("acknowledgement"));
    for fifo in [&control, &acknowledgement] {
        mkfifoat(CWD, fifo, Mode::RUSR | Mode::WUSR).unwrap();
    }
    let request = request("nm14", Length::Nanos(1_000_000_000));
    let mut running =
        command(folder.path(), &perf.record(&data, &control, &acknowledgement), &request).spawn().unwrap();
    // What a worker does that watches itself: here the test does it, in the midst of the window.
    let mut to_perf = OpenOptions::new().read(true).write(true).open(&control).unwrap();
    let mut from_perf = OpenOptions::new().read(true).write(true).open(&acknowledgement).unwrap();
    let mut tell = |word: &str| {
        to_perf.write_all(word.as_bytes()).unwrap();
        let mut answer = [0; 5];
        from_perf.read_exact(&mut answer).unwrap();
        assert_eq!(&answer[..4], b"ack\n");
    };
    thread::sleep(Duration::from_millis(500));
    tell("enable\n");
    thread::sleep(Duration::from_millis(300));
    tell("disable\n");
    running.wait().unwrap();
    reply(folder.path());

    let script = perf.script(&data);
    let printed = Command::new(&script[0]).args(&script[1..]).env_clear().env("LC_ALL", "C").output().unwrap();
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let elf = fs::read(WORKER).unwrap();
    let lines = Lines::new(&elf).unwrap();
    let profile = profile::read(&printed.stdout, Some(&Program { path: WORKER, lines: &lines })).unwrap();
    println!("{} samples of {}, {} lost, {} threads", profile.samples, profile.event, profile.lost, profile.threads);
    for symbol in profile.symbols.iter().take(8) {
        println!("{:6} {} {:?}", symbol.samples, symbol.symbol, symbol.lines.first());
    }
    let expected = match perf.event {
        perf::Event::Cycles => "cycles",
        perf::Event::CpuClock => "cpu-clock",
    };
    assert!(profile.event.starts_with(expected), "{}", profile.event);
    assert!((20..=620).contains(&profile.samples), "{} in 300 ms of two threads", profile.samples);
    let in_source = |file: &str| file.contains("workloads/src/structures/nm14");
    let of_nm14 = profile.symbols.iter().flat_map(|symbol| &symbol.lines).filter(|line| in_source(&line.file));
    let share = of_nm14.map(|line| line.samples).sum::<u64>() as f64 / profile.samples as f64;
    // The rest is the reclamation's, the allocator's and the harness's.
    assert!(share > 0.1, "only {share:.2} of the samples are in the sources of nm14");
    let inlined = profile.names.iter().filter(|name| name.ends_with(" (structures/nm14.rs)")).count();
    assert!(inlined > 0, "no inlined function is named: {:?}", profile.names);
}
