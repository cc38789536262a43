//! The instruments that explain: they judge nothing, and need trials of their own.

use crate::plan::{
    COMPARE, Ground, Mode, Probe,
    probe::{Change, Setting},
};

/// Name of the instrument that counts events.
pub const COUNTERS: &str = "counters";

/// Name of the instrument that samples call stacks.
pub const PROFILE: &str = "profile";

/// Returns the trials that an instrument needs beside the cells: one of each structure, in its base setting.
pub(super) fn probes(name: &str, ground: &Ground<'_>) -> Vec<Probe> {
    let in_mode = |mode| move |base: Setting| base.probe(name, mode, 1);
    let bases = || ground.bases().into_iter();
    match name {
        // Both on every machine: what a processor counts and what callgrind simulates explain each other.
        COUNTERS => bases().map(in_mode(Mode::Counters)).chain(bases().map(in_mode(Mode::Simulate))).collect(),
        COMPARE => {
            let simulated = |setting: Setting| setting.probe(COMPARE, Mode::Simulate, 1);
            ground.pairs().flatten().map(simulated).collect()
        }
        PROFILE => bases().map(in_mode(Mode::Sample)).collect(),
        _ => Vec::new(),
    }
}
