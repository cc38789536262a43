//! Says what this machine can and cannot honour, before an experiment finds out.
//!
//! Changes nothing: every finding comes with what the person may do. [`rules`] judges what the environment record
//! already tells; [`trials`] tries what only a system call can tell.

mod rules;
mod trials;

use super::{environment, machine::Machine, topology::Topology};

/// One thing about the machine that matters to measurements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is about, one or two words; unique among the findings of one examination.
    pub topic: &'static str,
    /// How much it matters.
    pub status: Status,
    /// What was found, in words.
    pub what: String,
    /// What to do about it; `None` where there is nothing to do.
    pub advice: Option<&'static str>,
}

/// How much a finding matters, ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// As it should be.
    Good,
    /// Worth knowing; measurements stay comparable on this machine.
    Note,
    /// Measurements will be noisier or mean something else.
    Warn,
    /// A spec that asks for this will be refused here.
    Cannot,
}

impl Finding {
    fn new(topic: &'static str, status: Status, what: impl Into<String>) -> Self {
        Self { topic, status, what: what.into(), advice: None }
    }

    fn advise(mut self, advice: &'static str) -> Self {
        self.advice = Some(advice);
        self
    }
}

/// Examines a machine. Of a recorded one only what its files tell is judged.
pub fn examine(machine: &Machine) -> Vec<Finding> {
    let snapshot = environment::snapshot(machine);
    let mut findings = vec![pinning(machine)];
    findings.extend(rules::judge(&snapshot));
    if machine.is_live() {
        findings.extend(trials::attempt());
    }
    findings
}

fn pinning(machine: &Machine) -> Finding {
    let topology = match Topology::read(machine.root) {
        Ok(topology) => topology,
        Err(error) => return Finding::new("pinning", Status::Cannot, error.to_string()),
    };
    let allowed = topology.n_allowed();
    let unknown = topology.places.iter().find_map(|(cpu, place)| Some((cpu, place.as_ref().err()?)));
    if let Some((cpu, reason)) = unknown {
        let what = format!("{allowed} CPUs may be used, but the place of CPU {cpu} is unknown: {reason}");
        return Finding::new("pinning", Status::Cannot, what)
            .advise("use `pinning: none` or a list of CPUs; `compact` and `scatter` need the topology in /sys");
    }
    let others = topology.online.len() - allowed;
    let what = format!("{allowed} CPUs may be used: {}", topology.allowed);
    match others {
        0 => Finding::new("pinning", Status::Good, what),
        _ => Finding::new("pinning", Status::Note, format!("{what}; {others} more are online"))
            .advise("others may run on the rest of the machine and share its caches and memory"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examines_this_machine() {
        let findings = examine(&Machine::here());
        let mut topics: Vec<&str> = findings.iter().map(|finding| finding.topic).collect();
        topics.sort_unstable();
        let count = topics.len();
        topics.dedup();
        assert_eq!(topics.len(), count, "a topic appears twice: {topics:?}");
        for topic in ["pinning", "counters", "governor", "turbo", "SMT", "load", "memory", "swap", "valgrind", "ASLR"] {
            assert!(topics.contains(&topic), "nothing about {topic}");
        }
        assert!(findings.iter().all(|finding| !finding.what.is_empty()));
    }
}
