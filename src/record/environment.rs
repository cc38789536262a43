//! The machine and the build that a run saw: every configuration parameter, before and after.
//!
//! Data and its comparison; pure. Reading the machine is `host`'s, and so is the choice of each parameter's stability.

use std::collections::{BTreeMap, BTreeSet};

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

impl Environment {
    /// Returns what differs between two snapshots, in the order of `before`, then what only `after` has.
    ///
    /// Serves both the two ends of a run and two runs of a plan. A parameter that one of them could not read differs
    /// from one that it could, and from one that it could not for another reason: a machine that begins to tell its
    /// temperature has changed.
    pub fn differences(before: &Snapshot, after: &Snapshot) -> Vec<Difference> {
        let known: BTreeMap<&str, &Entry> = after.entries.iter().map(|entry| (entry.key.as_str(), entry)).collect();
        let old: BTreeSet<&str> = before.entries.iter().map(|entry| entry.key.as_str()).collect();
        let changed = before.entries.iter().filter_map(|entry| match known.get(entry.key.as_str()) {
            Some(other) if other.reading == entry.reading => None,
            other => Some(Difference::new(entry, Some(&entry.reading), other.map(|other| &other.reading))),
        });
        let new = after.entries.iter().filter(|entry| !old.contains(entry.key.as_str()));
        changed.chain(new.map(|entry| Difference::new(entry, None, Some(&entry.reading)))).collect()
    }

    /// Returns what makes trials taken under `earlier` stale under `now`: the differences of fixed parameters.
    pub fn stale(earlier: &Snapshot, now: &Snapshot) -> Vec<Difference> {
        let mut differences = Self::differences(earlier, now);
        differences.retain(|difference| difference.stability == Stability::Fixed);
        differences
    }
}

impl Snapshot {
    /// Returns the identity of machine and build: the fixed parameters and their readings, in order. Trials taken under
    /// another identity are stale.
    ///
    /// These are what nobody can change while the machine runs, and what decides which code runs: the processor and
    /// its microcode, the size of the memory, the firmware, hypervisor and host name, the kernel, the compiler and its
    /// flags, and the digests of the worker and of every library it is linked with. Not among them, so that they make
    /// no trial stale: what can be set by hand (governor, turbo, SMT, huge pages, mitigations, limits), which a report
    /// shows as a difference; the commit and the lock file, since an edit of a comment leaves the worker as it was; and
    /// what only root can read. A reading that failed is part of the identity with its reason.
    pub fn identity(&self) -> Vec<(&str, &Reading)> {
        let fixed = self.entries.iter().filter(|entry| entry.stability == Stability::Fixed);
        fixed.map(|entry| (entry.key.as_str(), &entry.reading)).collect()
    }

    /// Returns the value of a parameter if it was readable.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.entries.iter().find(|entry| entry.key == key).and_then(|entry| match &entry.reading {
            Reading::Value(value) => Some(value.as_str()),
            Reading::Unreadable(_) => None,
        })
    }
}

/// One parameter that is not the same in two snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// Name of the parameter.
    pub key: String,
    /// What the change means.
    pub stability: Stability,
    /// Unit of the values; empty for words.
    pub unit: String,
    /// Reading of the first; `None` if that record has no such parameter.
    pub before: Option<Reading>,
    /// Reading of the second; `None` if that record has no such parameter.
    pub after: Option<Reading>,
}

impl Difference {
    fn new(entry: &Entry, before: Option<&Reading>, after: Option<&Reading>) -> Self {
        let Entry { key, stability, unit, .. } = entry.clone();
        Self { key, stability, unit, before: before.cloned(), after: after.cloned() }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(entries: &[(&str, &str, Stability)]) -> Snapshot {
        let entry = |&(key, text, stability): &(&str, &str, Stability)| Entry {
            key: key.into(),
            reading: match text.strip_prefix('?') {
                Some(reason) => Reading::Unreadable(reason.into()),
                None => Reading::Value(text.into()),
            },
            unit: "kHz".into(),
            source: "test".into(),
            stability,
        };
        Snapshot { taken: "2026-01-01T00:00:00Z".into(), entries: entries.iter().map(entry).collect() }
    }

    #[test]
    fn differences_name_both_readings_and_the_stability() {
        use Stability::*;
        let before = snapshot(&[
            ("cpu.model", "A", Fixed),
            ("frequency.governor", "performance", Setting),
            ("load.average", "0.1", Volatile),
            ("power.profile", "?no such file", Setting),
            ("cpu.same", "x", Fixed),
            ("cpu.gone", "1", Fixed),
        ]);
        let after = snapshot(&[
            ("cpu.new", "2", Fixed),
            ("cpu.same", "x", Fixed),
            ("power.profile", "balanced", Setting),
            ("load.average", "0.2", Volatile),
            ("frequency.governor", "powersave", Setting),
            ("cpu.model", "A", Fixed),
        ]);
        let differences = Environment::differences(&before, &after);
        let keys: Vec<(&str, Stability)> = differences.iter().map(|d| (d.key.as_str(), d.stability)).collect();
        let expected = [
            ("frequency.governor", Setting),
            ("load.average", Volatile),
            ("power.profile", Setting),
            ("cpu.gone", Fixed),
            ("cpu.new", Fixed),
        ];
        assert_eq!(keys, expected);
        assert_eq!(differences[0].before, Some(Reading::Value("performance".into())));
        assert_eq!(differences[2].before, Some(Reading::Unreadable("no such file".into())));
        assert_eq!((&differences[3].after, &differences[4].before), (&None, &None));
        assert_eq!(Environment::differences(&before, &before), []);
    }

    #[test]
    fn only_fixed_parameters_make_trials_stale() {
        use Stability::*;
        let old =
            snapshot(&[("cpu.model", "A", Fixed), ("thp.enabled", "never", Setting), ("os.uptime", "1", Volatile)]);
        let tuned =
            snapshot(&[("cpu.model", "A", Fixed), ("thp.enabled", "always", Setting), ("os.uptime", "2", Volatile)]);
        let other =
            snapshot(&[("cpu.model", "B", Fixed), ("thp.enabled", "never", Setting), ("os.uptime", "1", Volatile)]);
        assert_eq!(Environment::stale(&old, &tuned), []);
        assert_eq!(old.identity(), tuned.identity());
        assert_eq!(Environment::stale(&old, &other).len(), 1);
        assert_eq!(other.identity(), [("cpu.model", &Reading::Value("B".into()))]);
    }
}
