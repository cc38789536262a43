//! Names of functions as people read them, and which frames of a stack are whose.

use std::fmt::{self, Write};

use crate::record::watched::Frame;

/// Longest name that is kept, in bytes. Some of Rust's take pages, and a crafted one could demangle to a megabyte.
const NAME_MAX: usize = 400;

/// Returns a symbol demangled, without the hash of its crate, and cut where it is very long.
pub fn readable(symbol: &str) -> String {
    let mut short = Short(String::new());
    let written = match rustc_demangle::try_demangle(symbol) {
        Ok(name) => write!(short, "{name:#}"),
        Err(_) => short.write_str(symbol),
    };
    let Short(mut name) = short;
    if written.is_err() {
        name.push('…');
    }
    name
}

/// Takes no more than [`NAME_MAX`] bytes.
struct Short(String);

impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = NAME_MAX - self.0.len();
        let end = text.floor_char_boundary(room);
        self.0.push_str(&text[..end]);
        if end < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

/// Returns the innermost frames that are the user's, at most `n_frames` of them; where there is none, the innermost ones.
pub fn users(frames: &[Frame], n_frames: usize) -> Vec<Frame> {
    let users: Vec<Frame> = frames.iter().filter(|frame| is_users(frame)).take(n_frames).cloned().collect();
    if users.is_empty() { frames.iter().take(n_frames).cloned().collect() } else { users }
}

/// Tells whether a frame is the user's: code with a source that is neither the standard library's, nor the C library's,
/// nor the way from an allocation to the allocator, which is on every such stack.
pub fn is_users(frame: &Frame) -> bool {
    const LIBRARIES: [&str; 6] = ["libc.so", "libc-", "ld-linux", "libpthread", "libgcc_s", "vgpreload_"];
    let Some(file) = &frame.file else { return false };
    let object = frame.object.as_deref().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    !is_library_source(file) && !LIBRARIES.iter().any(|library| object.starts_with(library))
}

/// Tells whether a source file belongs to the standard library, or to the way from an allocation to the allocator.
pub fn is_library_source(file: &str) -> bool {
    const FOLDERS: [&str; 3] = ["/rustlib/src/rust/library/", "/workloads/src/alloc/", "/src/bin/rare-worker.rs"];
    file.starts_with("/rustc/") || FOLDERS.iter().any(|folder| file.contains(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_manglings_are_read() {
        assert_eq!(readable("_ZN14rare_workloads4keys3new17had5330d256732e82E"), "rare_workloads::keys::new");
        assert_eq!(readable("_RNvNtCsjrHSEGnQ3l9_3std2rt19lang_start_internal"), "std::rt::lang_start_internal");
        assert_eq!(readable("main"), "main");
    }

    #[test]
    fn names_stay_short() {
        assert_eq!(readable(&"é".repeat(1000)).len(), NAME_MAX + '…'.len_utf8());
        // Each level doubles what it demangles to.
        let mut bomb = "u".to_owned();
        for _ in 0..40 {
            bomb = format!("T{bomb}{bomb}E");
            if bomb.len() > 1 << 16 {
                break;
            }
        }
        assert!(readable(&format!("_RINvC1a1f{bomb}E")).len() <= NAME_MAX + '…'.len_utf8());
    }
}
