//! The machine of the run that never happened.

use rare::record::{Entry, Environment, Reading, Snapshot, environment::Stability};

/// A laptop-like record with a changed setting and a few unreadable parameters.
pub fn environment() -> Environment {
    let entry = |key: &str, value: &str, unit: &str, source: &str, stability| Entry {
        key: key.to_owned(),
        reading: Reading::Value(value.to_owned()),
        unit: unit.to_owned(),
        source: source.to_owned(),
        stability,
    };
    let unreadable = |key: &str, reason: &str, source: &str| Entry {
        key: key.to_owned(),
        reading: Reading::Unreadable(reason.to_owned()),
        unit: String::new(),
        source: source.to_owned(),
        stability: Stability::Setting,
    };
    let entries = vec![
        entry("machine.cpu_model", "Intel(R) Xeon(R) CPU E7-4830 v2 @ 2.20GHz", "", "/proc/cpuinfo", Stability::Fixed),
        entry("machine.hypervisor", "kvm", "", "/proc/cpuinfo", Stability::Fixed),
        entry("machine.memory", "25769803776", "B", "/proc/meminfo", Stability::Fixed),
        entry(
            "power.governor",
            "performance",
            "",
            "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
            Stability::Setting,
        ),
        unreadable(
            "power.turbo",
            "no such file: intel_pstate is not loaded",
            "/sys/devices/system/cpu/intel_pstate/no_turbo",
        ),
        unreadable("power.prefetchers", "permission denied: needs root", "/dev/cpu/0/msr"),
        entry("kernel.release", "6.1.0-28-amd64", "", "uname", Stability::Fixed),
        entry("kernel.huge_pages", "madvise", "", "/sys/kernel/mm/transparent_hugepage/enabled", Stability::Setting),
        entry("load.average", "0.42 0.31 0.12", "", "/proc/loadavg", Stability::Volatile),
        entry("build.rustc", "1.95.0", "", "build", Stability::Fixed),
        entry(
            "build.worker_sha256",
            "9c1e4b7d20aa7b0c55a1be02c3b0b3c9e8a1f0aa31b2f0c7745f10de9a6d0b11",
            "",
            "the worker's file",
            Stability::Fixed,
        ),
    ];
    let before = Snapshot { taken: "2026-12-01T10:14:58Z".to_owned(), entries };
    let mut after = before.clone();
    after.taken = "2026-12-01T10:24:31Z".to_owned();
    for entry in &mut after.entries {
        match entry.key.as_str() {
            "load.average" => entry.reading = Reading::Value("2.10 1.84 0.92".to_owned()),
            "power.governor" => entry.reading = Reading::Value("powersave".to_owned()),
            _ => {}
        }
    }
    Environment { format: 1, plan: "a7".repeat(32), before, after: Some(after) }
}
