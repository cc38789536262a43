//! The faults that a request plants in the harness, and where each bites.
//!
//! All are decided outside of the measured loop. A window of operations instead of time knows no lateness and no nominal
//! time.

use crate::protocol::{Fault, Length, Request};

fn has(request: &Request, fault: Fault) -> bool {
    request.harness.fault == Some(fault)
}

/// Tells whether the prefill is to draw with replacement.
pub(super) fn draws_with_replacement(request: &Request) -> bool {
    has(request, Fault::PrefillWithReplacement)
}

/// Returns the CPU to which a thread pins itself.
pub(super) fn pin(request: &Request, thread_idx: u32) -> Option<u32> {
    let shift = usize::from(has(request, Fault::RotatedPins));
    request.cpus[(thread_idx as usize + shift) % request.cpus.len()]
}

/// Returns how long the window is open, in nanoseconds; `None` if operations end it.
pub(super) fn window_ns(request: &Request) -> Option<u64> {
    let Length::Nanos(length_ns) = request.length else { return None };
    let beyond_ns = if has(request, Fault::NominalTime) { length_ns / 5 } else { 0 };
    Some(length_ns.saturating_add(beyond_ns))
}

/// Returns how long after the opening a thread begins, in nanoseconds, where it is not at once.
pub(super) fn lateness_ns(request: &Request, thread_idx: u32) -> Option<u64> {
    let Length::Nanos(length_ns) = request.length else { return None };
    let is_last = thread_idx as usize + 1 == request.cpus.len();
    (is_last && has(request, Fault::LateThread)).then_some(length_ns / 3)
}

/// Returns the stop stamp that a thread hands in.
pub(super) fn stop_stamp_ns(request: &Request, start_ns: u64, stop_ns: u64) -> u64 {
    match request.length {
        Length::Nanos(length_ns) if has(request, Fault::NominalTime) => start_ns.saturating_add(length_ns),
        _ => stop_ns,
    }
}
