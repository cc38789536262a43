//! Controls whose fault shows in speed alone, each beside the sound structure in it, interleaved in one run.
//!
//! `cargo bench -p rare-workloads --bench controls` prints, of two pinned threads, the median throughput of control and
//! base and their ratio; and for each the throughput of the second half of a window as a share of the first.
#![allow(clippy::print_stdout, reason = "a bench prints")]

use std::collections::BTreeMap;

use rare_workloads::{
    alloc::Dispatch,
    harness::{Measurements, pin::AllowedCpus},
    nodes::Nodes,
    protocol::{AllocatorRequest, Distribution, FORMAT, Harness, Length, Mix, Reclamation, Request},
    structures::{
        Structure, bcco10,
        controls::{bad_padding, decay, false_sharing, forest, interleaved},
        nm14,
    },
};

#[global_allocator]
static ALLOCATOR: Dispatch = Dispatch;

const ROUNDS: u64 = 7;
const WINDOW_NS: u64 = 200_000_000;

/// Control, base, and the range of keys where the fault matters: few where it is a cost of each operation, many where it
/// is one of memory.
static PAIRS: [(&Structure, &Structure, u64); 4] = [
    (&false_sharing::CONTROL, &nm14::STRUCTURE, 100),
    (&decay::CONTROL, &nm14::STRUCTURE, 100),
    (&bad_padding::CONTROL, &forest::SOUND, 200_000),
    (&interleaved::CONTROL, &bcco10::STRUCTURE, 200_000),
];

fn main() -> Result<(), String> {
    let allowed = AllowedCpus::of_this_thread()?.numbers();
    let cpus: Vec<Option<u32>> = allowed.iter().copied().take(2).map(Some).collect();
    println!("look-ups alone, {} threads, Mops/s: control, base, ratio; second half over first half", cpus.len());
    for (control, base, key_range) in PAIRS {
        let (mut rates, mut halves) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for round in 0..ROUNDS {
            for (side, structure) in [control, base].into_iter().enumerate() {
                let measured = trial(structure, &cpus, key_range, round)?;
                rates[side].push(rate(&measured));
                halves[side].push(second_half_over_first(&measured));
            }
        }
        let [control_rate, base_rate] = rates.map(median);
        let [control_half, base_half] = halves.map(median);
        let (name, ratio) = (control.info.name, control_rate / base_rate);
        println!("{name:24} {control_rate:8.2} {base_rate:8.2} {ratio:6.2}; {control_half:6.2} {base_half:6.2}");
    }
    Ok(())
}

fn trial(structure: &Structure, cpus: &[Option<u32>], key_range: u64, seed: u64) -> Result<Measurements, String> {
    let driver = structure.drivers.iter().find(|(scheme, _)| *scheme == Reclamation::Epoch);
    let parameters = structure.info.parameters.iter();
    let parameters: BTreeMap<String, u64> = parameters.map(|info| (info.name.to_owned(), info.default)).collect();
    driver.ok_or("no driver for epochs")?.1.trial(&Request {
        format: FORMAT,
        structure: structure.info.name.to_owned(),
        structure_parameters: parameters,
        reclamation: Reclamation::Epoch,
        allocator: AllocatorRequest { name: "system".to_owned(), preload: None },
        cpus: cpus.to_vec(),
        key_range,
        range_keys: None,
        mix: Mix { insert: 0, remove: 0, contains: Mix::WHOLE, range: 0 },
        distribution: Distribution::Uniform,
        prefill_keys: key_range / 2,
        length: Length::Nanos(WINDOW_NS),
        seed,
        nice: 0,
        nodes: Nodes::PLAIN,
        harness: Harness::default(),
        watch: None,
    })
}

/// Millions of operations per second, each thread over its own time.
fn rate(measured: &Measurements) -> f64 {
    let of_thread = |thread: &rare_workloads::protocol::ThreadReply| {
        thread.operations.attempted() as f64 * 1e3 / (thread.stop_ns - thread.start_ns) as f64
    };
    measured.threads.iter().map(of_thread).sum()
}

/// Throughput after the sample at 100 ms over that before it.
fn second_half_over_first(measured: &Measurements) -> f64 {
    let [_, middle, end] = measured.samples[..] else { return f64::NAN };
    let first = middle.operations as f64 / middle.at_ns as f64;
    (end.operations - middle.operations) as f64 / (end.at_ns - middle.at_ns) as f64 / first
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
