//! The processor: topology, caches, and the switches that only model-specific registers show.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    os::unix::fs::FileExt,
};

use super::source::{Probe, Source, collapse, fold};
use crate::host::{
    cpu_list::CpuList,
    machine::{Told, reason},
    topology,
};

pub(super) fn architecture(probe: &Probe) -> Told {
    probe.live()?;
    Ok(rustix::system::uname().machine().to_string_lossy().into_owned())
}

/// CPUs in the affinity mask; the cpuset is already taken off it by the kernel.
pub(super) fn affinity(probe: &Probe) -> Told {
    match probe.machine.is_live() {
        true => {
            topology::affinity().map(|cpus| cpus.to_string()).map_err(|error| format!("sched_getaffinity: {error}"))
        }
        false => Source::Field("/proc/self/status", "Cpus_allowed_list").read(probe),
    }
}

pub(super) fn sockets(probe: &Probe) -> Told {
    distinct(probe, &["physical_package_id"])
}

pub(super) fn dies(probe: &Probe) -> Told {
    distinct(probe, &["physical_package_id", "die_id"])
}

pub(super) fn cores(probe: &Probe) -> Told {
    distinct(probe, &["thread_siblings_list"])
}

pub(super) fn threads(probe: &Probe) -> Told {
    match probe.cpus.len() {
        0 => Err("no online CPU in /sys/devices/system/cpu/online".into()),
        count => Ok(count.to_string()),
    }
}

pub(super) fn package_map(probe: &Probe) -> Told {
    groups(probe, "topology/physical_package_id")
}

pub(super) fn sibling_map(probe: &Probe) -> Told {
    shared(probe, "topology/thread_siblings_list")
}

pub(super) fn cluster_map(probe: &Probe) -> Told {
    shared(probe, "topology/cluster_cpus_list")
}

/// CPUs of each type on a hybrid machine.
pub(super) fn types(probe: &Probe) -> Told {
    let tree = &probe.tree;
    let Ok(performance) = tree.text("/sys/devices/cpu_core/cpus") else {
        return Err("not a hybrid processor: no such file: /sys/devices/cpu_core/cpus".into());
    };
    let efficient = tree.text("/sys/devices/cpu_atom/cpus");
    Ok(format!("P on {performance}; E on {}", efficient.as_deref().unwrap_or("none")))
}

/// Counts the distinct combinations of topology files over the online CPUs.
fn distinct(probe: &Probe, files: &[&str]) -> Told {
    let mut seen = BTreeSet::new();
    for cpu in probe.cpus.iter() {
        let path = |file| format!("/sys/devices/system/cpu/cpu{cpu}/topology/{file}");
        seen.insert(files.iter().map(|file| probe.tree.text(&path(file))).collect::<Result<Vec<_>, _>>()?);
    }
    threads(probe).map(|_| seen.len().to_string())
}

/// Lists the CPUs of each value: `0: 0-7; 1: 8-15`.
fn groups(probe: &Probe, file: &str) -> Told {
    let mut groups: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
    for cpu in probe.cpus.iter() {
        groups.entry(probe.tree.number(&format!("/sys/devices/system/cpu/cpu{cpu}/{file}"))?).or_default().push(cpu);
    }
    threads(probe)?;
    let group = |(value, cpus)| format!("{value}: {}", CpuList::from_iter::<Vec<u32>>(cpus));
    Ok(groups.into_iter().map(group).collect::<Vec<_>>().join("; "))
}

/// Lists the distinct sets of CPUs that share something: `0,4; 1,5`.
fn shared(probe: &Probe, file: &str) -> Told {
    let mut sets: Vec<String> = Vec::new();
    for cpu in probe.cpus.iter() {
        let set = probe.tree.text(&format!("/sys/devices/system/cpu/cpu{cpu}/{file}"))?.to_string();
        if !sets.contains(&set) {
            sets.push(set);
        }
    }
    threads(probe).map(|_| sets.join("; "))
}

pub(super) fn level1_data(probe: &Probe) -> Told {
    cache(probe, "1", "Data")
}

pub(super) fn level1_instruction(probe: &Probe) -> Told {
    cache(probe, "1", "Instruction")
}

pub(super) fn level2(probe: &Probe) -> Told {
    cache(probe, "2", "Unified")
}

pub(super) fn level3(probe: &Probe) -> Told {
    cache(probe, "3", "Unified")
}

pub(super) fn level4(probe: &Probe) -> Told {
    cache(probe, "4", "Unified")
}

/// Which CPUs share a cache of each level, the data side.
pub(super) fn cache_sharing(probe: &Probe) -> Told {
    let mut levels: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for cpu in probe.cpus.iter() {
        for (_, index) in indices(probe, cpu) {
            let text = |file: &str| probe.tree.text(&format!("{index}/{file}"));
            if &*text("type")? == "Instruction" {
                continue;
            }
            let (level, cpus) = (text("level")?.to_string(), text("shared_cpu_list")?.to_string());
            let sets = levels.entry(level).or_default();
            if !sets.contains(&cpus) {
                sets.push(cpus);
            }
        }
    }
    if levels.is_empty() {
        return Err("no such file: /sys/devices/system/cpu/cpu*/cache/index*".into());
    }
    let level = |(level, sets): (String, Vec<String>)| format!("L{level}: {}", sets.join(" | "));
    Ok(levels.into_iter().map(level).collect::<Vec<_>>().join("; "))
}

fn indices(probe: &Probe, cpu: u32) -> Vec<(String, String)> {
    probe.tree.glob(&format!("/sys/devices/system/cpu/cpu{cpu}/cache/index*"))
}

/// Describes one cache of each CPU: size, line, associativity.
fn cache(probe: &Probe, level: &str, kind: &str) -> Told {
    let describe = |cpu| {
        for (_, index) in indices(probe, cpu) {
            let text = |file: &str| probe.tree.text(&format!("{index}/{file}"));
            if &*text("level")? == level && &*text("type")? == kind {
                let size = text("size")?.replace('K', " KiB").replace('M', " MiB");
                let ways = text("ways_of_associativity").map_or_else(|_| "?".into(), |ways| ways.to_string());
                return Ok(format!("{size}, {} B lines, {ways} ways", text("coherency_line_size")?));
            }
        }
        Err(format!("no level {level} {} cache in /sys/devices/system/cpu/cpu*/cache", kind.to_lowercase()))
    };
    collapse(probe.cpus.iter().map(|cpu| (cpu, describe(cpu))).collect(), str::to_owned)
}

/// Hardware prefetchers that are switched off, from MSR 0x1a4 of Intel's cores.
pub(super) fn prefetchers(probe: &Probe) -> Told {
    const NAMES: [&str; 4] = ["L2 streamer", "L2 adjacent line", "L1 streamer", "L1 stride by instruction"];
    registers(probe, "GenuineIntel", 0x1a4, |bits| {
        let off = NAMES.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| *name);
        let off: Vec<&str> = off.collect();
        if off.is_empty() { "all four on".into() } else { format!("off: {}", off.join(", ")) }
    })
}

/// Whether turbo is disengaged: bit 38 of MSR 0x1a0 on Intel, bit 25 of MSR 0xc0010015 on AMD.
pub(super) fn turbo_register(probe: &Probe) -> Told {
    let word = |off: bool| if off { "off" } else { "on" }.to_owned();
    match vendor(probe)?.as_str() {
        "AuthenticAMD" => registers(probe, "AuthenticAMD", 0xc001_0015, |bits| word(bits >> 25 & 1 == 1)),
        _ => registers(probe, "GenuineIntel", 0x1a0, |bits| word(bits >> 38 & 1 == 1)),
    }
}

fn vendor(probe: &Probe) -> Told {
    Source::CpuInfo("vendor_id").read(probe)
}

/// Reads one register of each CPU through `/dev/cpu/*/msr`.
fn registers(probe: &Probe, maker: &str, register: u64, view: impl Fn(u64) -> String) -> Told {
    let vendor = vendor(probe)?;
    if vendor != maker {
        let maker = if maker == "GenuineIntel" { "an Intel" } else { "an AMD" };
        return Err(format!("not {maker} CPU ({vendor}): MSR {register:#x} has no such meaning"));
    }
    let read = |cpu| {
        let path = format!("/dev/cpu/{cpu}/msr");
        let mut bits = [0; 8];
        let file = File::open(probe.tree.locate(&path)).map_err(|error| reason(&path, &error))?;
        file.read_exact_at(&mut bits, register).map_err(|error| reason(&path, &error))?;
        Ok(view(u64::from_le_bytes(bits)))
    };
    collapse(probe.cpus.iter().map(|cpu| (cpu, read(cpu))).collect(), str::to_owned)
}

/// Idle states of the first CPU: name and exit latency, and which are disabled on some CPU.
pub(super) fn idle_states(probe: &Probe) -> Told {
    let first = probe.cpus.iter().next().unwrap_or(0);
    let states = probe.tree.glob(&format!("/sys/devices/system/cpu/cpu{first}/cpuidle/state*"));
    if states.is_empty() {
        return Err(format!("no such file: /sys/devices/system/cpu/cpu{first}/cpuidle/state*"));
    }
    let describe = |(number, path): &(String, String)| -> Told {
        let name = probe.tree.text(&format!("{path}/name"))?;
        let latency = probe.tree.text(&format!("{path}/latency"))?;
        Ok(format!("{name} {latency} us{}", disabled(probe, number)))
    };
    Ok(states.iter().map(describe).collect::<Result<Vec<_>, _>>()?.join(", "))
}

fn disabled(probe: &Probe, state: &str) -> String {
    let path = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{state}/disable");
    let off: CpuList = probe.cpus.iter().filter(|&cpu| probe.tree.number(&path(cpu)).is_ok_and(|n| n != 0)).collect();
    if off.is_empty() { String::new() } else { format!(" (disabled on {off})") }
}

/// The flags that make the time stamp counter usable as a clock.
pub(super) fn tsc_flags(probe: &Probe) -> Told {
    let flags = Source::CpuInfo("flags").read(probe)?;
    let tsc: Vec<&str> = flags.split(' ').filter(|flag| flag.contains("tsc") || *flag == "rdtscp").collect();
    Ok(super::source::or_none(fold(&tsc.join(" "))))
}
