//! Tries what no file tells: hardware counters, and switching address randomisation off.
//!
//! Leaves no trace: counters are closed at once, and what changes a thread is done in a thread that ends.

use std::{io, thread};

use super::{
    super::events::{self, EventKind},
    Finding,
    Status::{Cannot, Good, Warn},
};

/// Hardware events by the numbers of `perf_event_open`.
const EVENTS: [(u64, &str); 4] = [(0, "cycles"), (1, "instructions"), (2, "cache references"), (3, "cache misses")];

pub(super) fn attempt() -> Vec<Finding> {
    vec![counters(), randomisation()]
}

fn counters() -> Finding {
    let mut failures = Vec::new();
    for (event, name) in EVENTS {
        if let Err(error) = events::open(EventKind::Hardware, event) {
            failures.push((name, error));
        }
    }
    let Some((_, first)) = failures.first() else {
        return Finding::new("counters", Good, "cycles, instructions and cache misses can be counted");
    };
    let names: Vec<&str> = failures.iter().map(|(name, _)| *name).collect();
    let names = names.join(", ");
    let status = if failures.len() == EVENTS.len() { Cannot } else { Warn };
    match first.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            Finding::new("counters", status, format!("no hardware counter for {names}"))
                .advise("usual in a guest: measure on bare metal, or let the hypervisor pass the counters on")
        }
        Some(libc::EACCES | libc::EPERM) => Finding::new("counters", status, format!("not allowed to count {names}"))
            .advise("`sysctl kernel.perf_event_paranoid=1`; in a container also allow perf_event_open"),
        Some(libc::ENOSYS) => Finding::new("counters", status, "the kernel has no perf_event_open"),
        _ => Finding::new("counters", status, format!("cannot count {names}: {first}")),
    }
}

fn randomisation() -> Finding {
    // The personality belongs to the thread, and ends with it.
    let outcome = thread::spawn(switch_randomisation_off).join().expect("the thread only makes two system calls");
    match outcome {
        Ok(()) => Finding::new("ASLR", Good, "address randomisation can be switched off for a trial"),
        Err(error) => Finding::new("ASLR", Cannot, format!("address randomisation cannot be switched off: {error}"))
            .advise("a filter of system calls forbids it: leave `aslr: on`, or run outside the container"),
    }
}

fn switch_randomisation_off() -> io::Result<()> {
    /// Asks without changing.
    const QUERY: libc::c_ulong = 0xffff_ffff;
    // SAFETY: the call takes a number and touches no memory of ours.
    let now = unsafe { libc::personality(QUERY) };
    let now = libc::c_ulong::try_from(now).map_err(|_| io::Error::last_os_error())?;
    let off = now | libc::ADDR_NO_RANDOMIZE as libc::c_ulong;
    // SAFETY: as above; this thread ends right after.
    match unsafe { libc::personality(off) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
