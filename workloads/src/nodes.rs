//! Where the structures of the catalogue get the memory of their nodes, and where they give it back.
//!
//! The one place at which nodes can be padded and pooled, for all structures and in the same way. Like the allocator,
//! both are settings of the process ([`configure`]), made before the first node: all settings then share one code
//! layout, and the hot path of the default is one relaxed load and a branch that always goes the same way. Must not know
//! any structure or scheme. Every object of a structure that comes and goes counts as a node: a descriptor of an
//! operation too.

mod pool;

use std::{
    alloc::{self, Layout},
    any::type_name,
    ptr::{self, NonNull},
    sync::atomic::{AtomicU8, Ordering::Relaxed},
};

use serde::{Deserialize, Serialize};

use crate::alloc::as_kind;

/// How the memory of nodes is managed in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nodes {
    /// Bytes: a node begins at a multiple of this, and fills whole ones. 0 as the structure lays them out; else 64 or 128.
    pub padding_bytes: u32,
    /// What becomes of freed nodes.
    pub pool: Pool,
}

/// What becomes of freed nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pool {
    /// They go back to the allocator.
    None,
    /// The thread that frees a node keeps it for its own later inserts, up to 4,096 of each size, which it gives to the
    /// allocator when it ends.
    PerThread,
}

impl Default for Nodes {
    fn default() -> Self {
        Self::PLAIN
    }
}

impl Nodes {
    /// As the structures lay them out, from the allocator.
    pub const PLAIN: Self = Self { padding_bytes: 0, pool: Pool::None };

    /// Tells whether there is such a padding.
    pub const fn are_known(self) -> bool {
        self.mode().is_some()
    }

    /// Returns the setting as a number, or `None` if there is no such padding.
    const fn mode(self) -> Option<u8> {
        let padding = match self.padding_bytes {
            0 => 0,
            64 => PAD_64,
            128 => PAD_128,
            _ => return None,
        };
        Some(padding | if matches!(self.pool, Pool::PerThread) { POOLED } else { 0 })
    }
}

const PAD_64: u8 = 1;
const PAD_128: u8 = 2;
const POOLED: u8 = 4;
/// The type of each node is told to what lists blocks.
const NAMED: u8 = 8;

/// The setting of the process; 0 is [`Nodes::PLAIN`].
static MODE: AtomicU8 = AtomicU8::new(0);

/// Sets how nodes are allocated from now on. Called once, before the first structure is made.
///
/// # Safety
/// No node that was allocated under another setting is freed after this call.
///
/// # Errors
/// In words, when there is no such padding.
pub unsafe fn configure(nodes: Nodes) -> Result<(), String> {
    let mode = nodes.mode().ok_or_else(|| format!("nodes cannot be padded to {} bytes", nodes.padding_bytes))?;
    // Relaxed: other threads are started later, or are given a structure by something that orders them.
    MODE.store(mode, Relaxed);
    Ok(())
}

/// Tells the type of each node from now on to what lists blocks. It changes nothing about their memory, so nodes from
/// before are freed as ever.
pub(crate) fn name_kinds() {
    // Relaxed: as in `configure`.
    MODE.fetch_or(NAMED, Relaxed);
}

/// Allocates a node. It is freed by [`free`].
#[inline]
pub(crate) fn allocate<T>(node: T) -> *mut T {
    match MODE.load(Relaxed) {
        0 => Box::into_raw(Box::new(node)),
        mode => allocate_specially(mode, node).as_ptr(),
    }
}

/// Drops a node and gives its memory back.
///
/// # Safety
/// `node` came from [`allocate`] of this very type, and nothing uses it from now on.
#[inline]
pub(crate) unsafe fn free<T>(node: *mut T) {
    match MODE.load(Relaxed) {
        // SAFETY: the setting is that of the allocation (`configure`; without `NAMED` it was the same), so it was a box.
        0 => drop(unsafe { Box::from_raw(node) }),
        // SAFETY: the caller's promise.
        mode => unsafe { free_specially(mode, node) },
    }
}

/// Gives what the calling thread keeps back to the allocator.
pub fn flush_this_thread() {
    pool::flush_this_thread();
}

#[cold]
#[inline(never)]
fn allocate_specially<T>(mode: u8, node: T) -> NonNull<T> {
    let layout = padded(mode, Layout::new::<T>());
    let pooled = if mode & POOLED == 0 { None } else { pool::take(layout) };
    let block = pooled.unwrap_or_else(|| {
        assert!(layout.size() > 0, "a node holds something");
        // SAFETY: the size is not zero.
        let fresh = || unsafe { alloc::alloc(layout) };
        let block = if mode & NAMED == 0 { fresh() } else { as_kind(type_name::<T>(), fresh) };
        NonNull::new(block).unwrap_or_else(|| alloc::handle_alloc_error(layout))
    });
    let place = block.cast::<T>();
    // SAFETY: the block is ours alone, and large and aligned enough: padding only adds to the layout of `T`.
    unsafe { place.write(node) };
    place
}

/// # Safety
/// As [`free`].
#[cold]
#[inline(never)]
unsafe fn free_specially<T>(mode: u8, node: *mut T) {
    // SAFETY: it is a `T` that nobody else uses.
    unsafe { ptr::drop_in_place(node) };
    let layout = padded(mode, Layout::new::<T>());
    let block = node.cast::<u8>();
    if mode & POOLED != 0 {
        let block = NonNull::new(block).expect("`allocate_specially` returns no null pointer");
        // SAFETY: it was allocated with this layout, by `allocate_specially`, and holds nothing any more.
        unsafe { pool::put(block, layout) };
    } else {
        // SAFETY: likewise.
        unsafe { alloc::dealloc(block, layout) };
    }
}

/// Adds the padding of a mode to a layout.
fn padded(mode: u8, layout: Layout) -> Layout {
    let bytes = match mode & (PAD_64 | PAD_128) {
        PAD_64 => 64,
        PAD_128 => 128,
        _ => return layout,
    };
    let aligned = layout.align_to(bytes).expect("a node is far smaller than the address space");
    aligned.pad_to_align()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_fills_whole_lines() {
        let node = Layout::new::<[u64; 3]>();
        let large = Layout::new::<[u64; 17]>();
        for (mode, layout, size, align) in [
            (0, node, 24, 8),
            (PAD_64, node, 64, 64),
            (PAD_128, node, 128, 128),
            (PAD_64, large, 192, 64),
            (PAD_128, large, 256, 128),
        ] {
            let padded = padded(mode, layout);
            assert_eq!((padded.size(), padded.align()), (size, align));
        }
    }

    #[test]
    fn special_nodes_come_and_go_and_are_dropped() {
        use std::sync::Arc;
        for nodes in [(64, Pool::None), (128, Pool::None), (0, Pool::PerThread), (64, Pool::PerThread)] {
            let mode = Nodes { padding_bytes: nodes.0, pool: nodes.1 }.mode().expect("it is a padding");
            let counted = Arc::new(());
            let places: Vec<_> = (0..100).map(|_| allocate_specially(mode, Arc::clone(&counted))).collect();
            if nodes.0 > 0 {
                assert!(places.iter().all(|place| place.as_ptr().addr().is_multiple_of(nodes.0 as usize)));
            }
            assert_eq!(Arc::strong_count(&counted), 101);
            for place in places {
                // SAFETY: it came from `allocate_specially` under this mode, and is not used any more.
                unsafe { free_specially(mode, place.as_ptr()) };
            }
            assert_eq!(Arc::strong_count(&counted), 1);
        }
    }

    #[test]
    fn there_is_no_other_padding() {
        assert_eq!(Nodes { padding_bytes: 32, pool: Pool::None }.mode(), None);
    }
}
