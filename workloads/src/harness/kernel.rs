//! What the kernel counts of one thread: CPU time, switches, faults, migrations.

use std::{fs::File, mem, os::unix::fs::FileExt};

/// Counts of the calling thread since it began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    pub user_ns: u64,
    pub system_ns: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
}

impl Usage {
    pub fn of_this_thread() -> Self {
        // SAFETY: a record of integers, for which all zeroes is a value.
        let mut usage: libc::rusage = unsafe { mem::zeroed() };
        // SAFETY: the record is live for the call.
        let error = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
        assert_eq!(error, 0, "getrusage fails only for a wrong argument");
        Self {
            user_ns: nanos(usage.ru_utime),
            system_ns: nanos(usage.ru_stime),
            voluntary_switches: usage.ru_nvcsw.cast_unsigned(),
            involuntary_switches: usage.ru_nivcsw.cast_unsigned(),
            minor_faults: usage.ru_minflt.cast_unsigned(),
            major_faults: usage.ru_majflt.cast_unsigned(),
        }
    }

    pub fn since(self, earlier: Self) -> Self {
        // The kernel scales user and system time to their exact sum, and may lower one of them by a rounding.
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            voluntary_switches: self.voluntary_switches - earlier.voluntary_switches,
            involuntary_switches: self.involuntary_switches - earlier.involuntary_switches,
            minor_faults: self.minor_faults - earlier.minor_faults,
            major_faults: self.major_faults - earlier.major_faults,
        }
    }
}

fn nanos(time: libc::timeval) -> u64 {
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_usec.cast_unsigned() * 1_000
}

/// Reads the scheduler's own count of migrations of the calling thread. Opened before the window; a reading takes a few
/// microseconds and allocates only to say why it failed.
pub(crate) struct Migrations(Result<File, String>);

impl Migrations {
    const PATH: &str = "/proc/thread-self/sched";

    pub fn of_this_thread() -> Self {
        Self(File::open(Self::PATH).map_err(|error| format!("cannot open {}: {error}", Self::PATH)))
    }

    pub fn count(&self) -> Result<u64, String> {
        let file = self.0.as_ref().map_err(Clone::clone)?;
        let mut text = [0; 4096];
        let n_bytes = file.read_at(&mut text, 0).map_err(|error| format!("cannot read {}: {error}", Self::PATH))?;
        parse_migrations(&text[..n_bytes]).ok_or_else(|| format!("{} does not tell nr_migrations", Self::PATH))
    }
}

/// Finds the number in a line such as `se.nr_migrations  :  12`.
fn parse_migrations(text: &[u8]) -> Option<u64> {
    let line = text.split(|&byte| byte == b'\n').find(|line| line.starts_with(b"se.nr_migrations"))?;
    let (_, number) = std::str::from_utf8(line).ok()?.split_once(':')?;
    number.trim().parse().ok()
}

/// Asks the kernel to wake the calling thread promptly: without the slack of 50 us that timers have, and with short
/// slices, so that it gets a CPU soon even when every CPU is busy measuring. Kernels before 6.12 ignore the slices; a
/// refusal of either changes nothing but the lateness, which is measured.
pub(crate) fn prefer_prompt_waking() {
    // SAFETY: takes a number and touches nothing but the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    prefer_short_slices();
}

fn prefer_short_slices() {
    /// A tenth of a millisecond, the shortest that the kernel grants.
    const SLICE_NS: u64 = 100_000;
    // SAFETY: a record of integers, for which all zeroes is a value: policy SCHED_OTHER, no flags.
    let mut attributes: libc::sched_attr = unsafe { mem::zeroed() };
    let size = mem::size_of_val(&attributes);
    // SAFETY: reads the attributes of the calling thread into a live record of the size given.
    let error = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    if error == 0 && attributes.sched_policy == libc::SCHED_OTHER.cast_unsigned() {
        attributes.sched_runtime = SLICE_NS;
        // SAFETY: the record is live and was filled in by the kernel, which checks what we changed.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_migrations_line_only() {
        let text = b"cat (1, #threads: 1)\nse.nr_migrations                             :                   12\nnr_switches : 7\n";
        assert_eq!(parse_migrations(text), Some(12));
        assert_eq!(parse_migrations(b"nr_switches : 7\n"), None);
        assert_eq!(parse_migrations(b"se.nr_migrations : many\n"), None);
    }

    #[test]
    fn work_shows_in_the_usage() {
        let before = Usage::of_this_thread();
        let mut pages = vec![0_u8; 8 << 20];
        pages.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        std::hint::black_box(&pages);
        std::thread::sleep(std::time::Duration::from_millis(1));
        let usage = Usage::of_this_thread().since(before);
        assert!(usage.minor_faults > 0 && usage.voluntary_switches > 0, "{usage:?}");
        assert!(usage.user_ns + usage.system_ns > 0, "{usage:?}");
    }
}
