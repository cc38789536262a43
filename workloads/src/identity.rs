//! What this build of the workloads is: the facts by which `rare` knows that a worker binary belongs to it.
//!
//! Everything here was fixed when it was compiled; nothing is read from the machine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::protocol::FORMAT;

/// SHA-256 over the sources of this crate and the lock file, 64 hexadecimal digits. `rare` and its worker are compiled
/// from the same crate, so a worker with another digest is stale.
pub const SOURCE_SHA256: &str = env!("RARE_SOURCE_SHA256");

/// Facts of one build, as `rare-worker --identity` prints them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Protocol version, [`FORMAT`].
    pub format: u32,
    /// See [`SOURCE_SHA256`].
    pub source_sha256: String,
    /// `debug` or `release`.
    pub profile: String,
    /// Optimisation level of this crate, as Cargo gave it to the compiler.
    pub opt_level: String,
    /// First line of the compiler's version.
    pub rustc: String,
    /// Target triple.
    pub target: String,
    /// Flags given to the compiler by `RUSTFLAGS` or the Cargo configuration, in order.
    pub rustflags: Vec<String>,
    /// Versions of the crates that carry the linked allocators, from the lock file; a crate that the lock file does not
    /// name is left out.
    pub allocator_crates: BTreeMap<String, String>,
}

impl Identity {
    /// Returns the facts of the running build.
    pub fn here() -> Self {
        Self {
            format: FORMAT,
            source_sha256: SOURCE_SHA256.to_owned(),
            profile: env!("RARE_PROFILE").to_owned(),
            opt_level: env!("RARE_OPT_LEVEL").to_owned(),
            rustc: env!("RARE_RUSTC").to_owned(),
            target: env!("RARE_TARGET").to_owned(),
            // Cargo separates encoded flags by the unit separator, which no flag contains.
            rustflags: env!("RARE_RUSTFLAGS")
                .split('\x1f')
                .filter(|flag| !flag.is_empty())
                .map(str::to_owned)
                .collect(),
            allocator_crates: env!("RARE_ALLOCATOR_CRATES")
                .split_whitespace()
                .filter_map(|entry| entry.split_once('='))
                .map(|(name, version)| (name.to_owned(), version.to_owned()))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_is_known() {
        let identity = Identity::here();
        assert_eq!(identity.source_sha256.len(), 64);
        assert!(identity.rustc.starts_with("rustc "), "{}", identity.rustc);
        assert!(identity.target.contains("linux"), "{}", identity.target);
        let names: Vec<&str> = identity.allocator_crates.keys().map(String::as_str).collect();
        assert_eq!(names, ["mimalloc", "snmalloc-rs", "tikv-jemallocator"]);
    }
}
