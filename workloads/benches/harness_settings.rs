//! What each setting of the harness costs: whole trials on `noop`, two pinned threads, each setting against the default.
//!
//! The settings alternate round by round, so that slow drift of the machine falls on all, and medians over the rounds are
//! compared. Nothing is judged here: it is the talk's curve of what harnesses in use pay for their mistakes.

use std::{collections::BTreeMap, process::ExitCode};

use rare_workloads::{
    harness::pin::AllowedCpus,
    nodes::Nodes,
    protocol::{
        AllocatorRequest, Distribution, FORMAT, GeneratorKind, Harness, Length, Mix, Padding, Reclamation, Request,
        TimeCheck,
    },
    structures,
};

/// Rounds of each setting; the median of so many is steady on a machine with other work.
const N_ROUNDS: usize = 15;

/// Long against the interruptions of a round, short enough for all rounds in some seconds.
const ROUND_NS: u64 = 60_000_000;

fn settings() -> [(&'static str, Harness); 7] {
    let sound = Harness::default();
    let clock = |batch| Harness { time_check: TimeCheck::Every(batch), ..sound };
    [
        ("flag, padded, xoshiro256++", sound),
        ("clock after each operation", clock(1)),
        ("clock after 10 operations", clock(10)),
        ("clock after 100 operations", clock(100)),
        ("clock after 1000 operations", clock(1_000)),
        ("no padding", Harness { padding: Padding::None, ..sound }),
        ("fnv1a-alternating", Harness { generator: GeneratorKind::Fnv1aAlternating, ..sound }),
    ]
}

fn main() -> ExitCode {
    let cpus = AllowedCpus::of_this_thread().expect("the kernel tells the allowed CPUs").numbers();
    if cpus.len() < 2 {
        eprintln!("two threads need two CPUs, {} is allowed", cpus.len());
        return ExitCode::FAILURE;
    }
    let rounds: Vec<_> =
        (0..N_ROUNDS).map(|_| settings().map(|(_, harness)| throughput(&cpus[..2], harness))).collect();
    let of = |setting: usize| median(rounds.iter().map(|round| round[setting]).collect());
    println!("million operations a second, both threads, median of {N_ROUNDS} rounds, and the ratio to the first");
    for (setting, (name, _)) in settings().into_iter().enumerate() {
        println!("{name:28}  {:6.1}  {:4.2}", of(setting) / 1e6, of(setting) / of(0));
    }
    ExitCode::SUCCESS
}

/// Runs one trial of lookups and returns its operations per second.
fn throughput(cpus: &[u32], harness: Harness) -> f64 {
    let request = Request {
        format: FORMAT,
        structure: "noop".to_owned(),
        structure_parameters: BTreeMap::new(),
        reclamation: Reclamation::None,
        allocator: AllocatorRequest { name: "system".to_owned(), preload: None },
        cpus: cpus.iter().copied().map(Some).collect(),
        key_range: 100_000,
        mix: Mix { insert: 0, remove: 0, contains: Mix::WHOLE, range: 0 },
        range_keys: None,
        distribution: Distribution::Uniform,
        prefill_keys: 0,
        length: Length::Nanos(ROUND_NS),
        seed: 1,
        nice: 0,
        nodes: Nodes::PLAIN,
        harness,
        watch: None,
    };
    let noop = structures::find("noop").expect("the registry has it");
    let driver = noop.driver(request.reclamation).expect("it runs under every scheme");
    let threads = driver.trial(&request).expect("the CPUs are allowed").threads;
    let rate = |thread: &rare_workloads::protocol::ThreadReply| {
        thread.operations.attempted() as f64 * 1e9 / (thread.stop_ns - thread.start_ns) as f64
    };
    threads.iter().map(rate).sum()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
