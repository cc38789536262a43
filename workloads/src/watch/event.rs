//! One event that the kernel counts of one thread: opening, reading, and why it could not be opened.
//!
//! By the system call itself: of its structure only the part that every kernel has known is needed.

use std::{
    fs::{self, File},
    io::{self, Read},
    mem,
    os::fd::FromRawFd,
};

/// What the structure of the first kernels held, in bytes.
const ATTRIBUTES_BYTES: u32 = 64;

const DISABLED: u64 = 1 << 0;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;

/// The reading tells how long the event was enabled and how long it was counted.
const READ_TIMES: u64 = 1 << 0 | 1 << 1;

/// What is to be counted, as the kernel takes it.
#[repr(C)]
struct Attributes {
    kind: u32,
    bytes: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_kind: u32,
    config_1: u64,
}

const _: () = assert!(mem::size_of::<Attributes>() == ATTRIBUTES_BYTES as usize);

/// An event by the numbers of `linux/perf_event.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code {
    /// Kind of the event: 0 of the processor, 1 of the kernel, 3 of a cache.
    pub kind: u32,
    /// Number within the kind.
    pub config: u64,
}

/// Whether what the kernel does for the thread is counted too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// It is.
    Whole,
    /// It is not.
    User,
}

/// An event being counted of the thread that opened it.
#[derive(Debug)]
pub(super) struct Open(File);

/// What a counter read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub count: u64,
    /// Nanoseconds in which it should have counted.
    pub enabled_ns: u64,
    /// Nanoseconds in which it did.
    pub running_ns: u64,
}

/// Why an event is not counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// There is no such counter, in words.
    Unsupported(String),
    /// It may not be counted, in words.
    Denied(String),
}

impl Open {
    /// Opens an event of the calling thread, not counting yet.
    pub fn of_this_thread(code: Code, scope: Scope) -> Result<Self, Refusal> {
        const THIS_THREAD: libc::pid_t = 0;
        const ANY_CPU: libc::c_int = -1;
        const NO_GROUP: libc::c_int = -1;
        let attributes = Attributes {
            kind: code.kind,
            bytes: ATTRIBUTES_BYTES,
            config: code.config,
            sample_period: 0,
            sample_type: 0,
            read_format: READ_TIMES,
            flags: DISABLED | if scope == Scope::User { EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR } else { 0 },
            wakeup_events: 0,
            breakpoint_kind: 0,
            config_1: 0,
        };
        // Not libc's flag, which is narrower than the argument of the system call.
        let close_on_exec: libc::c_ulong = 1 << 3;
        // SAFETY: the structure is live and tells its own length; the kernel reads nothing else.
        let descriptor = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                THIS_THREAD,
                ANY_CPU,
                NO_GROUP,
                close_on_exec,
            )
        };
        let Ok(descriptor) = i32::try_from(descriptor).and_then(u32::try_from).map(u32::cast_signed) else {
            return Err(refusal(&io::Error::last_os_error()));
        };
        // SAFETY: the kernel has just opened it for us, and nothing else knows of it.
        Ok(Self(unsafe { File::from_raw_fd(descriptor) }))
    }

    /// Reads what was counted.
    pub fn read(&self) -> io::Result<Reading> {
        let mut words = [[0_u8; 8]; 3];
        (&self.0).read_exact(words.as_flattened_mut())?;
        let [count, enabled_ns, running_ns] = words.map(u64::from_ne_bytes);
        Ok(Reading { count, enabled_ns, running_ns })
    }
}

/// Says why an event could not be opened.
fn refusal(error: &io::Error) -> Refusal {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => Refusal::Denied(format!("perf_event_open fails: {error}; {}", setting())),
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            Refusal::Unsupported(format!("the machine has no such counter, perf_event_open fails: {error}"))
        }
        _ => Refusal::Unsupported(format!("perf_event_open fails: {error}")),
    }
}

/// Tells the setting that decides who may count what.
fn setting() -> String {
    const SETTING: &str = "/proc/sys/kernel/perf_event_paranoid";
    match fs::read_to_string(SETTING) {
        Ok(level) => format!("{SETTING} is {}", level.trim()),
        Err(error) => format!("{SETTING} cannot be read: {error}"),
    }
}

/// Counts, while `action` runs, every event that the calling thread has opened: one system call begins and one ends the
/// counting of all.
pub(super) fn count_during<T>(action: impl FnOnce() -> T) -> T {
    // SAFETY: takes no pointer, and touches nothing but the calling thread's events.
    unsafe { libc::prctl(libc::PR_TASK_PERF_EVENTS_ENABLE) };
    let result = action();
    // SAFETY: as above.
    unsafe { libc::prctl(libc::PR_TASK_PERF_EVENTS_DISABLE) };
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_and_what_is_not_there_are_told_apart() {
        for number in [libc::EACCES, libc::EPERM] {
            let Refusal::Denied(reason) = refusal(&io::Error::from_raw_os_error(number)) else {
                panic!("{number} is a denial");
            };
            assert!(reason.contains("os error") && reason.contains("perf_event_paranoid is "), "{reason}");
        }
        for number in [libc::ENOENT, libc::EOPNOTSUPP, libc::ENODEV, libc::EMFILE] {
            let refusal = refusal(&io::Error::from_raw_os_error(number));
            assert!(matches!(&refusal, Refusal::Unsupported(reason) if reason.contains("os error")), "{refusal:?}");
        }
    }
}
