//! Where the blocks of `control-interleaved` lie: node and descriptor alternate in memory, by an allocation hook over the
//! system allocator.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::{Cell, RefCell},
    thread,
};

use rare_workloads::{
    families::set::Parameters,
    structures::{
        Structure, bcco10,
        controls::{interleaved, interleaved::DESCRIPTOR_BYTES},
    },
};

/// The system allocator, which notes where a thread that asks for it gets its blocks.
struct Noting;

#[global_allocator]
static ALLOCATOR: Noting = Noting;

/// Most blocks that are noted: their room is allocated beforehand.
const N_NOTED: usize = 4096;

thread_local! {
    static IS_NOTING: Cell<bool> = const { Cell::new(false) };
    static NOTED: RefCell<Vec<(usize, usize)>> = const { RefCell::new(Vec::new()) };
}

// SAFETY: hands every call on to the system allocator unchanged, but for the default `realloc`, which is made of these.
unsafe impl GlobalAlloc for Noting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those of `alloc`.
        let block = unsafe { System.alloc(layout) };
        if IS_NOTING.get() {
            NOTED.with_borrow_mut(|noted| {
                assert!(noted.len() < N_NOTED, "noting must not allocate");
                noted.push((block.addr(), layout.size()));
            });
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are those of `dealloc`.
        unsafe { System.dealloc(block, layout) };
    }
}

/// Inserts `n` new keys on a new thread and returns address and size of every block that this took, in order.
fn blocks_of(structure: &'static Structure, n: u64) -> Vec<(usize, usize)> {
    let insert = move || {
        NOTED.set(Vec::with_capacity(N_NOTED));
        let set = structure.drivers[0].1.erased(&Parameters::new());
        let mut handle = set.handle();
        for idx in 0..n {
            // Scattered, so that the tree has the depth of any other.
            let key = idx.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            IS_NOTING.set(true);
            let inserted = handle.insert(key, key);
            IS_NOTING.set(false);
            assert!(inserted, "every key is new");
        }
        NOTED.take()
    };
    thread::spawn(insert).join().expect("the thread did not panic")
}

#[test]
fn nodes_and_descriptors_alternate_in_memory() {
    const N_KEYS: usize = 1000;
    let sound = blocks_of(&bcco10::STRUCTURE, N_KEYS as u64);
    assert_eq!(sound.len(), N_KEYS, "the structure underneath allocates one node an insertion");
    assert!(sound.iter().all(|&(_, bytes)| bytes == DESCRIPTOR_BYTES), "as large as a descriptor");

    let mixed = blocks_of(&interleaved::CONTROL, N_KEYS as u64);
    assert_eq!(mixed.len(), 2 * N_KEYS);
    // The descriptor comes first. What the allocator had left of earlier times it may hand out in any order; then it
    // cuts one block after another.
    let mut kinds: Vec<(usize, bool)> = mixed.iter().enumerate().map(|(idx, &(at, _))| (at, idx % 2 == 0)).collect();
    kinds.sort_unstable();
    let alternating = kinds.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    assert!(alternating * 10 > mixed.len() * 9, "only {alternating} of {} neighbours are unlike", mixed.len());
    // Neighbours of one kind are as far apart as two blocks.
    let distance = |blocks: &[(usize, usize)]| {
        let mut at: Vec<usize> = blocks.iter().map(|&(at, _)| at).collect();
        at.sort_unstable();
        let mut gaps: Vec<usize> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_unstable();
        gaps[gaps.len() / 2]
    };
    let nodes: Vec<(usize, usize)> = mixed.iter().skip(1).step_by(2).copied().collect();
    assert_eq!(distance(&nodes), 2 * distance(&sound));
}
