//! Memory: its size, its nodes, and the pools and modules it comes from.

use super::source::{Probe, Source, fold, or_none};
use crate::host::machine::Told;

/// In MiB: the kernel's own share of the last KiB differs between boots.
pub(super) fn total(probe: &Probe) -> Told {
    let total = Source::Field("/proc/meminfo", "MemTotal").read(probe)?;
    let kib: u64 = total.parse().map_err(|_| format!("not a number: MemTotal `{total}` in /proc/meminfo"))?;
    Ok((kib / 1024).to_string())
}

pub(super) fn page_size(probe: &Probe) -> Told {
    probe.live()?;
    Ok(rustix::param::page_size().to_string())
}

pub(super) fn node_total(probe: &Probe) -> Told {
    of_nodes(probe, "MemTotal")
}

pub(super) fn node_free(probe: &Probe) -> Told {
    of_nodes(probe, "MemFree")
}

/// A line of each node's `meminfo`, which reads `Node 0 MemFree: 123 kB`.
fn of_nodes(probe: &Probe, key: &str) -> Told {
    let nodes = probe.tree.glob("/sys/devices/system/node/node*/meminfo");
    if nodes.is_empty() {
        return Err("no such file: /sys/devices/system/node/node*/meminfo".into());
    }
    let value = |(node, path): &(String, String)| -> Told {
        let text = probe.tree.text(path)?;
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let line = words.iter().find(|words| words.get(2).is_some_and(|word| word.trim_end_matches(':') == key));
        let number = line.and_then(|words| words.get(3)).ok_or_else(|| format!("no line `{key}` in {path}"))?;
        Ok(format!("{node}: {number}"))
    };
    Ok(nodes.iter().map(value).collect::<Result<Vec<_>, _>>()?.join("; "))
}

/// Where this process's pages go: the policy of `get_mempolicy`.
pub(super) fn policy(probe: &Probe) -> Told {
    const NAMES: [&str; 7] =
        ["default", "preferred", "bind", "interleave", "local", "preferred-many", "weighted-interleave"];
    /// The kernel adds flags above the mode.
    const MODE: i32 = 0xff;
    probe.live()?;
    let mut mode = 0i32;
    let null = std::ptr::null_mut::<libc::c_ulong>();
    // SAFETY: with a null mask, a null address and no flags the call only writes one `int` to the first pointer, which
    // points to `mode`.
    let status = unsafe { libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, null, 0, null, 0) };
    if status != 0 {
        return Err(format!("get_mempolicy: {}", std::io::Error::last_os_error()));
    }
    let name = usize::try_from(mode & MODE).ok().and_then(|mode| NAMES.get(mode));
    name.map_or_else(|| Err(format!("unknown policy {mode}")), |name| Ok((*name).into()))
}

/// Reserved huge pages of each size: in use and free.
pub(super) fn huge_page_pools(probe: &Probe) -> Told {
    let pools = probe.tree.glob("/sys/kernel/mm/hugepages/hugepages-*/nr_hugepages");
    if pools.is_empty() {
        return Err("no such file: /sys/kernel/mm/hugepages/hugepages-*/nr_hugepages".into());
    }
    let describe = |(size, path): &(String, String)| -> Told {
        let free = path.replace("nr_hugepages", "free_hugepages");
        Ok(format!("{size}: {} reserved, {} free", probe.tree.text(path)?, probe.tree.text(&free)?))
    };
    Ok(pools.iter().map(describe).collect::<Result<Vec<_>, _>>()?.join("; "))
}

/// Swap devices, without their sizes in use.
pub(super) fn swap_devices(probe: &Probe) -> Told {
    let swaps = probe.tree.text("/proc/swaps")?;
    let devices: Vec<String> =
        swaps.lines().skip(1).map(|line| fold(line.split('\t').next().unwrap_or(line))).collect();
    Ok(or_none(devices.join("; ")))
}

/// Memory modules, from the firmware's table: what `dmidecode -t 17` prints.
pub(super) fn modules(probe: &Probe) -> Told {
    let table = probe.tree.bytes("/sys/firmware/dmi/tables/DMI")?;
    let modules: Vec<String> = structures(&table).filter(|structure| structure.kind == 17).map(module).collect();
    if modules.is_empty() { Err("no memory device in /sys/firmware/dmi/tables/DMI".into()) } else { Ok(count(modules)) }
}

/// Writes equal descriptions once: `8 x 32 GiB DDR5 4800 MT/s`.
fn count(descriptions: Vec<String>) -> String {
    let mut counts: Vec<(String, u32)> = Vec::new();
    for description in descriptions {
        match counts.iter_mut().find(|(known, _)| *known == description) {
            Some((_, count)) => *count += 1,
            None => counts.push((description, 1)),
        }
    }
    counts.into_iter().map(|(description, count)| format!("{count} x {description}")).collect::<Vec<_>>().join("; ")
}

/// One structure of an SMBIOS table.
struct Structure<'t> {
    kind: u8,
    /// The formatted part, header included.
    bytes: &'t [u8],
}

/// Walks the table: formatted part, then strings up to two zero bytes. Stops at the first damage.
fn structures(mut table: &[u8]) -> impl Iterator<Item = Structure<'_>> {
    std::iter::from_fn(move || {
        let (&kind, &length) = (table.first()?, table.get(1)?);
        let bytes = table.get(..usize::from(length)).filter(|bytes| bytes.len() >= 4)?;
        let strings = table.get(bytes.len()..)?;
        let end = strings.windows(2).position(|pair| pair == [0, 0])?;
        table = strings.get(end + 2..)?;
        Some(Structure { kind, bytes })
    })
}

/// Describes a memory device by the offsets of the SMBIOS specification 3.7, section 7.18.
fn module(structure: Structure) -> String {
    const TYPES: [(u8, &str); 8] = [
        (0x12, "DDR"),
        (0x13, "DDR2"),
        (0x18, "DDR3"),
        (0x1a, "DDR4"),
        (0x1e, "LPDDR4"),
        (0x20, "HBM"),
        (0x22, "DDR5"),
        (0x23, "LPDDR5"),
    ];
    let word = |offset: usize| {
        let pair = structure.bytes.get(offset..offset + 2)?;
        Some(u16::from_le_bytes([pair[0], pair[1]]))
    };
    let size = match word(0x0c) {
        None | Some(0xffff) => "unknown size".into(),
        Some(0) => return "empty slot".into(),
        Some(0x7fff) => match (word(0x1c), word(0x1e)) {
            (Some(low), Some(high)) => format!("{} MiB", u32::from(high) << 16 | u32::from(low)),
            _ => "unknown size".into(),
        },
        Some(size) if size >> 15 == 1 => format!("{} KiB", size & 0x7fff),
        Some(size) => format!("{size} MiB"),
    };
    let kind = structure.bytes.get(0x12).and_then(|kind| TYPES.iter().find(|(code, _)| code == kind));
    let kind = kind.map_or("unknown type", |(_, name)| name);
    let speed = |offset| word(offset).filter(|&speed| speed != 0 && speed != 0xffff);
    // The configured speed is what the memory runs at; the other is what it could.
    match speed(0x20).or(speed(0x15)) {
        Some(speed) => format!("{size} {kind} {speed} MT/s"),
        None => format!("{size} {kind}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(size: u16, extended: u32, kind: u8, speed: u16) -> Vec<u8> {
        let mut bytes = vec![0; 0x28];
        bytes[0] = 17;
        bytes[1] = 0x28;
        bytes[0x0c..0x0e].copy_from_slice(&size.to_le_bytes());
        bytes[0x12] = kind;
        bytes[0x1c..0x20].copy_from_slice(&extended.to_le_bytes());
        bytes[0x20..0x22].copy_from_slice(&speed.to_le_bytes());
        bytes.extend(b"DIMM A1\0\0");
        bytes
    }

    #[test]
    fn describes_memory_modules() {
        let mut table = vec![0, 4, 0, 0, 0, 0];
        table.extend(device(0x7fff, 65_536, 0x22, 4800));
        table.extend(device(0x7fff, 65_536, 0x22, 4800));
        table.extend(device(16_384, 0, 0x1a, 0));
        table.extend(device(0, 0, 0, 0));
        let modules: Vec<String> = structures(&table).filter(|s| s.kind == 17).map(module).collect();
        assert_eq!(count(modules), "2 x 65536 MiB DDR5 4800 MT/s; 1 x 16384 MiB DDR4; 1 x empty slot");
    }

    #[test]
    fn stops_at_a_torn_table() {
        let table = device(1, 0, 0x22, 4800);
        for end in 0..table.len() {
            assert_eq!(structures(&table[..end]).count(), 0, "cut at {end}");
        }
    }
}
