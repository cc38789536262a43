//! The environment record: every configuration parameter of the machine, the system, the process and the build.
//!
//! [`table()`] is the one list of parameters; [`snapshot`] reads each of its rows once. Reads only, starts nothing. What
//! cannot be read is recorded with the reason.

pub(crate) mod cgroup;
mod clock;
mod firmware;
mod libraries;
mod memory;
mod process;
mod processor;
mod source;
mod storage;
pub(crate) mod system;
mod table;

pub use table::{Privilege, Row, table};

use std::thread;

use super::{
    artifact::Artifact,
    machine::{Machine, Told},
};
use crate::record::{Entry, Reading, Snapshot};
use source::Probe;
pub(crate) use source::field;

/// Reads every parameter of the table.
///
/// The first call of a process also hashes its executables; they are remembered for later calls.
pub fn snapshot(machine: &Machine) -> Snapshot {
    let taken = format!("{:.3}", jiff::Timestamp::now());
    thread::scope(|scope| {
        // Hashing takes longer than all the rest, and its rows come last.
        for path in libraries::executables(machine) {
            scope.spawn(move || Artifact::read(&path));
        }
        let probe = Probe::new(machine);
        let entries = table().map(|row| entry(row, row.source.read(&probe))).collect();
        Snapshot { taken, entries }
    })
}

fn entry(row: &Row, told: Told) -> Entry {
    let reading = match told {
        Ok(value) if value.trim().is_empty() => Reading::Unreadable("it reads empty".into()),
        Ok(value) => Reading::Value(value.trim().to_owned()),
        Err(reason) if row.privilege == Privilege::Root && !rustix::process::geteuid().is_root() => {
            Reading::Unreadable(format!("{reason} (needs root)"))
        }
        Err(reason) => Reading::Unreadable(reason),
    };
    Entry {
        key: row.key.to_owned(),
        reading,
        unit: row.unit.to_owned(),
        source: row.source.describe(),
        stability: row.stability,
    }
}
