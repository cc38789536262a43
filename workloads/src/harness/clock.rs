//! The one clock of a trial: CLOCK_MONOTONIC, in nanoseconds. Never read within the measured loop.

use rustix::{
    io::Errno,
    thread::clock_nanosleep_absolute,
    time::{ClockId, Timespec, clock_gettime},
};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Returns the time in nanoseconds since an arbitrary origin, the same for all threads; never 0.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * NANOS_PER_SECOND + now.tv_nsec.cast_unsigned()
}

/// Sleeps until `now_ns()` is `moment_ns`; at once when it has passed.
pub(crate) fn sleep_until(moment_ns: u64) {
    let moment = Timespec {
        tv_sec: (moment_ns / NANOS_PER_SECOND).cast_signed(),
        tv_nsec: (moment_ns % NANOS_PER_SECOND).cast_signed(),
    };
    while clock_nanosleep_absolute(ClockId::Monotonic, &moment) == Err(Errno::INTR) {}
}
