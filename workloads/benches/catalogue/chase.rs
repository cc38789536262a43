//! The latency of one dependent load, from a buffer as large as a structure's memory.
//!
//! A walk along a random cycle through all lines of the buffer: each load needs the one before, and no prefetcher guesses
//! the next. So the result is that of the level of cache that the nodes fit in, mixed where they fit in none alone. The
//! upper nodes of a tree are read more often than the lower and stay in nearer levels, so a structure can be faster than
//! depth times this latency: it is a bound for nodes that are all equally far.

use std::{collections::BTreeMap, hint::black_box, thread, time::Instant};

use rare_workloads::{harness::pin, rng::Xoshiro256PlusPlus};

/// One line: the next one's index, and nothing else.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line(u32);

const LINE_BYTES: u64 = size_of::<Line>() as u64;

/// Long enough for a clock, 1 to 50 ms, and more than one round of all caches.
const N_STEPS: u32 = 1 << 18;

/// Repeats, of which the shortest counts: a latency is a property of the machine, and disturbances only add to it.
const N_REPEATS: u32 = 5;

/// Latencies by buffer size, each measured once.
pub(super) struct Chase {
    latency_ns: BTreeMap<u64, f64>,
}

impl Chase {
    pub(super) fn new() -> Self {
        Self { latency_ns: BTreeMap::new() }
    }

    /// Returns the latency in nanoseconds for a working set of so many bytes, measured on CPU 0. Sizes are rounded up to
    /// quarters of powers of two, so that structures of like size share a measurement.
    pub(super) fn latency_ns(&mut self, bytes: u64) -> Result<f64, String> {
        let quarter = (bytes.max(LINE_BYTES).next_power_of_two() / 8).max(LINE_BYTES);
        let n_lines = bytes.div_ceil(quarter) * quarter / LINE_BYTES;
        if let Some(&known) = self.latency_ns.get(&n_lines) {
            return Ok(known);
        }
        let n = u32::try_from(n_lines).map_err(|_| "more memory than a chase goes through".to_owned())?;
        let measured = thread::spawn(move || pin::pin_to(0).map(|()| measure(n.max(2))))
            .join()
            .map_err(|_| "the chase panicked".to_owned())??;
        self.latency_ns.insert(n_lines, measured);
        Ok(measured)
    }
}

/// Makes the cycle and walks it; the time of one step.
fn measure(n_lines: u32) -> f64 {
    let lines = cycle(n_lines);
    let mut at = walk(&lines, 0, n_lines.min(N_STEPS));
    let mut best = f64::INFINITY;
    for _ in 0..N_REPEATS {
        let begin = Instant::now();
        at = walk(&lines, at, N_STEPS);
        best = best.min(begin.elapsed().as_nanos() as f64 / f64::from(N_STEPS));
    }
    black_box(at);
    best
}

/// One random cycle through all lines (Sattolo's shuffle).
fn cycle(n_lines: u32) -> Vec<Line> {
    let mut rng = Xoshiro256PlusPlus::new(u64::from(n_lines));
    let mut lines: Vec<Line> = (0..n_lines).map(Line).collect();
    for last in (1..n_lines as usize).rev() {
        // The upper half of the product is below `last`: a draw among the lines before.
        let other = ((u128::from(rng.next_u64()) * last as u128) >> 64) as usize;
        lines.swap(last, other);
    }
    lines
}

fn walk(lines: &[Line], mut at: u32, n_steps: u32) -> u32 {
    for _ in 0..n_steps {
        at = lines[at as usize].0;
    }
    at
}
