//! What else happened on the machine during a trial: the difference of counters that the kernel keeps anyway.
//!
//! Cheap enough to be read before and after each trial.

use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
};

use super::{environment::field, machine::Tree};
use crate::{record::Interference, units::Nanos};

/// Counters since boot; `None` where the kernel does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// CPU time of all CPUs that was neither idle nor stolen, in ticks of the kernel's interface.
    busy_ticks: Option<u64>,
    steal_ticks: Option<u64>,
    swapped_pages: Option<u64>,
    throttled: Option<u64>,
    pinned: Pinned,
}

/// What concerns the CPUs to which a trial's threads are pinned; nothing where they float.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pinned {
    busy_ticks: Option<u64>,
    device_interrupts: Option<u64>,
    local_interrupts: Option<u64>,
    /// Lowest clock rate now.
    khz: Option<u64>,
}

impl Counters {
    /// Reads the counters of this machine, and those of the CPUs to which the threads of a trial are pinned.
    pub fn read(pinned: &[u32]) -> Self {
        static THROTTLE_FILES: OnceLock<Vec<PathBuf>> = OnceLock::new();
        let tree = Tree::new(Path::new("/"));
        // The files do not come and go, and looking for them costs more than reading them.
        let files = THROTTLE_FILES.get_or_init(|| throttle_files(&tree));
        Self::of(&tree, files, pinned)
    }

    /// Reads the counters of a recorded machine.
    pub fn recorded(root: &Path, pinned: &[u32]) -> Self {
        let tree = Tree::new(root);
        Self::of(&tree, &throttle_files(&tree), pinned)
    }

    fn of(tree: &Tree, throttle_files: &[PathBuf], pinned: &[u32]) -> Self {
        let times = times(tree, "cpu");
        Self {
            busy_ticks: busy(&times),
            steal_ticks: times.get(7).copied(),
            swapped_pages: swapped(tree),
            throttled: throttled(throttle_files),
            pinned: Pinned::of(tree, pinned),
        }
    }

    /// Returns what happened since `earlier`, apart from the worker, whose own CPU time is `worker_cpu`.
    ///
    /// The kernel tells CPU time in ticks of 10 ms per CPU and kind, so less than that per CPU is noise.
    pub fn since(&self, earlier: &Self, worker_cpu: Nanos) -> Interference {
        let ticks = |now, before| difference(now, before).map(nanos);
        let of_others = |now, before| ticks(now, before).map(|busy| busy.saturating_sub(worker_cpu.0));
        let (now, before) = (self.pinned, earlier.pinned);
        Interference {
            other_cpu_ns: of_others(self.busy_ticks, earlier.busy_ticks),
            steal_ns: ticks(self.steal_ticks, earlier.steal_ticks),
            swapped_pages: difference(self.swapped_pages, earlier.swapped_pages),
            throttled: difference(self.throttled, earlier.throttled),
            pinned_other_cpu_ns: of_others(now.busy_ticks, before.busy_ticks),
            device_interrupts: difference(now.device_interrupts, before.device_interrupts),
            local_interrupts: difference(now.local_interrupts, before.local_interrupts),
            before_khz: before.khz,
            after_khz: now.khz,
        }
    }
}

impl Pinned {
    /// A sum over CPUs of which one is not told is not told.
    fn of(tree: &Tree, cpus: &[u32]) -> Self {
        if cpus.is_empty() {
            return Self::default();
        }
        let interrupts = tree.text("/proc/interrupts").ok().and_then(|table| interrupts(&table, cpus));
        Self {
            busy_ticks: cpus.iter().map(|cpu| busy(&times(tree, &format!("cpu{cpu}")))).sum(),
            device_interrupts: interrupts.map(|(of_devices, _)| of_devices),
            local_interrupts: interrupts.map(|(_, local)| local),
            khz: clock_rate(tree, cpus),
        }
    }
}

/// CPU times of one line of `/proc/stat`, in ticks.
fn times(tree: &Tree, line: &str) -> Vec<u64> {
    let times = tree.text("/proc/stat").ok().and_then(|stat| field(&stat, line)).unwrap_or_default();
    times.split(' ').map_while(|ticks| ticks.parse().ok()).collect()
}

fn busy(times: &[u64]) -> Option<u64> {
    match times {
        // Time as a guest's host is in `user` already.
        &[user, nice, system, _idle, _iowait, irq, softirq, ..] => Some(user + nice + system + irq + softirq),
        _ => None,
    }
}

/// Adds up the interrupts of devices, whose rows are numbered, and all others; `None` unless each CPU has a column.
fn interrupts(table: &str, cpus: &[u32]) -> Option<(u64, u64)> {
    let (header, rows) = table.split_once('\n')?;
    let columns: Vec<&str> = header.split_whitespace().collect();
    let wanted = cpus.iter().map(|cpu| columns.iter().position(|column| *column == format!("CPU{cpu}")));
    let wanted: Vec<usize> = wanted.collect::<Option<_>>()?;
    let (mut of_devices, mut local) = (0, 0);
    for (name, counts) in rows.lines().filter_map(|row| row.split_once(':')) {
        let counts: Vec<u64> = counts.split_whitespace().map_while(|count| count.parse().ok()).collect();
        // Rows of errors have one number for all CPUs.
        if counts.len() < columns.len() {
            continue;
        }
        let is_device = name.trim().bytes().all(|letter| letter.is_ascii_digit());
        let sum: u64 = wanted.iter().map(|&column| counts[column]).sum();
        *(if is_device { &mut of_devices } else { &mut local }) += sum;
    }
    Some((of_devices, local))
}

/// Lowest clock rate of some CPUs, in kHz; `None` unless the kernel tells it of each.
fn clock_rate(tree: &Tree, cpus: &[u32]) -> Option<u64> {
    let rate = |cpu: &u32| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
        tree.text(&path).ok()?.parse::<u64>().ok()
    };
    cpus.iter().map(rate).collect::<Option<Vec<u64>>>()?.into_iter().min()
}

/// A counter that ran backwards was reset: how much happened is unknown.
fn difference(now: Option<u64>, before: Option<u64>) -> Option<u64> {
    now?.checked_sub(before?)
}

fn nanos(ticks: u64) -> u64 {
    ticks.saturating_mul(1_000_000_000 / rustix::param::clock_ticks_per_second())
}

fn swapped(tree: &Tree) -> Option<u64> {
    let counts = tree.text("/proc/vmstat").ok()?;
    let count = |key| field(&counts, key)?.parse::<u64>().ok();
    Some(count("pswpin")? + count("pswpout")?)
}

fn throttle_files(tree: &Tree) -> Vec<PathBuf> {
    let pattern = "/sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count";
    tree.glob(pattern).into_iter().map(|(_, path)| tree.locate(&path)).collect()
}

/// Adds up the events of cores and packages. Each CPU of a package counts the package's events, so the sum tells whether
/// there were any, not how many.
fn throttled(files: &[PathBuf]) -> Option<u64> {
    let count = |path: &PathBuf| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let counts: Vec<u64> = files.iter().filter_map(count).collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: u64 = 10_000_000;

    fn counters(busy: u64, steal: u64) -> Counters {
        Counters {
            busy_ticks: Some(busy),
            steal_ticks: Some(steal),
            swapped_pages: Some(7),
            throttled: None,
            pinned: Pinned::default(),
        }
    }

    #[test]
    fn the_worker_is_not_its_own_interference() {
        let seen = counters(150, 12).since(&counters(100, 10), Nanos(30 * TICK));
        assert_eq!(seen.other_cpu_ns, Some(20 * TICK));
        assert_eq!(seen.steal_ns, Some(2 * TICK));
        assert_eq!((seen.swapped_pages, seen.throttled), (Some(0), None));
        assert_eq!(counters(101, 0).since(&counters(100, 0), Nanos(30 * TICK)).other_cpu_ns, Some(0));
    }

    #[test]
    fn a_counter_that_ran_backwards_is_unknown() {
        assert_eq!(counters(100, 9).since(&counters(100, 10), Nanos(0)).steal_ns, None);
    }

    #[test]
    fn another_busy_thread_is_seen() {
        let before = Counters::read(&[]);
        let start = std::time::Instant::now();
        while start.elapsed() < std::time::Duration::from_millis(200) {
            std::hint::black_box(0);
        }
        let seen = Counters::read(&[]).since(&before, Nanos(0));
        // This thread had at least some of a CPU for 200 ms, whatever else ran.
        assert!(seen.other_cpu_ns.expect("Linux has /proc/stat") >= 5 * TICK, "{seen:?}");
        assert!(seen.steal_ns.is_some() && seen.swapped_pages.is_some(), "{seen:?}");
    }

    #[test]
    fn reads_recorded_counters() {
        let folder = tempfile::tempdir().unwrap();
        let recorded = |pinned: &[u32]| Counters::recorded(folder.path(), pinned);
        assert_eq!(recorded(&[0]).since(&recorded(&[0]), Nanos(0)), Interference::default());
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/stat", "cpu  1 2 3 100 50 4 5 6 0 0\ncpu0 1 2 2 50 25 1 1 6 0 0\ncpu1 0 0 1 50 25 3 4 0 0 0\n");
        write("proc/vmstat", "pswpin 3\npswpout 4\n");
        write("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "2\n");
        write("sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", "5\n");
        let mut expected = Counters {
            busy_ticks: Some(15),
            steal_ticks: Some(6),
            swapped_pages: Some(7),
            throttled: Some(7),
            pinned: Pinned::default(),
        };
        assert_eq!(recorded(&[]), expected);
        let table =
            "      CPU0  CPU1  CPU3\n  1:  10  20  40  IO-APIC  9  keyboard\nLOC:  100  200  400  timer\nERR:  7\n";
        write("proc/interrupts", table);
        expected.pinned =
            Pinned { busy_ticks: Some(8), device_interrupts: Some(20), local_interrupts: Some(200), khz: None };
        assert_eq!(recorded(&[1]), expected);
        for (cpu, khz) in [(0, "2000000\n"), (1, "1900000\n")] {
            write(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"), khz);
        }
        expected.pinned = Pinned {
            busy_ticks: Some(15),
            device_interrupts: Some(30),
            local_interrupts: Some(300),
            khz: Some(1_900_000),
        };
        assert_eq!(recorded(&[0, 1]), expected);
        let partly = recorded(&[1, 3]).pinned;
        assert_eq!(partly, Pinned { device_interrupts: Some(60), local_interrupts: Some(600), ..Pinned::default() });
        assert_eq!(recorded(&[2]).pinned, Pinned::default(), "a CPU without a column");
    }

    #[test]
    fn interrupts_of_this_machine_are_counted() {
        let before = Counters::read(&[0]);
        std::thread::sleep(std::time::Duration::from_millis(20));
        let seen = Counters::read(&[0]).since(&before, Nanos(0));
        assert!(seen.local_interrupts.is_some() && seen.device_interrupts.is_some(), "{seen:?}");
        assert!(seen.pinned_other_cpu_ns.is_some(), "{seen:?}");
    }
}
