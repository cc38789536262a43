//! How many bytes an allocator set aside for a block, as it tells itself. Allocates nothing.

use std::{
    ffi::c_void,
    ptr::NonNull,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use super::{Linked, preload};

/// Whether the C library's allocator, or what replaces it, can be asked.
static SYSTEM_TELLS: AtomicBool = AtomicBool::new(false);

/// Finds out whether the allocator of the system can be asked: one that replaces `malloc` and not the question must not be
/// asked through the C library, which would misread its blocks.
pub(super) fn prepare() {
    let same =
        preload::object_of(c"malloc_usable_size").is_ok_and(|object| preload::object_of(c"malloc") == Ok(object));
    // Relaxed: threads that are started later see it.
    SYSTEM_TELLS.store(same, Relaxed);
}

impl Linked {
    /// Returns the bytes that this allocator set aside for a block of its own.
    pub(super) fn usable_bytes(self, block: NonNull<u8>) -> Option<usize> {
        unsafe extern "C" {
            fn mi_usable_size(block: *const c_void) -> usize;
        }
        let address: *mut c_void = block.as_ptr().cast();
        match self {
            // SAFETY: it is a live block of this allocator: `prepare` saw that the question belongs to it.
            Self::System => SYSTEM_TELLS.load(Relaxed).then(|| unsafe { libc::malloc_usable_size(address) }),
            // SAFETY: it is a live block of jemalloc.
            Self::Jemalloc => Some(unsafe { tikv_jemalloc_sys::malloc_usable_size(address) }),
            // SAFETY: it is a live block of mimalloc.
            Self::Mimalloc => Some(unsafe { mi_usable_size(address) }),
            Self::Snmalloc => snmalloc_rs::SnMalloc.usable_size(block.as_ptr()),
        }
    }
}
