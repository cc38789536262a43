//! The stream of one thread in the window, drawn without a structure: what a check of the generator examines.
//!
//! The very keys and operations that the trial draws, by the same code.

use super::window::{Generator, Operation, Size, SizedRanges};
use crate::{
    keys::{KeyPlan, KeySource, ThreadKeys},
    protocol::Request,
};

/// Draws the first `n_draws` keys and operations of a thread of a trial and hands them to `sink`, in order.
///
/// Zipf keys need memory and time before the first one: a table of 8 bytes a key for small ranges, and 8 MiB and a tenth of
/// a second for large ones. A thread index that the trial does not have is a stream that the trial does not draw.
///
/// # Errors
/// In words: those of [`KeyPlan::of`].
pub fn draw_into(
    request: &Request,
    thread_idx: u32,
    n_draws: u64,
    sink: &mut dyn FnMut(u64, Operation<Size>),
) -> Result<(), String> {
    match KeyPlan::of(request)?.thread(request.seed, thread_idx) {
        ThreadKeys::Uniform(keys) => draw(keys, request, thread_idx, n_draws, sink),
        ThreadKeys::Alias(keys) => draw(keys, request, thread_idx, n_draws, sink),
        ThreadKeys::Stream(keys) => draw(keys, request, thread_idx, n_draws, sink),
        ThreadKeys::Remainder(keys) => draw(keys, request, thread_idx, n_draws, sink),
    }
    Ok(())
}

fn draw<K: KeySource>(
    keys: K,
    request: &Request,
    thread_idx: u32,
    n_draws: u64,
    sink: &mut dyn FnMut(u64, Operation<Size>),
) {
    // A mix without range queries gives them no draw, whatever their size.
    let ranges = SizedRanges::new(request.mix, request.range_keys.unwrap_or(1));
    let mut generator = Generator::with_ranges(keys, request.mix, ranges, request.seed, thread_idx);
    for _ in 0..n_draws {
        let (key, operation) = generator.draw();
        sink(key, operation);
    }
}
