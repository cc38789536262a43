//! The real `rare-worker` as a process: starts it with a request and reads its frame.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use rare_workloads::{
    nodes::Nodes,
    protocol::{
        ALLOCATOR_VARIABLE, AllocatorRequest, Distribution, FORMAT, Length, Mix, Reclamation, Reply, Request,
        frame::{self, Frame, FrameError},
    },
};

pub const WORKER: &str = env!("CARGO_BIN_EXE_rare-worker");

/// Trials that are timed run one after the other.
pub static ONE_TRIAL: Mutex<()> = Mutex::new(());

pub fn request(allocator: &str) -> Request {
    Request {
        format: FORMAT,
        structure: "mutex-btree".to_owned(),
        structure_parameters: BTreeMap::new(),
        reclamation: Reclamation::Epoch,
        allocator: AllocatorRequest { name: allocator.to_owned(), preload: None },
        cpus: vec![None, None],
        key_range: 1_000,
        mix: Mix { insert: 2_500, remove: 2_500, contains: 5_000, range: 0 },
        range_keys: None,
        distribution: Distribution::Uniform,
        prefill_keys: 500,
        length: Length::Nanos(100_000_000),
        seed: u64::MAX - 1,
        nice: 0,
        nodes: Nodes::PLAIN,
        harness: rare_workloads::protocol::Harness::default(),
        watch: None,
    }
}

pub struct Ended {
    pub frame: Result<Frame, FrameError>,
    pub stderr: String,
    pub code: Option<i32>,
    /// From the spawning to the reaping.
    pub wall: Duration,
}

impl Ended {
    pub fn reply(self) -> Reply {
        match self.frame {
            Ok(Frame::Reply(reply)) => *reply,
            other => panic!("{other:?}, standard error: {}", self.stderr),
        }
    }

    pub fn refusal(self) -> String {
        match self.frame {
            Ok(Frame::Refusal(reason)) => reason,
            other => panic!("{other:?}, standard error: {}", self.stderr),
        }
    }
}

/// Runs the worker on these bytes with this environment alone.
pub fn run_bytes(bytes: &[u8], environment: &[(&str, &str)]) -> Ended {
    run_command(Command::new(WORKER), bytes, environment)
}

pub fn run_command(mut command: Command, bytes: &[u8], environment: &[(&str, &str)]) -> Ended {
    let _alone = ONE_TRIAL.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut reply_end, worker_end) = io::pipe().unwrap();
    let worker_end = OwnedFd::from(worker_end);
    command.env_clear().envs(environment.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let raw = worker_end.as_raw_fd();
    let redirect = move || {
        // SAFETY: duplicates one number onto another; the descriptor is open until after the spawning.
        let descriptor = unsafe { libc::dup2(raw, 3) };
        if descriptor < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: the closure only calls dup2, which is allowed between fork and exec.
    unsafe { command.pre_exec(redirect) };
    let began = Instant::now();
    let mut worker = command.spawn().unwrap();
    drop(worker_end);
    let mut stdin = worker.stdin.take().unwrap();
    // A worker that refuses at once may close its input early.
    let _ = stdin.write_all(bytes);
    drop(stdin);
    let mut reply = Vec::new();
    reply_end.read_to_end(&mut reply).unwrap();
    let output = worker.wait_with_output().unwrap();
    let wall = began.elapsed();
    Ended {
        frame: frame::decode(&reply),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code(),
        wall,
    }
}

pub fn run_with(request: &Request, environment: &[(&str, &str)]) -> Ended {
    run_bytes(&serde_json::to_vec(request).unwrap(), environment)
}

pub fn run(request: &Request) -> Ended {
    run_with(request, &[(ALLOCATOR_VARIABLE, &request.allocator.name)])
}
