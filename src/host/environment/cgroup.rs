//! The limits of the control groups that this process is in, version 1 and 2.
//!
//! A limit anywhere above binds too, so every level up to the root of the mount is read.

use super::source::{Probe, fold, or_none};
use crate::host::machine::{Told, Tree};

/// A controller's files: name of the controller, the file of version 2, the files of version 1.
pub(crate) struct Knob(&'static str, &'static str, &'static [&'static str]);

const CPU_MAX: Knob = Knob("cpu", "cpu.max", &["cpu.cfs_quota_us", "cpu.cfs_period_us"]);
const CPU_WEIGHT: Knob = Knob("cpu", "cpu.weight", &["cpu.shares"]);
const CPU_STAT: Knob = Knob("cpu", "cpu.stat", &["cpu.stat"]);
const CPUSET: Knob = Knob("cpuset", "cpuset.cpus.effective", &["cpuset.effective_cpus"]);
const MEMS: Knob = Knob("cpuset", "cpuset.mems.effective", &["cpuset.effective_mems"]);
const MEMORY_MAX: Knob = Knob("memory", "memory.max", &["memory.limit_in_bytes"]);
const MEMORY_HIGH: Knob = Knob("memory", "memory.high", &["memory.soft_limit_in_bytes"]);
const MEMORY_NOW: Knob = Knob("memory", "memory.current", &["memory.usage_in_bytes"]);
const SWAP_MAX: Knob = Knob("memory", "memory.swap.max", &["memory.memsw.limit_in_bytes"]);
const PIDS_MAX: Knob = Knob("pids", "pids.max", &["pids.max"]);

/// Version 1 writes "no limit" as the largest number of whole pages; whatever exceeds 2^62 is none.
const UNLIMITED: u64 = 1 << 62;

pub(super) fn paths(probe: &Probe) -> Told {
    Ok(or_none(probe.tree.text("/proc/self/cgroup")?.lines().collect::<Vec<_>>().join("; ")))
}

pub(super) fn version(probe: &Probe) -> Told {
    let groups = probe.tree.text("/proc/self/cgroup")?;
    let unified = groups.lines().any(|line| line.starts_with("0::"));
    let separate = groups.lines().any(|line| !line.starts_with("0::"));
    Ok(match (separate, unified) {
        (true, true) => "1 with 2 beside it",
        (true, false) => "1",
        (false, true) => "2",
        (false, false) => "none",
    }
    .into())
}

pub(super) fn cpu_max(probe: &Probe) -> Told {
    limit(&probe.tree, &CPU_MAX)
}

pub(super) fn cpu_weight(probe: &Probe) -> Told {
    own(&probe.tree, &CPU_WEIGHT)
}

pub(super) fn cpu_stat(probe: &Probe) -> Told {
    own(&probe.tree, &CPU_STAT)
}

pub(super) fn memory_max(probe: &Probe) -> Told {
    limit(&probe.tree, &MEMORY_MAX)
}

pub(super) fn memory_high(probe: &Probe) -> Told {
    limit(&probe.tree, &MEMORY_HIGH)
}

pub(super) fn memory_now(probe: &Probe) -> Told {
    own(&probe.tree, &MEMORY_NOW)
}

pub(super) fn swap_max(probe: &Probe) -> Told {
    limit(&probe.tree, &SWAP_MAX)
}

pub(super) fn pids_max(probe: &Probe) -> Told {
    limit(&probe.tree, &PIDS_MAX)
}

pub(super) fn cpus(probe: &Probe) -> Told {
    cpuset(&probe.tree)
}

pub(super) fn mems(probe: &Probe) -> Told {
    own(&probe.tree, &MEMS)
}

/// Returns the CPUs that the cpuset lets this process use, as a kernel list; an error where there is no cpuset.
pub(crate) fn cpuset(tree: &Tree) -> Told {
    own(tree, &CPUSET)
}

/// Returns the value of the nearest group, from this process's own upwards, that has the file.
fn own(tree: &Tree, knob: &Knob) -> Told {
    let group = Group::of(tree, knob)?;
    let found = group.levels().find_map(|level| group.value(tree, knob, &level));
    found.ok_or_else(|| group.missing(knob))
}

/// Returns every bound from this process's own group upwards, or `max` if none binds.
fn limit(tree: &Tree, knob: &Knob) -> Told {
    let group = Group::of(tree, knob)?;
    let values: Vec<(String, String)> =
        group.levels().filter_map(|level| Some((group.value(tree, knob, &level)?, level))).collect();
    if values.is_empty() {
        return Err(group.missing(knob));
    }
    let binding = values.iter().filter(|(value, _)| !is_unlimited(value));
    let binding: Vec<String> = binding.map(|(value, level)| format!("{value} at {level}")).collect();
    Ok(if binding.is_empty() { "max".into() } else { binding.join("; ") })
}

fn is_unlimited(value: &str) -> bool {
    let first = value.split_whitespace().next().unwrap_or("max");
    first == "max" || first == "-1" || first.parse().is_ok_and(|number: u64| number >= UNLIMITED)
}

/// The group of this process under one controller.
struct Group {
    version: u8,
    /// Where the hierarchy is mounted.
    mount: String,
    /// Path of the group below the mount, such as `/user/job`.
    path: String,
}

impl Group {
    fn of(tree: &Tree, knob: &Knob) -> Result<Self, String> {
        let groups = tree.text("/proc/self/cgroup")?;
        let mut unified = None;
        let mut separate = None;
        for line in groups.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            match (parts.next(), parts.next()) {
                (Some(""), Some(path)) => unified = Some(path),
                (Some(names), Some(path)) if names.split(',').any(|name| name == knob.0) => separate = Some(path),
                _ => {}
            }
        }
        let (version, path) = match (separate, unified) {
            (Some(path), _) => (1, path),
            (None, Some(path)) => (2, path),
            (None, None) => return Err(format!("no {} controller in /proc/self/cgroup", knob.0)),
        };
        let (mount_root, mount) = mount(tree, version, knob.0)?;
        // A container may see a mounted part of the hierarchy while the path is told from its root.
        let path = if mount_root == "/" { path } else { path.strip_prefix(&*mount_root).unwrap_or(path) };
        Ok(Self { version, mount, path: path.trim_end_matches('/').to_owned() })
    }

    /// Iterates over the group's path and those above it, up to `/`.
    fn levels(&self) -> impl Iterator<Item = String> + '_ {
        let ends = self.path.match_indices('/').map(|(end, _)| end).chain([self.path.len()]);
        let mut levels: Vec<String> = ends.map(|end| self.path[..end].to_owned()).collect();
        levels.dedup();
        levels.into_iter().rev().map(|level| if level.is_empty() { "/".into() } else { level })
    }

    fn value(&self, tree: &Tree, knob: &Knob, level: &str) -> Option<String> {
        let texts = self.files(knob).iter().map(|file| tree.text(&self.file(level, file)).ok());
        let texts: Vec<String> = texts.collect::<Option<Vec<_>>>()?.iter().map(|text| fold(text)).collect();
        let value = texts.join(" ");
        (!value.is_empty()).then_some(value)
    }

    fn files<'k>(&self, knob: &'k Knob) -> &'k [&'static str] {
        if self.version == 2 { std::slice::from_ref(&knob.1) } else { knob.2 }
    }

    fn file(&self, level: &str, file: &str) -> String {
        format!("{}{}/{file}", self.mount, level.trim_end_matches('/'))
    }

    fn missing(&self, knob: &Knob) -> String {
        format!("no such file: {}", self.file(&self.path, self.files(knob)[0]))
    }
}

/// Returns the root and the place of the mount of a hierarchy.
fn mount(tree: &Tree, version: u8, controller: &str) -> Result<(String, String), String> {
    let mounts = tree.text("/proc/self/mountinfo")?;
    for line in mounts.lines() {
        let Some((fields, tail)) = line.split_once(" - ") else { continue };
        let fields: Vec<&str> = fields.split(' ').collect();
        let tail: Vec<&str> = tail.split(' ').collect();
        let (&[_, _, _, root, place, ..], &[kind, _, options]) = (fields.as_slice(), tail.as_slice()) else { continue };
        let fits = match version {
            2 => kind == "cgroup2",
            _ => kind == "cgroup" && options.split(',').any(|option| option == controller),
        };
        if fits {
            return Ok((root.to_owned(), place.to_owned()));
        }
    }
    Err(format!("no mount of the {controller} controller (version {version}) in /proc/self/mountinfo"))
}
