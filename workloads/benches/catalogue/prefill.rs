//! What the prefill costs beside the same inserts as measured operations.
//!
//! Two trials, each in a fresh process on two threads: one prefills five million keys; the other starts empty and does
//! nothing but inserts in its window, and its samples say when so many were done. Keys come from a range so large that
//! hardly a draw meets a key that is there, so both make the same number of effective inserts of random keys. The window
//! is as long as the prefill took and somewhat longer; when it ends before the last insert, the prefill was faster by at
//! least that.

use rare_workloads::protocol::{Length, Mix, Reply, Sample};

use super::{
    choice::{Choice, is_list},
    trial::{Trial, median},
};

const N_KEYS: u64 = 5_000_000;

/// The prefill may take so many times what the inserts take.
const LIMIT: f64 = 1.5;

/// Five million keys meet one another 12 times in it.
const KEY_RANGE: u64 = 1 << 40;

/// The window, in parts of the prefill's time: who needs longer is slower than the prefill for sure.
const WINDOW: f64 = 1.2;

/// Measures each structure, lists excepted, and prints the median ratio over the rounds; false if a trial failed or a
/// prefill is over the limit.
pub(super) fn measure_all(choice: &Choice) -> bool {
    println!("prefill of {N_KEYS} keys by 2 threads, beside as many inserts in the window, median of the rounds");
    println!("  {:<20} {:>9} {:>9} {:>7}", "", "prefill s", "window s", "ratio");
    let mut holds = true;
    for &structure in choice.structures.iter().filter(|name| !is_list(name) && **name != "noop") {
        let rounds: Result<Vec<_>, String> =
            (0..choice.n_rounds).map(|round| measure(structure, u64::from(round))).collect();
        match rounds {
            Ok(rounds) => holds &= print(structure, &rounds),
            Err(why) => {
                println!("  {structure:<20} failed: {why}");
                holds = false;
            }
        }
    }
    holds
}

/// Both times in seconds. The second is a lower bound if the window ended before the last insert.
struct Times {
    prefill_s: f64,
    window_s: f64,
}

fn print(structure: &str, rounds: &[Times]) -> bool {
    let of = |value: fn(&Times) -> f64| median(rounds.iter().map(value).collect());
    let ratio = of(|times| times.prefill_s / times.window_s);
    let (prefill_s, window_s) = (of(|times| times.prefill_s), of(|times| times.window_s));
    let word = if ratio <= LIMIT { "holds" } else { "OVER" };
    println!("  {structure:<20} {prefill_s:9.2} {window_s:9.2} {ratio:7.2} {word} (at most {LIMIT})");
    ratio <= LIMIT
}

fn measure(structure: &str, seed: u64) -> Result<Times, String> {
    let trial = Trial {
        structure,
        key_range: KEY_RANGE,
        prefill_keys: N_KEYS,
        held_keys: N_KEYS,
        mix: Mix { insert: 10_000, remove: 0, contains: 0, range: 0 },
        n_threads: 2,
        length: Length::Nanos(1_000_000),
        seed,
    };
    let prefill_ns = trial.run()?.prefill.wall_ns;
    let length = Length::Nanos((prefill_ns as f64 * WINDOW) as u64);
    let filled = Trial { prefill_keys: 0, length, ..trial }.run()?;
    Ok(Times { prefill_s: prefill_ns as f64 / 1e9, window_s: reached_ns(&filled) / 1e9 })
}

/// Returns when the operations reached the number of keys, on the line between the two samples around that; the end of
/// the window if they did not.
fn reached_ns(reply: &Reply) -> f64 {
    let between = |pair: &[Sample]| {
        let [from, to] = [pair[0], pair[1]];
        let inside = from.operations < N_KEYS && N_KEYS <= to.operations;
        let part = (N_KEYS - from.operations.min(N_KEYS)) as f64 / (to.operations - from.operations).max(1) as f64;
        inside.then(|| from.at_ns as f64 + part * (to.at_ns - from.at_ns) as f64)
    };
    let end = reply.samples.last().map_or(0.0, |sample| sample.at_ns as f64);
    reply.samples.windows(2).find_map(between).unwrap_or(end)
}
