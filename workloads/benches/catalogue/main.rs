//! How fast the catalogue is: every structure under epochs, in fresh processes, pinned, on jemalloc, prefilled to half.
//!
//! `cargo bench -p rare-workloads --bench catalogue [-- WORD…]` prints, for each structure in each cell, the median
//! throughput, its ratio to the crate crossbeam-skiplist, the ratio of the best public implementation where one is known
//! ([`targets`]) and whether it is reached, the throughput in parts of a pointer-chase bound ([`shape`], [`chase`]), and
//! the bytes that each key takes. All structures of a cell are interleaved round by round, so that what disturbs the
//! machine disturbs them alike.
//!
//! Words choose a part: `structures=nm14,dgt15` `keys=100,100000` `mix=50/50/0,0/0/100` `threads=1,2` `rounds=5`
//! `ms=300`. The word `prefill` measures instead what the prefill costs, see [`prefill`].
//!
//! A trial takes its window and half a second at most, so all cells of up to 100,000 keys take about three quarters of an
//! hour with all structures, and 1 s per structure and round of a single cell. With ten million keys each trial inserts
//! five million first: about 5 s per structure and round, and a list is not asked. `prefill` takes about 15 s per
//! structure and round.
#![allow(clippy::print_stdout, reason = "a bench prints")]

mod cell;
mod chase;
mod choice;
mod prefill;
mod shape;
mod targets;
mod trial;

use std::{
    env,
    process::{Command, ExitCode},
};

use rare_workloads::{
    alloc::Dispatch,
    protocol::{ALLOCATOR_VARIABLE, Mix},
    worker,
};

use self::{chase::Chase, choice::Choice};

#[global_allocator]
static ALLOCATOR: Dispatch = Dispatch;

/// The structure that every ratio is to.
const BASE: &str = "crossbeam-skiplist";

/// A mix of operations under the name that words and headings use.
#[derive(Clone, Copy, PartialEq, Eq)]
struct NamedMix {
    name: &'static str,
    mix: Mix,
}

/// All that is measured, by the shares of insert, remove and contains in percent.
const MIXES: [NamedMix; 3] = [
    NamedMix { name: "50/50/0", mix: Mix { insert: 5_000, remove: 5_000, contains: 0, range: 0 } },
    NamedMix { name: "10/10/80", mix: Mix { insert: 1_000, remove: 1_000, contains: 8_000, range: 0 } },
    NamedMix { name: "0/0/100", mix: Mix { insert: 0, remove: 0, contains: 10_000, range: 0 } },
];

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
    let complete = if choice.prefill { prefill::measure_all(&choice) } else { measure_all(&choice) };
    if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Measures all cells; false if a trial failed.
fn measure_all(choice: &Choice) -> bool {
    println!("{}", machine());
    println!("{}", targets::NOTE);
    let mut chase = Chase::new();
    let mut complete = true;
    for &n_keys in &choice.keys {
        let memory = cell::memory_of_all(choice, n_keys);
        for &mix in &choice.mixes {
            for &n_threads in &choice.threads {
                let cell = cell::Cell { n_keys, mix, n_threads };
                complete &= cell::measure(choice, cell, &memory, &mut chase);
            }
        }
    }
    println!("\nBounds, per search:");
    for name in &choice.structures {
        println!("  {name:<20} {}", shape::of(name).formula());
    }
    complete
}

/// Returns what the system calls this processor: ratios differ from one to another.
fn machine() -> String {
    let listed = Command::new("lscpu").output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let lines = listed.unwrap_or_default();
    let wanted = ["Model name", "L1d cache", "L2 cache", "L3 cache"];
    let found: Vec<String> = lines
        .lines()
        .filter(|line| wanted.iter().any(|name| line.trim_start().starts_with(name)))
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    if found.is_empty() { "Machine: not told, for lack of lscpu".to_owned() } else { found.join("; ") }
}
