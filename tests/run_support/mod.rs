//! What the tests of the store and of runs share.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::{collections::BTreeMap, path::Path, process::Command};

use rare::{
    plan::{BlockKind, TrialId},
    record::{FailureClass, Interference, Outcome, Trial},
    store::Header,
    units::Nanos,
};
use rare_workloads::protocol::{AllocatorRequest, Distribution, FORMAT, Length, Mix, Reclamation, Request};

/// A request for a trial of no interest.
pub fn request() -> Request {
    Request {
        format: FORMAT,
        structure: "noop".to_owned(),
        structure_parameters: BTreeMap::new(),
        reclamation: Reclamation::Epoch,
        allocator: AllocatorRequest { name: "system".to_owned(), preload: None },
        cpus: vec![None],
        key_range: 100,
        mix: Mix { insert: 5_000, remove: 5_000, contains: 0 },
        distribution: Distribution::Uniform,
        prefill_keys: 50,
        length: Length::Nanos(1_000_000),
        seed: u64::MAX,
        nice: 0,
    }
}

/// A record of trial `measure-<cell>-0`.
pub fn record(cell: u32) -> Trial {
    Trial {
        trial: TrialId { kind: BlockKind::Measure, cell, trial_idx: 0 },
        position: cell,
        attempt: 0,
        started: "2026-01-02T03:04:05.678Z".to_owned(),
        wall: Nanos(123_456_789),
        request: request(),
        outcome: Outcome::Failed {
            class: FailureClass::Signal,
            detail: "killed by SIGSEGV".to_owned(),
            stderr: "a \"quoted\"\nline, and ü".to_owned(),
        },
        interference: Interference { steal_ns: Some(7), ..Interference::default() },
    }
}

/// A header of a journal.
pub fn header() -> Header {
    Header {
        format: 1,
        plan: "ab".repeat(32),
        run: "20260102T030405Z-host-example".to_owned(),
        worker_sha256: "cd".repeat(32),
        machine: "a machine".to_owned(),
    }
}

/// A mounted file system, unmounted on drop.
pub struct Mount<'p>(&'p Path);

impl<'p> Mount<'p> {
    /// Mounts a tmpfs; `None`, said in one line, where that is not permitted.
    pub fn tmpfs(path: &'p Path, options: &str) -> Option<Self> {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(path).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(path));
        }
        eprintln!("skipped: mounting a tmpfs is not permitted here");
        None
    }

    /// Makes it read-only.
    pub fn read_only(&self) {
        let status = Command::new("mount").args(["-o", "remount,ro"]).arg(self.0).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}
