//! Reads the memory of the process from the kernel.

use std::fs;

/// Resident memory at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Resident {
    /// Resident set.
    pub bytes: u64,
    /// Of it, anonymous huge pages; or why that cannot be read.
    pub huge_page_bytes: Result<u64, String>,
}

/// Reads the resident set by counting its pages, which is exact; where the kernel does not offer that, by its running
/// counters, which lag by up to some hundred pages.
pub(crate) fn resident() -> Result<Resident, String> {
    const ROLLUP: &str = "/proc/self/smaps_rollup";
    match fs::read_to_string(ROLLUP) {
        Ok(text) => Ok(Resident {
            bytes: field_bytes(&text, "Rss:").ok_or_else(|| format!("{ROLLUP} does not tell Rss"))?,
            huge_page_bytes: field_bytes(&text, "AnonHugePages:")
                .ok_or_else(|| format!("{ROLLUP} does not tell AnonHugePages")),
        }),
        Err(error) => {
            Ok(Resident { bytes: status("VmRSS:")?, huge_page_bytes: Err(format!("cannot read {ROLLUP}: {error}")) })
        }
    }
}

/// Reads the peak of the resident set since the process began.
pub(crate) fn peak_bytes() -> Result<u64, String> {
    status("VmHWM:")
}

fn status(name: &str) -> Result<u64, String> {
    const STATUS: &str = "/proc/self/status";
    let text = fs::read_to_string(STATUS).map_err(|error| format!("cannot read {STATUS}: {error}"))?;
    field_bytes(&text, name).ok_or_else(|| format!("{STATUS} does not tell {name}"))
}

/// Finds a line such as `VmHWM:  1234 kB` and returns it in bytes.
fn field_bytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_whole_fields_only() {
        let text = "Rss:                3456 kB\nPss_Anon: 1 kB\nAnonHugePages:         0 kB\nOdd: 5 pages\n";
        assert_eq!(field_bytes(text, "Rss:"), Some(3456 * 1024));
        assert_eq!(field_bytes(text, "AnonHugePages:"), Some(0));
        assert_eq!(field_bytes(text, "Pss:"), None);
        assert_eq!(field_bytes(text, "Odd:"), None);
    }

    #[test]
    fn touched_memory_is_resident() {
        let before = resident().unwrap().bytes;
        let block = std::hint::black_box(vec![1_u8; 128 << 20]);
        let after = resident().unwrap().bytes;
        // Other tests give back some megabytes meanwhile.
        assert!(after >= before + (96 << 20), "{before} {after}");
        assert!(peak_bytes().unwrap() >= after - (32 << 20));
        drop(block);
    }
}
