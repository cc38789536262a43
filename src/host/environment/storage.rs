//! Where the reports go: file system, mount options, disk.

use std::path::{Path, PathBuf};

use super::source::Probe;
use crate::host::machine::Told;

pub(super) fn filesystem(probe: &Probe) -> Told {
    Ok(mount(probe)?.kind)
}

pub(super) fn options(probe: &Probe) -> Told {
    Ok(mount(probe)?.options)
}

/// The scheduler of the disk below, `none` included.
pub(super) fn scheduler(probe: &Probe) -> Told {
    let device = mount(probe)?.device;
    let block = format!("/sys/dev/block/{device}");
    if !probe.tree.exists(&block) {
        return Err(format!("the reports are on no block device: no such file: {block}"));
    }
    // A partition has no queue of its own; its disk is the folder above.
    let own = probe.tree.text(&format!("{block}/queue/scheduler"));
    Ok(own.or_else(|_| probe.tree.text(&format!("{block}/../queue/scheduler")))?.to_string())
}

pub(super) fn free_space(probe: &Probe) -> Told {
    probe.live()?;
    let folder = reports(probe)?;
    let space = rustix::fs::statvfs(&folder).map_err(|error| format!("statvfs {}: {error}", folder.display()))?;
    Ok((space.f_bavail.saturating_mul(space.f_frsize) >> 20).to_string())
}

struct Mount {
    device: String,
    kind: String,
    options: String,
}

/// Finds the mount that holds the reports: the longest mount point above them, the last one where several lie on it.
fn mount(probe: &Probe) -> Result<Mount, String> {
    let folder = reports(probe)?;
    let mounts = probe.tree.text("/proc/self/mountinfo")?;
    let mut best: Option<(usize, Mount)> = None;
    for line in mounts.lines() {
        let Some((fields, tail)) = line.split_once(" - ") else { continue };
        let fields: Vec<&str> = fields.split(' ').collect();
        let (&[_, _, device, _, place, options, ..], Some(kind)) = (fields.as_slice(), tail.split(' ').next()) else {
            continue;
        };
        // The kernel writes blanks in names as octal.
        let place = place.replace("\\040", " ");
        if folder.starts_with(&place) && best.as_ref().is_none_or(|(length, _)| place.len() >= *length) {
            let mount = Mount { device: device.into(), kind: kind.into(), options: options.into() };
            best = Some((place.len(), mount));
        }
    }
    best.map(|(_, mount)| mount).ok_or_else(|| "no mount above the reports in /proc/self/mountinfo".into())
}

/// Returns the reports folder, or the nearest folder above it that exists: it may not have been made yet.
fn reports(probe: &Probe) -> Result<PathBuf, String> {
    let reports = probe.machine.reports.ok_or("no reports folder was named")?;
    let absolute = std::path::absolute(reports).map_err(|error| format!("{}: {error}", reports.display()))?;
    absolute.ancestors().find_map(|folder| folder.canonicalize().ok()).map_or_else(|| Ok(Path::new("/").into()), Ok)
}
