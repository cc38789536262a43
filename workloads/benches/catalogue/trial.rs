//! One trial in a fresh process, which is this program again.

use std::{
    collections::BTreeMap,
    env,
    io::{self, Read, Write},
    os::{fd::AsRawFd, unix::process::CommandExt},
    process::{Command, Stdio},
};

use rare_workloads::nodes::Nodes;
use rare_workloads::protocol::{
    ALLOCATOR_VARIABLE, AllocatorRequest, Distribution, FORMAT, Harness, Length, Mix, REPLY_FD, Reclamation, Reply,
    Request, frame,
};

/// What differs between trials.
pub(super) struct Trial<'n> {
    pub(super) structure: &'n str,
    pub(super) key_range: u64,
    pub(super) prefill_keys: u64,
    /// Keys that it will hold: what a table that cannot grow is made for.
    pub(super) held_keys: u64,
    pub(super) mix: Mix,
    pub(super) n_threads: u32,
    pub(super) length: Length,
    pub(super) seed: u64,
}

impl Trial<'_> {
    /// Runs the trial.
    ///
    /// # Errors
    /// In words: what could not be started or read, or why the worker refused.
    pub(super) fn run(&self) -> Result<Reply, String> {
        let bytes = run_worker(&serde_json::to_vec(&self.request()).map_err(|error| error.to_string())?)?;
        match frame::decode(&bytes).map_err(|error| error.to_string())? {
            frame::Frame::Reply(reply) => Ok(*reply),
            frame::Frame::Refusal(why) => Err(why),
        }
    }

    fn request(&self) -> Request {
        Request {
            format: FORMAT,
            structure: self.structure.to_owned(),
            structure_parameters: self.parameters(),
            reclamation: Reclamation::Epoch,
            allocator: AllocatorRequest { name: "jemalloc".to_owned(), preload: None },
            cpus: (0..self.n_threads).map(Some).collect(),
            key_range: self.key_range,
            mix: self.mix,
            distribution: Distribution::Uniform,
            prefill_keys: self.prefill_keys,
            length: self.length,
            seed: self.seed,
            nice: 0,
            nodes: Nodes::PLAIN,
            harness: Harness::default(),
            watch: None,
            range_keys: None,
        }
    }

    /// Structures take their defaults, but for the table that cannot grow.
    fn parameters(&self) -> BTreeMap<String, u64> {
        let table = ("buckets".to_owned(), self.held_keys.max(1));
        BTreeMap::from_iter((self.structure == "michael-hash02").then_some(table))
    }
}

/// Returns millions of operations per second, each thread over its own measured time.
pub(super) fn rate(reply: &Reply) -> f64 {
    let of = |thread: &rare_workloads::protocol::ThreadReply| {
        thread.operations.attempted() as f64 * 1e3 / (thread.stop_ns - thread.start_ns) as f64
    };
    reply.threads.iter().map(of).sum()
}

/// Returns the middle one; of an even number, the upper of the two.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Starts this program as a worker and returns what it writes to its reply descriptor.
fn run_worker(request: &[u8]) -> Result<Vec<u8>, String> {
    let said = |error: io::Error| error.to_string();
    let (mut reply, writer) = io::pipe().map_err(said)?;
    let mut command = Command::new(env::current_exe().map_err(said)?);
    command.env_clear().env(ALLOCATOR_VARIABLE, "jemalloc").stdin(Stdio::piped());
    let end = writer.as_raw_fd();
    let place_reply = move || {
        // SAFETY: `end` is open until the child has started, and the call touches no memory.
        if unsafe { libc::dup2(end, REPLY_FD) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: between fork and exec only `dup2` is called, which is safe there.
    unsafe { command.pre_exec(place_reply) };
    let mut child = command.spawn().map_err(said)?;
    drop(writer);
    child.stdin.take().ok_or("no standard input")?.write_all(request).map_err(said)?;
    let mut bytes = Vec::new();
    reply.read_to_end(&mut bytes).map_err(said)?;
    child.wait().map_err(said)?;
    Ok(bytes)
}
