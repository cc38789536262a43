//! How fast the catalogue is: every structure under epochs, in fresh processes, pinned, on jemalloc, prefilled to half.
//!
//! `cargo bench -p rare-workloads --bench catalogue [-- KEY=VALUE…]` prints the median throughput of each structure in
//! each cell and its ratio to the crate crossbeam-skiplist. All structures of a cell are interleaved round by round, so
//! that what disturbs the machine disturbs them alike. `structures=nm14,harris01`, `keys=100,100000`, `threads=1,2`,
//! `rounds=5` and `ms=300` choose a part; ten million keys take minutes a structure.
#![allow(clippy::print_stdout, reason = "a bench prints")]

use std::{
    collections::BTreeMap,
    env,
    io::{self, Read, Write},
    os::{fd::AsRawFd, unix::process::CommandExt},
    process::{Command, ExitCode, Stdio},
};

use rare_workloads::{
    alloc::Dispatch,
    protocol::{
        ALLOCATOR_VARIABLE, AllocatorRequest, Distribution, FORMAT, Length, Mix, REPLY_FD, Reclamation, Reply, Request,
        frame,
    },
    structures::{self, Adt},
    worker,
};

#[global_allocator]
static ALLOCATOR: Dispatch = Dispatch;

/// The structure that every ratio is to.
const BASE: &str = "crossbeam-skiplist";

/// A list longer than this is no experiment.
const LIST_KEYS_MAX: u64 = 1_000;

const MIXES: [(&str, Mix); 3] = [
    ("50/50/0", Mix { insert: 5_000, remove: 5_000, contains: 0 }),
    ("10/10/80", Mix { insert: 1_000, remove: 1_000, contains: 8_000 }),
    ("0/0/100", Mix { insert: 0, remove: 0, contains: 10_000 }),
];

/// What is measured.
struct Choice {
    structures: Vec<&'static str>,
    keys: Vec<u64>,
    threads: Vec<u32>,
    rounds: u32,
    ms: u64,
}

fn main() -> ExitCode {
    // This program is its own worker: the parent sets the allocator's variable.
    if env::var_os(ALLOCATOR_VARIABLE).is_some() {
        return worker::main();
    }
    let choice = match Choice::read(env::args().skip(1).filter(|word| word != "--bench")) {
        Ok(choice) => choice,
        Err(word) => {
            println!("`{word}` is not understood; see the head of this bench");
            return ExitCode::from(2);
        }
    };
    for &keys in &choice.keys {
        for (mix_name, mix) in MIXES {
            for &threads in &choice.threads {
                println!("\n{keys} keys, insert/remove/contains {mix_name}, {threads} threads, Mops/s");
                cell(&choice, keys, mix, threads);
            }
        }
    }
    ExitCode::SUCCESS
}

impl Choice {
    fn read(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let all = structures::ALL.iter().map(|structure| structure.info.name);
        let mut choice = Self {
            structures: all.collect(),
            keys: vec![100, 1_000, 100_000, 10_000_000],
            threads: vec![1, 2],
            rounds: 5,
            ms: 300,
        };
        for word in words {
            choice.take(&word).ok_or(word)?;
        }
        Ok(choice)
    }

    fn take(&mut self, word: &str) -> Option<()> {
        let (key, value) = word.split_once('=')?;
        match key {
            "structures" => {
                let found = value.split(',').chain([BASE]).map(structures::find);
                self.structures = found.map(|found| found.map(|it| it.info.name)).collect::<Option<_>>()?;
                self.structures.dedup();
            }
            "keys" => self.keys = value.split(',').map(|number| number.parse().ok()).collect::<Option<_>>()?,
            "threads" => self.threads = value.split(',').map(|number| number.parse().ok()).collect::<Option<_>>()?,
            "rounds" => self.rounds = value.parse().ok()?,
            "ms" => self.ms = value.parse().ok()?,
            _ => return None,
        }
        Some(())
    }
}

/// Measures and prints one cell.
fn cell(choice: &Choice, keys: u64, mix: Mix, threads: u32) {
    let is_list = |name: &str| ["harris01", "michael02", "lazy05"].contains(&name);
    let in_cell: Vec<&str> =
        choice.structures.iter().copied().filter(|name| keys <= LIST_KEYS_MAX || !is_list(name)).collect();
    let mut rates: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for round in 0..choice.rounds {
        for &name in &in_cell {
            match trial(name, keys, mix, threads, choice.ms, u64::from(round)) {
                Ok(reply) => rates.entry(name).or_default().push(rate(&reply)),
                Err(why) => println!("  {name:<20} failed: {why}"),
            }
        }
    }
    let medians: BTreeMap<&str, f64> = rates.into_iter().map(|(name, rates)| (name, median(rates))).collect();
    let base = medians.get(BASE).copied();
    for name in in_cell {
        let Some(median) = medians.get(name) else { continue };
        let bounded = structures::find(name).is_some_and(|structure| structure.info.semantics.adt == Adt::Nothing);
        let ratio = base.map_or_else(String::new, |base| format!("{:7.2}x", median / base));
        println!("  {name:<20} {median:9.2} {ratio}{}", if bounded { "  (bound of the harness)" } else { "" });
    }
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// Millions of operations per second, each thread over its own measured time.
fn rate(reply: &Reply) -> f64 {
    let of = |thread: &rare_workloads::protocol::ThreadReply| {
        thread.operations.attempted() as f64 * 1e3 / (thread.stop_ns - thread.start_ns) as f64
    };
    reply.threads.iter().map(of).sum()
}

/// Runs one trial in a fresh process.
fn trial(structure: &str, keys: u64, mix: Mix, threads: u32, ms: u64, seed: u64) -> Result<Reply, String> {
    let request = Request {
        format: FORMAT,
        structure: structure.to_owned(),
        structure_parameters: BTreeMap::new(),
        reclamation: Reclamation::Epoch,
        allocator: AllocatorRequest { name: "jemalloc".to_owned(), preload: None },
        cpus: (0..threads).map(Some).collect(),
        key_range: keys,
        mix,
        distribution: Distribution::Uniform,
        prefill_keys: keys / 2,
        length: Length::Nanos(ms * 1_000_000),
        seed,
        nice: 0,
    };
    let bytes = run_worker(&serde_json::to_vec(&request).map_err(|error| error.to_string())?)?;
    match frame::decode(&bytes).map_err(|error| error.to_string())? {
        frame::Frame::Reply(reply) => Ok(*reply),
        frame::Frame::Refusal(why) => Err(why),
    }
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
