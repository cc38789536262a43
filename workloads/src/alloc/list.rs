//! The first blocks that each thread allocates in a phase, listed by the thread for itself.
//!
//! The memory of the list is reserved before: nothing is allocated while a block is listed. Must not list what the harness
//! allocates between the phases.

use std::{
    cell::{Cell, RefCell},
    mem::{self, ManuallyDrop},
    ptr::NonNull,
};

use super::Linked;
use crate::protocol::AllocationPhase;

/// A block when it was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub address: usize,
    /// Bytes asked for.
    pub size: usize,
    /// Alignment asked for, in bytes.
    pub align: usize,
    /// Bytes that the allocator set aside, where it tells.
    pub usable: Option<usize>,
    /// Full name of the type of the node, if it is for one.
    pub kind: Option<&'static str>,
    pub phase: AllocationPhase,
}

/// The list of one thread.
struct List {
    /// Never dropped: a thread-local value that must be dropped would allocate to say so.
    blocks: ManuallyDrop<Vec<Listed>>,
    /// Length at which the phase lists no more; that of the list between phases.
    full_at: usize,
    /// Blocks that are listed of a phase at most.
    n_per_phase: usize,
    phase: AllocationPhase,
}

thread_local! {
    static LIST: RefCell<List> = const {
        let blocks = ManuallyDrop::new(Vec::new());
        RefCell::new(List { blocks, full_at: 0, n_per_phase: 0, phase: AllocationPhase::Prefill })
    };
    static KIND: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Reserves the memory in which the calling thread lists `n_per_phase` blocks of each phase.
pub(crate) fn reserve(n_per_phase: usize) {
    const N_PHASES: usize = 2;
    let blocks = ManuallyDrop::new(Vec::with_capacity(N_PHASES * n_per_phase));
    LIST.with_borrow_mut(|list| (list.blocks, list.full_at, list.n_per_phase) = (blocks, 0, n_per_phase));
}

/// Lists the first blocks that the calling thread allocates in `action`.
pub(crate) fn during<T>(phase: AllocationPhase, action: impl FnOnce() -> T) -> T {
    LIST.with_borrow_mut(|list| {
        list.full_at = list.blocks.capacity().min(list.blocks.len() + list.n_per_phase);
        list.phase = phase;
    });
    let result = action();
    LIST.with_borrow_mut(|list| list.full_at = 0);
    result
}

/// Returns what the calling thread listed.
pub(crate) fn take() -> Vec<Listed> {
    LIST.with_borrow_mut(|list| mem::take(&mut *list.blocks))
}

/// Lists what the calling thread allocates in `allocate` as that kind of node.
pub(crate) fn as_kind<T>(kind: &'static str, allocate: impl FnOnce() -> T) -> T {
    KIND.set(Some(kind));
    let result = allocate();
    KIND.set(None);
    result
}

/// Lists a block, if its thread is in a phase that is not full. `linked` has just allocated it.
pub(super) fn allocated(linked: Linked, block: NonNull<u8>, size: usize, align: usize) {
    // Nothing in here allocates, so the list is never borrowed twice.
    LIST.with_borrow_mut(|list| {
        if list.blocks.len() < list.full_at {
            let usable = linked.usable_bytes(block);
            let listed =
                Listed { address: block.as_ptr().addr(), size, align, usable, kind: KIND.get(), phase: list.phase };
            list.blocks.push(listed);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allocate(size: usize) -> Box<[u8]> {
        let mut block = vec![0_u8; size].into_boxed_slice();
        allocated(Linked::System, NonNull::new(block.as_mut_ptr()).expect("it is a block"), size, 1);
        block
    }

    #[test]
    fn the_first_of_each_phase_are_listed_and_nothing_between() {
        let mut kept = vec![allocate(1)];
        reserve(2);
        kept.push(allocate(2));
        during(AllocationPhase::Prefill, || kept.extend([allocate(3), as_kind("Node", || allocate(4)), allocate(5)]));
        kept.push(allocate(6));
        during(AllocationPhase::Window, || kept.push(allocate(7)));
        kept.push(allocate(8));
        let listed = take();
        let told: Vec<_> = listed.iter().map(|listed| (listed.size, listed.kind, listed.phase)).collect();
        let (prefill, window) = (AllocationPhase::Prefill, AllocationPhase::Window);
        assert_eq!(told, [(3, None, prefill), (4, Some("Node"), prefill), (7, None, window)]);
        let addresses: Vec<_> = [2, 3, 6].map(|at| kept[at].as_ptr().addr()).to_vec();
        assert_eq!(listed.iter().map(|listed| listed.address).collect::<Vec<_>>(), addresses);
        assert!(take().is_empty());
    }
}
