//! Which libraries may replace the allocator.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
};

use rare::host::preload::{PreloadError, inspect};
use tempfile::TempDir;

/// Returns the path of a library that this test itself is linked with.
fn loaded(name: &str) -> PathBuf {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let path = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).find(|path| path.contains(name));
    path.unwrap_or_else(|| panic!("no {name} in this process")).into()
}

/// Puts bytes under a name of a new folder.
fn file(name: &str, bytes: &[u8]) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    (folder, path.to_str().unwrap().to_owned())
}

#[track_caller]
fn refused(path: &str, fits: impl Fn(&PreloadError) -> bool) {
    let error = inspect(path).expect_err(path);
    assert!(fits(&error), "{path}: {error:?}");
    let message = error.to_string();
    assert!(message.starts_with("cannot preload `") && !message.contains('\n'), "{message}");
}

#[test]
fn accepts_a_library_that_exports_an_allocator() {
    let libc = loaded("/libc.so");
    let (folder, path) = file("liballocator.so", &fs::read(&libc).unwrap());
    let preload = inspect(&path).unwrap();
    assert_eq!(preload.path, fs::canonicalize(&path).unwrap().to_str().unwrap());
    assert_eq!(preload.sha256, rare::host::digest::of_bytes(&fs::read(&libc).unwrap()));

    let link = folder.path().join("link.so");
    symlink(&path, &link).unwrap();
    assert_eq!(inspect(link.to_str().unwrap()).unwrap(), preload, "links are resolved");
}

#[test]
fn refuses_what_is_not_there() {
    refused("/nowhere/liballocator.so", |error| matches!(error, PreloadError::Missing { .. }));
    refused("", |error| matches!(error, PreloadError::Missing { .. }));
    let (folder, _) = file("x", b"");
    refused(folder.path().to_str().unwrap(), |error| matches!(error, PreloadError::NotAFile { .. }));
    refused("/dev/null", |error| matches!(error, PreloadError::NotAFile { .. }));
}

#[test]
fn refuses_what_cannot_be_read() {
    if rustix::process::geteuid().is_root() {
        println!("skipped: root may read everything");
        return;
    }
    let (_folder, path) = file("liballocator.so", b"\x7fELF");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    refused(&path, |error| matches!(error, PreloadError::Unreadable { .. }));
}

#[test]
fn refuses_what_is_no_library() {
    let libc = fs::read(loaded("/libc.so")).unwrap();
    let not_elf = |error: &PreloadError| matches!(error, PreloadError::NotElf { .. });
    let (_folder, text) = file("text.so", b"INPUT(libjemalloc.so.2)\n");
    refused(&text, not_elf);
    let (_folder, empty) = file("empty.so", b"");
    refused(&empty, not_elf);
    let (_folder, torn) = file("torn.so", &libc[..libc.len() / 2]);
    refused(&torn, not_elf);

    let mut other = libc.clone();
    other[18] ^= 0xff;
    let (_folder, other) = file("other.so", &other);
    refused(&other, |error| matches!(error, PreloadError::OtherMachine { .. }));
    let mut narrow = libc.clone();
    narrow[4] = 1;
    let (_folder, narrow) = file("narrow.so", &narrow);
    refused(&narrow, not_elf);
    let mut object = libc;
    object[16] = 1;
    let (_folder, object) = file("object.o", &object);
    refused(&object, |error| matches!(error, PreloadError::NotShared { kind: 1, .. }));

    let program = std::env::current_exe().unwrap();
    refused(program.to_str().unwrap(), |error| matches!(error, PreloadError::Executable { .. }));
}

#[test]
fn refuses_a_library_without_an_allocator() {
    let library = loaded("/libgcc_s.so");
    refused(library.to_str().unwrap(), |error| matches!(error, PreloadError::NoAllocator { symbol: "malloc", .. }));
}

#[test]
fn refuses_names_that_the_loader_splits() {
    let libc = fs::read(loaded("/libc.so")).unwrap();
    for name in ["lib allocator.so", "lib:allocator.so", "lib$allocator.so", "lib\nallocator.so"] {
        let (folder, path) = file(name, &libc);
        refused(&path, |error| matches!(error, PreloadError::OddName { .. }));
        // What counts is the name that the loader will see.
        let link = folder.path().join("link.so");
        symlink(&path, &link).unwrap();
        refused(link.to_str().unwrap(), |error| matches!(error, PreloadError::OddName { .. }));
    }
}
