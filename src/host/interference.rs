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
}

impl Counters {
    /// Reads the counters of this machine.
    pub fn read() -> Self {
        static THROTTLE_FILES: OnceLock<Vec<PathBuf>> = OnceLock::new();
        let tree = Tree::new(Path::new("/"));
        // The files do not come and go, and looking for them costs more than reading them.
        let files = THROTTLE_FILES.get_or_init(|| throttle_files(&tree));
        Self::of(&tree, files)
    }

    /// Reads the counters of a recorded machine.
    pub fn recorded(root: &Path) -> Self {
        let tree = Tree::new(root);
        Self::of(&tree, &throttle_files(&tree))
    }

    fn of(tree: &Tree, throttle_files: &[PathBuf]) -> Self {
        let times = tree.text("/proc/stat").ok().and_then(|stat| field(&stat, "cpu")).unwrap_or_default();
        let times: Vec<u64> = times.split(' ').map_while(|ticks| ticks.parse().ok()).collect();
        let busy = match times.as_slice() {
            // Time as a guest's host is in `user` already.
            &[user, nice, system, _idle, _iowait, irq, softirq, ..] => Some(user + nice + system + irq + softirq),
            _ => None,
        };
        Self {
            busy_ticks: busy,
            steal_ticks: times.get(7).copied(),
            swapped_pages: swapped(tree),
            throttled: throttled(throttle_files),
        }
    }

    /// Returns what happened since `earlier`, apart from the worker, whose own CPU time is `worker_cpu`.
    ///
    /// The kernel tells CPU time in ticks of 10 ms per CPU and kind, so less than that per CPU is noise.
    pub fn since(&self, earlier: &Self, worker_cpu: Nanos) -> Interference {
        let ticks = |now, before| difference(now, before).map(nanos);
        Interference {
            other_cpu_ns: ticks(self.busy_ticks, earlier.busy_ticks).map(|busy| busy.saturating_sub(worker_cpu.0)),
            steal_ns: ticks(self.steal_ticks, earlier.steal_ticks),
            swapped_pages: difference(self.swapped_pages, earlier.swapped_pages),
            throttled: difference(self.throttled, earlier.throttled),
        }
    }
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
        Counters { busy_ticks: Some(busy), steal_ticks: Some(steal), swapped_pages: Some(7), throttled: None }
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
        let before = Counters::read();
        let start = std::time::Instant::now();
        while start.elapsed() < std::time::Duration::from_millis(200) {
            std::hint::black_box(0);
        }
        let seen = Counters::read().since(&before, Nanos(0));
        // This thread had at least some of a CPU for 200 ms, whatever else ran.
        assert!(seen.other_cpu_ns.expect("Linux has /proc/stat") >= 5 * TICK, "{seen:?}");
        assert!(seen.steal_ns.is_some() && seen.swapped_pages.is_some(), "{seen:?}");
    }

    #[test]
    fn reads_recorded_counters() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            Counters::recorded(folder.path()).since(&Counters::recorded(folder.path()), Nanos(0)),
            Interference::default()
        );
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/stat", "cpu  1 2 3 100 50 4 5 6 0 0\ncpu0 1 2 3 100 50 4 5 6 0 0\n");
        write("proc/vmstat", "pswpin 3\npswpout 4\n");
        write("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "2\n");
        write("sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", "5\n");
        let expected =
            Counters { busy_ticks: Some(15), steal_ticks: Some(6), swapped_pages: Some(7), throttled: Some(7) };
        assert_eq!(Counters::recorded(folder.path()), expected);
    }
}
