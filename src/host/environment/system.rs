//! The system around the process: load, interrupts, heat, tools.

use std::{env, os::unix::fs::PermissionsExt, path::PathBuf};

use super::source::{Probe, Source, fold, or_none};
use crate::host::{
    cpu_list::CpuList,
    digest,
    machine::{Told, Tree},
};

/// How the kernel may interrupt itself, from its version line and its boot options.
pub(super) fn preemption(probe: &Probe) -> Told {
    let version = probe.tree.text("/proc/sys/kernel/version")?;
    let built = version.split(' ').find(|word| word.starts_with("PREEMPT")).unwrap_or("no PREEMPT in its version");
    match Source::BootOption("preempt").read(probe) {
        Ok(chosen) if chosen != "not set" => Ok(format!("{built}, booted with preempt={chosen}")),
        _ => Ok(built.to_owned()),
    }
}

/// Settings of the kernel's own build that change measurements.
///
/// Only a plain configuration is looked into. `/proc/config.gz` is packed; its digest stands in another row, and the two
/// settings that matter most are asked from the running kernel (tick rate, preemption).
pub(super) fn kernel_options(probe: &Probe) -> Told {
    const NAMES: [&str; 10] = [
        "CONFIG_HZ",
        "CONFIG_PREEMPT",
        "CONFIG_PREEMPT_VOLUNTARY",
        "CONFIG_PREEMPT_DYNAMIC",
        "CONFIG_PREEMPT_RT",
        "CONFIG_NO_HZ_FULL",
        "CONFIG_SCHED_AUTOGROUP",
        "CONFIG_NUMA_BALANCING",
        "CONFIG_TRANSPARENT_HUGEPAGE",
        "CONFIG_KASAN",
    ];
    let release = probe.tree.text("/proc/sys/kernel/osrelease")?;
    let path = format!("/boot/config-{release}");
    let config = probe.tree.text(&path).map_err(|reason| match probe.tree.exists("/proc/config.gz") {
        true => format!("{reason}; /proc/config.gz is packed"),
        false => reason,
    })?;
    let value = |name: &str| super::source::field(&config, name).unwrap_or_else(|| "n".into());
    Ok(NAMES.iter().map(|name| format!("{name}={}", value(name))).collect::<Vec<_>>().join(" "))
}

pub(super) fn kernel_config_digest(probe: &Probe) -> Told {
    let release = probe.tree.text("/proc/sys/kernel/osrelease")?;
    let plain = format!("/boot/config-{release}");
    let bytes = probe
        .tree
        .bytes("/proc/config.gz")
        .or_else(|gone| probe.tree.bytes(&plain).map_err(|reason| format!("{gone}; {reason}")))?;
    Ok(digest::of_bytes(&bytes))
}

/// Which CPUs serve how many interrupt lines: `0-7 for 12 lines; 3 for 1 line`.
pub(super) fn irq_affinity(probe: &Probe) -> Told {
    let lines = probe.tree.glob("/proc/irq/*/smp_affinity_list");
    if lines.is_empty() {
        return Err("no such file: /proc/irq/*/smp_affinity_list".into());
    }
    let mut counts: Vec<(String, usize)> = Vec::new();
    for (_, path) in lines {
        let cpus = probe.tree.text(&path).map_or_else(|_| "unreadable".into(), |cpus| cpus.to_string());
        match counts.iter_mut().find(|(known, _)| *known == cpus) {
            Some((_, count)) => *count += 1,
            None => counts.push((cpus, 1)),
        }
    }
    counts.sort();
    let describe =
        |(cpus, count): (String, usize)| format!("{cpus} for {count} line{}", if count == 1 { "" } else { "s" });
    Ok(counts.into_iter().map(describe).collect::<Vec<_>>().join("; "))
}

/// Whether irqbalance has left the mark of a running daemon.
pub(super) fn irqbalance(probe: &Probe) -> Told {
    let marks = ["/run/irqbalance.pid", "/run/irqbalance", "/run/irqbalance/irqbalance.pid"];
    let found = marks.into_iter().find(|mark| probe.tree.exists(mark));
    Ok(found.map_or_else(|| "no mark of it in /run".into(), |mark| format!("{mark} exists")))
}

/// CPU time since boot by use, all CPUs, in ticks of the kernel's interface.
pub(super) fn cpu_times(probe: &Probe) -> Told {
    const NAMES: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
    let times = Source::Field("/proc/stat", "cpu").read(probe)?;
    let times: Vec<String> = NAMES.iter().zip(times.split_whitespace()).map(|(n, t)| format!("{n} {t}")).collect();
    Ok(times.join(", "))
}

/// Interrupts since boot: the first number of the line is their sum.
pub(super) fn interrupts(probe: &Probe) -> Told {
    let line = Source::Field("/proc/stat", "intr").read(probe)?;
    line.split(' ').next().map(str::to_owned).ok_or_else(|| "no sum after `intr` in /proc/stat".into())
}

pub(super) fn uptime(probe: &Probe) -> Told {
    let text = probe.tree.text("/proc/uptime")?;
    Ok(text.split(' ').next().unwrap_or_default().to_owned())
}

/// Every temperature: chip and label, in degrees Celsius.
pub(super) fn temperatures(probe: &Probe) -> Told {
    let tree = &probe.tree;
    let mut values = Vec::new();
    for (_, path) in tree.glob("/sys/class/hwmon/hwmon*/temp*_input") {
        let (chip, _) = path.rsplit_once('/').expect("the pattern has folders");
        let chip = tree.text(&format!("{chip}/name")).unwrap_or_else(|_| "unnamed".into());
        let label = tree.text(&path.replace("_input", "_label")).unwrap_or_else(|_| "".into());
        values.push(fold(&format!("{chip} {label} {}", degrees(tree, &path))));
    }
    for (_, path) in tree.glob("/sys/class/thermal/thermal_zone*/temp") {
        let kind = tree.text(&path.replace("/temp", "/type")).unwrap_or_else(|_| "zone".into());
        values.push(format!("{kind} {}", degrees(tree, &path)));
    }
    match values.is_empty() {
        true => Err("no such file: /sys/class/hwmon/hwmon*/temp*_input, /sys/class/thermal/thermal_zone*/temp".into()),
        false => Ok(values.join(", ")),
    }
}

fn degrees(tree: &Tree, path: &str) -> String {
    tree.number(path).map_or_else(
        |_| "unreadable".into(),
        |thousandths| format!("{}.{}", thousandths / 1000, thousandths.abs() % 1000 / 100),
    )
}

/// Power caps of each zone that RAPL governs, in watts.
pub(super) fn power_caps(probe: &Probe) -> Told {
    let zones = probe.tree.glob("/sys/class/powercap/intel-rapl:*/constraint_0_power_limit_uw");
    if zones.is_empty() {
        return Err("no such file: /sys/class/powercap/intel-rapl:*/constraint_0_power_limit_uw".into());
    }
    let describe = |(zone, path): &(String, String)| match probe.tree.number(path) {
        Ok(microwatts) => format!("{zone}: {} W", microwatts / 1_000_000),
        Err(reason) => format!("{zone}: {reason}"),
    };
    Ok(zones.iter().map(describe).collect::<Vec<_>>().join("; "))
}

/// CPUs that the kernel keeps idle for its own reasons or ours: present but not online.
pub(super) fn offline(probe: &Probe) -> Told {
    let present: CpuList =
        probe.tree.text("/sys/devices/system/cpu/present")?.parse().map_err(|error| format!("{error}"))?;
    let offline: CpuList = present.iter().filter(|&cpu| !probe.cpus.contains(cpu)).collect();
    Ok(or_none(offline.to_string()))
}

pub(super) fn valgrind(probe: &Probe) -> Told {
    tool(probe, "valgrind")
}

pub(super) fn perf(probe: &Probe) -> Told {
    tool(probe, "perf")
}

pub(super) fn hyperfine(probe: &Probe) -> Told {
    tool(probe, "hyperfine")
}

pub(super) fn chromium(probe: &Probe) -> Told {
    tool(probe, "chromium")
}

fn tool(probe: &Probe, name: &str) -> Told {
    probe.live()?;
    find_tool(name).map(|path| path.display().to_string()).ok_or_else(|| format!("no `{name}` in PATH"))
}

/// Finds an executable file in the search path; nothing is started.
pub(crate) fn find_tool(name: &str) -> Option<PathBuf> {
    let runs =
        |path: &PathBuf| path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(name)).find(runs)
}
