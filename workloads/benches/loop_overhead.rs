//! What the measured loop costs: the whole loop on `noop` against the bare generator.
//!
//! All kinds draw the very same stream. They alternate round by round, so that slow drift of the machine falls on all, and
//! medians over the rounds are compared. Exits 1 when the loop costs more than [`LIMIT_NS`] per operation on top of the
//! generator.
//!
//! The generator is shown twice: drawing only, and drawing and branching on the operation. A mix of operations makes that
//! branch unpredictable, whoever takes it, and a wrong guess costs more than all of the loop: no harness that calls three
//! operations in random order is without it, so it belongs to the drawing and the limit applies on top of it. With one
//! operation alone (`contains` below) the branch costs nothing, and the limit is on top of the bare draw.

use std::{
    hint::black_box,
    process::ExitCode,
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use rare_workloads::{
    families::set::{ConcurrentSet, Parameters, SetHandle},
    harness::{
        pin::{AllowedCpus, pin_to},
        window::{self, Flag, Generator, Operation},
    },
    keys::UniformKeys,
    protocol::Mix,
    structures::noop::Noop,
};

/// What the loop may cost on top of the generator, per operation.
const LIMIT_NS: f64 = 2.0;

/// Rounds of each kind; the median of so many is steady on a machine with other work.
const N_ROUNDS: usize = 15;

/// Long against the interruptions of a round, short enough for all rounds in some seconds.
const ROUND: Duration = Duration::from_millis(60);

const KEY_RANGE: u64 = 100_000;

const MIXES: [(&str, Mix); 2] = [
    ("contains", Mix { insert: 0, remove: 0, contains: 10_000, range: 0 }),
    ("mixed", Mix { insert: 2_500, remove: 2_500, contains: 5_000, range: 0 }),
];

/// What runs in a round; returns its operations.
type Body = fn(Generator<UniformKeys>, &AtomicBool, &AtomicU64) -> u64;

fn main() -> ExitCode {
    let cpus = AllowedCpus::of_this_thread().expect("the kernel tells the allowed CPUs").numbers();
    let mut within = true;
    println!("nanoseconds per operation, median of {N_ROUNDS} rounds; the difference is what the loop adds");
    println!("mix       threads  draw  draw+branch  loop on noop  difference  ratio");
    for (name, mix) in MIXES {
        for n_threads in [1, 2] {
            if cpus.len() < n_threads {
                println!("{name:8}  {n_threads:7}  not measured: {} CPU allowed", cpus.len());
                continue;
            }
            let [draw, branch, whole] = medians(&cpus[..n_threads], mix);
            let base = if name == "contains" { draw } else { branch };
            let (difference, ratio) = (whole - base, whole / base);
            println!(
                "{name:8}  {n_threads:7}  {draw:4.2}  {branch:11.2}  {whole:12.2}  {difference:10.2}  {ratio:5.2}"
            );
            within &= difference <= LIMIT_NS;
        }
    }
    if within {
        ExitCode::SUCCESS
    } else {
        eprintln!("the loop costs more than {LIMIT_NS} ns per operation on top of the generator");
        ExitCode::FAILURE
    }
}

/// Measures the three kinds in turn, round by round.
fn medians(cpus: &[u32], mix: Mix) -> [f64; 3] {
    const BODIES: [Body; 3] = [draw_only, draw_and_branch, loop_on_noop];
    let rounds: Vec<[f64; 3]> = (0..N_ROUNDS).map(|_| BODIES.map(|body| round(cpus, mix, body))).collect();
    [0, 1, 2].map(|kind| median(rounds.iter().map(|round| round[kind]).collect()))
}

/// Runs `body` on each CPU at once and returns the nanoseconds per operation, averaged over the threads.
fn round(cpus: &[u32], mix: Mix, body: Body) -> f64 {
    /// As in a trial: alone on its lines.
    #[repr(align(128))]
    #[derive(Default)]
    struct Line<T>(T);

    let stop = Line::<AtomicBool>::default();
    let progress: Vec<Line<AtomicU64>> = cpus.iter().map(|_| Line::default()).collect();
    let start = Barrier::new(cpus.len() + 1);
    let costs: Vec<f64> = thread::scope(|scope| {
        let threads: Vec<_> = (0..)
            .zip(cpus)
            .zip(&progress)
            .map(|((thread_idx, &cpu), progress)| {
                let (stop, start) = (&stop, &start);
                scope.spawn(move || {
                    pin_to(cpu).expect("the CPU is allowed");
                    let generator = Generator::new(UniformKeys::new(KEY_RANGE), mix, 1, thread_idx);
                    start.wait();
                    let began = Instant::now();
                    let n_operations = body(generator, &stop.0, &progress.0);
                    began.elapsed().as_nanos() as f64 / n_operations as f64
                })
            })
            .collect();
        start.wait();
        thread::sleep(ROUND);
        stop.0.store(true, Relaxed);
        threads.into_iter().map(|thread| thread.join().expect("the body does not panic")).collect()
    });
    costs.iter().sum::<f64>() / costs.len() as f64
}

/// Draws and consumes. The flag is looked at once in 1,024 draws, which spreads its cost to nothing.
fn draw_only(mut generator: Generator<UniformKeys>, stop: &AtomicBool, _progress: &AtomicU64) -> u64 {
    let mut n_draws = 0;
    while !stop.load(Relaxed) {
        for _ in 0..1_024 {
            black_box(generator.draw());
        }
        n_draws += 1_024;
    }
    n_draws
}

/// Draws, and branches on the operation as any caller of three operations must.
fn draw_and_branch(mut generator: Generator<UniformKeys>, stop: &AtomicBool, _progress: &AtomicU64) -> u64 {
    let mut n_draws = 0;
    while !stop.load(Relaxed) {
        for _ in 0..1_024 {
            let (key, operation) = generator.draw();
            match operation {
                Operation::Insert => drop(black_box((key, key))),
                Operation::Remove => drop(black_box(key)),
                Operation::Contains => drop(black_box(!key)),
            }
        }
        n_draws += 1_024;
    }
    n_draws
}

fn loop_on_noop(generator: Generator<UniformKeys>, stop: &AtomicBool, progress: &AtomicU64) -> u64 {
    let set = Noop::new(&Parameters::new());
    let mut handle = set.handle();
    // The first call of each kind may be the only slow one; it is not, but then it is not measured either.
    handle.contains(0);
    window::run(&mut handle, generator, Flag(stop), progress).operations.attempted()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
