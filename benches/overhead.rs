//! What `rare` costs besides the trials: 20 trials of 0.1 s, whole wall time of `rare run`, environment record included.
//!
//! `cargo bench --bench overhead` prints the median of five fresh runs, and beside it the same sleep under hyperfine
//! when that is installed, in one interleaved series. Exits 1 when the median is over [`LIMIT`].
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench prints, and a failure of its set-up is a panic")]

use std::{
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

/// Twenty trials of 0.1 s and 15 ms for each of them.
const LIMIT: Duration = Duration::from_millis(2_300);

/// Five, so that a median has neighbours.
const ROUNDS: usize = 5;

const SPEC: &str = "\
rare: 1
name: overhead
structures: mutex-btree
threads: 2
pinning: none
key_ranges: 100
mixes: {insert: 50, remove: 50}
trials: {count: 20, length: 100ms}
instruments: []
";

fn main() -> ExitCode {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("overhead.yaml"), SPEC).unwrap();
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rare"));
        command.args(["run", "--quiet", "--fresh", "overhead.yaml"]).current_dir(folder.path());
        timed(command.env("RARE_MACHINE_LOCK", folder.path().join("lock")))
    };
    // The first run may build the worker.
    run();
    let hyperfine = || {
        let arguments = ["-N", "--warmup=0", "--runs=20", "--style=none", "sleep 0.1"];
        timed(Command::new("hyperfine").args(arguments))
    };
    let with_hyperfine = Command::new("hyperfine").arg("--version").stdout(Stdio::null()).status().is_ok();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(run());
        if with_hyperfine {
            theirs.push(hyperfine());
        }
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort();
        times[times.len() / 2]
    };
    let ours = median(&mut ours);
    println!("rare run, 20 trials of 0.1 s: {:.3} s (limit {:.1} s)", ours.as_secs_f64(), LIMIT.as_secs_f64());
    if with_hyperfine {
        let theirs = median(&mut theirs);
        let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
        println!("hyperfine -N, 20 x sleep 0.1: {:.3} s; ratio {ratio:.3}", theirs.as_secs_f64());
    } else {
        println!("hyperfine is not installed: nothing to compare with");
    }
    if ours <= LIMIT { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn timed(command: &mut Command) -> Duration {
    let since = Instant::now();
    let output = command.output().unwrap();
    let wall = since.elapsed();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    wall
}
