//! The structures that a spec may name.

use rare_workloads::structures::{self, Structure};

/// A catalogue of structures. Tests compile against their own.
#[derive(Clone, Copy)]
pub struct Catalogue {
    /// Structures that can be run.
    pub structures: &'static [&'static Structure],
    /// Structures with a planted fault: they can be run, and are never offered.
    pub controls: &'static [&'static Structure],
    /// Names that are reserved for structures of later versions.
    pub planned: &'static [&'static str],
}

impl Catalogue {
    /// What this version can run.
    pub const BUILT: Self =
        Self { structures: structures::ALL, controls: structures::CONTROLS, planned: structures::PLANNED };

    /// Returns the structure or control of that name.
    pub(crate) fn find(&self, name: &str) -> Option<&'static Structure> {
        self.structures.iter().chain(self.controls).copied().find(|structure| structure.info.name == name)
    }
}
