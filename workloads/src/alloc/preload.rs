//! Proves that one preloaded library, known by the digest of its content, replaces the C library's allocator.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    fs, mem, ptr,
};

use super::proof::text;
use crate::protocol::{Preload, frame::sha256_hex};

/// Proves that `malloc` lies in the library asked for, and that the mapped file has the digest asked for. Returns the
/// version and the evidence.
///
/// # Errors
/// In words: another object serves `malloc`, the file is not mapped, was replaced since, or has another content.
pub(super) fn prove(asked: &Preload) -> Result<(String, String), String> {
    let object = object_of(c"malloc")?;
    if object != asked.path {
        return Err(format!("malloc belongs to {object}, not to the preload {}", asked.path));
    }
    let maps =
        fs::read_to_string("/proc/self/maps").map_err(|error| format!("cannot read /proc/self/maps: {error}"))?;
    if !is_mapped(&maps, &asked.path) {
        return Err(format!("/proc/self/maps does not list the preload {}, or lists it as deleted", asked.path));
    }
    let content = fs::read(&asked.path).map_err(|error| format!("cannot read the preload {}: {error}", asked.path))?;
    let found = sha256_hex(&content);
    if found != asked.sha256 {
        return Err(format!("the preload {} has SHA-256 {found}, the request expects {}", asked.path, asked.sha256));
    }
    let evidence = "malloc lies in the preload; /proc/self/maps lists the file; its content has the digest asked for";
    Ok((version(), evidence.to_owned()))
}

/// Tells whether a memory map lists `path` as executable; a file replaced after it was mapped is marked as deleted, which
/// makes its path another.
fn is_mapped(maps: &str, path: &str) -> bool {
    maps.lines().any(|line| {
        let mut columns = line.splitn(6, ' ');
        let executable = columns.nth(1).is_some_and(|permissions| permissions.contains('x'));
        executable && columns.nth(3).is_some_and(|name| name.trim_start() == path)
    })
}

/// Returns the resolved path of the object in which the dynamic linker finds a symbol.
pub(super) fn object_of(symbol: &CStr) -> Result<String, String> {
    let name = symbol.to_string_lossy();
    let address = lookup(symbol).ok_or_else(|| format!("the dynamic linker finds no {name}"))?;
    // SAFETY: a record of pointers, for which all zeroes is a value.
    let mut info: libc::Dl_info = unsafe { mem::zeroed() };
    // SAFETY: the address was found by the linker, and the record is live.
    let found = unsafe { libc::dladdr(address, &mut info) };
    if found == 0 {
        return Err(format!("the dynamic linker does not know the object of {name}"));
    }
    let path = text(info.dli_fname)?;
    let resolved =
        fs::canonicalize(&path).map_err(|error| format!("cannot resolve {path}, which holds {name}: {error}"))?;
    Ok(resolved.to_string_lossy().into_owned())
}

/// Returns the address of a symbol in the order of the dynamic linker. The linked allocators are not visible to it.
fn lookup(symbol: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends with a null byte.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, symbol.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// Asks the library for its version in the ways of the allocators in common use.
fn version() -> String {
    jemalloc_version()
        .or_else(mimalloc_version)
        .or_else(tcmalloc_version)
        .unwrap_or_else(|| "not told: the library answers neither mallctl, mi_version nor tc_version".to_owned())
}

fn jemalloc_version() -> Option<String> {
    type Mallctl = unsafe extern "C" fn(*const c_char, *mut c_void, *mut usize, *mut c_void, usize) -> c_int;
    let address = lookup(c"mallctl")?;
    // SAFETY: every jemalloc has had this signature under this name since version 3.
    let mallctl: Mallctl = unsafe { mem::transmute(address) };
    let mut version: *const c_char = ptr::null();
    let mut bytes = mem::size_of_val(&version);
    // SAFETY: the pointers are to live variables of the length given.
    let error =
        unsafe { mallctl(c"version".as_ptr(), ptr::from_mut(&mut version).cast(), &mut bytes, ptr::null_mut(), 0) };
    if error == 0 { Some(format!("jemalloc {}", text(version).ok()?)) } else { None }
}

fn mimalloc_version() -> Option<String> {
    let address = lookup(c"mi_version")?;
    // SAFETY: every mimalloc has had this signature under this name.
    let mi_version: unsafe extern "C" fn() -> c_int = unsafe { mem::transmute(address) };
    // SAFETY: takes nothing, returns a number.
    let version = unsafe { mi_version() };
    Some(format!("mimalloc {version}"))
}

fn tcmalloc_version() -> Option<String> {
    type TcVersion = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut *const c_char) -> *const c_char;
    let address = lookup(c"tc_version")?;
    // SAFETY: gperftools has had this signature under this name since version 1.
    let tc_version: TcVersion = unsafe { mem::transmute(address) };
    let (mut major, mut minor, mut patch) = (0, 0, ptr::null());
    // SAFETY: the pointers are to live variables.
    let version = unsafe { tc_version(&mut major, &mut minor, &mut patch) };
    text(version).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_executable_mapping_of_exactly_that_path() {
        let maps = "7f00-7f01 r--p 00000000 00:1f 42   /lib/my alloc.so\n7f01-7f02 r-xp 00000000 00:1f 42    /lib/my alloc.so\n\
                    7f03-7f04 r-xp 00000000 00:1f 43   /lib/old.so (deleted)\n7f05-7f06 r--p 00000000 00:1f 44   /lib/data.so\n";
        assert!(is_mapped(maps, "/lib/my alloc.so"));
        for absent in ["/lib/my", "alloc.so", "/lib/old.so", "/lib/data.so", ""] {
            assert!(!is_mapped(maps, absent), "{absent}");
        }
    }

    #[test]
    fn symbols_lie_in_the_objects_that_hold_them() {
        assert!(object_of(c"gnu_get_libc_version").unwrap().contains("libc"));
        assert!(object_of(c"no_such_symbol_anywhere").is_err());
    }
}
