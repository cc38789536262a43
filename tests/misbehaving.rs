//! Workers that misbehave in every way a process can: each must end in time with the right class, leave nothing running,
//! and leave its neighbours unharmed.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set its stage up has failed; helpers are not known as tests"
)]

mod run_support;

use std::{
    fs::{self, File},
    io::{self, Read, Seek, Write},
    os::{
        fd::{FromRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
    thread::sleep,
    time::Duration,
};

use rare::{
    record::{FailureClass, Outcome},
    units::Nanos,
};
use rare_workloads::protocol::{
    REPLY_FD, Request,
    frame::{encode_refusal, sha256_hex},
};
use run_support::{Bench, Told, one_at_a_time, plan, processes_of, stub};
use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process, setrlimit, setsid};

/// Every misbehaviour, with the class and a part of the detail that it must give.
const MISBEHAVIOURS: [(&str, FailureClass, &str); 22] = [
    ("exits-without-a-reply", FailureClass::NoReply, "exit code 0"),
    ("exits-with-an-error", FailureClass::NoReply, "exit code 7"),
    ("refuses", FailureClass::Refused, "no such CPU"),
    ("half-a-reply", FailureClass::BadReply, "truncated"),
    ("half-a-reply-and-dies", FailureClass::Signal, "SIGABRT; it had written 20 bytes"),
    ("wrong-digest", FailureClass::BadReply, "digest mismatch"),
    ("two-replies", FailureClass::BadReply, "a second reply"),
    ("not-a-number", FailureClass::BadReply, "not a reply"),
    ("anothers-reply", FailureClass::BadReply, "its reply is to request"),
    ("endless-reply", FailureClass::BadReply, "bytes long"),
    ("segv", FailureClass::Signal, "SIGSEGV"),
    ("abort", FailureClass::Signal, "SIGABRT"),
    ("kills-itself", FailureClass::Signal, "SIGKILL"),
    ("hangs", FailureClass::TimedOut, "not done after 3.0 s"),
    ("ignores-term", FailureClass::TimedOut, "not done after 3.0 s"),
    ("hangs-with-its-pipes-closed", FailureClass::TimedOut, "not done after 3.0 s"),
    ("leaves-a-grandchild", FailureClass::NoReply, "killed what it had left: process "),
    ("leaves-a-grandchild-of-its-own-session", FailureClass::NoReply, "(`sleep`)"),
    ("replies-and-leaves-a-grandchild", FailureClass::LeftProcesses, "(`sleep`)"),
    ("floods-its-error-stream", FailureClass::NoReply, "exit code 0"),
    ("asks-for-too-much-memory", FailureClass::OutOfMemory, "ran out of memory"),
    ("meets-a-memory-limit", FailureClass::OutOfMemory, "ran out of memory"),
];

/// Key range of `noop` by which a stub is asked to reply honestly and to leave a process behind.
const LEAVING: u64 = 77;

/// The worker's side: does what its request names as the structure.
#[test]
fn misbehaving_worker() {
    if std::env::var_os("RARE_STUB").is_none() {
        return;
    }
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes).unwrap();
    let request: Request = serde_json::from_slice(&bytes).unwrap();
    misbehave(&request, &bytes);
    process::exit(0);
}

fn misbehave(request: &Request, bytes: &[u8]) {
    match request.structure.as_str() {
        "exits-without-a-reply" => {}
        "exits-with-an-error" => process::exit(7),
        "refuses" => reply(&encode_refusal("no such CPU")),
        "half-a-reply" => reply(&encode_refusal("no such CPU")[..20]),
        "half-a-reply-and-dies" => {
            reply(&encode_refusal("no such CPU")[..20]);
            process::abort();
        }
        "wrong-digest" => {
            let mut frame = encode_refusal("no such CPU");
            let last = frame.len() - 2;
            frame[last] ^= 1;
            reply(&frame);
        }
        "two-replies" => reply(&encode_refusal("no such CPU").repeat(2)),
        "not-a-number" => {
            let payload = b"{\"format\":2,\"nice\":NaN}";
            let header =
                format!("rare-reply {} {} {}\n", rare_workloads::protocol::FORMAT, payload.len(), sha256_hex(payload));
            reply(&[header.as_bytes(), payload, b"\n"].concat());
        }
        "anothers-reply" => {
            let other = Request { structure: "noop".to_owned(), ..request.clone() };
            real_worker(&serde_json::to_vec(&other).unwrap());
        }
        "endless-reply" => (0..80).for_each(|_| reply(&vec![b'x'; 1 << 20])),
        "segv" => {
            let nowhere = std::hint::black_box(std::ptr::without_provenance::<u8>(8));
            // SAFETY: none. The first page is never mapped: the fault is the point.
            unsafe { nowhere.read_volatile() };
        }
        "abort" => process::abort(),
        "kills-itself" => kill_process(getpid(), Signal::KILL).unwrap(),
        "hangs" => sleep(Duration::from_secs(1000)),
        "ignores-term" => {
            // SAFETY: ignoring a signal installs no code.
            unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
            sleep(Duration::from_secs(1000));
        }
        "hangs-with-its-pipes-closed" => {
            for fd in 1..=REPLY_FD {
                // SAFETY: this process uses none of them any more.
                drop(unsafe { OwnedFd::from_raw_fd(fd) });
            }
            sleep(Duration::from_secs(1000));
        }
        "leaves-a-grandchild" => drop(grandchild().spawn().unwrap()),
        "leaves-a-grandchild-of-its-own-session" => leave_session(),
        "noop" if request.key_range == LEAVING => {
            leave_session();
            real_worker(bytes);
        }
        "floods-its-error-stream" => {
            let mut stderr = io::stderr().lock();
            (0..100).for_each(|_| stderr.write_all(&vec![b'x'; 1_000_000]).unwrap());
        }
        "asks-for-too-much-memory" => drop(std::hint::black_box(vec![1u8; 1 << 60])),
        "meets-a-memory-limit" => {
            setrlimit(Resource::As, Rlimit { current: Some(256 << 20), maximum: Some(256 << 20) }).unwrap();
            fill_memory();
        }
        "exhausts-its-control-group" => {
            fs::write(control_group(&std::env::var("RARE_STUB").unwrap()).join("cgroup.procs"), "0").unwrap();
            fill_memory();
        }
        _ => real_worker(bytes),
    }
}

fn reply(bytes: &[u8]) {
    // SAFETY: the worker's protocol gives this descriptor to the process, and `forget` below leaves it open.
    let mut file = File::from(unsafe { OwnedFd::from_raw_fd(REPLY_FD) });
    file.write_all(bytes).unwrap();
    std::mem::forget(file);
}

/// Runs the real worker, which inherits descriptor 3.
fn real_worker(request: &[u8]) {
    let mut stdin = tempfile::tempfile().unwrap();
    stdin.write_all(request).unwrap();
    stdin.rewind().unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_rare-worker")).stdin(stdin).status().unwrap();
    assert!(status.success());
}

/// A process that lives on with all pipes of the worker.
fn grandchild() -> Command {
    let mut command = Command::new("sleep");
    command.arg("1000").stdin(Stdio::null());
    command
}

fn leave_session() {
    let mut command = grandchild();
    // SAFETY: one system call.
    unsafe { command.pre_exec(|| Ok(setsid().map(drop)?)) };
    drop(command.spawn().unwrap());
}

/// Allocates and touches more and more.
fn fill_memory() {
    let mut blocks = Vec::new();
    loop {
        blocks.push(std::hint::black_box(vec![1u8; 16 << 20]));
    }
}

/// Where a control group with a memory limit is made, of whichever version the machine has.
fn control_group(mark: &str) -> PathBuf {
    let first = Path::new("/sys/fs/cgroup/memory");
    let root = if first.is_dir() { first } else { Path::new("/sys/fs/cgroup") };
    root.join(format!("rare-test-{mark}"))
}

#[test]
fn every_misbehaviour_is_contained() {
    let _guard = one_at_a_time();
    // A good cell before and after each bad one; key ranges make them distinct.
    let bad = |name| if name == "replies-and-leaves-a-grandchild" { ("noop", LEAVING) } else { (name, 100) };
    let cells: Vec<(&str, u64)> = (100..)
        .zip(MISBEHAVIOURS)
        .flat_map(|(key_range, (name, ..))| [("noop", key_range), bad(name)])
        .chain([("noop", 99)])
        .collect();
    let bench = Bench::new(plan(&cells, 1));
    let mark = format!("misbehaving-{}", process::id());
    let worker = stub(&bench.reports, "misbehaving_worker", &mark);
    let time_out = Duration::from_secs(3);
    let summary = bench.execute(&worker, &mut Told::default(), |job| job.time_out = Some(time_out)).unwrap();
    assert_eq!(summary.n_executed, cells.len());
    assert_eq!(summary.n_failed, MISBEHAVIOURS.len());

    let longest = Nanos((time_out + Duration::from_secs(5)).as_nanos() as u64);
    for record in bench.records() {
        let cell_idx = record.trial.cell as usize;
        if cell_idx.is_multiple_of(2) {
            let Outcome::Replied(reply) = &record.outcome else { panic!("cell {cell_idx}: {:?}", record.outcome) };
            assert!(reply.threads[0].operations.attempted() > 0);
            continue;
        }
        let (name, class, words) = MISBEHAVIOURS[cell_idx / 2];
        assert!(record.wall < longest, "{name} took {}", record.wall);
        let Outcome::Failed { class: found, detail, stderr } = &record.outcome else { panic!("{name} replied") };
        assert_eq!(*found, class, "{name}: {detail}; {stderr}");
        assert!(detail.contains(words), "{name}: `{detail}` lacks `{words}`");
        assert!(stderr.len() < 66_000, "{name}: {} bytes of standard error", stderr.len());
        if name == "floods-its-error-stream" {
            assert!(stderr.ends_with("\n[65536 of 100000000 bytes kept]"));
        }
    }
    assert_eq!(processes_of(&mark), [] as [String; 0]);
}

#[test]
fn a_worker_killed_by_the_kernel_is_out_of_memory() {
    let _guard = one_at_a_time();
    let mark = format!("memory-{}", process::id());
    let group = control_group(&mark);
    let limited = fs::create_dir(&group).and_then(|()| {
        let v1 = group.join("memory.limit_in_bytes");
        fs::write(if v1.exists() { v1 } else { group.join("memory.max") }, "100000000")
    });
    if limited.is_err() {
        let _ = fs::remove_dir(&group);
        run_support::skip("control groups cannot be made here");
        return;
    }
    let bench = Bench::new(plan(&[("exhausts-its-control-group", 100), ("noop", 100)], 1));
    let worker = stub(&bench.reports, "misbehaving_worker", &mark);
    bench.execute(&worker, &mut Told::default(), |_| ()).unwrap();
    fs::remove_dir(&group).unwrap();
    let records = bench.records();
    let Outcome::Failed { class, detail, .. } = &records[0].outcome else { panic!("it replied") };
    assert_eq!(*class, FailureClass::OutOfMemory, "{detail}");
    assert!(detail.contains("SIGKILL"), "{detail}");
    assert!(matches!(records[1].outcome, Outcome::Replied(_)));
}
