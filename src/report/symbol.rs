//! How functions and source lines are written where they must be short.

/// Letters of a name that a table shows; generics take the rest.
const MAX_CHARS: usize = 90;

/// Lines of a function that a table shows.
const MAX_LINES: usize = 3;

/// Returns a function's name without the crate of the workloads before each path.
pub(crate) fn plain(name: &str) -> String {
    name.replace("rare_workloads::", "")
}

/// Returns a plain name, cut where it is long: others may begin in the same way.
pub(crate) fn short(name: &str) -> String {
    let name = plain(name);
    match name.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name,
    }
}

/// Returns a source file from its package on: what is before it is where somebody's sources happen to be.
pub(crate) fn file(path: &str) -> &str {
    let package = path.rfind("/src/").map(|src| path[..src].rfind('/').map_or(0, |slash| slash + 1));
    let name = || path.rfind('/').map_or(0, |slash| slash + 1);
    &path[package.unwrap_or_else(name)..]
}

/// Writes the first of some lines, each with its file, its number and its share.
pub(crate) fn lines<'l>(lines: impl Iterator<Item = (&'l str, u32, String)>) -> String {
    let written = lines.take(MAX_LINES).map(|(path, line, share)| format!("{}:{line} ({share})", file(path)));
    written.collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_files_are_short() {
        assert_eq!(short("rare_workloads::structures::nm14::get"), "structures::nm14::get");
        assert_eq!(short("<rare_workloads::a::B as rare_workloads::c::D>::e"), "<a::B as c::D>::e");
        assert_eq!(short(&"ä".repeat(200)).chars().count(), MAX_CHARS + 1);
        assert_eq!(file("/home/a/src/rare/workloads/src/structures/nm14.rs"), "workloads/src/structures/nm14.rs");
        assert_eq!(file("/rustc/0123abc/library/core/src/sync/atomic.rs"), "core/src/sync/atomic.rs");
        assert_eq!(file("src/lib.rs"), "lib.rs");
        assert_eq!(file("./malloc/malloc.c"), "malloc.c");
    }
}
