//! Tries what no file tells: hardware counters, and switching address randomisation off.
//!
//! Leaves no trace: counters are closed at once, and what changes a thread is done in a thread that ends.

use std::{
    io,
    os::fd::{FromRawFd, OwnedFd},
    thread,
};

use super::{
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
        if let Err(error) = open_counter(event) {
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

/// Opens a disabled counter of this thread's user code, and closes it.
fn open_counter(event: u64) -> io::Result<()> {
    /// `perf_event_attr` in its first size, as words: type 0 (hardware) and size, event, then the flags in the sixth.
    const SIZE: u64 = 64;
    /// Disabled, without kernel and hypervisor.
    const FLAGS: u64 = 1 | 1 << 5 | 1 << 6;
    /// PERF_FLAG_FD_CLOEXEC.
    const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
    let attributes: [u64; 8] =
        [if cfg!(target_endian = "little") { SIZE << 32 } else { SIZE }, event, 0, 0, 0, FLAGS, 0, 0];
    let (this_thread, any_cpu, no_group): (libc::c_long, libc::c_long, libc::c_long) = (0, -1, -1);
    // SAFETY: the kernel reads 64 bytes, the size that the structure itself states, from an array of that length.
    let descriptor = unsafe {
        libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), this_thread, any_cpu, no_group, CLOSE_ON_EXEC)
    };
    let descriptor = i32::try_from(descriptor).ok().filter(|descriptor| *descriptor >= 0);
    let descriptor = descriptor.ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
    drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
    Ok(())
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
