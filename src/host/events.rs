//! Whether events of the processor and the kernel can be counted, by opening them for a moment.

use std::{
    io,
    os::fd::{FromRawFd, OwnedFd},
};

use super::machine::{Machine, Tree};

/// What kind of event, by the number of `perf_event_open`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Counted by the processor.
    Hardware = 0,
    /// Counted by the kernel.
    Software = 1,
}

/// Number of the hardware event that counts cycles.
const CYCLES: u64 = 0;

/// Number of the software event that is the kernel's timer.
const CPU_CLOCK: u64 = 0;

/// What samples this user may take.
#[derive(Debug)]
pub struct Sampling {
    /// `kernel.perf_event_paranoid`, or why it cannot be read.
    pub paranoid: Result<i64, String>,
    /// What became of opening the kernel's timer.
    pub clock: io::Result<()>,
    /// What became of opening the counter of cycles.
    pub cycles: io::Result<()>,
}

impl Sampling {
    /// Reads the setting and tries both events on this machine.
    pub fn here() -> Self {
        let tree = Tree::new(Machine::here().root);
        let level = tree.text("/proc/sys/kernel/perf_event_paranoid");
        let paranoid = level.and_then(|text| text.parse().map_err(|_| format!("`{text}` is not a number")));
        Self { paranoid, clock: open(EventKind::Software, CPU_CLOCK), cycles: open(EventKind::Hardware, CYCLES) }
    }
}

/// Opens a disabled event of this thread's user code, and closes it.
///
/// # Errors
/// What the kernel says: `EACCES` or `EPERM` when it is forbidden, `ENOENT` and others when there is no such event.
pub fn open(kind: EventKind, event: u64) -> io::Result<()> {
    /// `perf_event_attr` in its first size, as words: kind and size, event, then the flags in the sixth.
    const SIZE: u64 = 64;
    /// Disabled, without kernel and hypervisor.
    const FLAGS: u64 = 1 | 1 << 5 | 1 << 6;
    /// PERF_FLAG_FD_CLOEXEC.
    const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
    let kind = kind as u64;
    let head = if cfg!(target_endian = "little") { SIZE << 32 | kind } else { kind << 32 | SIZE };
    let attributes: [u64; 8] = [head, event, 0, 0, 0, FLAGS, 0, 0];
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
