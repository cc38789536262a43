//! The global allocator of the worker: forwards to the one that the environment names.
//!
//! The hot path is one relaxed load and one branch that always goes the same way. Counting is a further mode behind the
//! same branch, so timed trials pay nothing for it.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    ffi::{CStr, c_char},
    sync::atomic::{AtomicU8, Ordering::Relaxed},
};

use mimalloc::MiMalloc;
use snmalloc_rs::SnMalloc;
use tikv_jemallocator::Jemalloc;

use super::count;
use crate::protocol::ALLOCATOR_VARIABLE;

/// The allocator in charge, a [`Linked`] as a number, with [`COUNTING`] added in accounting trials; [`UNDECIDED`] until
/// the first allocation.
static MODE: AtomicU8 = AtomicU8::new(UNDECIDED);

const UNDECIDED: u8 = 0;
const SYSTEM: u8 = Linked::System as u8;
const JEMALLOC: u8 = Linked::Jemalloc as u8;
const MIMALLOC: u8 = Linked::Mimalloc as u8;
const SNMALLOC: u8 = Linked::Snmalloc as u8;
const COUNTING: u8 = 8;

/// An allocator that is linked into the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Linked {
    /// The C library's, or the preloaded library that replaces it.
    System = 1,
    /// By the crate tikv-jemallocator, its symbols prefixed.
    Jemalloc = 2,
    /// By the crate mimalloc.
    Mimalloc = 3,
    /// By the crate snmalloc-rs.
    Snmalloc = 4,
}

impl Linked {
    /// Every linked allocator.
    pub const ALL: [Self; 4] = [Self::System, Self::Jemalloc, Self::Mimalloc, Self::Snmalloc];

    /// Returns the word of the spec.
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Jemalloc => "jemalloc",
            Self::Mimalloc => "mimalloc",
            Self::Snmalloc => "snmalloc",
        }
    }

    fn allocator(self) -> &'static dyn GlobalAlloc {
        match self {
            Self::System => &System,
            Self::Jemalloc => &Jemalloc,
            Self::Mimalloc => &MiMalloc,
            Self::Snmalloc => &SnMalloc,
        }
    }
}

/// The global allocator of the worker. The first allocation of the process chooses by the environment variable
/// [`ALLOCATOR_VARIABLE`], `system` when it is unset; an unknown name ends the process with a message.
pub struct Dispatch;

impl Dispatch {
    /// Returns the allocator in charge, or `None` when this process does not allocate through [`Dispatch`].
    pub fn serving() -> Option<Linked> {
        let mode = MODE.load(Relaxed) & !COUNTING;
        Linked::ALL.into_iter().find(|&linked| linked as u8 == mode)
    }

    /// Counts allocations from now on, by threads that start later and by the calling one.
    ///
    /// # Errors
    /// When this process does not allocate through [`Dispatch`]: there is nothing to count with.
    pub fn start_counting() -> Result<(), String> {
        let linked =
            Self::serving().ok_or("allocations cannot be counted: the dispatching allocator is not in charge")?;
        // Relaxed: other threads see the mode by their spawning, which happens after this.
        MODE.store(linked as u8 | COUNTING, Relaxed);
        Ok(())
    }
}

/// Forwards to the allocator in charge; every other mode takes the slow way.
macro_rules! forward {
    ($slow:ident, $method:ident($($argument:expr),*)) => {
        match MODE.load(Relaxed) {
            // SAFETY: the caller keeps the contract of this very method, and the mode never changes from one allocator
            // to another, so blocks return to the allocator that gave them.
            SYSTEM => unsafe { System.$method($($argument),*) },
            // SAFETY: as above.
            JEMALLOC => unsafe { Jemalloc.$method($($argument),*) },
            // SAFETY: as above.
            MIMALLOC => unsafe { MiMalloc.$method($($argument),*) },
            // SAFETY: as above.
            SNMALLOC => unsafe { SnMalloc.$method($($argument),*) },
            // SAFETY: the caller keeps the contract of this very method.
            mode => unsafe { $slow(mode, $($argument),*) },
        }
    };
}

// SAFETY: each method forwards to one and the same allocator of the process, which keeps the contract.
unsafe impl GlobalAlloc for Dispatch {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        forward!(slow_alloc, alloc(layout))
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        forward!(slow_dealloc, dealloc(block, layout))
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        forward!(slow_alloc_zeroed, alloc_zeroed(layout))
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        forward!(slow_realloc, realloc(block, layout, new_size))
    }
}

/// # Safety
/// As [`GlobalAlloc::alloc`].
#[cold]
unsafe fn slow_alloc(mode: u8, layout: Layout) -> *mut u8 {
    let (allocator, counting) = settle(mode);
    // SAFETY: the caller keeps the contract.
    let block = unsafe { allocator.alloc(layout) };
    if counting && !block.is_null() {
        count::allocated(layout.size());
    }
    block
}

/// # Safety
/// As [`GlobalAlloc::alloc_zeroed`].
#[cold]
unsafe fn slow_alloc_zeroed(mode: u8, layout: Layout) -> *mut u8 {
    let (allocator, counting) = settle(mode);
    // SAFETY: the caller keeps the contract.
    let block = unsafe { allocator.alloc_zeroed(layout) };
    if counting && !block.is_null() {
        count::allocated(layout.size());
    }
    block
}

/// # Safety
/// As [`GlobalAlloc::dealloc`].
#[cold]
unsafe fn slow_dealloc(mode: u8, block: *mut u8, layout: Layout) {
    let (allocator, counting) = settle(mode);
    if counting {
        count::freed(layout.size());
    }
    // SAFETY: the caller keeps the contract.
    unsafe { allocator.dealloc(block, layout) }
}

/// # Safety
/// As [`GlobalAlloc::realloc`].
#[cold]
unsafe fn slow_realloc(mode: u8, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
    let (allocator, counting) = settle(mode);
    // SAFETY: the caller keeps the contract.
    let moved = unsafe { allocator.realloc(block, layout, new_size) };
    if counting && !moved.is_null() {
        count::freed(layout.size());
        count::allocated(new_size);
    }
    moved
}

/// Returns the allocator of a mode and whether it counts; chooses one if none is chosen.
fn settle(mode: u8) -> (&'static dyn GlobalAlloc, bool) {
    let linked = match Linked::ALL.into_iter().find(|&linked| linked as u8 == mode & !COUNTING) {
        Some(linked) => linked,
        None => choose(),
    };
    (linked.allocator(), mode & COUNTING != 0)
}

/// Chooses by the environment. Must not allocate, so it reads the C library's array itself and formats nothing.
fn choose() -> Linked {
    let Some(name) = environment_value(ALLOCATOR_VARIABLE.as_bytes()) else { return chosen(Linked::System) };
    match Linked::ALL.into_iter().find(|linked| linked.name().as_bytes() == name) {
        Some(linked) => chosen(linked),
        None => {
            for part in
                [b"rare-worker: ", ALLOCATOR_VARIABLE.as_bytes(), b" names no linked allocator: `", name, b"`\n"]
            {
                // SAFETY: the pointer and the length are those of one slice. A failed write changes nothing: the process
                // ends all the same.
                unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
            }
            // SAFETY: ends the process at once; nothing was set up that would need to be torn down.
            unsafe { libc::_exit(2) }
        }
    }
}

/// Two threads may choose at once; they choose alike, since nothing writes the environment before the first allocation.
fn chosen(linked: Linked) -> Linked {
    MODE.store(linked as u8, Relaxed);
    linked
}

fn environment_value(name: &[u8]) -> Option<&'static [u8]> {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: the C library sets it before any code of ours runs, and no other thread exists at the first allocation.
    let mut entry = unsafe { environ };
    if entry.is_null() {
        return None;
    }
    loop {
        // SAFETY: the array ends with a null pointer, at which the loop stops.
        let text = unsafe { *entry };
        if text.is_null() {
            return None;
        }
        // SAFETY: entries are strings that end with a null byte and live as long as the process.
        let text = unsafe { CStr::from_ptr(text) };
        if let Some(value) = text.to_bytes().strip_prefix(name).and_then(|rest| rest.strip_prefix(b"=")) {
            return Some(value);
        }
        // SAFETY: this entry was not the null pointer, so the array goes on.
        entry = unsafe { entry.add(1) };
    }
}
