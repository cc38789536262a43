//! What lies below the system: firmware, hypervisor, container.

use super::source::{Probe, Source, or_none};
use crate::host::machine::Told;

pub(super) fn boot_mode(probe: &Probe) -> Told {
    Ok(if probe.tree.exists("/sys/firmware/efi") { "UEFI" } else { "not UEFI" }.into())
}

/// Whether the processor says that a hypervisor runs it.
pub(super) fn hypervisor_flag(probe: &Probe) -> Told {
    let flags = Source::CpuInfo("flags").read(probe)?;
    Ok(if flags.split(' ').any(|flag| flag == "hypervisor") { "yes" } else { "no" }.into())
}

/// The signature that a hypervisor leaves in CPUID leaf 0x40000000, such as `KVMKVMKVM`.
#[cfg(target_arch = "x86_64")]
pub(super) fn hypervisor_signature(probe: &Probe) -> Told {
    use std::arch::x86_64::__cpuid;

    /// ECX bit of leaf 1 that every hypervisor sets and no processor does.
    const HYPERVISOR: u32 = 1 << 31;
    probe.live()?;
    if __cpuid(1).ecx & HYPERVISOR == 0 {
        return Ok("none".into());
    }
    let leaf = __cpuid(0x4000_0000);
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|register| register.to_le_bytes()).collect();
    let text: String = bytes.iter().map(|&byte| char::from(byte)).filter(|c| c.is_ascii_graphic()).collect();
    Ok(or_none(text))
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn hypervisor_signature(_: &Probe) -> Told {
    Err("not an x86 CPU: no CPUID".into())
}

/// Which container runtime left its mark.
pub(super) fn container(probe: &Probe) -> Told {
    let tree = &probe.tree;
    if let Ok(name) = tree.text("/run/systemd/container") {
        return Ok(or_none(name.to_string()));
    }
    let marks = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman"), ("/proc/vz", "openvz")];
    let found = marks.iter().find(|(path, _)| tree.exists(path));
    if let Some((_, name)) = found {
        return Ok((*name).into());
    }
    let groups = tree.text("/proc/self/cgroup")?;
    let words = ["docker", "kubepods", "lxc", "containerd", "libpod"];
    Ok(words.into_iter().find(|word| groups.contains(word)).unwrap_or("no mark of one").into())
}
