//! The machine and the build that a run saw: every configuration parameter, before and after.

use serde::{Deserialize, Serialize};

/// Environment of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// Format version, 1.
    pub format: u32,
    /// Full plan hash, 64 hexadecimal digits.
    pub plan: String,
    /// Before the first trial.
    pub before: Snapshot,
    /// After the last trial of the latest session; `None` while the run goes on or after it was killed.
    pub after: Option<Snapshot>,
}

/// All parameters at one moment, in table order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// When, RFC 3339 UTC.
    pub taken: String,
    /// One entry a parameter.
    pub entries: Vec<Entry>,
}

impl Snapshot {
    /// Returns the value of a parameter if it was readable.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.entries.iter().find(|entry| entry.key == key).and_then(|entry| match &entry.reading {
            Reading::Value(value) => Some(value.as_str()),
            Reading::Unreadable(_) => None,
        })
    }
}

/// One parameter as read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Stable dotted name, such as `cpu.governor`. Groups are the first part.
    pub key: String,
    /// The value in the unit, or why there is none.
    pub reading: Reading,
    /// Unit of the value; empty for words.
    pub unit: String,
    /// Where it was read: a path, a system call, the build.
    pub source: String,
    /// `fixed` (another value means another machine or build), `setting` (may be changed by hand) or `volatile` (changes
    /// by itself).
    pub stability: Stability,
}

/// A value or the reason why there is none. Never blank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reading {
    /// As read, trimmed.
    Value(String),
    /// Why it could not be read.
    Unreadable(String),
}

/// What a change of a parameter means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stability {
    /// Another value means another machine or another build: trials are not mixed.
    Fixed,
    /// May be changed by hand; a change is reported.
    Setting,
    /// Changes by itself; shown before and after.
    Volatile,
}
