//! Proves which allocator serves the process, by asking it about a fresh block rather than by repeating what was asked.
//!
//! No proof, no trial: every doubt is an error. What each allocator lets itself be asked differs, so the evidence says in
//! words how far its proof goes.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    hint, mem, ptr,
};

use super::{Dispatch, Linked, preload};
use crate::{
    identity::Identity,
    protocol::{AllocatorProof, AllocatorRequest},
};

/// Size of the block that is asked about: a common node's order of magnitude, and no size class of any of them.
const PROBE_BYTES: usize = 1_000;

/// Proves that the allocator asked for serves this process.
///
/// # Errors
/// In words, when another one serves it, or when none of the questions could be answered.
pub fn prove(request: &AllocatorRequest) -> Result<AllocatorProof, String> {
    let serving = Dispatch::serving().ok_or("this process does not allocate through the dispatching allocator")?;
    if serving.name() != request.name {
        return Err(format!("the request expects the allocator `{}`, but `{}` serves", request.name, serving.name()));
    }
    if let Some(asked) = &request.preload {
        if serving != Linked::System {
            return Err(format!("a preload replaces `system`, but the request names `{}`", request.name));
        }
        let (version, evidence) = preload::prove(asked)?;
        return Ok(AllocatorProof { name: request.name.clone(), version, preload: Some(asked.clone()), evidence });
    }
    let (version, evidence) = match serving {
        Linked::System => prove_system()?,
        Linked::Jemalloc => prove_jemalloc()?,
        Linked::Mimalloc => prove_mimalloc()?,
        Linked::Snmalloc => prove_snmalloc()?,
    };
    Ok(AllocatorProof { name: request.name.clone(), version, preload: None, evidence })
}

/// A fresh block of the global allocator, and a local variable that cannot be of it: each question must be answered yes
/// for the one and no for the other.
struct Probe {
    block: Box<[u8; PROBE_BYTES]>,
    local: u64,
}

impl Probe {
    fn new() -> Self {
        Self { block: hint::black_box(Box::new([0; PROBE_BYTES])), local: 0 }
    }

    /// Asks whether an address belongs to the allocator.
    fn ask(&self, belongs: impl Fn(*const c_void) -> bool, allocator: &str) -> Result<(), String> {
        if !belongs(self.block.as_ptr().cast()) {
            return Err(format!("a fresh block does not belong to {allocator}"));
        }
        if belongs(ptr::from_ref(hint::black_box(&self.local)).cast()) {
            return Err(format!("{allocator} claims a local variable as its own: its answer proves nothing"));
        }
        Ok(())
    }
}

fn prove_system() -> Result<(String, String), String> {
    let libc_object = preload::object_of(c"gnu_get_libc_version")?;
    let malloc_object = preload::object_of(c"malloc")?;
    if malloc_object != libc_object {
        return Err(format!(
            "malloc belongs to {malloc_object}, not to the C library {libc_object}: a preload that was not asked for"
        ));
    }
    // SAFETY: the function takes nothing and returns a constant string.
    let version = unsafe { libc::gnu_get_libc_version() };
    let evidence = format!("gnu_get_libc_version; malloc lies in {malloc_object}, as that function does");
    Ok((format!("glibc {}", text(version)?), evidence))
}

fn prove_jemalloc() -> Result<(String, String), String> {
    let mut version: *const c_char = ptr::null();
    mallctl(c"version", &mut version, None)?;
    let in_arena = |address| mallctl(c"arenas.lookup", &mut 0_u32, Some(address)).is_ok();
    Probe::new().ask(in_arena, "jemalloc")?;
    let evidence = "mallctl version; arenas.lookup finds the arena of a fresh block and none for a local variable";
    Ok((format!("jemalloc {}", text(version)?), evidence.to_owned()))
}

/// Reads one value of jemalloc's control tree, after giving it an address if there is one.
fn mallctl<T>(name: &CStr, value: &mut T, address: Option<*const c_void>) -> Result<(), String> {
    let mut value_bytes = mem::size_of::<T>();
    let mut address = address;
    let (new, new_bytes) = match &mut address {
        Some(address) => (ptr::from_mut(address).cast(), mem::size_of::<*const c_void>()),
        None => (ptr::null_mut(), 0),
    };
    // SAFETY: each pointer is null or to a live variable of the length beside it, and the name ends with a null byte.
    let error = unsafe {
        tikv_jemalloc_sys::mallctl(name.as_ptr(), ptr::from_mut(value).cast(), &mut value_bytes, new, new_bytes)
    };
    match error {
        0 if value_bytes == mem::size_of::<T>() => Ok(()),
        _ => Err(format!("mallctl {} failed with error {error}", name.to_string_lossy())),
    }
}

fn prove_mimalloc() -> Result<(String, String), String> {
    unsafe extern "C" {
        safe fn mi_version() -> c_int;
        fn mi_is_in_heap_region(block: *const c_void) -> bool;
    }
    // SAFETY: looks the address up in the page map without following it.
    let in_heap = |address| unsafe { mi_is_in_heap_region(address) };
    Probe::new().ask(in_heap, "mimalloc")?;
    let evidence = "mi_version; mi_is_in_heap_region is true for a fresh block and false for a local variable";
    Ok((format!("mimalloc {}", mi_version()), evidence.to_owned()))
}

fn prove_snmalloc() -> Result<(String, String), String> {
    // Its own size classes: 1,000 bytes become 1,024. A size of zero is its answer for memory that it does not own.
    let owned = |address: *const c_void| {
        SNMALLOC.usable_size(address.cast()).is_some_and(|bytes| (PROBE_BYTES..2 * PROBE_BYTES).contains(&bytes))
    };
    Probe::new().ask(owned, "snmalloc")?;
    let crates = Identity::here().allocator_crates;
    let version = crates.get("snmalloc-rs").map_or("unknown".to_owned(), |version| format!("snmalloc-rs {version}"));
    let evidence = "usable_size knows a fresh block and not a local variable; the library cannot tell its version, so the \
                    crate's stands for it";
    Ok((version, evidence.to_owned()))
}

const SNMALLOC: snmalloc_rs::SnMalloc = snmalloc_rs::SnMalloc;

/// Copies a constant string of a C library.
pub(super) fn text(pointer: *const c_char) -> Result<String, String> {
    if pointer.is_null() {
        return Err("the allocator tells no version".to_owned());
    }
    // SAFETY: not null, and the libraries document these strings as constants that end with a null byte.
    Ok(unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}
