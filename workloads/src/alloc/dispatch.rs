//! The global allocator of the worker: forwards to the one that the environment names.
//!
//! The hot path is one relaxed load and one branch that always goes the same way. Counting and listing are further modes
//! behind the same branch, so timed trials pay nothing for them.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    ffi::{CStr, c_char},
    ptr::NonNull,
    sync::atomic::{AtomicU8, Ordering::Relaxed},
};

use mimalloc::MiMalloc;
use snmalloc_rs::SnMalloc;
use tikv_jemallocator::Jemalloc;

use super::{count, list, usable};
use crate::protocol::ALLOCATOR_VARIABLE;

/// The allocator in charge, a [`Linked`] as a number, with [`COUNTING`] added in accounting trials, and [`LISTING`] in those
/// that list blocks; [`UNDECIDED`] until the first allocation.
static MODE: AtomicU8 = AtomicU8::new(UNDECIDED);

const UNDECIDED: u8 = 0;
const SYSTEM: u8 = Linked::System as u8;
const JEMALLOC: u8 = Linked::Jemalloc as u8;
const MIMALLOC: u8 = Linked::Mimalloc as u8;
const SNMALLOC: u8 = Linked::Snmalloc as u8;
const COUNTING: u8 = 8;
const LISTING: u8 = 16;

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

    /// Returns the allocator of a mode, whatever is done besides.
    fn of(mode: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&linked| linked as u8 == mode & !(COUNTING | LISTING))
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
        Linked::of(MODE.load(Relaxed))
    }

    /// Counts allocations from now on, by threads that start later and by the calling one.
    ///
    /// # Errors
    /// When this process does not allocate through [`Dispatch`]: there is nothing to count with.
    pub fn start_counting() -> Result<(), String> {
        Self::add(COUNTING).ok_or("allocations cannot be counted: the dispatching allocator is not in charge")?;
        Ok(())
    }

    /// Lists blocks from now on, in the phases of threads that start later.
    ///
    /// # Errors
    /// When this process does not allocate through [`Dispatch`]: there is nothing to list with.
    pub fn start_listing() -> Result<(), String> {
        usable::prepare();
        Self::add(LISTING).ok_or("blocks cannot be listed: the dispatching allocator is not in charge")?;
        Ok(())
    }

    /// Adds something to do besides, if an allocator was chosen.
    fn add(besides: u8) -> Option<Linked> {
        let linked = Self::serving()?;
        // Relaxed: other threads see the mode by their spawning, which happens after this.
        MODE.fetch_or(besides, Relaxed);
        Some(linked)
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
    let served = settle(mode);
    // SAFETY: the caller keeps the contract.
    let block = unsafe { served.allocator().alloc(layout) };
    served.note(block, layout.size(), layout.align());
    block
}

/// # Safety
/// As [`GlobalAlloc::alloc_zeroed`].
#[cold]
unsafe fn slow_alloc_zeroed(mode: u8, layout: Layout) -> *mut u8 {
    let served = settle(mode);
    // SAFETY: the caller keeps the contract.
    let block = unsafe { served.allocator().alloc_zeroed(layout) };
    served.note(block, layout.size(), layout.align());
    block
}

/// # Safety
/// As [`GlobalAlloc::dealloc`].
#[cold]
unsafe fn slow_dealloc(mode: u8, block: *mut u8, layout: Layout) {
    let served = settle(mode);
    if served.is_counting() {
        count::freed(layout.size());
    }
    // SAFETY: the caller keeps the contract.
    unsafe { served.allocator().dealloc(block, layout) }
}

/// # Safety
/// As [`GlobalAlloc::realloc`].
#[cold]
unsafe fn slow_realloc(mode: u8, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
    let served = settle(mode);
    // SAFETY: the caller keeps the contract.
    let moved = unsafe { served.allocator().realloc(block, layout, new_size) };
    if served.is_counting() && !moved.is_null() {
        count::freed(layout.size());
    }
    served.note(moved, new_size, layout.align());
    moved
}

/// The allocator of a mode, and what is done besides.
struct Served {
    linked: Linked,
    mode: u8,
}

impl Served {
    fn allocator(&self) -> &'static dyn GlobalAlloc {
        self.linked.allocator()
    }

    fn is_counting(&self) -> bool {
        self.mode & COUNTING != 0
    }

    /// Counts and lists a block that the allocator has just given, as far as that is asked for.
    fn note(&self, block: *mut u8, size: usize, align: usize) {
        let Some(block) = NonNull::new(block) else { return };
        if self.is_counting() {
            count::allocated(size);
        }
        if self.mode & LISTING != 0 {
            list::allocated(self.linked, block, size, align);
        }
    }
}

/// Returns what a mode means; chooses an allocator if none is chosen.
fn settle(mode: u8) -> Served {
    Served { linked: Linked::of(mode).unwrap_or_else(choose), mode }
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
