//! Lock-free sorted linked list that unlinks marked nodes one by one.
//!
//! Source: Michael, High Performance Dynamic Lock-Free Hash Tables and List-Based Sets, SPAA 2002: its list (Insert,
//! Delete, Search, and Find, on which all three rest), which is Harris's made fit for hazard pointers.
//! Progress: lock-free, `contains` too: it helps to unlink marked nodes, and begins anew when a link has changed under it.
//! Deviations: no sentinel nodes: the head is a link and the tail is null, so no key value is spent. Links have a mark and
//! no tag of the number of changes, which the paper needs where memory is used again at once.
//! Reclamation: the thread whose exchange unlinked a node retires it. `find` validates each step, as hazard pointers need
//! it; under schemes that protect whole operations the validation decides nothing, and costs one load from a line that
//! has just been read.
//! Invariants, with *in the list* for reachable from the head:
//! I1 Keys strictly increase along links, whether the nodes are in the list or not.
//! I2 A marked link never changes again.
//! I3 A node is unlinked only while marked, once, and retired once, by the thread whose exchange unlinked it. So an
//! unmarked node that was ever in the list is in the list.
//! I4 When no operation runs, no marked node is in the list.

mod link;
mod list;

pub(super) use self::list::List;
use crate::{
    families::set::{ConcurrentSet, Parameters, SetHandle},
    harness::drivers,
    protocol::Audit,
    reclaim::{AnyLocal, AnyReclaimer},
    structures::{Adt, Info, Insert, Memory, Reclaims, Search, Semantics, Structure, walk::Walk},
};

/// Registry entry.
pub static STRUCTURE: Structure = Structure {
    info: Info {
        name: "michael02",
        title: "lock-free list, step by step",
        source: "Michael, High Performance Dynamic Lock-Free Hash Tables and List-Based Sets, SPAA 2002",
        progress: "lock-free; contains may restart and helps to unlink",
        semantics: Semantics { adt: Adt::OrderedDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::Deferred,
        memory: Memory::Nodes,
        search: Search::Linear,
        deviations: &[
            "no sentinel nodes, so no key value is spent",
            "links have no tag that counts changes: schemes keep addresses from being used again",
        ],
        invariants: &[
            "I1 keys strictly increase along links",
            "I2 a marked link never changes",
            "I3 a node is unlinked only while marked, and retired once, by the thread that unlinked it",
            "I4 at rest no marked node is in the list",
        ],
        parameters: &[],
    },
    drivers: drivers!(Michael02, Hazard),
};

/// The list. On lines of its own, because every operation reads the head.
#[repr(align(128))]
pub struct Michael02<R: AnyReclaimer> {
    list: List,
    reclaimer: R,
}

impl<R: AnyReclaimer> ConcurrentSet for Michael02<R> {
    type Handle<'s> = Handle<'s, R>;

    fn new(parameters: &Parameters) -> Self {
        Self { list: List::new(), reclaimer: R::with(parameters) }
    }

    fn handle(&self) -> Handle<'_, R> {
        Handle { list: &self.list, local: self.reclaimer.register() }
    }

    fn audit(&mut self) -> Audit {
        let mut walk = Walk::new();
        self.list.audit(&mut walk, |_, _| {});
        walk.finish()
    }

    fn unreclaimed(&self) -> Option<u64> {
        Some(self.reclaimer.unreclaimed())
    }
}

/// A thread's access.
pub struct Handle<'s, R: AnyReclaimer> {
    list: &'s List,
    local: R::Local<'s>,
}

impl<R: AnyReclaimer> SetHandle for Handle<'_, R> {
    fn insert(&mut self, key: u64, value: u64) -> bool {
        self.list.insert(key, value, &self.local.pin())
    }

    fn remove(&mut self, key: u64) -> bool {
        self.list.remove(key, &self.local.pin())
    }

    fn contains(&mut self, key: u64) -> bool {
        self.list.contains(key, &self.local.pin())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reclaim::{
        NoReclamation,
        interleave::{Operation, explore, explore_announcing},
    };

    #[test]
    fn every_interleaving_of_few_operations_is_explained() {
        explore::<Michael02<NoReclamation>>(|set, operation, guard| match operation {
            Operation::Insert(key) => set.list.insert(key, !key, guard),
            Operation::Remove(key) => set.list.remove(key, guard),
            Operation::Contains(key) => set.list.contains(key, guard),
        });
    }

    #[test]
    fn no_interleaving_follows_a_link_to_a_node_that_was_not_announced_in_time() {
        explore_announcing::<Michael02<NoReclamation>>(|set, operation, guard| match operation {
            Operation::Insert(key) => set.list.insert(key, !key, guard),
            Operation::Remove(key) => set.list.remove(key, guard),
            Operation::Contains(key) => set.list.contains(key, guard),
        });
    }
}
