//! The clock that stamps trials: how fine it is and what a read costs.

use std::{hint::black_box, time::Instant};

use rustix::time::{ClockId, clock_getres, clock_gettime};

use super::source::Probe;
use crate::host::machine::Told;

pub(super) fn resolution(probe: &Probe) -> Told {
    probe.live()?;
    let resolution = clock_getres(ClockId::Monotonic);
    Ok((i128::from(resolution.tv_sec) * 1_000_000_000 + i128::from(resolution.tv_nsec)).to_string())
}

/// The tick rate of the kernel (`CONFIG_HZ`): the coarse clock advances once a tick.
pub(super) fn tick_rate(probe: &Probe) -> Told {
    probe.live()?;
    let tick = clock_getres(ClockId::MonotonicCoarse);
    match u64::try_from(tick.tv_nsec) {
        // Rounded: a tick of 3,333,333 ns is 300 Hz.
        Ok(nanos) if nanos > 0 && tick.tv_sec == 0 => Ok(((1_000_000_000 + nanos / 2) / nanos).to_string()),
        _ => Err("the coarse clock has no resolution below one second".into()),
    }
}

/// The cost of one read, as the least mean of a few batches: interruptions only ever add.
pub(super) fn read_cost(probe: &Probe) -> Told {
    const BATCHES: u32 = 5;
    /// Long enough that the two reads around a batch weigh under 1 %, short enough for a snapshot: some 50 us a batch.
    const READS: u32 = 1_000;
    probe.live()?;
    let batch = || {
        let start = Instant::now();
        for _ in 0..READS {
            black_box(clock_gettime(ClockId::Monotonic));
        }
        start.elapsed().as_nanos()
    };
    let least = (0..BATCHES).map(|_| batch()).min().expect("there is at least one batch");
    let tenths = least * 10 / u128::from(READS);
    Ok(format!("{}.{}", tenths / 10, tenths % 10))
}
