//! The catalogue: one file a structure, one line each in [`ALL`].

pub mod abtree17;
pub mod bcco10;
pub mod citrus14;
pub mod controls;
pub mod crossbeam_skiplist;
pub mod dashmap;
pub mod dgt15;
pub mod efrb10;
mod fan;
pub mod fraser03;
pub mod harris01;
pub mod hj12;
pub mod hlls07;
pub mod lazy05;
pub mod michael02;
pub mod michael_hash02;
pub mod mutex_btree;
pub mod nm14;
pub mod noop;
pub mod occ_abtree22;
pub mod papaya;
mod patience;
mod pick;
pub mod rwlock_btree;
pub mod scc_hash;
pub mod scc_tree;
mod sdd;
mod tower;
mod unpublished;
mod walk;

/// Structures with a planted fault, for tests of the checks. A spec may name them; no listing of the catalogue does.
pub use self::controls::ALL as CONTROLS;
use crate::{
    families::set::{Parameters, RangeHandle, SetHandle},
    harness::Measurements,
    nodes::Nodes,
    protocol::{Audit, Reclamation, Request},
};

/// Every structure that can be run, in the order in which listings show them.
pub static ALL: &[&Structure] = &[
    &nm14::STRUCTURE,
    &efrb10::STRUCTURE,
    &hj12::STRUCTURE,
    &bcco10::STRUCTURE,
    &citrus14::STRUCTURE,
    &dgt15::STRUCTURE,
    &abtree17::STRUCTURE,
    &occ_abtree22::STRUCTURE,
    &fraser03::STRUCTURE,
    &hlls07::STRUCTURE,
    &harris01::STRUCTURE,
    &michael02::STRUCTURE,
    &lazy05::STRUCTURE,
    &michael_hash02::STRUCTURE,
    &crossbeam_skiplist::STRUCTURE,
    &dashmap::STRUCTURE,
    &scc_hash::STRUCTURE,
    &scc_tree::STRUCTURE,
    &papaya::STRUCTURE,
    &mutex_btree::STRUCTURE,
    &rwlock_btree::STRUCTURE,
    &noop::STRUCTURE,
];

/// Names that are reserved for structures of the talk and its peers that are not built yet: a spec that uses one is
/// told so instead of being asked whether it meant another.
pub static PLANNED: &[&str] = &[];

/// One structure: what it states of itself, and its drivers.
pub struct Structure {
    /// What it states of itself.
    pub info: Info,
    /// One monomorphic driver per reclamation scheme that it supports.
    pub drivers: &'static [(Reclamation, &'static dyn Driver)],
}

impl Structure {
    /// Tells whether it has a range query. The drivers decide, so that nothing can be stated that is not so.
    pub fn has_range_query(&self) -> bool {
        self.drivers.iter().all(|(_, driver)| driver.has_range_query())
    }

    /// Returns the driver for a scheme, whatever its parameters; `None` if the structure does not support it.
    pub fn driver(&self, reclamation: Reclamation) -> Option<&'static dyn Driver> {
        let found = self.drivers.iter().find(|(supported, _)| supported.is_of_scheme(reclamation));
        found.map(|&(_, driver)| driver)
    }
}

/// What a structure states of itself. Reports print every field.
pub struct Info {
    /// Name in specs, such as `nm14`.
    pub name: &'static str,
    /// Short title for legends.
    pub title: &'static str,
    /// Authors, title, venue, year; or crate and version.
    pub source: &'static str,
    /// Progress guarantee of each operation.
    pub progress: &'static str,
    /// What its operations mean. Structures of unlike semantics are not compared without `allow: [semantics]`.
    pub semantics: Semantics,
    /// How it treats removed nodes.
    pub reclaims: Reclaims,
    /// Where it keeps its keys.
    pub memory: Memory,
    /// How many keys a search passes.
    pub search: Search,
    /// Where it deviates from its source; empty when nowhere.
    pub deviations: &'static [&'static str],
    /// Numbered invariants, as `I1 …`.
    pub invariants: &'static [&'static str],
    /// Its own parameters, allowed in a structure entry of a spec.
    pub parameters: &'static [ParameterInfo],
}

/// What the operations of a structure mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Semantics {
    /// Abstract data type.
    pub adt: Adt,
    /// What `insert` does with a key that is present.
    pub insert: Insert,
    /// Width of keys in bits.
    pub key_bits: u32,
    /// Width of the values stored beside them in bits; 0 if none is stored.
    pub value_bits: u32,
}

/// Abstract data type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adt {
    /// Keys in order; an in-order walk exists.
    OrderedDictionary,
    /// Keys in no order: nothing but single keys can be asked for, which spares the work of keeping an order.
    HashDictionary,
    /// Nothing is stored: the bound that the harness sets.
    Nothing,
}

/// What `insert` does with a key that is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insert {
    /// Leaves it and returns false.
    IfAbsent,
    /// Stores nothing at all.
    Nothing,
}

/// How a structure treats removed nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclaims {
    /// Retires them to the scheme asked for.
    Deferred,
    /// Frees them at once under its lock, whatever scheme is asked for: it runs under every one.
    AtOnce,
    /// Gives them to a scheme of its own. It runs only under the words that its driver list names, and states what they
    /// change.
    Own,
    /// Allocates nothing.
    Nothing,
}

/// Where a structure keeps its keys: whether its nodes can be padded and pooled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// In nodes from [`crate::nodes`], padded and pooled as asked.
    Nodes,
    /// In memory that its own crate manages: can be neither padded nor pooled.
    Own,
    /// Nowhere: it allocates nothing, whatever is asked.
    Nothing,
}

impl Memory {
    /// Tells whether a structure that keeps its keys so can honour a setting of nodes.
    pub fn honours(self, nodes: Nodes) -> bool {
        self != Self::Own || nodes == Nodes::PLAIN
    }
}

/// How many keys a search passes on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// So many however many there are: the place of a key is computed, or nothing is stored.
    Constant,
    /// About the logarithm of all keys.
    Logarithmic,
    /// All that are smaller.
    Linear,
    /// Those of one chain; the parameter of this name says into how many chains all keys are divided.
    Chains(&'static str),
    /// The smaller ones of the sparsest level; the parameter of this name says how many levels there are, each with a
    /// quarter of the keys of the level below.
    Levels(&'static str),
}

impl Search {
    /// Returns about how many keys a search among `keys` keys passes, at least 1.
    ///
    /// # Panics
    /// If `parameters` lacks the one that it is said to depend on.
    pub fn passes(self, keys: u64, parameters: &Parameters) -> u64 {
        let logarithm = u64::from(keys.max(2).ilog2());
        match self {
            Self::Constant => 1,
            Self::Logarithmic => logarithm,
            Self::Linear => (keys / 2).max(1),
            Self::Chains(buckets) => keys / parameters[buckets].max(1) / 2 + 1,
            Self::Levels(levels) => {
                let n_sparser = u32::try_from(parameters[levels].saturating_sub(1)).unwrap_or(u32::MAX);
                keys.checked_shr(n_sparser.saturating_mul(2)).unwrap_or(0) / 2 + logarithm
            }
        }
    }
}

/// One parameter of a structure.
pub struct ParameterInfo {
    /// Name in the structure entry.
    pub name: &'static str,
    /// Value when the entry does not give it.
    pub default: u64,
    /// Smallest and largest value.
    pub range: (u64, u64),
    /// What it means.
    pub meaning: &'static str,
}

/// Runs trials of one structure under one reclamation scheme; monomorphic inside.
pub trait Driver: Sync {
    /// Runs one trial.
    ///
    /// # Errors
    /// In words, when the trial could not be run as asked (a pin refused by the kernel, say).
    fn trial(&self, request: &Request) -> Result<Measurements, String>;

    /// Tells whether its structure has a range query.
    fn has_range_query(&self) -> bool {
        false
    }

    /// Makes an empty instance for tests over the whole registry.
    fn erased(&self, parameters: &Parameters) -> Box<dyn ErasedSet>;
}

/// An instance whose type is hidden, for tests over the whole registry. Never measured.
pub trait ErasedSet: Send + Sync {
    /// Registers the calling thread.
    fn handle(&self) -> Box<dyn SetHandle + '_>;
    /// Registers the calling thread at a set that has a range query; `None` if it has none.
    fn range_handle(&self) -> Option<Box<dyn RangeHandle + '_>> {
        None
    }
    /// See [`crate::families::set::ConcurrentSet::audit`].
    fn audit(&mut self) -> Audit;
    /// See [`crate::families::set::ConcurrentSet::unreclaimed`].
    fn unreclaimed(&self) -> Option<u64>;
}

/// Returns the structure of that name; controls are found too.
pub fn find(name: &str) -> Option<&'static Structure> {
    ALL.iter().chain(CONTROLS).copied().find(|structure| structure.info.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_pass_as_many_keys_as_is_stated() {
        let of = |name: &str, value: u64| Parameters::from([(name.to_owned(), value)]);
        for (search, parameters, keys, passed) in [
            (Search::Constant, Parameters::new(), 1_000_000, 1),
            (Search::Logarithmic, Parameters::new(), 1 << 20, 20),
            (Search::Linear, Parameters::new(), 1_000_000, 500_000),
            (Search::Linear, Parameters::new(), 0, 1),
            (Search::Chains("buckets"), of("buckets", 100), 1_000_000, 5_001),
            (Search::Levels("max_level"), of("max_level", 1), 1 << 20, (1 << 19) + 20),
            (Search::Levels("max_level"), of("max_level", 3), 1 << 20, (1 << 15) + 20),
            (Search::Levels("max_level"), of("max_level", 64), 1 << 20, 20),
        ] {
            assert_eq!(search.passes(keys, &parameters), passed, "{search:?} among {keys}");
        }
    }

    #[test]
    fn searches_depend_on_parameters_that_there_are() {
        for structure in ALL.iter().chain(CONTROLS) {
            if let Search::Chains(name) | Search::Levels(name) = structure.info.search {
                assert!(structure.info.parameters.iter().any(|info| info.name == name), "{}", structure.info.name);
            }
        }
    }
}
