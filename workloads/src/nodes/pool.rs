//! Freed blocks that a thread keeps for itself, by size.
//!
//! Lists that run through the free blocks themselves, so keeping one allocates nothing.

use std::{
    alloc::{self, Layout},
    cell::RefCell,
    ptr::{self, NonNull},
};

/// Blocks of one size that are kept at most; the rest goes to the allocator. Some times what a thread retires before it
/// frees (epochs free up to 512 objects in one go), and little memory.
const KEPT_MAX: u32 = 4_096;

/// Sizes in steps of eight bytes, up to this many; larger blocks are not pooled. A node of the (a,b)-trees has about 300
/// bytes.
const N_SIZES: usize = 128;

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept::EMPTY) };
}

/// What one thread keeps.
struct Kept([List; N_SIZES]);

/// Free blocks of one layout.
struct List {
    first: *mut Free,
    n_blocks: u32,
    /// Alignment of the blocks, of which one size has one: that of the first block to come. 0 before that.
    align: usize,
}

/// What a free block begins with.
struct Free {
    next: *mut Free,
}

impl Kept {
    const EMPTY: Self = Self([const { List { first: ptr::null_mut(), n_blocks: 0, align: 0 } }; N_SIZES]);

    /// Returns the list for blocks of that layout, if they are pooled.
    fn list(&mut self, layout: Layout) -> Option<&mut List> {
        let (size, align) = (layout.size(), layout.align());
        let fits = size >= size_of::<Free>() && align >= align_of::<Free>() && size.is_multiple_of(8);
        let list = self.0.get_mut(size / 8).filter(|_| fits)?;
        if list.align == 0 {
            list.align = align;
        }
        (list.align == align).then_some(list)
    }

    /// Gives all blocks to the allocator.
    fn flush(&mut self) {
        for (size_idx, list) in self.0.iter_mut().enumerate() {
            while let Some(block) = list.pop() {
                let layout = Layout::from_size_align(size_idx * 8, list.align).expect("a block had this layout");
                // SAFETY: `put` was promised that the allocator gave the block with this layout; it has left the list.
                unsafe { alloc::dealloc(block.as_ptr(), layout) };
            }
        }
    }
}

impl List {
    fn pop(&mut self) -> Option<NonNull<u8>> {
        let block = NonNull::new(self.first)?;
        // SAFETY: a block in the list is nobody else's, and begins with what `push` wrote.
        self.first = unsafe { block.read() }.next;
        self.n_blocks -= 1;
        Some(block.cast())
    }

    /// # Safety
    /// The block is nobody else's, and large and aligned enough for [`Free`].
    unsafe fn push(&mut self, block: NonNull<u8>) {
        let block = block.cast::<Free>();
        // SAFETY: the caller's promise.
        unsafe { block.write(Free { next: self.first }) };
        self.first = block.as_ptr();
        self.n_blocks += 1;
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.flush();
    }
}

/// Returns a block of that layout which this thread keeps, if there is one.
pub(super) fn take(layout: Layout) -> Option<NonNull<u8>> {
    KEPT.try_with(|kept| kept.borrow_mut().list(layout)?.pop()).ok().flatten()
}

/// Keeps a block, or gives it to the allocator.
///
/// # Safety
/// The global allocator gave `block` with that layout, and it is nobody else's.
pub(super) unsafe fn put(block: NonNull<u8>, layout: Layout) {
    let keep = |kept: &RefCell<Kept>| {
        let mut kept = kept.borrow_mut();
        let Some(list) = kept.list(layout).filter(|list| list.n_blocks < KEPT_MAX) else { return false };
        // SAFETY: `list` was asked whether the layout fits, and the block is the caller's alone.
        unsafe { list.push(block) };
        true
    };
    // A thread that ends may free more after its own list is gone.
    if !KEPT.try_with(keep).unwrap_or(false) {
        // SAFETY: the caller's promise.
        unsafe { alloc::dealloc(block.as_ptr(), layout) };
    }
}

/// Gives all that this thread keeps to the allocator.
pub(super) fn flush_this_thread() {
    // A thread whose list is gone keeps nothing.
    _ = KEPT.try_with(|kept| kept.borrow_mut().flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(layout: Layout) -> NonNull<u8> {
        // SAFETY: no layout of these tests is empty.
        NonNull::new(unsafe { alloc::alloc(layout) }).expect("there is memory")
    }

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).expect("it is a layout")
    }

    fn n_kept() -> u32 {
        KEPT.with_borrow(|kept| kept.0.iter().map(|list| list.n_blocks).sum())
    }

    #[test]
    fn what_was_freed_last_comes_first_and_only_for_its_layout() {
        let (small, aligned, other) = (layout(64, 8), layout(64, 64), layout(72, 8));
        let blocks = [block(small), block(small)];
        for block in blocks {
            // SAFETY: it was allocated with this layout just now.
            unsafe { put(block, small) };
        }
        assert!(take(aligned).is_none() && take(other).is_none());
        assert_eq!([take(small), take(small), take(small)], [Some(blocks[1]), Some(blocks[0]), None]);
        for block in blocks {
            // SAFETY: as above.
            unsafe { put(block, small) };
        }
        let stranger = block(aligned);
        // SAFETY: as above. Its size has another alignment, so it is not kept.
        unsafe { put(stranger, aligned) };
        assert_eq!(n_kept(), 2);
        flush_this_thread();
        assert_eq!(n_kept(), 0);
    }

    #[test]
    fn blocks_too_large_too_small_or_too_many_go_back() {
        for odd in [layout(2048, 8), layout(4, 4), layout(12, 4)] {
            // SAFETY: it is allocated with this layout.
            unsafe { put(block(odd), odd) };
            assert!(take(odd).is_none());
        }
        let small = layout(32, 8);
        for _ in 0..KEPT_MAX + 10 {
            // SAFETY: it is allocated with this layout.
            unsafe { put(block(small), small) };
        }
        assert_eq!(n_kept(), KEPT_MAX);
        flush_this_thread();
    }
}
